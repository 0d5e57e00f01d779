//! The threads that run scripts, the queue in front of them, and a watch over both.
//!
//! Runs are ready or preempted, as in a multilevel feedback queue: a run that comes from outside is ready, one that was
//! cut off by the end of its slice is preempted. Each level has threads of its own, and those of preempted runs give way
//! to all others where there is more than one run: what is short does not wait for what is long, and what is long goes on.
//!
//! A slice cannot be interrupted from outside: where a run is in the middle of one long step (a sort,
//! a JSON text of megabytes), its thread is late, and another one takes its place in the meantime. So
//! at most so many slices of a level are on time, and no run waits for a step of another one. A late thread gives
//! way to the others where there are any, and then ends with its slice. What a thread starts has its priority, so
//! threads are started by the watch, which is never lowered, and by those who bring runs.

use super::context::RunContext;
use super::executor::{Evaluation, Executor, StartInputs};
use super::{Refused, refused};
use agentscript::{Event, Outcome, Progress};
use codecall_base::priority::Thread;
use codecall_base::tool::ErrorCode;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a run goes on before others have their turn.
pub const SLICE: Duration = Duration::from_millis(2);
/// How long a thread has a processor in a slice, after the first look at it, until it gives way to others. On a busy
/// machine a slice is late without having had one.
const LONG: Duration = Duration::from_millis(4);
/// How often slices are looked at while there are any.
const LOOK: Duration = Duration::from_millis(2);
/// Looks without any slice after which the watch goes to sleep.
const QUIET: u32 = 50;
/// Slices of ready runs at once, for each thread of preempted ones.
const READY_PER_THREAD: usize = 4;
/// Threads that wait for ready runs while there are others: on a busy machine it takes tens of milliseconds until a new
/// thread begins, and next to nothing to wake one up.
const SPARE: usize = 3;
/// Threads of a level that may be late at the same time; further ones make others wait.
const MOST_LATE: usize = 32;
/// Native stack of a script thread. Scripts themselves need none; parsing and printing nest.
pub const STACK: usize = 16 * 1024 * 1024;

/// What a thread does next for a run.
pub enum Task {
    /// Compile and start.
    Begin(Arc<dyn Executor>, Box<StartInputs>),
    /// Go on.
    Resume(Box<dyn Evaluation>, Vec<Event>),
}

/// How far a task has come: as far as it can go alone.
pub enum Step {
    /// The run waits for tools, or is done.
    Went(Box<dyn Evaluation>, Progress),
    /// There is no run (any more).
    Ended(Box<Outcome>),
    /// The run has taken too long, and its thread still has it.
    GivenUp(Box<Outcome>),
}

struct Job {
    task: Task,
    context: Arc<RunContext>,
    answer: oneshot::Sender<Step>,
}

/// Whether a run comes from outside, or was cut off by the end of its slice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// It is new, or its tools have answered.
    Ready,
    /// Its slice was over.
    Preempted,
}

impl Level {
    /// The name of its threads.
    fn name(self) -> &'static str {
        match self {
            Self::Ready => "script",
            Self::Preempted => "script-preempt",
        }
    }

    /// A slice that takes longer than this is late. Those of preempted runs wait for a processor, too.
    fn late(self) -> Duration {
        match self {
            Self::Ready => Duration::from_millis(4),
            Self::Preempted => Duration::from_millis(50),
        }
    }
}

/// Tasks in their order. The threads end with it.
pub struct Queue(Arc<Shared>);

struct Shared {
    threads: usize,
    watchdog: Duration,
    stack: usize,
    state: Mutex<State>,
    /// There is a job of this level.
    more_ready: Condvar,
    more_preempted: Condvar,
    /// There is a slice to be watched.
    watch: Condvar,
}

#[derive(Default)]
struct State {
    ready: LevelState,
    preempted: LevelState,
    /// Slices under way, by number.
    slices: BTreeMap<u64, Slice>,
    slice_number: u64,
    /// Whether there is a thread that watches, and whether it is awake.
    watched: bool,
    watching: bool,
    closed: bool,
}

/// Runs of one level.
#[derive(Default)]
struct LevelState {
    /// Those that wait for their turn.
    jobs: VecDeque<Job>,
    /// Slices under way that are not late.
    on_time: usize,
    /// Threads, and how many of them have no slice.
    workers: usize,
    free: usize,
}

struct Slice {
    level: Level,
    thread: Thread,
    began: Instant,
    late: bool,
    /// How long its thread had had a processor at the first look.
    spent: Option<Duration>,
    /// Whether its thread gives way to others.
    lowered: bool,
    /// Who waits for its end; absent: it was given up.
    answer: Option<oneshot::Sender<Step>>,
}

impl Queue {
    /// A queue for `threads` slices of preempted runs at a time, and several times as many of ready ones. A slice that
    /// holds its thread for longer than `watchdog` is given up. Threads are started when they are needed.
    pub fn new(threads: usize, watchdog: Duration) -> Self {
        Self::with_stack(threads, watchdog, STACK)
    }

    pub(super) fn with_stack(threads: usize, watchdog: Duration, stack: usize) -> Self {
        let (more_ready, more_preempted, watch) = (Condvar::new(), Condvar::new(), Condvar::new());
        Self(Arc::new(Shared { threads, watchdog, stack, state: Mutex::default(), more_ready, more_preempted, watch }))
    }

    /// Do a task; other tasks have their turns in between.
    pub async fn run(&self, task: Task, context: Arc<RunContext>) -> Step {
        let (answer, answered) = oneshot::channel();
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
        state.closed = true;
        let jobs = (std::mem::take(&mut state.ready.jobs), std::mem::take(&mut state.preempted.jobs));
        drop(state);
        drop(jobs);
        self.0.more_ready.notify_all();
        self.0.more_preempted.notify_all();
        self.0.watch.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn more(&self, level: Level) -> &Condvar {
        match level {
            Level::Ready => &self.more_ready,
            Level::Preempted => &self.more_preempted,
        }
    }

    /// How many slices of a level may be on time at once. Ready runs share the processors rather than wait for each
    /// other: few of them need a whole slice.
    fn at_once(&self, level: Level) -> usize {
        match level {
            Level::Ready => self.threads * READY_PER_THREAD,
            Level::Preempted => self.threads,
        }
    }

    fn push(self: &Arc<Self>, job: Job) -> std::io::Result<()> {
        let mut state = self.lock();
        if !state.watched {
            self.start("script-watch", watch)?;
            (state.watched, state.watching) = (true, true);
        }
        state.ready.jobs.push_back(job);
        let wanted = self.wanted(&mut state, Level::Ready, 0);
        drop(state);
        self.more(Level::Ready).notify_one();
        let Err(error) = self.hire(Level::Ready, wanted) else { return Ok(()) };
        let mut state = self.lock();
        if state.ready.workers > 0 {
            return Ok(());
        }
        let jobs = std::mem::take(&mut state.ready.jobs);
        drop(state);
        drop(jobs);
        Err(error)
    }

    /// A run whose slice is over waits for its next turn.
    fn push_preempted(&self, job: Job) {
        let mut state = self.lock();
        state.preempted.jobs.push_back(job);
        if state.preempted.free > 0 {
            self.more(Level::Preempted).notify_one();
        } else {
            self.watch.notify_one();
        }
    }

    /// How many threads a level lacks for the jobs that may have their turns now, and to have a few to spare. They are
    /// counted as if they were there, and started by [`Self::hire`] when the lock is free again: what a thread needs of
    /// the system may take long.
    fn wanted(&self, state: &mut State, level: Level, spare: usize) -> usize {
        let most = self.at_once(level);
        let lane = state.state_of(level);
        let turns = lane.jobs.len().min(most.saturating_sub(lane.on_time));
        let wanted = (turns + spare).saturating_sub(lane.free).min((most + MOST_LATE).saturating_sub(lane.workers));
        lane.workers += wanted;
        lane.free += wanted;
        wanted
    }

    /// Start threads that are counted already. Those that cannot be started are not there.
    fn hire(self: &Arc<Self>, level: Level, wanted: usize) -> std::io::Result<()> {
        for at in 0..wanted {
            if let Err(error) = self.start(level.name(), move |shared| work(shared, level)) {
                let mut state = self.lock();
                let lane = state.state_of(level);
                lane.workers -= wanted - at;
                lane.free -= wanted - at;
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
    fn state_of(&mut self, level: Level) -> &mut LevelState {
        match level {
            Level::Ready => &mut self.ready,
            Level::Preempted => &mut self.preempted,
        }
    }

    /// How many runs want a processor.
    fn busy(&self) -> usize {
        self.slices.len() + self.ready.jobs.len() + self.preempted.jobs.len()
    }

    fn begin(&mut self, thread: Thread, level: Level, answer: oneshot::Sender<Step>, lowered: bool) -> u64 {
        self.slice_number += 1;
        let began = Instant::now();
        let slice = Slice { level, thread, began, late: false, spent: None, lowered, answer: Some(answer) };
        self.slices.insert(self.slice_number, slice);
        let lane = self.state_of(level);
        lane.on_time += 1;
        lane.free -= 1;
        self.slice_number
    }

    /// The slices whose threads have not given way to others, and those threads.
    fn unlowered(&self) -> Vec<(u64, Thread)> {
        let slices = self.slices.iter().filter(|(_, slice)| !slice.lowered);
        slices.map(|(number, slice)| (*number, slice.thread)).collect()
    }

    /// How long the threads of some slices have had a processor by now. Those that have had it for long give way to
    /// others.
    fn lower_long(&mut self, spent: Vec<(u64, Duration)>) {
        for (number, now) in spent {
            // One that has ended has nothing to give way with.
            let Some(slice) = self.slices.get_mut(&number) else { continue };
            if now.saturating_sub(*slice.spent.get_or_insert(now)) > LONG {
                slice.lowered = true;
                slice.thread.lower_priority();
            }
        }
    }

    /// A slice has ended. Gives whether its thread was made to give way to others, and who waits for it.
    fn end(&mut self, number: u64) -> (bool, Option<oneshot::Sender<Step>>) {
        let Some(slice) = self.slices.remove(&number) else { return (false, None) };
        let lane = self.state_of(slice.level);
        lane.free += 1;
        if !slice.late {
            lane.on_time -= 1;
        }
        (slice.lowered, slice.answer)
    }
}

/// A thread that runs slices of a level.
fn work(shared: &Arc<Shared>, level: Level) {
    let thread = Thread::current();
    let mut state = shared.lock();
    // It cannot get its priority back, so it ends when there is nothing to do.
    let mut is_lowered = false;
    while !state.closed {
        let lane = state.state_of(level);
        if lane.on_time < shared.at_once(level)
            && let Some(Job { task, context, answer }) = lane.jobs.pop_front()
        {
            // Nobody waits any more: the run is dropped here.
            if answer.is_closed() {
                drop(state);
                drop((task, context));
                state = shared.lock();
                continue;
            }
            let gives_way = level == Level::Preempted && !is_lowered && state.busy() > 0;
            let number = state.begin(thread, level, answer, is_lowered || gives_way);
            if !state.watching {
                shared.watch.notify_one();
            }
            drop(state);
            if gives_way {
                thread.lower_priority();
            }
            let step = catch_unwind(AssertUnwindSafe(|| slice(task, &context)))
                .unwrap_or_else(|_| Step::Ended(Box::new(Refused::crashed().into())));
            let (lowered, answer) = shared.lock().end(number);
            is_lowered = lowered;
            match (step, answer) {
                (Step::Went(run, Progress::Yielded), Some(answer)) => {
                    let job = Job { task: Task::Resume(run, Vec::new()), context, answer };
                    shared.push_preempted(job);
                }
                (step, answer) => {
                    // First its permit: whoever hears of the end may come back at once.
                    drop(context);
                    drop(answer.map(|answer| answer.send(step)));
                }
            }
            state = shared.lock();
            if is_lowered && level == Level::Ready {
                break;
            }
        } else if is_lowered || lane.free > shared.at_once(level) {
            // It has stood in for one that was late, or cannot be what it was.
            break;
        } else {
            state = shared.more(level).wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
    let lane = state.state_of(level);
    lane.workers -= 1;
    lane.free -= 1;
    // What it leaves, its own run perhaps, is for another one. The watch
    // sees that there is one.
    shared.more(level).notify_one();
    shared.watch.notify_one();
}

/// The thread that looks whether others are late.
fn watch(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    let mut quiet = 0;
    while !state.closed {
        // The lock was free in between: there may be something to do again.
        if quiet > QUIET && state.busy() == 0 {
            state.watching = false;
            state = shared.watch.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.watching = true;
        }
        state = shared.watch.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        quiet = if state.slices.is_empty() { quiet + 1 } else { 0 };
        let now = Instant::now();
        let (mut late, mut lost) = (Vec::new(), Vec::new());
        let looked_at = if state.busy() > 1 { state.unlowered() } else { Vec::new() };
        for slice in state.slices.values_mut() {
            let took = now.saturating_duration_since(slice.began);
            if took > slice.level.late() && !slice.late {
                slice.late = true;
                late.push(slice.level);
            }
            if took > shared.watchdog {
                lost.extend(slice.answer.take());
            }
        }
        for level in late {
            state.state_of(level).on_time -= 1;
            shared.more(level).notify_one();
        }
        let wanted = [(Level::Ready, SPARE), (Level::Preempted, 0)]
            .map(|(level, spare)| (level, shared.wanted(&mut state, level, spare)));
        drop(state);
        // The system is asked without the lock: nobody waits for its answer.
        let spent = looked_at.into_iter().filter_map(|(number, thread)| Some((number, thread.cpu_time()?)));
        let spent: Vec<(u64, Duration)> = spent.collect();
        for (level, wanted) in wanted {
            if let Err(error) = shared.hire(level, wanted) {
                tracing::warn!(%error, "no thread could be started in place of one that is late");
            }
        }
        for answer in lost {
            tracing::error!("a slice of a script does not end; its thread is given up");
            let message = format!(
                "The script did not let go of its thread for {} ms and was given up; this is a bug in CodeCall",
                shared.watchdog.as_millis()
            );
            drop(answer.send(Step::GivenUp(Box::new(refused(ErrorCode::WorkerTimeout, message)))));
        }
        state = shared.lock();
        state.lower_long(spent);
        // Runs that take long go on with the others where they have no thread.
        if state.preempted.workers == 0 && !state.preempted.jobs.is_empty() {
            let mut jobs = std::mem::take(&mut state.preempted.jobs);
            state.ready.jobs.append(&mut jobs);
            shared.more(Level::Ready).notify_one();
        }
    }
}

/// Let a run go on until it waits, is done, or its slice is over.
fn slice(task: Task, context: &RunContext) -> Step {
    let _logged = context.span.enter();
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
    context.heard(run.take_messages());
    if !matches!(progress, Progress::Done(_)) {
        context.used(&*run);
        // What has happened in this slice may have been too much.
        if context.cancel.is_cancelled() {
            progress = run.resume(vec![Event::Cancel], &context.cancel);
        }
    }
    Step::Went(run, progress)
}
