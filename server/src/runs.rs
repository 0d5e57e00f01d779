//! Running scripts: many runs share a few threads, their tool calls are on tokio.
//!
//! A run goes on in slices; one that is not done goes to the end of the queue. While it waits for
//! tools it takes no thread. Dropping the future of [`Runs::execute`] drops the run.

mod calls;
mod life;
mod queue;
mod rehearsal;

use crate::catalogue::Catalogue;
use crate::config::Pool;
use crate::pipeline::Pipeline;
use crate::upstream::Report;
use agentscript::{
    CallId, Clock, Dialect, Event, Failure, Inputs, Language, Message, Outcome, Policy, Progress, Status, SystemClock,
    ToolError,
};
use calls::{CallLog, Calls};
use life::{Ledger, Life};
use queue::{Begin, Queue, Step, Task};
use serde_json::{Value, json as object};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a cancelled run may take to end: it may be in the middle of one long step. Then it is left
/// alone, and ends there.
const FAREWELL: Duration = Duration::from_millis(500);

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
        }
    }
}

/// A run that has ended.
pub struct Finished {
    /// How.
    pub outcome: Outcome,
    log: Arc<CallLog>,
    pipeline: Arc<Pipeline>,
}

impl Finished {
    /// What machines see beside the result (`_meta`): `codecall/stats`, and `codecall/calls` with every
    /// call of a tool (the first ones, where there are many) and those that were left without an answer.
    #[must_use]
    pub fn meta(&self) -> Value {
        let shown = |input: &str| self.pipeline.shown(&Arc::new(json(input).unwrap_or_default()));
        let stats = json(&self.outcome.stats.to_json()).unwrap_or_default();
        object!({"codecall/stats": stats, "codecall/calls": self.log.to_json(&self.outcome, &shown)})
    }
}

/// Something that happens in a run.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The script has said something.
    Message(Message),
    /// A tool call begins.
    CallStarted {
        /// Its full name, or what the caller called it where there is none.
        tool: String,
        /// Number of the call in this process.
        call: u64,
        /// The input, with personal data masked and without secrets.
        input: Arc<Value>,
    },
    /// A tool call has ended.
    CallEnded {
        /// Its full name, or what the caller called it where there is none.
        tool: String,
        /// Number of the call in this process.
        call: u64,
        /// The input, with personal data masked and without secrets.
        input: Arc<Value>,
        /// How long it took.
        duration: Duration,
        /// How it failed.
        error: Option<ToolError>,
    },
    /// The upstream of a tool call has said something of it: without personal data, where they are
    /// masked, and without secrets.
    CallReported {
        /// The tool's full name.
        tool: String,
        /// What it has said.
        report: Report,
    },
}

/// Who is told what happens in a run, as it happens. It must return at once.
pub type Watcher = Option<Arc<dyn Fn(Happening) + Send + Sync>>;

/// All runs of a process.
pub struct Runs {
    catalogue: Arc<Catalogue>,
    pipeline: Arc<Pipeline>,
    clock: Arc<dyn Clock>,
    pool: Pool,
    queue: Arc<Queue>,
    ledger: Arc<Ledger>,
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
    closed: CancellationToken,
}

impl Runs {
    /// No run yet; threads are started when there is one.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, pipeline: Arc<Pipeline>, pool: Pool) -> Self {
        Self {
            catalogue,
            pipeline,
            clock: Arc::new(SystemClock),
            queue: Arc::new(Queue::new(pool.threads, pool.watchdog)),
            ledger: Ledger::new(pool.max_memory_bytes),
            places: Arc::new(Semaphore::new(pool.max_runs)),
            waiting: AtomicUsize::new(0),
            closed: CancellationToken::new(),
            pool,
        }
    }

    /// Runs with places of their own on the same threads, within the same memory.
    #[must_use]
    pub fn beside(&self, max_runs: usize) -> Self {
        Self {
            catalogue: Arc::clone(&self.catalogue),
            pipeline: Arc::clone(&self.pipeline),
            clock: Arc::clone(&self.clock),
            queue: Arc::clone(&self.queue),
            ledger: Arc::clone(&self.ledger),
            places: Arc::new(Semaphore::new(max_runs)),
            waiting: AtomicUsize::new(0),
            closed: CancellationToken::new(),
            pool: Pool { max_runs, ..self.pool },
        }
    }

    /// End all runs; new ones are refused.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Run a script to its end.
    pub async fn execute(&self, request: ExecuteRequest, watcher: Watcher, cancel: CancellationToken) -> Finished {
        let cancel = cancel.child_token();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        let log = Arc::new(CallLog::new(request.dry_run));
        let began = Instant::now();
        let outcome = self.let_in(request, watcher, cancel, &log).await;
        Finished { outcome: accounted(outcome, &log, began), log, pipeline: Arc::clone(&self.pipeline) }
    }

    async fn let_in(
        &self,
        request: ExecuteRequest,
        watcher: Watcher,
        cancel: CancellationToken,
        log: &Arc<CallLog>,
    ) -> Outcome {
        let place = tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(refused("POOL_DISPOSED", "The server is shutting down")),
            () = cancel.cancelled() => Err(refused("EXECUTION_ABORTED", "The execution was cancelled before it began")),
            place = self.place() => place,
        };
        let _place = match place {
            Ok(place) => place,
            Err(outcome) => return outcome,
        };
        // The client of a dry run is not told of what does not happen.
        let watcher = watcher.filter(|_| !request.dry_run);
        let life = Life::begin(&self.ledger, self.pool, watcher, cancel);
        let mut driven = std::pin::pin!(self.drive(request, &life, log));
        let outcome = tokio::select! {
            outcome = &mut driven => outcome,
            () = self.closed.cancelled() => {
                life.end("POOL_DISPOSED", "The server shut down while the script was running");
                driven.await
            }
        };
        life.settle(outcome)
    }

    /// One of the places that runs take, now or in time.
    async fn place(&self) -> Result<tokio::sync::OwnedSemaphorePermit, Outcome> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(place);
        }
        let _waiting = Waiting::join(&self.waiting, self.pool.max_queue).ok_or_else(|| {
            refused("QUEUE_FULL", format!("{} scripts are waiting already; try again later", self.pool.max_queue))
        })?;
        let timeout = self.pool.queue_timeout;
        match tokio::time::timeout(timeout, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(refused("POOL_DISPOSED", "The server is shutting down")),
            Err(_) => Err(refused(
                "QUEUE_TIMEOUT",
                format!("The script waited {} ms for its turn; try again later", timeout.as_millis()),
            )),
        }
    }

    async fn drive(&self, request: ExecuteRequest, life: &Arc<Life>, log: &Arc<CallLog>) -> Outcome {
        let calls = Calls {
            pipeline: Arc::clone(&self.pipeline),
            allowed: request.allowed_tools.map(Into::into),
            apps: request.allowed_apps.map(Into::into),
            at_once: Arc::new(Semaphore::new(places(request.policy.limits.max_concurrency))),
            life: Arc::clone(life),
            log: Arc::clone(log),
            dry: request.dry_run,
        };
        let begin = Begin {
            script: request.script,
            language: request.language,
            dialect: request.dialect,
            policy: request.policy,
            inputs: Inputs {
                context: request.context,
                tools: self.catalogue.snapshot(),
                clock: Arc::clone(&self.clock),
                seed: request.seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8)),
                slice: Some(queue::SLICE),
            },
        };
        let mut task = Task::Begin(Box::new(begin));
        let mut pending: JoinSet<(CallId, Result<String, ToolError>)> = JoinSet::new();
        loop {
            let step = tokio::select! {
                step = self.queue.run(task, Arc::clone(life)) => step,
                () = overdue(&life.cancel) => {
                    Step::Ended(Box::new(refused("EXECUTION_ABORTED", "The run was cancelled")))
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
                    for call in new {
                        pending.spawn(calls.clone().make(call));
                    }
                    if pending.is_empty() {
                        return refused("EXECUTION_ERROR", "The script waits for something that can never happen");
                    }
                }
            }
            let events = self.events(&mut pending, run.deadline(), &life.cancel).await;
            task = Task::Resume(run, events);
        }
    }

    /// Wait until something has happened that the run must know.
    async fn events(
        &self,
        pending: &mut JoinSet<(CallId, Result<String, ToolError>)>,
        deadline: Duration,
        cancel: &CancellationToken,
    ) -> Vec<Event> {
        let left = deadline.saturating_sub(self.clock.monotonic()).min(Duration::from_secs(86_400));
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

/// Resolves when a cancelled run has had time enough to end.
async fn overdue(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(FAREWELL).await;
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

/// A limit as a number of places; 0 is one.
fn places(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}

/// A run that was not let in or that went wrong outside of its script.
fn refused(code: &str, message: impl Into<String>) -> Outcome {
    Outcome::not_compiled(Box::new(Failure::new(Status::RuntimeError, code, message)))
}

/// A place in the queue, given back when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let joined =
            count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count < most).then_some(count + 1));
        joined.ok().map(|_| Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
