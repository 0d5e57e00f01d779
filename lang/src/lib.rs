//! AgentScript: from text to a resolved program.
//!
//! AgentScript is a safe subset of JavaScript: what is unsafe is not filtered while a script runs, it
//! cannot be written. [`compile`] is the one arrow of this crate:
//!
//! ```text
//! text ─lexer─▶ tokens ─layout─▶ tokens ─grammar─▶ AST ─resolve─▶ Program
//! ```
//!
//! This crate evaluates nothing and knows no values, no limits and no host: what hints say of a host comes
//! with the [`Options`].
//!
//! # Features
//!
//! `typescript` (on by default): types of TypeScript are erased. Without it they are syntax errors whose hint names the feature.
//!
//! # Stability
//!
//! This crate is the inside of the crate `codecall-agentscript`, which embedders use and which has a stable API. The syntax tree and the
//! program follow the grammar: they change with any version. Depend on an exact version (`=0.1.0`).
//!
//! A module imports only from modules declared above it; a test holds it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// What all others use.
mod span;
mod diagnostic;
pub mod refused;
mod options;
// From text to the syntax tree.
mod fence;
mod token;
pub mod ast;
mod targets;
mod cook;
mod fold;
mod erase;
mod layout;
pub mod parse;
mod others;
// From the syntax tree to the program.
pub mod regexp;
pub mod program;
mod resolve;
mod rewrite;
mod hint;
mod compile;
// For messages about a script that runs.
mod callee;
mod suggest;

pub use callee::{Walk, callee_text, iterable_text, iterated_callee_text, value_text};
pub use compile::compile;
pub use diagnostic::{Code, Diagnostic, Failure, Refusal, Rendered};
pub use erase::{TypeToken, TypeTokenKind, TypeTokens};
pub use hint::allowed_hint;
pub use layout::type_declarations;
pub use options::{Language, Loops, Options, OwnTool, PlainCall};
pub use span::{Location, Span};
pub use suggest::names;
