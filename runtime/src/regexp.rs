//! Regular expressions: a program for a backtracking matcher, and the matcher.
//!
//! A pattern becomes a list of small operations. The matcher keeps what it may still try on a stack
//! of its own, so no pattern uses native stack, and it stops after so many steps, so that the caller
//! can charge for them: nothing here knows values, runs or limits. Where a pattern has neither
//! references nor look-around nor counters, positions that have failed once are not tried again, and
//! matching takes a time linear in the text.

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

/// Compiles a pattern that has been read.
pub fn compile_pattern(pattern: &Pattern) -> Program {
    compile::program(pattern)
}
