//! Frames: the activations of functions, as the heap stores them while they wait.

use super::{block, slab_cost};
use crate::value::Value;
use agentscript_lang::program::Slot;
use std::cell::Cell;

/// A reference to a function of the script or of the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionRef(u32);

const PRELUDE: u32 = 1 << 31;

impl FunctionRef {
    /// A function of the script.
    pub fn script(index: u32) -> Self {
        Self(index)
    }

    /// A function of the prelude.
    pub fn prelude(index: u32) -> Self {
        Self(index | PRELUDE)
    }

    /// Whether it is of the prelude.
    #[inline(always)]
    pub fn is_prelude(self) -> bool {
        self.0 & PRELUDE != 0
    }

    /// Its index among the functions of its code.
    #[inline(always)]
    pub fn index(self) -> usize {
        (self.0 & !PRELUDE) as usize
    }
}

/// The use of the value that a frame returns.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// The caller goes on with it.
    Call,
    /// It resolves the promise of an async function.
    Async(Value, Waiter),
    /// It resolves a promise that a reaction made, where there is one.
    Job(Value),
    /// A native function goes on with it.
    Nested,
    /// It is what a generator returns; who has resumed the generator gets it.
    Generator(Value, Resumer),
    /// It settles the promise of the oldest request of an async generator.
    AsyncGenerator(Value, Waiter),
}

/// Who has resumed a generator, and how it gets what the generator yields or returns.
#[derive(Clone, Copy, Debug)]
pub enum Resumer {
    /// The caller of `next`, `return` or `throw`: an object `{value, done}`.
    Caller,
    /// A loop, which gets the value itself: after a `yield` it goes on behind the operation that looks at the end.
    Loop,
    /// A promise that a reaction made.
    Job(Value),
    /// A native function.
    Nested,
}

/// Who gets the promise of an async function at its first `await` or its end.
#[derive(Clone, Copy, Debug)]
pub enum Waiter {
    /// Nobody any more.
    Nobody,
    /// The caller.
    Caller,
    /// The promise that [`After::Job`] resolves.
    Job(Value),
}

/// One activation of a function; `S` is its slots or their window on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Frame<S> {
    /// Which function.
    pub code: FunctionRef,
    /// The next operation.
    pub pc: u32,
    /// The slot of the value it waits for.
    pub dst: Slot,
    /// The use of its result.
    pub after: After,
    /// Parameters, variables, captures, temporaries.
    pub slots: S,
}

/// A frame that is not on the stack: suspended, or not begun.
pub type Waiting = Frame<Box<[Cell<Value>]>>;

impl Waiting {
    /// Bytes it takes beside its slots.
    pub const COST: usize = slab_cost::<Option<Self>>();

    /// Bytes it takes.
    pub fn cost(&self) -> usize {
        Self::COST + block(self.slots.len() * size_of::<Value>())
    }
}

impl<S> Frame<S> {
    /// The same frame with other slots, and the slots it had.
    pub fn with<T>(self, slots: T) -> (Frame<T>, S) {
        let Self { code, pc, dst, after, slots: before } = self;
        (Frame { code, pc, dst, after, slots }, before)
    }
}

impl After {
    /// The values that it holds.
    pub fn values(self) -> impl Iterator<Item = Value> {
        let (first, second) = match self {
            Self::Async(value, Waiter::Job(derived))
            | Self::AsyncGenerator(value, Waiter::Job(derived))
            | Self::Generator(value, Resumer::Job(derived)) => (Some(value), Some(derived)),
            Self::Async(value, Waiter::Nobody | Waiter::Caller)
            | Self::AsyncGenerator(value, Waiter::Nobody | Waiter::Caller)
            | Self::Generator(value, Resumer::Caller | Resumer::Loop | Resumer::Nested)
            | Self::Job(value) => (Some(value), None),
            Self::Call | Self::Nested => (None, None),
        };
        first.into_iter().chain(second)
    }
}
