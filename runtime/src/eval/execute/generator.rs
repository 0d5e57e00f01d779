//! Generators: their frames leave the stack at `yield`, and their values go to who has resumed them.

use super::{Context, Exit, Onward};
use crate::eval::node::{OpKind, PASSING};
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Frame, Resumer, Waiting};
use crate::value::Value;
use crate::value::atom::known;
use crate::value::thrown::Thrown;

impl Vm {
    /// The arguments of a generator are bound: its frame moves into a generator object, which is the value of the call.
    pub(super) fn start_generator<'s>(&mut self, context: &Context<'s>) -> Onward<'s> {
        let Some(&frame) = self.stack.frames.last() else { return Err(Exit::Idle) };
        let function = context.function(frame.code);
        let waiting = self.take_frame(context, frame);
        let itself = function.itself.and_then(|slot| waiting.slots.get(slot.0 as usize));
        let itself = itself.map_or(Value::UNDEFINED, std::cell::Cell::get);
        let generator = self.new_generator(waiting, itself, function.is_async);
        self.leave(context, generator)
    }

    /// A copy of a frame with its slots.
    pub(super) fn take_frame(&mut self, context: &Context<'_>, frame: Frame<crate::eval::stack::Window>) -> Waiting {
        let length = context.function(frame.code).slots;
        let slots = self.take_slots(length);
        for (to, from) in slots.iter().zip(&context.stack.slots(frame.slots)[..length as usize]) {
            to.set(from.get());
        }
        // Clear values of an earlier frame.
        slots[length as usize..].iter().for_each(|slot| slot.set(Value::UNDEFINED));
        frame.with(slots).0
    }

    /// `yield`: `is_result` says whether the value is the result of an inner iterator already.
    pub(super) fn yield_frame<'s>(&mut self, context: &Context<'s>, value: Value, is_result: bool) -> Onward<'s> {
        let Some(&frame) = self.stack.frames.last() else { return Err(Exit::Idle) };
        match frame.after {
            After::Generator(generator, resumer) => {
                let waiting = self.take_frame(context, frame);
                self.stack.frames.pop();
                self.suspend_generator(generator, waiting);
                if let (Resumer::Loop, Some(caller)) = (resumer, self.stack.frames.last_mut()) {
                    // Behind the operation that looks at the end.
                    caller.pc += 1;
                    if is_result {
                        return self.pass_result(context, value);
                    }
                    return self.resume_caller(context, value);
                }
                let result = if is_result { value } else { self.iterator_result(value, false) };
                self.answer(context, resumer, result)
            }
            After::AsyncGenerator(generator, waiter) => {
                let Some((how, value)) = self.yield_async(generator, value) else {
                    let waiting = self.take_frame(context, frame);
                    self.stack.frames.pop();
                    self.suspend_generator(generator, waiting);
                    let promise = self.generator_promise(generator);
                    return self.hand_over(context, promise, waiter);
                };
                match self.onward(&frame, context.stack.slots(frame.slots), how, value) {
                    crate::eval::generator::Onward::At(pc) => {
                        if let Some(frame) = self.stack.frames.last_mut() {
                            frame.pc = pc;
                        }
                        self.topmost(context)
                    }
                    crate::eval::generator::Onward::Thrown => self.unwind(context, Thrown::value(value)),
                }
            }
            After::Call | After::Async(..) | After::Job(_) | After::Nested => Err(Exit::Idle),
        }
    }

    /// The result of an inner iterator for the frame that has resumed a generator: `yield*` passes the object on, and anything
    /// else takes its value.
    fn pass_result<'s>(&mut self, context: &Context<'s>, result: Value) -> Onward<'s> {
        let caller = self.stack.frames.last();
        let op = caller.and_then(|caller| context.function(caller.code).ops.get(caller.pc as usize));
        if let Some(OpKind::YieldStar(delegate)) = op.map(|op| &op.kind) {
            let caller = self.resume_caller(context, result)?;
            caller.fp[delegate.mode.0 as usize].set(Value::number(f64::from(PASSING)));
            return Ok(caller);
        }
        let value = self.get(result, known::VALUE).unwrap_or(Value::UNDEFINED);
        self.resume_caller(context, value)
    }

    /// A generator returns a value.
    pub(super) fn leave_generator<'s>(
        &mut self,
        context: &Context<'s>,
        generator: Value,
        resumer: Resumer,
        value: Value,
    ) -> Onward<'s> {
        self.end_generator(generator);
        if let Resumer::Loop = resumer {
            return self.resume_caller(context, value);
        }
        let result = self.iterator_result(value, true);
        self.answer(context, resumer, result)
    }

    /// Give a result to who has resumed a generator.
    fn answer<'s>(&mut self, context: &Context<'s>, resumer: Resumer, result: Value) -> Onward<'s> {
        match resumer {
            Resumer::Caller | Resumer::Loop => self.resume_caller(context, result),
            Resumer::Job(derived) => {
                self.end_job(derived, Ok(result));
                Err(Exit::Idle)
            }
            Resumer::Nested => Err(Exit::Nested(Ok(result))),
        }
    }
}
