//! The idle state of a run. While it waits for its host, maybe long and beside a hundred thousand others, it keeps only
//! the data that it needs to continue.

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

impl Vm {
    /// Release memory until the next event. Costs little where little was done since the last time.
    pub(crate) fn enter_idle(&mut self) {
        // Blocked frames keep their slots.
        let mut stack = self.stack.slots.take();
        if self.stack.frames.is_empty() {
            let bytes = stack.take().map_or(0, |stack| stack.bytes()) + self.jobs.capacity() * size_of::<Job>();
            let meter = &mut self.heap.meter;
            meter.bytes = meter.bytes.saturating_sub(bytes);
            self.stack.frames = Vec::new();
            self.jobs = VecDeque::new();
        }
        self.pools = Pools::default();
        let meter = &mut self.heap.meter;
        let steps = meter.steps();
        if meter.bytes > COLLECT_FROM && meter.bytes as u64 / BYTES_A_STEP <= steps.saturating_sub(meter.idle_steps) {
            meter.idle_steps = steps;
            self.collect(stack.as_deref().unwrap_or(&Stack::default()));
            self.heap.shrink();
        }
        self.stack.slots = stack;
        self.heap.trim();
        self.stack.suspended.trim();
    }
}
