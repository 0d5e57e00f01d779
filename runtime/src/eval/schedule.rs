//! The timers of a run, and the time that its script sees.
//!
//! A timer is an event of the run: it takes no thread. In real time it fires when the host resumes the run. Otherwise
//! time is virtual and moves from timer to timer, so that a run can be replayed.

use crate::heap::frame::FunctionRef;
use crate::interface::host::TimeFlow;
use crate::meter::Meter;
use crate::meter::timer::timed_out;
use crate::value::Value;
use crate::value::thrown::Result;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Most timers that may be pending.
pub const MAX_TIMERS: usize = 1_000;
/// Bytes that a timer takes, its places in the tables included.
pub const TIMER_BYTES: usize = 192;

/// The timers of a run.
pub struct Schedule {
    flow: TimeFlow,
    is_allowed: bool,
    /// The time that was reached, where time does not flow by itself: milliseconds since the run began.
    reached: u64,
    /// Timers by their time, then in the order in which they were set.
    pending: BTreeMap<(u64, u64), Timer>,
    /// Where each of them is.
    places: HashMap<u32, (u64, u64)>,
    /// How many times a timer was set.
    set: u64,
    /// How many timers were made.
    made: u32,
    /// The timer whose callback runs.
    running: Option<Timer>,
}

/// A timer.
#[derive(Clone, Copy)]
pub struct Timer {
    /// Its number: 1, 2, 3, …
    pub id: u32,
    /// How long it waits, in milliseconds.
    pub delay: u64,
    /// What happens when it fires.
    pub action: Action,
    /// Whether it is set again when its callback has returned.
    pub repeats: bool,
    /// Whether the run goes on for it.
    pub keeps: bool,
    /// Where it was set.
    pub place: Option<(FunctionRef, u32)>,
}

/// What happens when a timer fires.
#[derive(Clone, Copy)]
pub enum Action {
    /// A callback is called with the items of an array.
    Call(Value, Value),
    /// A promise is fulfilled.
    Resolve(Value),
    /// A signal is aborted.
    Abort(Value),
}

impl Schedule {
    /// No timers yet.
    pub fn new(flow: TimeFlow, is_allowed: bool) -> Self {
        Self {
            flow,
            is_allowed,
            reached: 0,
            pending: BTreeMap::new(),
            places: HashMap::new(),
            set: 0,
            made: 0,
            running: None,
        }
    }

    /// Whether the policy allows timers.
    pub fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// How time passes.
    pub fn flow(&self) -> TimeFlow {
        self.flow
    }

    /// Whether no timer is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The timers that are pending, the next one first, with their times.
    pub fn pending(&self) -> impl Iterator<Item = (u64, &Timer)> {
        self.pending.iter().map(|(&(due, _), timer)| (due, timer))
    }

    /// Whether no callback of a timer runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Whether a timer of that number is pending, or its callback runs.
    pub fn timer(&self, id: u32) -> Option<&Timer> {
        let place = self.places.get(&id);
        place.and_then(|place| self.pending.get(place)).or(self.running.as_ref().filter(|timer| timer.id == id))
    }

    /// The same, to change it.
    pub fn timer_mut(&mut self, id: u32) -> Option<&mut Timer> {
        match self.places.get(&id) {
            Some(place) => self.pending.get_mut(place),
            None => self.running.as_mut().filter(|timer| timer.id == id),
        }
    }

    /// The time has come to so many milliseconds since the run began, where it does not flow by itself.
    pub fn reach(&mut self, ms: u64) {
        if self.flow != TimeFlow::Real {
            self.reached = self.reached.max(ms);
        }
    }

    /// The values that the collector has to mark.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.pending.values().chain(&self.running).flat_map(|timer| match timer.action {
            Action::Call(callback, arguments) => [callback, arguments],
            Action::Resolve(value) | Action::Abort(value) => [value, Value::UNDEFINED],
        })
    }

    fn insert(&mut self, due: u64, timer: Timer) {
        self.set += 1;
        self.places.insert(timer.id, (due, self.set));
        self.pending.insert((due, self.set), timer);
    }

    fn remove(&mut self, id: u32) -> Option<Timer> {
        self.pending.remove(&self.places.remove(&id)?)
    }

    /// Milliseconds since the run began, as the script sees them.
    pub fn script_time(&self, meter: &Meter) -> Duration {
        match self.flow {
            TimeFlow::Real => meter.timer.elapsed(),
            TimeFlow::Virtual | TimeFlow::Events => Duration::from_millis(meter.timer.virtual_now),
        }
    }

    /// Milliseconds since 1970, as the script sees them.
    pub fn unix_ms(&self, meter: &Meter) -> f64 {
        let start = meter.timer.clock.unix_ms();
        match self.flow {
            TimeFlow::Real => start,
            TimeFlow::Virtual | TimeFlow::Events => start + meter.timer.virtual_now as f64,
        }
    }

    /// Set a timer, whose number is given to it here; gives that. `None`: there are [`MAX_TIMERS`] already.
    pub fn set_timer(&mut self, meter: &mut Meter, timer: Timer) -> Option<u32> {
        if self.pending.len() >= MAX_TIMERS {
            return None;
        }
        meter.keep_bytes(TIMER_BYTES);
        self.made += 1;
        let (due, id) = (self.due_after(meter, timer.delay), self.made);
        self.insert(due, Timer { id, ..timer });
        Some(id)
    }

    /// Clear a timer, pending or running. Gives whether there was one.
    pub fn clear_timer(&mut self, meter: &mut Meter, id: u32) -> bool {
        if self.remove(id).is_some() {
            meter.release_bytes(TIMER_BYTES);
            return true;
        }
        match self.running.as_mut().filter(|timer| timer.id == id) {
            Some(timer) => std::mem::take(&mut timer.repeats),
            None => false,
        }
    }

    /// Let a pending timer wait anew.
    pub fn refresh_timer(&mut self, meter: &Meter, id: u32) {
        if let Some(timer) = self.remove(id) {
            let due = self.due_after(meter, timer.delay);
            self.insert(due, timer);
        }
    }

    /// Take the next timer, if it is due. Where all frames wait for a promise, `blocked_on`, only the timer that
    /// settles it is.
    pub fn take_due_timer(&mut self, meter: &mut Meter, blocked_on: Option<Value>) -> Result<Option<Timer>> {
        let Some((due, id)) = self.next_timer(blocked_on) else {
            meter.timer.virtual_now = self.reached;
            return Ok(None);
        };
        let now = match self.flow {
            TimeFlow::Real => u64::try_from(meter.timer.elapsed().as_millis()).unwrap_or(u64::MAX),
            TimeFlow::Virtual | TimeFlow::Events => self.reached,
        };
        if due > now {
            meter.timer.virtual_now = self.reached;
            return Ok(None);
        }
        if self.flow != TimeFlow::Real {
            let timer = &mut meter.timer;
            timer.virtual_now = timer.virtual_now.max(due);
            if timer.virtual_now > meter.limits.max_duration_ms {
                return Err(timed_out(meter.limits.max_duration_ms));
            }
        }
        meter.release_bytes(TIMER_BYTES);
        Ok(self.remove(id))
    }

    /// The next timer that can fire: when it is due, in milliseconds since the run began, and its number.
    pub fn next_timer(&self, blocked_on: Option<Value>) -> Option<(u64, u32)> {
        let settles = |timer: &Timer| matches!(timer.action, Action::Resolve(promise) if Some(promise) == blocked_on);
        let mut pending = self.pending();
        let next = if blocked_on.is_some() { pending.find(|(_, timer)| settles(timer)) } else { pending.next() };
        next.map(|(due, timer)| (due, timer.id))
    }

    /// The callback of a timer begins.
    pub fn begin_timer(&mut self, timer: Timer) {
        self.running = Some(timer);
    }

    /// The callback of a timer has returned: an interval waits anew.
    pub fn end_timer(&mut self, meter: &mut Meter) {
        if let Some(timer) = self.running.take().filter(|timer| timer.repeats) {
            meter.keep_bytes(TIMER_BYTES);
            let due = self.due_after(meter, timer.delay);
            self.insert(due, timer);
        }
    }

    /// When a timer that is set now is due. A part of a millisecond counts as a whole one, so that none fires early.
    fn due_after(&self, meter: &Meter, delay: u64) -> u64 {
        let now = u64::try_from(self.script_time(meter).as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        now.saturating_add(delay)
    }
}
