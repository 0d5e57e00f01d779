//! The idle state of a run. While it waits for its host, maybe long and beside a hundred thousand others, it keeps only
//! the data that it needs to continue.

use crate::eval::gc;
use crate::eval::pools::Pools;
use crate::eval::stack::Stack;
use crate::eval::vm::Vm;
use crate::heap::promise::Job;
use std::collections::VecDeque;

/// Below so many bytes an idle run is not collected.
const COLLECT_FROM: usize = 32 << 10;
/// Above it, it is collected only after at least a step for every so many bytes, so that collecting costs little in
/// comparison.
const BYTES_A_STEP: u64 = 80;

/// Release memory until the next event. Costs little where little was done since the last time.
pub(crate) fn enter_idle(vm: &mut Vm) {
    // Blocked frames keep their slots.
    let mut stack = vm.stack.slots.take();
    if vm.stack.frames.is_empty() {
        let bytes = stack.take().map_or(0, |stack| stack.bytes()) + vm.jobs.capacity() * size_of::<Job>();
        let meter = &mut vm.heap.meter;
        meter.bytes = meter.bytes.saturating_sub(bytes);
        vm.stack.frames = Vec::new();
        vm.jobs = VecDeque::new();
    }
    vm.pools = Pools::default();
    let meter = &mut vm.heap.meter;
    let steps = meter.steps();
    if meter.bytes > COLLECT_FROM && meter.bytes as u64 / BYTES_A_STEP <= steps.saturating_sub(meter.idle_steps) {
        meter.idle_steps = steps;
        gc::collect(vm, stack.as_deref().unwrap_or(&Stack::default()));
        vm.heap.shrink();
    }
    vm.stack.slots = stack;
    vm.heap.trim();
    vm.stack.suspended.trim();
}
