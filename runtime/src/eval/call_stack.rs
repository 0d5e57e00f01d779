//! The frames of a run: on the stack, and suspended ones.

use crate::eval::code::Running;
use crate::eval::stack::Stack;
use crate::heap::Slab;
use crate::heap::frame::{FunctionRef, Waiting};
use crate::value::Value;

/// The execution contexts of ECMAScript: what runs, and what waits to go on.
pub struct CallStack {
    /// The function that is being evaluated.
    pub current: FunctionRef,
    /// The frames on the stack, the one that is executed last.
    pub frames: Vec<Running>,
    /// The slots of frames, while none is executed.
    pub slots: Option<Box<Stack>>,
    /// Frames of async functions that wait for a promise.
    pub suspended: Slab<Option<Waiting>>,
    /// The promise of the main function.
    pub main: Option<Value>,
    /// The promise that the frames on the stack wait for; a slot of theirs holds it.
    pub blocked_on: Option<Value>,
    /// The value that was thrown last, if it is no error, and where.
    pub thrown: Option<(Value, FunctionRef, u32)>,
    /// How many frames are below the innermost of those calls.
    pub nested_above: usize,
}

impl Default for CallStack {
    /// No frames; the main function is next.
    fn default() -> Self {
        Self {
            current: FunctionRef::script(0),
            frames: Vec::new(),
            slots: None,
            suspended: Slab::default(),
            main: None,
            blocked_on: None,
            thrown: None,
            nested_above: 0,
        }
    }
}
