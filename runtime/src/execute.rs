//! Executing frames: the loop over operations, calls and returns, exceptions, pauses.
//!
//! The stack of the script is [`Vm::frames`]; the native stack holds one activation of
//! [`Vm::execute`], and further ones only for implicit conversions, whose depth is bounded.

use crate::builtins::registry::registry;
use crate::builtins::{Body as NativeBody, arg};
use crate::code::{After, Code, Frame, Function, FunctionRef, Waiter};
use crate::error::{Cause, Result, Thrown};
use crate::heap::{Action, Bound, Class, Closure};
use crate::node::{Body, Call, Flow, Node, OpKind, Slots, Turned, new_slots};
use crate::outcome::Failure;
use crate::promise::Reaction;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use agentscript_lang::program::Slot;
use std::cell::Cell;
use std::sync::Arc;

/// How execution came to a halt.
pub enum Exit {
    /// The stack is empty: microtasks are next.
    Idle,
    /// The slice is over; the frame goes on later.
    Paused(Frame),
    /// The run has ended at a limit, a refusal or by the host.
    Stopped(Box<Failure>),
    /// A nested call has ended.
    Nested(Result),
}

/// What a call has come to.
pub enum Called {
    /// Its value.
    Value(Value),
    /// A frame to be executed.
    Frame(Frame),
}

/// What happens next in a frame.
enum Next {
    /// The operation after.
    Op,
    /// That operation.
    Jump(u32),
    /// A called frame, whose value goes into the slot.
    Enter(Frame, Slot),
    /// `return`
    Return(Value),
    /// `await` of a promise, whose value goes into the slot.
    Await(Value, Slot),
    /// This operation again, later.
    Pause,
}

/// How deep implicit conversions may run functions of the script inside each other.
const MAX_NESTING: u32 = 40;

/// The function of a reference.
pub fn function_of<'a>(script: &'a Code, prelude: &'a Code, code: FunctionRef) -> &'a Function {
    let functions = if code.is_prelude() { &prelude.functions } else { &script.functions };
    &functions[code.index()]
}

impl Vm {
    /// Slots for a frame.
    #[inline]
    fn take_slots(&mut self, length: u32) -> Box<[Cell<Value>]> {
        let class = (length.max(8)).next_power_of_two().trailing_zeros() as usize;
        if let Some(slots) = self.pool.get_mut(class).and_then(Vec::pop) {
            // The program relies on variables and temporaries that begin as `undefined`.
            slots.iter().for_each(|slot| slot.set(Value::UNDEFINED));
            return slots;
        }
        let length = 1_usize << class;
        self.frame_bytes += length * 8;
        self.heap.meter.add_bytes(length * 8);
        new_slots(length)
    }

    /// Keep slots for the next frame.
    #[inline]
    pub(crate) fn recycle(&mut self, slots: Box<[Cell<Value>]>) {
        let class = slots.len().trailing_zeros() as usize;
        if self.pool.len() <= class {
            self.pool.resize_with(class + 1, Vec::new);
        }
        if self.pool[class].len() < 64 {
            self.pool[class].push(slots);
        } else {
            self.frame_bytes -= slots.len() * 8;
        }
    }

    /// A frame of a function of the script, with its arguments.
    fn frame(&mut self, function: &Function, closure: Value, arguments: &[Value], after: After) -> Frame {
        let slots = self.take_slots(function.slots);
        let parameters = function.parameters as usize;
        for (index, slot) in slots[..parameters].iter().enumerate() {
            slot.set(arg(arguments, index));
        }
        if let Some(rest) = function.rest {
            let rest_items = arguments.get(parameters..).unwrap_or(&[]).to_vec();
            let array = self.heap.new_array(rest_items);
            slots[rest.0 as usize].set(array);
        }
        self.enter(function, closure, slots, after)
    }

    /// Finish a frame whose arguments are in place.
    #[inline]
    fn enter(&mut self, function: &Function, closure: Value, slots: Box<[Cell<Value>]>, after: After) -> Frame {
        let code = self.heap.closures[closure.index()].code;
        if !function.simple {
            let captures = &self.heap.closures[closure.index()].captures;
            let first = function.parameters as usize;
            for (slot, &capture) in slots[first..].iter().zip(captures) {
                slot.set(capture);
            }
            for slot in &function.boxed {
                let slot = &slots[slot.0 as usize];
                slot.set(self.heap.new_cell(slot.get()));
            }
            if let Some(itself) = function.itself {
                slots[itself.0 as usize].set(closure);
            }
        }
        let after = match after {
            After::Call if function.is_async => After::Async(self.heap.new_promise(), Waiter::Caller),
            After::Job(derived) if function.is_async => After::Async(self.heap.new_promise(), Waiter::Job(derived)),
            After::Nested if function.is_async => After::Async(self.heap.new_promise(), Waiter::Nobody),
            after => after,
        };
        Frame { code, pc: 0, dst: Slot(0), after, slots }
    }

    /// Call any callable: its value where it can be had at once, else its frame.
    pub(crate) fn call(&mut self, function: Value, this: Value, arguments: &[Value], after: After) -> Result<Called> {
        match function.kind() {
            Kind::Function => {
                let script = Arc::clone(&self.script);
                let code = self.heap.closures[function.index()].code;
                let target = function_of(&script.code, self.prelude, code);
                self.tick()?;
                let frame = self.frame(target, function, arguments, after);
                match &target.body {
                    Body::Ops(_) => Ok(Called::Frame(frame)),
                    body => self.leaf(body, frame).map(Called::Value),
                }
            }
            Kind::Native => {
                let native = &registry().natives[function.index()];
                match native.call {
                    NativeBody::Native(function) => function(self, this, arguments).map(Called::Value),
                    NativeBody::Prelude(_) => self.call_prelude(function.payload(), false, this, arguments, after),
                    NativeBody::Namespace | NativeBody::Accessor { .. } => {
                        Err(self.type_error(&format!("{} is not a function", native.name)))
                    }
                }
            }
            Kind::Bound => {
                let Bound { action, data } = self.heap.bound[function.index()];
                match action {
                    Action::Native(native) => native(self, function, arguments).map(Called::Value),
                    Action::Apply => {
                        let [target, this, first] = data;
                        let all = [&self.heap.items(first)[1..], arguments].concat();
                        self.work(all.len())?;
                        self.call(target, this, &all, after)
                    }
                }
            }
            Kind::Tool => self.call_tool_value(function, arguments).map(Called::Value),
            _ => {
                let text = self.describe(function);
                Err(self.type_error(&format!("{text} is not a function")))
            }
        }
    }

    /// Call a built-in that is written in the language: its receiver is the first argument.
    pub(crate) fn call_prelude(
        &mut self,
        native: u32,
        construct: bool,
        this: Value,
        arguments: &[Value],
        after: After,
    ) -> Result<Called> {
        let Some(index) = crate::prelude::function(native, construct) else {
            return Err(self.type_error("this built-in cannot be called"));
        };
        self.tick()?;
        let function = &self.prelude.functions[index as usize];
        let closure = self.prelude_function(index);
        let mut all = Vec::with_capacity(arguments.len() + 1);
        all.push(this);
        all.extend_from_slice(arguments);
        let frame = self.frame(function, closure, &all, after);
        match &function.body {
            Body::Ops(_) => Ok(Called::Frame(frame)),
            body => self.leaf(body, frame).map(Called::Value),
        }
    }

    /// The function object of a function of the prelude.
    pub(crate) fn prelude_function(&mut self, index: u32) -> Value {
        if let Some(&closure) = self.prelude_closures.get(&index) {
            return closure;
        }
        let code = FunctionRef::prelude(index);
        let closure = self.heap.new_closure(Closure { code, name: None, captures: Box::default() });
        self.prelude_closures.insert(index, closure);
        closure
    }

    /// Execute a body that cannot suspend.
    #[inline]
    fn leaf(&mut self, body: &Body, frame: Frame) -> Result {
        let caller = std::mem::replace(&mut self.current, frame.code);
        let result = match body {
            Body::Value(value) => value.eval(self, &frame.slots),
            Body::Tree(statement) => match statement.exec(self, &frame.slots) {
                Flow::Return(value) => Ok(value),
                Flow::Throw(thrown) => Err(thrown),
                Flow::Normal | Flow::Break(_) | Flow::Continue => Ok(Value::UNDEFINED),
            },
            Body::Ops(_) => Ok(Value::UNDEFINED),
        };
        self.current = caller;
        self.recycle(frame.slots);
        result
    }

    /// Call a function to its end, for an implicit conversion.
    pub fn call_nested(&mut self, function: Value, this: Value, arguments: &[Value]) -> Result {
        if self.nesting >= MAX_NESTING {
            return Err(self.range_error("Maximum call stack size exceeded"));
        }
        self.nesting += 1;
        let result = self.call(function, this, arguments, After::Nested).and_then(|called| match called {
            Called::Value(value) => Ok(value),
            Called::Frame(frame) => self.execute_nested(frame),
        });
        self.nesting -= 1;
        result
    }

    fn execute_nested(&mut self, frame: Frame) -> Result {
        let promise = match frame.after {
            After::Async(promise, _) => Some(promise),
            After::Call | After::Job(_) | After::Nested => None,
        };
        let (caller, after) = (self.current, self.current_after);
        let base = self.frames.len();
        let exit = self.execute_from(frame, base);
        (self.current, self.current_after) = (caller, after);
        match exit {
            Exit::Nested(result) => result,
            Exit::Stopped(failure) => Err(Thrown(Box::new(Cause::Stop(failure)))),
            Exit::Idle | Exit::Paused(_) => Ok(promise.unwrap_or(Value::UNDEFINED)),
        }
    }

    /// Execute a frame until the stack is as it was before.
    pub(crate) fn execute(&mut self, frame: Frame) -> Exit {
        self.execute_from(frame, 0)
    }

    /// Throw a value where a frame waits.
    pub(crate) fn execute_throw(&mut self, mut frame: Frame, reason: Value) -> Exit {
        match self.unwind(&mut frame, Thrown::value(reason), 0) {
            Some(exit) => exit,
            None => self.execute_from(frame, 0),
        }
    }

    fn execute_from(&mut self, mut frame: Frame, base: usize) -> Exit {
        let script = Arc::clone(&self.script);
        let prelude = self.prelude;
        'frames: loop {
            self.current = frame.code;
            self.current_after = frame.after;
            let function = function_of(&script.code, prelude, frame.code);
            let ops = function.ops();
            let mut pc = frame.pc as usize;
            loop {
                let next = match ops.get(pc) {
                    Some(op) => self.step(&script.code, &op.kind, op.at, &frame.slots),
                    None => Ok(Next::Return(Value::UNDEFINED)),
                };
                match next {
                    Ok(Next::Op) => pc += 1,
                    Ok(Next::Jump(target)) => pc = target as usize,
                    Ok(Next::Enter(callee, dst)) => {
                        frame.pc = pc as u32 + 1;
                        frame.dst = dst;
                        if self.frames.len() as u64 >= self.heap.meter.limits.max_call_depth {
                            let thrown = self.too_deep(callee, ops.get(pc).map_or(0, |op| op.at));
                            match self.unwind(&mut frame, thrown, base) {
                                Some(exit) => return exit,
                                None => continue 'frames,
                            }
                        }
                        self.frames.push(std::mem::replace(&mut frame, callee));
                        continue 'frames;
                    }
                    Ok(Next::Return(value)) => match self.leave(&mut frame, value, base) {
                        Some(exit) => return exit,
                        None => continue 'frames,
                    },
                    Ok(Next::Await(promise, dst)) => {
                        frame.pc = pc as u32 + 1;
                        frame.dst = dst;
                        match self.suspend(&mut frame, promise, base) {
                            Some(exit) => return exit,
                            None => continue 'frames,
                        }
                    }
                    Ok(Next::Pause) => {
                        frame.pc = pc as u32;
                        return Exit::Paused(frame);
                    }
                    Err(thrown) => {
                        frame.pc = pc as u32 + 1;
                        match self.unwind(&mut frame, thrown, base) {
                            Some(exit) => return exit,
                            None => continue 'frames,
                        }
                    }
                }
            }
        }
    }

    #[cold]
    fn too_deep(&mut self, callee: Frame, at: u32) -> Thrown {
        self.recycle(callee.slots);
        self.range_error("Maximum call stack size exceeded").at(self, at)
    }

    /// One operation.
    #[inline(always)]
    fn step(&mut self, script: &Code, op: &OpKind, at: u32, fp: &Slots) -> Result<Next> {
        if self.pause_due(fp)? {
            return Ok(Next::Pause);
        }
        self.heap.meter.fuel -= 1;
        match op {
            OpKind::Run(statement) => match statement.exec(self, fp) {
                Flow::Normal | Flow::Break(_) | Flow::Continue => Ok(Next::Op),
                Flow::Return(value) => Ok(Next::Return(value)),
                Flow::Throw(thrown) => Err(thrown),
            },
            OpKind::Eval(value) => value.eval(self, fp).map(|_| Next::Op),
            OpKind::Set(slot, value) => {
                let value = value.eval(self, fp)?;
                fp[slot.0 as usize].set(value);
                Ok(Next::Op)
            }
            OpKind::Jump(target) => Ok(Next::Jump(*target)),
            OpKind::JumpIf(test, target) => Ok(if test.test(self, fp)? { Next::Jump(*target) } else { Next::Op }),
            OpKind::JumpUnless(test, target) => Ok(if test.test(self, fp)? { Next::Op } else { Next::Jump(*target) }),
            OpKind::JumpUnlessNullish(slot, target) => {
                Ok(if fp[slot.0 as usize].get().is_nullish() { Next::Op } else { Next::Jump(*target) })
            }
            OpKind::Dispatch(slot, targets) => {
                let number = fp[slot.0 as usize].get().as_number() as usize;
                Ok(targets.get(number).map_or(Next::Op, |&target| Next::Jump(target)))
            }
            OpKind::Turn => self.iteration().map(|()| Next::Op),
            OpKind::Loop(each) => each.run(self, fp).map(|turned| self.turned(turned)),
            OpKind::Each(each) => each.run(self, fp).map(|turned| self.turned(turned)),
            OpKind::Iterate(kind, value, slot, span) => {
                let value = value.eval(self, fp)?;
                let iterator = self.begin_iteration(*kind, value, *span)?;
                fp[slot.0 as usize].set(iterator);
                Ok(Next::Op)
            }
            OpKind::Next { iterator, item, end } => {
                let iterator = fp[iterator.0 as usize].get();
                match self.iterator_next(iterator)? {
                    Some(value) => {
                        fp[item.0 as usize].set(value);
                        Ok(Next::Op)
                    }
                    None => Ok(Next::Jump(*end)),
                }
            }
            OpKind::Call(call, dst) => self.step_call(script, call, *dst, at, fp),
            OpKind::Construct(native, arguments, dst) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    argument.push(self, fp, &mut values)?;
                }
                let called = self.call_prelude(*native, true, Value::UNDEFINED, &values, After::Call);
                let called = called.map_err(|thrown| thrown.at(self, at))?;
                Ok(called_next(called, *dst, fp))
            }
            OpKind::Await(value, dst) => {
                let value = value.eval(self, fp)?;
                Ok(Next::Await(self.promise_of(value), *dst))
            }
            OpKind::AwaitItem(slot) => {
                let value = fp[slot.0 as usize].get();
                let promise = self.promise_of(value);
                let derived = self.heap.new_promise();
                let (fulfilled, rejected) = (Value::UNDEFINED, Value::UNDEFINED);
                self.react(promise, Reaction::Then { fulfilled, rejected, derived });
                Ok(Next::Await(derived, *slot))
            }
            OpKind::Return(value) => value.eval(self, fp).map(Next::Return),
            OpKind::Throw(value) => {
                let value = value.eval(self, fp)?;
                Err(Thrown::value(value).at(self, at))
            }
            OpKind::Rethrow(slot) => Err(Thrown::value(fp[slot.0 as usize].get())),
        }
    }

    fn turned(&mut self, turned: Turned) -> Next {
        match turned {
            Turned::Done => Next::Op,
            Turned::Pause => {
                // The operation is charged again when it goes on.
                self.heap.meter.fuel += 1;
                Next::Pause
            }
            Turned::Return(value) => Next::Return(value),
        }
    }

    #[inline]
    fn step_call(&mut self, script: &Code, call: &Call, dst: Slot, at: u32, fp: &Slots) -> Result<Next> {
        let (function, this) = call.callee.eval(self, fp).map_err(|thrown| thrown.at(self, at))?;
        if function.is(Kind::Function) && !call.spread && !matches!(call.callee, crate::node::Callee::Prelude(..)) {
            return self.call_function(script, call, function, dst, fp);
        }
        let mut values = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            argument.push(self, fp, &mut values).map_err(|thrown| thrown.at(self, at))?;
        }
        if !function.is_callable() {
            return Err(call.not_callable(self, function, this).at(self, at));
        }
        let called = self.call(function, this, &values, After::Call);
        let called = called.map_err(|thrown| thrown.at(self, at))?;
        Ok(called_next(called, dst, fp))
    }

    /// Call a function of the script: arguments are evaluated straight into its frame.
    fn call_function(&mut self, script: &Code, call: &Call, closure: Value, dst: Slot, fp: &Slots) -> Result<Next> {
        let code = self.heap.closures[closure.index()].code;
        let function = function_of(script, self.prelude, code);
        let slots = self.take_slots(function.slots);
        let parameters = function.parameters as usize;
        let mut rest = Vec::new();
        for (index, argument) in call.arguments.iter().enumerate() {
            let value = argument.value.eval(self, fp)?;
            if index < parameters {
                slots[index].set(value);
            } else if function.rest.is_some() {
                rest.push(value);
            }
        }
        for slot in slots.iter().take(parameters).skip(call.arguments.len()) {
            slot.set(Value::UNDEFINED);
        }
        if let Some(slot) = function.rest {
            slots[slot.0 as usize].set(self.heap.new_array(rest));
        }
        let frame = self.enter(function, closure, slots, After::Call);
        match &function.body {
            Body::Ops(_) => Ok(Next::Enter(frame, dst)),
            body => {
                self.tick()?;
                let value = self.leaf(body, frame)?;
                fp[dst.0 as usize].set(value);
                Ok(Next::Op)
            }
        }
    }

    /// A frame returns. `None`: `frame` is what goes on.
    fn leave(&mut self, frame: &mut Frame, value: Value, base: usize) -> Option<Exit> {
        let value = match frame.after {
            After::Call => value,
            After::Async(promise, waiter) => {
                self.resolve_promise(promise, value);
                return self.hand_over(frame, promise, waiter, base);
            }
            After::Job(derived) => {
                self.end_job(derived, Ok(value));
                self.recycle(std::mem::take(&mut frame.slots));
                return Some(Exit::Idle);
            }
            After::Nested => {
                self.recycle(std::mem::take(&mut frame.slots));
                return Some(Exit::Nested(Ok(value)));
            }
        };
        self.resume_caller(frame, value, base)
    }

    /// Go on with the caller of a frame, which gets a value.
    fn resume_caller(&mut self, frame: &mut Frame, value: Value, base: usize) -> Option<Exit> {
        if self.frames.len() <= base {
            return Some(Exit::Nested(Ok(value)));
        }
        let Some(caller) = self.frames.pop() else { return Some(Exit::Idle) };
        let callee = std::mem::replace(frame, caller);
        if !callee.slots.is_empty() {
            self.recycle(callee.slots);
        }
        frame.slots[frame.dst.0 as usize].set(value);
        None
    }

    /// An async function waits or has ended: who wants its promise gets it. `None`: its caller goes on.
    fn hand_over(&mut self, frame: &mut Frame, promise: Value, waiter: Waiter, base: usize) -> Option<Exit> {
        match waiter {
            Waiter::Caller => return self.resume_caller(frame, promise, base),
            Waiter::Job(derived) => self.end_job(derived, Ok(promise)),
            Waiter::Nobody => {}
        }
        if !frame.slots.is_empty() {
            self.recycle(std::mem::take(&mut frame.slots));
        }
        Some(Exit::Idle)
    }

    /// A frame waits for a promise. `None`: its caller goes on.
    fn suspend(&mut self, frame: &mut Frame, promise: Value, base: usize) -> Option<Exit> {
        let After::Async(result, waiter) = frame.after else { return Some(Exit::Idle) };
        let after = After::Async(result, Waiter::Nobody);
        let waiting = Frame { after, slots: std::mem::take(&mut frame.slots), ..*frame };
        let number = self.waiting.add(Some(waiting));
        self.heap.meter.add_bytes(64);
        self.react(promise, Reaction::Await(number));
        self.hand_over(frame, result, waiter, base)
    }

    /// Something was thrown: find who handles it. `None`: `frame` goes on there.
    fn unwind(&mut self, frame: &mut Frame, thrown: Thrown, base: usize) -> Option<Exit> {
        let value = match *thrown.0 {
            Cause::Value(value) => value,
            Cause::Stop(failure) => {
                self.frames.truncate(base);
                return Some(if base > 0 || self.nesting > 0 {
                    Exit::Nested(Err(Thrown(Box::new(Cause::Stop(failure)))))
                } else {
                    Exit::Stopped(failure)
                });
            }
        };
        let script = Arc::clone(&self.script);
        loop {
            let function = function_of(&script.code, self.prelude, frame.code);
            let pc = frame.pc.saturating_sub(1);
            if let Some(handler) = function.handlers.iter().find(|handler| (handler.from..handler.to).contains(&pc)) {
                frame.slots[handler.slot.0 as usize].set(value);
                frame.pc = handler.target;
                return None;
            }
            match frame.after {
                After::Call => {
                    if self.frames.len() <= base {
                        return Some(Exit::Nested(Err(Thrown::value(value))));
                    }
                    let Some(caller) = self.frames.pop() else { return Some(Exit::Idle) };
                    let callee = std::mem::replace(frame, caller);
                    self.recycle(callee.slots);
                }
                After::Async(promise, waiter) => {
                    self.reject_promise(promise, value);
                    return self.hand_over(frame, promise, waiter, base);
                }
                After::Job(derived) => {
                    self.end_job(derived, Err(value));
                    self.recycle(std::mem::take(&mut frame.slots));
                    return Some(Exit::Idle);
                }
                After::Nested => {
                    self.recycle(std::mem::take(&mut frame.slots));
                    return Some(Exit::Nested(Err(Thrown::value(value))));
                }
            }
        }
    }
}

/// What follows from what a call has come to.
fn called_next(called: Called, dst: Slot, fp: &Slots) -> Next {
    match called {
        Called::Value(value) => {
            fp[dst.0 as usize].set(value);
            Next::Op
        }
        Called::Frame(frame) => Next::Enter(frame, dst),
    }
}

/// The end of the run, of what was thrown outside any function.
pub fn stopped(thrown: Thrown) -> Exit {
    match *thrown.0 {
        Cause::Stop(failure) => Exit::Stopped(failure),
        Cause::Value(_) => Exit::Idle,
    }
}

impl Vm {
    /// An error class for what was thrown, where it is an error.
    pub fn error_class(&self, value: Value) -> Option<Class> {
        (value.is(Kind::Object)).then(|| self.heap.class(value)).filter(|class| class.is_error())
    }
}
