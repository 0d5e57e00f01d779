//! Loops whose parts cannot suspend. Each is one operation that can pause between two turns: it is
//! entered again where it was left, because all its state is in slots.

use super::{AnyStatement, Expression, Flow, Node, Slots};
use crate::error::Result;
use crate::value::Value;
use crate::vm::Vm;

/// `for (; test; update) body`, `while (test) body`, `do body while (test)`
pub struct Loop {
    /// Absent: always true.
    pub test: Option<Expression>,
    /// Evaluated after each turn.
    pub update: Option<Expression>,
    /// The body.
    pub body: AnyStatement,
    /// Slots of cells that get a copy for each turn.
    pub fresh: Box<[usize]>,
    /// Whether the test comes after the body.
    pub test_after: bool,
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

/// How a loop came to its end, or that it has to pause.
pub enum Turned {
    /// It is done.
    Done,
    /// It has to be entered again later.
    Pause,
    /// `return` inside it.
    Return(Value),
}

/// Give new cells to the variables of a loop that closures share.
pub fn refresh(vm: &mut Vm, fp: &Slots, slots: &[usize]) {
    for &slot in slots {
        let value = vm.heap.cells[fp[slot].get().index()];
        fp[slot].set(vm.heap.new_cell(value));
    }
}

impl Loop {
    /// Run until the end of the loop or a pause.
    pub fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<Turned> {
        loop {
            if !self.test_after && !self.holds(vm, fp)? {
                return Ok(Turned::Done);
            }
            if self.counted {
                vm.iteration()?;
            } else {
                vm.tick()?;
            }
            match self.body.exec(vm, fp) {
                Flow::Normal | Flow::Continue => {}
                Flow::Break(_) => return Ok(Turned::Done),
                Flow::Return(value) => return Ok(Turned::Return(value)),
                Flow::Throw(thrown) => return Err(thrown),
            }
            if self.test_after {
                if !self.holds(vm, fp)? {
                    return Ok(Turned::Done);
                }
            } else {
                if !self.fresh.is_empty() {
                    refresh(vm, fp, &self.fresh);
                }
                if let Some(update) = &self.update {
                    update.eval(vm, fp)?;
                }
            }
            // A pause stands between two turns, where the loop can be entered again; whoever enters it
            // has just asked.
            if vm.pause_due()? {
                return Ok(Turned::Pause);
            }
        }
    }

    #[inline(always)]
    fn holds(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        match &self.test {
            Some(test) => test.test(vm, fp),
            None => Ok(true),
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
            if self.counted {
                vm.iteration()?;
            } else {
                vm.tick()?;
            }
            match self.body.exec(vm, fp) {
                Flow::Normal | Flow::Continue => {}
                Flow::Break(_) => return Ok(Turned::Done),
                Flow::Return(value) => return Ok(Turned::Return(value)),
                Flow::Throw(thrown) => return Err(thrown),
            }
            // No item has been taken that could be lost.
            if vm.pause_due()? {
                return Ok(Turned::Pause);
            }
        }
    }
}
