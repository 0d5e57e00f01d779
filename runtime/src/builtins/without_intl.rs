//! `Intl` of a build without the feature `intl`: nothing, with the names that other modules use.
//!
//! [`MISSING`] refuses scripts that need it when they are compiled.

use super::{Global, Row};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use agentscript_lang::Refusal;
use agentscript_lang::refused::Missing;
use std::convert::Infallible;

/// There is no namespace.
pub const GLOBALS: &[Global] = &[];
/// There are no constructors.
pub const CONSTRUCTORS: &[Global] = &[];
/// There are no methods of its objects.
pub const METHODS: &[(Family, &[Row])] = &[];
/// There are no methods of other types that follow a locale.
pub const LOCALIZED: &[(Family, &[Row])] = &[];
/// The prelude needs no functions for it.
pub const INTRINSICS: &[Row] = &[];

/// What scripts cannot use.
pub const MISSING: &[Missing] = &[
    missing("Intl", Refusal::DisallowedGlobal, FORMAT),
    missing(
        "localeCompare",
        Refusal::DisallowedProperty,
        "compare by code units: `a < b ? -1 : a > b ? 1 : 0`, or `sort()` without a function",
    ),
    missing("toLocaleString", Refusal::DisallowedProperty, FORMAT),
    missing("toLocaleDateString", Refusal::DisallowedProperty, FORMAT),
    missing("toLocaleTimeString", Refusal::DisallowedProperty, FORMAT),
    missing("toLocaleLowerCase", Refusal::DisallowedProperty, "use `toLowerCase()`"),
    missing("toLocaleUpperCase", Refusal::DisallowedProperty, "use `toUpperCase()`"),
];

const FORMAT: &str = "write numbers with `toFixed(digits)` and dates with `toISOString()`";

const fn missing(name: &'static str, refusal: Refusal, hint: &'static str) -> Missing {
    Missing { name, refusal, feature: "intl", hint }
}

/// The slots of an object that no script can make.
#[derive(Clone, Debug)]
pub struct Absent {
    never: Infallible,
    pub bound: Value,
    pub function: Value,
    pub string: Value,
}

impl Absent {
    /// Bytes beside it.
    pub const BESIDE: usize = 0;

    /// Bytes it takes.
    pub fn cost(&self) -> usize {
        match self.never {}
    }
}

pub mod collator {
    pub type Collator = super::Absent;
}
pub mod date_time_format {
    pub type DateTimeFormat = super::Absent;
}
pub mod display_names {
    pub type DisplayNames = super::Absent;
}
pub mod list_format {
    pub type ListFormat = super::Absent;
}
pub mod number_format {
    pub type NumberFormat = super::Absent;
}
pub mod plural_rules {
    pub type PluralRules = super::Absent;
}
pub mod relative_time_format {
    pub type RelativeTimeFormat = super::Absent;
}
pub mod segmenter {
    use super::{Result, Value, Vm};

    pub type Segmenter = super::Absent;
    pub type Segments = super::Absent;

    /// No value is one.
    pub fn is_segments(_: &Vm, _: Value) -> bool {
        false
    }

    /// There are none.
    pub fn at(_: &mut Vm, _: Value, _: usize) -> Result<Option<Value>> {
        Ok(None)
    }
}
