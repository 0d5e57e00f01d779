//! The runs that this process evaluates.

use super::Durable;
use codecall_store::Hold;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// A run that this process evaluates, as all its parts see it.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) hold: Hold,
    /// Cancelled when somebody cancels the run, and when it is lost.
    pub(super) cancel: CancellationToken,
    /// Whether it is in the store and this process has it there.
    pub(super) is_stored: AtomicBool,
    /// Whether another process has taken it over. Nothing that happens here counts any more.
    pub(super) is_lost: AtomicBool,
}

impl Open {
    pub(super) fn new(hold: Hold, cancel: CancellationToken) -> Arc<Self> {
        Arc::new(Self { hold, cancel, is_stored: AtomicBool::new(false), is_lost: AtomicBool::new(false) })
    }

    /// Ends the evaluation of a run that another process has taken over.
    pub(super) fn lose(&self) {
        if !self.is_lost.swap(true, Ordering::Relaxed) {
            tracing::warn!(run = self.hold.id, "another process has taken the run over, so it ends here");
            self.cancel.cancel();
        }
    }

    /// Whether somebody has cancelled the run.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled() && !self.is_lost.load(Ordering::Relaxed)
    }
}

/// A run that this process evaluates. When it is dropped, another process may take the run over, unless it has ended.
pub struct OpenRun {
    pub(super) durable: Arc<Durable>,
    pub(super) open: Arc<Open>,
    pub(super) has_ended: bool,
}

impl OpenRun {
    /// Returns the id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.open.hold.id
    }

    /// Returns what is cancelled when somebody cancels the run, and when another process has taken it over.
    #[must_use]
    pub fn cancel(&self) -> CancellationToken {
        self.open.cancel.clone()
    }

    /// Whether somebody has cancelled the run.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.open.is_cancelled()
    }

    /// Notes that the run has ended or has been let go of.
    pub fn ended(mut self) {
        self.has_ended = true;
    }
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        let (durable, open) = (Arc::clone(&self.durable), Arc::clone(&self.open));
        match tokio::runtime::Handle::try_current() {
            // In this order: this process must not take it over before it has let go of it. If it cannot, it no longer
            // renews the lease.
            Ok(runtime) if !self.has_ended => drop(runtime.spawn(async move {
                if let Err(error) = durable.journals.release(&durable.lease, &open.hold).await {
                    tracing::warn!(run = open.hold.id, "{error}");
                }
                durable.close_run(&open);
            })),
            Ok(_) | Err(_) => durable.close_run(&open),
        }
    }
}
