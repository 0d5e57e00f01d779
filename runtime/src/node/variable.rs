//! Variables: in slots, in cells, in global slots.

use super::{Built, Constant, Expression, Flow, Form, Local, Node, Slots, User, flow};
use crate::atom::Atom;
use crate::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use crate::vm::Vm;
use agentscript_lang::program::{Place, Unary};
use std::marker::PhantomData;

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

/// The location of a variable, as a type.
trait Home: Send + Sync + 'static {
    /// Its value; an error if it is not initialized.
    fn read(&self, vm: &mut Vm, fp: &Slots) -> Result;
    /// Set its value.
    fn write(&self, vm: &mut Vm, fp: &Slots, value: Value);
    /// Add to it, with a single look-up, if it holds a number that is not NaN. Gives the value before and after.
    fn add(&self, vm: &mut Vm, fp: &Slots, delta: f64) -> Option<(Value, Value)>;
}

/// The sum, and the value before, if these are numbers and not NaN. Values of other types are NaNs, and their sums too.
#[inline(always)]
fn sum(old: Value, delta: f64) -> Option<(Value, Value)> {
    let sum = old.as_number() + delta;
    (!sum.is_nan()).then(|| (old, Value::number(sum)))
}

/// A slot that is known to be initialized.
impl Home for Local {
    #[inline(always)]
    fn read(&self, _vm: &mut Vm, fp: &Slots) -> Result {
        Ok(fp[self.0].get())
    }

    #[inline(always)]
    fn write(&self, _vm: &mut Vm, fp: &Slots, value: Value) {
        fp[self.0].set(value);
    }

    #[inline(always)]
    fn add(&self, _vm: &mut Vm, fp: &Slots, delta: f64) -> Option<(Value, Value)> {
        let slot = &fp[self.0];
        sum(slot.get(), delta).inspect(|(_, new)| slot.set(*new))
    }
}

/// A location that may be uninitialized, with the name of the variable.
struct Named<H> {
    home: H,
    name: Atom,
    at: u32,
}

impl<H: Home> Home for Named<H> {
    #[inline(always)]
    fn read(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.home.read(vm, fp)?;
        if value == Value::UNINITIALIZED { Err(uninitialized(vm, self.name, self.at)) } else { Ok(value) }
    }

    #[inline(always)]
    fn write(&self, vm: &mut Vm, fp: &Slots, value: Value) {
        self.home.write(vm, fp, value);
    }

    #[inline(always)]
    fn add(&self, vm: &mut Vm, fp: &Slots, delta: f64) -> Option<(Value, Value)> {
        // No number is there before it is initialized.
        self.home.add(vm, fp, delta)
    }
}

/// A cell whose handle is in a slot.
struct InCell(usize);

impl Home for InCell {
    #[inline(always)]
    fn read(&self, vm: &mut Vm, fp: &Slots) -> Result {
        Ok(vm.heap.cells[fp[self.0].get().index()])
    }

    #[inline(always)]
    fn write(&self, vm: &mut Vm, fp: &Slots, value: Value) {
        vm.heap.cells[fp[self.0].get().index()] = value;
    }

    #[inline(always)]
    fn add(&self, vm: &mut Vm, fp: &Slots, delta: f64) -> Option<(Value, Value)> {
        let cell = &mut vm.heap.cells[fp[self.0].get().index()];
        sum(*cell, delta).inspect(|(_, new)| *cell = *new)
    }
}

/// A global slot.
struct InGlobal(usize);

impl Home for InGlobal {
    #[inline(always)]
    fn read(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(vm.realm.globals[self.0])
    }

    #[inline(always)]
    fn write(&self, vm: &mut Vm, _fp: &Slots, value: Value) {
        vm.realm.globals[self.0] = value;
    }

    #[inline(always)]
    fn add(&self, vm: &mut Vm, _fp: &Slots, delta: f64) -> Option<(Value, Value)> {
        let global = &mut vm.realm.globals[self.0];
        sum(*global, delta).inspect(|(_, new)| *global = *new)
    }
}

/// The location of a variable as a type. Variables that need no check never hold [`Value::UNINITIALIZED`], so cells
/// and globals are always checked.
macro_rules! home {
    ($variable:expr, $home:ident => $then:expr) => {{
        let Variable { place, name, checked, at } = $variable;
        match place {
            Place::Slot(slot) if !checked => {
                let $home = Local(slot.0 as usize);
                $then
            }
            Place::Slot(slot) => {
                let $home = Named { home: Local(slot.0 as usize), name, at };
                $then
            }
            Place::Cell(slot) => {
                let $home = Named { home: InCell(slot.0 as usize), name, at };
                $then
            }
            Place::Global(index) => {
                let $home = Named { home: InGlobal(index as usize), name, at };
                $then
            }
        }
    }};
}

impl Variable {
    /// The node that reads it.
    pub fn read(self) -> Built {
        match self.place {
            Place::Slot(slot) if !self.checked => Built::Local(Local(slot.0 as usize)),
            Place::Slot(_) | Place::Cell(_) | Place::Global(_) => home!(self, home => Built::from_node(Read(home))),
        }
    }

    /// `variable = value`
    pub fn write<F: Form>(self, value: Built) -> F {
        match self.place {
            Place::Slot(slot) if !self.checked => write_slot(slot.0 as usize, value),
            Place::Slot(_) | Place::Cell(_) | Place::Global(_) => home!(self, home => {
                F::with_sum(value, Target(home, PhantomData))
            }),
        }
    }

    /// `variable = variable + delta`, for a variable in a cell or global slot as it is read: `value` is all of what is
    /// assigned.
    pub fn step<F: Form>(self, delta: f64, value: Built) -> F {
        home!(self, home => F::from_node(Step { home, delta, value: value.node() }))
    }

    /// `variable++` and the like; `delta` is 1 or -1.
    pub fn update<F: Form>(self, delta: f64, prefix: bool) -> F {
        let at = self.at;
        home!(self, home => F::from_node(Update { home, delta, prefix, at }))
    }

    /// `constant = value`
    pub fn write_const(self, value: Expression) -> Built {
        home!(self, home => Built::from_node(WriteConst { home, value, at: self.at }))
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
pub fn write_slot<F: Form>(slot: usize, value: Built) -> F {
    F::with_value(value, Target(Local(slot), PhantomData))
}

/// What gets a value.
struct Target<H, F>(H, PhantomData<F>);

impl<H: Home, F: Form> User for Target<H, F> {
    type Made = F;
    fn with(self, value: impl Node + 'static) -> F {
        F::from_node(Write { home: self.0, value })
    }
}

#[cold]
fn uninitialized(vm: &mut Vm, name: Atom, at: u32) -> Thrown {
    let name = vm.atom_text(name);
    vm.reference_error(&format!("Cannot access '{name}' before initialization")).at(vm, at)
}

struct Read<H>(H);

impl<H: Home> Node for Read<H> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.0.read(vm, fp)
    }
}

struct Write<H, E> {
    home: H,
    value: E,
}

impl<H: Home, E: Node> Node for Write<H, E> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = if self.value.is_arithmetic() {
            let double = self.value.double(vm, fp);
            if !double.is_nan() {
                self.home.read(vm, fp)?;
                self.home.write(vm, fp, Value::number(double));
                return Ok(Value::number(double));
            }
            vm.from_double(double)?
        } else {
            self.value.eval(vm, fp)?
        };
        self.home.read(vm, fp)?;
        self.home.write(vm, fp, value);
        Ok(value)
    }
}

/// `expression;` where the expression is so short that saving registers would be a third of it.
#[inline(always)]
fn exec_short(expression: &impl Node, vm: &mut Vm, fp: &Slots) -> Flow {
    if vm.tick_unsettled() {
        return exec_settled(expression, vm, fp);
    }
    flow!(expression.run(vm, fp));
    Flow::Normal
}

/// The same where the fuel is used up.
#[cold]
#[inline(never)]
fn exec_settled(expression: &impl Node, vm: &mut Vm, fp: &Slots) -> Flow {
    flow!(vm.settle());
    flow!(expression.run(vm, fp));
    Flow::Normal
}

/// `variable = variable + delta`
struct Step<H> {
    home: H,
    delta: f64,
    value: Expression,
}

impl<H: Home> Node for Step<H> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        match self.home.add(vm, fp, self.delta) {
            Some((_, new)) => Ok(new),
            None => step_other(self, vm, fp),
        }
    }

    #[inline(always)]
    fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<()> {
        match self.home.add(vm, fp, self.delta) {
            Some(_) => Ok(()),
            None => step_other(self, vm, fp).map(drop),
        }
    }

    #[inline(always)]
    fn exec_expression(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        exec_short(self, vm, fp)
    }
}

/// The path for other types than numbers, which saves registers.
#[cold]
#[inline(never)]
fn step_other<H: Home>(step: &Step<H>, vm: &mut Vm, fp: &Slots) -> Result {
    let value = step.value.eval(vm, fp)?;
    step.home.write(vm, fp, value);
    Ok(value)
}

struct WriteConst<H> {
    home: H,
    value: Expression,
    at: u32,
}

impl<H: Home> Node for WriteConst<H> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.value.eval(vm, fp)?;
        self.home.read(vm, fp)?;
        Err(vm.type_error("Assignment to constant variable.").at(vm, self.at))
    }
}

/// `variable++` and the like
pub struct Update<H> {
    home: H,
    delta: f64,
    prefix: bool,
    at: u32,
}

impl Update<Local> {
    /// Increment or decrement a slot, for its effect.
    pub fn slot(slot: usize, delta: f64, at: u32) -> Self {
        Self { home: Local(slot), delta, prefix: true, at }
    }
}

impl<H: Home> Node for Update<H> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        match self.home.add(vm, fp, self.delta) {
            Some((old, new)) => Ok(if self.prefix { new } else { old }),
            None => update_other(self, vm, fp),
        }
    }

    #[inline(always)]
    fn run(&self, vm: &mut Vm, fp: &Slots) -> Result<()> {
        match self.home.add(vm, fp, self.delta) {
            Some(_) => Ok(()),
            None => update_other(self, vm, fp).map(drop),
        }
    }

    #[inline(always)]
    fn exec_expression(&self, vm: &mut Vm, fp: &Slots) -> Flow {
        exec_short(self, vm, fp)
    }
}

/// The path for other types than numbers, which saves registers.
#[cold]
#[inline(never)]
fn update_other<H: Home>(update: &Update<H>, vm: &mut Vm, fp: &Slots) -> Result {
    let old = update.home.read(vm, fp)?;
    let old = vm.to_numeric(old).map_err(|thrown| thrown.at(vm, update.at))?;
    let new = vm.unary(if update.delta > 0.0 { Unary::Increment } else { Unary::Decrement }, old)?;
    update.home.write(vm, fp, new);
    Ok(if update.prefix { new } else { old })
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
        let name = vm.atom_text(self.name);
        let dialect = vm.realm.script.linker.dialect();
        if name == dialect.input_name() {
            return vm.context_value().map_err(|thrown| thrown.at(vm, self.at));
        }
        if dialect.has_apps() && vm.host.tools.is_app(&name) {
            return Ok(Value::handle(Kind::App, self.name.0));
        }
        if let Some(tool) = vm.host.tools.function(&name) {
            let tool = vm.string(&tool);
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
    vm.undefined_name(name).at(vm, at)
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
        let name = vm.atom_text(self.name);
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
