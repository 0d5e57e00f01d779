//! Journals, which record runs while they execute, so that they can be replayed.

use crate::{StartInputs, refused};
use agentscript::{Call, Event, Outcome};
use codecall_base::call::RunHold;
use codecall_base::tool::{ErrorCode, ToolLookups};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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

    /// Whether the run has no other journal: that of hooks.
    fn is_only(&self) -> bool {
        true
    }

    /// Whether calls of the run may end without an answer, to be made again when it goes on after a pause.
    fn can_pause(&self) -> bool {
        false
    }

    /// Whether the run can be stored while it waits for a time, too: nobody waits for it here.
    fn can_sleep(&self) -> bool {
        false
    }

    /// Stores a run that waits for a time, or all of whose calls wait for a person. It leaves the memory, and goes on later as
    /// [`RunJournal::past`] says. `false`: it cannot be stored now.
    ///
    /// # Errors
    /// It could not be stored, and the run ends.
    fn pause(&self, _: Pause) -> BoxFuture<'_, Result<bool, JournalError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns what has happened in the run before; `None`: it begins. What is appended until all of it was replayed is the
    /// same again.
    fn past(&self) -> Option<Past> {
        None
    }

    /// Returns the hold of this process on the run; `None`: no other one can take it over.
    fn hold(self: Arc<Self>) -> Option<Arc<dyn RunHold>> {
        None
    }

    /// Whether the run goes on elsewhere, or later, after this outcome here, which says nothing about the run then.
    fn goes_on(&self, _: &Outcome) -> bool {
        false
    }

    /// How often the run was taken over: of several ends of one run, that with the highest number is right.
    fn fence(&self) -> i64 {
        0
    }
}

/// The events that a run that leaves the memory waits for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pause {
    /// After how long it goes on in any case; `None`: when a person has decided.
    pub due: Option<Duration>,
    /// Whether a call waits for a person: that time does not count.
    pub is_for_person: bool,
}

/// The events in a run before it goes on.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// The rounds, in order.
    pub rounds: VecDeque<PastRound>,
    /// How long ago the run began.
    pub age: Duration,
}

/// Calls that were made together, and what came before the next ones.
#[derive(Clone, Debug, Default)]
pub struct PastRound {
    /// The calls.
    pub calls: Vec<Call>,
    /// The events; `None`: none came.
    pub events: Option<Vec<Event>>,
}

/// Several journals of one run, each of which gets everything.
#[derive(Debug)]
pub(crate) struct Journals(pub Vec<Arc<dyn RunJournal>>);

impl RunJournal for Journals {
    fn start(&self, start: StartInputs) -> StartInputs {
        self.0.iter().fold(start, |start, journal| journal.start(start))
    }

    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            for journal in &self.0 {
                journal.append_lookups(lookups.clone()).await?;
            }
            Ok(())
        })
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            for journal in &self.0 {
                journal.append_calls(calls).await?;
            }
            Ok(())
        })
    }

    fn append_answers<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            for journal in &self.0 {
                journal.append_answers(events).await?;
            }
            Ok(())
        })
    }

    fn can_pause(&self) -> bool {
        self.0.iter().any(|journal| journal.can_pause())
    }

    fn can_sleep(&self) -> bool {
        self.0.iter().any(|journal| journal.can_sleep())
    }

    fn pause(&self, pause: Pause) -> BoxFuture<'_, Result<bool, JournalError>> {
        Box::pin(async move {
            for journal in &self.0 {
                if journal.pause(pause).await? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn past(&self) -> Option<Past> {
        self.0.iter().find_map(|journal| journal.past())
    }

    fn hold(self: Arc<Self>) -> Option<Arc<dyn RunHold>> {
        self.0.iter().find_map(|journal| Arc::clone(journal).hold())
    }

    fn goes_on(&self, outcome: &Outcome) -> bool {
        self.0.iter().any(|journal| journal.goes_on(outcome))
    }

    fn fence(&self) -> i64 {
        self.0.iter().map(|journal| journal.fence()).max().unwrap_or_default()
    }
}

/// Checks that a script makes the calls of its journal.
///
/// # Errors
/// It does not: what differs.
pub(crate) fn check_replayed(recorded: &[Call], calls: &[Call]) -> Result<(), String> {
    if recorded.len() != calls.len() {
        return Err(format!("it makes {} calls where it has made {}", calls.len(), recorded.len()));
    }
    match recorded.iter().zip(calls).find(|(before, now)| before != now) {
        Some((before, now)) if before.tool == now.tool => {
            Err(format!("its call {} of '{}' has another input than before", now.id.0, now.tool))
        }
        Some((before, now)) => Err(format!("it calls '{}' where it has called '{}'", now.tool, before.tool)),
        None => Ok(()),
    }
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
