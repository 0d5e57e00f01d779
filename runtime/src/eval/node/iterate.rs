//! Iterating over what may be an iterable of the script: the parameters of its operations.

use super::{Expression, Node, Slots};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_lang::Span;
use agentscript_lang::program::{Origin, Slot};

/// An iterator for a value.
pub struct GetIterator {
    /// The value.
    pub value: Expression,
    /// Gets the iterator.
    pub slot: Slot,
    /// What iterates.
    pub walker: Walker,
}

/// What iterates over a value.
#[derive(Clone, Copy, Debug)]
pub enum Walker {
    /// `for (… of value)`
    Loop(Span),
    /// `for await (… of value)`
    AwaitLoop(Span),
    /// `const […] = value`
    Pattern(Origin, Span),
    /// `yield* value`
    Delegate,
    /// The same in an async generator.
    AsyncDelegate,
}

impl Walker {
    /// Whether it asks for `[Symbol.asyncIterator]` first.
    pub fn is_async(self) -> bool {
        matches!(self, Self::AwaitLoop(_) | Self::AsyncDelegate)
    }
}

/// How the object that a method of the script has given is used as an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// It is used as it is.
    None,
    /// So is this one, which is asynchronous.
    Async,
    /// A synchronous one is wrapped for an asynchronous walker: `CreateAsyncFromSyncIterator` (ECMAScript 27.1.4.1)
    AsyncFromSync,
}

/// The slots of a `yield*`.
#[derive(Clone, Copy, Debug)]
pub struct Delegate {
    /// Holds the iterator.
    pub iterator: Slot,
    /// The value with which the generator was resumed.
    pub received: Slot,
    /// The kind of its resumption: a [`Resumption`](crate::eval::generator::Resumption), [`CLOSING`], or [`PASSING`].
    pub mode: Slot,
    /// The result of the inner iterator, or a value.
    pub result: Slot,
    /// Whether the generator is async.
    pub is_async: bool,
    /// Where to go with the value of the whole expression.
    pub ended: u32,
    /// Where to go to return the value.
    pub returned: u32,
    /// The same where the inner iterator has no `return`.
    pub missing: u32,
}

/// The inner iterator has no `throw` and is being closed.
pub const CLOSING: u8 = 3;

/// The inner iterator is a generator whose own `yield*` passes the result of an iterator on.
pub const PASSING: u8 = 4;

/// The item in a slot is appended to the array in another one.
pub struct Append {
    /// The slot of the array.
    pub items: usize,
    /// The slot of the item.
    pub item: usize,
}

impl Node for Append {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        vm.heap.push(fp[self.items].get(), fp[self.item].get());
        Ok(Value::UNDEFINED)
    }
}
