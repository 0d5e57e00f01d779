//! The clock of the store: what leases, times at which runs go on, expiry, and the order of history are measured with.
//!
//! The time of day of a server may be set, and differ from that of others. The clock of a file advances with the time
//! since the machine was started, which nobody sets and all its processes share. The first process that opens the file
//! after the start of the machine notes how far the time of day was ahead. The clock of Postgres is that of its server.
//! It is read with each
//! connection, and advances with the time since this machine was started in between.

use std::sync::atomic::{AtomicI64, Ordering};

/// How often a file notes the time that its clock shows, in microseconds.
pub const NOTED_US: i64 = 60_000_000;

/// The clock of a store, in this process.
#[derive(Debug)]
pub struct Clock {
    /// How far the store is ahead of the time since the machine was started, in microseconds.
    ahead_us: AtomicI64,
}

impl Clock {
    /// A clock that shows the time of day until the store is opened.
    pub fn new() -> Self {
        Self { ahead_us: AtomicI64::new(crate::now_us() - uptime_us()) }
    }

    /// Returns the time, in microseconds since 1970.
    pub fn now_us(&self) -> i64 {
        self.ahead_us.load(Ordering::Relaxed) + uptime_us()
    }

    /// Uses what the store says.
    pub fn set_ahead(&self, ahead_us: i64) {
        self.ahead_us.store(ahead_us, Ordering::Relaxed);
    }

    /// Uses the time that the store has told between `asked` and `answered`, by [`uptime_us`].
    #[cfg(feature = "postgres")]
    pub fn set(&self, time_us: i64, asked: i64, answered: i64) {
        self.set_ahead(time_us - asked.midpoint(answered));
    }
}

/// Returns the time since the machine was started, suspended or not, in microseconds; where the system does not say, since this
/// process first asked.
pub fn uptime_us() -> i64 {
    #[cfg(target_os = "linux")]
    let us = {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        time.tv_sec.saturating_mul(1_000_000) + time.tv_nsec / 1_000
    };
    #[cfg(not(target_os = "linux"))]
    let us = {
        static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        let first = FIRST.get_or_init(std::time::Instant::now);
        i64::try_from(first.elapsed().as_micros()).unwrap_or(i64::MAX)
    };
    us
}

/// Returns what names this start of the machine; empty where the system does not say.
pub fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// Returns how far a store is ahead in this start of the machine. `known` is what it has noted: the start, how far it
/// was ahead,
/// and the last time that it is known to have shown.
pub fn ahead_us(known: Option<(&str, i64, i64)>, boot: &str) -> i64 {
    let own = crate::now_us() - uptime_us();
    match known {
        Some((of, ahead, _)) if of == boot && !boot.is_empty() => ahead,
        // A time of day that was set back does not set the store back.
        Some((_, _, seen)) => own.max(seen - uptime_us()),
        None => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_that_of_the_first_process_since_the_start() {
        let (own, hour) = (crate::now_us() - uptime_us(), 3_600_000_000);
        assert_eq!(ahead_us(Some(("a", own + hour, 0)), "a"), own + hour, "a process whose time of day is late");
        let about = |ahead: i64, expected: i64| assert!((ahead - expected).abs() < 1_000_000, "{ahead} {expected}");
        about(ahead_us(None, "a"), own);
        about(ahead_us(Some(("a", own + hour, 0)), "b"), own);
        about(ahead_us(Some(("a", own + hour, crate::now_us() + hour)), "b"), own + hour);
        let clock = Clock::new();
        clock.set_ahead(own - hour);
        about(clock.now_us(), crate::now_us() - hour);
    }
}
