//! The slots of the frames on the call stack.
//!
//! A frame is a window on the stack. Arguments are evaluated into the slots after those of the caller, so nothing is
//! copied. The stack grows by segments that never move, so slots can be borrowed while frames are added. A frame that
//! is suspended is copied out.

use crate::value::Value;
use std::cell::{Cell, OnceCell};

/// The slots of a frame.
pub type Slots = [Cell<Value>];

/// The slots of a frame, from a pool or new.
pub fn new_slots(length: usize) -> Box<[Cell<Value>]> {
    (0..length).map(|_| Cell::new(Value::UNDEFINED)).collect()
}

/// Slots of the first segment; each further one has four times as many.
const FIRST: usize = 64;

/// More segments than fit into any memory.
const SEGMENTS: usize = 14;

/// The slots of frames, by segment.
#[derive(Default)]
pub struct Stack {
    segments: [OnceCell<Box<[Cell<Value>]>>; SEGMENTS],
}

/// The start of the slots of a frame, which may use its segment to the end.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    segment: u32,
    start: u32,
}

impl Window {
    /// The beginning of a stack.
    pub const FIRST: Self = Self { segment: 0, start: 0 };

    /// A window that begins so many slots later.
    #[inline(always)]
    pub fn after(self, slots: u32) -> Self {
        Self { start: self.start + slots, ..self }
    }
}

impl Stack {
    /// The slots from the beginning of a window to the end of its segment.
    #[inline(always)]
    pub fn slots(&self, window: Window) -> &Slots {
        let segment = self.segments[window.segment as usize].get();
        segment.and_then(|segment| segment.get(window.start as usize..)).unwrap_or(&[])
    }

    /// A window of so many slots at `window` or, where the segment is too short, at the start of a later one. Gives
    /// the bytes that were allocated.
    #[inline(always)]
    pub fn reserve(&self, window: Window, slots: u32) -> (Window, usize) {
        if self.slots(window).len() >= slots as usize { (window, 0) } else { self.grow(window, slots) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, window: Window, slots: u32) -> (Window, usize) {
        let mut allocated = 0;
        let mut number = if window.start == 0 { window.segment as usize } else { window.segment as usize + 1 };
        loop {
            let length = FIRST << (2 * number.min(SEGMENTS - 1));
            if length >= slots as usize || number >= SEGMENTS - 1 {
                let segment = self.segments[number.min(SEGMENTS - 1)].get_or_init(|| {
                    allocated = length * size_of::<Value>();
                    new_slots(length)
                });
                debug_assert!(segment.len() >= slots as usize, "no script is that large");
                return (Window { segment: number as u32, start: 0 }, allocated);
            }
            number += 1;
        }
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> usize {
        self.segments.iter().filter_map(OnceCell::get).map(|segment| segment.len() * size_of::<Value>()).sum()
    }
}
