//! Promises, their reactions and microtasks, as the heap stores them (ECMAScript 27.2).

use super::block;
use crate::value::Value;

/// Marks the origin of a promise that a callback of a built-in has returned.
const CALLBACK: u32 = 1 << 31;

/// The state of a promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not yet.
    #[default]
    Pending,
    /// With a value.
    Fulfilled,
    /// With a reason.
    Rejected,
}

/// A promise.
pub struct Promise {
    /// Its state.
    pub state: State,
    /// Its value or reason.
    pub value: Value,
    /// Its reactions.
    pub reactions: Reactions,
    /// Whether somebody handles its rejection: `[[PromiseIsHandled]]`.
    pub handled: bool,
    /// Where it comes from.
    pub origin: Origin,
}

impl Default for Promise {
    fn default() -> Self {
        Self {
            state: State::Pending,
            value: Value::UNDEFINED,
            reactions: Reactions::None,
            handled: false,
            origin: Origin::default(),
        }
    }
}

/// The reactions of a promise: nearly always one, which is stored inline.
#[derive(Debug, Default)]
pub enum Reactions {
    /// Nothing.
    #[default]
    None,
    /// One.
    One(Reaction),
    /// Several, in the order they came.
    Many(Vec<Reaction>),
}

impl Reactions {
    /// Append a reaction.
    pub fn push(&mut self, reaction: Reaction) {
        match self {
            Self::None => *self = Self::One(reaction),
            Self::One(first) => *self = Self::Many(vec![*first, reaction]),
            Self::Many(all) => all.push(reaction),
        }
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// All of them.
    pub fn as_slice(&self) -> &[Reaction] {
        match self {
            Self::None => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(all) => all,
        }
    }

    /// Bytes it takes beside the promise itself.
    pub fn cost(&self) -> usize {
        match self {
            Self::None | Self::One(_) => 0,
            // All of them become jobs at once.
            Self::Many(all) => block(all.capacity() * size_of::<Reaction>()) + all.len() * size_of::<Job>(),
        }
    }
}

/// A reaction to the settling of a promise.
#[derive(Clone, Copy, Debug)]
pub enum Reaction {
    /// Resume an async function: the number of its frame in
    /// [`CallStack::suspended`](crate::eval::call_stack::CallStack::suspended).
    Await(u32),
    /// Handlers of `then`, and the promise they resolve; `undefined` where there is none.
    Then {
        /// Called with the value.
        fulfilled: Value,
        /// Called with the reason.
        rejected: Value,
        /// The promise that the result of the handler resolves.
        derived: Value,
    },
}

/// A microtask.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// A reaction to a settled promise.
    React(Reaction, State, Value),
    /// `thenable.then(resolve, reject)` for a promise that was resolved with a thenable.
    Adopt {
        /// The promise.
        promise: Value,
        /// The value that the promise was resolved with.
        thenable: Value,
        /// Its method.
        then: Value,
    },
    /// `queueMicrotask(callback)`
    Call(Value),
    /// Throw an exception that nothing can catch.
    Throw(Value),
}

/// Where a promise comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// The call at an offset in the source gives it, or the callback of that call.
    pub fn call(offset: u32, is_callback: bool) -> Self {
        Self((offset + 1) | if is_callback { CALLBACK } else { 0 })
    }

    /// The offset, and whether a callback gives it; `None` where that is not known.
    pub fn place(self) -> Option<(usize, bool)> {
        Some(((self.0 & !CALLBACK).checked_sub(1)? as usize, self.0 & CALLBACK != 0))
    }
}
