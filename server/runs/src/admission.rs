//! Admission of what needs a thread: so many permits, and a bounded queue of those who wait for one.

use codecall_base::tool::ErrorCode;
use codecall_config::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Why something was not let in, or did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// `QUEUE_FULL`, `QUEUE_TIMEOUT`, `POOL_DISPOSED`, `EXECUTION_ABORTED`, `WORKER_CRASHED`,
    /// `WORKER_STARTUP_FAILED`.
    pub code: ErrorCode,
    /// For people and models.
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

/// Permits with a queue in front of them, bounded in length and in time.
pub struct Admission {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    patience: Duration,
    closed: CancellationToken,
}

impl Admission {
    pub fn new(permits: usize, pool: &Pool) -> Self {
        Self {
            free: Arc::new(Semaphore::new(permits)),
            waiting: AtomicUsize::new(0),
            most_waiting: pool.max_queue,
            patience: pool.queue_timeout,
            closed: CancellationToken::new(),
        }
    }

    /// Let nobody in any more.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Fires when nobody is let in any more.
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// One of the permits, now or in time; given back when dropped.
    pub async fn enter(&self, cancel: &CancellationToken) -> Result<OwnedSemaphorePermit, Refused> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Refused::disposed()),
            () = cancel.cancelled() => {
                Err(Refused::new(ErrorCode::ExecutionAborted, "The execution was cancelled before it began"))
            }
            permit = self.take() => permit,
        }
    }

    async fn take(&self) -> Result<OwnedSemaphorePermit, Refused> {
        if let Some(permit) = self.try_take() {
            return Ok(permit);
        }
        let most = self.most_waiting;
        let _waiting = Waiting::join(&self.waiting, most).ok_or_else(|| {
            Refused::new(ErrorCode::QueueFull, format!("{most} scripts are waiting already; try again later"))
        })?;
        match tokio::time::timeout(self.patience, Arc::clone(&self.free).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Refused::disposed()),
            Err(_) => {
                let waited = self.patience.as_millis();
                let message = format!("The script waited {waited} ms for its turn; try again later");
                Err(Refused::new(ErrorCode::QueueTimeout, message))
            }
        }
    }

    /// A permit that nobody has at the moment.
    pub fn try_take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}

/// A position in the queue, given back when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        let joined =
            count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count < most).then_some(count + 1));
        joined.ok().map(|_| Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
