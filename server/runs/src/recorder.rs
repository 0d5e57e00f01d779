//! Recorders, which keep the journal of a run while it is evaluated, so that it can be replayed.

use crate::{StartInputs, refused};
use agentscript::stateless::Round;
use agentscript::{Call, Outcome};
use codecall_base::call::RunHold;
use codecall_base::tool::{ErrorCode, ToolLookups};
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A place that keeps the journal of one run. The run waits until an append is complete: a call is in the journal before
/// it is dispatched, and an answer before the script sees it.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Adjusts the inputs of the run, so that it can be replayed: a fixed clock, a seed that is recorded, and
    /// `record_lookups`.
    fn start(&self, start: StartInputs) -> StartInputs;

    /// Appends what the script has looked up about tools since the last append.
    ///
    /// # Errors
    /// It cannot be appended, and the run ends.
    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Begins a round with the calls that the script has made since the last append. Calls are numbered in this order,
    /// from 0.
    ///
    /// # Errors
    /// They cannot be appended. None of them is dispatched, and the run ends.
    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Ends the round: appends its answers, in the order in which the script gets them, and their time. `round` has no calls.
    ///
    /// # Errors
    /// They cannot be appended. The script gets none of them, and the run ends.
    fn append_answers<'a>(&'a self, round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Whether the run has no other recorder: those of hooks.
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
    /// [`Recorder::resumption`] says. `false`: it cannot be stored now.
    ///
    /// # Errors
    /// It could not be stored, and the run ends.
    fn pause(&self, _: Pause) -> BoxFuture<'_, Result<bool, JournalError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Takes the journal of a run that goes on; `None`: the run begins. Until all of it was replayed, appends repeat it.
    fn resumption(&self) -> Option<Resumption> {
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

/// The journal of a run that goes on.
#[derive(Clone, Debug, Default)]
pub struct Resumption {
    /// The rounds of its journal.
    pub rounds: Vec<Round>,
    /// How long ago the run began.
    pub age: Duration,
}

/// Several recorders of one run, each of which gets everything.
#[derive(Debug)]
pub(crate) struct Recorders(pub Vec<Arc<dyn Recorder>>);

impl Recorder for Recorders {
    fn start(&self, start: StartInputs) -> StartInputs {
        self.0.iter().fold(start, |start, recorder| recorder.start(start))
    }

    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            for recorder in &self.0 {
                recorder.append_lookups(lookups.clone()).await?;
            }
            Ok(())
        })
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            for recorder in &self.0 {
                recorder.append_calls(calls).await?;
            }
            Ok(())
        })
    }

    fn append_answers<'a>(&'a self, round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            for recorder in &self.0 {
                recorder.append_answers(round).await?;
            }
            Ok(())
        })
    }

    fn can_pause(&self) -> bool {
        self.0.iter().any(|recorder| recorder.can_pause())
    }

    fn can_sleep(&self) -> bool {
        self.0.iter().any(|recorder| recorder.can_sleep())
    }

    fn pause(&self, pause: Pause) -> BoxFuture<'_, Result<bool, JournalError>> {
        Box::pin(async move {
            for recorder in &self.0 {
                if recorder.pause(pause).await? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn resumption(&self) -> Option<Resumption> {
        self.0.iter().find_map(|recorder| recorder.resumption())
    }

    fn hold(self: Arc<Self>) -> Option<Arc<dyn RunHold>> {
        self.0.iter().find_map(|recorder| Arc::clone(recorder).hold())
    }

    fn goes_on(&self, outcome: &Outcome) -> bool {
        self.0.iter().any(|recorder| recorder.goes_on(outcome))
    }

    fn fence(&self) -> i64 {
        self.0.iter().map(|recorder| recorder.fence()).max().unwrap_or_default()
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
