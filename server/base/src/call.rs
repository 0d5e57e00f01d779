//! The context of a tool call: who makes it, in which run, and how long it may take.

use crate::event::{RunId, Watcher};
use std::time::Duration;
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

/// What the caller sets for a call, independent of the tool.
#[derive(Clone)]
pub struct CallContext {
    /// Who makes the call.
    pub caller: Caller,
    /// The run whose script makes the call; `None` if no script does.
    pub run: Option<RunId>,
    /// The time limit of the call.
    pub timeout: Duration,
    /// Receives the events of the call.
    pub watcher: Watcher,
    /// Cancelled when the result is no longer wanted.
    pub cancel: CancellationToken,
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { caller, run, timeout, .. } = self;
        f.debug_struct("CallContext").field("caller", caller).field("run", run).field("timeout", timeout).finish()
    }
}
