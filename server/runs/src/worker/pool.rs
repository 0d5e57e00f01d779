//! The pool of worker processes: some are idle, more are started while there are more runs. A worker that has had many
//! runs or has grown is replaced.

use super::process::{NotReady, Worker};
use super::serve::Confinement;
use crate::Refused;
use agentscript::Limits;
use codecall_base::sandbox::{self, Protections};
use codecall_base::tool::{ErrorCode, ToolDirectory};
use codecall_config::IsolationConfig;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Time of scripts after which a worker is replaced, in milliseconds.
const MAX_SCRIPT_MS: f64 = 1_800_000.0;
/// Growth of the resident memory after which a worker is replaced, in bytes, beside the directories that it keeps.
const MAX_GROWTH: u64 = 64 * 1024 * 1024;
/// How long surplus workers stay idle before they are ended.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// How often that is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Memory for code, for messages and for fragmentation, in bytes.
const OVERHEAD_BYTES: u64 = 96 * 1024 * 1024;
/// Memory for directories of tools, in bytes, unless a directory needs more.
const DIRECTORY_BYTES: u64 = 128 * 1024 * 1024;
/// Memory for directories, in multiples of the size of the one that a run starts with: its message, itself, and another
/// one that the worker keeps.
const DIRECTORY_FACTOR: u64 = 6;
/// Maximum size of the address range that the interpreter reserves for one large list, in bytes.
const MAX_LIST_ADDRESSES: u64 = 1 << 30;
/// Number of such lists at a time: those of JSON text while it is parsed, and one more.
const LARGE_LISTS: u64 = 4;

/// The workers of a server, shared by all that run scripts.
#[derive(Clone)]
pub struct Workers(Arc<Shared>);

struct Shared {
    config: IsolationConfig,
    /// How many workers there are at all times.
    min_workers: usize,
    /// The confinement that the limits of the configuration need.
    confinement: Confinement,
    protections: Protections,
    idle: Mutex<Vec<Worker>>,
    /// Number of workers that have a run.
    busy: AtomicUsize,
    requests: Sender<StartRequest>,
    is_closed: AtomicBool,
    lost: AtomicU64,
}

/// A request to start a worker.
struct StartRequest {
    confinement: Confinement,
    by: Requester,
}

enum Requester {
    /// A run that waits for the worker.
    Run(Sender<std::io::Result<Worker>>),
    /// The pool, for a later run.
    Pool(Weak<Shared>),
}

impl Workers {
    /// Starts the first worker, and checks that it is confined as the configuration demands. The pool always has at least
    /// `min_workers` workers.
    ///
    /// # Errors
    /// The worker cannot be started, or cannot be confined.
    pub fn start(config: &IsolationConfig, min_workers: usize, limits: &Limits) -> Result<Self, String> {
        let program: PathBuf = match &config.program {
            Some(program) => program.clone(),
            // The running program, even if its file was replaced by another version.
            None if cfg!(target_os = "linux") => "/proc/self/exe".into(),
            None => std::env::current_exe().map_err(|error| error.to_string())?,
        };
        let confinement = Confinement {
            strictness: config.confine,
            memory_bytes: memory_limit(config, limits, 0),
            // What is left when a worker would be replaced must be enough for any run.
            cpu_seconds: 3_600_u64.saturating_add(limits.timeout_ms.saturating_mul(2) / 1_000),
            warm: true,
        };
        let (requests, receiver) = channel();
        let starter = std::thread::Builder::new().name("worker-start".into());
        // Workers are killed when the thread that has started them ends, so one thread starts all of them, and lives as
        // long as the pool.
        starter.spawn(move || start_workers(&program, &receiver)).map_err(|error| error.to_string())?;
        let mut first = start_for_run(&requests, confinement).map_err(|error| error.to_string())?;
        let protections = first.ready().map_err(|NotReady { problem, .. }| problem)?;
        let workers = Self(Arc::new(Shared {
            config: config.clone(),
            min_workers,
            confinement,
            protections,
            idle: Mutex::new(vec![first]),
            busy: AtomicUsize::new(0),
            requests,
            is_closed: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        }));
        workers.request_one();
        Ok(workers)
    }

    /// Returns the protections that are enforced for workers.
    pub fn protections(&self) -> Protections {
        self.0.protections
    }

    /// Returns the number of workers that were lost during a run.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Ends all idle workers. The others end with their runs.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        let idle = std::mem::take(&mut *self.0.idle());
        drop(idle);
    }

    /// Returns a worker for a run with these limits and this directory.
    ///
    /// # Errors
    /// No worker can be started.
    pub(super) fn acquire(&self, limits: &Limits, directory: &ToolDirectory) -> Result<Worker, AcquireError> {
        let directory_bytes = directory.to_bytes().map_or(0, <[u8]>::len);
        let memory_bytes = memory_limit(&self.0.config, limits, directory_bytes).max(self.0.confinement.memory_bytes);
        let mut worker = match self.pop_idle(memory_bytes, directory) {
            Some(worker) => worker,
            None => {
                let confinement = Confinement { memory_bytes, warm: false, ..self.0.confinement };
                start_for_run(&self.0.requests, confinement).map_err(|error| AcquireError::from(error.to_string()))?
            }
        };
        worker.last_used = Instant::now();
        worker.ready()?;
        self.0.busy.fetch_add(1, Ordering::AcqRel);
        self.refill();
        Ok(worker)
    }

    /// Takes an idle worker that has enough memory: the last one that was used, which has most in the caches of its
    /// processor, but rather one that keeps the directory. Workers that were killed in the meantime are dropped.
    fn pop_idle(&self, memory_bytes: u64, directory: &ToolDirectory) -> Option<Worker> {
        let mut idle = self.0.idle();
        idle.retain_mut(Worker::is_alive);
        let last = |keeps: bool| {
            let fits =
                |worker: &Worker| worker.memory_bytes >= memory_bytes && (!keeps || worker.keeps(directory.id()));
            idle.iter().rposition(fits)
        };
        let index = last(true).or_else(|| last(false))?;
        Some(idle.remove(index))
    }

    /// Returns a worker whose run has ended.
    pub(super) fn release(&self, worker: Worker) {
        let shared = &self.0;
        shared.busy.fetch_sub(1, Ordering::AcqRel);
        if shared.is_worn_out(&worker) {
            drop(worker);
            self.refill();
        } else {
            shared.put_back(worker);
        }
    }

    /// Ends a worker that was lost during a run.
    pub(super) fn discard_lost(&self, worker: Worker) {
        self.0.lost.fetch_add(1, Ordering::Relaxed);
        self.discard(worker);
    }

    /// Ends a worker in the middle of a run.
    pub(super) fn discard(&self, worker: Worker) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
        drop(worker);
        self.refill();
    }

    fn refill(&self) {
        if self.0.has_too_few() {
            self.request_one();
        }
    }

    /// Requests one more worker, which is started unless there are enough by then.
    fn request_one(&self) {
        let shared = &self.0;
        let by = Requester::Pool(Arc::downgrade(shared));
        // If the thread has ended, the next run gets an error.
        let _ = shared.requests.send(StartRequest { confinement: shared.confinement, by });
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are fewer workers than the configuration demands.
    fn has_too_few(&self) -> bool {
        let all = self.idle().len() + self.busy.load(Ordering::Acquire);
        !self.is_closed.load(Ordering::Acquire) && all < self.min_workers
    }

    /// Whether a worker is replaced after its run: it was started for this run alone, or has had enough.
    fn is_worn_out(&self, worker: &Worker) -> bool {
        let directories = u64::try_from(worker.directory_bytes()).unwrap_or(u64::MAX).saturating_mul(2);
        let max_growth = MAX_GROWTH.saturating_add(directories);
        let has_grown =
            |now: u64| worker.initial_resident.is_some_and(|initial| now > initial.saturating_add(max_growth));
        worker.runs >= self.config.max_runs_per_worker
            || worker.script_ms > MAX_SCRIPT_MS
            || worker.memory_bytes > self.confinement.memory_bytes
            || sandbox::resident_memory(worker.id()).is_some_and(has_grown)
    }

    /// Keeps a worker for the next run, unless the pool is closed.
    fn put_back(&self, worker: Worker) {
        let mut idle = self.idle();
        if !self.is_closed.load(Ordering::Acquire) {
            idle.push(worker);
        } else {
            drop(idle);
            drop(worker);
        }
    }

    /// Ends surplus workers that have been idle for long.
    fn shrink(&self) {
        let mut surplus = Vec::new();
        let mut idle = self.idle();
        // The first one was not used for the longest time.
        while idle.len() > self.min_workers && idle[0].last_used.elapsed() > IDLE_TIMEOUT {
            surplus.push(idle.remove(0));
        }
        drop(idle);
        drop(surplus);
    }
}

/// Starts a worker on the thread that starts workers, and waits for it.
fn start_for_run(requests: &Sender<StartRequest>, confinement: Confinement) -> std::io::Result<Worker> {
    let (sender, receiver) = channel();
    let ended = || std::io::Error::other("the thread that starts workers has ended");
    requests.send(StartRequest { confinement, by: Requester::Run(sender) }).map_err(|_| ended())?;
    receiver.recv().map_err(|_| ended())?
}

/// The thread that starts workers, and ends surplus ones, as long as there is a pool.
fn start_workers(program: &Path, requests: &Receiver<StartRequest>) {
    let mut last_pool = Weak::<Shared>::new();
    loop {
        let StartRequest { confinement, by } = match requests.recv_timeout(CHECK_INTERVAL) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(pool) = last_pool.upgrade() {
                    pool.shrink();
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match by {
            // If the run no longer waits, the worker is dropped.
            Requester::Run(sender) => drop(sender.send(Worker::start(program, confinement))),
            Requester::Pool(pool) => {
                last_pool = pool;
                // It may have been filled in the meantime.
                let Some(pool) = last_pool.upgrade().filter(|pool| pool.has_too_few()) else { continue };
                match Worker::start(program, confinement) {
                    Ok(worker) => pool.put_back(worker),
                    Err(error) => tracing::error!(%error, "a worker cannot be started"),
                }
            }
        }
    }
}

/// Returns the memory limit of a worker for runs with these limits, in bytes: twice the memory of the script, for its
/// fragmentation and for messages; the overhead; directories; and the addresses of large lists, which take no memory until
/// they are written to. The limits of the run itself end it long before.
fn memory_limit(config: &IsolationConfig, limits: &Limits, directory_bytes: usize) -> u64 {
    let script = limits.max_memory_bytes;
    let addresses = script.min(MAX_LIST_ADDRESSES).saturating_mul(LARGE_LISTS);
    let directory_bytes = u64::try_from(directory_bytes).unwrap_or(u64::MAX);
    let directories = DIRECTORY_BYTES.max(directory_bytes.saturating_mul(DIRECTORY_FACTOR));
    let needed = [script.saturating_mul(2), OVERHEAD_BYTES, directories, addresses];
    config.max_memory_bytes.unwrap_or_else(|| needed.into_iter().fold(0, u64::saturating_add))
}

/// Why a run gets no worker.
pub(super) struct AcquireError {
    pub refused: Refused,
    /// Whether there was a worker, and another process has killed it.
    pub was_killed: bool,
}

impl From<NotReady> for AcquireError {
    fn from(NotReady { problem, was_killed }: NotReady) -> Self {
        Self { was_killed, ..problem.into() }
    }
}

impl From<String> for AcquireError {
    fn from(problem: String) -> Self {
        tracing::error!("a worker does not start: {problem}");
        let message = "No process could be started to run the script; the server's log says why";
        Self { refused: Refused::new(ErrorCode::WorkerStartupFailed, message), was_killed: false }
    }
}
