//! Calls: arguments are evaluated straight into the slots of the frame that begins with them.

use super::{Active, Context};
use crate::eval::activation::Called;
use crate::eval::code::Function;
use crate::eval::execute;
use crate::eval::native::Body as NativeBody;
use crate::eval::node::{Body, Call, Callee, FixedCall, Node};
use crate::eval::registry::Native;
use crate::eval::stack::{Slots, Window};
use crate::eval::vm::Vm;
use crate::heap::Captures;
use crate::heap::frame::{After, Frame, FunctionRef};
use crate::meter::buffer::Buffer;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use agentscript_lang::program::Slot;

/// A call: its value, or `None` when the callee's frame is active now.
#[inline(always)]
pub(super) fn call_operation<'s>(
    vm: &mut Vm,
    context: &Context<'s>,
    active: &mut Active<'s>,
    call: &Call,
    next: Window,
    at: u32,
) -> Result<Option<Value>> {
    let (function, this) = match &call.callee {
        Callee::Local(function) => (active.fp[function.0].get(), Value::UNDEFINED),
        Callee::Value(function) => match function.eval(vm, active.fp) {
            Ok(function) => (function, Value::UNDEFINED),
            Err(thrown) => return Err(thrown.at(vm, at)),
        },
        callee => callee.eval(vm, active.fp).map_err(|thrown| thrown.at(vm, at))?,
    };
    if function.is(Kind::Function) && !call.spread {
        return call_function(vm, context, active, call, function, next, at);
    }
    let value = call_other(vm, context, call, (function, this), active.fp, next, at)?;
    if value.is_none()
        && let Ok(callee) = execute::topmost(vm, context)
    {
        *active = callee;
    }
    Ok(value)
}

/// Call a function of the script: arguments are evaluated straight into its frame. Gives the value of a leaf, or
/// `None` when the frame is active now.
#[inline(always)]
fn call_function<'s>(
    vm: &mut Vm,
    context: &Context<'s>,
    active: &mut Active<'s>,
    call: &Call,
    closure: Value,
    next: Window,
    at: u32,
) -> Result<Option<Value>> {
    let code = vm.heap.closures[closure.index()].code;
    let function = context.function(code);
    let (window, slots) = behind(vm, context, active, next, function.slots);
    if function.is_direct {
        return call_direct(vm, function, (code, closure), call, active.fp, slots).map(Some);
    }
    if function.rest.is_some() {
        pass_all(vm, function, closure, call, active.fp, slots)?;
    } else {
        let mut free = slots[..function.parameters as usize].iter();
        for argument in &call.arguments {
            let value = argument.value.eval(vm, active.fp)?;
            if let Some(slot) = free.next() {
                slot.set(value);
            }
        }
        free.for_each(|slot| slot.set(Value::UNDEFINED));
        vm.enter(function, closure, slots, None);
    }
    let after = if function.is_async { vm.after(function, After::Call) } else { After::Call };
    begin_call(vm, active, Active { function, fp: slots, pc: 0 }, (code, window), after, at)
}

/// Call a leaf that needs nothing but its arguments and what it captures. Out of line, so that the loop over
/// operations keeps its registers.
#[inline(never)]
fn call_direct(
    vm: &mut Vm,
    function: &Function,
    (code, closure): (FunctionRef, Value),
    call: &Call,
    fp: &Slots,
    slots: &Slots,
) -> Result {
    let slots = &slots[..function.slots as usize];
    let (parameters, others) = slots.split_at(function.parameters as usize);
    let mut free = parameters.iter();
    for argument in &call.arguments {
        let value = argument.value.eval(vm, fp)?;
        if let Some(slot) = free.next() {
            slot.set(value);
        }
    }
    match (others, &vm.heap.closures[closure.index()].captures) {
        // A closure with a single captured variable and no variables of its own.
        ([slot], Captures::One(capture)) if !function.simple => {
            free.for_each(|slot| slot.set(Value::UNDEFINED));
            slot.set(*capture);
        }
        _ => {
            free.chain(others).for_each(|slot| slot.set(Value::UNDEFINED));
            if !function.simple {
                vm.pass_captures(function, closure, slots);
            }
        }
    }
    vm.tick()?;
    let caller = std::mem::replace(&mut vm.stack.current, code);
    let result = vm.body(&function.body, slots);
    vm.stack.current = caller;
    result
}

/// Call a function that is known at compile time and needs nothing but its arguments.
#[inline(always)]
pub(super) fn call_fixed<'s>(
    vm: &mut Vm,
    context: &Context<'s>,
    active: &mut Active<'s>,
    call: &FixedCall,
    next: Window,
    at: u32,
) -> Result<Option<Value>> {
    let function = context.function(call.function);
    let (window, slots) = behind(vm, context, active, next, function.slots);
    let mut free = slots[..function.slots as usize].iter();
    for argument in &call.arguments {
        let value = argument.eval(vm, active.fp)?;
        if let Some(slot) = free.next() {
            slot.set(value);
        }
    }
    free.for_each(|slot| slot.set(Value::UNDEFINED));
    let callee = Active { function, fp: slots, pc: 0 };
    begin_call(vm, active, callee, (call.function, window), After::Call, at)
}

/// So many slots behind those of the frame that is executed, which end at `next`.
#[inline(always)]
fn behind<'s>(
    vm: &mut Vm,
    context: &Context<'s>,
    active: &Active<'s>,
    next: Window,
    slots: u32,
) -> (Window, &'s Slots) {
    match active.fp.get(active.function.slots as usize..) {
        Some(free) if free.len() >= slots as usize => (next, free),
        _ => elsewhere(vm, context, next, slots),
    }
}

#[cold]
#[inline(never)]
fn elsewhere<'s>(vm: &mut Vm, context: &Context<'s>, window: Window, slots: u32) -> (Window, &'s Slots) {
    let window = execute::new_window(vm, context, window, slots);
    (window, context.stack.slots(window))
}

/// Begin a function whose slots are filled: gives the value of a leaf, or `None` when its frame is active now.
#[inline(always)]
fn begin_call<'s>(
    vm: &mut Vm,
    active: &mut Active<'s>,
    callee: Active<'s>,
    (code, slots): (FunctionRef, Window),
    after: After,
    at: u32,
) -> Result<Option<Value>> {
    let Body::Ops = callee.function.body else {
        vm.tick()?;
        return vm.leaf(code, &callee.function.body, callee.fp).map(Some);
    };
    check_depth(vm, at)?;
    vm.stack.frames.push(Frame { code, pc: 0, dst: Slot(0), after, slots });
    vm.stack.current = code;
    *active = callee;
    Ok(None)
}

/// Call something else than a function of the script, or with spread arguments: gives the value, unless a frame
/// was pushed.
#[inline(never)]
fn call_other(
    vm: &mut Vm,
    context: &Context<'_>,
    call: &Call,
    (function, this): (Value, Value),
    fp: &Slots,
    next: Window,
    at: u32,
) -> Result<Option<Value>> {
    if !call.spread
        && function.is(Kind::Native)
        && let Native { call: NativeBody::Prelude(_), direct: None, .. } = vm.realm.registry.natives[function.index()]
    {
        return call_builtin(vm, context, call, (function, this), fp, next, at);
    }
    let mut values = Buffer::new();
    values.room(vm, call.arguments.len())?;
    for argument in &call.arguments {
        argument.push(vm, fp, &mut values).map_err(|thrown| thrown.at(vm, at))?;
    }
    if !function.is_callable() {
        return Err(call.not_callable(vm, function, this).at(vm, at));
    }
    let called = vm.call(function, this, &values, After::Call);
    let called = called.map_err(|thrown| thrown.at(vm, at))?;
    enter_called(vm, context, called, next, at)
}

/// Call a built-in of the prelude, with the receiver as its first argument; it may be a leaf if its callbacks are.
fn call_builtin(
    vm: &mut Vm,
    context: &Context<'_>,
    call: &Call,
    (native, this): (Value, Value),
    fp: &Slots,
    next: Window,
    at: u32,
) -> Result<Option<Value>> {
    let code = vm.prelude_code(native.payload(), false)?;
    let function = context.function(code);
    let window = execute::new_window(vm, context, next, function.slots);
    let slots = context.stack.slots(window);
    let rest = pass(vm, function, Some(this), call, fp, slots)?;
    let closure = vm.prelude_function(code);
    vm.enter(function, closure, slots, rest);
    vm.tick()?;
    let Body::Ops = function.body else {
        return vm.leaf(code, &function.body, slots).map(Some);
    };
    check_depth(vm, at)?;
    let after = vm.after(function, After::Call);
    vm.stack.frames.push(Frame { code, pc: 0, dst: Slot(0), after, slots: window });
    Ok(None)
}

/// The same where the remaining arguments go into an array.
#[inline(never)]
fn pass_all(vm: &mut Vm, function: &Function, closure: Value, call: &Call, fp: &Slots, slots: &Slots) -> Result<()> {
    let rest = pass(vm, function, None, call, fp, slots)?;
    vm.enter(function, closure, slots, rest);
    Ok(())
}

/// Evaluate arguments into the slots of a frame. Gives those that belong into an array.
#[inline(never)]
fn pass(
    vm: &mut Vm,
    function: &Function,
    this: Option<Value>,
    call: &Call,
    fp: &Slots,
    slots: &Slots,
) -> Result<Option<Vec<Value>>> {
    let parameters = function.parameters as usize;
    let mut count = 0;
    let mut rest = function.rest.map(|_| Vec::new());
    let mut pass = |value| {
        if count < parameters {
            slots[count].set(value);
        } else if let Some(rest) = &mut rest {
            rest.push(value);
        }
        count += 1;
    };
    if let Some(this) = this {
        pass(this);
    }
    for argument in &call.arguments {
        pass(argument.value.eval(vm, fp)?);
    }
    while count < parameters {
        slots[count].set(Value::UNDEFINED);
        count += 1;
    }
    Ok(rest)
}

/// Push the frame of a call that has one: gives the value otherwise.
pub(super) fn enter_called(
    vm: &mut Vm,
    context: &Context<'_>,
    called: Called,
    next: Window,
    at: u32,
) -> Result<Option<Value>> {
    match called {
        Called::Value(value) => Ok(Some(value)),
        Called::Frame(callee) => {
            check_depth(vm, at)?;
            execute::push_waiting(vm, context, callee, next);
            Ok(None)
        }
    }
}

/// An error where the stack is too deep for one more frame.
#[inline(always)]
fn check_depth(vm: &mut Vm, at: u32) -> Result<()> {
    if vm.stack.frames.len() as u64 > vm.heap.meter.limits.max_call_depth {
        return Err(vm.range_error("Maximum call stack size exceeded").at(vm, at));
    }
    Ok(())
}
