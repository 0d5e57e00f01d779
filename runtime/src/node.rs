//! What is executed: trees of specialised nodes, and operations where a tree could be left in the
//! middle.
//!
//! An expression or statement that cannot suspend is one tree, evaluated by ordinary calls of Rust.
//! Whatever can suspend (an `await`, a call of a function of the script, a loop, which may have to
//! pause) is an operation of a list; its operands are trees. So no function of the script is ever on
//! the native stack, but for leaves that call nothing.

mod call;
mod control;
mod each;
mod literal;
mod operand;
mod operator;
mod property;
mod variable;

pub use call::*;
pub use control::*;
pub use each::*;
pub use literal::*;
pub use operand::*;
pub use operator::*;
pub use property::*;
pub use variable::*;

use crate::error::{Result, Thrown};
use crate::value::Value;
use crate::vm::Vm;
use agentscript_lang::Span;
use agentscript_lang::program::{ForEach, Slot};
use std::cell::Cell;

/// The slots of a frame.
pub type Slots = [Cell<Value>];

/// An expression.
pub trait Node: Send + Sync {
    /// Its value.
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result;

    /// Whether its value counts as true.
    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        let value = self.eval(vm, fp)?;
        Ok(vm.truthy(value))
    }

    /// Whether it is a number wherever it is evaluated. Asked of nodes whose type is known, so that it
    /// is decided when this is compiled.
    #[inline(always)]
    fn is_number(&self) -> bool {
        false
    }
}

/// An expression of any kind.
pub type Expression = Box<dyn Node>;

/// A statement.
pub trait Statement: Send + Sync {
    /// Execute it.
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow;
}

/// A statement of any kind.
pub type AnyStatement = Box<dyn Statement>;

/// How a statement ended. All that it can hold is of one size, so that it is returned in registers.
pub enum Flow {
    /// The next one follows.
    Normal,
    /// `break` out of the statement of that number.
    Break(usize),
    /// `continue` with the innermost loop: to an outer one leads a jump.
    Continue,
    /// `return`
    Return(Value),
    /// `throw`
    Throw(Thrown),
}

/// The value of a result, or the end of the statement.
macro_rules! flow {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(thrown) => return $crate::node::Flow::Throw(thrown),
        }
    };
}
pub(crate) use flow;

/// The body of a function.
pub enum Body {
    /// Something in it can suspend: the operations of the function.
    Ops,
    /// Statements that cannot suspend.
    Tree(AnyStatement),
    /// `return expression` that cannot suspend.
    Value(Expression),
}

/// An operation with its offset in the source.
pub struct Op {
    /// What is done.
    pub kind: OpKind,
    /// Offset in the source.
    pub at: u32,
    /// Whether it may be entered again where it ran out of memory: nothing that comes before that has an effect.
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
    /// Go there if the value counts as true.
    JumpIf(Expression, u32),
    /// Go there if it does not.
    JumpUnless(Expression, u32),
    /// Go there unless the slot holds `undefined` or `null`.
    JumpUnlessNullish(Slot, u32),
    /// Go where the number in the slot says; the next operation where it is not listed.
    Dispatch(Slot, Box<[u32]>),
    /// A turn of a loop begins.
    Turn,
    /// A turn of a loop begins if the value counts as true; else go there.
    While(Expression, u32),
    /// A whole loop whose parts cannot suspend.
    Loop(Box<dyn Looping>),
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
    /// `$wait` of a promise, with all frames on the stack: the whole run waits. Entered again when there is
    /// news, so it only looks at the promise.
    Wait(Expression, Slot),
    /// `return`
    Return(Expression),
    /// `throw`
    Throw(Expression),
    /// What was thrown is thrown again: the end of a `finally`.
    Rethrow(Slot),
}
