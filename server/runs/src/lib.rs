//! Running scripts: many runs share a few threads, their tool calls are on tokio.
//!
//! A run goes on in slices; one that is not done goes to the end of the queue. While it waits for
//! tools it takes no thread. Dropping the future of [`Runs::execute`] drops the run.
//!
//! It must not know who records a run, nor what a client sees of one.

#![forbid(unsafe_code)]

mod admission;
mod calls;
mod context;
mod dry_run;
mod executor;
mod hook;
mod journal;
mod queue;
#[cfg(unix)]
pub mod worker;

pub use admission::Admission;
pub use admission::Refused;
use agentscript::{CallId, Dialect, Event, Failure, Language, Outcome, Policy, Progress, ScriptCache, ToolError};
use calls::{CallLog, Calls};
use codecall_base::call::RunScope;
use codecall_base::error::Error;
use codecall_base::event::{RunEvent, RunId, Watcher};
use codecall_base::json;
use codecall_base::tool::ErrorCode;
use codecall_config::{IsolationConfig, Pool};
use codecall_tools::catalogue::Catalogue;
use codecall_tools::pipeline::Pipeline;
pub use context::length;
use context::{Ledger, RunContext};
use executor::executor;
pub use executor::{Evaluation, Executor, Replayed, StartInputs, ThreadExecutor};
use hook::Hooked;
pub use hook::{LogRuns, RunEnd, RunHook, RunStart};
pub use journal::{JournalError, RunJournal};
use queue::{Queue, Step, Task};
pub use queue::{SLICE, STACK};
use serde_json::{Value, json as object};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long a cancelled run may take to end: it may be in the middle of one long step. Then it is left
/// alone, and ends there.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// How many runs a run may be nested in.
const MAX_NESTING: u32 = 8;

/// One script to run.
#[derive(Clone, Debug)]
pub struct ExecuteRequest {
    /// The script.
    pub script: Arc<str>,
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
    /// Where its calls and their answers are appended, so that it can be replayed; absent: nowhere.
    pub journal: Option<Arc<dyn RunJournal>>,
    /// The run that it is nested in: a tool that runs scripts has it from its call. Absent: a client asks for it.
    pub parent: Option<RunScope>,
}

impl ExecuteRequest {
    /// A script under a policy, and nothing else.
    #[must_use]
    pub fn new(script: impl Into<Arc<str>>, policy: Policy) -> Self {
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
            journal: None,
            parent: None,
        }
    }

    /// What hooks are told of its beginning.
    fn start(&self, scope: &RunScope) -> RunStart {
        RunStart {
            id: scope.id.clone(),
            parent: self.parent.as_ref().map(|parent| parent.id.clone()),
            depth: scope.depth,
            script: Arc::clone(&self.script),
            dialect: self.dialect,
            is_dry: self.dry_run,
            at: SystemTime::now(),
        }
    }
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
        let shown = |input: &str| shown(&self.pipeline, input);
        let stats = json::parse(&self.outcome.stats.to_json()).unwrap_or_default();
        object!({"codecall/run": self.id.as_str(), "codecall/stats": stats, "codecall/calls": self.log.to_json(&self.outcome, &shown)})
    }
}

/// The input of a call, JSON text, as clients see it.
fn shown(pipeline: &Pipeline, input: &str) -> Arc<Value> {
    pipeline.shown(&Arc::new(json::parse(input).unwrap_or_default()))
}

/// All runs of a process.
pub struct Runs {
    catalogue: Arc<Catalogue>,
    pipeline: Arc<Pipeline>,
    pool: Pool,
    queue: Arc<Queue>,
    executor: Arc<dyn Executor>,
    scripts: Arc<ScriptCache>,
    ledger: Arc<Ledger>,
    admission: Admission,
    hooks: Arc<[Arc<dyn RunHook>]>,
}

impl Runs {
    /// No run yet; threads are started when there is one.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, pipeline: Arc<Pipeline>, pool: Pool) -> Self {
        let scripts = Arc::new(ScriptCache::default());
        Self {
            catalogue,
            pipeline,
            queue: Arc::new(Queue::new(pool.threads, pool.watchdog)),
            executor: Arc::new(ThreadExecutor::new(Arc::clone(&scripts))),
            scripts,
            ledger: Ledger::new(pool.max_memory_bytes),
            admission: Admission::new(pool.max_runs, &pool),
            hooks: Arc::default(),
            pool,
        }
    }

    /// The same with `hooks` around each run.
    #[must_use]
    pub fn hooked(mut self, hooks: Vec<Arc<dyn RunHook>>) -> Self {
        self.hooks = hooks.into();
        self
    }

    /// The same in processes of their own, where the configuration says so.
    ///
    /// # Errors
    /// No process can be started, or confined as it has to be.
    pub fn isolated(mut self, isolation: &IsolationConfig, policy: &Policy) -> Result<Self, Error> {
        let workers = isolation.workers.unwrap_or(self.pool.threads);
        self.executor = executor(isolation, workers, policy, &self.scripts)?;
        Ok(self)
    }

    /// Where runs are evaluated, and what of the machine they could reach there, as one line.
    #[must_use]
    pub fn isolation(&self) -> String {
        self.executor.describe()
    }

    /// What evaluates runs.
    #[must_use]
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
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
            queue: Arc::clone(&self.queue),
            executor: Arc::clone(&self.executor),
            scripts: Arc::clone(&self.scripts),
            ledger: Arc::clone(&self.ledger),
            admission: Admission::new(max_runs, &self.pool),
            hooks: Arc::clone(&self.hooks),
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
        let outcome = match self.admit(&id, request.parent.as_ref(), &cancel).await {
            Ok(scope) => {
                let hooked = Hooked::begin(&self.hooks, request.start(&scope), &log, &self.pipeline).await;
                let outcome = accounted(self.run(scope, request, watcher, cancel, &log).await, &log, began);
                hooked.end(&outcome).await;
                outcome
            }
            Err(refusal) => accounted(refusal.into(), &log, began),
        };
        Finished { outcome, id, log, pipeline: Arc::clone(&self.pipeline) }
    }

    /// Wait for a permit. A nested run shares that of the run which it is nested in.
    async fn admit(
        &self,
        id: &RunId,
        parent: Option<&RunScope>,
        cancel: &CancellationToken,
    ) -> Result<RunScope, Refused> {
        let scope = match parent {
            Some(parent) if parent.depth >= MAX_NESTING => {
                let message = format!("Tools that are scripts call each other more than {MAX_NESTING} deep");
                return Err(Refused::new(ErrorCode::ExecutionError, message));
            }
            Some(parent) => RunScope { id: id.clone(), depth: parent.depth + 1, permit: parent.permit.clone() },
            None => RunScope { id: id.clone(), depth: 0, permit: Some(Arc::new(self.admission.enter(cancel).await?)) },
        };
        self.ledger.admit()?;
        Ok(scope)
    }

    async fn run(
        &self,
        scope: RunScope,
        request: ExecuteRequest,
        watcher: Watcher,
        cancel: CancellationToken,
        log: &Arc<CallLog>,
    ) -> Outcome {
        // The client of a dry run is not told of what does not happen.
        let watcher = watcher.filter(|_| !request.dry_run);
        let context = RunContext::begin(scope, &self.ledger, self.pool, watcher, cancel);
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

    async fn drive(&self, request: ExecuteRequest, context: &Arc<RunContext>, log: &Arc<CallLog>) -> Outcome {
        let journal = request.journal;
        let calls = Calls {
            pipeline: Arc::clone(&self.pipeline),
            allowed: request.allowed_tools.map(Into::into),
            apps: request.allowed_apps.map(Into::into),
            at_once: Arc::new(Semaphore::new(permits(request.policy.limits.max_concurrency))),
            context: Arc::clone(context),
            log: Arc::clone(log),
            dry: request.dry_run,
        };
        let start = StartInputs {
            script: request.script,
            language: request.language,
            dialect: request.dialect,
            policy: request.policy,
            context: request.context,
            directory: Arc::clone(self.catalogue.snapshot().directory()),
            record_lookups: false,
            seed: request.seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8)),
            fixed_unix_ms: None,
            slice: SLICE,
            watchdog: self.pool.watchdog,
            stop: Arc::clone(&context.stop),
        };
        let start = match &journal {
            Some(journal) => journal.start(start),
            None => start,
        };
        let mut task = Task::Begin(Arc::clone(&self.executor), Box::new(start));
        let mut pending: JoinSet<(CallId, Result<String, ToolError>)> = JoinSet::new();
        loop {
            context.set_in_slice(true);
            let step = tokio::select! {
                step = self.queue.run(task, Arc::clone(context)) => step,
                () = overdue(context) => {
                    Step::GivenUp(Box::new(refused(ErrorCode::ExecutionAborted, "The run was cancelled")))
                }
            };
            let step = match step {
                Step::GivenUp(outcome) => return *outcome,
                Step::Ended(outcome) => Err(*outcome),
                Step::Went(run, progress) => Ok((run, progress)),
            };
            context.set_in_slice(false);
            let (mut run, progress) = match step {
                Ok(went) => went,
                Err(outcome) => return outcome,
            };
            if let Some(journal) = &journal {
                let lookups = run.take_lookups();
                if !lookups.is_empty()
                    && let Err(error) = journal.append_lookups(lookups).await
                {
                    return error.into();
                }
            }
            match progress {
                Progress::Done(outcome) => return *outcome,
                Progress::Yielded => {
                    task = Task::Resume(run, Vec::new());
                    continue;
                }
                Progress::Calls(new) => {
                    if let Some(journal) = &journal
                        && let Err(error) = journal.append_calls(&new).await
                    {
                        return error.into();
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
            if let Some(journal) = &journal
                && let Err(error) = journal.append_answers(&events).await
            {
                return error.into();
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
        self.context.leave(self.bytes);
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

/// An outcome without what nests deeper than JSON readers follow: theirs as well as ours.
#[must_use]
pub fn without_depth(mut outcome: Outcome) -> Outcome {
    match &mut outcome.result {
        Ok(_) => {
            let message = "The result is nested too deeply; return less of it, or a flat form";
            let mut failure = Failure::from_code(ErrorCode::SerializationError, message);
            failure.name = Some("Error".into());
            failure.tool_calls = outcome.stats.tool_calls;
            outcome.result = Err(Box::new(failure));
        }
        Err(failure) => (failure.tool_input, failure.details) = (None, None),
    }
    outcome
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
    Outcome::not_compiled(Box::new(Failure::from_code(code, message)))
}

#[cfg(test)]
mod tests;
