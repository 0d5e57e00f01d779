//! The account of a run apart from its heap: work is charged while text of the heap is borrowed.

use super::{Buffer, PIECE, TRANSLATED_A_STEP};
use crate::error_code::ErrorCode;
use crate::meter::{GRANT, Meter};
use crate::schedule::Schedule;
use crate::thrown::{Result, Thrown};
use crate::timer::Timer;
use crate::wtf8::{push_utf16, utf16_pieces, wtf8_length};

/// What is needed to charge work and to check the limits of a run. Long loops over text of the heap charge through it.
pub struct Account<'a> {
    pub(crate) meter: &'a mut Meter,
    pub(crate) timer: &'a mut Timer,
    pub(crate) schedule: &'a Schedule,
    /// Whether a built-in function is being called by another one, so that no collection comes before it returns.
    pub(crate) is_nested: bool,
}

impl Account<'_> {
    /// Charge `units` of work, as [`Vm::work`](crate::vm::Vm::work).
    #[inline]
    pub fn work(&mut self, units: usize) -> Result<()> {
        self.meter.fuel -= i64::try_from(units).unwrap_or(i64::MAX / 4);
        if self.meter.fuel < 0 { self.settle(true) } else { Ok(()) }
    }

    /// UTF-16 code units as WTF-8, charged and counted in pieces.
    pub fn encode(&mut self, units: &[u16]) -> Result<Buffer<u8>> {
        let mut length = 0;
        for piece in utf16_pieces(units, PIECE) {
            self.work(piece.len() / (2 * TRANSLATED_A_STEP))?;
            length += wtf8_length(piece);
        }
        let mut out = Buffer::with_capacity(&*self.meter, length)?;
        for piece in utf16_pieces(units, PIECE) {
            self.work(piece.len() / (2 * TRANSLATED_A_STEP))?;
            out.write(&*self.meter, wtf8_length(piece), |out| push_utf16(piece, out))?;
        }
        Ok(out)
    }

    /// Account for used fuel, check the limits, grant more. Between two operations the memory limit is not enforced
    /// here, because a collection comes first.
    #[cold]
    pub(crate) fn settle(&mut self, in_operation: bool) -> Result<()> {
        let meter = &mut *self.meter;
        meter.steps = meter.steps.saturating_add_signed(meter.granted - meter.fuel);
        (meter.granted, meter.fuel) = (0, 0);
        if meter.steps > meter.limits.max_steps {
            let limit = meter.limits.max_steps;
            return Err(Thrown::limit(ErrorCode::StepLimit, format!("The script exceeded its limit of {limit} steps")));
        }
        if meter.in_use() > meter.most_bytes() && (in_operation || self.is_nested) {
            return Err(meter.memory_limit());
        }
        // After the end of the slice, a built-in function settles at every step until it returns; the clock is not
        // read each time. Steps can also decrease, when a walk gives unused ones back.
        if !self.timer.slice_over || meter.steps.saturating_sub(self.timer.looked_at) >= GRANT as u64 {
            self.timer.looked_at = meter.steps;
            self.timer.check(&meter.limits)?;
            self.schedule.check(&meter.limits)?;
        }
        // When the slice is over or a collection is due, no fuel is granted, so that every tick settles until that is
        // done.
        if !self.timer.slice_over && meter.bytes <= meter.collect_at {
            meter.refuel();
        }
        Ok(())
    }
}
