//! A compiled script.

use crate::eval::code::Code;
use crate::eval::linker::Linker;
use crate::eval::prelude::Prelude;
use crate::eval::registry::Registry;
use crate::meter::spare::{self, Spares};
use std::cell::Cell;

/// A compiled script: immutable, shared between threads and runs.
pub struct Script {
    pub(crate) source: String,
    pub(crate) linker: Linker,
    pub(crate) code: Code,
    /// All built-ins.
    pub(crate) registry: &'static Registry,
    /// The built-ins that are written in the language.
    pub(crate) prelude: &'static Prelude,
    /// The names that are switched off.
    pub(crate) disabled: Box<[String]>,
}

thread_local! {
    /// The memory of sources that were dropped.
    static SPARE_SOURCES: Spares<u8> = const { Cell::new(Vec::new()) };
}

/// A copy of a source.
pub(crate) fn stored(source: &str) -> String {
    let mut text = String::from_utf8(spare::list(&SPARE_SOURCES, source.len())).unwrap_or_default();
    text.push_str(source);
    text
}

impl Drop for Script {
    fn drop(&mut self) {
        spare::put_back(&SPARE_SOURCES, std::mem::take(&mut self.source).into_bytes());
    }
}

impl Script {
    /// The text it was compiled from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// About how many bytes it takes, source and code.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let disabled: usize = self.disabled.iter().map(|name| size_of::<String>() + name.len()).sum();
        size_of::<Self>() + self.source.capacity() + self.code.bytes + disabled
    }
}
