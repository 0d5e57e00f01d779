//! Lists of the built-ins for documentation and tests, made from the interpreter's own tables.
//!
//! Bounded by the tables of built-ins

use super::Body;
use super::registry::registry;
use crate::eval::registry::{Registry, Static};
use crate::interface::dialect::Dialect;
use crate::value::atom::Atom;

/// A global name of the language: a constructor, a function, or a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Whether it can be called.
    pub is_function: bool,
    /// Whether it can be constructed with `new`.
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
        .chain(host_functions(registry))
        .map(|(name, number)| {
            let native = &registry.natives[number as usize];
            let shown = |atom: Atom| registry.names.text(atom);
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

/// The functions of the host in the default dialect.
fn host_functions(registry: &Registry) -> impl Iterator<Item = (&'static str, u32)> + '_ {
    let of_default = registry.host_functions.iter().filter(|&&(dialect, _)| dialect == Dialect::default());
    of_default.map(|&(_, number)| (registry.natives[number as usize].name, number))
}

/// How a script uses a [`Callable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// It is called: `Math.max(1)`, with its owner in front where it has one.
    Call,
    /// It is constructed: `new Map([])`.
    New,
    /// It is called on a value of its owner: `'a'.at(0)`.
    Method,
    /// It is read from a value of its owner: `url.href`.
    Get,
    /// It is written to a value of its owner: `url.href = 'http://a'`.
    Set,
}

/// One way in which a script uses a built-in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Callable {
    /// Of a static function, the path of its owner (`Intl.NumberFormat`), empty for a global; otherwise the family
    /// of the values that have it (`NumberFormat`, `Iterator`).
    pub owner: String,
    /// Its name.
    pub name: &'static str,
    /// How it is used.
    pub way: Use,
}

/// Every way in which a script of the default dialect uses a built-in, from the interpreter's own tables, so that
/// tests cover new ones. Functions with two names are listed twice.
#[must_use]
pub fn callables() -> Vec<Callable> {
    let registry = registry();
    let mut all = Vec::new();
    let globals = registry.globals().chain(host_functions(registry));
    for (name, number) in globals {
        functions(registry, String::new(), name, number, &mut all);
    }
    for (family, name, body) in registry.family_methods() {
        if name.starts_with("Symbol(") {
            continue;
        }
        let mut add = |way| all.push(Callable { owner: format!("{family:?}"), name, way });
        match body {
            Body::Native(_) | Body::Iterating(..) | Body::Prelude(_) | Body::Resume(..) => add(Use::Method),
            Body::Accessor { set, .. } => {
                add(Use::Get);
                if set.is_some() {
                    add(Use::Set);
                }
            }
            Body::Namespace => {}
        }
    }
    all.sort_by(|a, b| (&a.owner, a.name, a.way as u8).cmp(&(&b.owner, b.name, b.way as u8)));
    all
}

/// A global or a static property, with what it has itself.
fn functions(registry: &Registry, owner: String, name: &'static str, number: u32, all: &mut Vec<Callable>) {
    let native = &registry.natives[number as usize];
    if native.is_function() {
        all.push(Callable { owner: owner.clone(), name, way: Use::Call });
    }
    if native.construct.is_some() {
        all.push(Callable { owner: owner.clone(), name, way: Use::New });
    }
    let path = if owner.is_empty() { name.to_owned() } else { format!("{owner}.{name}") };
    for atom in registry.property_names(number) {
        if let Some(Static::Native(function)) = registry.property(number, atom) {
            functions(registry, path.clone(), registry.names.text(atom), function, all);
        }
    }
}
