//! Errors of the embedder's own program, and of scripts that do not compile.

use agentscript::Outcome;
use std::fmt;

/// An argument that cannot be used: a mistake of the program that embeds the interpreter, never of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError(pub String);

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InputError {}

/// A script that does not compile: the outcome of every run of it, one line of JSON.
#[derive(Clone, Debug)]
pub struct CompileFailure(pub String);

impl CompileFailure {
    pub(crate) fn new(error: agentscript::CompileError) -> Self {
        Self(Outcome::not_compiled(error.failure).to_json())
    }
}
