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

/// Whether garbage has to be collected before the next operation.
pub(crate) fn collection_due(vm: &Vm) -> bool {
    vm.heap.meter.bytes > vm.heap.meter.collect_at || vm.stress.collect
}

/// Whether an operation that ran out of memory may be retried; if so, garbage has been collected. So live data is
/// never refused because of garbage.
#[cold]
pub(crate) fn may_retry(vm: &mut Vm, thrown: &Thrown, op: &Op, at: (usize, u32), stack: &Stack) -> bool {
    let Cause::Stop(failure) = &*thrown.0 else { return false };
    // If the retry fails too, garbage is not the reason.
    if failure.code != ErrorCode::MemoryLimit
        || !op.repeats
        || vm.gc.converted
        || vm.heap.meter.nesting > 0
        || vm.gc.repeated == Some(at)
    {
        return false;
    }
    collect(vm, stack);
    vm.gc.repeated = Some(at);
    vm.heap.meter.bytes <= vm.heap.meter.limits.max_memory_bytes as usize
}

/// Free what nothing can reach.
pub(crate) fn collect(vm: &mut Vm, stack: &Stack) {
    vm.heap.atoms.forget();
    let (heap, suspended) = (&vm.heap, &vm.stack.suspended);
    let mut marker = Marker::new(heap, suspended);
    for frame in &vm.stack.frames {
        let length = vm.realm.function(frame.code).slots as usize;
        marker.mark(heap, suspended, stack.slots(frame.slots).iter().take(length).map(Cell::get));
        marker.mark(heap, suspended, frame.after.values());
    }
    marker.mark(heap, suspended, vm.realm.values());
    marker.mark(heap, suspended, vm.heap.atom_strings.values());
    let thrown = vm.stack.thrown.map(|(value, ..)| value);
    marker.mark(heap, suspended, vm.host.calls.values().chain(vm.stack.main).chain(thrown));
    for job in &vm.jobs {
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
    let rejected = vm.rejected.iter().copied().chain(vm.uncaught).chain(vm.unawaited.values());
    marker.mark(heap, suspended, vm.schedule.values().chain(rejected));
    let seen: Vec<bool> = (0..suspended.len()).map(|number| marker.has_frame(number)).collect();
    vm.heap.sweep(marker);
    let mut outside = stack.bytes() + vm.heap.meter.kept_bytes + vm.jobs.capacity() * size_of::<Job>();
    outside += vm.rejected.capacity() * size_of::<Value>();
    for (number, seen) in seen.into_iter().enumerate() {
        match &vm.stack.suspended[number] {
            Some(frame) if seen => outside += frame.cost(),
            // A frame that waits for an unreachable promise can never be resumed.
            Some(_) => {
                vm.stack.suspended[number] = None;
                vm.stack.suspended.release(number as u32);
            }
            None => {}
        }
    }
    vm.heap.collected(outside);
}
