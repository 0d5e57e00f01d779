//! The functions of a host, as the evaluator finds them: [`Linker`].

use crate::eval::native::Body;
use crate::eval::registry::Registry;
use crate::interface::dialect::Dialect;
use crate::interface::host::ToolError;
use crate::value::{Kind, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// The functions whose names an app, or a tool that is a function, takes over.
const YIELDING: &[&str] = &["parseText"];

/// The functions of a host that a script sees: those of a dialect, and those that an embedder adds.
///
/// Cheap to clone. Two linkers are equal if one is an unchanged clone of the other: functions cannot be compared.
#[derive(Clone)]
pub struct Linker(pub(crate) Arc<Table>);

/// The table of a [`Linker`].
#[derive(Clone)]
pub struct Table {
    /// The dialect.
    pub dialect: Dialect,
    /// The built-ins, among them those of the dialect.
    pub registry: &'static Registry,
    /// The functions, by number.
    pub rows: Vec<Row>,
    /// The numbers of rows by name.
    pub numbers: HashMap<Box<str>, u32>,
}

/// A function of a host.
#[derive(Clone)]
pub struct Row {
    /// Its name.
    pub name: Box<str>,
    /// The `length` of the function object.
    pub length: u8,
    /// The effect of a call.
    pub binding: Binding,
}

/// The effect of a call of a host function.
#[derive(Clone)]
pub enum Binding {
    /// It calls a built-in of the dialect, by its number in the registry.
    BuiltIn(u32),
    /// It calls a function of Rust, with the JSON text of so many arguments, or of all.
    Sync {
        /// How many arguments it takes; absent: all.
        count: Option<u8>,
        /// The function.
        function: Arc<SyncFunction>,
    },
    /// It becomes a [`Call`](crate::Call) of the run.
    Async,
}

/// From the JSON text of an array of arguments to that of the result.
pub type SyncFunction = dyn Fn(&str) -> Result<String, ToolError> + Send + Sync;

impl Linker {
    /// Returns the functions of a dialect.
    pub(crate) fn for_dialect(registry: &'static Registry, dialect: Dialect) -> Self {
        let mut table = Table { dialect, registry, rows: Vec::new(), numbers: HashMap::new() };
        for &(_, number) in registry.host_functions.iter().filter(|&&(of, _)| of == dialect) {
            let native = &registry.natives[number as usize];
            table.push(Row { name: native.name.into(), length: native.length, binding: Binding::BuiltIn(number) });
        }
        Self(Arc::new(table))
    }

    /// Every name that a script finds its host under: the functions, and the input of the run.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.rows.iter().map(|row| &*row.name).chain([self.0.dialect.input_name()])
    }

    /// The dialect whose functions it began with.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.0.dialect
    }

    /// The value of a global of that name, if it is the same in every run: no tool can have the name.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        if YIELDING.contains(&name) { None } else { self.function(name) }
    }

    /// The function of that name.
    pub(crate) fn function(&self, name: &str) -> Option<Value> {
        let number = *self.0.numbers.get(name)?;
        Some(match self.row(number).binding {
            Binding::BuiltIn(native) => Value::handle(Kind::Native, native),
            Binding::Sync { .. } | Binding::Async => Value::handle(Kind::HostFunction, number),
        })
    }

    /// The built-in of that name.
    pub(crate) fn built_in(&self, name: &str) -> Option<u32> {
        self.value(name).filter(|value| value.is(Kind::Native)).map(Value::payload)
    }

    /// The function of a [`Kind::HostFunction`].
    pub(crate) fn row(&self, number: u32) -> &Row {
        &self.0.rows[number as usize]
    }

    /// Whether a global of that name is a built-in that runs no function of the script.
    pub(crate) fn is_plain(&self, name: &str) -> bool {
        self.built_in(name)
            .is_some_and(|number| matches!(self.0.registry.natives[number as usize].call, Body::Native(_)))
    }

    /// Whether a script finds its host under that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.numbers.contains_key(name) || name == self.0.dialect.input_name()
    }
}

impl Table {
    /// Adds a function.
    pub fn push(&mut self, row: Row) {
        self.numbers.insert(row.name.clone(), self.rows.len() as u32);
        self.rows.push(row);
    }
}

/// The code of arguments that do not fit.
pub(crate) const ARGUMENTS: &str = "ERR_INVALID_ARG_TYPE";
