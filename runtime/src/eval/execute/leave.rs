//! Leaving frames: returns, exceptions, and suspension.

use super::{Active, Context, Exit, NextFrame};
use crate::eval::execute::{self, generator_frame};
use crate::eval::generator;
use crate::eval::job;
use crate::eval::stack::Slots;
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Frame, Resumer, Waiter, Waiting};
use crate::heap::promise::{Reaction, State};
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::Slot;

/// Return a value to the caller on the stack: the common case.
#[inline(always)]
pub(super) fn return_to_caller<'s>(vm: &mut Vm, context: &Context<'s>, value: Value) -> Option<Active<'s>> {
    let [below @ .., caller, Frame { after: After::Call, .. }] = &*vm.stack.frames else { return None };
    if below.len() < context.base {
        return None;
    }
    let active = context.active(caller);
    active.fp[caller.dst.0 as usize].set(value);
    vm.stack.current = caller.code;
    vm.stack.frames.pop();
    Some(active)
}

/// Return from the current frame. `Err`: execution stops.
#[inline(never)]
pub(super) fn leave<'s>(vm: &mut Vm, context: &Context<'s>, value: Value) -> NextFrame<'s> {
    let Some(frame) = vm.stack.frames.pop() else { return Err(Exit::Idle) };
    match frame.after {
        After::Call => resume_caller(vm, context, value),
        After::Async(promise, waiter) => {
            vm.resolve_promise(promise, value);
            hand_over(vm, context, promise, waiter)
        }
        After::Job(derived) => {
            job::end_job(vm, derived, Ok(value));
            Err(Exit::Idle)
        }
        After::Nested => Err(Exit::Nested(Ok(value))),
        After::Generator(generator, resumer) => {
            generator_frame::leave_generator(vm, context, generator, resumer, value)
        }
        After::AsyncGenerator(generator, waiter) => {
            let promise = generator::generator_promise(vm, generator);
            generator::end_async_generator(vm, generator, Ok(value));
            hand_over(vm, context, promise, waiter)
        }
    }
}

/// Resume the caller of a popped frame with a value.
pub(super) fn resume_caller<'s>(vm: &mut Vm, context: &Context<'s>, value: Value) -> NextFrame<'s> {
    if vm.stack.frames.len() <= context.base {
        return Err(Exit::Nested(Ok(value)));
    }
    let Some(&Frame { dst, .. }) = vm.stack.frames.last() else { return Err(Exit::Idle) };
    let caller = execute::topmost(vm, context)?;
    caller.fp[dst.0 as usize].set(value);
    Ok(caller)
}

/// An async function waits or has ended: hand its promise over.
pub(super) fn hand_over<'s>(vm: &mut Vm, context: &Context<'s>, promise: Value, waiter: Waiter) -> NextFrame<'s> {
    match waiter {
        Waiter::Caller => return resume_caller(vm, context, promise),
        Waiter::Job(derived) => job::end_job(vm, derived, Ok(promise)),
        Waiter::Nobody => {}
    }
    Err(Exit::Idle)
}

/// Suspend the current frame until a promise is settled.
pub(super) fn suspend<'s>(vm: &mut Vm, context: &Context<'s>, promise: Value) -> NextFrame<'s> {
    let Some(frame) = vm.stack.frames.pop() else { return Err(Exit::Idle) };
    let (result, waiter, after) = match frame.after {
        After::Async(result, waiter) => (result, waiter, After::Async(result, Waiter::Nobody)),
        After::AsyncGenerator(generator, waiter) => {
            (generator::generator_promise(vm, generator), waiter, After::AsyncGenerator(generator, Waiter::Nobody))
        }
        After::Call | After::Job(_) | After::Nested | After::Generator(..) => return Err(Exit::Idle),
    };
    let mut waiting = generator_frame::take_frame(vm, context, frame);
    waiting.after = after;
    let number = vm.stack.suspended.add(Some(waiting));
    vm.heap.meter.add_bytes(Waiting::COST);
    vm.react(promise, Reaction::Await(number));
    hand_over(vm, context, result, waiter)
}

/// Unwind to the handler of what was thrown in the current frame.
#[cold]
pub(super) fn unwind<'s>(vm: &mut Vm, context: &Context<'s>, thrown: Thrown) -> NextFrame<'s> {
    let value = match *thrown.0 {
        Cause::Value(value) => value,
        Cause::Stop(failure) => {
            vm.stack.frames.truncate(context.base);
            return Err(if vm.heap.meter.nesting > 0 {
                Exit::Nested(Err(Thrown(Box::new(Cause::Stop(failure)))))
            } else {
                Exit::Stopped(failure)
            });
        }
    };
    while vm.stack.frames.len() > context.base
        && let Some(frame) = vm.stack.frames.last_mut()
    {
        let pc = frame.pc.saturating_sub(1);
        let handlers = &context.function(frame.code).handlers;
        if let Some(handler) = handlers.iter().find(|handler| (handler.from..handler.to).contains(&pc)) {
            context.stack.slots(frame.slots)[handler.slot.0 as usize].set(value);
            frame.pc = handler.target;
            return execute::topmost(vm, context);
        }
        let after = frame.after;
        vm.stack.frames.pop();
        match after {
            After::Call => {}
            After::Async(promise, waiter) => {
                vm.reject_promise(promise, value);
                return hand_over(vm, context, promise, waiter);
            }
            After::Job(derived) => {
                job::end_job(vm, derived, Err(value));
                return Err(Exit::Idle);
            }
            After::Nested => break,
            After::Generator(generator, resumer) => {
                generator::end_generator(vm, generator);
                match resumer {
                    Resumer::Caller | Resumer::Loop => {}
                    Resumer::Job(derived) => {
                        job::end_job(vm, derived, Err(value));
                        return Err(Exit::Idle);
                    }
                    Resumer::Nested => break,
                }
            }
            After::AsyncGenerator(generator, waiter) => {
                let promise = generator::generator_promise(vm, generator);
                generator::end_async_generator(vm, generator, Err(value));
                return hand_over(vm, context, promise, waiter);
            }
        }
    }
    Err(Exit::Nested(Err(Thrown::value(value))))
}

/// Store the value of a promise in a slot. Gives whether it is settled; if not, all frames wait for it.
#[inline(never)]
pub(super) fn wait(vm: &mut Vm, value: Value, fp: &Slots, dst: Slot) -> Result<bool> {
    vm.stack.blocked_on = None;
    if !value.is(Kind::Promise) {
        fp[dst.0 as usize].set(value);
        return Ok(true);
    }
    let promise = &mut vm.heap.promises[value.index()];
    promise.handled = true;
    match (promise.state, promise.value) {
        (State::Fulfilled, value) => {
            fp[dst.0 as usize].set(value);
            Ok(true)
        }
        (State::Rejected, reason) => Err(Thrown::value(reason)),
        (State::Pending, _) if vm.heap.meter.nesting > 0 => {
            Err(vm.type_error("A tool cannot be waited for inside of an implicit conversion; call it before"))
        }
        (State::Pending, _) => {
            vm.stack.blocked_on = Some(value);
            Ok(false)
        }
    }
}
