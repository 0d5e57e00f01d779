//! AgentScript: an embeddable interpreter for a safe subset of JavaScript, metered at every step.
//!
//! A run is a state machine: [`Run::resume`] goes on until it needs something from outside, and says
//! what. It never blocks, owns no thread and knows no async runtime; dropping it cancels it. The [`guide`] goes from a
//! script to its
//! outcome, says what the features are, and what stays as it is.
//!
//! ```
//! use agentscript::{CompileOptions, Event, Inputs, Policy, Progress, compile};
//!
//! let policy = Policy::default();
//! let source = "const [a, b] = await Promise.all([callTool('n:get', {}), callTool('n:get', {})]); return a + b";
//! let script = compile(source, &CompileOptions::for_policy(&policy)).expect("the script is valid");
//! let mut run = script.start(Inputs::default(), &policy);
//! let mut events = Vec::new();
//! let outcome = loop {
//!     match run.resume(std::mem::take(&mut events)) {
//!         Progress::Done(outcome) => break outcome,
//!         Progress::Yielded => {}
//!         Progress::Calls(calls) => {
//!             events.extend(calls.into_iter().map(|call| Event::Settled { id: call.id, result: Ok("21".into()) }));
//!         }
//!     }
//! };
//! assert_eq!(outcome.to_json(), r#"{"status":"ok","result":42}"#);
//! ```
//!
//! A [`Linker`] has the functions of the host. An embedder adds its own in one line each: functions of Rust that answer
//! at once, and functions whose calls are answered like tool calls:
//!
//! ```
//! use agentscript::{CallKind, CompileOptions, Event, Inputs, Linker, Policy, Progress, compile};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut linker = Linker::default();
//! linker.func_wrap("hypot", |(a, b): (f64, f64)| Ok(a.hypot(b)))?;
//! linker.func_async("lookup", 1)?;
//!
//! let policy = Policy::default();
//! let options = CompileOptions { linker, ..CompileOptions::for_policy(&policy) };
//! let script = compile("const { x, y } = await lookup('home'); return hypot(x, y)", &options)
//!     .map_err(|error| error.failure.message)?;
//! let mut run = script.start(Inputs::default(), &policy);
//! let Progress::Calls(calls) = run.resume([]) else { panic!("it waits") };
//! assert_eq!((calls[0].kind, calls[0].tool.as_str(), calls[0].input.as_str()), (CallKind::Function, "lookup", r#"["home"]"#));
//!
//! let answer = Event::Settled { id: calls[0].id, result: Ok(r#"{"x": 3, "y": 4}"#.into()) };
//! let Progress::Done(outcome) = run.resume([answer]) else { panic!("it ends") };
//! assert_eq!(outcome.to_json(), r#"{"status":"ok","result":5}"#);
//! # Ok(())
//! # }
//! ```
//!
//! With an async runtime at hand, [`drive`] does that loop. A script that does not compile says why:
//!
//! ```
//! use agentscript::{CompileOptions, compile};
//!
//! let error = compile("eval('1')", &CompileOptions::default()).err().expect("eval is refused");
//! assert_eq!(error.diagnostics[0].message, "Identifier 'eval' is not allowed in AgentScript");
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[doc = include_str!("guide.md")]
pub mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// From the bottom to the top: a module imports only from those above it here.

// Data that knows no value.
#[macro_use]
mod text;
mod interface;
// Values and the memory of a run.
mod value;
mod meter;
pub mod regexp;
mod heap;
// Evaluation, then the functions that scripts can call.
mod eval;
mod builtins;
// The face: from a script to its outcome.
mod script;
mod linker;
mod cache;
mod run;
mod drive;
pub mod stateless;
pub mod declarations;
#[cfg(test)]
mod test_host;

pub use agentscript_lang::{Code, Diagnostic, Language, Location, Loops, Refusal, Span};
pub use builtins::listing::{BuiltIn, Callable, Use, builtins, callables};
pub use cache::ScriptCache;
pub use drive::{Host, drive};
#[doc(hidden)]
pub use eval::stress::Stress;
pub use interface::dialect::Dialect;
pub use interface::error_code::{ErrorCode, Origin};
pub use interface::host::*;
pub use interface::limits::{LIMITS, Limit, Limits, Policy, Preset, Unit};
pub use interface::outcome::{Failure, Issue, MAX_UNANSWERED, Outcome, Stats, Status, Unanswered};
pub use interface::outcome::{MAX_DETAILS_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_TOOL_INPUT_BYTES};
pub use interface::{host, limits, outcome};
pub use linker::{Arguments, LinkError, Linker};
pub use run::Run;
pub use script::{CompileError, CompileOptions, Script, compile};
pub use text::text_form;
