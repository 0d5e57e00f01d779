//! The threads that run scripts, the queue in front of them, and a watch over both.
//!
//! A slice cannot be interrupted from outside: where a run is in the middle of one long step (a sort,
//! a JSON text of megabytes), its thread is late, and another one takes its place in the meantime. So
//! at most `threads` slices are on time, and no run waits for a step of another one. A late thread gives
//! way to the others where there are any, and then ends with its slice.

use super::executor::{Driven, Start};
use super::life::Life;
use super::{Refused, refused};
use crate::priority::Thread;
use agentscript::{Event, Outcome, Progress, ScriptCache};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a run goes on before others have their turn.
pub const SLICE: Duration = Duration::from_millis(5);
/// A slice that takes longer than this is late.
const LATE: Duration = Duration::from_millis(8);
/// How long the thread of a late slice has a processor until it gives way to others. On a busy machine a slice is
/// late without having had one.
const LONG: Duration = Duration::from_millis(10);
/// How often slices are looked at while there are any.
const LOOK: Duration = Duration::from_millis(2);
/// Looks without any slice after which the watch goes to sleep.
const QUIET: u32 = 50;
/// Threads that may be late at the same time; further ones make others wait.
const MOST_LATE: usize = 64;
/// How many turns in a row go to runs that come from outside while others, cut off by the end of their
/// slice, wait too: what is short stays short, and what is long goes on.
const IN_A_ROW: u32 = 3;
/// Native stack of a script thread. Scripts themselves need none; parsing and printing nest.
pub const STACK: usize = 16 * 1024 * 1024;

/// Scripts that were compiled: agents repeat themselves, and loops around them even more.
pub static SCRIPTS: LazyLock<ScriptCache> = LazyLock::new(ScriptCache::default);

/// What a thread does next for a run.
pub enum Task {
    /// Compile and start.
    Begin(Box<Start>),
    /// Go on.
    Resume(Driven, Vec<Event>),
}

/// How far a task has come: as far as it can go alone.
pub enum Step {
    /// The run waits for tools, or is done.
    Went(Driven, Progress),
    /// There is no run (any more).
    Ended(Box<Outcome>),
}

struct Job {
    task: Task,
    life: Arc<Life>,
    answer: oneshot::Sender<Step>,
}

/// Tasks in their order. The threads end with it.
pub struct Queue(Arc<Shared>);

struct Shared {
    threads: usize,
    watchdog: Duration,
    stack: usize,
    state: Mutex<State>,
    /// There is a job.
    more: Condvar,
    /// There is a slice to be watched.
    watch: Condvar,
}

#[derive(Default)]
struct State {
    /// Runs that come from outside: new ones, and those whose tools have answered.
    fresh: VecDeque<Job>,
    /// Runs that were cut off by the end of their slice.
    worn: VecDeque<Job>,
    /// Turns of fresh runs since a worn one had its turn.
    in_a_row: u32,
    /// Slices under way, by number.
    slices: BTreeMap<u64, Slice>,
    slice_number: u64,
    /// How many of them are not late.
    on_time: usize,
    /// Threads, and how many of them have no slice.
    workers: usize,
    free: usize,
    /// Whether there is a thread that watches, and whether it is awake.
    watched: bool,
    watching: bool,
    closed: bool,
}

struct Slice {
    thread: Thread,
    began: Instant,
    late: bool,
    /// How long its thread had a processor when it was found late.
    spent: Option<Duration>,
    /// Whether its thread gives way to others.
    lowered: bool,
    /// Who waits for its end; absent: it was given up.
    answer: Option<oneshot::Sender<Step>>,
}

impl Slice {
    /// Whether its thread has had a processor for long since it was found late.
    fn is_long(&self) -> bool {
        let spent = self.spent.zip(self.thread.processor_time());
        spent.is_some_and(|(before, now)| now.saturating_sub(before) > LONG)
    }
}

impl Queue {
    /// A queue for `threads` slices at a time. One that holds its thread for longer than `watchdog` is
    /// given up. Threads are started when they are needed.
    pub fn new(threads: usize, watchdog: Duration) -> Self {
        Self::with_stack(threads, watchdog, STACK)
    }

    pub(super) fn with_stack(threads: usize, watchdog: Duration, stack: usize) -> Self {
        let (state, more, watch) = (Mutex::default(), Condvar::new(), Condvar::new());
        Self(Arc::new(Shared { threads, watchdog, stack, state, more, watch }))
    }

    /// Do a task; other tasks have their turns in between.
    pub async fn run(&self, task: Task, life: Arc<Life>) -> Step {
        let (answer, answered) = oneshot::channel();
        if let Err(error) = self.0.push(Job { task, life, answer }) {
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
        let jobs = (std::mem::take(&mut state.fresh), std::mem::take(&mut state.worn));
        drop(state);
        drop(jobs);
        self.0.more.notify_all();
        self.0.watch.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, job: Job) -> std::io::Result<()> {
        let mut state = self.lock();
        state.fresh.push_back(job);
        if let Err(error) = self.staff(&mut state)
            && state.workers == 0
        {
            let jobs = std::mem::take(&mut state.fresh);
            drop(state);
            drop(jobs);
            return Err(error);
        }
        self.more.notify_one();
        Ok(())
    }

    /// See that there is a thread for a job that may have its turn now.
    fn staff(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        if !state.watched {
            self.start("script-watch", watch)?;
            (state.watched, state.watching) = (true, true);
        }
        let waiting = !state.fresh.is_empty() || !state.worn.is_empty();
        if waiting && state.free == 0 && state.on_time < self.threads && state.workers < self.threads + MOST_LATE {
            self.start("script", work)?;
            state.workers += 1;
            state.free += 1;
        }
        Ok(())
    }

    /// See that there is a thread in place of one that is late, or has ended.
    fn replace(self: &Arc<Self>, state: &mut State) {
        if let Err(error) = self.staff(state) {
            tracing::warn!(%error, "no thread could be started in place of one that is late");
        }
    }

    fn start(self: &Arc<Self>, name: &str, body: fn(&Arc<Self>)) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name(name.into()).stack_size(self.stack);
        thread.spawn(move || body(&shared)).map(drop)
    }
}

impl State {
    /// The job whose turn it is.
    fn take(&mut self) -> Option<Job> {
        if (self.worn.is_empty() || self.in_a_row < IN_A_ROW)
            && let Some(job) = self.fresh.pop_front()
        {
            self.in_a_row += 1;
            return Some(job);
        }
        self.in_a_row = 0;
        self.worn.pop_front().or_else(|| self.fresh.pop_front())
    }

    fn begin(&mut self, answer: oneshot::Sender<Step>) -> u64 {
        self.slice_number += 1;
        let (thread, began) = (Thread::current(), Instant::now());
        let slice = Slice { thread, began, late: false, spent: None, lowered: false, answer: Some(answer) };
        self.slices.insert(self.slice_number, slice);
        self.on_time += 1;
        self.free -= 1;
        self.slice_number
    }

    /// A slice has ended. Gives whether its thread gives way to others, and who waits for it.
    fn end(&mut self, number: u64) -> (bool, Option<oneshot::Sender<Step>>) {
        self.free += 1;
        let Some(slice) = self.slices.remove(&number) else { return (false, None) };
        if !slice.late {
            self.on_time -= 1;
        }
        (slice.lowered, slice.answer)
    }
}

/// A thread that runs slices.
fn work(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    while !state.closed {
        if state.on_time < shared.threads
            && let Some(Job { task, life, answer }) = state.take()
        {
            // Nobody waits any more: the run is dropped here.
            if answer.is_closed() {
                drop(state);
                drop((task, life));
                state = shared.lock();
                continue;
            }
            let number = state.begin(answer);
            if !state.watching {
                shared.watch.notify_one();
            }
            drop(state);
            let step = catch_unwind(AssertUnwindSafe(|| slice(task, &life)))
                .unwrap_or_else(|_| Step::Ended(Box::new(Refused::crashed().into())));
            let (lowered, answer) = shared.lock().end(number);
            match (step, answer) {
                (Step::Went(run, Progress::Yielded), Some(answer)) => {
                    let job = Job { task: Task::Resume(run, Vec::new()), life, answer };
                    shared.lock().worn.push_back(job);
                }
                (step, answer) => {
                    // First its place: whoever hears of the end may come back at once.
                    drop(life);
                    drop(answer.map(|answer| answer.send(step)));
                }
            }
            state = shared.lock();
            // It cannot get its priority back.
            if lowered {
                break;
            }
        } else if state.free > shared.threads {
            // It has stood in for one that was late.
            break;
        } else {
            state = shared.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
    state.workers -= 1;
    state.free -= 1;
    // What it leaves, its own run perhaps, is for another one.
    if !state.closed {
        shared.replace(&mut state);
        shared.more.notify_one();
    }
}

/// The thread that looks whether others are late.
fn watch(shared: &Arc<Shared>) {
    let mut state = shared.lock();
    let mut quiet = 0;
    while !state.closed {
        if quiet > QUIET {
            state.watching = false;
            state = shared.watch.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.watching = true;
        }
        state = shared.watch.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        quiet = if state.slices.is_empty() { quiet + 1 } else { 0 };
        let now = Instant::now();
        let (mut late, mut lost) = (0, Vec::new());
        let alone = state.slices.len() + state.fresh.len() + state.worn.len() <= 1;
        for slice in state.slices.values_mut() {
            let took = now.saturating_duration_since(slice.began);
            if took > LATE && !slice.late {
                slice.late = true;
                slice.spent = slice.thread.processor_time();
                late += 1;
            } else if slice.late && !slice.lowered && !alone && slice.is_long() {
                slice.lowered = true;
                slice.thread.lower();
            }
            if took > shared.watchdog {
                lost.extend(slice.answer.take());
            }
        }
        state.on_time -= late;
        for _ in 0..late {
            shared.replace(&mut state);
            shared.more.notify_one();
        }
        for answer in lost {
            tracing::error!("a slice of a script does not end; its thread is given up");
            let message = format!(
                "The script did not let go of its thread for {} ms and was given up; this is a bug in CodeCall",
                shared.watchdog.as_millis()
            );
            drop(answer.send(Step::Ended(Box::new(refused("WORKER_TIMEOUT", message)))));
        }
    }
}

/// Let a run go on until it waits, is done, or its slice is over.
fn slice(task: Task, life: &Life) -> Step {
    let (mut run, mut events) = match task {
        Task::Begin(start) => {
            #[cfg(test)]
            super::tests::misbehave(&start.script);
            match start.start(&life.stop) {
                Ok(run) => (run, Vec::new()),
                Err(outcome) => return Step::Ended(outcome),
            }
        }
        Task::Resume(run, events) => (run, events),
    };
    if life.cancel.is_cancelled() {
        events.push(Event::Cancel);
    }
    let mut progress = run.resume(events, &life.cancel);
    life.heard(run.take_messages());
    if !matches!(progress, Progress::Done(_)) {
        life.used(&run);
        // What has happened in this slice may have been too much.
        if life.cancel.is_cancelled() {
            progress = run.resume(vec![Event::Cancel], &life.cancel);
        }
    }
    Step::Went(run, progress)
}
