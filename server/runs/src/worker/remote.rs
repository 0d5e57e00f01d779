//! One run, as it is driven in a worker: the same as a run of the interpreter, seen from the queue.

use super::message::{Answer, Ask, Begin, Far, Order, Told};
use super::pool::{NoWorker, Workers};
use super::process::{Ending, Lost, Watch, Worker};
use crate::executor::Evaluation;
use crate::{Refused, refused};
use agentscript::{CallId, Event, Message, OpenCall, Outcome, Policy, Progress, Tools};
use codecall_base::tool::ErrorCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a worker may go on with a step of a run that is cancelled, before it is ended: less than the
/// server itself waits.
const GRACE_PERIOD: Duration = Duration::from_millis(350);
/// What a worker may say at once, besides data of the run.
const MOST_BESIDES: u64 = 32 * 1024 * 1024;

/// Workers that a run is given to before it has begun in one, where somebody kills them: there may be several
/// that wait, and all may be killed at the same moment.
const MOST_ATTEMPTS: u32 = 8;

/// A run in a worker. Dropped before it is done, it ends with its worker.
pub struct Remote {
    workers: Workers,
    /// Absent: it has none yet, or is done.
    worker: Option<Worker>,
    /// What it begins with, until it has begun.
    begin: Option<Box<Begin>>,
    policy: Policy,
    tools: Arc<dyn Tools>,
    patience: Duration,
    said: Vec<Message>,
    memory_bytes: u64,
    unanswered_calls: usize,
    /// What was left of its time at that moment.
    time_left: (Duration, Instant),
}

/// The end of a run that has no worker any more.
struct End {
    outcome: Box<Outcome>,
    /// Whether somebody has killed the worker from outside.
    was_killed: bool,
}

impl Remote {
    pub fn new(workers: Workers, begin: Begin, policy: Policy, tools: Arc<dyn Tools>, patience: Duration) -> Self {
        let time_left = (Duration::from_millis(policy.limits.max_duration_ms), Instant::now());
        Self {
            workers,
            worker: None,
            begin: Some(Box::new(begin)),
            policy,
            tools,
            patience,
            said: Vec::new(),
            memory_bytes: 0,
            unanswered_calls: 0,
            time_left,
        }
    }

    fn attempt(&mut self, order: &Order, watch: &mut Watch<'_>) -> Result<Progress, End> {
        let mut worker = self.placed()?;
        match self.go_on(&mut worker, order, watch) {
            Ok(progress) => {
                self.after(worker, &progress);
                Ok(progress)
            }
            Err(lost) => Err(self.lost(worker, lost)),
        }
    }

    /// The worker, or a free one.
    fn placed(&mut self) -> Result<Worker, End> {
        match self.worker.take() {
            Some(worker) => Ok(worker),
            None => self
                .workers
                .take(&self.policy.limits)
                .map_err(|NoWorker { refused, was_killed }| End { outcome: Box::new(refused.into()), was_killed }),
        }
    }

    fn after(&mut self, mut worker: Worker, progress: &Progress) {
        match progress {
            Progress::Done(outcome) => {
                worker.runs += 1;
                worker.script_ms += outcome.stats.script_ms;
                self.workers.give_back(worker);
            }
            Progress::Calls(_) | Progress::Yielded => self.worker = Some(worker),
        }
    }

    fn go_on(&mut self, worker: &mut Worker, order: &Order, watch: &mut Watch<'_>) -> Result<Progress, Lost> {
        worker.send(order, watch)?;
        let longest = self.policy.limits.max_memory_bytes.saturating_mul(2).saturating_add(MOST_BESIDES);
        let longest = usize::try_from(longest).unwrap_or(usize::MAX);
        loop {
            match worker.receive(longest, watch)? {
                Answer::Ask(question) => worker.send(&Order::Told(self.answer(question)), watch)?,
                Answer::Went(went) => {
                    self.said.extend(went.said.into_iter().map(Message::from));
                    self.memory_bytes = went.memory_bytes;
                    self.unanswered_calls = usize::try_from(went.unanswered_calls).unwrap_or(usize::MAX);
                    self.time_left = (went.time_left, Instant::now());
                    return went.progress.try_into().map_err(Lost::Nonsense);
                }
                Answer::Ended(ended) => return Far::Done(ended).try_into().map_err(Lost::Nonsense),
                Answer::Crashed(panic) => return Err(Lost::Nonsense(panic)),
                Answer::Ready { .. } => return Err(Lost::Nonsense("it begins again".into())),
                Answer::OpenCalls(_) => return Err(Lost::Nonsense("it was not asked for its open calls".into())),
            }
        }
    }

    fn answer(&self, question: Ask) -> Told {
        let tools = &self.tools;
        match question {
            Ask::Describe(name) => Told::Text(tools.describe(&name)),
            Ask::IsApp(name) => Told::Is(tools.is_app(&name)),
            Ask::Member(app, tool) => Told::Text(tools.member(&app, &tool)),
            Ask::Function(name) => Told::Text(tools.function(&name)),
            Ask::Positional(tool) => Told::Text(tools.positional(&tool)),
            Ask::Similar(name) => Told::Names(tools.similar(&name)),
            Ask::IsReserved(name) => Told::Is(tools.is_reserved(&name)),
        }
    }

    /// The end of a run whose worker is of no use any more.
    fn lost(&self, mut worker: Worker, lost: Lost) -> End {
        let Ending { how, words, was_killed } = match &lost {
            // What has to be ended says nothing of why.
            Lost::Late | Lost::Unwanted | Lost::TooLong => Ending::default(),
            Lost::Gone | Lost::Nonsense(_) => worker.end(),
        };
        self.workers.forget(worker);
        let outcome = match lost {
            Lost::Unwanted => refused(ErrorCode::ExecutionAborted, "The run was cancelled"),
            Lost::Late => {
                let waited = self.patience.as_millis();
                tracing::error!("a worker does not answer and was ended");
                refused(ErrorCode::WorkerTimeout, format!("The worker did not answer within {waited} ms and was ended"))
            }
            Lost::TooLong => {
                let message = "The script sent more at once than a worker may; send less at a time";
                refused(ErrorCode::MessageTooLarge, message)
            }
            // Rust's own words when an allocation fails.
            Lost::Gone if words.contains("memory allocation of") => {
                tracing::error!("a worker had no memory left: {words}");
                let message = "The script needed more memory than its worker may have; keep less data";
                refused(ErrorCode::WorkerMemoryExceeded, message)
            }
            Lost::Gone => {
                tracing::error!(how, words, "a worker has crashed");
                Refused::crashed().into()
            }
            Lost::Nonsense(problem) => {
                tracing::error!(how, words, problem, "a worker has crashed");
                Refused::crashed().into()
            }
        };
        End { outcome: Box::new(outcome), was_killed }
    }
}

impl Evaluation for Remote {
    /// A worker that is lost is the end of the run.
    fn resume(&mut self, events: Vec<Event>, cancel: &CancellationToken) -> Progress {
        let mut watch = Watch::new(self.patience, Some((cancel, GRACE_PERIOD)));
        let is_new = self.begin.is_some();
        let events = events.into_iter().map(Into::into).collect();
        let order = match self.begin.take() {
            Some(begin) => Order::Begin(Box::new(Begin { events, ..*begin })),
            None => Order::Resume(events),
        };
        let mut attempts = 1;
        loop {
            match self.attempt(&order, &mut watch) {
                Ok(progress) => return progress,
                // Somebody has ended it while it waited for a run: nothing has happened that anybody could know of.
                Err(End { was_killed: true, .. }) if is_new && attempts < MOST_ATTEMPTS => attempts += 1,
                Err(end) => return Progress::Done(end.outcome),
            }
        }
    }

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.said)
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn unanswered_calls(&self) -> usize {
        self.unanswered_calls
    }

    fn time_left(&self) -> Duration {
        let (left, at) = self.time_left;
        left.saturating_sub(at.elapsed())
    }

    fn open_calls(&mut self) -> Vec<OpenCall> {
        let Some(mut worker) = self.worker.take() else { return Vec::new() };
        let mut watch = Watch::new(self.patience, None);
        let max_bytes = usize::try_from(MOST_BESIDES).unwrap_or(usize::MAX);
        let asked = worker.send(&Order::OpenCalls, &mut watch).and_then(|()| worker.receive(max_bytes, &mut watch));
        match asked {
            Ok(Answer::OpenCalls(open)) => {
                self.worker = Some(worker);
                open.into_iter().map(|(id, awaited)| OpenCall { id: CallId(id), awaited }).collect()
            }
            Ok(_) => {
                self.lost(worker, Lost::Nonsense("it was asked for its open calls".into()));
                Vec::new()
            }
            Err(lost) => {
                self.lost(worker, lost);
                Vec::new()
            }
        }
    }
}

impl Drop for Remote {
    /// In the middle of a run nothing else can be done with a worker.
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.workers.give_up(worker);
        }
    }
}
