//! The common part of the packages for Python and JavaScript: settings and tools given as JSON, compiled scripts, runs
//! and steps.
//!
//! It has no API of its own to learn. Each package wraps these types one to one. It adds the idioms of its language:
//! driving a run with the tasks or promises of its event loop. All data crosses as JSON text, so that a
//! package converts values with the parser of its language, once.

#![forbid(unsafe_code)]

mod clock;
mod error;
mod journal;
mod run;
mod script;
mod settings;
mod step;
mod tools;

pub use clock::HostClock;
pub use error::{CompileFailure, InputError};
pub use journal::Journal;
pub use run::{CancelFlag, Progress, Run, kind};
pub use script::{Script, Start, Time};
pub use settings::Settings;
pub use step::Step;
pub use tools::Toolset;

/// The names of all limits and permissions, as settings spell them: `timeoutMs`.
pub fn limit_names() -> impl Iterator<Item = &'static str> {
    agentscript::LIMITS.iter().map(|limit| limit.name).chain(settings::PERMISSIONS)
}

/// The name that is nearest to one that does not exist.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    codecall_schema::text::nearest(name, known, 1).into_iter().next()
}
