//! Between two operations: settling the account, pausing, collecting garbage.
//!
//! Only here are all values in slots, so only here may anything be freed.

use crate::error::Result;
use crate::stack::Stack;
use crate::vm::Vm;

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
        self.gc.converted = false;
        Ok(self.stack.nesting == 0 && (self.timer.slice_over || self.collection_due()))
    }

    /// Between two operations of a frame, with all values in slots: collect garbage where that is due.
    /// Gives whether the slice is over.
    #[cold]
    #[inline(never)]
    pub(crate) fn pause(&mut self, stack: &Stack) -> Result<bool> {
        if self.collection_due() {
            self.collect(stack);
            self.gc.repeated = None;
            let meter = &self.heap.meter;
            if meter.bytes > meter.limits.max_memory_bytes as usize || meter.in_use() > meter.most_bytes() {
                // No operation is begun again for this.
                self.gc.converted = true;
                return Err(self.memory_limit());
            }
            self.settle()?;
        }
        let over = std::mem::take(&mut self.timer.slice_over);
        if over {
            // The next slice goes on, however long it takes until it begins.
            self.refuel();
        }
        Ok(over)
    }
}
