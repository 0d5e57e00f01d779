//! Calls: calling any callable value, and making the frames of functions.

use crate::eval::code::Function;
use crate::eval::execute::{self, Exit, function_of};
use crate::eval::generator;
use crate::eval::native::{Body as NativeBody, ClosureFn, arg};
use crate::eval::node::{Body, Flow, Node};
use crate::eval::stack::{Slots, new_slots};
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Frame, FunctionRef, Waiter, Waiting};
use crate::heap::{Action, Captures, Closure, NativeClosure, block};
use crate::meter::buffer::Buffer;
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::Slot;
use std::cell::Cell;

/// The outcome of a call.
pub enum Called {
    /// Its value.
    Value(Value),
    /// A frame that has to be executed.
    Frame(Waiting),
}

/// A leaf, ready to be called many times: a function without a rest parameter that calls nothing that could suspend.
pub struct Leaf<'s> {
    code: FunctionRef,
    closure: Value,
    function: &'s Function,
    slots: &'s Slots,
}

impl Leaf<'_> {
    /// Call it.
    #[inline(always)]
    pub fn call<const N: usize>(&self, vm: &mut Vm, arguments: [Value; N]) -> Result {
        for (index, slot) in self.slots.iter().enumerate().take(self.function.parameters as usize) {
            slot.set(arguments.get(index).copied().unwrap_or(Value::UNDEFINED));
        }
        vm.tick()?;
        vm.enter(self.function, self.closure, self.slots, None);
        vm.leaf(self.code, &self.function.body, self.slots)
    }
}

/// Up to so many arguments are passed without a check of the memory they take.
const MANY_ARGUMENTS: usize = 64;

/// How deep implicit conversions that run functions of the script may nest.
const MAX_NESTING: u32 = 40;

impl Vm {
    /// Slots for a frame that is not on the stack: at least as many as it needs.
    #[inline]
    pub(crate) fn take_slots(&mut self, length: u32) -> Box<[Cell<Value>]> {
        let length = length.max(8).next_power_of_two() as usize;
        let slots = self.pools.slots.take().filter(|slots| slots.len() == length);
        self.heap.meter.add_bytes(block(length * 8));
        slots.unwrap_or_else(|| new_slots(length))
    }

    /// Pool slots for the next frame, which is nearly always one of the same function.
    #[inline]
    pub(crate) fn recycle(&mut self, slots: Box<[Cell<Value>]>) {
        let meter = &mut self.heap.meter;
        meter.bytes = meter.bytes.saturating_sub(block(slots.len() * 8));
        self.pools.slots = Some(slots);
    }

    /// Fill the slots of a frame behind its parameters, which are filled already.
    #[inline(always)]
    pub(crate) fn enter(&mut self, function: &Function, closure: Value, fp: &Slots, rest: Option<Vec<Value>>) {
        let fp = &fp[..function.slots as usize];
        // The program relies on variables and temporaries that begin as `undefined`.
        for slot in &fp[function.parameters as usize..] {
            slot.set(Value::UNDEFINED);
        }
        if !function.simple {
            self.pass_captures(function, closure, fp);
            if !function.captures_only {
                arrange(self, function, closure, fp, rest);
            }
        }
    }

    /// Store what a function captures in the slots of its frame.
    #[inline(always)]
    pub(crate) fn pass_captures(&self, function: &Function, closure: Value, fp: &Slots) {
        let slots = &fp[function.first_capture as usize..];
        match &self.heap.closures[closure.index()].captures {
            Captures::One(capture) => slots[0].set(*capture),
            Captures::Many(captures) => slots.iter().zip(captures).for_each(|(slot, &capture)| slot.set(capture)),
        }
    }

    /// What happens to the result of a frame; that of an async function settles a promise.
    #[inline]
    pub(crate) fn after(&mut self, function: &Function, after: After) -> After {
        if !function.is_async || function.is_generator {
            return after;
        }
        let waiter = match after {
            After::Call => Waiter::Caller,
            After::Job(derived) => Waiter::Job(derived),
            After::Nested => Waiter::Nobody,
            After::Async(..) | After::Generator(..) | After::AsyncGenerator(..) => return after,
        };
        After::Async(self.promise_of_call(true), waiter)
    }

    /// Call any callable value: the value where no frame has to be executed, else the frame.
    pub(crate) fn call(&mut self, function: Value, this: Value, arguments: &[Value], after: After) -> Result<Called> {
        match function.kind() {
            Kind::Function => {
                let script = self.realm.borrow_script();
                let code = self.heap.closures[function.index()].code;
                let target = function_of(&script.code, self.realm.prelude, code);
                self.tick()?;
                check_arguments(self, arguments)?;
                let frame = frame(self, target, function, arguments, after);
                let called = self.begin(target, frame);
                self.realm.return_script(script);
                called
            }
            Kind::Native => {
                let native = &self.realm.registry.natives[function.index()];
                match native.call {
                    NativeBody::Native(function) => function(self, this, arguments).map(Called::Value),
                    NativeBody::Prelude(_) => {
                        if let Some(direct) = native.direct
                            && let Some(value) = direct(self, this, arguments)?
                        {
                            return Ok(Called::Value(value));
                        }
                        self.call_prelude(function.payload(), false, this, arguments, after)
                    }
                    NativeBody::Iterating(..) if self.is_script_iterable(arg(arguments, 0)) => {
                        self.call_prelude(function.payload(), false, this, arguments, after)
                    }
                    NativeBody::Iterating(function, _) => function(self, this, arguments).map(Called::Value),
                    NativeBody::Resume(how, is_async) => {
                        generator::call_generator(self, how, is_async, this, arg(arguments, 0), after)
                    }
                    NativeBody::Namespace | NativeBody::Accessor { .. } => {
                        Err(self.type_error(&format!("{} is not a function", native.name)))
                    }
                }
            }
            Kind::NativeClosure => {
                let NativeClosure { action, data } = self.heap.native_closures[function.index()];
                match action {
                    Action::Native(native) => match native.downcast_ref::<ClosureFn>() {
                        Some(native) => (native.call)(self, function, arguments).map(Called::Value),
                        None => Ok(Called::Value(Value::UNDEFINED)),
                    },
                    Action::Apply => {
                        let [target, this, first] = data;
                        self.work(self.heap.items(first).len() + arguments.len())?;
                        let mut all = Buffer::new();
                        all.extend_from_slice(&self.heap, &self.heap.items(first)[1..])?;
                        all.extend_from_slice(&self.heap, arguments)?;
                        self.call(target, this, &all, after)
                    }
                }
            }
            Kind::Tool => (self.realm.registry.hooks.call_tool)(self, function, arguments).map(Called::Value),
            Kind::HostFunction => (self.realm.registry.hooks.call_host_function)(self, function, arguments, after),
            _ => {
                let text = self.describe(function);
                Err(self.type_error(&format!("{text} is not a function")))
            }
        }
    }

    /// The value of a frame whose function is a leaf, else the frame.
    fn begin(&mut self, function: &Function, frame: Waiting) -> Result<Called> {
        if let Body::Ops = function.body {
            return Ok(Called::Frame(frame));
        }
        let value = self.leaf(frame.code, &function.body, &frame.slots);
        self.recycle(frame.slots);
        value.map(Called::Value)
    }

    /// Call a built-in of the prelude. Its first parameter is the receiver.
    pub(crate) fn call_prelude(
        &mut self,
        native: u32,
        construct: bool,
        this: Value,
        arguments: &[Value],
        after: After,
    ) -> Result<Called> {
        let code = self.prelude_code(native, construct)?;
        self.tick()?;
        let closure = self.prelude_function(code);
        let function = &self.realm.prelude.functions[code.index()];
        check_arguments(self, arguments)?;
        let mut all = Buffer::with_capacity(self, arguments.len() + 1)?;
        all.push(self, this)?;
        all.extend_from_slice(self, arguments)?;
        let frame = frame(self, function, closure, &all, after);
        self.begin(function, frame)
    }

    /// Call a function of the prelude that only the evaluator calls.
    pub(crate) fn call_intrinsic(&mut self, name: &str, this: Value, arguments: &[Value]) -> Result<Called> {
        match self.realm.registry.intrinsic(name) {
            Some(native) => self.call_prelude(native, false, this, arguments, After::Call),
            None => Err(self.type_error("this built-in cannot be called")),
        }
    }

    /// `new` of a built-in that may call functions of the script.
    pub(crate) fn construct_builtin(&mut self, native: u32, arguments: &[Value]) -> Result<Called> {
        match self.realm.registry.natives[native as usize].construct {
            Some(NativeBody::Iterating(function, _)) if !self.is_script_iterable(arg(arguments, 0)) => {
                function(self, Value::UNDEFINED, arguments).map(Called::Value)
            }
            _ => self.call_prelude(native, true, Value::UNDEFINED, arguments, After::Call),
        }
    }

    /// The function of the prelude that implements a built-in.
    pub(crate) fn prelude_code(&mut self, native: u32, construct: bool) -> Result<FunctionRef> {
        match self.realm.script.prelude.for_native(native, construct) {
            Some(code) => Ok(code),
            None => Err(self.type_error("this built-in cannot be called")),
        }
    }

    /// The function object of a function of the prelude.
    pub(crate) fn prelude_function(&mut self, code: FunctionRef) -> Value {
        if let Some(&closure) = self.realm.prelude_closures.get(&code) {
            return closure;
        }
        let closure = self.heap.new_closure(Closure { code, name: None, captures: Captures::default() });
        self.realm.prelude_closures.insert(code, closure);
        closure
    }

    /// Execute a body that cannot suspend.
    #[inline(always)]
    pub(crate) fn leaf(&mut self, code: FunctionRef, body: &Body, fp: &Slots) -> Result {
        let caller = std::mem::replace(&mut self.stack.current, code);
        // Most callbacks of built-ins are expressions.
        let result = if let Body::Value(value) = body { value.eval(self, fp) } else { self.statements(body, fp) };
        self.stack.current = caller;
        result
    }

    #[inline(never)]
    fn statements(&mut self, body: &Body, fp: &Slots) -> Result {
        self.body(body, fp)
    }

    /// Evaluate a body that cannot suspend, in the frame that is current.
    #[inline(always)]
    pub(crate) fn body(&mut self, body: &Body, fp: &Slots) -> Result {
        let (statements, value) = match body {
            Body::Steps(statements, value) => (statements, Some(value)),
            Body::Tree(statements) => (statements, None),
            Body::Value(value) => return value.eval(self, fp),
            Body::Ops => return Ok(Value::UNDEFINED),
        };
        match statements.exec(self, fp) {
            Flow::Return(value) => Ok(value),
            Flow::Throw(thrown) => Err(thrown),
            Flow::Normal | Flow::Break(_) | Flow::Continue => {
                let Some(value) = value else { return Ok(Value::UNDEFINED) };
                self.tick()?;
                value.eval(self, fp)
            }
        }
    }

    /// Call a leaf many times, with its slots and code looked up once.
    pub(crate) fn with_leaf<T>(
        &mut self,
        closure: Value,
        walk: impl FnOnce(&mut Self, &Leaf<'_>) -> Result<T>,
    ) -> Result<T> {
        let script = self.realm.borrow_script();
        let code = self.heap.closures[closure.index()].code;
        let function = function_of(&script.code, self.realm.prelude, code);
        let slots = self.take_slots(function.slots);
        let result = walk(self, &Leaf { code, closure, function, slots: &slots });
        self.recycle(slots);
        self.realm.return_script(script);
        result
    }

    /// Call a function to its end, for an implicit conversion.
    pub fn call_nested(&mut self, function: Value, this: Value, arguments: &[Value]) -> Result {
        if self.heap.meter.nesting >= MAX_NESTING {
            return Err(self.range_error("Maximum call stack size exceeded"));
        }
        self.heap.meter.nesting += 1;
        self.gc.converted = true;
        let above = std::mem::replace(&mut self.stack.nested_above, self.stack.frames.len());
        let result = self.call(function, this, arguments, After::Nested).and_then(|called| match called {
            Called::Value(value) => Ok(value),
            Called::Frame(frame) => execute_nested(self, frame),
        });
        self.stack.nested_above = above;
        self.heap.meter.nesting -= 1;
        result
    }
}

/// Check and charge for many arguments, which may become the array of a rest parameter.
#[inline]
fn check_arguments(vm: &mut Vm, arguments: &[Value]) -> Result<()> {
    if arguments.len() > MANY_ARGUMENTS {
        vm.reserve(size_of_val(arguments))?;
        vm.work(arguments.len() / 8)?;
    }
    Ok(())
}

/// A frame of a function of the script, with its arguments.
fn frame(vm: &mut Vm, function: &Function, closure: Value, arguments: &[Value], after: After) -> Waiting {
    let slots = vm.take_slots(function.slots);
    let parameters = function.parameters as usize;
    for (index, slot) in slots[..parameters].iter().enumerate() {
        slot.set(arg(arguments, index));
    }
    let rest = function.rest.map(|_| arguments.get(parameters..).unwrap_or(&[]).to_vec());
    vm.enter(function, closure, &slots, rest);
    let after = vm.after(function, after);
    Frame { code: vm.heap.closures[closure.index()].code, pc: 0, dst: Slot(0), after, slots }
}

/// The part of entering that few functions need: the array of a rest parameter, cells of captured parameters, the
/// function object itself.
#[inline(never)]
fn arrange(vm: &mut Vm, function: &Function, closure: Value, fp: &Slots, rest: Option<Vec<Value>>) {
    if let Some((slot, items)) = function.rest.zip(rest) {
        fp[slot.0 as usize].set(vm.heap.new_array(items));
    }
    for slot in &function.boxed {
        let slot = &fp[slot.0 as usize];
        slot.set(vm.heap.new_cell(slot.get()));
    }
    if let Some(itself) = function.itself {
        fp[itself.0 as usize].set(closure);
    }
}

fn execute_nested(vm: &mut Vm, frame: Waiting) -> Result {
    let promise = match frame.after {
        After::Async(promise, _) => Some(promise),
        After::AsyncGenerator(generator, _) => Some(generator::generator_promise(vm, generator)),
        After::Call | After::Job(_) | After::Nested | After::Generator(..) => None,
    };
    let caller = vm.stack.current;
    let exit = execute::execute(vm, frame);
    vm.stack.current = caller;
    match exit {
        Exit::Nested(result) => result,
        Exit::Stopped(failure) => Err(Thrown(Box::new(Cause::Stop(failure)))),
        Exit::Idle | Exit::Paused | Exit::Blocked => Ok(promise.unwrap_or(Value::UNDEFINED)),
    }
}
