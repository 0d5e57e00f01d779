//! Built-in objects with state of their own that are neither functions nor collections: dates and
//! their like. To add a kind, add a variant here, a [`Family`] and its file in `builtins/`.

use super::Heap;
use crate::builtins::intl::date_time_format::DateTimeFormat;
use crate::builtins::registry::Family;
use crate::regexp::Program;
use crate::value::{Kind, Value};
use std::sync::Arc;

/// The state of a built-in object. Its named properties are kept as those of arrays are
/// ([`Heap::extras`]).
#[derive(Clone, Debug)]
pub enum Exotic {
    /// A `Date`: milliseconds since 1970-01-01 UTC, an integer within ±8.64e15, or NaN.
    Date(f64),
    /// An `Intl.DateTimeFormat`.
    DateTimeFormat(Box<DateTimeFormat>),
    /// A regular expression.
    RegExp(RegExp),
}

/// The state of a regular expression.
#[derive(Clone, Debug)]
pub struct RegExp {
    /// What it matches.
    pub program: Arc<Program>,
    /// The text of its pattern, a string.
    pub source: Value,
    /// Its property `lastIndex`.
    pub last_index: Value,
}

impl Exotic {
    /// The table of its methods.
    pub fn family(&self) -> Family {
        match self {
            Self::Date(_) => Family::Date,
            Self::DateTimeFormat(_) => Family::DateTimeFormat,
            Self::RegExp(_) => Family::RegExp,
        }
    }

    /// The name of its constructor, as `instanceof` and messages need it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Date(_) => "Date",
            Self::DateTimeFormat(_) => "DateTimeFormat",
            Self::RegExp(_) => "RegExp",
        }
    }

    /// What `Object.prototype.toString` writes behind `object`.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Date(_) | Self::RegExp(_) => self.class(),
            Self::DateTimeFormat(_) => "Intl.DateTimeFormat",
        }
    }

    /// The state that `structuredClone` gives the copy; `None` where the object cannot be cloned.
    pub fn structured_clone(&self) -> Option<Self> {
        match self {
            Self::Date(_) => Some(self.clone()),
            Self::DateTimeFormat(_) => None,
            Self::RegExp(regexp) => Some(Self::RegExp(RegExp { last_index: Value::ZERO, ..regexp.clone() })),
        }
    }

    /// Bytes it takes beside its place in the slab.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Date(_) => 0,
            Self::DateTimeFormat(_) => 512,
            // All who share a program pay for a part of it.
            Self::RegExp(regexp) => regexp.program.bytes() / Arc::strong_count(&regexp.program).max(1),
        }
    }

    /// Append the values that it holds.
    pub(super) fn trace(&self, values: &mut Vec<Value>) {
        match self {
            Self::Date(_) => {}
            Self::DateTimeFormat(format) => values.push(format.function),
            Self::RegExp(regexp) => values.extend([regexp.source, regexp.last_index]),
        }
    }
}

impl Heap {
    /// A new built-in object.
    pub fn new_exotic(&mut self, exotic: Exotic) -> Value {
        self.meter.add_bytes(size_of::<Exotic>() + exotic.cost());
        Value::handle(Kind::Exotic, self.exotics.add(exotic))
    }

    /// Changes the state of a built-in object; nothing where the value is none.
    pub fn set_exotic(&mut self, value: Value, exotic: Exotic) {
        if value.is(Kind::Exotic) {
            self.exotics[value.index()] = exotic;
        }
    }

    /// A new regular expression.
    pub fn new_regexp(&mut self, program: Arc<Program>, source: Value) -> Value {
        self.new_exotic(Exotic::RegExp(RegExp { program, source, last_index: Value::ZERO }))
    }

    /// The state of a value that is a regular expression.
    pub fn regexp(&self, value: Value) -> Option<&RegExp> {
        match self.exotic(value)? {
            Exotic::RegExp(regexp) => Some(regexp),
            Exotic::Date(_) | Exotic::DateTimeFormat(_) => None,
        }
    }

    /// The same to be changed.
    pub fn regexp_mut(&mut self, value: Value) -> Option<&mut RegExp> {
        match self.exotics.items.get_mut(value.is(Kind::Exotic).then(|| value.index())?)? {
            Exotic::RegExp(regexp) => Some(regexp),
            Exotic::Date(_) | Exotic::DateTimeFormat(_) => None,
        }
    }

    /// The state of a value that is a built-in object.
    pub fn exotic(&self, value: Value) -> Option<&Exotic> {
        value.is(Kind::Exotic).then(|| &self.exotics[value.index()])
    }
}
