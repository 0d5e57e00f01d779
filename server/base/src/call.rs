//! A tool call before its tool is known: who makes it, in what run, and how long it may take.

use crate::event::{RunId, Watcher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// Who makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A script.
    Script,
    /// `codecall_invoke`.
    Invoke,
    /// A client, by the name of the tool in the list of tools.
    Direct,
}

impl Caller {
    /// As audit records name it.
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

/// What a call has from whoever makes it, whatever its tool is.
#[derive(Clone)]
pub struct CallContext {
    /// Who makes it.
    pub caller: Caller,
    /// The run whose script makes it; absent: no script does.
    pub run: Option<RunScope>,
    /// How long it may take.
    pub timeout: Duration,
    /// Who is told that it begins and how it ends.
    pub watcher: Watcher,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { caller, run, timeout, .. } = self;
        f.debug_struct("CallContext").field("caller", caller).field("run", run).field("timeout", timeout).finish()
    }
}
