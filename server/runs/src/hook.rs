//! What can be put around every run.

use crate::calls::CallLog;
use agentscript::{Dialect, Outcome};
use codecall_base::event::RunId;
use codecall_base::tool::ErrorCode;
use codecall_tools::pipeline::Pipeline;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;

/// A run that begins: it has its permit, and its script has not been compiled.
#[derive(Clone, Debug)]
pub struct RunStart {
    /// The run.
    pub id: RunId,
    /// The run whose tool call it is; absent: a client has asked for it.
    pub parent: Option<RunId>,
    /// How many runs it is nested in.
    pub depth: u32,
    /// The script.
    pub script: Arc<str>,
    /// What the script sees of the host.
    pub dialect: Dialect,
    /// Whether no tool is reached.
    pub is_dry: bool,
    /// When it begins.
    pub at: SystemTime,
}

/// A run that has ended, however it has.
pub struct RunEnd<'a> {
    /// What was known at its beginning.
    pub start: &'a RunStart,
    /// How it has ended. One whose client has gone before that is `EXECUTION_ABORTED`.
    pub outcome: &'a Outcome,
    /// How long it took.
    pub duration: Duration,
    pub(crate) log: &'a CallLog,
    pub(crate) pipeline: &'a Pipeline,
}

impl RunEnd<'_> {
    /// Its tool calls, as `codecall/calls` of the result of `codecall_execute` has them: masked, without secrets, and
    /// the first ones where there are many.
    #[must_use]
    pub fn calls(&self) -> Value {
        self.log.to_json(self.outcome, &|input| crate::shown(self.pipeline, input))
    }
}

/// Something that happens around every run, nested ones too. A run that is not admitted is none.
pub trait RunHook: Send + Sync {
    /// The run begins. It goes on when this has returned.
    fn begin<'a>(&'a self, start: &'a RunStart) -> BoxFuture<'a, ()> {
        let _ = start;
        Box::pin(std::future::ready(()))
    }

    /// The run has ended. Its client gets the outcome when this has returned.
    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        let _ = end;
        Box::pin(std::future::ready(()))
    }
}

/// Logs the end of each run, at the level `info`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRuns;

impl RunHook for LogRuns {
    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        let (outcome, duration_ms) = (end.outcome, end.duration.as_millis());
        let (status, code) = match &outcome.result {
            Ok(_) => ("ok", ""),
            Err(failure) => (failure.status.as_str(), failure.code.as_str()),
        };
        let (run, tool_calls, steps) = (&end.start.id, outcome.stats.tool_calls, outcome.stats.steps);
        tracing::info!(%run, status, code, duration_ms, tool_calls, steps, "run ended");
        Box::pin(std::future::ready(()))
    }
}

/// The hooks of a run that has begun. Dropped before [`Hooked::end`], its client has gone, which they are told too.
pub(crate) struct Hooked {
    hooks: Arc<[Arc<dyn RunHook>]>,
    ends: Option<Ends>,
}

/// What the end of a run is told with.
struct Ends {
    start: RunStart,
    log: Arc<CallLog>,
    pipeline: Arc<Pipeline>,
    began: Instant,
}

impl Ends {
    async fn call(&self, hooks: &[Arc<dyn RunHook>], outcome: &Outcome) {
        let Self { start, log, pipeline, began } = self;
        let end = RunEnd { start, outcome, duration: began.elapsed(), log, pipeline };
        for hook in hooks.iter().rev() {
            hook.end(&end).await;
        }
    }
}

impl Hooked {
    /// Call `begin` of all hooks.
    pub async fn begin(
        hooks: &Arc<[Arc<dyn RunHook>]>,
        start: RunStart,
        log: &Arc<CallLog>,
        pipeline: &Arc<Pipeline>,
    ) -> Self {
        for hook in hooks.iter() {
            hook.begin(&start).await;
        }
        let (log, pipeline) = (Arc::clone(log), Arc::clone(pipeline));
        Self { hooks: Arc::clone(hooks), ends: Some(Ends { start, log, pipeline, began: Instant::now() }) }
    }

    /// Call `end` of all hooks, the last one first.
    pub async fn end(mut self, outcome: &Outcome) {
        if let Some(ends) = self.ends.take() {
            ends.call(&self.hooks, outcome).await;
        }
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        let Some(ends) = self.ends.take() else { return };
        let hooks = Arc::clone(&self.hooks);
        // Without a runtime the process ends.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let outcome = crate::refused(ErrorCode::ExecutionAborted, "Nobody waits for the result any more");
                ends.call(&hooks, &outcome).await;
            });
        }
    }
}
