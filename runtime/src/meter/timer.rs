//! The limits of time of a run, and when its slice is over.

use crate::interface::error_code::ErrorCode;
use crate::interface::host::Clock;
use crate::interface::limits::Limits;
use crate::interface::outcome::Failure;
use crate::value::thrown::{Result, Thrown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The clock, slice and limits of time of a run.
pub struct Timer {
    /// The clock of the host.
    pub clock: Arc<dyn Clock>,
    /// How long a slice may take; absent: as long as the limits allow.
    pub slice: Option<Duration>,
    /// Set by others when nobody wants the result any more.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// Whether the slice is over and the next pause point has to pause.
    pub slice_over: bool,
    /// Steps at the last look at the clock.
    pub looked_at: u64,
    /// Milliseconds since the run began, as the script sees them where time does not flow by itself.
    pub virtual_now: u64,
    /// When the run began.
    began: Duration,
    /// When the present slice began.
    resumed: Duration,
    /// Script time before the present slice.
    spent: Duration,
}

impl Timer {
    /// The timer of a run that has not begun.
    pub fn new(clock: Arc<dyn Clock>, slice: Option<Duration>) -> Self {
        Self {
            clock,
            slice,
            cancelled: None,
            slice_over: false,
            looked_at: 0,
            virtual_now: 0,
            began: Duration::ZERO,
            resumed: Duration::ZERO,
            spent: Duration::ZERO,
        }
    }

    /// The run begins, or its time is counted anew.
    pub fn begin(&mut self) {
        (self.spent, self.began) = (Duration::ZERO, self.clock.monotonic());
    }

    /// A slice begins.
    pub fn resume(&mut self) {
        self.resumed = self.clock.monotonic();
    }

    /// The slice has ended.
    pub fn suspend(&mut self) {
        self.spent = self.script_time();
    }

    /// Time in which the script was executed.
    pub fn script_time(&self) -> Duration {
        self.spent + self.clock.monotonic().saturating_sub(self.resumed)
    }

    /// Time since the run began, what it waited for included.
    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }

    /// When the run began.
    pub fn began(&self) -> Duration {
        self.began
    }

    /// When the run must have ended.
    pub fn deadline(&self, limits: &Limits) -> Duration {
        self.began + Duration::from_millis(limits.max_duration_ms.saturating_add(1))
    }

    /// Check the limits of time, whether somebody has cancelled the run, and whether the slice is over.
    pub fn check(&mut self, limits: &Limits) -> Result<()> {
        if self.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Thrown::stop(cancelled()));
        }
        let now = self.clock.monotonic();
        let slice = now.saturating_sub(self.resumed);
        if self.spent + slice > Duration::from_millis(limits.timeout_ms) {
            return Err(timed_out(limits.timeout_ms));
        }
        if now.saturating_sub(self.began) > Duration::from_millis(limits.max_duration_ms) {
            return Err(timed_out(limits.max_duration_ms));
        }
        if self.virtual_now > limits.max_duration_ms {
            return Err(timed_out(limits.max_duration_ms));
        }
        if self.slice.is_some_and(|limit| slice >= limit) {
            self.slice_over = true;
        }
        Ok(())
    }
}

/// The end of a run that nobody wants the result of any more.
#[cold]
pub fn cancelled() -> Failure {
    Failure::from_code(ErrorCode::ExecutionAborted, "The run was cancelled")
}

/// The end of a run at a limit of time.
#[cold]
pub fn timed_out(limit_ms: u64) -> Thrown {
    Thrown::stop(Failure::from_code(ErrorCode::Timeout, format!("Script execution timed out after {limit_ms}ms")))
}
