//! AgentScript: an embeddable interpreter for a safe subset of JavaScript, metered at every step.

#![forbid(unsafe_code)]

pub mod host;
mod json;
pub mod limits;
pub mod outcome;
mod run;
mod script;

pub use agentscript_lang::{Code, Diagnostic, Language, Location, Loops, Refusal, Span};
pub use host::*;
pub use limits::{LIMITS, Limit, Limits, Policy, Preset, Unit};
pub use outcome::{Failure, Issue, Outcome, Stats, Status};
pub use run::Run;
pub use script::{CompileError, CompileOptions, Script, compile};
