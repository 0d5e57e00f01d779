//! The scheduler of runs: a queue, the threads that evaluate slices, and a watchdog thread.
//!
//! Runs are ready or preempted, as in a multilevel feedback queue. A run that is new or has got answers is ready, a run
//! whose slice is over is preempted. Each level has its own threads. If there is more than one run, threads of
//! preempted runs have a lower priority. So short runs do not wait for long ones, and long runs still make progress.
//!
//! A slice cannot be interrupted from outside. A run may be in the middle of one long operation (a sort, a JSON text of
//! megabytes). Its thread then becomes late, and another thread takes its place. Only slices that are not late count
//! towards
//! the limit of the level, so no run waits for an operation of another one. A late thread gets a lower priority if
//! there
//! are other runs, and then ends with its slice. A new thread inherits the priority of the thread that starts it. So
//! only the watchdog, whose priority is never lowered, and the callers of the queue start threads.

use super::context::RunContext;
use super::executor::{Evaluation, Executor, StartInputs};
use super::fair_queue::FairQueue;
use super::{Refused, refused};
use agentscript::{Event, Outcome, Progress};
use codecall_base::priority::Thread;
use codecall_base::tool::ErrorCode;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a run is evaluated before it is preempted.
pub const SLICE: Duration = Duration::from_millis(2);
/// CPU time of a slice, from the first check of the watchdog, after which the priority of its thread is lowered. Elapsed
/// time would not do: on a busy machine a slice may be late although it has had no processor.
const MAX_CPU_TIME: Duration = Duration::from_millis(4);
/// How often the watchdog checks the slices in progress.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// Number of checks without a slice after which the watchdog sleeps until there is one.
const MAX_IDLE_CHECKS: u32 = 50;
/// Number of ready runs that are evaluated at once, for each thread of preempted runs.
const READY_PER_THREAD: usize = 4;
/// Number of idle threads that are kept for ready runs while there are other runs. On a busy machine it takes tens of
/// milliseconds to start a thread, but almost no time to wake one.
const SPARE_THREADS: usize = 3;
/// Maximum number of late threads of a level. Further ones count towards the limit of the level.
const MAX_LATE: usize = 32;
/// Size of the native stack of a script thread, in bytes. Scripts themselves need none, but parsing and printing recurse.
pub const STACK: usize = 16 * 1024 * 1024;

/// The task of the next slice of a run.
pub enum Task {
    /// Compile the script and start the run.
    Begin(Arc<dyn Executor>, Box<StartInputs>),
    /// Resume the run.
    Resume(Box<dyn Evaluation>, Vec<Event>),
}

/// The result of a task.
pub enum Step {
    /// The run waits for tools, or is complete.
    Progressed(Box<dyn Evaluation>, Progress),
    /// There is no run: its script does not compile, or its evaluation has failed.
    Ended(Box<Outcome>),
    /// The slice has taken too long. Its thread still evaluates the run.
    GivenUp(Box<Outcome>),
}

struct Job {
    task: Task,
    context: Arc<RunContext>,
    answer: oneshot::Sender<Step>,
}

/// The level of a run in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The run is new, or has got answers of its tools.
    Ready,
    /// The last slice of the run was used up.
    Preempted,
}

impl Level {
    fn thread_name(self) -> &'static str {
        match self {
            Self::Ready => "script",
            Self::Preempted => "script-preempt",
        }
    }

    /// How long a slice may take before it is late. Slices of preempted runs may also wait for a processor.
    fn late_after(self) -> Duration {
        match self {
            Self::Ready => Duration::from_millis(4),
            Self::Preempted => Duration::from_millis(50),
        }
    }
}

/// The queue. Its threads end when it is dropped.
pub struct Queue(Arc<Shared>);

struct Shared {
    threads: usize,
    watchdog: Duration,
    stack: usize,
    state: Mutex<State>,
    /// Wakes a thread of ready runs.
    ready_job: Condvar,
    /// Wakes a thread of preempted runs.
    preempted_job: Condvar,
    /// Wakes the watchdog.
    watch: Condvar,
    /// Number of runs that are evaluated or wait for a thread.
    evaluating: AtomicUsize,
}

/// Counts a run until it is dropped.
struct Evaluating<'a>(&'a AtomicUsize);

impl<'a> Evaluating<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Evaluating<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Default)]
struct State {
    ready: LevelState,
    preempted: LevelState,
    /// Slices in progress, by number.
    slices: BTreeMap<u64, Slice>,
    slice_number: u64,
    has_watchdog: bool,
    is_watchdog_awake: bool,
    is_closed: bool,
}

#[derive(Default)]
struct LevelState {
    /// The queued jobs, of which each client has its turn.
    jobs: FairQueue<Job>,
    /// Number of slices in progress that are not late.
    on_time: usize,
    /// Number of threads.
    threads: usize,
    /// Number of threads without a slice.
    idle: usize,
}

/// A slice in progress.
struct Slice {
    level: Level,
    thread: Thread,
    began: Instant,
    is_late: bool,
    /// CPU time of the thread at the first check of the watchdog.
    cpu_time: Option<Duration>,
    /// Whether its thread has a lower priority.
    is_lowered: bool,
    /// Receives the result; `None` if the slice was given up.
    answer: Option<oneshot::Sender<Step>>,
}

impl Queue {
    /// Creates a queue that evaluates `threads` preempted runs at once, and [`READY_PER_THREAD`] times as many ready runs.
    /// A slice that takes longer than `watchdog` is given up. Threads are started when they are needed.
    pub fn new(threads: usize, watchdog: Duration) -> Self {
        Self::with_stack(threads, watchdog, STACK)
    }

    pub(super) fn with_stack(threads: usize, watchdog: Duration, stack: usize) -> Self {
        let (ready_job, preempted_job, watch) = (Condvar::new(), Condvar::new(), Condvar::new());
        let (state, evaluating) = (Mutex::default(), AtomicUsize::new(0));
        Self(Arc::new(Shared { threads, watchdog, stack, state, ready_job, preempted_job, watch, evaluating }))
    }

    /// Returns how many runs are evaluated, or wait for a thread.
    pub fn evaluating(&self) -> usize {
        self.0.evaluating.load(Ordering::Acquire)
    }

    /// Executes a task, in as many slices as it takes until the run waits for tools or is complete.
    pub async fn run(&self, task: Task, context: Arc<RunContext>) -> Step {
        let (answer, answered) = oneshot::channel();
        let _evaluating = Evaluating::new(&self.0.evaluating);
        if let Err(error) = self.0.push(Job { task, context, answer }) {
            return Step::Ended(Box::new(Refused::no_thread(&error).into()));
        }
        match answered.await {
            Ok(step) => step,
            Err(_) => Step::Ended(Box::new(Refused::disposed().into())),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let jobs = (std::mem::take(&mut state.ready.jobs), std::mem::take(&mut state.preempted.jobs));
        drop(state);
        drop(jobs);
        self.0.ready_job.notify_all();
        self.0.preempted_job.notify_all();
        self.0.watch.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job_added(&self, level: Level) -> &Condvar {
        match level {
            Level::Ready => &self.ready_job,
            Level::Preempted => &self.preempted_job,
        }
    }

    /// Returns the maximum number of slices of a level that are not late. Ready runs share the processors instead of
    /// waiting for each other, because few of them need a whole slice.
    fn max_slices(&self, level: Level) -> usize {
        match level {
            Level::Ready => self.threads * READY_PER_THREAD,
            Level::Preempted => self.threads,
        }
    }

    fn push(self: &Arc<Self>, job: Job) -> std::io::Result<()> {
        let mut state = self.lock();
        if !state.has_watchdog {
            self.start("script-watch", watch)?;
            (state.has_watchdog, state.is_watchdog_awake) = (true, true);
        }
        state.ready.jobs.push(job.context.client(), job);
        let count = self.reserve_threads(&mut state, Level::Ready, 0);
        drop(state);
        self.job_added(Level::Ready).notify_one();
        let Err(error) = self.start_threads(Level::Ready, count) else { return Ok(()) };
        let mut state = self.lock();
        if state.ready.threads > 0 {
            return Ok(());
        }
        let jobs = std::mem::take(&mut state.ready.jobs);
        drop(state);
        drop(jobs);
        Err(error)
    }

    /// Queues a run whose slice is used up.
    fn push_preempted(&self, job: Job) {
        let mut state = self.lock();
        state.preempted.jobs.push(job.context.client(), job);
        if state.preempted.idle > 0 {
            self.job_added(Level::Preempted).notify_one();
        } else {
            self.watch.notify_one();
        }
    }

    /// Returns how many threads a level needs for the jobs that can start now, and for `spare` idle ones. They are counted
    /// as existing; [`Self::start_threads`] starts them without the lock, because this may take long.
    fn reserve_threads(&self, state: &mut State, level: Level, spare: usize) -> usize {
        let max = self.max_slices(level);
        let level = state.level_mut(level);
        let startable = level.jobs.len().min(max.saturating_sub(level.on_time));
        let count = (startable + spare).saturating_sub(level.idle).min((max + MAX_LATE).saturating_sub(level.threads));
        level.threads += count;
        level.idle += count;
        count
    }

    /// Starts threads that are reserved. Those that cannot be started are no longer counted.
    fn start_threads(self: &Arc<Self>, level: Level, count: usize) -> std::io::Result<()> {
        for started in 0..count {
            if let Err(error) = self.start(level.thread_name(), move |shared| work(shared, level)) {
                let mut state = self.lock();
                let level = state.level_mut(level);
                level.threads -= count - started;
                level.idle -= count - started;
                return Err(error);
            }
        }
        Ok(())
    }

    fn start(self: &Arc<Self>, name: &str, body: impl FnOnce(&Arc<Self>) + Send + 'static) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name(name.into()).stack_size(self.stack);
        thread.spawn(move || body(&shared)).map(drop)
    }
}

impl State {
    fn level_mut(&mut self, level: Level) -> &mut LevelState {
        match level {
            Level::Ready => &mut self.ready,
            Level::Preempted => &mut self.preempted,
        }
    }

    /// Returns the number of runs that need a processor.
    fn active_runs(&self) -> usize {
        self.slices.len() + self.ready.jobs.len() + self.preempted.jobs.len()
    }

    /// Adds a slice. Returns its number.
    fn begin_slice(&mut self, thread: Thread, level: Level, answer: oneshot::Sender<Step>, is_lowered: bool) -> u64 {
        self.slice_number += 1;
        let began = Instant::now();
        let slice = Slice { level, thread, began, is_late: false, cpu_time: None, is_lowered, answer: Some(answer) };
        self.slices.insert(self.slice_number, slice);
        let level = self.level_mut(level);
        level.on_time += 1;
        level.idle -= 1;
        self.slice_number
    }

    /// Returns the slices whose threads have their normal priority, with these threads.
    fn unlowered_slices(&self) -> Vec<(u64, Thread)> {
        let slices = self.slices.iter().filter(|(_, slice)| !slice.is_lowered);
        slices.map(|(number, slice)| (*number, slice.thread)).collect()
    }

    /// Lowers the priority of threads whose slices have used too much CPU time. `cpu_times` has slices and the current
    /// CPU times of their threads.
    fn lower_priorities(&mut self, cpu_times: Vec<(u64, Duration)>) {
        for (number, now) in cpu_times {
            // The slice may have ended in the meantime.
            let Some(slice) = self.slices.get_mut(&number) else { continue };
            if now.saturating_sub(*slice.cpu_time.get_or_insert(now)) > MAX_CPU_TIME {
                slice.is_lowered = true;
                slice.thread.lower_priority();
            }
        }
    }

    /// Removes a slice that has ended. Returns whether its thread has a lower priority, and who receives the result.
    fn end_slice(&mut self, number: u64) -> (bool, Option<oneshot::Sender<Step>>) {
        let Some(slice) = self.slices.remove(&number) else { return (false, None) };
        let level = self.level_mut(slice.level);
        level.idle += 1;
        if !slice.is_late {
            level.on_time -= 1;
        }
        (slice.is_lowered, slice.answer)
    }
}

/// The main function of a thread that evaluates slices of a level.
fn work(shared: &Arc<Shared>, level: Level) {
    let thread = Thread::current();
    let mut state = shared.lock();
    // A lowered priority cannot be raised again, so the thread ends when there is no job.
    let mut is_lowered = false;
    while !state.is_closed {
        let jobs = state.level_mut(level);
        if jobs.on_time < shared.max_slices(level)
            && let Some(Job { task, context, answer }) = jobs.jobs.pop()
        {
            // Nobody waits for the result: drop the run, without the lock.
            if answer.is_closed() {
                drop(state);
                drop((task, context));
                state = shared.lock();
                continue;
            }
            let lower = level == Level::Preempted && !is_lowered && state.active_runs() > 0;
            let number = state.begin_slice(thread, level, answer, is_lowered || lower);
            if !state.is_watchdog_awake {
                shared.watch.notify_one();
            }
            drop(state);
            if lower {
                thread.lower_priority();
            }
            let step = catch_unwind(AssertUnwindSafe(|| evaluate_slice(task, &context)))
                .unwrap_or_else(|_| Step::Ended(Box::new(Refused::crashed().into())));
            let (lowered, answer) = shared.lock().end_slice(number);
            is_lowered = lowered;
            match (step, answer) {
                (Step::Progressed(run, Progress::Yielded), Some(answer)) if !context.is_permit_wanted() => {
                    let job = Job { task: Task::Resume(run, Vec::new()), context, answer };
                    shared.push_preempted(job);
                }
                (step, answer) => {
                    // Return the permit first, because the client may send the next request at once.
                    drop(context);
                    drop(answer.map(|answer| answer.send(step)));
                }
            }
            state = shared.lock();
            if is_lowered && level == Level::Ready {
                break;
            }
        } else if is_lowered || jobs.idle > shared.max_slices(level) {
            // Its priority is lowered, or there are more threads than needed, because some were late.
            break;
        } else {
            state = shared.job_added(level).wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
    let jobs = state.level_mut(level);
    jobs.threads -= 1;
    jobs.idle -= 1;
    // Jobs that it leaves, perhaps its own run, need another thread. The watchdog starts one if necessary.
    shared.job_added(level).notify_one();
    shared.watch.notify_one();
}

/// The main function of the watchdog, which replaces late threads and gives up slices that do not end.
fn watch(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    let mut idle_checks = 0;
    while !state.is_closed {
        // The lock was released since the last check, so there may be new runs.
        if idle_checks > MAX_IDLE_CHECKS && state.active_runs() == 0 {
            state.is_watchdog_awake = false;
            state = shared.watch.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_watchdog_awake = true;
        }
        state = shared.watch.wait_timeout(state, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        idle_checks = if state.slices.is_empty() { idle_checks + 1 } else { 0 };
        let now = Instant::now();
        let (mut late, mut given_up) = (Vec::new(), Vec::new());
        let unlowered = if state.active_runs() > 1 { state.unlowered_slices() } else { Vec::new() };
        for slice in state.slices.values_mut() {
            let elapsed = now.saturating_duration_since(slice.began);
            if elapsed > slice.level.late_after() && !slice.is_late {
                slice.is_late = true;
                late.push(slice.level);
            }
            if elapsed > shared.watchdog {
                given_up.extend(slice.answer.take());
            }
        }
        for level in late {
            state.level_mut(level).on_time -= 1;
            shared.job_added(level).notify_one();
        }
        let reserved = [(Level::Ready, SPARE_THREADS), (Level::Preempted, 0)]
            .map(|(level, spare)| (level, shared.reserve_threads(&mut state, level, spare)));
        drop(state);
        // These system calls may take long, so they are made without the lock.
        let cpu_times: Vec<(u64, Duration)> =
            unlowered.into_iter().filter_map(|(number, thread)| Some((number, thread.cpu_time()?))).collect();
        for (level, count) in reserved {
            if let Err(error) = shared.start_threads(level, count) {
                tracing::warn!(%error, "no thread could be started in place of one that is late");
            }
        }
        for answer in given_up {
            tracing::error!("a slice of a script does not end; its thread is given up");
            let message = format!(
                "The script did not let go of its thread for {} ms and was given up; this is a bug in CodeCall",
                shared.watchdog.as_millis()
            );
            drop(answer.send(Step::GivenUp(Box::new(refused(ErrorCode::WorkerTimeout, message)))));
        }
        state = shared.lock();
        state.lower_priorities(cpu_times);
        // If there is no thread for preempted runs, the threads of ready runs continue them.
        if state.preempted.threads == 0 && !state.preempted.jobs.is_empty() {
            let mut jobs = std::mem::take(&mut state.preempted.jobs);
            while let Some(job) = jobs.pop() {
                state.ready.jobs.push(job.context.client(), job);
            }
            shared.job_added(Level::Ready).notify_one();
        }
    }
}

/// Evaluates a run until it waits for tools, is complete, or its slice is used up.
fn evaluate_slice(task: Task, context: &RunContext) -> Step {
    let _span = context.span.enter();
    let (mut run, mut events) = match task {
        Task::Begin(executor, start) => {
            #[cfg(test)]
            super::tests::misbehave(&start.script);
            match executor.start(*start) {
                Ok(run) => (run, Vec::new()),
                Err(outcome) => return Step::Ended(outcome),
            }
        }
        Task::Resume(run, events) => (run, events),
    };
    if context.cancel.is_cancelled() {
        events.push(Event::Cancel);
    }
    let mut progress = run.resume(events, &context.cancel);
    context.forward(run.take_messages());
    if !matches!(progress, Progress::Done(_)) {
        context.check_usage(&*run);
        // The messages or the usage of this slice may have ended the run.
        if context.cancel.is_cancelled() {
            progress = run.resume(vec![Event::Cancel], &context.cancel);
        }
    }
    Step::Progressed(run, progress)
}
