//! The context of a tool call: who makes it, in which run, and how long it may take.

use crate::client::Client;
use crate::event::{EventSink, RunId};
use crate::rates::RunRates;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    /// The client whose request this task answers.
    static CLIENT: Arc<str>;
}

/// Answers a request of a client. `name` is how the client names itself; anything can be in it.
pub fn with_client<F: Future>(name: Arc<str>, answering: F) -> impl Future<Output = F::Output> + use<F> {
    CLIENT.scope(name, answering)
}

/// Returns how the client whose request this task answers names itself; `None` if that is not known.
#[must_use]
pub fn client() -> Option<Arc<str>> {
    CLIENT.try_with(Arc::clone).ok()
}

/// The caller of a tool.
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
    /// Its call; `None`: the run cannot pause.
    pub pause: Option<Arc<CallPause>>,
    /// The hold of its process on it; `None`: no other process can take it over.
    pub hold: Option<Arc<dyn RunHold>>,
    /// How its calls obey the rate limits of tools; `None`: a refused call fails.
    pub rates: Option<Arc<RunRates>>,
}

/// The hold of a process on a run that others take over if it lets its lease lapse.
pub trait RunHold: std::fmt::Debug + Send + Sync {
    /// Checks that the process still has the run: right before a call is sent.
    ///
    /// # Errors
    /// It has lost the run, or cannot know. No call may be sent, and no answer counts.
    fn check(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;
}

/// A call of a run that can pause: it ends without an answer, and is made again when a person has decided.
#[derive(Debug)]
pub struct CallPause {
    /// The number of the call in its run.
    pub call: u32,
    /// Whether the call was in the journal before this process made it: it may have reached its tool.
    pub is_repeated: bool,
    approval: OnceLock<String>,
}

impl CallPause {
    /// Creates the state of a call.
    #[must_use]
    pub fn new(call: u32, is_repeated: bool) -> Self {
        Self { call, is_repeated, approval: OnceLock::new() }
    }

    /// Pauses the call until an approval is decided. Its result is not one.
    pub fn wait_for(&self, approval: &str) {
        let _ = self.approval.set(approval.to_owned());
    }

    /// Returns the approval that the call waits for.
    #[must_use]
    pub fn approval(&self) -> Option<&str> {
        self.approval.get().map(String::as_str)
    }
}

/// The settings of a call, independent of the tool.
#[derive(Clone)]
pub struct CallContext {
    /// The caller.
    pub caller: Caller,
    /// The run whose script makes the call; `None` if no script does.
    pub run: Option<RunScope>,
    /// The time limit of the call.
    pub timeout: Duration,
    /// The client that can be asked about it.
    pub client: Client,
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
