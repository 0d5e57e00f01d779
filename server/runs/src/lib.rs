//! Runs of scripts: many runs share a few threads, and their tool calls run on tokio.
//!
//! A run is evaluated in slices. After a slice, a run that is not complete goes to the end of the queue. While it waits
//! for tools it occupies no thread. Dropping the future of [`Runs::execute`] drops the run.
//!
//! This crate does not know who records a run, or what a client sees of it.

#![forbid(unsafe_code)]

mod admission;
mod calls;
mod context;
mod deadline;
mod drive;
mod dry_run;
mod engine;
mod executor;
mod finished;
mod hook;
mod recorder;
mod queue;
mod request;
mod fair_queue;
#[cfg(unix)]
pub mod worker;

use admission::RunPermit;
pub use admission::{Admission, ClientKey, Load, Refused};
use agentscript::{Failure, Outcome, Policy, ScriptCache};
use calls::CallLog;
pub use calls::LoggedCall;
use codecall_base::call::RunScope;
use codecall_base::error::Error;
use codecall_base::event::{EventSink, RunEvent, RunId};
use codecall_base::telemetry::{self, Span, SpanKind};
use codecall_base::tool::ErrorCode;
use codecall_config::{IsolationConfig, IsolationMode, Pool};
use codecall_tools::catalogue::Catalogue;
use codecall_tools::pipeline::Pipeline;
pub use context::MemoryBudget;
use context::RunContext;
pub use context::length;
use deadline::{AbandonOnDrop, Deadline};
use drive::{Driver, Waiting};
pub use engine::{EngineAnswer, EngineCall, EngineError, EngineStart, Next, RunEngine};
use executor::executor;
pub use executor::{Evaluation, Executor, Replayed, StartInputs, ThreadExecutor};
pub use finished::Finished;
use hook::HookGuard;
pub use hook::{LogRuns, RunEnd, RunHook, RunStart};
use queue::Queue;
pub use queue::{SLICE, STACK};
use recorder::Recorders;
pub use recorder::{JournalError, Pause, Recorder, Resumption};
pub use request::ExecuteRequest;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Number of runs that may wait for tools, timers and people at once, by default: in worker processes, as many as run.
const MAX_WAITING: usize = 1_000;
/// Maximum number of runs that a run is nested in.
const MAX_NESTING: u32 = 8;

/// Executes the runs of a process.
pub struct Runs {
    catalogue: Arc<Catalogue>,
    pipeline: Arc<Pipeline>,
    pool: Arc<Pool>,
    queue: Arc<Queue>,
    executor: Arc<dyn Executor>,
    scripts: Arc<ScriptCache>,
    memory: Arc<MemoryBudget>,
    admission: Arc<Admission>,
    /// Places for runs that wait.
    max_waiting: usize,
    /// The client whose runs they are.
    client: ClientKey,
    hooks: Arc<[Arc<dyn RunHook>]>,
}

impl Runs {
    /// Creates an executor of runs. Its threads are started by the first run.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, pipeline: Arc<Pipeline>, pool: Pool) -> Self {
        let scripts = Arc::new(ScriptCache::default());
        let max_waiting = pool.max_waiting.unwrap_or(MAX_WAITING);
        let memory = MemoryBudget::new(pool.max_memory_bytes);
        Self {
            catalogue,
            pipeline,
            queue: Arc::new(Queue::new(pool.threads, pool.watchdog)),
            executor: Arc::new(ThreadExecutor::new(Arc::clone(&scripts))),
            scripts,
            admission: Arc::new(Admission::new(pool.max_runs, max_waiting, &pool, &memory)),
            memory,
            max_waiting,
            client: ClientKey::default(),
            hooks: Arc::default(),
            pool: Arc::new(pool),
        }
    }

    /// Adds hooks around each run.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Vec<Arc<dyn RunHook>>) -> Self {
        self.hooks = hooks.into();
        self
    }

    /// Evaluates scripts as the configuration says, on threads or in worker processes.
    ///
    /// # Errors
    /// No worker process can be started, or a required protection is not available.
    pub fn with_isolation(mut self, isolation: &IsolationConfig, policy: &Policy) -> Result<Self, Error> {
        let workers = isolation.workers.unwrap_or(self.pool.threads);
        self.executor = executor(isolation, workers, policy, &self.scripts)?;
        // A run that waits keeps its process.
        if isolation.mode == IsolationMode::Process && self.pool.max_waiting.is_none() {
            self.max_waiting = self.pool.max_runs;
            let pool = &*self.pool;
            self.admission = Arc::new(Admission::new(pool.max_runs, self.max_waiting, pool, &self.memory));
        }
        Ok(self)
    }

    /// Describes in one line where scripts are evaluated, and which protections are enforced.
    #[must_use]
    pub fn isolation(&self) -> String {
        self.executor.describe()
    }

    /// Returns the executor, which evaluates scripts.
    #[must_use]
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
    }

    /// Returns the cache of compiled scripts. Agents often send the same script again.
    #[must_use]
    pub fn scripts(&self) -> &Arc<ScriptCache> {
        &self.scripts
    }

    /// Creates runs with separate permits, but the same threads and memory budget.
    #[must_use]
    pub fn with_separate_permits(&self, max_runs: usize) -> Self {
        Self {
            catalogue: Arc::clone(&self.catalogue),
            pipeline: Arc::clone(&self.pipeline),
            queue: Arc::clone(&self.queue),
            executor: Arc::clone(&self.executor),
            scripts: Arc::clone(&self.scripts),
            memory: Arc::clone(&self.memory),
            admission: Arc::new(Admission::new(max_runs, self.max_waiting, &self.pool, &self.memory)),
            max_waiting: self.max_waiting,
            client: self.client,
            hooks: Arc::clone(&self.hooks),
            pool: Arc::new(Pool { max_runs, ..*self.pool }),
        }
    }

    /// Creates runs with other tools, but the same permits, threads and memory budget.
    #[must_use]
    pub fn with_tools(&self, catalogue: Arc<Catalogue>, pipeline: Arc<Pipeline>) -> Self {
        Self {
            catalogue,
            pipeline,
            queue: Arc::clone(&self.queue),
            executor: Arc::clone(&self.executor),
            scripts: Arc::clone(&self.scripts),
            memory: Arc::clone(&self.memory),
            admission: Arc::clone(&self.admission),
            max_waiting: self.max_waiting,
            client: self.client,
            hooks: Arc::clone(&self.hooks),
            pool: Arc::clone(&self.pool),
        }
    }

    /// Says whose runs they are: the runs of each client have a share of the permits.
    #[must_use]
    pub fn of_client(self, client: ClientKey) -> Self {
        Self { client, ..self }
    }

    /// Returns how many runs are active, wait and could begin, and how many are in the queue.
    #[must_use]
    pub fn load(&self) -> Load {
        self.admission.load()
    }

    /// Returns how many runs can have begun at once.
    #[must_use]
    pub fn max_begun(&self) -> usize {
        self.admission.places()
    }

    /// Returns how many runs are evaluated, or wait for a thread. The others wait for tools, timers or people.
    #[must_use]
    pub fn evaluating(&self) -> usize {
        self.queue.evaluating()
    }

    /// Returns the memory of all runs in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.total()
    }

    /// Resolves when [`Runs::close`] is called.
    pub async fn closed(&self) {
        self.admission.closed().cancelled().await;
    }

    /// Ends all runs, and refuses new ones.
    pub fn close(&self) {
        self.admission.close();
        self.executor.close();
    }

    /// Runs a script to its end.
    pub fn execute(
        &self,
        request: impl Into<Box<ExecuteRequest>>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> impl Future<Output = Finished> + Send {
        self.execute_request(request.into(), sink, cancel)
    }

    async fn execute_request(
        &self,
        mut request: Box<ExecuteRequest>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Finished {
        let cancel = cancel.child_token();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        let log = Arc::new(CallLog::new(request.dry_run));
        let began = Instant::now();
        let id = request.id.take().unwrap_or_else(RunId::random);
        let mut waiting = Waiting::default();
        let outcome = match Box::pin(self.begin(&id, &mut request, &log, &cancel)).await {
            Ok((scope, permit, begun)) => {
                let deadline = Deadline::new(&mut request);
                // A dry run makes no calls, so its client gets no events of calls.
                let sink = sink.filter(|_| !request.dry_run);
                let context = RunContext::new(*scope, Some(permit), &self.memory, &self.pool, sink, cancel);
                let max_bytes = request.policy.limits.max_memory_bytes;
                let _abandon = AbandonOnDrop { context: Arc::clone(&context), max_bytes };
                let trace = begun.span.context();
                let (driver, task) = Driver::new(self, request, &context, &log, &mut waiting, trace.clone());
                let outcome = tokio::select! {
                    outcome = telemetry::within(trace, driver.drive(task).instrument(context.span.clone())) => outcome,
                    never = self.end_in_time(&context, deadline) => match never {},
                };
                let outcome = complete_stats(context.final_outcome(outcome), &log, began);
                Box::pin(begun.end(&id, waiting.is_paused, outcome)).await
            }
            Err(refusal) => complete_stats(refusal.into(), &log, began),
        };
        let Waiting { is_paused, has_waited } = waiting;
        Finished { outcome, id, is_paused, has_waited, log, pipeline: Arc::clone(&self.pipeline) }
    }

    /// Waits for a permit, and asks the hooks.
    async fn begin(
        &self,
        id: &RunId,
        request: &mut ExecuteRequest,
        log: &Arc<CallLog>,
        cancel: &CancellationToken,
    ) -> Result<(Box<RunScope>, RunPermit, Box<RunGuard>), Refused> {
        let (mut scope, permit) = self.admit(id, request.parent.as_ref(), cancel).await?;
        let start = request.to_start(&scope);
        // A journal decides on the seed.
        let takes_more = request.journal.as_ref().is_none_or(|journal| !journal.is_only());
        if takes_more && request.seed.is_none() && !request.dry_run {
            let more = self.hooks.iter().find_map(|hook| hook.journal(&start));
            request.journal = match (more, request.journal.take()) {
                (Some(more), Some(own)) => Some(Arc::new(Recorders(vec![more, own]))),
                (more, own) => own.or(more),
            };
        }
        if let Some(hold) = request.journal.as_ref().and_then(|journal| Arc::clone(journal).hold()) {
            scope.hold = Some(hold);
        }
        let span = Span::begin(SpanKind::Internal, || "run".into());
        let hooks = HookGuard::begin(&self.hooks, start, request.journal.clone(), log, &self.pipeline).await;
        scope.rates = self.pipeline.rates(Duration::from_millis(request.policy.limits.max_duration_ms));
        Ok((Box::new(scope), permit, Box::new(RunGuard { span, hooks })))
    }

    /// Returns a run that does not begin.
    #[must_use]
    pub fn refuse(&self, refusal: Refused) -> Finished {
        let log = Arc::new(CallLog::new(false));
        let outcome = complete_stats(refusal.into(), &log, Instant::now());
        Finished {
            outcome,
            id: RunId::random(),
            is_paused: false,
            has_waited: false,
            log,
            pipeline: Arc::clone(&self.pipeline),
        }
    }

    /// Waits for a permit. A nested run has one of its own, as its parent has none while it waits, but no place.
    async fn admit(
        &self,
        id: &RunId,
        parent: Option<&RunScope>,
        cancel: &CancellationToken,
    ) -> Result<(RunScope, RunPermit), Refused> {
        let admitted = match parent {
            Some(parent) if parent.depth >= MAX_NESTING => {
                let message = format!("Tools that are scripts call each other more than {MAX_NESTING} deep");
                return Err(Refused::new(ErrorCode::ExecutionError, message));
            }
            Some(parent) => {
                let permit = self.admission.nest(self.client, cancel).await?;
                let (depth, hold) = (parent.depth + 1, parent.hold.clone());
                (RunScope { id: id.clone(), depth, pause: None, hold, rates: None }, permit)
            }
            None => {
                let permit = self.admission.enter(self.client, cancel).await?;
                (RunScope { id: id.clone(), depth: 0, pause: None, hold: None, rates: None }, permit)
            }
        };
        self.memory.check_available()?;
        Ok(admitted)
    }

    /// Ends a run when its time is over, or the server shuts down.
    async fn end_in_time(&self, context: &RunContext, deadline: Deadline) -> Infallible {
        tokio::select! {
            message = deadline.passed() => context.end(ErrorCode::Timeout, message),
            () = self.admission.closed().cancelled() => {
                context.end(ErrorCode::PoolDisposed, "The server shut down while the script was running");
            }
        }
        std::future::pending().await
    }
}

/// A run that was admitted.
struct RunGuard {
    span: Span,
    hooks: HookGuard,
}

impl RunGuard {
    /// Tells the hooks that the run has ended or paused, and describes it in its span.
    async fn end(mut self: Box<Self>, id: &RunId, is_paused: bool, outcome: Outcome) -> Outcome {
        describe_run(&mut self.span, id, &outcome);
        if is_paused || self.hooks.goes_on(&outcome) {
            self.hooks.pause();
        } else {
            self.hooks.end(&outcome).await;
        }
        outcome
    }
}

/// Adds the outcome of a run to its span.
fn describe_run(span: &mut Span, id: &RunId, outcome: &Outcome) {
    span.set("codecall.run.id", id.as_str());
    span.set("codecall.run.status", outcome.status().as_str());
    span.set("codecall.run.tool_calls", outcome.stats.tool_calls);
    span.set("codecall.run.steps", outcome.stats.steps);
    if let Err(failure) = &outcome.result {
        span.fail(failure.code.as_str(), &failure.message);
    }
}

/// Adds the number of calls and the duration to an outcome that was not created by the runtime.
fn complete_stats(mut outcome: Outcome, log: &CallLog, began: Instant) -> Outcome {
    let stats = &mut outcome.stats;
    stats.tool_calls = stats.tool_calls.max(log.total());
    if stats.duration_ms == 0.0 {
        stats.duration_ms = began.elapsed().as_secs_f64() * 1_000.0;
    }
    if let Err(failure) = &mut outcome.result {
        failure.tool_calls = log.reached();
        failure.cut();
    }
    outcome
}

/// Removes what JSON parsers refuse because of its depth: a result becomes an error, an error loses its data.
#[must_use]
pub fn without_depth(mut outcome: Outcome) -> Outcome {
    match &mut outcome.result {
        Ok(_) => {
            let message = "The result is nested too deeply; return less of it, or a flat form";
            let mut failure = Failure::from_code(ErrorCode::SerializationError, message);
            failure.name = Some("Error".into());
            failure.tool_calls = outcome.stats.tool_calls;
            outcome.result = Err(Box::new(failure));
            outcome.warnings.clear();
        }
        Err(failure) => (failure.tool_input, failure.details) = (None, None),
    }
    outcome
}

impl From<Refused> for Outcome {
    fn from(refusal: Refused) -> Self {
        refused(refusal.code, refusal.message)
    }
}

/// Returns the outcome of a run that was not admitted, or that failed outside of its script.
fn refused(code: ErrorCode, message: impl Into<String>) -> Outcome {
    Outcome::not_compiled(Box::new(Failure::from_code(code, message)))
}

#[cfg(test)]
mod tests;
