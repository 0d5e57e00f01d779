//! AgentScript: from text to a resolved program.
//!
//! AgentScript is a safe subset of JavaScript: what is unsafe is not filtered while a script runs, it
//! cannot be written. [`compile`] is the one arrow of this crate:
//!
//! ```text
//! text ─lexer─▶ tokens ─layout─▶ tokens ─grammar─▶ AST ─resolve─▶ Program
//! ```
//!
//! This crate evaluates nothing and knows no values, no limits and no host.

#![forbid(unsafe_code)]

pub mod ast;
mod callee;
mod compile;
mod cook;
mod diagnostic;
mod erase;
mod fold;
mod layout;
pub mod parse;
pub mod print;
pub mod program;
pub mod refused;
pub mod regexp;
mod resolve;
mod shape;
mod span;
mod suggest;
mod targets;
mod token;

pub use callee::{Walk, callee_text, iterable_text, iterated_callee_text, value_text};
pub use compile::compile;
pub use diagnostic::{Code, Diagnostic, Refusal, Rendered};
pub use span::{Location, Span};
pub use suggest::names;

/// Which language a script is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// JavaScript as AgentScript accepts it.
    JavaScript,
    /// The same with TypeScript's types, which are erased.
    TypeScript,
}

/// Which loops a script may contain, the fewest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loops {
    /// None at all.
    None,
    /// `for` with a test, `for…of`, `for…in`, `for await`; no `while`, no `do`, no endless `for`.
    Bounded,
    /// All.
    #[default]
    All,
}

/// What [`compile`] needs to know beside the text.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Absent: JavaScript first, and TypeScript where the text is not JavaScript.
    pub language: Option<Language>,
    /// Which loops are allowed.
    pub loops: Loops,
    /// Longest source in bytes.
    pub max_bytes: usize,
    /// Free names refused on top of the built-in list, with the kind of refusal.
    pub disabled: &'a [(String, Refusal)],
    /// Names of built-in globals: they are no reason for a suggestion and cannot be assigned to.
    pub globals: &'a dyn Fn(&str) -> bool,
    /// Whether a call can be evaluated without leaving the expression it is part of: it never runs
    /// a function of the script.
    pub plain_call: &'a dyn Fn(PlainCall<'_>) -> bool,
}

/// A call by name, for [`Options::plain_call`]. All names are free where they name globals.
#[derive(Clone, Copy, Debug)]
pub enum PlainCall<'a> {
    /// `name(…)` of a global
    Global(&'a str),
    /// `Namespace.name(…)` of a global object
    Static(&'a str, &'a str),
    /// `value.name(…)` of any value but a global, where the script writes no property of that name
    Method(&'a str),
    /// `name(…)` of a variable of the script
    Variable(&'a str),
    /// `new Name(…)`
    New(&'a str),
}

/// Why a script was not compiled: at least one diagnostic, in the order of the source.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What is wrong. Syntax errors stand alone; refusals are all reported.
    pub diagnostics: Vec<Diagnostic>,
}
