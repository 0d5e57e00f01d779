//! A clock whose time the host moves, for hosts that have a clock of their own and for tests in virtual time.

use agentscript::{Clock, TimeFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock in which the script sees only the time that the host has let pass with [`Run::reach`](crate::Run::reach). The limits
/// of time count that and the real time of another clock, which measures the script's own work.
pub struct HostClock {
    real: Arc<dyn Clock>,
    began_unix_ms: f64,
    waited_ms: AtomicU64,
}

impl HostClock {
    /// A clock that stands at `unix_ms`, in milliseconds since 1970-01-01 UTC; absent: at the time of `real`.
    #[must_use]
    pub fn new(real: Arc<dyn Clock>, unix_ms: Option<f64>) -> Self {
        let began_unix_ms = unix_ms.unwrap_or_else(|| real.unix_ms());
        Self { real, began_unix_ms, waited_ms: AtomicU64::new(0) }
    }

    pub(crate) fn reach(&self, ms: u64) {
        self.waited_ms.fetch_max(ms, Ordering::Relaxed);
    }
}

impl Clock for HostClock {
    fn monotonic(&self) -> Duration {
        self.real.monotonic() + Duration::from_millis(self.waited_ms.load(Ordering::Relaxed))
    }

    fn unix_ms(&self) -> f64 {
        self.began_unix_ms
    }

    fn flow(&self) -> TimeFlow {
        TimeFlow::Events
    }
}
