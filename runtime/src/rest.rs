//! A run that waits for its host, maybe for long and beside a hundred thousand others: it keeps what it
//! needs to go on, and nothing that it had for speed.

use crate::stack::Stack;
use crate::vm::Vm;
use std::collections::VecDeque;

/// A run that has less is not searched for garbage when it begins to wait.
pub(crate) const REST_FIRST: usize = 32 << 10;

impl Vm {
    /// Nothing is executed until the host has news. Costs little where little was done since the last time.
    pub(crate) fn rest(&mut self) {
        let stack = self.stack.take().map_or(0, |stack| stack.bytes());
        let meter = &mut self.heap.meter;
        meter.bytes = meter.bytes.saturating_sub(stack);
        self.spare = None;
        self.frames = Vec::new();
        self.jobs = VecDeque::new();
        self.scratch = Vec::new();
        self.matcher = Default::default();
        if self.heap.meter.bytes > self.heap.meter.rest_at {
            self.collect(&Stack::default());
            self.heap.shrink();
        }
    }
}
