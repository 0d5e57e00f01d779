//! Executable code: trees of specialised nodes, and lists of operations where code can suspend.
//!
//! An expression or statement that cannot suspend is one tree, evaluated by ordinary calls of Rust.
//! A node that can suspend is an operation of a list: an `await`, a call of a function of the script, a loop. Its
//! operands are trees. So no function of the script is on the native stack,
//! except leaves, which call nothing.

mod call;
mod control;
mod each;
mod iterate;
mod literal;
mod operand;
mod operator;
mod property;
mod variable;

pub use call::*;
pub use control::*;
pub use each::*;
pub use iterate::*;
pub use literal::*;
pub use operand::*;
pub use operator::*;
pub use property::*;
pub use variable::*;

use crate::eval::stack::Slots;
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::{Result, Thrown};
use agentscript_lang::Span;
use agentscript_lang::program::{ForEach, Slot};

/// The value of a result, or the end of the statement.
macro_rules! flow {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(thrown) => return $crate::eval::node::Flow::Throw(thrown),
        }
    };
}
pub(crate) use flow;

/// A statement.
pub trait Statement: Send + Sync {
    /// Executes it.
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow;
}

/// An expression, which is also the statement `expression;`.
pub trait Node: Statement {
    /// Evaluates it.
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result;

    /// Evaluates it and converts the value to a boolean.
    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        let value = self.eval(vm, fp)?;
        Ok(vm.truthy(value))
    }

    /// Whether every value of it is a number.
    fn is_number(&self) -> bool {
        false
    }
}

impl<N: Node> Statement for N {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        flow!(vm.tick());
        flow!(self.eval(vm, fp));
        Flow::Normal
    }
}

/// An expression of any kind.
pub type Expression = Box<dyn Node>;

/// A statement of any kind.
pub type AnyStatement = Box<dyn Statement>;

/// The completion of a statement. All payloads have one size, so that it is returned in registers.
pub enum Flow {
    /// The next one follows.
    Normal,
    /// `break` out of the statement of that number.
    Break(usize),
    /// `continue` of the innermost loop; an outer one is a jump.
    Continue,
    /// `return`
    Return(Value),
    /// `throw`
    Throw(Thrown),
}

/// The body of a function.
pub enum Body {
    /// Something in it can suspend: the operations of the function.
    Ops,
    /// Statements that cannot suspend.
    Tree(AnyStatement),
    /// The same with `return expression` at their end.
    Steps(AnyStatement, Expression),
    /// `return expression` that cannot suspend.
    Value(Expression),
}

/// An operation with its offset in the source.
pub struct Op {
    /// The operation.
    pub kind: OpKind,
    /// Offset in the source.
    pub at: u32,
    /// Whether it may be retried after running out of memory: it has no effect before.
    pub repeats: bool,
}

/// What an operation does. Numbers of operations are targets of jumps.
pub enum OpKind {
    /// A statement without `break` and `continue` to the outside.
    Run(AnyStatement),
    /// An expression for its effect.
    Eval(Expression),
    /// A slot gets a value.
    Set(Slot, Expression),
    /// Go to an operation.
    Jump(u32),
    /// A turn of a loop ends: evaluate its update, and go to its beginning.
    Again(Expression, u32),
    /// Jump if the value is truthy.
    JumpIf(Expression, u32),
    /// Jump if it is falsy.
    JumpUnless(Expression, u32),
    /// Jump unless the slot holds `undefined` or `null`.
    JumpUnlessNullish(Slot, u32),
    /// Jump to the target that the number in the slot selects; continue if there is none.
    Dispatch(Slot, Box<[u32]>),
    /// A turn of a loop begins.
    Turn,
    /// Begin a turn of a loop if the value is truthy, else jump.
    While(Expression, u32),
    /// A whole loop whose parts cannot suspend.
    Loop(Box<Loop>),
    /// A whole loop over items whose body cannot suspend; the iterator is in its slot.
    Each(Box<EachLoop>),
    /// A loop over items begins: its iterator goes into the slot.
    Iterate(ForEach, Expression, Slot, Span),
    /// The next item, or a jump when there is none.
    Next {
        /// Holds the iterator.
        iterator: Slot,
        /// Gets the item.
        item: Slot,
        /// Where to go at the end.
        end: u32,
    },
    /// A call.
    Call(Box<Call>, Slot),
    /// A call of a function that is known.
    CallFixed(FixedCall, Slot),
    /// `new` of a built-in that calls functions of the script.
    Construct(u32, Box<[Argument]>, Slot),
    /// `await`
    Await(Expression, Slot),
    /// `await` of an item of `for await`, as its iterator wraps it.
    AwaitItem(Slot),
    /// `$wait` of a promise, with all frames on the stack: the whole run waits. Executed again at the next event, so
    /// it only checks the promise.
    Wait(Expression, Slot),
    /// `return`
    Return(Expression),
    /// `throw`
    Throw(Expression),
    /// Rethrow at the end of a `finally`.
    Rethrow(Slot),
    /// An iterator over a value that may be an iterable of the script. [`OpKind::GotIterator`] follows.
    GetIterator(Box<GetIterator>),
    /// What `[Symbol.iterator]()` of the script has given becomes an iterator record; skipped where no such function
    /// was called.
    GotIterator(Slot, Wrapping),
    /// Jump if an iterator is one of the script.
    JumpIfScript(Slot, u32),
    /// The next item of an iterator that may be one of the script, or a jump when there is none. [`OpKind::Took`]
    /// follows.
    Step {
        /// Holds the iterator.
        iterator: Slot,
        /// Gets the item, or the result of `next`.
        item: Slot,
        /// Where to go at the end.
        end: u32,
        /// Where to go with the item of a built-in iterator.
        taken: u32,
    },
    /// What `next` of an iterator of the script has given: its item, or a jump at the end.
    Took {
        /// Holds the iterator.
        iterator: Slot,
        /// Holds the result and gets the item.
        item: Slot,
        /// Where to go at the end.
        end: u32,
    },
    /// Close an iterator that is not at its end: `return()`. [`OpKind::Closed`] follows.
    Close {
        /// Holds the iterator.
        iterator: Slot,
        /// Gets the result.
        result: Slot,
        /// Where to go if there is nothing to call.
        none: u32,
        /// Where to go if the iterator is a built-in one.
        builtin: u32,
    },
    /// What closing has given has to be an object, unless an exception is the reason of the closing.
    Closed {
        /// Holds the number of the completion.
        kind: Slot,
        /// Holds the result.
        result: Slot,
    },
    /// The value in a slot is spread: where it is an iterable of the script, an array of its items takes its place.
    List(Slot, Spread, bool),
    /// The arguments of a generator are bound: a call of it gives the generator object.
    GeneratorStart,
    /// `yield`
    Yield {
        /// What is yielded.
        value: Expression,
        /// Gets what the generator is resumed with.
        dst: Slot,
        /// Where to go if it is resumed by `return`.
        returned: u32,
    },
    /// `yield*` calls a method of the inner iterator. [`OpKind::Delegated`] follows.
    Delegate(Box<Delegate>),
    /// What that method has given.
    Delegated(Box<Delegate>),
    /// `yield*` yields it.
    YieldStar(Box<Delegate>),
}
