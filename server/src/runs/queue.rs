//! The threads that run scripts, and the queue in front of them.

use super::{Happening, Watcher, refused};
use agentscript::{CompileOptions, Dialect, Event, Inputs, Language, Outcome, Policy, Progress, Run, ScriptCache};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError, Weak};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Native stack of a script thread. Scripts themselves need none; parsing and printing nest.
const STACK: usize = 16 * 1024 * 1024;

/// Scripts that were compiled: agents repeat themselves, and loops around them even more.
static SCRIPTS: LazyLock<ScriptCache> = LazyLock::new(ScriptCache::default);

/// What a thread does next for a run.
pub enum Task {
    /// Compile and start.
    Begin(Box<Begin>),
    /// Go on.
    Resume(Box<Run>, Vec<Event>),
}

/// A run that has not begun.
pub struct Begin {
    pub script: String,
    pub language: Option<Language>,
    pub dialect: Dialect,
    pub policy: Policy,
    pub inputs: Inputs,
}

/// How far a task has come: as far as it can go alone.
pub enum Step {
    /// The run waits for tools, or is done.
    Went(Box<Run>, Progress),
    /// There is no run (any more).
    Ended(Box<Outcome>),
}

struct Job {
    task: Task,
    watcher: Watcher,
    cancel: CancellationToken,
    answer: oneshot::Sender<Step>,
}

/// Tasks in their order.
pub struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    more: Condvar,
}

impl Queue {
    /// Start `threads` threads; they end when the queue is dropped.
    pub fn start(threads: usize) -> Arc<Self> {
        let queue = Arc::new(Self { jobs: Mutex::default(), more: Condvar::new() });
        for number in 0..threads {
            let weak = Arc::downgrade(&queue);
            let thread = std::thread::Builder::new().name(format!("script-{number}")).stack_size(STACK);
            if let Err(error) = thread.spawn(move || work(&weak)) {
                tracing::error!(%error, "a script thread cannot be started");
            }
        }
        queue
    }

    /// Do a task; other tasks have their turns in between.
    pub async fn run(&self, task: Task, watcher: Watcher, cancel: CancellationToken) -> Step {
        let (answer, answered) = oneshot::channel();
        self.push(Job { task, watcher, cancel, answer });
        match answered.await {
            Ok(step) => step,
            Err(_) => Step::Ended(Box::new(refused("WORKER_CRASHED", "The script thread has ended"))),
        }
    }

    fn push(&self, job: Job) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
        self.more.notify_one();
    }

    /// The next job, waited for at most a while so that a thread sees the end of the queue.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_empty() {
            jobs = self
                .more
                .wait_timeout(jobs, std::time::Duration::from_millis(500))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        jobs.pop_front()
    }
}

fn work(queue: &Weak<Queue>) {
    while let Some(queue) = queue.upgrade() {
        let Some(job) = queue.next() else { continue };
        let Job { task, watcher, cancel, answer } = job;
        // Nobody waits any more: the run is dropped here.
        if answer.is_closed() {
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| slice(task, &watcher, &cancel))) {
            Ok(Step::Went(run, Progress::Yielded)) => {
                let events = if cancel.is_cancelled() { vec![Event::Cancel] } else { Vec::new() };
                queue.push(Job { task: Task::Resume(run, events), watcher, cancel, answer });
            }
            Ok(step) => drop(answer.send(step)),
            Err(_) => {
                let outcome = refused(
                    "WORKER_CRASHED",
                    "The interpreter crashed while running this script; this is a bug in CodeCall",
                );
                drop(answer.send(Step::Ended(Box::new(outcome))));
            }
        }
    }
}

fn slice(task: Task, watcher: &Watcher, cancel: &CancellationToken) -> Step {
    let (mut run, events) = match task {
        Task::Begin(begin) => {
            let Begin { script, language, dialect, policy, inputs } = *begin;
            let options = CompileOptions { language, dialect, ..CompileOptions::of(&policy) };
            match SCRIPTS.compile(&script, &options) {
                Ok(script) => (
                    Box::new(script.start(inputs, &policy)),
                    if cancel.is_cancelled() { vec![Event::Cancel] } else { Vec::new() },
                ),
                Err(error) => return Step::Ended(Box::new(Outcome::not_compiled(error.failure))),
            }
        }
        Task::Resume(run, events) => (run, events),
    };
    let progress = run.resume(events);
    let messages = run.take_messages();
    if let Some(watcher) = watcher {
        messages.into_iter().for_each(|message| watcher(Happening::Message(message)));
    }
    Step::Went(run, progress)
}
