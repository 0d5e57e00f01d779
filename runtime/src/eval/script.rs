//! A compiled script.

use crate::eval::code::Code;
use crate::eval::linker::Linker;
use crate::eval::prelude::Prelude;
use crate::eval::registry::Registry;

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
