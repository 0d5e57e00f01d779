//! Leaving frames: returns, exceptions, and suspension.

use super::{Active, Context, Exit, Onward};
use crate::eval::stack::Slots;
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Frame, Resumer, Waiter, Waiting};
use crate::heap::promise::{Reaction, State};
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::Slot;

impl Vm {
    /// Return a value to the caller on the stack: the common case.
    #[inline(always)]
    pub(super) fn return_to_caller<'s>(&mut self, context: &Context<'s>, value: Value) -> Option<Active<'s>> {
        let [below @ .., caller, Frame { after: After::Call, .. }] = &*self.stack.frames else { return None };
        if below.len() < context.base {
            return None;
        }
        let active = context.active(caller);
        active.fp[caller.dst.0 as usize].set(value);
        self.stack.current = caller.code;
        self.stack.frames.pop();
        Some(active)
    }

    /// Return from the current frame. `Err`: execution stops.
    #[inline(never)]
    pub(super) fn leave<'s>(&mut self, context: &Context<'s>, value: Value) -> Onward<'s> {
        let Some(frame) = self.stack.frames.pop() else { return Err(Exit::Idle) };
        match frame.after {
            After::Call => self.resume_caller(context, value),
            After::Async(promise, waiter) => {
                self.resolve_promise(promise, value);
                self.hand_over(context, promise, waiter)
            }
            After::Job(derived) => {
                self.end_job(derived, Ok(value));
                Err(Exit::Idle)
            }
            After::Nested => Err(Exit::Nested(Ok(value))),
            After::Generator(generator, resumer) => self.leave_generator(context, generator, resumer, value),
            After::AsyncGenerator(generator, waiter) => {
                let promise = self.generator_promise(generator);
                self.end_async_generator(generator, Ok(value));
                self.hand_over(context, promise, waiter)
            }
        }
    }

    /// Resume the caller of a popped frame with a value.
    pub(super) fn resume_caller<'s>(&mut self, context: &Context<'s>, value: Value) -> Onward<'s> {
        if self.stack.frames.len() <= context.base {
            return Err(Exit::Nested(Ok(value)));
        }
        let Some(&Frame { dst, .. }) = self.stack.frames.last() else { return Err(Exit::Idle) };
        let caller = self.topmost(context)?;
        caller.fp[dst.0 as usize].set(value);
        Ok(caller)
    }

    /// An async function waits or has ended: hand its promise over.
    pub(super) fn hand_over<'s>(&mut self, context: &Context<'s>, promise: Value, waiter: Waiter) -> Onward<'s> {
        match waiter {
            Waiter::Caller => return self.resume_caller(context, promise),
            Waiter::Job(derived) => self.end_job(derived, Ok(promise)),
            Waiter::Nobody => {}
        }
        Err(Exit::Idle)
    }

    /// Suspend the current frame until a promise is settled.
    pub(super) fn suspend<'s>(&mut self, context: &Context<'s>, promise: Value) -> Onward<'s> {
        let Some(frame) = self.stack.frames.pop() else { return Err(Exit::Idle) };
        let (result, waiter, after) = match frame.after {
            After::Async(result, waiter) => (result, waiter, After::Async(result, Waiter::Nobody)),
            After::AsyncGenerator(generator, waiter) => {
                (self.generator_promise(generator), waiter, After::AsyncGenerator(generator, Waiter::Nobody))
            }
            After::Call | After::Job(_) | After::Nested | After::Generator(..) => return Err(Exit::Idle),
        };
        let mut waiting = self.take_frame(context, frame);
        waiting.after = after;
        let number = self.stack.suspended.add(Some(waiting));
        self.heap.meter.add_bytes(Waiting::COST);
        self.react(promise, Reaction::Await(number));
        self.hand_over(context, result, waiter)
    }

    /// Unwind to the handler of what was thrown in the current frame.
    #[cold]
    pub(super) fn unwind<'s>(&mut self, context: &Context<'s>, thrown: Thrown) -> Onward<'s> {
        let value = match *thrown.0 {
            Cause::Value(value) => value,
            Cause::Stop(failure) => {
                self.stack.frames.truncate(context.base);
                return Err(if self.heap.meter.nesting > 0 {
                    Exit::Nested(Err(Thrown(Box::new(Cause::Stop(failure)))))
                } else {
                    Exit::Stopped(failure)
                });
            }
        };
        while self.stack.frames.len() > context.base
            && let Some(frame) = self.stack.frames.last_mut()
        {
            let pc = frame.pc.saturating_sub(1);
            let handlers = &context.function(frame.code).handlers;
            if let Some(handler) = handlers.iter().find(|handler| (handler.from..handler.to).contains(&pc)) {
                context.stack.slots(frame.slots)[handler.slot.0 as usize].set(value);
                frame.pc = handler.target;
                return self.topmost(context);
            }
            let after = frame.after;
            self.stack.frames.pop();
            match after {
                After::Call => {}
                After::Async(promise, waiter) => {
                    self.reject_promise(promise, value);
                    return self.hand_over(context, promise, waiter);
                }
                After::Job(derived) => {
                    self.end_job(derived, Err(value));
                    return Err(Exit::Idle);
                }
                After::Nested => break,
                After::Generator(generator, resumer) => {
                    self.end_generator(generator);
                    match resumer {
                        Resumer::Caller | Resumer::Loop => {}
                        Resumer::Job(derived) => {
                            self.end_job(derived, Err(value));
                            return Err(Exit::Idle);
                        }
                        Resumer::Nested => break,
                    }
                }
                After::AsyncGenerator(generator, waiter) => {
                    let promise = self.generator_promise(generator);
                    self.end_async_generator(generator, Err(value));
                    return self.hand_over(context, promise, waiter);
                }
            }
        }
        Err(Exit::Nested(Err(Thrown::value(value))))
    }

    /// Store the value of a promise in a slot. Gives whether it is settled; if not, all frames wait for it.
    #[inline(never)]
    pub(super) fn wait(&mut self, value: Value, fp: &Slots, dst: Slot) -> Result<bool> {
        self.stack.blocked_on = None;
        if !value.is(Kind::Promise) {
            fp[dst.0 as usize].set(value);
            return Ok(true);
        }
        let promise = &mut self.heap.promises[value.index()];
        promise.handled = true;
        match (promise.state, promise.value) {
            (State::Fulfilled, value) => {
                fp[dst.0 as usize].set(value);
                Ok(true)
            }
            (State::Rejected, reason) => Err(Thrown::value(reason)),
            (State::Pending, _) if self.heap.meter.nesting > 0 => {
                Err(self.type_error("A tool cannot be waited for inside of an implicit conversion; call it before"))
            }
            (State::Pending, _) => {
                self.stack.blocked_on = Some(value);
                Ok(false)
            }
        }
    }
}
