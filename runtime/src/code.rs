//! Executable code: functions as lists of operations over trees of nodes, and their frames.

use crate::atom::Atom;
use crate::atoms::ProgramTexts;
use crate::heap::{block, slab_cost};
use crate::node::{Body, Op};
use crate::spare::{self, Spares};
use crate::stack::Window;
use crate::value::Value;
use agentscript_lang::Span;
use agentscript_lang::program::{ResultSource, Slot};
use std::cell::Cell;
use std::sync::Arc;

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

/// A compiled script, or the prelude.
pub struct Code {
    /// Its functions; the main function comes first.
    #[expect(clippy::vec_box, reason = "no block of a kilobyte is allocated: see `spare`")]
    pub functions: Vec<Box<Function>>,
    /// About how many bytes it takes.
    pub bytes: usize,
    /// Its texts.
    pub texts: Arc<ProgramTexts>,
    /// Names of the global slots.
    pub globals: Vec<Atom>,
    /// Constant parts of tagged templates: cooked and raw.
    pub templates: Vec<(Vec<Option<Atom>>, Vec<Atom>)>,
    /// Spans of callees whose results are iterated directly, for messages.
    pub iterated: Vec<Span>,
    /// One more than the highest number of an object literal.
    pub object_sites: u32,
    /// What gives the result.
    pub result: ResultSource,
    /// Whether values of the script may be iterable: see [`Program::iterables`](agentscript_lang::program::Program).
    pub iterables: bool,
}

/// A compiled function.
pub struct Function {
    /// Its name.
    pub name: Option<Atom>,
    /// Whether it is async.
    pub is_async: bool,
    /// Whether it is a generator: a call makes a generator object.
    pub is_generator: bool,
    /// Whether it is an arrow function.
    pub is_arrow: bool,
    /// How many slots arguments go into.
    pub parameters: u32,
    /// The slot of the first captured variable; the others follow.
    pub first_capture: u32,
    /// Where the remaining arguments go.
    pub rest: Option<Slot>,
    /// The `length` of the function object.
    pub length: u32,
    /// Where the function object goes.
    pub itself: Option<Slot>,
    /// Parameters that live in cells.
    pub boxed: Box<[Slot]>,
    /// Size of a frame.
    pub slots: u32,
    /// Whether entering needs nothing but the arguments.
    pub simple: bool,
    /// Whether entering needs nothing but these and what is captured.
    pub captures_only: bool,
    /// Whether the same is true and nothing in it can suspend.
    pub is_direct: bool,
    /// What is executed.
    pub body: Body,
    /// The operations, where the body is no tree.
    pub ops: Vec<Op>,
    /// Its span in the source.
    pub span: Span,
    /// Which operations are guarded by which handler, the innermost first.
    pub handlers: Box<[Handler]>,
    /// The variable whose value it calls, where it does nothing else: `() => reject(new Error('late'))`.
    pub settles: Option<Outer>,
}

thread_local! {
    /// The memory of lists of operations that were dropped.
    pub static SPARE_OPS: Spares<Op> = const { Cell::new(Vec::new()) };
}

impl Drop for Function {
    fn drop(&mut self) {
        spare::put_back(&SPARE_OPS, std::mem::take(&mut self.ops));
    }
}

/// A variable of an enclosing function.
#[derive(Clone, Copy, Debug)]
pub enum Outer {
    /// A captured value, by its index.
    Captured(u32),
    /// A captured cell, by its index.
    Cell(u32),
    /// A global slot.
    Global(u32),
}

/// A range of operations guarded by a `catch` or `finally`.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    /// First guarded operation.
    pub from: u32,
    /// End of the range, exclusive.
    pub to: u32,
    /// The operation that handles it.
    pub target: u32,
    /// Where the thrown value goes.
    pub slot: Slot,
}

/// What happens to the value that a frame returns.
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
    /// What [`After::Job`] resolves.
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
    /// What happens to its result.
    pub after: After,
    /// Parameters, variables, captures, temporaries.
    pub slots: S,
}

/// A frame on the stack.
pub type Running = Frame<Window>;

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
