//! Regular expressions: a program for a backtracking matcher, and the matcher.
//!
//! A pattern becomes a list of small operations. The matcher has a backtracking stack of its own, so no pattern uses
//! native stack. It stops after a given number of steps, so that the caller can charge for them. Nothing here
//! knows values, runs or limits. For patterns without backreferences, look-around and counters, failed positions are
//! memoized, and matching takes time linear in the text.

mod compile;
mod matcher;
mod program;
mod start;
#[cfg(test)]
mod tests;

pub use matcher::{Matcher, Progress};
pub use program::Program;

use agentscript_lang::regexp::{Error, Flags, Pattern, parse};

/// Compiles a pattern, given as UTF-16.
///
/// # Errors
/// What is wrong with the pattern.
pub fn compile(source: &[u16], flags: Flags) -> Result<Program, Error> {
    Ok(compile_pattern(&parse(source, flags)?))
}

/// Compiles a parsed pattern.
pub fn compile_pattern(pattern: &Pattern) -> Program {
    compile::program(pattern)
}
