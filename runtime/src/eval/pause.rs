//! Safe points: between two operations a run settles its meter, pauses, or collects garbage.
//!
//! All values are in slots there, so only there may anything be freed.

use crate::eval::gc;
use crate::eval::stack::Stack;
use crate::eval::vm::Vm;
use crate::value::thrown::Result;

/// Whether [`pause::pause`] has to be called here; settles the meter.
#[inline(always)]
pub(crate) fn pause_due(vm: &mut Vm) -> Result<bool> {
    if vm.heap.meter.fuel > 0 { Ok(false) } else { pause_due_slow(vm) }
}

#[cold]
#[inline(never)]
fn pause_due_slow(vm: &mut Vm) -> Result<bool> {
    vm.heap.meter.settle(false)?;
    vm.gc.converted = false;
    Ok(vm.heap.meter.nesting == 0 && (vm.heap.meter.timer.slice_over || gc::collection_due(vm)))
}

/// Collect garbage if that is due, between two operations with all values in slots. Gives whether the slice is
/// over.
#[cold]
#[inline(never)]
pub(crate) fn pause(vm: &mut Vm, stack: &Stack) -> Result<bool> {
    if gc::collection_due(vm) {
        gc::collect(vm, stack);
        vm.gc.repeated = None;
        let meter = &vm.heap.meter;
        if meter.bytes > meter.limits.max_memory_bytes as usize || meter.in_use() > meter.most_bytes() {
            // No operation is retried for this.
            vm.gc.converted = true;
            return Err(vm.heap.meter.memory_limit());
        }
        vm.heap.meter.settle(true)?;
    }
    let over = std::mem::take(&mut vm.heap.meter.timer.slice_over);
    if over {
        // Grant fuel for the next slice, which may begin much later.
        vm.heap.meter.refuel();
    }
    let meter = &mut vm.heap.meter;
    if meter.fuel == 0 {
        // At its limit of steps exactly a run goes on to the step that exceeds it; it would come here for ever.
        (meter.granted, meter.fuel) = (1, 1);
    }
    Ok(over)
}
