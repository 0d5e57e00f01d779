//! Values that a result does not hold, for its warnings.

use super::{Writer, Written};
use crate::value::{Kind, Value};

impl Writer<'_> {
    /// Note that a value is not in the text.
    #[inline]
    pub(super) fn lost(&mut self, value: Value, how: &str) -> Written<()> {
        if self.warnings.is_some() { self.warn(value, how) } else { Ok(()) }
    }

    /// Note that an object is written without what it is.
    pub(super) fn emptied(&mut self, object: Value) -> Written<()> {
        match object.kind() {
            Kind::Object if self.vm.heap.class(object).is_error() => {
                self.warn(object, " is written without its message; return `error.message`")
            }
            Kind::Iterator => self.warn(object, " is written as {}; return `[...iterator]`"),
            Kind::ArrayBuffer => self.warn(object, " is written as {}; return `new Uint8Array(buffer).toBase64()`"),
            Kind::InternalSlots => {
                self.warn(object, " is written as {}; return `String(value)` or what is needed of it")
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn warn(&mut self, value: Value, how: &str) -> Written<()> {
        self.vm.work(8)?;
        let what = match value.kind() {
            Kind::Undefined | Kind::Empty => "undefined",
            Kind::Number if value.as_number().is_nan() => "NaN",
            Kind::Number if value.as_number() > 0.0 => "Infinity",
            Kind::Number => "-Infinity",
            Kind::Iterator => "an iterator",
            Kind::ArrayBuffer => "an ArrayBuffer",
            Kind::Object => "an error",
            Kind::InternalSlots => self.vm.heap.slots_class(value),
            _ => "a function",
        };
        let charge = self.vm.work(1)?;
        let segments = self.open.iter().map(|open| open.segment(&self.records, self.vm, charge));
        if let Some(mut warnings) = self.warnings.take() {
            warnings.add(segments, what, how);
            self.warnings = Some(warnings);
        }
        Ok(())
    }
}
