//! Runs on a durable engine: it makes their calls, keeps their time, and says in which order answers come. When a process ends, the
//! engine lets another one evaluate the run again from its beginning, with the same answers in the same order.
//!
//! So nothing that is measured here may decide what the script does: limits of time are events of the engine.

use crate::calls::{CallLog, Calls};
use crate::context::RunContext;
use crate::drive::overdue;
use crate::executor::StartInputs;
use crate::finished::Finished;
use crate::hook::HookGuard;
use crate::queue::{SLICE, Step, Task};
use crate::request::ExecuteRequest;
use crate::{Refused, Runs, complete_stats, refused};
use agentscript::{Call, CallId, Event, Outcome, Progress, ToolError};
use codecall_base::call::{self, CallPause, RunScope};
use codecall_base::client::Client;
use codecall_base::event::RunId;
use codecall_base::tool::{ErrorCode, ToolDirectory};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Codes of outcomes that say nothing of the script: another attempt may do better.
const PASSING: [ErrorCode; 8] = [
    ErrorCode::QueueFull,
    ErrorCode::QueueTimeout,
    ErrorCode::PoolDisposed,
    ErrorCode::ExecutionAborted,
    ErrorCode::WorkerCrashed,
    ErrorCode::WorkerTimeout,
    ErrorCode::WorkerMemoryExceeded,
    ErrorCode::WorkerStartupFailed,
];

/// The engine that makes the calls of one run, and keeps its time.
pub trait RunEngine: Send {
    /// Makes calls. Their answers are events of [`RunEngine::next`].
    fn make<'a>(&'a mut self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Cancels calls whose answers the script no longer waits for.
    fn cancel<'a>(&'a mut self, calls: &'a [CallId]) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Waits for what comes next. `timer` is when the next timer of the script is due, since the run began.
    fn next(&mut self, timer: Option<Duration>) -> BoxFuture<'_, Result<Next, EngineError>>;
}

/// The next event of a run.
#[derive(Clone, Debug)]
pub enum Next {
    /// The script goes on with these events.
    Events(Vec<Event>),
    /// The run has to end: its time is over, somebody has cancelled it, or a call of it says so.
    Ends(ErrorCode, String),
    /// Nothing can come: no call is open, and no timer is set.
    Nothing,
}

/// Why a run was not evaluated to its end. The engine tries again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineError(pub String);

/// The inputs of a run on an engine, the same in each attempt.
pub struct EngineStart {
    /// The seed of its random numbers.
    pub seed: u64,
    /// The time that the script sees at its beginning, in milliseconds since 1970.
    pub began_ms: i64,
    /// The directory of tools of the script.
    pub directory: Arc<ToolDirectory>,
}

/// A call of a run on an engine.
pub struct EngineCall {
    /// The run.
    pub run: RunId,
    /// The call.
    pub call: Call,
    /// Whether an earlier attempt has begun it, so that it may have reached its tool.
    pub is_repeated: bool,
    /// The only tools that the run may call; `None`: all.
    pub allowed_tools: Option<Vec<String>>,
    /// The only apps whose tools the run may call; `None`: all.
    pub allowed_apps: Option<Vec<String>>,
}

/// The outcome of a call.
#[derive(Clone, Debug)]
pub enum EngineAnswer {
    /// It has an answer.
    Answered(Result<String, ToolError>),
    /// It waits for the decision of a person on this approval, and has to be made again then.
    Waits(String),
    /// The run has to end.
    Ends(ErrorCode, String),
}

impl Runs {
    /// Runs a script on an engine.
    ///
    /// # Errors
    /// It cannot be evaluated to its end here and now.
    pub async fn execute_on(
        &self,
        request: ExecuteRequest,
        start: EngineStart,
        engine: &mut dyn RunEngine,
    ) -> Result<Finished, EngineError> {
        let cancel = CancellationToken::new();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        let (log, began) = (Arc::new(CallLog::new(false)), Instant::now());
        let id = request.id.clone().unwrap_or_else(RunId::random);
        let refused = |refusal: Refused| EngineError(refusal.message);
        // The engine has the queue.
        let permit = self.admission.wait(self.client).await.map_err(refused)?;
        self.memory.check_available().map_err(refused)?;
        let scope = RunScope { id: id.clone(), depth: 0, pause: None, hold: None, rates: None };
        let mut hooks = HookGuard::begin(&self.hooks, request.to_start(&scope), None, &log, &self.pipeline).await;
        hooks.pause_when_dropped();
        let context = RunContext::new(scope, Some(permit), &self.memory, &self.pool, None, cancel);
        let _abandon =
            crate::AbandonOnDrop { context: Arc::clone(&context), max_bytes: request.policy.limits.max_memory_bytes };
        let outcome = tokio::select! {
            outcome = self.drive_on(request, start, engine, &context, &log) => outcome?,
            () = self.admission.closed().cancelled() => return Err(EngineError("the server ends".into())),
        };
        let outcome = complete_stats(outcome, &log, began);
        hooks.end(&outcome).await;
        let pipeline = Arc::clone(&self.pipeline);
        Ok(Finished { outcome, id, is_paused: false, has_waited: true, log, pipeline })
    }

    async fn drive_on(
        &self,
        request: ExecuteRequest,
        start: EngineStart,
        engine: &mut dyn RunEngine,
        context: &Arc<RunContext>,
        log: &Arc<CallLog>,
    ) -> Result<Outcome, EngineError> {
        let mut policy = request.policy;
        // They would be measured anew in each attempt.
        (policy.limits.timeout_ms, policy.limits.max_duration_ms) = (NO_TIME_LIMIT_MS, NO_TIME_LIMIT_MS);
        policy.fetch = false;
        let start = StartInputs {
            script: request.script,
            language: request.language,
            dialect: request.dialect,
            policy,
            context: request.context,
            directory: start.directory,
            record_lookups: false,
            seed: start.seed,
            fixed_unix_ms: Some(start.began_ms as f64),
            is_virtual: false,
            slice: SLICE,
            watchdog: self.pool.watchdog,
            stop: Arc::clone(&context.stop),
        };
        let mut task = Task::Begin(Arc::clone(&self.executor), Box::new(start));
        let mut open: BTreeMap<CallId, Call> = BTreeMap::new();
        // Why the run ends, if its script does not end it.
        let mut ending: Option<(ErrorCode, String)> = None;
        loop {
            context.set_in_slice(true);
            let step = tokio::select! {
                step = self.queue.run(task, Arc::clone(context)) => step,
                () = overdue(context) => return Err(EngineError("the run was cancelled".into())),
            };
            context.set_in_slice(false);
            let (mut run, progress) = match step {
                Step::GivenUp(outcome) => return Err(unfinished(&outcome)),
                // The script does not compile, or its evaluation has failed.
                Step::Ended(outcome) if is_passing(&outcome) => return Err(unfinished(&outcome)),
                Step::Ended(outcome) => return Ok(*outcome),
                Step::Progressed(run, progress) => (run, progress),
            };
            let abandoned: Vec<CallId> =
                run.take_cancelled().into_iter().filter(|id| open.remove(id).is_some()).collect();
            if !abandoned.is_empty() {
                engine.cancel(&abandoned).await?;
            }
            match progress {
                Progress::Yielded => {
                    Box::pin(context.share_permit()).await;
                    task = Task::Resume(run, Vec::new());
                    continue;
                }
                Progress::Done(outcome) => return finished(*outcome, ending, context),
                // It has exceeded a limit of the pool.
                Progress::Calls(_) if context.cancel.is_cancelled() => {
                    task = Task::Resume(run, vec![Event::Cancel]);
                    continue;
                }
                Progress::Calls(calls) => {
                    if !calls.is_empty() {
                        engine.make(&calls).await?;
                        open.extend(calls.into_iter().map(|call| (call.id, call)));
                    }
                }
            }
            let events = match waiting(context, engine.next(run.next_timer())).await? {
                Next::Events(events) => events,
                Next::Ends(code, message) => {
                    ending = Some((code, message));
                    vec![Event::Cancel]
                }
                Next::Nothing => {
                    let message = "The script waits for something that can never happen";
                    return Ok(refused(ErrorCode::ExecutionError, message));
                }
            };
            log.add_answered(&self.pipeline, &events, &mut open);
            task = Task::Resume(run, events);
        }
    }

    /// Makes one call of a run on an engine.
    pub async fn make(&self, made: EngineCall, cancel: CancellationToken) -> EngineAnswer {
        let EngineCall { run, call, is_repeated, allowed_tools, allowed_apps } = made;
        let pause = Arc::new(CallPause::new(call.id.0, is_repeated));
        let rates = self.pipeline.rates(Duration::from_millis(call.timeout_ms));
        let scope = RunScope { id: run, depth: 0, pause: None, hold: None, rates };
        let context = RunContext::new(scope, None, &self.memory, &self.pool, None, cancel.clone());
        let calls = Arc::new(Calls {
            pipeline: Arc::clone(&self.pipeline),
            allowed: allowed_tools.map(Into::into),
            apps: allowed_apps.map(Into::into),
            permits: Arc::new(Semaphore::new(1)),
            context: Arc::clone(&context),
            log: Arc::new(CallLog::new(false)),
            is_dry_run: false,
            fetch: None,
            client: Client::default(),
            requester: call::client(),
            trace: codecall_base::telemetry::current(),
        });
        let end = calls.make(Box::new(call), cancel, Some(Arc::clone(&pause))).await;
        match (context.reason(), pause.approval()) {
            (Some((code, message)), _) => EngineAnswer::Ends(code, message.to_owned()),
            (None, Some(approval)) if end.is_paused => EngineAnswer::Waits(approval.to_owned()),
            (None, _) => EngineAnswer::Answered(end.result),
        }
    }

    /// Returns the directory that a run would begin with now.
    #[must_use]
    pub fn directory(&self) -> Arc<ToolDirectory> {
        Arc::clone(self.catalogue.snapshot().directory())
    }

    /// Returns a seed for a run.
    #[must_use]
    pub fn random_seed() -> u64 {
        RandomState::new().hash_one(0_u8)
    }
}

/// Waits for what comes next in a run. Others may use its permit.
async fn waiting(
    context: &RunContext,
    mut next: BoxFuture<'_, Result<Next, EngineError>>,
) -> Result<Next, EngineError> {
    tokio::select! {
        biased;
        next = &mut next => {
            Box::pin(context.share_permit()).await;
            return next;
        }
        () = std::future::ready(()) => {}
    }
    context.release_permit();
    let next = next.await;
    Box::pin(context.share_permit()).await;
    next
}

/// So long that no run reaches it: a hundred years.
const NO_TIME_LIMIT_MS: u64 = 100 * 365 * 86_400_000;

/// Returns the outcome of a run that has ended.
fn finished(
    mut outcome: Outcome,
    ending: Option<(ErrorCode, String)>,
    context: &RunContext,
) -> Result<Outcome, EngineError> {
    if let (Some((code, message)), Err(failure)) = (ending, &mut outcome.result)
        && failure.code == ErrorCode::ExecutionAborted
    {
        (failure.code, failure.status, failure.message) = (code.into(), code.status(), message);
        return Ok(outcome);
    }
    let outcome = context.final_outcome(outcome);
    if is_passing(&outcome) { Err(unfinished(&outcome)) } else { Ok(outcome) }
}

fn is_passing(outcome: &Outcome) -> bool {
    outcome.result.as_ref().is_err_and(|failure| PASSING.iter().any(|code| failure.code == *code))
}

fn unfinished(outcome: &Outcome) -> EngineError {
    let message = outcome.result.as_ref().err().map(|failure| failure.message.clone());
    EngineError(message.unwrap_or_else(|| "the run was given up".into()))
}
