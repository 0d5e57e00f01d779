//! Safe points: between two operations a run settles its meter, pauses, or collects garbage.
//!
//! All values are in slots there, so only there may anything be freed.

use crate::eval::stack::Stack;
use crate::eval::vm::Vm;
use crate::value::thrown::Result;

impl Vm {
    /// Whether [`Vm::pause`] has to be called here; settles the meter.
    #[inline(always)]
    pub(crate) fn pause_due(&mut self) -> Result<bool> {
        if self.heap.meter.fuel > 0 { Ok(false) } else { self.pause_due_slow() }
    }

    #[cold]
    #[inline(never)]
    fn pause_due_slow(&mut self) -> Result<bool> {
        self.heap.meter.settle(false)?;
        self.gc.converted = false;
        Ok(self.heap.meter.nesting == 0 && (self.heap.meter.timer.slice_over || self.collection_due()))
    }

    /// Collect garbage if that is due, between two operations with all values in slots. Gives whether the slice is
    /// over.
    #[cold]
    #[inline(never)]
    pub(crate) fn pause(&mut self, stack: &Stack) -> Result<bool> {
        if self.collection_due() {
            self.collect(stack);
            self.gc.repeated = None;
            let meter = &self.heap.meter;
            if meter.bytes > meter.limits.max_memory_bytes as usize || meter.in_use() > meter.most_bytes() {
                // No operation is retried for this.
                self.gc.converted = true;
                return Err(self.heap.meter.memory_limit());
            }
            self.heap.meter.settle(true)?;
        }
        let over = std::mem::take(&mut self.heap.meter.timer.slice_over);
        if over {
            // Grant fuel for the next slice, which may begin much later.
            self.heap.meter.refuel();
        }
        let meter = &mut self.heap.meter;
        if meter.fuel == 0 {
            // At its limit of steps exactly a run goes on to the step that exceeds it; it would come here for ever.
            (meter.granted, meter.fuel) = (1, 1);
        }
        Ok(over)
    }
}
