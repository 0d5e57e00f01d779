//! Executing frames: the loop over operations, returns, exceptions, pauses.
//!
//! The stack of the script is [`Vm::frames`] with their slots on a [`Stack`]; the native stack holds
//! one activation of [`Vm::execute`], and further ones only for implicit conversions, whose depth is
//! bounded.

mod leave;

use crate::activation::Called;
use crate::builtins::Body as NativeBody;
use crate::builtins::registry::{Native, registry};
use crate::code::{After, Code, Frame, Function, FunctionRef, Running, Waiter, Waiting};
use crate::error::{Cause, Result, Thrown};
use crate::heap::Class;
use crate::node::{Body, Call, Callee, FixedCall, Flow, Node, Op, OpKind, Slots, Turned};
use crate::outcome::Failure;
use crate::promise::{Reaction, State};
use crate::stack::{Stack, Window};
use crate::value::{Kind, Value};
use crate::vm::Vm;
use agentscript_lang::program::Slot;
use std::cell::Cell;

/// How execution came to a halt.
pub enum Exit {
    /// The stack is empty: microtasks are next.
    Idle,
    /// The slice is over; the frames go on later.
    Paused,
    /// They go on when a promise is settled: [`Vm::blocked`].
    Blocked,
    /// The run has ended at a limit, a refusal or by the host.
    Stopped(Box<Failure>),
    /// A nested call has ended.
    Nested(Result),
}

/// How an operation ended that did not throw.
enum Done {
    /// The next one follows.
    Op,
    /// The frame returns.
    Return(Value),
    /// A frame was pushed.
    Frame,
    /// The frame waits for a promise.
    Await(Value),
    /// All frames wait for one: [`Vm::blocked`].
    Blocked,
    /// The operation has to be entered again later.
    Pause,
}

/// The function of a reference.
#[inline(always)]
pub fn function_of<'a>(script: &'a Code, prelude: &'a Code, code: FunctionRef) -> &'a Function {
    let functions = match code.is_prelude() {
        false => &script.functions,
        true if code.is_for_leaves() => &crate::prelude::leaves().functions,
        true => &prelude.functions,
    };
    &functions[code.index()]
}

/// The frame that is executed, with what is looked up once for all its operations.
#[derive(Clone, Copy)]
struct Active<'s> {
    function: &'s Function,
    /// Its slots, and all behind them.
    fp: &'s Slots,
    window: Window,
    /// The next operation.
    pc: usize,
}

impl Active<'_> {
    /// Where the slots of a frame begin that it calls.
    #[inline(always)]
    fn next(&self) -> Window {
        self.window.after(self.function.slots)
    }
}

/// The topmost frame, which goes on, or why it does not.
type Onward<'s> = std::result::Result<Active<'s>, Exit>;

/// What stays the same while frames are executed.
struct Context<'s> {
    script: &'s Code,
    prelude: &'s Code,
    stack: &'s Stack,
    /// Frames below belong to an outer execution.
    base: usize,
}

impl<'s> Context<'s> {
    #[inline(always)]
    fn function(&self, code: FunctionRef) -> &'s Function {
        function_of(self.script, self.prelude, code)
    }

    #[inline(always)]
    fn active(&self, frame: &Running) -> Active<'s> {
        Active {
            function: self.function(frame.code),
            fp: self.stack.slots(frame.slots),
            window: frame.slots,
            pc: frame.pc as usize,
        }
    }
}

impl Vm {
    /// Execute a frame until the stack is as it was before.
    pub(crate) fn execute(&mut self, frame: Waiting) -> Exit {
        self.with_stack(|vm, context| {
            vm.place(context, frame, Window::FIRST);
            vm.run_frames(context)
        })
    }

    /// Execute the main function.
    pub(crate) fn execute_main(&mut self) -> Exit {
        let promise = self.heap.new_promise();
        self.main = Some(promise);
        let code = FunctionRef::script(0);
        self.with_stack(|vm, context| {
            let slots = context.function(code).slots;
            let window = vm.window(context, Window::FIRST, slots);
            context.stack.slots(window)[..slots as usize].iter().for_each(|slot| slot.set(Value::UNDEFINED));
            let after = After::Async(promise, Waiter::Nobody);
            vm.frames.push(Frame { code, pc: 0, dst: Slot(0), after, slots: window });
            vm.run_frames(context)
        })
    }

    /// Go on with the frames that were paused.
    pub(crate) fn execute_paused(&mut self) -> Exit {
        self.with_stack(|vm, context| vm.run_frames(context))
    }

    /// Throw a value where a frame waits.
    pub(crate) fn execute_throw(&mut self, frame: Waiting, reason: Value) -> Exit {
        self.with_stack(|vm, context| {
            vm.place(context, frame, Window::FIRST);
            match vm.unwind(context, Thrown::value(reason)) {
                Ok(_) => vm.run_frames(context),
                Err(exit) => exit,
            }
        })
    }

    fn with_stack(&mut self, execute: impl FnOnce(&mut Self, &Context<'_>) -> Exit) -> Exit {
        let script = self.borrow_script();
        let stack = self.stack.take().unwrap_or_default();
        // A frame that was paused has others below it.
        let base = if self.nesting == 0 { 0 } else { self.frames.len() };
        let context = Context { script: &script.code, prelude: self.prelude, stack: &stack, base };
        let exit = execute(self, &context);
        self.return_script(script);
        self.stack = Some(stack);
        exit
    }

    /// Put a frame that waited onto the stack.
    fn place(&mut self, context: &Context<'_>, frame: Waiting, window: Window) {
        let function = context.function(frame.code);
        let window = self.window(context, window, function.slots);
        for (to, from) in context.stack.slots(window).iter().zip(&frame.slots[..function.slots as usize]) {
            to.set(from.get());
        }
        let (frame, slots) = frame.with(window);
        self.recycle(slots);
        self.frames.push(frame);
    }

    #[inline(always)]
    fn window(&mut self, context: &Context<'_>, window: Window, slots: u32) -> Window {
        let (window, bytes) = context.stack.reserve(window, slots);
        if bytes > 0 {
            self.heap.meter.add_bytes(bytes);
        }
        window
    }

    /// Note where the frame that is executed goes on, and where the value goes that it waits for.
    #[inline(always)]
    fn mark(&mut self, pc: usize, dst: Slot) {
        if let Some(frame) = self.frames.last_mut() {
            (frame.pc, frame.dst) = (pc as u32, dst);
        }
    }

    fn run_frames(&mut self, context: &Context<'_>) -> Exit {
        let mut onward = self.topmost(context);
        loop {
            let mut active = match onward {
                Ok(active) => active,
                Err(exit) => return exit,
            };
            onward = match self.run_active(context, &mut active) {
                Ok(exit) => return exit,
                Err(thrown) => {
                    self.mark(active.pc, Slot(0));
                    self.unwind(context, thrown)
                }
            };
        }
    }

    /// The frame that goes on.
    #[inline(always)]
    fn topmost<'s>(&mut self, context: &Context<'s>) -> Onward<'s> {
        let Some(frame) = self.frames.last() else { return Err(Exit::Idle) };
        self.current = frame.code;
        Ok(context.active(frame))
    }

    /// Execute operations until something is thrown or nothing goes on. What most scripts do most of the
    /// time stands here, the other operations in [`Vm::operation`].
    #[inline(always)]
    fn run_active<'s>(&mut self, context: &Context<'s>, active: &mut Active<'s>) -> Result<Exit> {
        loop {
            // Between two operations all values are in slots: only here may the run pause or
            // anything be freed.
            if self.heap.meter.fuel <= 0 && self.halts(context, active.pc)? {
                return Ok(Exit::Paused);
            }
            let Active { function, fp, .. } = *active;
            let done = match function.ops.get(active.pc) {
                None => Done::Return(Value::UNDEFINED),
                Some(op) => {
                    self.heap.meter.fuel -= 1;
                    active.pc += 1;
                    match &op.kind {
                        OpKind::Run(statement) => match statement.exec(self, fp) {
                            Flow::Normal | Flow::Break(_) | Flow::Continue => continue,
                            Flow::Return(value) => Done::Return(value),
                            Flow::Throw(thrown) => return Err(thrown),
                        },
                        OpKind::Eval(value) => {
                            value.eval(self, fp)?;
                            continue;
                        }
                        OpKind::Set(slot, value) => {
                            let value = value.eval(self, fp)?;
                            fp[slot.0 as usize].set(value);
                            continue;
                        }
                        OpKind::Jump(target) => {
                            active.pc = *target as usize;
                            continue;
                        }
                        OpKind::JumpUnless(test, target) => {
                            if !test.test(self, fp)? {
                                active.pc = *target as usize;
                            }
                            continue;
                        }
                        OpKind::Turn => {
                            self.iteration()?;
                            continue;
                        }
                        OpKind::Call(call, dst) => {
                            self.mark(active.pc, *dst);
                            if let Some(value) = self.call_operation(context, active, call, op.at)? {
                                fp[dst.0 as usize].set(value);
                            }
                            continue;
                        }
                        OpKind::CallFixed(call, dst) => {
                            self.mark(active.pc, *dst);
                            if let Some(value) = self.call_fixed(context, active, call, op.at)? {
                                fp[dst.0 as usize].set(value);
                            }
                            continue;
                        }
                        OpKind::Return(value) => Done::Return(value.eval(self, fp)?),
                        _ => {
                            let mut pc = active.pc;
                            let done = self.operation(context, op, &mut pc, fp, active.next());
                            active.pc = pc;
                            done?
                        }
                    }
                }
            };
            let onward = match done {
                Done::Op => continue,
                Done::Return(value) => match self.return_to_caller(context, value) {
                    Some(caller) => Ok(caller),
                    None => self.leave(context, value),
                },
                Done::Frame => self.topmost(context),
                Done::Await(promise) => self.suspend(context, promise),
                Done::Blocked => return Ok(Exit::Blocked),
                Done::Pause => {
                    if self.halt(context, active.pc)? {
                        return Ok(Exit::Paused);
                    }
                    continue;
                }
            };
            match onward {
                Ok(onward) => *active = onward,
                Err(exit) => return Ok(exit),
            }
        }
    }

    /// The fuel is used up: whether the run has to pause.
    #[cold]
    #[inline(never)]
    fn halts(&mut self, context: &Context<'_>, pc: usize) -> Result<bool> {
        while self.pause_due()? {
            if self.halt(context, pc)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Collect garbage where that is due; whether the run has to pause.
    #[cold]
    fn halt(&mut self, context: &Context<'_>, pc: usize) -> Result<bool> {
        self.mark(pc, Slot(0));
        self.pause(context.stack)
    }

    /// One operation that is not among the most frequent; `pc` is the one behind it, `next` where the slots
    /// of a frame that it calls begin.
    #[inline(never)]
    fn operation(&mut self, context: &Context<'_>, op: &Op, pc: &mut usize, fp: &Slots, next: Window) -> Result<Done> {
        let at = op.at;
        match &op.kind {
            OpKind::JumpIf(test, target) => {
                if test.test(self, fp)? {
                    *pc = *target as usize;
                }
            }
            OpKind::JumpUnlessNullish(slot, target) => {
                if !fp[slot.0 as usize].get().is_nullish() {
                    *pc = *target as usize;
                }
            }
            OpKind::Dispatch(slot, targets) => {
                let number = fp[slot.0 as usize].get().as_number() as usize;
                if let Some(&target) = targets.get(number) {
                    *pc = target as usize;
                }
            }
            OpKind::Loop(each) => {
                let turned = each.run(self, fp)?;
                return Ok(self.turned(turned, pc));
            }
            OpKind::Each(each) => {
                let turned = each.run(self, fp)?;
                return Ok(self.turned(turned, pc));
            }
            OpKind::Iterate(kind, value, slot, span) => {
                let value = value.eval(self, fp)?;
                let iterator = self.begin_iteration(*kind, value, *span)?;
                fp[slot.0 as usize].set(iterator);
            }
            OpKind::Next { iterator, item, end } => {
                let iterator = fp[iterator.0 as usize].get();
                match self.iterator_next(iterator)? {
                    Some(value) => fp[item.0 as usize].set(value),
                    None => *pc = *end as usize,
                }
            }
            OpKind::Construct(native, arguments, dst) => {
                self.mark(*pc, *dst);
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    argument.push(self, fp, &mut values)?;
                }
                let called = self.call_prelude(*native, true, Value::UNDEFINED, &values, After::Call);
                let called = called.map_err(|thrown| thrown.at(self, at))?;
                match self.called(context, called, next, at)? {
                    Some(value) => fp[dst.0 as usize].set(value),
                    None => return Ok(Done::Frame),
                }
            }
            OpKind::Await(value, dst) => {
                let value = value.eval(self, fp)?;
                let promise = self.promise_of(value);
                self.mark(*pc, *dst);
                return Ok(Done::Await(promise));
            }
            OpKind::AwaitItem(slot) => {
                let value = fp[slot.0 as usize].get();
                let promise = self.promise_of(value);
                let derived = self.heap.new_promise();
                let (fulfilled, rejected) = (Value::UNDEFINED, Value::UNDEFINED);
                self.react(promise, Reaction::Then { fulfilled, rejected, derived });
                self.mark(*pc, *slot);
                return Ok(Done::Await(derived));
            }
            OpKind::Wait(value, dst) => {
                let value = value.eval(self, fp)?;
                if !self.wait(value, fp, *dst).map_err(|thrown| thrown.at(self, at))? {
                    // The operation is charged again when it goes on.
                    self.heap.meter.fuel += 1;
                    self.mark(*pc - 1, *dst);
                    return Ok(Done::Blocked);
                }
            }
            OpKind::Throw(value) => {
                let value = value.eval(self, fp)?;
                return Err(Thrown::value(value).at(self, at));
            }
            OpKind::Rethrow(slot) => return Err(Thrown::value(fp[slot.0 as usize].get())),
            // They are where they are executed most.
            OpKind::Run(_)
            | OpKind::Eval(_)
            | OpKind::Set(..)
            | OpKind::Jump(_)
            | OpKind::JumpUnless(..)
            | OpKind::Turn
            | OpKind::Call(..)
            | OpKind::CallFixed(..)
            | OpKind::Return(_) => {}
        }
        Ok(Done::Op)
    }

    /// What a promise stands for goes into a slot. Gives whether it could; if not, all frames wait for it.
    #[inline(never)]
    fn wait(&mut self, value: Value, fp: &Slots, dst: Slot) -> Result<bool> {
        self.blocked = None;
        if !value.is(Kind::Promise) {
            fp[dst.0 as usize].set(value);
            return Ok(true);
        }
        let promise = &self.heap.promises[value.index()];
        match (promise.state, promise.value) {
            (State::Fulfilled, value) => {
                fp[dst.0 as usize].set(value);
                Ok(true)
            }
            (State::Rejected, reason) => Err(Thrown::value(reason)),
            (State::Pending, _) if self.nesting > 0 => {
                Err(self.type_error("A tool cannot be waited for inside of an implicit conversion; call it before"))
            }
            (State::Pending, _) => {
                self.blocked = Some(value);
                Ok(false)
            }
        }
    }

    fn turned(&mut self, turned: Turned, pc: &mut usize) -> Done {
        match turned {
            Turned::Done => Done::Op,
            Turned::Pause => {
                // The operation is charged again when it goes on.
                self.heap.meter.fuel += 1;
                *pc -= 1;
                Done::Pause
            }
            Turned::Return(value) => Done::Return(value),
        }
    }

    /// A call: its value where it can be had at once, else another frame is active.
    #[inline(always)]
    fn call_operation<'s>(
        &mut self,
        context: &Context<'s>,
        active: &mut Active<'s>,
        call: &Call,
        at: u32,
    ) -> Result<Option<Value>> {
        let callee = match &call.callee {
            Callee::Value(function) => function.eval(self, active.fp).map(|function| (function, Value::UNDEFINED)),
            callee => callee.eval(self, active.fp),
        };
        let (function, this) = callee.map_err(|thrown| thrown.at(self, at))?;
        if function.is(Kind::Function) && !call.spread {
            return self.call_function(context, active, call, function, at);
        }
        let value = self.call_other(context, call, (function, this), active.fp, active.next(), at)?;
        if value.is_none()
            && let Ok(callee) = self.topmost(context)
        {
            *active = callee;
        }
        Ok(value)
    }

    /// Call a function of the script: arguments are evaluated straight into its frame. Gives the value of
    /// a leaf; otherwise the frame was pushed and is active.
    #[inline(always)]
    fn call_function<'s>(
        &mut self,
        context: &Context<'s>,
        active: &mut Active<'s>,
        call: &Call,
        closure: Value,
        at: u32,
    ) -> Result<Option<Value>> {
        let code = self.heap.closures[closure.index()].code;
        let function = context.function(code);
        let (window, slots) = self.behind(context, active, function.slots);
        let rest = self.pass(function, None, call, active.fp, slots)?;
        self.enter(function, closure, slots, rest);
        let callee = Active { function, fp: slots, window, pc: 0 };
        if !function.is_async {
            return self.begin_call(active, callee, code, After::Call, at);
        }
        let after = self.after(function, After::Call);
        self.begin_call(active, callee, code, after, at)
    }

    /// Call a function that is known since the script was compiled, and that needs nothing but its arguments.
    #[inline(always)]
    fn call_fixed<'s>(
        &mut self,
        context: &Context<'s>,
        active: &mut Active<'s>,
        call: &FixedCall,
        at: u32,
    ) -> Result<Option<Value>> {
        let function = context.function(call.function);
        let (window, slots) = self.behind(context, active, function.slots);
        let mut free = slots[..function.slots as usize].iter();
        for argument in &call.arguments {
            let value = argument.eval(self, active.fp)?;
            if let Some(slot) = free.next() {
                slot.set(value);
            }
        }
        free.for_each(|slot| slot.set(Value::UNDEFINED));
        let callee = Active { function, fp: slots, window, pc: 0 };
        self.begin_call(active, callee, call.function, After::Call, at)
    }

    /// So many slots behind those of the frame that is executed.
    #[inline(always)]
    fn behind<'s>(&mut self, context: &Context<'s>, active: &Active<'s>, slots: u32) -> (Window, &'s Slots) {
        match active.fp.get(active.function.slots as usize..) {
            Some(free) if free.len() >= slots as usize => (active.next(), free),
            _ => self.elsewhere(context, active.next(), slots),
        }
    }

    #[cold]
    #[inline(never)]
    fn elsewhere<'s>(&mut self, context: &Context<'s>, window: Window, slots: u32) -> (Window, &'s Slots) {
        let window = self.window(context, window, slots);
        (window, context.stack.slots(window))
    }

    /// A function whose slots are filled begins: the value of a leaf, or it is what is active.
    #[inline(always)]
    fn begin_call<'s>(
        &mut self,
        active: &mut Active<'s>,
        callee: Active<'s>,
        code: FunctionRef,
        after: After,
        at: u32,
    ) -> Result<Option<Value>> {
        let Body::Ops = callee.function.body else {
            self.tick()?;
            return self.leaf(code, &callee.function.body, callee.fp).map(Some);
        };
        self.check_depth(at)?;
        self.frames.push(Frame { code, pc: 0, dst: Slot(0), after, slots: callee.window });
        self.current = code;
        *active = callee;
        Ok(None)
    }

    /// A call of what is no function of the script, or with arguments that are spread: its value, unless
    /// a frame was pushed.
    #[inline(never)]
    fn call_other(
        &mut self,
        context: &Context<'_>,
        call: &Call,
        (function, this): (Value, Value),
        fp: &Slots,
        next: Window,
        at: u32,
    ) -> Result<Option<Value>> {
        if !call.spread
            && function.is(Kind::Native)
            && let Native { call: NativeBody::Prelude(_), direct: None, .. } = registry().natives[function.index()]
        {
            return self.call_builtin(context, call, (function, this), fp, next, at);
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
        self.called(context, called, next, at)
    }

    /// Call a built-in that is written in the language: its receiver comes before the arguments. Where
    /// its callbacks are leaves, so may it be.
    fn call_builtin(
        &mut self,
        context: &Context<'_>,
        call: &Call,
        (native, this): (Value, Value),
        fp: &Slots,
        next: Window,
        at: u32,
    ) -> Result<Option<Value>> {
        let mut code = self.prelude_code(native.payload(), false)?;
        let mut function = context.function(code);
        let mut window = self.window(context, next, function.slots);
        let mut slots = context.stack.slots(window);
        let rest = self.pass(function, Some(this), call, fp, slots)?;
        let parameters = function.parameters as usize;
        if self.are_leaves(slots[1..parameters.max(1)].iter().map(Cell::get)) {
            code = code.for_leaves();
            function = context.function(code);
            let arguments = &slots[..parameters];
            window = self.window(context, window, function.slots);
            slots = context.stack.slots(window);
            slots.iter().zip(arguments).for_each(|(to, from)| to.set(from.get()));
        }
        let closure = self.prelude_function(code);
        self.enter(function, closure, slots, rest);
        self.tick()?;
        let Body::Ops = function.body else {
            return self.leaf(code, &function.body, slots).map(Some);
        };
        self.check_depth(at)?;
        let after = self.after(function, After::Call);
        self.frames.push(Frame { code, pc: 0, dst: Slot(0), after, slots: window });
        Ok(None)
    }

    /// Evaluate arguments into the slots of a frame. Gives those that belong into an array.
    #[inline(always)]
    fn pass(
        &mut self,
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
            pass(argument.value.eval(self, fp)?);
        }
        while count < parameters {
            slots[count].set(Value::UNDEFINED);
            count += 1;
        }
        Ok(rest)
    }

    /// What follows from what a call has come to: its value, unless a frame was pushed.
    fn called(&mut self, context: &Context<'_>, called: Called, next: Window, at: u32) -> Result<Option<Value>> {
        match called {
            Called::Value(value) => Ok(Some(value)),
            Called::Frame(callee) => {
                self.check_depth(at)?;
                self.place(context, callee, next);
                Ok(None)
            }
        }
    }

    /// Whether one more frame may be pushed.
    #[inline(always)]
    fn check_depth(&mut self, at: u32) -> Result<()> {
        if self.frames.len() as u64 > self.heap.meter.limits.max_call_depth {
            return Err(self.range_error("Maximum call stack size exceeded").at(self, at));
        }
        Ok(())
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
