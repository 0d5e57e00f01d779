//! Garbage collection: when, and from which roots. [`heap::collect`](crate::heap::collect) marks and sweeps.

use crate::eval::node::Op;
use crate::eval::stack::Stack;
use crate::eval::vm::Vm;
use crate::heap::collect::Marker;
use crate::heap::promise::Job;
use crate::interface::error_code::ErrorCode;
use crate::value::Value;
use crate::value::thrown::{Cause, Thrown};
use std::cell::Cell;

/// State for retrying an operation that ran out of memory: it is retried once after a collection, if it had no visible
/// effect.
#[derive(Default)]
pub struct Gc {
    /// Whether a function of the script has run in an implicit conversion since the last settling: then the operation
    /// had an effect.
    pub converted: bool,
    /// The operation that was retried last: how many frames there were, and the position in the last one. Absent after
    /// a collection for another reason.
    pub repeated: Option<(usize, u32)>,
}

impl Vm {
    /// Whether garbage has to be collected before the next operation.
    pub(crate) fn collection_due(&self) -> bool {
        self.heap.meter.bytes > self.heap.meter.collect_at || self.stress.collect
    }

    /// Whether an operation that ran out of memory may be retried; if so, garbage has been collected. So live data is
    /// never refused because of garbage.
    #[cold]
    pub(crate) fn may_retry(&mut self, thrown: &Thrown, op: &Op, at: (usize, u32), stack: &Stack) -> bool {
        let Cause::Stop(failure) = &*thrown.0 else { return false };
        // If the retry fails too, garbage is not the reason.
        if failure.code != ErrorCode::MemoryLimit
            || !op.repeats
            || self.gc.converted
            || self.heap.meter.nesting > 0
            || self.gc.repeated == Some(at)
        {
            return false;
        }
        self.collect(stack);
        self.gc.repeated = Some(at);
        self.heap.meter.bytes <= self.heap.meter.limits.max_memory_bytes as usize
    }

    /// Free what nothing can reach.
    pub(crate) fn collect(&mut self, stack: &Stack) {
        self.heap.atoms.forget();
        let (heap, suspended) = (&self.heap, &self.stack.suspended);
        let mut marker = Marker::new(heap, suspended);
        for frame in &self.stack.frames {
            let length = self.function(frame.code).slots as usize;
            marker.mark(heap, suspended, stack.slots(frame.slots).iter().take(length).map(Cell::get));
            marker.mark(heap, suspended, frame.after.values());
        }
        marker.mark(heap, suspended, self.realm.values());
        marker.mark(heap, suspended, self.heap.atom_strings.values());
        let thrown = self.stack.thrown.map(|(value, ..)| value);
        marker.mark(heap, suspended, self.host.calls.values().chain(self.stack.main).chain(thrown));
        for job in &self.jobs {
            match *job {
                Job::React(reaction, _, value) => {
                    marker.mark(heap, suspended, [value]);
                    marker.mark_reaction(heap, suspended, reaction);
                }
                Job::Adopt { promise, thenable, then } => {
                    marker.mark(heap, suspended, [promise, thenable, then]);
                }
                Job::Call(value) | Job::Throw(value) => marker.mark(heap, suspended, [value]),
            }
        }
        let rejected = self.rejected.iter().copied().chain(self.uncaught).chain(self.unawaited.values());
        marker.mark(heap, suspended, self.schedule.values().chain(rejected));
        let seen: Vec<bool> = (0..suspended.len()).map(|number| marker.has_frame(number)).collect();
        self.heap.sweep(marker);
        let mut outside = stack.bytes() + self.heap.meter.kept_bytes + self.jobs.capacity() * size_of::<Job>();
        outside += self.rejected.capacity() * size_of::<Value>();
        for (number, seen) in seen.into_iter().enumerate() {
            match &self.stack.suspended[number] {
                Some(frame) if seen => outside += frame.cost(),
                // A frame that waits for an unreachable promise can never be resumed.
                Some(_) => {
                    self.stack.suspended[number] = None;
                    self.stack.suspended.release(number as u32);
                }
                None => {}
            }
        }
        self.heap.collected(outside);
    }
}
