//! The meter of a run: what it has used, what it may use, and charging.
//!
//! Steps are counted down from a grant of fuel. When it is used up the meter is settled: limits and clock are checked,
//! and more fuel is granted. Bytes are counted as they are allocated.

pub mod buffer;
mod charge;
pub mod cost;
pub mod timer;

pub use charge::Charge;

use crate::interface::error_code::ErrorCode;
use crate::interface::limits::Limits;
use crate::meter::timer::Timer;
use crate::meter::timer::timed_out;
use crate::value::thrown::{Result, Thrown};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Work that takes no longer than this needs no check of the clock before it.
const UNNOTICED: Duration = Duration::from_millis(1);

/// Usage and limits of a run.
pub struct Meter {
    /// Steps until the next settling; due below zero.
    pub fuel: i64,
    /// The fuel granted at the last settling.
    pub granted: i64,
    /// Steps up to the last settling.
    pub steps: u64,
    /// Loop bodies entered.
    pub iterations: u64,
    /// Bytes in use, garbage included.
    pub bytes: usize,
    /// Most bytes that were in use after a collection or at the end.
    pub peak: usize,
    /// Bytes of free entries between those that are alive, after the last collection.
    pub free_bytes: usize,
    /// A collection is due at this many bytes.
    pub collect_at: usize,
    /// The value of `collect_at` after the last collection.
    pub due: usize,
    /// Bytes of temporary memory, once there was any: see [`Hold`](crate::meter::buffer::Hold).
    temporary: OnceCell<Arc<AtomicUsize>>,
    /// Bytes of data that the host has given since it last resumed the run.
    pub given: usize,
    /// Steps at the last collection of the idle run.
    pub idle_steps: u64,
    /// Bytes of what is never freed before the run ends: property names, inputs of tool calls.
    pub kept_bytes: usize,
    /// Steps between two looks at the clock: [`GRANT`], unless a test wants fewer.
    pub interval: i64,
    /// The limits.
    pub limits: Limits,
    /// The limits of time.
    pub timer: Timer,
    /// How deep implicit calls of functions of the script by operators nest. No collection comes before they return.
    pub nesting: u32,
}

/// Steps between two looks at the clock.
pub const GRANT: i64 = 4096;

/// Below this many bytes a collection is not worthwhile.
pub const COLLECT_FIRST: usize = 1 << 20;

impl Meter {
    /// The meter of a new run.
    pub fn new(limits: Limits, timer: Timer) -> Self {
        let due = COLLECT_FIRST.min(limits.max_memory_bytes as usize / 5);
        Self {
            fuel: 0,
            granted: 0,
            steps: 0,
            iterations: 0,
            bytes: 0,
            peak: 0,
            free_bytes: 0,
            collect_at: due,
            due,
            temporary: OnceCell::new(),
            given: 0,
            idle_steps: 0,
            kept_bytes: 0,
            interval: GRANT,
            limits,
            timer,
            nesting: 0,
        }
    }

    /// Checks the limits of time, whether somebody has cancelled the run, and whether the slice is over.
    pub fn check_time(&mut self) -> Result<()> {
        self.timer.check(&self.limits)
    }

    /// Charges a unit of work: a statement, a loop turn, a call. Settles when the fuel is used up; never collects.
    #[inline(always)]
    pub fn tick(&mut self) -> Result<()> {
        self.fuel -= 1;
        if self.fuel < 0 { self.settle(true) } else { Ok(()) }
    }

    /// Charges `units` of work of a built-in function: items, characters, entries.
    #[inline]
    pub fn work(&mut self, units: usize) -> Result<Charge> {
        self.fuel -= i64::try_from(units).unwrap_or(i64::MAX / 4);
        if self.fuel < 0 {
            self.settle(true)?;
        }
        Ok(Charge(()))
    }

    /// Charge for `steps` of work that a library does in one piece, each of about so many nanoseconds: it cannot be
    /// interrupted, so it does not begin if the time left is too short.
    pub fn charge_piece(&mut self, steps: usize, nanos: u64) -> Result<Charge> {
        let charge = self.work(steps)?;
        let needed = Duration::from_nanos((steps as u64).saturating_mul(nanos));
        if needed < UNNOTICED {
            return Ok(charge);
        }
        let limit_ms = self.limits.timeout_ms;
        if self.timer.script_time() + needed <= Duration::from_millis(limit_ms) {
            return Ok(charge);
        }
        Err(timed_out(limit_ms))
    }

    /// Charges and counts a loop turn.
    #[inline(always)]
    pub fn iteration(&mut self) -> Result<()> {
        self.iterations += 1;
        if self.iterations > self.limits.max_iterations { Err(self.iteration_limit()) } else { self.tick() }
    }

    #[cold]
    fn iteration_limit(&self) -> Thrown {
        let limit = self.limits.max_iterations;
        Thrown::limit(
            ErrorCode::IterationLimit,
            format!("The script exceeded its iteration limit of {limit} loop turns; loop over less data"),
        )
    }

    /// Settles: accounts for used fuel, checks the limits, grants more. Between two operations (`in_operation` is
    /// false) the memory limit is not enforced here, because a collection comes first.
    #[cold]
    pub fn settle(&mut self, in_operation: bool) -> Result<()> {
        self.steps = self.steps.saturating_add_signed(self.granted - self.fuel);
        (self.granted, self.fuel) = (0, 0);
        if self.steps > self.limits.max_steps {
            let limit = self.limits.max_steps;
            return Err(Thrown::limit(ErrorCode::StepLimit, format!("The script exceeded its limit of {limit} steps")));
        }
        if self.in_use() > self.most_bytes() && (in_operation || self.nesting > 0) {
            return Err(self.memory_limit());
        }
        // After the end of the slice, a built-in function settles at every step until it returns; the clock is not
        // read each time. Steps can also decrease, when a walk gives unused ones back.
        if !self.timer.slice_over || self.steps.saturating_sub(self.timer.looked_at) >= GRANT as u64 {
            self.timer.looked_at = self.steps;
            self.check_time()?;
        }
        // When the slice is over or a collection is due, no fuel is granted, so that every tick settles until that is
        // done.
        if !self.timer.slice_over && self.bytes <= self.collect_at {
            self.refuel();
        }
        Ok(())
    }

    /// The counter of temporary memory.
    pub fn temporary(&self) -> &Arc<AtomicUsize> {
        self.temporary.get_or_init(Arc::default)
    }

    /// Bytes of temporary memory.
    pub fn temporary_bytes(&self) -> usize {
        self.temporary.get().map_or(0, |bytes| bytes.load(Ordering::Relaxed))
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.saturating_add_signed(self.granted - self.fuel)
    }

    /// Count bytes that are being allocated. [`Vm::reserve`](crate::eval::vm::Vm::reserve) comes before large allocations.
    #[inline]
    pub fn add_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > self.collect_at {
            self.settle_soon();
        }
    }

    /// Count data that the host has just given. Nearly all of it is live, so the next collection waits until there may
    /// be as much garbage.
    pub fn give(&mut self, bytes: usize) {
        self.given += bytes;
        let garbage = self.given.min(self.most_garbage());
        self.collect_at = self.collect_at.max(self.due + self.given + garbage);
    }

    /// Count bytes that stay until the run ends.
    pub fn keep_bytes(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
        self.add_bytes(bytes);
    }

    /// Release such bytes.
    pub fn release_bytes(&mut self, bytes: usize) {
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// The hard limit for live data, garbage and temporary memory together: 1.2 × `maxMemoryBytes`.
    pub fn most_bytes(&self) -> usize {
        let limit = usize::try_from(self.limits.max_memory_bytes).unwrap_or(usize::MAX);
        limit.saturating_add(limit / 5)
    }

    /// How many bytes of garbage there may be when an operation begins: the difference between the limit and
    /// [`Meter::most_bytes`].
    pub fn most_garbage(&self) -> usize {
        usize::try_from(self.limits.max_memory_bytes / 5).unwrap_or(usize::MAX)
    }

    /// The spare capacity for something of so many bytes that grows: as much again, less as memory gets scarce. Spare
    /// capacity counts as used.
    pub fn spare(&self, bytes: usize) -> usize {
        let room = self.most_bytes().saturating_sub(self.in_use().saturating_add(bytes)) / 4;
        bytes.min(room.max(bytes / 8))
    }

    /// Bytes in use, garbage, temporary memory and free entries between what is alive included.
    pub fn in_use(&self) -> usize {
        self.bytes.saturating_add(self.temporary_bytes()).saturating_add(self.free_bytes)
    }

    /// An error where so many bytes more do not fit.
    #[inline]
    pub fn check(&self, bytes: usize) -> Result<()> {
        // A single request is live data, so the soft limit applies to it.
        let limit = usize::try_from(self.limits.max_memory_bytes).unwrap_or(usize::MAX);
        if bytes > limit || self.in_use().saturating_add(bytes) > self.most_bytes() {
            return Err(self.memory_limit());
        }
        Ok(())
    }

    /// The end of the run at its memory limit.
    #[cold]
    pub fn memory_limit(&self) -> Thrown {
        let limit = self.limits.max_memory_bytes;
        Thrown::limit(ErrorCode::MemoryLimit, format!("The script exceeded its memory limit of {limit} bytes"))
    }

    /// Grant fuel until the next look at the clock.
    pub fn refuel(&mut self) {
        let left = self.limits.max_steps.saturating_sub(self.steps());
        self.steps = self.steps();
        self.granted = self.interval.min(i64::try_from(left).unwrap_or(GRANT));
        self.fuel = self.granted;
    }

    /// Make the next tick settle the account.
    #[cold]
    fn settle_soon(&mut self) {
        if self.fuel > 0 {
            self.granted -= self.fuel;
            self.fuel = 0;
        }
    }
}
