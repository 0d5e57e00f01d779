//! Variables: in slots, in cells, in global slots.

use super::{Built, Constant, Expression, Local, Node, Slots};
use crate::eval::suggest;
use crate::eval::vm::Vm;
use crate::value::atom::Atom;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::{Place, Unary};

/// Write a variable.
#[inline(always)]
pub fn store(vm: &mut Vm, fp: &Slots, place: Place, value: Value) {
    match place {
        Place::Slot(slot) => fp[slot.0 as usize].set(value),
        Place::Cell(slot) => {
            let cell = fp[slot.0 as usize].get().index();
            vm.heap.cells[cell] = value;
        }
        Place::Global(index) => vm.realm.globals[index as usize] = value,
    }
}

/// A variable, with what its errors need.
#[derive(Clone, Copy)]
pub struct Variable {
    /// Its location.
    pub place: Place,
    /// Its name.
    pub name: Atom,
    /// Whether it may be accessed before it is initialized.
    pub checked: bool,
    /// Offset in the source.
    pub at: u32,
}

/// Where a value is stored.
trait Location: Copy + Send + Sync + 'static {
    /// Gets its value; an error if it is not initialized.
    fn get(self, vm: &mut Vm, fp: &Slots) -> Result;
    /// Sets its value.
    fn set(self, vm: &mut Vm, fp: &Slots, value: Value);
}

/// A slot that is known to be initialized.
impl Location for Local {
    #[inline(always)]
    fn get(self, _vm: &mut Vm, fp: &Slots) -> Result {
        Ok(fp[self.0].get())
    }

    #[inline(always)]
    fn set(self, _vm: &mut Vm, fp: &Slots, value: Value) {
        fp[self.0].set(value);
    }
}

impl Location for Variable {
    #[inline(always)]
    fn get(self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = match self.place {
            Place::Slot(slot) => fp[slot.0 as usize].get(),
            Place::Cell(slot) => vm.heap.cells[fp[slot.0 as usize].get().index()],
            Place::Global(index) => vm.realm.globals[index as usize],
        };
        if value == Value::UNINITIALIZED { Err(uninitialized(vm, self.name, self.at)) } else { Ok(value) }
    }

    #[inline(always)]
    fn set(self, vm: &mut Vm, fp: &Slots, value: Value) {
        store(vm, fp, self.place, value);
    }
}

impl Variable {
    /// Builds the node that reads it.
    pub fn read(self) -> Built {
        match self.slot() {
            Some(slot) => Built::Local(Local(slot)),
            None => Built::from_node(Read(self)),
        }
    }

    /// `variable = value`
    pub fn write(self, value: Expression) -> Expression {
        match self.slot() {
            Some(slot) => write_slot(slot, value),
            None => Box::new(Write { location: self, value }),
        }
    }

    /// `variable++` and the like; `delta` is 1 or -1.
    pub fn update(self, delta: f64, prefix: bool) -> Expression {
        let at = self.at;
        match self.slot() {
            Some(slot) => Box::new(Update { location: Local(slot), delta, prefix, at }),
            None => Box::new(Update { location: self, delta, prefix, at }),
        }
    }

    /// `constant = value`
    pub fn write_const(self, value: Expression) -> Built {
        Built::from_node(WriteConst { variable: self, value })
    }

    /// Its slot, if it is in one that is known to be initialized.
    pub fn slot(self) -> Option<usize> {
        match self.place {
            Place::Slot(slot) if !self.checked => Some(slot.0 as usize),
            Place::Slot(_) | Place::Cell(_) | Place::Global(_) => None,
        }
    }
}

/// `slot = value`
pub fn write_slot(slot: usize, value: Expression) -> Expression {
    Box::new(Write { location: Local(slot), value })
}

#[cold]
fn uninitialized(vm: &mut Vm, name: Atom, at: u32) -> Thrown {
    let name = vm.heap.atom_text(name);
    vm.reference_error(&format!("Cannot access '{name}' before initialization")).at(vm, at)
}

struct Read(Variable);

impl Node for Read {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.0.get(vm, fp)
    }
}

struct Write<L> {
    location: L,
    value: Expression,
}

impl<L: Location> Node for Write<L> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.value.eval(vm, fp)?;
        self.location.get(vm, fp)?;
        self.location.set(vm, fp, value);
        Ok(value)
    }
}

struct WriteConst {
    variable: Variable,
    value: Expression,
}

impl Node for WriteConst {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.value.eval(vm, fp)?;
        self.variable.get(vm, fp)?;
        Err(vm.type_error("Assignment to constant variable.").at(vm, self.variable.at))
    }
}

struct Update<L> {
    location: L,
    delta: f64,
    prefix: bool,
    at: u32,
}

impl<L: Location> Node for Update<L> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let old = self.location.get(vm, fp)?;
        if !old.is_number() {
            return self.update_other(vm, fp, old);
        }
        let new = Value::number(old.as_number() + self.delta);
        self.location.set(vm, fp, new);
        Ok(if self.prefix { new } else { old })
    }
}

impl<L: Location> Update<L> {
    #[cold]
    fn update_other(&self, vm: &mut Vm, fp: &Slots, old: Value) -> Result {
        let old = vm.to_numeric(old).map_err(|thrown| thrown.at(vm, self.at))?;
        let new = vm.unary(if self.delta > 0.0 { Unary::Increment } else { Unary::Decrement }, old)?;
        self.location.set(vm, fp, new);
        Ok(if self.prefix { new } else { old })
    }
}

/// A name that the script does not declare.
pub struct Global {
    /// The name.
    pub name: Atom,
    /// Offset in the source.
    pub at: u32,
    /// For `typeof name`: an unknown name is `undefined`.
    pub typeof_only: bool,
}

/// The value of a global that is the same in every run; `function` is that of the language or the host.
pub fn constant_global(name: &str, function: Option<Value>) -> Option<Built> {
    let value = match name {
        "undefined" => Value::UNDEFINED,
        "NaN" => Value::NAN,
        "Infinity" => Value::number(f64::INFINITY),
        _ => function?,
    };
    Some(Built::Constant(Constant(value)))
}

impl Node for Global {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        let name = vm.heap.atom_text(self.name);
        let dialect = vm.realm.script.linker.dialect();
        if name == dialect.input_name() {
            return (vm.realm.registry.hooks.input)(vm).map_err(|thrown| thrown.at(vm, self.at));
        }
        if dialect.has_apps() && vm.host.tools.is_app(&name) {
            return Ok(Value::handle(Kind::App, self.name.0));
        }
        if let Some(tool) = vm.host.tools.function(&name) {
            let tool = vm.heap.string(&tool);
            return Ok(Value::handle(Kind::Tool, tool.payload()));
        }
        if let Some(function) = vm.realm.script.linker.function(&name) {
            return Ok(function);
        }
        if self.typeof_only { Ok(Value::UNDEFINED) } else { Err(undefined_name(vm, &name, self.at)) }
    }
}

#[cold]
fn undefined_name(vm: &mut Vm, name: &str, at: u32) -> Thrown {
    suggest::undefined_name(vm, name).at(vm, at)
}

/// `name = value` of a name that the script does not declare.
pub struct WriteGlobal {
    /// The name.
    pub name: Atom,
    /// The value.
    pub value: Expression,
    /// Offset in the source.
    pub at: u32,
}

impl Node for WriteGlobal {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.value.eval(vm, fp)?;
        let name = vm.heap.atom_text(self.name);
        Err(undefined_name(vm, &name, self.at))
    }
}

/// A read of a parameter by the default of an earlier one.
pub struct Uninitialized {
    /// The name.
    pub name: Atom,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Uninitialized {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Err(uninitialized(vm, self.name, self.at))
    }
}
