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
mod dry_run;
mod engine;
mod executor;
mod finished;
mod hook;
mod journal;
mod queue;
mod request;
#[cfg(unix)]
pub mod worker;

pub use admission::{Admission, Refused};
use agentscript::{Call, CallId, Event, Failure, Origin, Outcome, Policy, Progress, ScriptCache};
pub use calls::LoggedCall;
use calls::{CallEnd, CallLog, Calls};
use codecall_base::call::{self, CallPause, RunScope};
use codecall_base::client::Client;
use codecall_base::error::Error;
use codecall_base::event::{EventSink, RunEvent, RunId};
use codecall_base::offload;
use codecall_base::telemetry::{self, Span, SpanKind};
use codecall_base::tool::ErrorCode;
use codecall_config::{IsolationConfig, Pool};
use codecall_tools::catalogue::Catalogue;
use codecall_tools::pipeline::Pipeline;
pub use context::length;
use context::{MemoryBudget, RunContext};
pub use engine::{EngineCall, EngineError, EngineStart, Made, Next, RunEngine};
use executor::executor;
pub use executor::{Evaluation, Executor, Replayed, StartInputs, ThreadExecutor};
pub use finished::Finished;
use finished::redact_input;
use hook::HookGuard;
pub use hook::{LogRuns, RunEnd, RunHook, RunStart};
pub use journal::{JournalError, Past, PastRound, RunJournal};
use journal::{Journals, check_replayed};
use queue::{Queue, Step, Task};
pub use queue::{SLICE, STACK};
pub use request::ExecuteRequest;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long to wait for a cancelled run to end, which may be in the middle of a long operation. After it the client gets
/// its answer, and the run ends in the background.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Maximum number of runs that a run is nested in.
const MAX_NESTING: u32 = 8;

/// Executes the runs of a process.
pub struct Runs {
    catalogue: Arc<Catalogue>,
    pipeline: Arc<Pipeline>,
    pool: Pool,
    queue: Arc<Queue>,
    executor: Arc<dyn Executor>,
    scripts: Arc<ScriptCache>,
    memory: Arc<MemoryBudget>,
    admission: Arc<Admission>,
    hooks: Arc<[Arc<dyn RunHook>]>,
}

impl Runs {
    /// Creates an executor of runs. Its threads are started by the first run.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, pipeline: Arc<Pipeline>, pool: Pool) -> Self {
        let scripts = Arc::new(ScriptCache::default());
        Self {
            catalogue,
            pipeline,
            queue: Arc::new(Queue::new(pool.threads, pool.watchdog)),
            executor: Arc::new(ThreadExecutor::new(Arc::clone(&scripts))),
            scripts,
            memory: MemoryBudget::new(pool.max_memory_bytes),
            admission: Arc::new(Admission::new(pool.max_runs, &pool)),
            hooks: Arc::default(),
            pool,
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
            admission: Arc::new(Admission::new(max_runs, &self.pool)),
            hooks: Arc::clone(&self.hooks),
            pool: Pool { max_runs, ..self.pool },
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
            hooks: Arc::clone(&self.hooks),
            pool: self.pool,
        }
    }

    /// Returns how many runs are active, how many could begin at once, and how many wait.
    #[must_use]
    pub fn load(&self) -> (usize, usize, usize) {
        let (available, queued) = self.admission.load();
        (self.pool.max_runs.saturating_sub(available), available, queued)
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
    // The request is in a box from the start: each future that it is moved through would hold it twice.
    pub fn execute(
        &self,
        request: ExecuteRequest,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> impl Future<Output = Finished> + Send + '_ {
        self.execute_request(Box::new(request), sink, cancel)
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
        let outcome = match self.admit(&id, request.parent.as_ref(), &cancel).await {
            Ok(scope) => {
                let start = request.to_start(&scope);
                // A journal decides on the seed.
                let takes_more = request.journal.as_ref().is_none_or(|journal| !journal.is_only());
                if takes_more && request.seed.is_none() && !request.dry_run {
                    let more = self.hooks.iter().find_map(|hook| hook.journal(&start));
                    request.journal = match (more, request.journal) {
                        (Some(more), Some(own)) => Some(Arc::new(Journals(vec![more, own]))),
                        (more, own) => own.or(more),
                    };
                }
                let mut span = Span::begin(SpanKind::Internal, || "run".into());
                let hooks = HookGuard::begin(&self.hooks, start, &log, &self.pipeline).await;
                let running = self.run(scope, request, sink, cancel, &log, &mut waiting);
                let running = telemetry::within(span.context(), running);
                let outcome = complete_stats(running.await, &log, began);
                describe_run(&mut span, &id, &outcome);
                if waiting.is_paused {
                    hooks.pause();
                } else {
                    hooks.end(&outcome).await;
                }
                outcome
            }
            Err(refusal) => complete_stats(refusal.into(), &log, began),
        };
        let Waiting { is_paused, has_waited } = waiting;
        Finished { outcome, id, is_paused, has_waited, log, pipeline: Arc::clone(&self.pipeline) }
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

    /// Waits for a permit. A nested run shares the permit of its parent.
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
            Some(parent) => {
                RunScope { id: id.clone(), depth: parent.depth + 1, permit: parent.permit.clone(), pause: None }
            }
            None => {
                let permit = Some(Arc::new(self.admission.enter(cancel).await?.into()));
                RunScope { id: id.clone(), depth: 0, permit, pause: None }
            }
        };
        self.memory.check_available()?;
        Ok(scope)
    }

    async fn run(
        &self,
        scope: RunScope,
        mut request: Box<ExecuteRequest>,
        sink: EventSink,
        cancel: CancellationToken,
        log: &Arc<CallLog>,
        waiting: &mut Waiting,
    ) -> Outcome {
        let deadline = Deadline::new(&mut request);
        // A dry run makes no calls, so its client gets no events of calls.
        let sink = sink.filter(|_| !request.dry_run);
        let context = RunContext::new(scope, &self.memory, self.pool, sink, cancel);
        let max_bytes = request.policy.limits.max_memory_bytes;
        let _abandon = AbandonOnDrop { context: Arc::clone(&context), max_bytes };
        let mut driven = std::pin::pin!(self.drive(request, &context, log, waiting).instrument(context.span.clone()));
        let outcome = tokio::select! {
            outcome = &mut driven => outcome,
            message = deadline.passed() => {
                context.end(ErrorCode::Timeout, message);
                driven.await
            }
            () = self.admission.closed().cancelled() => {
                context.end(ErrorCode::PoolDisposed, "The server shut down while the script was running");
                driven.await
            }
        };
        context.final_outcome(outcome)
    }

    async fn drive(
        &self,
        mut request: Box<ExecuteRequest>,
        context: &Arc<RunContext>,
        log: &Arc<CallLog>,
        waiting: &mut Waiting,
    ) -> Outcome {
        let fetch = request.fetch.take().and_then(|rules| self.pipeline.fetch_of_run(rules));
        request.policy.fetch = fetch.is_some();
        let journal = request.journal;
        let calls = Calls {
            pipeline: Arc::clone(&self.pipeline),
            allowed: request.allowed_tools.map(Into::into),
            apps: request.allowed_apps.map(Into::into),
            permits: Arc::new(Semaphore::new(permits(request.policy.limits.max_concurrency))),
            context: Arc::clone(context),
            log: Arc::clone(log),
            is_dry_run: request.dry_run,
            fetch,
            client: request.client,
            requester: call::client(),
            trace: telemetry::current(),
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
            is_virtual: request.dry_run,
            slice: SLICE,
            watchdog: self.pool.watchdog,
            stop: Arc::clone(&context.stop),
        };
        let start = match &journal {
            Some(journal) => journal.start(start),
            None => start,
        };
        let is_recorded_in_real_time = journal.is_some() && start.fixed_unix_ms.is_none();
        let max_duration = Duration::from_millis(start.policy.limits.max_duration_ms);
        let mut task = Task::Begin(Arc::clone(&self.executor), Box::new(start));
        let can_pause = journal.as_ref().is_some_and(|journal| journal.can_pause());
        let Past { rounds: mut past, age } = journal.as_ref().and_then(|journal| journal.past()).unwrap_or_default();
        // Calls of the past that have no answer. They are made again when all of it was replayed.
        let mut unanswered: BTreeMap<CallId, Call> = BTreeMap::new();
        let mut pending = Pending::default();
        let mut cancels: HashMap<CallId, CancellationToken> = HashMap::new();
        // In a recorded run, time passes for the script when it is recorded, unless the journal leaves the clock as it is.
        let mut began = journal.as_ref().map(|_| Instant::now());
        let mut has_own_clock = is_recorded_in_real_time;
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
                Step::Progressed(run, progress) => Ok((run, progress)),
            };
            context.set_in_slice(false);
            let (mut run, progress) = match step {
                Ok(progressed) => progressed,
                Err(outcome) => return outcome,
            };
            if std::mem::take(&mut has_own_clock) {
                // The clock of the script started after this one: what it has left says when.
                let until = run.next_timer().map_or(max_duration, |due| due.min(max_duration));
                began = Instant::now().checked_sub(until.saturating_sub(run.time_left()));
            }
            if let Some(journal) = &journal {
                let lookups = run.take_lookups();
                if !lookups.is_empty()
                    && let Err(error) = journal.append_lookups(lookups).await
                {
                    return error.into();
                }
            }
            for call in run.take_cancelled() {
                if let Some(cancel) = cancels.remove(&call) {
                    cancel.cancel();
                }
                pending.paused.remove(&call);
                unanswered.remove(&call);
            }
            match progress {
                Progress::Done(outcome) if past.is_empty() || is_limit(&outcome) => return *outcome,
                Progress::Done(_) => {
                    let message = "The script does not do again what its journal says: it has ended earlier";
                    return refused(ErrorCode::ReplayMismatch, message);
                }
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
                    let is_past = !past.is_empty();
                    if let Some(PastRound { calls: recorded, events }) = past.pop_front() {
                        if let Err(difference) = check_replayed(&recorded, &new) {
                            let message = format!("The script does not do again what its journal says: {difference}");
                            return refused(ErrorCode::ReplayMismatch, message);
                        }
                        unanswered.extend(recorded.into_iter().map(|call| (call.id, call)));
                        if let Some(events) = events {
                            self.answer_past(&events, &mut unanswered, log);
                            if let Some(journal) = &journal
                                && let Err(error) = journal.append_answers(&events).await
                            {
                                return error.into();
                            }
                            task = Task::Resume(run, events);
                            continue;
                        }
                    }
                    let again = std::mem::take(&mut unanswered);
                    let made = new.into_iter().filter(|_| !is_past).map(|call| (call, false));
                    for (call, is_repeated) in again.into_values().map(|call| (call, true)).chain(made) {
                        let cancel = context.cancel.child_token();
                        cancels.insert(call.id, cancel.clone());
                        let pause = can_pause.then(|| Arc::new(CallPause::new(call.id.0, is_repeated)));
                        pending.calls.spawn(calls.clone().make(call, cancel, pause).in_current_span());
                    }
                    if pending.is_empty() && run.next_timer().is_none() {
                        return refused(
                            ErrorCode::ExecutionError,
                            "The script waits for something that can never happen",
                        );
                    }
                }
            }
            let left = match (began, run.next_timer()) {
                (Some(began), Some(due)) if !is_recorded_in_real_time => {
                    run.time_left().min(due.saturating_sub(age + began.elapsed()))
                }
                (Some(_) | None, _) => run.time_left(),
            };
            // The limit of a run that goes on contains its age.
            let left = match began {
                Some(began) if !age.is_zero() => {
                    left.min((max_duration + Duration::from_millis(1)).saturating_sub(age + began.elapsed()))
                }
                Some(_) | None => left,
            };
            let timers = (left, run.next_timer().is_some());
            // In a box, because it would be held twice.
            let arriving = Box::pin(self.events(&mut pending, timers, &context.cancel));
            let mut events = without_permit(context, &calls.client, arriving).await;
            // A run that goes on elsewhere does not see that this server ends, nor what its tools say then.
            if can_pause && self.admission.closed().is_cancelled() {
                return refused(ErrorCode::PoolDisposed, "The server shut down while the script was running");
            }
            waiting.has_waited |= !pending.paused.is_empty();
            if events.is_empty() && pending.is_waiting() && run.next_timer().is_none() {
                if let Some(journal) = &journal {
                    match journal.pause().await {
                        Ok(true) => {
                            waiting.is_paused = true;
                            return refused(ErrorCode::ApprovalRequired, "The run waits for a person");
                        }
                        Ok(false) => {}
                        Err(error) => return error.into(),
                    }
                }
                // The script gets the errors that say what to do.
                events = std::mem::take(&mut pending.paused).into_values().collect();
            }
            for event in &events {
                if let Event::Settled { id, .. } = event {
                    cancels.remove(id);
                }
            }
            if let Some(began) = began {
                let ms = u64::try_from((age + began.elapsed()).as_millis()).unwrap_or(u64::MAX);
                events.insert(0, Event::Time(ms));
            }
            if let Some(journal) = &journal
                && let Err(error) = journal.append_answers(&events).await
            {
                return error.into();
            }
            task = Task::Resume(run, events);
        }
    }

    /// Notes the answers of the past.
    fn answer_past(&self, events: &[Event], unanswered: &mut BTreeMap<CallId, Call>, log: &CallLog) {
        for event in events {
            if let Event::Settled { id, result } = event
                && let Some(call) = unanswered.remove(id)
            {
                let input = offload::run_without_permit(call.input.len(), || redact_input(&self.pipeline, &call.input));
                log.add_past(*id, &call.tool, &input, result.as_ref().err());
            }
        }
    }

    /// Waits for the next events of the run: answers, its cancellation, or the time at which it has to be resumed. None, if
    /// all its calls wait for a person, and it has no timer.
    async fn events(
        &self,
        pending: &mut Pending,
        (left, has_timer): (Duration, bool),
        cancel: &CancellationToken,
    ) -> Vec<Event> {
        let left = left.min(Duration::from_secs(86_400));
        let mut sleep = std::pin::pin!(tokio::time::sleep(left));
        loop {
            let first = tokio::select! {
                biased;
                () = cancel.cancelled() => return vec![Event::Cancel],
                Some(ended) = pending.calls.join_next() => ended,
                () = std::future::ready(()), if !has_timer && pending.is_waiting() => return Vec::new(),
                // Its next timer is due, or it ends itself.
                () = &mut sleep => return Vec::new(),
            };
            let mut events = Vec::new();
            let mut next = Some(first);
            while let Some(ended) = next {
                match ended {
                    Ok(CallEnd { id, result, is_paused: true }) => {
                        pending.paused.insert(id, Event::Settled { id, result });
                    }
                    Ok(CallEnd { id, result, is_paused: false }) => events.push(Event::Settled { id, result }),
                    Err(error) => tracing::error!(%error, "a tool call has crashed"),
                }
                next = pending.calls.try_join_next();
            }
            if events.is_empty() && !pending.paused.is_empty() {
                continue;
            }
            // Answers that arrive together are delivered in the order of the calls, so that runs are reproducible.
            events.sort_by_key(|event| if let Event::Settled { id, .. } = event { Some(*id) } else { None });
            return events;
        }
    }
}

/// Whether a run waits for a person, or has waited.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    is_paused: bool,
    has_waited: bool,
}

/// The calls of a run that have no answer.
#[derive(Default)]
struct Pending {
    calls: JoinSet<CallEnd>,
    /// Those that wait for a person, with the errors that the script gets if the run cannot pause.
    paused: BTreeMap<CallId, Event>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.paused.is_empty()
    }

    /// Whether all calls wait for a person.
    fn is_waiting(&self) -> bool {
        self.calls.is_empty() && !self.paused.is_empty()
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

/// Abandons a run when its future is dropped. This has no effect on a run that has ended.
struct AbandonOnDrop {
    context: Arc<RunContext>,
    /// The memory limit of its script.
    max_bytes: u64,
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.context.abandon(self.max_bytes);
    }
}

/// When a run whose tools can ask its client must have ended. The interpreter does not know how long the client takes, so
/// its own limit is longer.
struct Deadline {
    client: Client,
    limit: Duration,
}

impl Deadline {
    fn new(request: &mut ExecuteRequest) -> Self {
        let limits = &mut request.policy.limits;
        let limit = Duration::from_millis(limits.max_duration_ms);
        let is_asked = !request.dry_run && request.client.can_be_asked();
        let client = if is_asked { request.client.clone() } else { Client::default() };
        if let Some(port) = client.port() {
            let more = u64::try_from(port.waits().max().as_millis()).unwrap_or(u64::MAX);
            limits.max_duration_ms = limits.max_duration_ms.saturating_add(more);
        }
        Self { client, limit }
    }

    /// Resolves after the limit, without the time that the client takes, and says so.
    async fn passed(&self) -> String {
        let Some(port) = self.client.port() else { return std::future::pending().await };
        port.waits().limit(self.limit, std::future::pending::<()>()).await;
        format!("Script execution timed out after {}ms", self.limit.as_millis())
    }
}

/// Whether a run has ended at a limit, or was cancelled.
fn is_limit(outcome: &Outcome) -> bool {
    let code = outcome.result.as_ref().err().and_then(|failure| ErrorCode::parse(&failure.code));
    code.is_some_and(|code| matches!(code.origin(), Origin::Limit | Origin::Host))
}

/// Waits for the events of a run. While its client has to answer something, others may use its permit. A nested run has
/// none of its own.
async fn without_permit(
    context: &RunContext,
    client: &Client,
    mut events: Pin<Box<impl Future<Output = Vec<Event>>>>,
) -> Vec<Event> {
    let permit = context.scope.permit.as_ref().filter(|_| context.scope.depth == 0);
    let (Some(permit), Some(port)) = (permit, client.port()) else { return events.await };
    tokio::select! {
        biased;
        events = &mut events => return events,
        () = port.waits().opened() => permit.release(),
    }
    let events = events.await;
    // A cancelled run ends without one.
    context.cancel.run_until_cancelled(permit.acquire()).await;
    events
}

/// Resolves when a cancelled run has not ended within its grace period.
async fn overdue(context: &RunContext) {
    context.cancel.cancelled().await;
    context.stop();
    tokio::time::sleep(GRACE_PERIOD).await;
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

/// Converts a limit to a number of permits, at least 1.
fn permits(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
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
