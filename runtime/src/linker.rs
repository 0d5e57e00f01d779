//! The functions of a host: one table of names that a script calls as globals.
//!
//! A [`Linker`] begins with the functions of its [`Dialect`] (`callTool`, `mcpLog` and so on); an embedder adds its
//! own, in one line each. Names are resolved when a script is compiled, and the script keeps its table: scripts that
//! were compiled with different tables are different scripts, also to a [`ScriptCache`](crate::ScriptCache).
//!
//! - [`Linker::func_wrap`]: a function of Rust that answers at once.
//! - [`Linker::func_async`]: a function whose calls the host answers with events, as it answers tool calls.

mod arguments;

pub use arguments::Arguments;

use crate::builtins::Body;
use crate::builtins::registry::registry;
use crate::builtins::tool::YIELDING;
use crate::dialect::Dialect;
use crate::error_code::ErrorCode;
use crate::host::ToolError;
use crate::script::{CompileOptions, compile};
use crate::value::{Kind, Value};
use hashbrown::HashMap;
use serde::Serialize;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// What a script sees of its host: the functions of a dialect, and those that an embedder adds.
///
/// Cheap to clone. Two linkers are equal if one is an unchanged clone of the other: functions cannot be compared.
#[derive(Clone)]
pub struct Linker(Arc<Table>);

#[derive(Clone)]
struct Table {
    dialect: Dialect,
    rows: Vec<Row>,
    /// The numbers of rows by name.
    numbers: HashMap<Box<str>, u32>,
}

/// A function of a host.
#[derive(Clone)]
pub(crate) struct Row {
    /// Its name.
    pub name: Box<str>,
    /// The `length` of the function object.
    pub length: u8,
    /// What a call does.
    pub binding: Binding,
}

/// What a call of a host function does.
#[derive(Clone)]
pub(crate) enum Binding {
    /// It calls a built-in of the dialect, by its number in the registry.
    BuiltIn(u32),
    /// It calls a function of Rust, with the JSON text of so many arguments, or of all.
    Sync { count: Option<u8>, function: Arc<SyncFunction> },
    /// It becomes a [`Call`](crate::Call) of the run.
    Async,
}

/// From the JSON text of an array of arguments to that of the result.
pub(crate) type SyncFunction = dyn Fn(&str) -> Result<String, ToolError> + Send + Sync;

/// Why a function was not added to a [`Linker`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The language or a dialect has a global of that name.
    BuiltIn(String),
    /// There is a function of that name already.
    Duplicate(String),
    /// No script can call a function of that name: why not.
    Name(String, String),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) => write!(f, "the host function '{name}' has the name of a built-in; choose another"),
            Self::Duplicate(name) => write!(f, "the host function '{name}' is defined twice"),
            Self::Name(name, reason) => write!(f, "no script can call a host function '{name}': {reason}"),
        }
    }
}

impl std::error::Error for LinkError {}

static DIALECTS: LazyLock<Vec<Linker>> =
    LazyLock::new(|| Dialect::ALL.iter().map(|&dialect| Linker::for_dialect(dialect)).collect());

impl Linker {
    /// The functions of a dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        DIALECTS[dialect as usize].clone()
    }

    fn for_dialect(dialect: Dialect) -> Self {
        let mut table = Table { dialect, rows: Vec::new(), numbers: HashMap::new() };
        for &(of, number) in registry().host_functions.iter().filter(|&&(of, _)| of == dialect) {
            debug_assert_eq!(of, dialect);
            let native = &registry().natives[number as usize];
            table.push(Row { name: native.name.into(), length: native.length, binding: Binding::BuiltIn(number) });
        }
        Self(Arc::new(table))
    }

    /// Add a function of Rust that answers at once: as `Linker::func_wrap` of wasmtime.
    ///
    /// Arguments and result cross as JSON, so whatever serde reads and writes can be used: a tuple takes as many
    /// arguments as it has parts (those that a script leaves out are `null`, further ones are not looked at), a `Vec`
    /// takes all. Arguments that do not fit are a `TypeError`; an error that the function gives is an `Error` with its
    /// code, which the script can catch unless it is fatal. Reading and writing the JSON is charged; what the function
    /// itself does is not, but for its time, which counts against the limits of time.
    ///
    /// **It must be deterministic**: what it gives is no event of the run, so a run can only be replayed if the same
    /// arguments give the same result. What depends on anything else is for [`Linker::func_async`].
    ///
    /// # Errors
    /// No script could call a function of that name, or the name means something already.
    pub fn func_wrap<A, R, F>(&mut self, name: &str, function: F) -> Result<&mut Self, LinkError>
    where
        A: Arguments,
        R: Serialize,
        F: Fn(A) -> Result<R, ToolError> + Send + Sync + 'static,
    {
        let function = move |text: &str| {
            let arguments = A::from_json(text).map_err(|error| ToolError::new(ARGUMENTS, without_position(&error)))?;
            let result = function(arguments)?;
            serde_json::to_string(&result).map_err(|error| {
                ToolError::new(ErrorCode::ToolExecutionError, format!("The result has no JSON: {error}"))
            })
        };
        let binding = Binding::Sync { count: A::COUNT, function: Arc::new(function) };
        self.define(name, A::COUNT.unwrap_or(0), binding)
    }

    /// Add a function whose calls the host answers: as `Linker::func_wrap_async` of wasmtime.
    ///
    /// A call comes out of [`Run::resume`](crate::Run::resume) as a [`Call`](crate::Call) of kind
    /// [`CallKind::Function`](crate::CallKind::Function), whose input is the JSON text of an array of all arguments. It
    /// is answered by an [`Event`](crate::Event), and counts against the limits of tool calls. In scripts of
    /// [`Dialect::Async`] a call gives a promise; in those of [`Dialect::Sync`] the script waits. A failure is an
    /// `Error` that the script can catch, unless it is fatal. `length` is the `length` of the function object.
    ///
    /// # Errors
    /// No script could call a function of that name, or the name means something already.
    pub fn func_async(&mut self, name: &str, length: u8) -> Result<&mut Self, LinkError> {
        self.define(name, length, Binding::Async)
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

    fn define(&mut self, name: &str, length: u8, binding: Binding) -> Result<&mut Self, LinkError> {
        check_name(name)?;
        if self.0.numbers.contains_key(name) {
            return Err(LinkError::Duplicate(name.into()));
        }
        Arc::make_mut(&mut self.0).push(Row { name: name.into(), length, binding });
        Ok(self)
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
        self.built_in(name).is_some_and(|number| matches!(registry().natives[number as usize].call, Body::Native(_)))
    }

    /// Whether a script finds its host under that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.numbers.contains_key(name) || name == self.0.dialect.input_name()
    }
}

impl Table {
    fn push(&mut self, row: Row) {
        self.numbers.insert(row.name.clone(), self.rows.len() as u32);
        self.rows.push(row);
    }
}

/// The code of arguments that do not fit.
pub(crate) const ARGUMENTS: &str = "ERR_INVALID_ARG_TYPE";

/// The message of an error of serde without its position in a text that nobody has written.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

/// An error unless a script can call a global function of that name, and nothing else has the name.
fn check_name(name: &str) -> Result<(), LinkError> {
    let is_built_in = registry().global(name).is_some()
        || matches!(name, "undefined" | "NaN" | "Infinity")
        || DIALECTS.iter().any(|linker| linker.has(name));
    if is_built_in {
        return Err(LinkError::BuiltIn(name.into()));
    }
    let is_letter = |c: char| c == '_' || c == '$' || c.is_alphabetic();
    if !name.starts_with(is_letter) || !name.chars().all(|c| is_letter(c) || c.is_numeric()) {
        return Err(LinkError::Name(name.into(), "it is no identifier".into()));
    }
    match compile(&format!("{name}()"), &CompileOptions::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(LinkError::Name(name.into(), error.failure.message)),
    }
}

impl Default for Linker {
    /// The functions of the default dialect.
    fn default() -> Self {
        Self::new(Dialect::default())
    }
}

impl From<Dialect> for Linker {
    fn from(dialect: Dialect) -> Self {
        Self::new(dialect)
    }
}

impl PartialEq for Linker {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Linker {}

impl Hash for Linker {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Linker")
            .field("dialect", &self.0.dialect)
            .field("names", &self.names().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests;
