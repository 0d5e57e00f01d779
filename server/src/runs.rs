//! Running scripts: many runs share a few threads, their tool calls are on tokio.
//!
//! A run goes on in slices; one that is not done goes to the end of the queue. While it waits for
//! tools it takes no thread. Dropping the future of [`Runs::execute`] drops the run.

mod admission;
mod calls;
mod context;
mod dry_run;
mod executor;
mod queue;
#[cfg(unix)]
pub mod worker;

use crate::catalogue::Catalogue;
use crate::config::{IsolationConfig, IsolationMode, Pool};
use crate::error::Error;
use crate::event::{RunEvent, RunId, Watcher};
use crate::pipeline::Pipeline;
use crate::tool::ErrorCode;
pub(crate) use admission::Admission;
pub use admission::Refused;
use agentscript::{
    Call, CallId, Clock, Dialect, Event, Failure, Inputs, Language, Outcome, Policy, Progress, ScriptCache,
    SystemClock, ToolError,
};
use calls::{CallLog, Calls};
pub(crate) use context::length;
use context::{Ledger, RunContext};
use executor::{Executor, Start};
pub(crate) use queue::STACK;
use queue::{Queue, Step, Task};
use serde_json::{Value, json as object};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long a cancelled run may take to end: it may be in the middle of one long step. Then it is left
/// alone, and ends there.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// One script to run.
#[derive(Clone, Debug)]
pub struct ExecuteRequest {
    /// The script.
    pub script: String,
    /// Its language; absent: found out.
    pub language: Option<Language>,
    /// JSON text of an object: `codecallContext`.
    pub context: Option<String>,
    /// What it sees of the host.
    pub dialect: Dialect,
    /// The only tools it may call, by any spelling or as patterns; absent: all.
    pub allowed_tools: Option<Vec<String>>,
    /// The only apps whose tools it may call; absent: all. A call of another one ends the run.
    pub allowed_apps: Option<Vec<String>>,
    /// Limits and permissions.
    pub policy: Policy,
    /// Seed of random numbers; absent: a fresh one.
    pub seed: Option<u64>,
    /// Whether no tool is reached: results are examples made from output schemas.
    pub dry_run: bool,
    /// Who records it; absent: nobody.
    pub recorder: Option<Arc<dyn Recorder>>,
}

impl ExecuteRequest {
    /// A script under a policy, and nothing else.
    #[must_use]
    pub fn new(script: impl Into<String>, policy: Policy) -> Self {
        Self {
            script: script.into(),
            language: None,
            context: None,
            dialect: Dialect::default(),
            allowed_tools: None,
            allowed_apps: None,
            policy,
            seed: None,
            dry_run: false,
            recorder: None,
        }
    }
}

/// Who records a run while it goes on, so that it can be replayed.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// What the run is started with, instead of `inputs`: a clock that stands still, random numbers that can be made
    /// again, tools that are noted where the script asks about them.
    fn inputs(self: Arc<Self>, inputs: Inputs) -> Inputs;

    /// The script waits, having made these calls. None of them is dispatched before this returns.
    fn calls(&self, calls: &[Call]);

    /// These answers have come, in this order.
    fn answers(&self, events: &[Event]);
}

/// A run that has ended.
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    /// Which.
    pub id: RunId,
    log: Arc<CallLog>,
    pipeline: Arc<Pipeline>,
}

impl Finished {
    /// About how many bytes a client gets of it, or of what has to be read for that.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let outcome = &self.outcome;
        let result = match &outcome.result {
            Ok(text) => text.len(),
            Err(failure) => failure.message.len() + failure.tool_input.as_ref().map_or(0, String::len),
        };
        let unanswered: usize = outcome.unanswered.iter().map(|call| call.input.len()).sum();
        result + unanswered + outcome.logs.iter().map(String::len).sum::<usize>()
    }

    /// What machines see beside the result (`_meta`): `codecall/stats`, and `codecall/calls` with every
    /// call of a tool (the first ones, where there are many) and those that were left without an answer.
    #[must_use]
    pub fn meta(&self) -> Value {
        let shown = |input: &str| self.pipeline.shown(&Arc::new(json(input).unwrap_or_default()));
        let stats = json(&self.outcome.stats.to_json()).unwrap_or_default();
        object!({"codecall/run": self.id.as_str(), "codecall/stats": stats, "codecall/calls": self.log.to_json(&self.outcome, &shown)})
    }
}

/// All runs of a process.
pub struct Runs {
    catalogue: Arc<Catalogue>,
    pipeline: Arc<Pipeline>,
    clock: Arc<dyn Clock>,
    pool: Pool,
    queue: Arc<Queue>,
    executor: Executor,
    scripts: Arc<ScriptCache>,
    ledger: Arc<Ledger>,
    admission: Admission,
}

impl Runs {
    /// No run yet; threads are started when there is one.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, pipeline: Arc<Pipeline>, pool: Pool) -> Self {
        let scripts = Arc::new(ScriptCache::default());
        Self {
            catalogue,
            pipeline,
            clock: Arc::new(SystemClock),
            queue: Arc::new(Queue::new(pool.threads, pool.watchdog)),
            executor: Executor::Threads(Arc::clone(&scripts)),
            scripts,
            ledger: Ledger::new(pool.max_memory_bytes),
            admission: Admission::new(pool.max_runs, &pool),
            pool,
        }
    }

    /// The same in processes of their own, where the configuration says so.
    ///
    /// # Errors
    /// No process can be started, or confined as it has to be.
    pub fn isolated(mut self, isolation: &IsolationConfig, policy: &Policy) -> Result<Self, Error> {
        self.executor = match isolation.mode {
            IsolationMode::Thread => Executor::Threads(Arc::clone(&self.scripts)),
            IsolationMode::Process => {
                Executor::start(isolation, isolation.workers.unwrap_or(self.pool.threads), policy)?
            }
        };
        Ok(self)
    }

    /// Where runs are evaluated, and what of the machine they could reach there, as one line.
    #[must_use]
    pub fn isolation(&self) -> String {
        self.executor.describe()
    }

    /// Scripts that were compiled: agents repeat themselves, and loops around them even more.
    #[must_use]
    pub fn scripts(&self) -> &Arc<ScriptCache> {
        &self.scripts
    }

    /// Runs with permits of their own on the same threads, within the same memory.
    #[must_use]
    pub fn beside(&self, max_runs: usize) -> Self {
        Self {
            catalogue: Arc::clone(&self.catalogue),
            pipeline: Arc::clone(&self.pipeline),
            clock: Arc::clone(&self.clock),
            queue: Arc::clone(&self.queue),
            executor: self.executor.clone(),
            scripts: Arc::clone(&self.scripts),
            ledger: Arc::clone(&self.ledger),
            admission: Admission::new(max_runs, &self.pool),
            pool: Pool { max_runs, ..self.pool },
        }
    }

    /// End all runs; new ones are refused.
    pub fn close(&self) {
        self.admission.close();
        self.executor.close();
    }

    /// Run a script to its end.
    pub async fn execute(&self, request: ExecuteRequest, watcher: Watcher, cancel: CancellationToken) -> Finished {
        let cancel = cancel.child_token();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        let log = Arc::new(CallLog::new(request.dry_run));
        let began = Instant::now();
        let id = RunId::random();
        let outcome = self.let_in(id.clone(), request, watcher, cancel, &log).await;
        Finished { outcome: accounted(outcome, &log, began), id, log, pipeline: Arc::clone(&self.pipeline) }
    }

    async fn let_in(
        &self,
        id: RunId,
        request: ExecuteRequest,
        watcher: Watcher,
        cancel: CancellationToken,
        log: &Arc<CallLog>,
    ) -> Outcome {
        let permit = match self.admission.enter(&cancel).await {
            Ok(permit) => permit,
            Err(refusal) => return refusal.into(),
        };
        if let Err(refusal) = self.ledger.admit() {
            return refusal.into();
        }
        // The client of a dry run is not told of what does not happen.
        let watcher = watcher.filter(|_| !request.dry_run);
        let context = RunContext::begin(id, &self.ledger, self.pool, watcher, cancel, Some(permit));
        let _left = Left { context: Arc::clone(&context), bytes: request.policy.limits.max_memory_bytes };
        let mut driven = std::pin::pin!(self.drive(request, &context, log).instrument(context.span.clone()));
        let outcome = tokio::select! {
            outcome = &mut driven => outcome,
            () = self.admission.closed().cancelled() => {
                context.end(ErrorCode::PoolDisposed, "The server shut down while the script was running");
                driven.await
            }
        };
        context.settle(outcome)
    }

    fn inputs(&self, context: Option<String>, seed: Option<u64>, recorder: Option<&Arc<dyn Recorder>>) -> Inputs {
        let (tools, clock, slice) = (self.catalogue.snapshot(), Arc::clone(&self.clock), Some(queue::SLICE));
        let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        let inputs = Inputs { context, tools, clock, seed, slice };
        match recorder {
            Some(recorder) => Arc::clone(recorder).inputs(inputs),
            None => inputs,
        }
    }

    async fn drive(&self, request: ExecuteRequest, context: &Arc<RunContext>, log: &Arc<CallLog>) -> Outcome {
        let recorder = request.recorder;
        let calls = Calls {
            pipeline: Arc::clone(&self.pipeline),
            allowed: request.allowed_tools.map(Into::into),
            apps: request.allowed_apps.map(Into::into),
            at_once: Arc::new(Semaphore::new(permits(request.policy.limits.max_concurrency))),
            context: Arc::clone(context),
            log: Arc::clone(log),
            dry: request.dry_run,
        };
        let start = Start {
            script: request.script,
            language: request.language,
            dialect: request.dialect,
            policy: request.policy,
            inputs: self.inputs(request.context, request.seed, recorder.as_ref()),
            is_recorded: recorder.is_some(),
            patience: self.pool.watchdog,
            executor: self.executor.clone(),
        };
        let mut task = Task::Begin(Box::new(start));
        let mut pending: JoinSet<(CallId, Result<String, ToolError>)> = JoinSet::new();
        loop {
            let step = tokio::select! {
                step = self.queue.run(task, Arc::clone(context)) => step,
                () = overdue(context) => {
                    Step::Ended(Box::new(refused(ErrorCode::ExecutionAborted, "The run was cancelled")))
                }
            };
            let (run, progress) = match step {
                Step::Went(run, progress) => (run, progress),
                Step::Ended(outcome) => return *outcome,
            };
            match progress {
                Progress::Done(outcome) => return *outcome,
                Progress::Yielded => {
                    task = Task::Resume(run, Vec::new());
                    continue;
                }
                Progress::Calls(new) => {
                    if let Some(recorder) = &recorder {
                        recorder.calls(&new);
                    }
                    for call in new {
                        pending.spawn(calls.clone().make(call).in_current_span());
                    }
                    if pending.is_empty() {
                        return refused(
                            ErrorCode::ExecutionError,
                            "The script waits for something that can never happen",
                        );
                    }
                }
            }
            let events = self.events(&mut pending, run.time_left(), &context.cancel).await;
            if let Some(recorder) = &recorder {
                recorder.answers(&events);
            }
            task = Task::Resume(run, events);
        }
    }

    /// Wait until something has happened that the run must know.
    async fn events(
        &self,
        pending: &mut JoinSet<(CallId, Result<String, ToolError>)>,
        left: Duration,
        cancel: &CancellationToken,
    ) -> Vec<Event> {
        let left = left.min(Duration::from_secs(86_400));
        let first = tokio::select! {
            biased;
            () = cancel.cancelled() => return vec![Event::Cancel],
            Some(ended) = pending.join_next() => ended,
            // Resumed at its deadline, the run ends itself.
            () = tokio::time::sleep(left) => return Vec::new(),
        };
        let mut events = Vec::new();
        let mut next = Some(first);
        while let Some(ended) = next {
            match ended {
                Ok((id, result)) => events.push(Event::Settled { id, result }),
                Err(error) => tracing::error!(%error, "a tool call has crashed"),
            }
            next = pending.try_join_next();
        }
        // Whatever ended first, a run sees results that come together in the order of its calls.
        events.sort_by_key(|event| if let Event::Settled { id, .. } = event { Some(*id) } else { None });
        events
    }
}

/// A run that nobody drives any more, whether it has ended or was given up.
struct Left {
    context: Arc<RunContext>,
    /// What its script may take.
    bytes: u64,
}

impl Drop for Left {
    fn drop(&mut self) {
        // Where it has ended there is nobody to hear it.
        self.context.stop();
        // This one, and whoever drives it: others are threads that have not let go of it.
        if Arc::strong_count(&self.context) > 2 {
            self.context.give_up(self.bytes);
        }
    }
}

/// Resolves when a cancelled run has had time enough to end.
async fn overdue(context: &RunContext) {
    context.cancel.cancelled().await;
    context.stop();
    tokio::time::sleep(GRACE_PERIOD).await;
}

/// An outcome that the runtime has not made knows nothing of what was before.
fn accounted(mut outcome: Outcome, log: &CallLog, began: Instant) -> Outcome {
    let stats = &mut outcome.stats;
    stats.tool_calls = stats.tool_calls.max(log.made());
    if stats.duration_ms == 0.0 {
        stats.duration_ms = began.elapsed().as_secs_f64() * 1_000.0;
    }
    if let Err(failure) = &mut outcome.result {
        failure.tool_calls = failure.tool_calls.max(stats.tool_calls);
        failure.cut();
    }
    outcome
}

/// JSON that a script has made. Half a surrogate pair, as cutting a text may leave it, becomes U+FFFD:
/// the texts of a script are UTF-16, those of the protocol are not.
///
/// # Errors
/// It nests too deeply to be read by anybody.
pub fn json(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&well_formed(text)))
}

/// An outcome without what nests deeper than JSON readers follow: theirs as well as ours.
#[must_use]
pub fn without_depth(mut outcome: Outcome) -> Outcome {
    match &mut outcome.result {
        Ok(_) => {
            let message = "The result is nested too deeply; return less of it, or a flat form";
            let mut failure = Failure::of(ErrorCode::SerializationError, message);
            failure.name = Some("Error".into());
            failure.tool_calls = outcome.stats.tool_calls;
            outcome.result = Err(Box::new(failure));
        }
        Err(failure) => (failure.tool_input, failure.details) = (None, None),
    }
    outcome
}

fn well_formed(text: &str) -> String {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match unit(escape) {
            Some(0xd800..0xdc00) if matches!(unit(&escape[6..]), Some(0xdc00..0xe000)) => 12,
            Some(0xd800..0xe000) => {
                out.push('\u{fffd}');
                rest = &escape[6..];
                continue;
            }
            Some(_) => 6,
            // What is escaped is ASCII.
            None => 2.min(escape.len()),
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out + rest
}

/// A limit as a number of permits; 0 is one.
fn permits(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}

impl From<Refused> for Outcome {
    fn from(refusal: Refused) -> Self {
        refused(refusal.code, refusal.message)
    }
}

/// A run that was not let in or that went wrong outside of its script.
fn refused(code: ErrorCode, message: impl Into<String>) -> Outcome {
    Outcome::not_compiled(Box::new(Failure::of(code, message)))
}

#[cfg(test)]
mod tests;
