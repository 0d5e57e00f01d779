//! Between two operations: settling the account, pausing, collecting garbage.
//!
//! Only here are all values in slots, so only here may anything be freed.

use crate::code::{After, Frame, Waiter};
use crate::error::Result;
use crate::node::Slots;
use crate::promise::{Job, Reaction};
use crate::value::Value;
use crate::vm::Vm;
use std::cell::Cell;

impl Vm {
    /// Whether the frame has to pause here; settles the account, and collects garbage, which is safe
    /// only here: between two operations, with all values in slots.
    #[inline(always)]
    pub(crate) fn pause_due(&mut self, fp: &Slots) -> Result<bool> {
        if self.heap.meter.fuel > 0 { Ok(false) } else { self.pause_due_slow(fp) }
    }

    #[cold]
    #[inline(never)]
    fn pause_due_slow(&mut self, fp: &Slots) -> Result<bool> {
        self.settle()?;
        if self.nesting > 0 {
            return Ok(false);
        }
        if self.heap.meter.bytes > self.heap.meter.collect_at || self.stress {
            self.collect(fp);
            if self.heap.meter.bytes > self.heap.meter.limits.max_memory_bytes as usize {
                return Err(self.memory_limit());
            }
            self.settle()?;
        }
        Ok(std::mem::take(&mut self.host.slice_over))
    }

    /// Free what nothing can reach.
    fn collect(&mut self, fp: &Slots) {
        self.symbols.forget();
        let mut roots: Vec<Value> = Vec::with_capacity(256);
        roots.extend(fp.iter().map(Cell::get));
        for frame in &self.frames {
            roots.extend(frame.slots.iter().map(Cell::get));
            roots.extend(after_values(frame.after));
        }
        roots.extend_from_slice(&self.globals);
        roots.extend_from_slice(&self.templates);
        roots.extend(self.symbol_strings.values());
        roots.extend(self.prelude_closures.values().copied());
        roots.extend(self.host.context);
        roots.extend(after_values(self.current_after));
        roots.extend(self.main);
        self.host.calls.trace(&mut roots);
        let mut seen = vec![false; self.waiting.len()];
        for job in &self.jobs {
            match *job {
                Job::React(Reaction::Await(number), _, value) => {
                    roots.push(value);
                    mark_waiting(&self.waiting, &mut seen, number, &mut roots);
                }
                Job::React(Reaction::Then { fulfilled, rejected, derived }, _, value) => {
                    roots.extend([fulfilled, rejected, derived, value]);
                }
                Job::Adopt { promise, thenable, then } => roots.extend([promise, thenable, then]),
            }
        }
        let waiting = &self.waiting;
        let outside = self.frame_bytes + self.kept_bytes;
        self.heap.collect(roots, &mut |number, work| mark_waiting(waiting, &mut seen, number, work), outside);
        // Nothing can wake a frame that waits for a promise nobody has.
        for (number, seen) in seen.iter().enumerate() {
            if !seen && let Some(frame) = self.waiting[number].take() {
                self.waiting.release(number as u32);
                self.recycle(frame.slots);
            }
        }
    }
}

fn mark_waiting(waiting: &crate::heap::Slab<Option<Frame>>, seen: &mut [bool], number: u32, work: &mut Vec<Value>) {
    let index = number as usize;
    if std::mem::replace(&mut seen[index], true) {
        return;
    }
    if let Some(frame) = &waiting[index] {
        work.extend(frame.slots.iter().map(Cell::get));
        work.extend(after_values(frame.after));
    }
}

fn after_values(after: After) -> impl Iterator<Item = Value> {
    let (first, second) = match after {
        After::Async(promise, Waiter::Job(derived)) => (Some(promise), Some(derived)),
        After::Async(value, Waiter::Nobody | Waiter::Caller) | After::Job(value) => (Some(value), None),
        After::Call | After::Nested => (None, None),
    };
    first.into_iter().chain(second)
}
