//! Where a run is recorded while it goes on, so that it can be replayed.

use crate::{StartInputs, refused};
use agentscript::{Call, Event, Outcome};
use codecall_base::tool::{ErrorCode, ToolLookups};
use futures_util::future::BoxFuture;
use std::fmt;

/// The journal of one run. What it is given is appended when the future is ready, and only then does the run go on: a
/// call is in the journal before it is dispatched, and an answer before the script sees it.
pub trait RunJournal: fmt::Debug + Send + Sync {
    /// Returns what the run is started with, instead of `start`: a clock that stands still, random numbers that can be
    /// made again, and `record_lookups`.
    fn start(&self, start: StartInputs) -> StartInputs;

    /// Append what the script has looked up about tools since the last time.
    ///
    /// # Errors
    /// It cannot be appended, and the run ends.
    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Append calls that the script has made since the last time.
    ///
    /// # Errors
    /// They cannot be appended. None of them is dispatched, and the run ends.
    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Append answers in the order in which the script gets them.
    ///
    /// # Errors
    /// They cannot be appended. The script gets none of them, and the run ends.
    fn append_answers<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Result<(), JournalError>>;
}

/// Why something could not be appended to a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The journal of the run cannot be written: {0}")]
pub struct JournalError(pub String);

impl From<JournalError> for Outcome {
    fn from(error: JournalError) -> Self {
        refused(ErrorCode::ExecutionError, error.to_string())
    }
}
