//! Variables: in slots, in cells, in global slots.

use super::{Built, Constant, Expression, Local, Node, Slots};
use crate::builtins::registry::registry;
use crate::error::{Result, Thrown};
use crate::symbol::Sym;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use agentscript_lang::program::{Place, Unary};

/// Read a place.
#[inline(always)]
pub fn load(vm: &Vm, fp: &Slots, place: Place) -> Value {
    match place {
        Place::Slot(slot) => fp[slot.0 as usize].get(),
        Place::Cell(slot) => vm.heap.cells[fp[slot.0 as usize].get().index()],
        Place::Global(index) => vm.globals[index as usize],
    }
}

/// Write a place.
#[inline(always)]
pub fn store(vm: &mut Vm, fp: &Slots, place: Place, value: Value) {
    match place {
        Place::Slot(slot) => fp[slot.0 as usize].set(value),
        Place::Cell(slot) => {
            let cell = fp[slot.0 as usize].get().index();
            vm.heap.cells[cell] = value;
        }
        Place::Global(index) => vm.globals[index as usize] = value,
    }
}

/// A variable with what is needed to complain about it.
#[derive(Clone, Copy)]
pub struct Variable {
    /// Where it lives.
    pub place: Place,
    /// Its name.
    pub name: Sym,
    /// Whether it may be met before it is initialized.
    pub checked: bool,
    /// Offset in the source.
    pub at: u32,
}

impl Variable {
    #[inline(always)]
    fn check(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = load(vm, fp, self.place);
        if self.checked && value == Value::UNINITIALIZED {
            Err(uninitialized(vm, self.name, self.at))
        } else {
            Ok(value)
        }
    }

    /// The node that reads it.
    pub fn read(self) -> Built {
        match self.place {
            Place::Slot(slot) if !self.checked => Built::Local(Local(slot.0 as usize)),
            Place::Slot(_) | Place::Cell(_) | Place::Global(_) => Built::of(Read(self)),
        }
    }
}

#[cold]
fn uninitialized(vm: &mut Vm, name: Sym, at: u32) -> Thrown {
    let name = vm.symbol_text(name);
    vm.reference_error(&format!("Cannot access '{name}' before initialization")).at(vm, at)
}

struct Read(Variable);

impl Node for Read {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.0.check(vm, fp)
    }
}

/// `variable = value`
pub struct Write<E> {
    /// What is written.
    pub variable: Variable,
    /// The value.
    pub value: E,
}

impl<E: Node> Node for Write<E> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.value.eval(vm, fp)?;
        if self.variable.checked {
            self.variable.check(vm, fp)?;
        }
        store(vm, fp, self.variable.place, value);
        Ok(value)
    }
}

/// `temporary = value`
pub struct SetTemp {
    /// Which slot.
    pub slot: usize,
    /// The value.
    pub value: Expression,
}

impl Node for SetTemp {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.value.eval(vm, fp)?;
        fp[self.slot].set(value);
        Ok(value)
    }
}

/// `constant = value`
pub struct WriteConst {
    /// What cannot be written.
    pub variable: Variable,
    /// The value.
    pub value: Expression,
}

impl Node for WriteConst {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.value.eval(vm, fp)?;
        self.variable.check(vm, fp)?;
        Err(vm.type_error("Assignment to constant variable.").at(vm, self.variable.at))
    }
}

/// `variable++` and the like
pub struct Update {
    /// Which variable.
    pub variable: Variable,
    /// 1 or -1.
    pub delta: f64,
    /// Whether the new value is the result.
    pub prefix: bool,
}

impl Node for Update {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let old = self.variable.check(vm, fp)?;
        if old.is_number() {
            let new = Value::number(old.as_number() + self.delta);
            store(vm, fp, self.variable.place, new);
            return Ok(if self.prefix { new } else { old });
        }
        let old = vm.to_numeric(old).map_err(|thrown| thrown.at(vm, self.variable.at))?;
        let new = vm.unary(if self.delta > 0.0 { Unary::Increment } else { Unary::Decrement }, old)?;
        store(vm, fp, self.variable.place, new);
        Ok(if self.prefix { new } else { old })
    }
}

/// A name that the script does not declare.
pub struct Global {
    /// The name.
    pub name: Sym,
    /// Offset in the source.
    pub at: u32,
    /// For `typeof name`: nothing is no error.
    pub typeof_only: bool,
}

/// The value of a global that is the same in every run.
pub fn constant_global(name: &str) -> Option<Built> {
    let value = match name {
        "undefined" => Value::UNDEFINED,
        "NaN" => Value::NAN,
        "Infinity" => Value::number(f64::INFINITY),
        _ => Value::handle(Kind::Native, registry().global(name)?),
    };
    Some(Built::Constant(Constant(value)))
}

impl Node for Global {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        let name = vm.symbol_text(self.name);
        if name == "codecallContext" {
            return vm.context_value().map_err(|thrown| thrown.at(vm, self.at));
        }
        if vm.host.inputs.tools.is_app(&name) {
            return Ok(Value::handle(Kind::App, self.name.0));
        }
        if self.typeof_only { Ok(Value::UNDEFINED) } else { Err(undefined_name(vm, &name, self.at)) }
    }
}

#[cold]
fn undefined_name(vm: &mut Vm, name: &str, at: u32) -> Thrown {
    vm.undefined_name(name).at(vm, at)
}

/// `name = value` of a name that the script does not declare.
pub struct WriteGlobal {
    /// The name.
    pub name: Sym,
    /// The value.
    pub value: Expression,
    /// Offset in the source.
    pub at: u32,
}

impl Node for WriteGlobal {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.value.eval(vm, fp)?;
        let name = vm.symbol_text(self.name);
        Err(undefined_name(vm, &name, self.at))
    }
}

/// A read of a parameter by the default of an earlier one.
pub struct Uninitialized {
    /// The name.
    pub name: Sym,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Uninitialized {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Err(uninitialized(vm, self.name, self.at))
    }
}
