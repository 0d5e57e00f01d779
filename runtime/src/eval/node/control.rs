//! Statements that cannot suspend.

use super::{AnyStatement, Expression, Flow, Slots, Statement, flow, store};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::{Cause, Thrown};
use agentscript_lang::program::{Initial, Place};

/// Enter the scope of a binding.
pub struct Enter(pub Place, pub Initial);

impl Statement for Enter {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        let value = match self.1 {
            Initial::Uninitialized => Value::UNINITIALIZED,
            Initial::Undefined => Value::UNDEFINED,
        };
        match self.0 {
            Place::Slot(slot) => fp[slot.0 as usize].set(value),
            Place::Cell(slot) => fp[slot.0 as usize].set(vm.heap.new_cell(value)),
            Place::Global(index) => vm.realm.globals[index as usize] = value,
        }
        Flow::Normal
    }
}

/// `let name = value`
pub struct Initialize(pub Place, pub Expression);

impl Statement for Initialize {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        flow!(vm.tick());
        let value = flow!(self.1.eval(vm, fp));
        store(vm, fp, self.0, value);
        Flow::Normal
    }
}

/// `{ … }`
pub struct Block(pub Box<[AnyStatement]>);

impl Statement for Block {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        for statement in &self.0 {
            match statement.exec(vm, fp) {
                Flow::Normal => {}
                flow => return flow,
            }
        }
        Flow::Normal
    }
}

/// `if (test) yes else no`
pub struct If {
    /// The test.
    pub test: Expression,
    /// The statement where it holds.
    pub yes: AnyStatement,
    /// The statement where it does not.
    pub no: Option<AnyStatement>,
}

impl Statement for If {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        flow!(vm.tick());
        if flow!(self.test.test(vm, fp)) {
            return self.yes.exec(vm, fp);
        }
        match &self.no {
            Some(no) => no.exec(vm, fp),
            None => Flow::Normal,
        }
    }
}

/// `switch`
pub struct Switch {
    /// Its number.
    pub label: usize,
    /// What is compared.
    pub subject: Expression,
    /// Holds that value.
    pub slot: usize,
    /// Tests with the index of their first statement; `default` has no test.
    pub tests: Box<[(Option<Expression>, usize)]>,
    /// The statements of all cases.
    pub statements: Box<[AnyStatement]>,
}

impl Statement for Switch {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        flow!(vm.tick());
        fp[self.slot].set(flow!(self.subject.eval(vm, fp)));
        let mut start = None;
        for (test, target) in &self.tests {
            if let Some(test) = test
                && flow!(test.test(vm, fp))
            {
                start = Some(*target);
                break;
            }
        }
        let default = || self.tests.iter().find(|(test, _)| test.is_none()).map(|&(_, target)| target);
        let Some(start) = start.or_else(default) else { return Flow::Normal };
        for statement in &self.statements[start..] {
            match statement.exec(vm, fp) {
                Flow::Normal => {}
                Flow::Break(label) if label == self.label => return Flow::Normal,
                flow => return flow,
            }
        }
        Flow::Normal
    }
}

/// `label: statement`
pub struct Labeled(pub usize, pub AnyStatement);

impl Statement for Labeled {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        match self.1.exec(vm, fp) {
            Flow::Break(label) if label == self.0 => Flow::Normal,
            flow => flow,
        }
    }
}

/// `try`
pub struct Try {
    /// The guarded block.
    pub body: AnyStatement,
    /// Slot of the caught value, and the handler.
    pub catch: Option<(usize, AnyStatement)>,
    /// The finalizer.
    pub finally: Option<AnyStatement>,
}

impl Statement for Try {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        let mut flow = self.body.exec(vm, fp);
        if let Some((slot, handler)) = &self.catch {
            flow = match flow {
                Flow::Throw(Thrown(cause)) => match *cause {
                    Cause::Value(value) => {
                        fp[*slot].set(value);
                        handler.exec(vm, fp)
                    }
                    Cause::Stop(_) => Flow::Throw(Thrown(cause)),
                },
                flow => flow,
            };
        }
        if let Some(finally) = &self.finally {
            if let Flow::Throw(Thrown(cause)) = &flow
                && matches!(**cause, Cause::Stop(_))
            {
                return flow;
            }
            match finally.exec(vm, fp) {
                Flow::Normal => {}
                other => return other,
            }
        }
        flow
    }
}

/// `break`
pub struct Break(pub usize);

impl Statement for Break {
    fn exec(&self, _vm: &mut Vm, _fp: &Slots) -> Flow {
        Flow::Break(self.0)
    }
}

/// `continue`
pub struct Continue;

impl Statement for Continue {
    fn exec(&self, _vm: &mut Vm, _fp: &Slots) -> Flow {
        Flow::Continue
    }
}

/// `return value`
pub struct Return(pub Expression);

impl Statement for Return {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        flow!(vm.tick());
        Flow::Return(flow!(self.0.eval(vm, fp)))
    }
}

/// `throw value`
pub struct Throw {
    /// The value.
    pub value: Expression,
    /// Offset in the source.
    pub at: u32,
}

impl Statement for Throw {
    fn exec(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        flow!(vm.tick());
        let value = flow!(self.value.eval(vm, fp));
        vm.stack.thrown = None;
        Flow::Throw(Thrown::value(value).at(vm, self.at))
    }
}
