//! Executable code: functions as lists of operations over trees of nodes, and their frames.

use crate::eval::node::{Body, Op};
use crate::eval::stack::Window;
use crate::heap::atoms::ProgramTexts;
use crate::heap::frame::Frame;
use crate::value::atom::Atom;
use agentscript_lang::Span;
use agentscript_lang::program::{ResultSource, Slot};
use std::sync::Arc;

/// A compiled script, or the prelude.
pub struct Code {
    /// Its functions; the main function comes first.
    pub functions: Vec<Function>,
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
    /// The statement or value that gives the result of the script.
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
    /// The body: a tree, or the operations in `ops`.
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

/// A frame on the stack.
pub type Running = Frame<Window>;
