//! A run in a worker process. For the queue it is the same as a run on a thread.

use super::message::{Request, Response, Resumed, Start};
use super::pool::{AcquireError, Workers};
use super::process::{Deadline, Exit, Worker, WorkerError};
use crate::executor::{Evaluation, StartInputs};
use crate::{Refused, refused};
use agentscript::{CallId, Event, Limits, Message, OpenCall, Outcome, Progress};
use codecall_base::tool::{ErrorCode, ToolDirectory, ToolLookups};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a worker may continue with a step of a cancelled run before it is ended: less than the server itself waits.
const GRACE_PERIOD: Duration = Duration::from_millis(350);
/// Maximum size of a response in addition to data of the run, in bytes.
const MAX_OVERHEAD_BYTES: u64 = 32 * 1024 * 1024;
/// Number of workers in which a run is started, if other processes kill them before it has begun. Several idle workers
/// may be killed at once.
const MAX_ATTEMPTS: u32 = 8;

/// A run in a worker. If it is dropped before its end, its worker is ended too.
pub struct RemoteRun {
    workers: Workers,
    /// `None` before the first slice, and when the run has ended.
    worker: Option<Worker>,
    /// The inputs of the run; `None` once it has started.
    start: Option<Box<Start>>,
    directory: Arc<ToolDirectory>,
    limits: Limits,
    timeout: Duration,
    messages: Vec<Message>,
    lookups: ToolLookups,
    memory_bytes: u64,
    unanswered_calls: usize,
    /// The time that was left at a moment.
    time_left: (Duration, Instant),
    next_timer: Option<Duration>,
    cancelled: Vec<CallId>,
}

/// The end of a run that has lost its worker.
struct Lost {
    outcome: Box<Outcome>,
    /// Whether another process has killed the worker.
    was_killed: bool,
}

impl RemoteRun {
    /// Creates a run that starts when it is resumed for the first time.
    pub fn new(workers: Workers, inputs: StartInputs) -> Self {
        let start = Some(Box::new(Start::new(&inputs)));
        let StartInputs { policy, directory, watchdog, .. } = inputs;
        let limits = policy.limits;
        let time_left = (Duration::from_millis(limits.max_duration_ms), Instant::now());
        Self {
            workers,
            worker: None,
            start,
            directory,
            limits,
            timeout: watchdog,
            messages: Vec::new(),
            lookups: ToolLookups::default(),
            memory_bytes: 0,
            unanswered_calls: 0,
            time_left,
            next_timer: None,
            cancelled: Vec::new(),
        }
    }

    /// Sends a request to the run's worker, or to an idle one.
    fn attempt(&mut self, request: &Request, deadline: &mut Deadline<'_>) -> Result<Progress, Lost> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.workers.acquire(&self.limits, &self.directory).map_err(
                |AcquireError { refused, was_killed }| Lost { outcome: Box::new(refused.into()), was_killed },
            )?,
        };
        match self.exchange(&mut worker, request, deadline) {
            Ok(Progress::Done(outcome)) => {
                worker.runs += 1;
                worker.script_ms += outcome.stats.script_ms;
                self.workers.release(worker);
                Ok(Progress::Done(outcome))
            }
            Ok(progress @ (Progress::Calls(_) | Progress::Yielded)) => {
                self.worker = Some(worker);
                Ok(progress)
            }
            Err(error) => Err(self.lose(worker, error)),
        }
    }

    fn exchange(
        &mut self,
        worker: &mut Worker,
        request: &Request,
        deadline: &mut Deadline<'_>,
    ) -> Result<Progress, WorkerError> {
        if matches!(request, Request::Start(_)) {
            worker.send_directory(&self.directory, deadline)?;
        }
        worker.send(request, deadline)?;
        let max_bytes = self.limits.max_memory_bytes.saturating_mul(2).saturating_add(MAX_OVERHEAD_BYTES);
        match worker.receive(usize::try_from(max_bytes).unwrap_or(usize::MAX), deadline)? {
            Response::Resumed(resumed) => {
                let Resumed {
                    progress,
                    messages,
                    lookups,
                    memory_bytes,
                    unanswered_calls,
                    time_left,
                    next_timer,
                    cancelled,
                } = *resumed;
                self.next_timer = next_timer;
                self.cancelled.extend(cancelled);
                self.messages.extend(messages);
                self.lookups.append(lookups);
                self.memory_bytes = memory_bytes;
                self.unanswered_calls = usize::try_from(unanswered_calls).unwrap_or(usize::MAX);
                self.time_left = (time_left, Instant::now());
                Ok(progress)
            }
            Response::NotStarted(outcome) => Ok(Progress::Done(outcome)),
            Response::Panicked(message) => Err(WorkerError::Protocol(message)),
            Response::Ready { .. } | Response::OpenCalls(_) => {
                Err(WorkerError::Protocol("a response to another request".into()))
            }
        }
    }

    /// Ends the worker of a run after an error.
    fn lose(&self, mut worker: Worker, error: WorkerError) -> Lost {
        let Exit { status, stderr, was_killed } = match &error {
            // The server ends it, so its exit explains nothing.
            WorkerError::Timeout | WorkerError::Cancelled | WorkerError::ResponseTooLarge => Exit::default(),
            WorkerError::Exited | WorkerError::Protocol(_) => worker.end(),
        };
        self.workers.discard_lost(worker);
        let outcome = match error {
            WorkerError::Cancelled => refused(ErrorCode::ExecutionAborted, "The run was cancelled"),
            WorkerError::Timeout => {
                let waited = self.timeout.as_millis();
                tracing::error!("a worker does not answer and was ended");
                refused(ErrorCode::WorkerTimeout, format!("The worker did not answer within {waited} ms and was ended"))
            }
            WorkerError::ResponseTooLarge => {
                let message = "The script sent more at once than a worker may; send less at a time";
                refused(ErrorCode::MessageTooLarge, message)
            }
            // The standard library prints this if an allocation fails.
            WorkerError::Exited if stderr.contains("memory allocation of") => {
                tracing::error!("a worker had no memory left: {stderr}");
                let message = "The script needed more memory than its worker may have; keep less data";
                refused(ErrorCode::WorkerMemoryExceeded, message)
            }
            WorkerError::Exited => {
                tracing::error!(status, stderr, "a worker has crashed");
                Refused::crashed().into()
            }
            WorkerError::Protocol(problem) => {
                tracing::error!(status, stderr, problem, "a worker has crashed");
                Refused::crashed().into()
            }
        };
        Lost { outcome: Box::new(outcome), was_killed }
    }
}

impl Evaluation for RemoteRun {
    /// If the worker is lost, the run ends.
    fn resume(&mut self, events: Vec<Event>, cancel: &CancellationToken) -> Progress {
        let mut deadline = Deadline::new(self.timeout, Some((cancel, GRACE_PERIOD)));
        let is_new = self.start.is_some();
        let request = match self.start.take() {
            Some(start) => Request::Start(Box::new(start.with_events(events))),
            None => Request::Resume(events),
        };
        let mut attempts = 1;
        loop {
            match self.attempt(&request, &mut deadline) {
                Ok(progress) => return progress,
                // It was killed while it was idle, so the run has had no effect.
                Err(Lost { was_killed: true, .. }) if is_new && attempts < MAX_ATTEMPTS => attempts += 1,
                Err(lost) => return Progress::Done(lost.outcome),
            }
        }
    }

    fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages)
    }

    fn take_lookups(&mut self) -> ToolLookups {
        std::mem::take(&mut self.lookups)
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

    fn next_timer(&self) -> Option<Duration> {
        self.next_timer
    }

    fn take_cancelled(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.cancelled)
    }

    fn lost(&self) -> BoxFuture<'static, ()> {
        match &self.worker {
            Some(worker) => worker.exited(),
            None => Box::pin(std::future::pending()),
        }
    }

    fn open_calls(&mut self) -> Vec<OpenCall> {
        let Some(mut worker) = self.worker.take() else { return Vec::new() };
        let mut deadline = Deadline::new(self.timeout, None);
        let max_bytes = usize::try_from(MAX_OVERHEAD_BYTES).unwrap_or(usize::MAX);
        let sent = worker.send(&Request::OpenCalls, &mut deadline);
        match sent.and_then(|()| worker.receive(max_bytes, &mut deadline)) {
            Ok(Response::OpenCalls(open)) => {
                self.worker = Some(worker);
                open
            }
            Ok(_) => {
                self.lose(worker, WorkerError::Protocol("a response to another request".into()));
                Vec::new()
            }
            Err(error) => {
                self.lose(worker, error);
                Vec::new()
            }
        }
    }
}

impl Drop for RemoteRun {
    /// A worker in the middle of a run cannot be used for another one.
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.workers.discard(worker);
        }
    }
}
