//! AgentScript: an embeddable interpreter for a safe subset of JavaScript, metered at every step.

#![forbid(unsafe_code)]

mod build;
mod builtins;
mod code;
mod convert;
mod drive;
mod error;
mod execute;
mod heap;
pub mod host;
mod json;
pub mod limits;
mod node;
mod operator;
pub mod outcome;
mod prelude;
mod promise;
mod property;
mod run;
mod script;
mod support;
mod symbol;
mod value;
mod vm;

pub use agentscript_lang::{Code, Diagnostic, Language, Location, Loops, Refusal, Span};
pub use drive::{Host, drive};
pub use host::*;
pub use limits::{LIMITS, Limit, Limits, Policy, Preset, Unit};
pub use outcome::{Failure, Issue, Outcome, Stats, Status};
pub use run::Run;
pub use script::{CompileError, CompileOptions, Script, compile};
