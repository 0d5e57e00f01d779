//! A run that waits for its host, maybe for long and beside a hundred thousand others: it keeps what it
//! needs to go on, and nothing that it had for speed.

use crate::pools::Pools;
use crate::promise::Job;
use crate::stack::Stack;
use crate::vm::Vm;
use std::collections::VecDeque;

/// A run that has less is not searched for garbage when it begins to wait.
const COLLECT_FROM: usize = 32 << 10;
/// And one that has more only where it made a step for every so many bytes: then searching costs
/// little beside them.
const BYTES_A_STEP: u64 = 64;

impl Vm {
    /// Nothing is executed until the host has news. Costs little where little was done since the last time.
    pub(crate) fn enter_idle(&mut self) {
        // Frames that are blocked keep what they stand on.
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
    }
}
