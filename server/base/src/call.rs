//! The context of a tool call: who makes it, in which run, and how long it may take.

use crate::event::{EventSink, RunId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A script.
    Script,
    /// The meta-tool `codecall_invoke`.
    Invoke,
    /// A client that calls a listed tool by its name.
    Direct,
}

impl Caller {
    /// Returns the name for audit records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Script => "script",
            Self::Invoke => "invoke",
            Self::Direct => "direct",
        }
    }
}

/// The run that a call belongs to, and what a run that is nested in that call takes over from it.
#[derive(Clone, Debug)]
pub struct RunScope {
    /// The run.
    pub id: RunId,
    /// How many runs it is nested in.
    pub depth: u32,
    /// The permit that it runs under; absent: it needs none. A nested run takes no other one, so that runs that wait
    /// for their own tools cannot fill the pool.
    pub permit: Option<Arc<OwnedSemaphorePermit>>,
}

/// What the caller sets for a call, independent of the tool.
#[derive(Clone)]
pub struct CallContext {
    /// Who makes the call.
    pub caller: Caller,
    /// The run whose script makes the call; `None` if no script does.
    pub run: Option<RunScope>,
    /// The time limit of the call.
    pub timeout: Duration,
    /// Receives the events of the call.
    pub sink: EventSink,
    /// Cancelled when the result is no longer wanted.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { caller, run, timeout, .. } = self;
        f.debug_struct("CallContext").field("caller", caller).field("run", run).field("timeout", timeout).finish()
    }
}
