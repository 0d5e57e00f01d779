//! Generators: their frames leave the stack at `yield`, and their values go to who has resumed them.

use super::{Context, Exit, NextFrame};
use crate::eval::execute::{self, leave};
use crate::eval::generator;
use crate::eval::job;
use crate::eval::node::{OpKind, PASSING};
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Frame, Resumer, Waiting};
use crate::value::Value;
use crate::value::atom::known;
use crate::value::thrown::Thrown;

/// The arguments of a generator are bound: its frame moves into a generator object, which is the value of the call.
pub(super) fn start_generator<'s>(vm: &mut Vm, context: &Context<'s>) -> NextFrame<'s> {
    let Some(&frame) = vm.stack.frames.last() else { return Err(Exit::Idle) };
    let function = context.function(frame.code);
    let waiting = take_frame(vm, context, frame);
    let itself = function.itself.and_then(|slot| waiting.slots.get(slot.0 as usize));
    let itself = itself.map_or(Value::UNDEFINED, std::cell::Cell::get);
    let generator = generator::new_generator(vm, waiting, itself, function.is_async);
    leave::leave(vm, context, generator)
}

/// A copy of a frame with its slots.
pub(super) fn take_frame(vm: &mut Vm, context: &Context<'_>, frame: Frame<crate::eval::stack::Window>) -> Waiting {
    let length = context.function(frame.code).slots;
    let slots = vm.take_slots(length);
    for (to, from) in slots.iter().zip(&context.stack.slots(frame.slots)[..length as usize]) {
        to.set(from.get());
    }
    // Clear values of an earlier frame.
    slots[length as usize..].iter().for_each(|slot| slot.set(Value::UNDEFINED));
    frame.with(slots).0
}

/// `yield`: `is_result` says whether the value is the result of an inner iterator already.
pub(super) fn yield_frame<'s>(vm: &mut Vm, context: &Context<'s>, value: Value, is_result: bool) -> NextFrame<'s> {
    let Some(&frame) = vm.stack.frames.last() else { return Err(Exit::Idle) };
    match frame.after {
        After::Generator(generator, resumer) => {
            let waiting = take_frame(vm, context, frame);
            vm.stack.frames.pop();
            generator::suspend_generator(vm, generator, waiting);
            if let (Resumer::Loop, Some(caller)) = (resumer, vm.stack.frames.last_mut()) {
                // Behind the operation that looks at the end.
                caller.pc += 1;
                if is_result {
                    return pass_result(vm, context, value);
                }
                return leave::resume_caller(vm, context, value);
            }
            let result = if is_result { value } else { generator::iterator_result(vm, value, false) };
            answer(vm, context, resumer, result)
        }
        After::AsyncGenerator(generator, waiter) => {
            let Some((how, value)) = generator::yield_async(vm, generator, value) else {
                let waiting = take_frame(vm, context, frame);
                vm.stack.frames.pop();
                generator::suspend_generator(vm, generator, waiting);
                let promise = generator::generator_promise(vm, generator);
                return leave::hand_over(vm, context, promise, waiter);
            };
            match generator::resume_point(vm, &frame, context.stack.slots(frame.slots), how, value) {
                generator::ResumePoint::At(pc) => {
                    if let Some(frame) = vm.stack.frames.last_mut() {
                        frame.pc = pc;
                    }
                    execute::topmost(vm, context)
                }
                generator::ResumePoint::Thrown => leave::unwind(vm, context, Thrown::value(value)),
            }
        }
        After::Call | After::Async(..) | After::Job(_) | After::Nested => Err(Exit::Idle),
    }
}

/// The result of an inner iterator for the frame that has resumed a generator: `yield*` passes the object on, and anything
/// else takes its value.
fn pass_result<'s>(vm: &mut Vm, context: &Context<'s>, result: Value) -> NextFrame<'s> {
    let caller = vm.stack.frames.last();
    let op = caller.and_then(|caller| context.function(caller.code).ops.get(caller.pc as usize));
    if let Some(OpKind::YieldStar(delegate)) = op.map(|op| &op.kind) {
        let caller = leave::resume_caller(vm, context, result)?;
        caller.fp[delegate.mode.0 as usize].set(Value::number(f64::from(PASSING)));
        return Ok(caller);
    }
    let value = vm.get(result, known::VALUE).unwrap_or(Value::UNDEFINED);
    leave::resume_caller(vm, context, value)
}

/// A generator returns a value.
pub(super) fn leave_generator<'s>(
    vm: &mut Vm,
    context: &Context<'s>,
    generator: Value,
    resumer: Resumer,
    value: Value,
) -> NextFrame<'s> {
    generator::end_generator(vm, generator);
    if let Resumer::Loop = resumer {
        return leave::resume_caller(vm, context, value);
    }
    let result = generator::iterator_result(vm, value, true);
    answer(vm, context, resumer, result)
}

/// Give a result to who has resumed a generator.
fn answer<'s>(vm: &mut Vm, context: &Context<'s>, resumer: Resumer, result: Value) -> NextFrame<'s> {
    match resumer {
        Resumer::Caller | Resumer::Loop => leave::resume_caller(vm, context, result),
        Resumer::Job(derived) => {
            job::end_job(vm, derived, Ok(result));
            Err(Exit::Idle)
        }
        Resumer::Nested => Err(Exit::Nested(Ok(result))),
    }
}
