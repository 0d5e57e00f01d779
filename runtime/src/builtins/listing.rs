//! What there is, for documentation: made from the tables that the interpreter itself uses.

use super::registry::registry;
use crate::dialect::Dialect;
use crate::symbol::Sym;

/// A global name of the language: a constructor, a function, or a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Whether it can be called.
    pub is_function: bool,
    /// Whether `new` makes something of it.
    pub is_constructor: bool,
    /// Its own functions and numbers, in the order of the tables.
    pub statics: Vec<&'static str>,
    /// Methods and computed properties of the values it makes; those of `Object` are inherited by all.
    pub methods: Vec<&'static str>,
}

/// All global names of the default dialect, in alphabetical order.
#[must_use]
pub fn builtins() -> Vec<BuiltIn> {
    let registry = registry();
    let mut all: Vec<BuiltIn> = registry
        .globals()
        .filter(|&(_, number)| registry.is_known_in(Dialect::default(), number))
        .map(|(name, number)| {
            let native = &registry.natives[number as usize];
            let shown = |symbol: Sym| registry.names[symbol.0 as usize];
            BuiltIn {
                name,
                is_function: native.is_function(),
                is_constructor: native.construct.is_some(),
                statics: registry.property_names(number).map(shown).collect(),
                methods: registry.methods_of(name).map(shown).collect(),
            }
        })
        .collect();
    all.sort_by_key(|builtin| builtin.name);
    all
}
