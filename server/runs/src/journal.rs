//! Journals, which record runs while they execute, so that they can be replayed.

use crate::{StartInputs, refused};
use agentscript::{Call, Event, Outcome};
use codecall_base::tool::{ErrorCode, ToolLookups};
use futures_util::future::BoxFuture;
use std::fmt;

/// The journal of one run. The run waits until an append is complete: a call is in the journal before it is dispatched,
/// and an answer before the script sees it.
pub trait RunJournal: fmt::Debug + Send + Sync {
    /// Adjusts the inputs of the run, so that it can be replayed: a fixed clock, a seed that is recorded, and
    /// `record_lookups`.
    fn start(&self, start: StartInputs) -> StartInputs;

    /// Appends what the script has looked up about tools since the last append.
    ///
    /// # Errors
    /// It cannot be appended, and the run ends.
    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Appends the calls that the script has made since the last append.
    ///
    /// # Errors
    /// They cannot be appended. None of them is dispatched, and the run ends.
    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Appends answers, in the order in which the script gets them.
    ///
    /// # Errors
    /// They cannot be appended. The script gets none of them, and the run ends.
    fn append_answers<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Result<(), JournalError>>;
}

/// The error of an append to a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The journal of the run cannot be written: {0}")]
pub struct JournalError(pub String);

impl From<JournalError> for Outcome {
    fn from(error: JournalError) -> Self {
        refused(ErrorCode::ExecutionError, error.to_string())
    }
}
