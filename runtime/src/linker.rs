//! The functions of a host: one table of names that a script calls as globals.
//!
//! A [`Linker`] begins with the functions of its [`Dialect`] (`callTool`, `mcpLog` and so on); an embedder adds its
//! own, in one line each. Names are resolved when a script is compiled, and the script keeps its table. Scripts that
//! were compiled with different tables are different scripts, also to a [`ScriptCache`](crate::ScriptCache).
//!
//! - [`Linker::func_wrap`]: a function of Rust that answers at once.
//! - [`Linker::func_async`]: a function whose calls the host answers with events, as it answers tool calls.

mod arguments;

pub use crate::eval::linker::Linker;
pub use arguments::Arguments;

use crate::builtins::registry::registry;
use crate::eval::linker::{ARGUMENTS, Binding, Row};
use crate::interface::dialect::Dialect;
use crate::interface::error_code::ErrorCode;
use crate::interface::host::ToolError;
use crate::script::{CompileOptions, compile};
use serde::Serialize;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

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

static DIALECTS: LazyLock<Vec<Linker>> = LazyLock::new(|| {
    let linkers = Dialect::ALL.iter().map(|&dialect| Linker::for_dialect(registry(), dialect));
    linkers.collect()
});

impl Linker {
    /// The functions of a dialect.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        DIALECTS[dialect as usize].clone()
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

    fn define(&mut self, name: &str, length: u8, binding: Binding) -> Result<&mut Self, LinkError> {
        check_name(name)?;
        if self.0.numbers.contains_key(name) {
            return Err(LinkError::Duplicate(name.into()));
        }
        Arc::make_mut(&mut self.0).push(Row { name: name.into(), length, binding });
        Ok(self)
    }
}

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
