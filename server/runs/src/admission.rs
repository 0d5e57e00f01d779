//! Admission control: a fixed number of permits, and a bounded queue for them.

use codecall_base::tool::ErrorCode;
use codecall_config::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Why work was not admitted, or did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// `QUEUE_FULL`, `QUEUE_TIMEOUT`, `POOL_DISPOSED`, `EXECUTION_ABORTED`, `WORKER_CRASHED`,
    /// `WORKER_STARTUP_FAILED`.
    pub code: ErrorCode,
    /// The message for people and models.
    pub message: String,
}

impl Refused {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn no_thread(error: &std::io::Error) -> Self {
        tracing::error!(%error, "a script thread cannot be started");
        Self::new(
            ErrorCode::WorkerStartupFailed,
            "No thread could be started to run the script; the machine is short of resources",
        )
    }

    pub fn crashed() -> Self {
        Self::new(
            ErrorCode::WorkerCrashed,
            "The interpreter crashed while running this script; this is a bug in CodeCall",
        )
    }

    pub fn disposed() -> Self {
        Self::new(ErrorCode::PoolDisposed, "The server is shutting down")
    }
}

/// Permits with a queue, which is limited in length and in waiting time.
pub struct Admission {
    permits: Arc<Semaphore>,
    queued: AtomicUsize,
    max_queue: usize,
    queue_timeout: Duration,
    closed: CancellationToken,
}

impl Admission {
    /// Creates `permits`, with a queue of the size and timeout of the pool.
    pub fn new(permits: usize, pool: &Pool) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            queued: AtomicUsize::new(0),
            max_queue: pool.max_queue,
            queue_timeout: pool.queue_timeout,
            closed: CancellationToken::new(),
        }
    }

    /// Refuses all requests from now on, those in the queue included.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Returns the token that [`Admission::close`] cancels.
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Acquires a permit, which is returned when it is dropped.
    ///
    /// # Errors
    /// The queue is full, the wait is longer than its timeout, the admission is closed, or `cancel` is cancelled.
    pub async fn enter(&self, cancel: &CancellationToken) -> Result<OwnedSemaphorePermit, Refused> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Refused::disposed()),
            () = cancel.cancelled() => {
                Err(Refused::new(ErrorCode::ExecutionAborted, "The execution was cancelled before it began"))
            }
            permit = self.acquire() => permit,
        }
    }

    /// Acquires a permit, however long that takes and however many wait.
    ///
    /// # Errors
    /// The admission is closed.
    pub async fn wait(&self) -> Result<OwnedSemaphorePermit, Refused> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Refused::disposed()),
            permit = Arc::clone(&self.permits).acquire_owned() => permit.map_err(|_| Refused::disposed()),
        }
    }

    async fn acquire(&self) -> Result<OwnedSemaphorePermit, Refused> {
        if let Some(permit) = self.try_acquire() {
            return Ok(permit);
        }
        let max_queue = self.max_queue;
        let _position = QueuePosition::new(&self.queued, max_queue).ok_or_else(|| {
            Refused::new(ErrorCode::QueueFull, format!("{max_queue} scripts are waiting already; try again later"))
        })?;
        match tokio::time::timeout(self.queue_timeout, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Refused::disposed()),
            Err(_) => {
                let waited = self.queue_timeout.as_millis();
                let message = format!("The script waited {waited} ms for its turn; try again later");
                Err(Refused::new(ErrorCode::QueueTimeout, message))
            }
        }
    }

    /// Returns how many permits are available, and how many requests wait for one.
    pub fn load(&self) -> (usize, usize) {
        (self.permits.available_permits(), self.queued.load(Ordering::Acquire))
    }

    /// Acquires a permit without waiting; `None` if all are in use.
    pub fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }
}

/// A position in the queue, which is free again when it is dropped.
struct QueuePosition<'a>(&'a AtomicUsize);

impl<'a> QueuePosition<'a> {
    /// Takes a position; `None` if all `max` are taken.
    fn new(queued: &'a AtomicUsize, max: usize) -> Option<Self> {
        let taken =
            queued.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count < max).then_some(count + 1));
        taken.ok().map(|_| Self(queued))
    }
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
