//! Between two operations: settling the account, pausing, collecting garbage.
//!
//! Only here are all values in slots, so only here may anything be freed.

use crate::code::{After, Waiter, Waiting};
use crate::error::{Cause, Result, Thrown};
use crate::error_code::ErrorCode;
use crate::heap::collect::Marker;
use crate::node::Op;
use crate::promise::{Job, Reaction};
use crate::stack::Stack;
use crate::value::Value;
use crate::vm::Vm;
use std::cell::Cell;

impl Vm {
    /// Whether the frame has to halt here, for [`Vm::pause`] to decide what for; settles the account.
    #[inline(always)]
    pub(crate) fn pause_due(&mut self) -> Result<bool> {
        if self.heap.meter.fuel > 0 { Ok(false) } else { self.pause_due_slow() }
    }

    #[cold]
    #[inline(never)]
    fn pause_due_slow(&mut self) -> Result<bool> {
        self.settle_account(false)?;
        self.converted = false;
        Ok(self.nesting == 0 && (self.host.slice_over || self.collection_due()))
    }

    fn collection_due(&self) -> bool {
        self.heap.meter.bytes > self.heap.meter.collect_at || self.stress
    }

    /// Between two operations of a frame, with all values in slots: collect garbage where that is due.
    /// Gives whether the slice is over.
    #[cold]
    #[inline(never)]
    pub(crate) fn pause(&mut self, stack: &Stack) -> Result<bool> {
        if self.collection_due() {
            self.collect(stack);
            self.repeated = None;
            let meter = &self.heap.meter;
            if meter.bytes > meter.limits.max_memory_bytes as usize || meter.in_use() > meter.most_bytes() {
                // No operation is begun again for this.
                self.converted = true;
                return Err(self.memory_limit());
            }
            self.settle()?;
        }
        let over = std::mem::take(&mut self.host.slice_over);
        if over {
            // The next slice goes on, however long it takes until it begins.
            self.refuel();
        }
        Ok(over)
    }

    /// Whether an operation ran out of memory that may be begun again: then garbage was collected for it. So what is
    /// alive is never refused for what is not, wherever in the script that came to be.
    #[cold]
    pub(crate) fn may_repeat(&mut self, thrown: &Thrown, op: &Op, at: (usize, u32), stack: &Stack) -> bool {
        let Cause::Stop(failure) = &*thrown.0 else { return false };
        // Where it is begun again and fails again, garbage is not what is too much.
        if failure.code != ErrorCode::MemoryLimit
            || !op.repeats
            || self.converted
            || self.nesting > 0
            || self.repeated == Some(at)
        {
            return false;
        }
        self.collect(stack);
        self.repeated = Some(at);
        self.heap.meter.bytes <= self.heap.meter.limits.max_memory_bytes as usize
    }

    /// Free what nothing can reach.
    pub(crate) fn collect(&mut self, stack: &Stack) {
        self.symbols.forget();
        let (heap, waiting) = (&self.heap, &self.waiting);
        let mut marker = Marker::new(heap);
        let mut seen = vec![false; waiting.len()];
        let mut awaited = |number, work: &mut Vec<Value>| mark_waiting(waiting, &mut seen, number, work);
        for frame in &self.frames {
            let length = self.function(frame.code).slots as usize;
            marker.mark(heap, stack.slots(frame.slots).iter().take(length).map(Cell::get), &mut awaited);
            marker.mark(heap, after_values(frame.after), &mut awaited);
        }
        marker.mark(heap, self.globals.iter().chain(&self.templates).copied(), &mut awaited);
        marker.mark(heap, self.symbol_strings.values(), &mut awaited);
        marker.mark(heap, self.prelude_closures.values().copied(), &mut awaited);
        marker.mark(heap, self.host.context.into_iter().chain(self.main), &mut awaited);
        marker.mark(heap, self.host.calls.values(), &mut awaited);
        for job in &self.jobs {
            match *job {
                Job::React(Reaction::Await(number), _, value) => {
                    let mut frame = vec![value];
                    awaited(number, &mut frame);
                    marker.mark(heap, frame, &mut awaited);
                }
                Job::React(Reaction::Then { fulfilled, rejected, derived }, _, value) => {
                    marker.mark(heap, [fulfilled, rejected, derived, value], &mut awaited);
                }
                Job::Adopt { promise, thenable, then } => {
                    marker.mark(heap, [promise, thenable, then], &mut awaited);
                }
            }
        }
        self.heap.sweep(marker);
        let mut outside = stack.bytes() + self.kept_bytes + self.jobs.capacity() * size_of::<Job>();
        for (number, seen) in seen.into_iter().enumerate() {
            match &self.waiting[number] {
                Some(frame) if seen => outside += frame.cost(),
                // Nothing can wake a frame that waits for a promise nobody has.
                Some(_) => {
                    self.waiting[number] = None;
                    self.waiting.release(number as u32);
                }
                None => {}
            }
        }
        self.heap.collected(outside);
    }
}

fn mark_waiting(waiting: &crate::heap::Slab<Option<Waiting>>, seen: &mut [bool], number: u32, work: &mut Vec<Value>) {
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
