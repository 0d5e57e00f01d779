//! Drives a run from slice to slice: the replay of its journal, its calls, its timers, and the answers to them.

use super::calls::{CallEnd, CallLog, Calls};
use super::context::RunContext;
use super::executor::{Evaluation, StartInputs};
use super::queue::{SLICE, Step, Task};
use super::recorder::{JournalError, Pause, Recorder, Resumption};
use super::request::ExecuteRequest;
use super::{Runs, refused};
use agentscript::stateless::{Divergence, Replay};
use agentscript::{Call, CallId, Event, Origin, Outcome, Progress};
use codecall_base::call::{self, CallPause};
use codecall_base::telemetry::TraceContext;
use codecall_base::tool::ErrorCode;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// How long to wait for a cancelled run to end, which may be in the middle of a long operation. After it the client gets
/// its answer, and the run ends in the background.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// A run that waits for a time leaves the memory if it is at least this long: what it takes to come back must not be what it
/// costs most.
const MIN_SLEEP: Duration = Duration::from_secs(60);

/// Whether a run waits for a person, or has waited.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) is_paused: bool,
    pub(super) has_waited: bool,
}

/// The calls of a run that have no answer.
#[derive(Default)]
struct Pending {
    calls: JoinSet<CallEnd>,
    /// Calls that had an answer at once, as those of unknown tools do, in their order.
    answered: Vec<CallEnd>,
    /// The calls that wait for a person, with the errors that the script gets if the run cannot pause.
    paused: BTreeMap<CallId, Event>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.answered.is_empty() && self.paused.is_empty()
    }

    /// Begins a call. One that does not wait is answered here: tasks of their own would end in any order.
    async fn begin(&mut self, calling: impl Future<Output = CallEnd> + Send + 'static) {
        let mut calling = Box::pin(calling);
        match std::future::poll_fn(|context| Poll::Ready(calling.as_mut().poll(context))).await {
            Poll::Ready(end) => self.answered.push(end),
            Poll::Pending => {
                self.calls.spawn(calling);
            }
        }
    }

    /// Waits for the next events of the run: answers, its cancellation, or the time at which it has to be resumed. None, if
    /// it can leave the memory, and no tool works for it. Others use its permit meanwhile.
    ///
    /// It waits no longer when the run is `lost`: resuming it says why.
    async fn events(
        &mut self,
        left: Duration,
        can_leave: bool,
        context: &RunContext,
        lost: &mut BoxFuture<'static, ()>,
    ) -> Vec<Event> {
        let left = left.min(Duration::from_secs(86_400));
        let mut sleep = std::pin::pin!(tokio::time::sleep(left));
        let events = loop {
            let mut ended: Vec<CallEnd> = std::mem::take(&mut self.answered);
            while let Some(next) = self.calls.try_join_next() {
                ended.extend(end_of(next));
            }
            if ended.is_empty() {
                let leaves = can_leave && self.calls.is_empty();
                if !leaves {
                    context.release_permit();
                }
                let first = tokio::select! {
                    biased;
                    () = context.cancel.cancelled() => break vec![Event::Cancel],
                    Some(ended) = self.calls.join_next() => ended,
                    () = std::future::ready(()), if leaves => break Vec::new(),
                    // Its next timer is due, or it ends itself.
                    () = &mut sleep => break Vec::new(),
                    () = &mut *lost => break Vec::new(),
                };
                ended.extend(end_of(first));
            }
            while let Some(next) = self.calls.try_join_next() {
                ended.extend(end_of(next));
            }
            let mut events = Vec::new();
            for CallEnd { id, result, is_paused } in ended {
                let event = Event::Settled { id, result };
                if is_paused {
                    self.paused.insert(id, event);
                } else {
                    events.push(event);
                }
            }
            if events.is_empty() && !self.paused.is_empty() {
                continue;
            }
            // Answers that arrive together are delivered in the order of the calls, so that runs are reproducible.
            events.sort_by_key(|event| if let Event::Settled { id, .. } = event { Some(*id) } else { None });
            break events;
        };
        Box::pin(context.share_permit()).await;
        events
    }
}

/// The end of the task of a call; `None` if the task has panicked.
fn end_of(ended: Result<CallEnd, JoinError>) -> Option<CallEnd> {
    ended.inspect_err(|error| tracing::error!(%error, "a tool call has crashed")).ok()
}

/// The driver of a run.
pub(super) struct Driver<'a> {
    runs: &'a Runs,
    context: &'a Arc<RunContext>,
    log: &'a Arc<CallLog>,
    waiting: &'a mut Waiting,
    calls: Arc<Calls>,
    recorder: Option<Arc<dyn Recorder>>,
    can_pause: bool,
    can_sleep: bool,
    /// The journal of a run that goes on, and the numbers of the calls.
    replay: Replay,
    /// How long the run took before it was gone on with.
    age: Duration,
    /// Calls of the journal that have no answer. They are made again when all of it was replayed.
    unanswered: BTreeMap<CallId, Call>,
    pending: Pending,
    cancels: HashMap<CallId, CancellationToken>,
    max_duration: Duration,
    /// In a recorded run, time passes for the script when it is recorded, unless the journal leaves the clock as it is.
    began: Option<Instant>,
    is_recorded_in_real_time: bool,
    /// Whether the clock of the script is to be read after its first slice.
    has_own_clock: bool,
}

impl<'a> Driver<'a> {
    /// Returns what drives the run of a request, and its first task. `trace` is the span of the run.
    pub(super) fn new(
        runs: &'a Runs,
        mut request: Box<ExecuteRequest>,
        context: &'a Arc<RunContext>,
        log: &'a Arc<CallLog>,
        waiting: &'a mut Waiting,
        trace: Option<Arc<TraceContext>>,
    ) -> (Box<Self>, Task) {
        let fetch = request.fetch.take().and_then(|rules| runs.pipeline.fetch_of_run(rules));
        request.policy.fetch = fetch.is_some();
        let recorder = request.journal;
        let calls = Arc::new(Calls {
            pipeline: Arc::clone(&runs.pipeline),
            allowed: request.allowed_tools.map(Into::into),
            apps: request.allowed_apps.map(Into::into),
            permits: Arc::new(Semaphore::new(permits(request.policy.limits.max_concurrency))),
            context: Arc::clone(context),
            log: Arc::clone(log),
            is_dry_run: request.dry_run,
            fetch,
            client: request.client,
            requester: call::client(),
            trace,
        });
        let start = StartInputs {
            script: request.script,
            language: request.language,
            dialect: request.dialect,
            policy: request.policy,
            context: request.context,
            directory: Arc::clone(runs.catalogue.snapshot().directory()),
            record_lookups: false,
            seed: request.seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8)),
            fixed_unix_ms: None,
            is_virtual: request.dry_run,
            slice: SLICE,
            watchdog: runs.pool.watchdog,
            stop: Arc::clone(&context.stop),
        };
        let start = match &recorder {
            Some(recorder) => recorder.start(start),
            None => start,
        };
        let is_recorded_in_real_time = recorder.is_some() && start.fixed_unix_ms.is_none();
        let resumption = recorder.as_ref().and_then(|recorder| recorder.resumption());
        let Resumption { rounds, age } = resumption.unwrap_or_default();
        let driver = Self {
            runs,
            context,
            log,
            waiting,
            calls,
            can_pause: recorder.as_ref().is_some_and(|recorder| recorder.can_pause()),
            can_sleep: recorder.as_ref().is_some_and(|recorder| recorder.can_sleep()),
            replay: Replay::new(rounds),
            age,
            unanswered: BTreeMap::new(),
            pending: Pending::default(),
            cancels: HashMap::new(),
            max_duration: Duration::from_millis(start.policy.limits.max_duration_ms),
            began: recorder.as_ref().map(|_| Instant::now()),
            is_recorded_in_real_time,
            has_own_clock: is_recorded_in_real_time,
            recorder,
        };
        (Box::new(driver), Task::Begin(Arc::clone(&runs.executor), Box::new(start)))
    }

    /// Drives the run to its end.
    pub(super) async fn drive(mut self: Box<Self>, mut task: Task) -> Outcome {
        loop {
            let (mut run, progress) = match Box::pin(self.slice(task)).await {
                Ok(progressed) => progressed,
                Err(outcome) => return *outcome,
            };
            self.set_clock(&*run);
            if let Err(error) = self.append_lookups(&mut *run).await {
                return error.into();
            }
            self.withdraw(run.take_cancelled());
            let new = match progress {
                Progress::Done(outcome) if self.replay.is_over() || is_limit(&outcome) => return *outcome,
                Progress::Done(_) => return diverged(&self.replay.ended_early()),
                // A run of another client waits for the permit.
                Progress::Yielded => {
                    Box::pin(self.context.share_permit()).await;
                    task = Task::Resume(run, Vec::new());
                    continue;
                }
                Progress::Calls(new) => new,
            };
            match Box::pin(self.called(new)).await {
                Ok(Some(events)) => {
                    task = Task::Resume(run, events);
                    continue;
                }
                Ok(None) => {}
                Err(outcome) => return *outcome,
            }
            let (left, has_timer) = (self.time_left(&*run), run.next_timer().is_some());
            if self.pending.is_empty() && !has_timer {
                return refused(ErrorCode::ExecutionError, "The script waits for something that can never happen");
            }
            match Box::pin(self.next_events(left, has_timer, run.lost())).await {
                Ok(events) => task = Task::Resume(run, events),
                Err(outcome) => return *outcome,
            }
        }
    }

    /// Notes in the journal what the run has looked up.
    fn append_lookups(&self, run: &mut dyn Evaluation) -> BoxFuture<'_, Result<(), JournalError>> {
        let lookups = run.take_lookups();
        match self.recorder.as_ref().filter(|_| !lookups.is_empty()) {
            Some(recorder) => recorder.append_lookups(lookups),
            None => Box::pin(std::future::ready(Ok(()))),
        }
    }

    /// Evaluates the run until it waits, has ended, or others have their turn.
    async fn slice(&self, task: Task) -> Result<(Box<dyn Evaluation>, Progress), Box<Outcome>> {
        self.context.set_in_slice(true);
        let step = tokio::select! {
            step = self.runs.queue.run(task, Arc::clone(self.context)) => step,
            () = overdue(self.context) => {
                Step::GivenUp(Box::new(refused(ErrorCode::ExecutionAborted, "The run was cancelled")))
            }
        };
        match step {
            Step::GivenUp(outcome) => Err(outcome),
            Step::Ended(outcome) => {
                self.context.set_in_slice(false);
                Err(outcome)
            }
            Step::Progressed(run, progress) => {
                self.context.set_in_slice(false);
                Ok((run, progress))
            }
        }
    }

    /// Sets when the run began by the clock of its script, which started after this one: what it has left says when.
    fn set_clock(&mut self, run: &dyn Evaluation) {
        if std::mem::take(&mut self.has_own_clock) {
            let until = run.next_timer().map_or(self.max_duration, |due| due.min(self.max_duration));
            self.began = Instant::now().checked_sub(until.saturating_sub(run.time_left()));
        }
    }

    /// Cancels calls that the script has cancelled.
    fn withdraw(&mut self, cancelled: Vec<CallId>) {
        for call in cancelled {
            if let Some(cancel) = self.cancels.remove(&call) {
                cancel.cancel();
            }
            self.pending.paused.remove(&call);
            self.unanswered.remove(&call);
        }
    }

    /// Compares new calls with the journal, or makes them. Returns the events of the journal that follow, if there are some.
    async fn called(&mut self, new: Vec<Call>) -> Result<Option<Vec<Event>>, Box<Outcome>> {
        let mut again = BTreeMap::new();
        let mut made = new;
        if let Some(recorder) = &self.recorder {
            recorder.append_calls(&made).await.map_err(|error| Box::new(error.into()))?;
            let events = self.replay.enter(&made).map_err(|divergence| Box::new(diverged(&divergence)))?;
            if let Some(events) = events {
                self.unanswered.extend(made.drain(..).map(|call| (call.id, call)));
                if !events.is_empty() {
                    self.log.add_answered(&self.runs.pipeline, &events, &mut self.unanswered);
                    return self.append_answers(events).await.map(Some);
                }
            }
            again = std::mem::take(&mut self.unanswered);
        }
        let made = made.into_iter().map(|call| (call, false));
        for (call, is_repeated) in again.into_values().map(|call| (call, true)).chain(made) {
            let cancel = self.context.cancel.child_token();
            self.cancels.insert(call.id, cancel.clone());
            let pause = self.can_pause.then(|| Arc::new(CallPause::new(call.id.0, is_repeated)));
            let calling = Arc::clone(&self.calls).make(Box::new(call), cancel, pause);
            self.pending.begin(calling.in_current_span()).await;
        }
        Ok(None)
    }

    /// Appends the answers among the events. Returns the events.
    async fn append_answers(&self, events: Vec<Event>) -> Result<Vec<Event>, Box<Outcome>> {
        let Some(recorder) = &self.recorder else { return Ok(events) };
        let is_cancelled = events.iter().any(|event| matches!(event, Event::Cancel));
        let round = self.replay.round(events);
        recorder.append_answers(&round).await.map_err(|error| Box::new(error.into()))?;
        let mut events = self.replay.events(round);
        events.extend(is_cancelled.then_some(Event::Cancel));
        Ok(events)
    }

    /// Returns how long the run can wait: until its next timer is due, or it ends at its limit.
    fn time_left(&self, run: &dyn Evaluation) -> Duration {
        let Some(began) = self.began else { return run.time_left() };
        let age = self.age + began.elapsed();
        let left = match run.next_timer() {
            Some(due) if !self.is_recorded_in_real_time => run.time_left().min(due.saturating_sub(age)),
            Some(_) | None => run.time_left(),
        };
        // The limit of a run that goes on contains its age.
        match self.age.is_zero() {
            true => left,
            false => left.min((self.max_duration + Duration::from_millis(1)).saturating_sub(age)),
        }
    }

    /// Waits for the next events of the run, and notes them in the journal.
    async fn next_events(
        &mut self,
        left: Duration,
        has_timer: bool,
        mut lost: BoxFuture<'static, ()>,
    ) -> Result<Vec<Event>, Box<Outcome>> {
        let waits_until = Instant::now() + left;
        let mut can_leave = !has_timer || (left >= MIN_SLEEP && self.can_sleep);
        let mut events = loop {
            let left = waits_until.saturating_duration_since(Instant::now());
            let events = self.pending.events(left, can_leave, self.context, &mut lost).await;
            // A run that goes on elsewhere does not see that this server ends, nor what its tools say then.
            if self.can_pause && self.runs.admission.closed().is_cancelled() {
                let message = "The server shut down while the script was running";
                return Err(Box::new(refused(ErrorCode::PoolDisposed, message)));
            }
            self.waiting.has_waited |= !self.pending.paused.is_empty();
            if !events.is_empty() || !can_leave || !self.pending.calls.is_empty() {
                break events;
            }
            let due = has_timer.then(|| waits_until.saturating_duration_since(Instant::now()));
            let pause = Pause { due, is_for_person: !self.pending.paused.is_empty() };
            if let Some(recorder) = &self.recorder
                && recorder.pause(pause).await.map_err(|error| Box::new(error.into()))?
            {
                self.waiting.is_paused = true;
                return Err(Box::new(refused(ErrorCode::ApprovalRequired, "The run waits")));
            }
            if !has_timer {
                // The script gets the errors that say what to do.
                break std::mem::take(&mut self.pending.paused).into_values().collect();
            }
            can_leave = false;
        };
        for event in &events {
            if let Event::Settled { id, .. } = event {
                self.cancels.remove(id);
            }
        }
        if let Some(began) = self.began {
            let ms = u64::try_from((self.age + began.elapsed()).as_millis()).unwrap_or(u64::MAX);
            events.insert(0, Event::Time(ms));
        }
        self.append_answers(events).await
    }
}

/// The outcome of a run that does not do again what its journal says.
fn diverged(divergence: &Divergence) -> Outcome {
    let message = format!("The script does not do again what its journal says: {}", divergence.message);
    refused(ErrorCode::ReplayMismatch, message)
}

/// Whether a run has ended at a limit, or was cancelled.
fn is_limit(outcome: &Outcome) -> bool {
    let code = outcome.result.as_ref().err().and_then(|failure| ErrorCode::parse(&failure.code));
    code.is_some_and(|code| matches!(code.origin(), Origin::Limit | Origin::Host))
}

/// Resolves when a cancelled run has not ended within its grace period.
pub(super) async fn overdue(context: &RunContext) {
    context.cancel.cancelled().await;
    context.stop();
    tokio::time::sleep(GRACE_PERIOD).await;
}

/// Converts a limit to a number of permits, at least 1.
fn permits(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}
