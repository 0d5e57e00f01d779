//! Loops whose parts cannot suspend. Each is one operation that can pause between two turns, because all its state is
//! in slots.

use super::{AnyStatement, Expression, Flow, Node, Slots, User};
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;

/// A loop as one operation.
pub trait Looping: Send + Sync {
    /// Run until the loop ends or pauses.
    fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<Turned>;
}

/// The turns of a loop.
pub struct Turns<U> {
    /// Evaluated after each turn.
    pub update: U,
    /// The body.
    pub body: AnyStatement,
    /// Slots of cells that get a copy for each turn.
    pub fresh: Box<[usize]>,
    /// Whether turns count as iterations of the script.
    pub counted: bool,
}

struct Loop<T, U> {
    test: T,
    turns: Turns<U>,
}

/// `for (; test; update) body`, `while (test) body`
impl<U: Node + 'static> User for Turns<U> {
    type Made = Box<dyn Looping>;
    fn with(self, test: impl Node + 'static) -> Box<dyn Looping> {
        Box::new(Loop { test, turns: self })
    }
}

/// There is no update.
impl Node for () {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(Value::UNDEFINED)
    }
}

/// `do body while (test)`
pub struct DoWhile {
    /// The test.
    pub test: Expression,
    /// The body.
    pub body: AnyStatement,
    /// Whether turns count as iterations of the script.
    pub counted: bool,
}

/// A loop over items; the iterator is in its slot before.
pub struct EachLoop {
    /// Holds the iterator.
    pub iterator: usize,
    /// Gets the item.
    pub item: usize,
    /// The body.
    pub body: AnyStatement,
    /// Whether turns count as iterations of the script.
    pub counted: bool,
}

/// Why a loop stopped.
pub enum Turned {
    /// It has ended.
    Done,
    /// It has to pause.
    Pause,
    /// `return` inside it.
    Return(Value),
}

/// Create new cells for captured loop variables.
pub fn refresh(vm: &mut Vm, fp: &Slots, slots: &[usize]) {
    for &slot in slots {
        let value = vm.heap.cells[fp[slot].get().index()];
        fp[slot].set(vm.heap.new_cell(value));
    }
}

/// A loop body is entered.
#[inline(always)]
fn enter(vm: &mut Vm, counted: bool) -> Result<()> {
    if counted { vm.iteration() } else { vm.tick() }
}

/// Execute the body of a loop; return from the enclosing function if that ends the loop.
macro_rules! turn {
    ($flow:expr) => {
        match $flow {
            Flow::Normal | Flow::Continue => {}
            flow @ (Flow::Break(_) | Flow::Return(_) | Flow::Throw(_)) => return left(flow),
        }
    };
}

/// The end of a loop whose body is left. Out of line, the loop needs no more than one comparison.
#[inline(never)]
fn left(flow: Flow) -> Result<Turned> {
    match flow {
        Flow::Normal | Flow::Continue | Flow::Break(_) => Ok(Turned::Done),
        Flow::Return(value) => Ok(Turned::Return(value)),
        Flow::Throw(thrown) => Err(thrown),
    }
}

// Pausing was checked when the loop was entered, so a pause comes between two turns.

impl<T: Node, U: Node> Looping for Loop<T, U> {
    fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<Turned> {
        loop {
            if !self.test.test(vm, fp)? {
                return Ok(Turned::Done);
            }
            enter(vm, self.turns.counted)?;
            turn!(self.turns.body.exec(vm, fp));
            if !self.turns.fresh.is_empty() {
                refresh(vm, fp, &self.turns.fresh);
            }
            self.turns.update.run(vm, fp)?;
            if vm.pause_due()? {
                return Ok(Turned::Pause);
            }
        }
    }
}

impl Looping for DoWhile {
    fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<Turned> {
        loop {
            enter(vm, self.counted)?;
            turn!(self.body.exec(vm, fp));
            if !self.test.test(vm, fp)? {
                return Ok(Turned::Done);
            }
            if vm.pause_due()? {
                return Ok(Turned::Pause);
            }
        }
    }
}

impl EachLoop {
    /// Run until the end of the loop or a pause.
    pub fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<Turned> {
        loop {
            let iterator = fp[self.iterator].get();
            let Some(item) = vm.iterator_next(iterator)? else { return Ok(Turned::Done) };
            fp[self.item].set(item);
            enter(vm, self.counted)?;
            turn!(self.body.exec(vm, fp));
            // No item was taken yet, so none is lost.
            if vm.pause_due()? {
                return Ok(Turned::Pause);
            }
        }
    }
}
