//! Loops whose parts cannot suspend. Each is one operation that can pause between two turns, because all its state is
//! in slots.

use super::{AnyStatement, Expression, Flow, Slots};
use crate::eval::pause;
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;

/// `for (; test; update) body`, `while (test) body`, `do body while (test)`
pub struct Loop {
    /// The test.
    pub test: Expression,
    /// Whether the test comes before the body; in `do body while (test)` it comes after it.
    pub tests_first: bool,
    /// The expression that is evaluated after each turn.
    pub update: Option<Expression>,
    /// The body.
    pub body: AnyStatement,
    /// Slots of cells that get a copy for each turn.
    pub fresh: Box<[usize]>,
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
pub enum LoopExit {
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
fn left(flow: Flow) -> Result<LoopExit> {
    match flow {
        Flow::Normal | Flow::Continue | Flow::Break(_) => Ok(LoopExit::Done),
        Flow::Return(value) => Ok(LoopExit::Return(value)),
        Flow::Throw(thrown) => Err(thrown),
    }
}

// Pausing was checked when the loop was entered, so a pause comes between two turns.

impl Loop {
    /// Runs until the end of the loop or a pause.
    pub fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<LoopExit> {
        loop {
            if self.tests_first && !self.test.test(vm, fp)? {
                return Ok(LoopExit::Done);
            }
            enter(vm, self.counted)?;
            turn!(self.body.exec(vm, fp));
            if !self.fresh.is_empty() {
                refresh(vm, fp, &self.fresh);
            }
            if let Some(update) = &self.update {
                update.eval(vm, fp)?;
            }
            if !self.tests_first && !self.test.test(vm, fp)? {
                return Ok(LoopExit::Done);
            }
            if pause::pause_due(vm)? {
                return Ok(LoopExit::Pause);
            }
        }
    }
}

impl EachLoop {
    /// Runs until the end of the loop or a pause.
    pub fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<LoopExit> {
        loop {
            let iterator = fp[self.iterator].get();
            let Some(item) = vm.iterator_next(iterator)? else { return Ok(LoopExit::Done) };
            fp[self.item].set(item);
            enter(vm, self.counted)?;
            turn!(self.body.exec(vm, fp));
            // No item was taken yet, so none is lost.
            if pause::pause_due(vm)? {
                return Ok(LoopExit::Pause);
            }
        }
    }
}
