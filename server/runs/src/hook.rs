//! Hooks around runs.

use crate::calls::{CallLog, LoggedCall};
use crate::recorder::Recorder;
use agentscript::{Dialect, Language, Outcome};
use codecall_base::event::RunId;
use codecall_base::tool::ErrorCode;
use codecall_tools::pipeline::Pipeline;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;

/// The start of a run. It has a permit; its script has not been compiled.
#[derive(Clone, Debug)]
pub struct RunStart {
    /// The id of the run.
    pub id: RunId,
    /// The run that has made the call in which this run is nested; `None`: a client has requested it.
    pub parent: Option<RunId>,
    /// Number of runs that it is nested in.
    pub depth: u32,
    /// The script.
    pub script: Arc<str>,
    /// Its language; `None`: it is detected.
    pub language: Option<Language>,
    /// The `codecallContext` of the script: JSON text of an object.
    pub context: Option<Arc<str>>,
    /// The functions of the host that the script sees.
    pub dialect: Dialect,
    /// The client that has requested it, as it names itself; `None`: that is not known.
    pub client: Option<Arc<str>>,
    /// The full name of the tool whose code the script is; `None`: a client has sent it.
    pub tool: Option<Arc<str>>,
    /// Whether it is a dry run, which calls no tool.
    pub is_dry_run: bool,
    /// The time of the start.
    pub at: SystemTime,
}

/// The end of a run.
pub struct RunEnd<'a> {
    /// Its start.
    pub start: &'a RunStart,
    /// The outcome: `EXECUTION_ABORTED` if the client has disconnected before the end.
    pub outcome: &'a Outcome,
    /// The duration of the run.
    pub duration: Duration,
    /// How often a process has taken the run over: of several ends of one run, that with the highest number is right.
    pub fence: i64,
    pub(crate) began: Instant,
    pub(crate) log: &'a CallLog,
    pub(crate) pipeline: &'a Arc<Pipeline>,
}

impl RunEnd<'_> {
    /// Returns the name of the client that has requested it, if there are several.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.pipeline.client()
    }

    /// Returns its first tool calls, with personal data and secrets masked in their inputs, and the number of further ones.
    #[must_use]
    pub fn logged_calls(&self) -> (Vec<LoggedCall>, u64) {
        self.log.calls(self.began)
    }

    /// Returns the pipeline of its tool calls, which masks personal data and secrets.
    #[must_use]
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        self.pipeline
    }

    /// Returns its tool calls in the format of `codecall/calls` in the `_meta` of a result: without secrets and personal
    /// data, and only the first ones if there are many.
    #[must_use]
    pub fn calls(&self) -> Value {
        self.log.to_json(self.outcome, &|input| crate::finished::redact_input(self.pipeline, input))
    }
}

/// A hook around every run that is admitted, nested runs included.
pub trait RunHook: Send + Sync {
    /// Called before the script is compiled. The run waits for it.
    fn begin<'a>(&'a self, start: &'a RunStart) -> BoxFuture<'a, ()> {
        let _ = start;
        Box::pin(std::future::ready(()))
    }

    /// Returns a journal of a run that is about to begin, unless the request has one. The first hook that returns one is
    /// asked only. It may leave the clock of the run as it is.
    fn journal(&self, start: &RunStart) -> Option<Arc<dyn Recorder>> {
        let _ = start;
        None
    }

    /// Called instead of [`RunHook::end`] when the run waits for a person and has left the memory, or goes on in another process.
    /// When it goes on, it begins again, with the same id.
    fn paused(&self, start: &RunStart) {
        let _ = start;
    }

    /// Called when the run has ended. The client gets the outcome after it.
    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        let _ = end;
        Box::pin(std::future::ready(()))
    }
}

/// Logs the end of each run, at the level `info`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRuns;

impl RunHook for LogRuns {
    fn paused(&self, start: &RunStart) {
        tracing::info!(run = %start.id, "run waits for a person, or goes on elsewhere");
    }

    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        let (outcome, duration_ms) = (end.outcome, end.duration.as_millis());
        let status = outcome.status().as_str();
        let code = outcome.result.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "");
        let (run, tool_calls, steps) = (&end.start.id, outcome.stats.tool_calls, outcome.stats.steps);
        let client = end.client().unwrap_or_default();
        tracing::info!(%run, client, status, code, duration_ms, tool_calls, steps, "run ended");
        Box::pin(std::future::ready(()))
    }
}

/// Guarantees that the hooks of a run see its end: if it is dropped before [`HookGuard::end`], because the client has
/// disconnected, they are called in the background.
pub(crate) struct HookGuard {
    hooks: Arc<[Arc<dyn RunHook>]>,
    /// `None` after the end.
    active: Option<ActiveRun>,
    /// Whether the run goes on elsewhere if it is dropped.
    pauses: bool,
}

/// A run whose hooks have seen its start, but not its end.
struct ActiveRun {
    start: RunStart,
    journal: Option<Arc<dyn Recorder>>,
    log: Arc<CallLog>,
    pipeline: Arc<Pipeline>,
    began: Instant,
}

impl ActiveRun {
    async fn end(&self, hooks: &[Arc<dyn RunHook>], outcome: &Outcome) {
        let Self { start, journal, log, pipeline, began } = self;
        let fence = journal.as_ref().map_or(0, |journal| journal.fence());
        let end = RunEnd { start, outcome, duration: began.elapsed(), fence, began: *began, log, pipeline };
        for hook in hooks.iter().rev() {
            hook.end(&end).await;
        }
    }
}

impl HookGuard {
    /// Calls `begin` of all hooks.
    pub async fn begin(
        hooks: &Arc<[Arc<dyn RunHook>]>,
        start: RunStart,
        journal: Option<Arc<dyn Recorder>>,
        log: &Arc<CallLog>,
        pipeline: &Arc<Pipeline>,
    ) -> Self {
        for hook in hooks.iter() {
            hook.begin(&start).await;
        }
        let (log, pipeline) = (Arc::clone(log), Arc::clone(pipeline));
        Self {
            hooks: Arc::clone(hooks),
            active: Some(ActiveRun { start, journal, log, pipeline, began: Instant::now() }),
            pauses: false,
        }
    }

    /// From now on the hooks see a pause, not an end, if this is dropped.
    pub fn pause_when_dropped(&mut self) {
        self.pauses = true;
    }

    /// Whether the run goes on elsewhere, or later, after this outcome.
    pub fn goes_on(&self, outcome: &Outcome) -> bool {
        let journal = self.active.as_ref().and_then(|run| run.journal.as_ref());
        journal.is_some_and(|journal| journal.goes_on(outcome))
    }

    /// Calls `paused` of all hooks, the last one first.
    pub fn pause(mut self) {
        self.take_pause();
    }

    fn take_pause(&mut self) {
        if let Some(run) = self.active.take() {
            self.hooks.iter().rev().for_each(|hook| hook.paused(&run.start));
        }
    }

    /// Calls `end` of all hooks, the last one first.
    pub async fn end(mut self, outcome: &Outcome) {
        if let Some(run) = self.active.take() {
            run.end(&self.hooks, outcome).await;
        }
    }
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        let outcome = crate::refused(ErrorCode::ExecutionAborted, "Nobody waits for the result any more");
        if self.pauses || self.goes_on(&outcome) {
            return self.take_pause();
        }
        let Some(run) = self.active.take() else { return };
        let hooks = Arc::clone(&self.hooks);
        // Without a runtime, the process is about to exit.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                run.end(&hooks, &outcome).await;
            });
        }
    }
}
