//! The workers of a process: some wait for runs, more are started when there are more runs, and those
//! that have had many runs or have grown are replaced.

use super::process::{NotReady, Worker};
use super::serve::Confinement;
use crate::Refused;
use agentscript::Limits;
use codecall_base::sandbox::{self, Protections};
use codecall_base::tool::ErrorCode;
use codecall_config::IsolationConfig;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time of scripts after which a worker is replaced, in milliseconds.
const MOST_SCRIPT_MS: f64 = 1_800_000.0;
/// Growth of the resident memory after which it is replaced, in bytes.
const MOST_GROWTH: u64 = 64 * 1024 * 1024;
/// How long workers are kept that are more than should wait.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Bytes of addresses that the interpreter gets at once for a large list, at most.
const MOST_ADDRESSES: u64 = 1 << 30;
/// Such lists that there may be at a time: those of a JSON text that is read, and one more.
const LARGE_LISTS: u64 = 4;

/// The workers of a process, shared by all that run scripts.
#[derive(Clone)]
pub struct Workers(Arc<Shared>);

struct Shared {
    config: IsolationConfig,
    /// How many workers there are at all times.
    always: usize,
    /// What the limits of most runs need.
    usual: Confinement,
    walls: Protections,
    idle: Mutex<Vec<Worker>>,
    /// Workers that have a run.
    taken: AtomicUsize,
    wishes: Sender<Wish>,
    closed: AtomicBool,
    lost: AtomicU64,
}

/// A worker that is wanted.
struct Wish {
    confinement: Confinement,
    by: Wisher,
}

enum Wisher {
    /// By a run that waits for it.
    Run(Sender<std::io::Result<Worker>>),
    /// By the pool, for the next run.
    Pool(Weak<Shared>),
}

impl Workers {
    /// Start the first worker, and see that it can be confined as the configuration says. `always` is how many
    /// workers there are at all times.
    ///
    /// # Errors
    /// It cannot.
    pub fn start(config: &IsolationConfig, always: usize, limits: &Limits) -> Result<Self, String> {
        let program: PathBuf = match &config.program {
            Some(program) => program.clone(),
            // What runs now, even where another version has taken its place on the disk.
            None if cfg!(target_os = "linux") => "/proc/self/exe".into(),
            None => std::env::current_exe().map_err(|error| error.to_string())?,
        };
        let usual = Confinement {
            strictness: config.confine,
            memory_bytes: memory_of(config, limits),
            // What is left when a worker would be replaced has to be enough for any run.
            cpu_seconds: 3_600_u64.saturating_add(limits.timeout_ms.saturating_mul(2) / 1_000),
            warm: true,
        };
        let (wishes, wished) = channel();
        let starter = std::thread::Builder::new().name("worker-start".into());
        // Workers die with the thread that has started them: one starts them all, and lives as long as the pool.
        starter.spawn(move || grant(&program, &wished)).map_err(|error| error.to_string())?;
        let mut first = start(&wishes, usual).map_err(|error| error.to_string())?;
        let walls = first.ready().map_err(|NotReady { problem, .. }| problem)?;
        let workers = Self(Arc::new(Shared {
            config: config.clone(),
            always,
            usual,
            walls,
            idle: Mutex::new(vec![first]),
            taken: AtomicUsize::new(0),
            wishes,
            closed: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        }));
        workers.wish();
        Ok(workers)
    }

    /// What holds for a worker.
    pub fn walls(&self) -> Protections {
        self.0.walls
    }

    /// Workers that were lost in the middle of a run.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// End all workers that have no run; the others end with theirs.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        let idle = std::mem::take(&mut *self.0.idle());
        drop(idle);
    }

    /// A worker for a run with such limits.
    ///
    /// # Errors
    /// None can be started.
    pub(super) fn take(&self, limits: &Limits) -> Result<Worker, NoWorker> {
        let memory_bytes = memory_of(&self.0.config, limits).max(self.0.usual.memory_bytes);
        let mut found = self.idle_one(memory_bytes);
        if found.is_none() {
            let confinement = Confinement { memory_bytes, warm: false, ..self.0.usual };
            found = Some(start(&self.0.wishes, confinement).map_err(|error| NoWorker::from(error.to_string()))?);
        }
        let Some(mut worker) = found else { return Err(NoWorker { refused: Refused::disposed(), was_killed: false }) };
        worker.used = Instant::now();
        worker.ready()?;
        self.0.taken.fetch_add(1, Ordering::AcqRel);
        self.refill();
        Ok(worker)
    }

    /// One that waits and has memory enough. Those that somebody has ended meanwhile are forgotten.
    fn idle_one(&self, memory_bytes: u64) -> Option<Worker> {
        let mut idle = self.0.idle();
        idle.retain_mut(Worker::is_alive);
        // The one that was used last has the most in its caches.
        let at = idle.iter().rposition(|worker| worker.memory_bytes >= memory_bytes)?;
        Some(idle.remove(at))
    }

    /// A worker whose run has ended in good order.
    pub(super) fn give_back(&self, worker: Worker) {
        let shared = &self.0;
        shared.taken.fetch_sub(1, Ordering::AcqRel);
        let grown = |now: u64| worker.resident.is_some_and(|before| now > before.saturating_add(MOST_GROWTH));
        let is_worn = worker.runs >= shared.config.max_runs_per_worker
            || worker.script_ms > MOST_SCRIPT_MS
            || worker.memory_bytes > shared.usual.memory_bytes
            || sandbox::resident_memory(worker.id()).is_some_and(grown);
        if is_worn {
            drop(worker);
            self.refill();
        } else {
            shared.keep(worker);
        }
    }

    /// A worker was lost in the middle of a run.
    pub(super) fn forget(&self, worker: Worker) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
        self.give_up(worker);
    }

    /// A worker whose run nobody wants any more.
    pub(super) fn give_up(&self, worker: Worker) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        drop(worker);
        self.refill();
    }

    /// See that there are as many as should be.
    fn refill(&self) {
        if self.0.has_too_few() {
            self.wish();
        }
    }

    /// One more, unless there are enough when its turn comes.
    fn wish(&self) {
        let shared = &self.0;
        let by = Wisher::Pool(Arc::downgrade(shared));
        // Without the thread no worker is started, which the next run is told.
        let _ = shared.wishes.send(Wish { confinement: shared.usual, by });
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are fewer workers, with and without a run, than the configuration says.
    fn has_too_few(&self) -> bool {
        let all = self.idle().len() + self.taken.load(Ordering::Acquire);
        !self.closed.load(Ordering::Acquire) && all < self.always
    }

    /// Keep a worker for the next run.
    fn keep(&self, worker: Worker) {
        let mut idle = self.idle();
        if !self.closed.load(Ordering::Acquire) {
            idle.push(worker);
        } else {
            drop(idle);
            drop(worker);
        }
    }

    /// Let go of those that were needed when there were more runs.
    fn shrink(&self) {
        let mut surplus = Vec::new();
        let mut idle = self.idle();
        // Those that were not used for the longest time come first.
        while idle.len() > self.always && idle[0].used.elapsed() > PATIENCE {
            surplus.push(idle.remove(0));
        }
        drop(idle);
        drop(surplus);
    }
}

/// Start a worker, by the thread that starts them, and wait for it.
fn start(wishes: &Sender<Wish>, confinement: Confinement) -> std::io::Result<Worker> {
    let (give, given) = channel();
    let gone = || std::io::Error::other("nothing starts workers any more");
    wishes.send(Wish { confinement, by: Wisher::Run(give) }).map_err(|_| gone())?;
    given.recv().map_err(|_| gone())?
}

/// The thread that starts workers, and lets go of them, as long as there is a pool.
fn grant(program: &Path, wished: &Receiver<Wish>) {
    let mut of = Weak::<Shared>::new();
    loop {
        let Wish { confinement, by } = match wished.recv_timeout(LOOK) {
            Ok(wish) => wish,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(pool) = of.upgrade() {
                    pool.shrink();
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match by {
            // Nobody may wait any more: the worker ends.
            Wisher::Run(give) => drop(give.send(Worker::start(program, confinement))),
            Wisher::Pool(pool) => {
                of = pool;
                // It may have been filled since.
                let Some(pool) = of.upgrade().filter(|pool| pool.has_too_few()) else { continue };
                match Worker::start(program, confinement) {
                    Ok(worker) => pool.keep(worker),
                    Err(error) => tracing::error!(%error, "a worker cannot be started"),
                }
            }
        }
    }
}

/// Memory of a worker for a run with such limits: as much again for code, for what is on its way, and for
/// the holes between; and the addresses of large lists, behind which there is no memory until they are
/// written to. The run's own account ends it long before.
fn memory_of(config: &IsolationConfig, limits: &Limits) -> u64 {
    let most = limits.max_memory_bytes;
    let addresses = most.min(MOST_ADDRESSES).saturating_mul(LARGE_LISTS);
    let needed = most.saturating_mul(2).saturating_add(96 * 1024 * 1024).saturating_add(addresses);
    config.max_memory_bytes.unwrap_or(needed)
}

/// Why a run gets no worker.
pub(super) struct NoWorker {
    pub refused: Refused,
    /// Whether there was one, which somebody has killed.
    pub was_killed: bool,
}

impl From<NotReady> for NoWorker {
    fn from(NotReady { problem, was_killed }: NotReady) -> Self {
        Self { was_killed, ..problem.into() }
    }
}

impl From<String> for NoWorker {
    fn from(problem: String) -> Self {
        tracing::error!("a worker does not start: {problem}");
        let message = "No process could be started to run the script; the server's log says why";
        Self { refused: Refused::new(ErrorCode::WorkerStartupFailed, message), was_killed: false }
    }
}
