//! Executing frames: the loop over operations.
//!
//! The stack of the script is [`CallStack::frames`](crate::eval::call_stack::CallStack::frames) with their slots on a
//! [`Stack`]. The native stack holds one activation of [`execute::execute`], and further ones only for implicit conversions,
//! whose depth is
//! bounded.

mod call;
mod generator_frame;
mod iterate;
mod leave;

use crate::eval::code::{Code, Function, Running};
use crate::eval::gc;
use crate::eval::iterator;
use crate::eval::node::{Flow, LoopExit, Node, Op, OpKind, PASSING};
use crate::eval::pause;
use crate::eval::stack::{Slots, Stack, Window};
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::frame::{After, Frame, FunctionRef, Waiter, Waiting};
use crate::heap::promise::Reaction;
use crate::interface::outcome::Failure;
use crate::meter::buffer::Buffer;
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::Slot;

/// Why execution stopped.
pub enum Exit {
    /// The stack is empty: microtasks are next.
    Idle,
    /// The slice is over; the frames go on later.
    Paused,
    /// All frames wait for a promise: [`CallStack::blocked_on`](crate::eval::call_stack::CallStack::blocked_on).
    Blocked,
    /// The run has ended at a limit, a refusal or by the host.
    Stopped(Box<Failure>),
    /// A nested call has ended.
    Nested(Result),
}

/// The completion of an operation that did not throw.
enum Done {
    /// The next one follows.
    Op,
    /// The frame returns.
    Return(Value),
    /// A frame was pushed.
    Frame,
    /// The frame waits for a promise.
    Await(Value),
    /// All frames wait for one: [`CallStack::blocked_on`](crate::eval::call_stack::CallStack::blocked_on).
    Blocked,
    /// The operation has to be entered again later.
    Pause,
    /// The frame is that of a generator whose arguments are bound.
    GeneratorStart,
    /// The frame yields a value, or a result object of an iterator as it is.
    Yield(Value, bool),
}

/// The function of a reference.
#[inline(always)]
pub fn function_of<'a>(script: &'a Code, prelude: &'a Code, code: FunctionRef) -> &'a Function {
    let functions = match code.is_prelude() {
        false => &script.functions,
        true => &prelude.functions,
    };
    &functions[code.index()]
}

/// The frame that is executed, with what is looked up once for all its operations.
#[derive(Clone, Copy)]
struct Active<'s> {
    function: &'s Function,
    /// Its slots and all that follow in the segment.
    fp: &'s Slots,
    /// The next operation.
    pc: usize,
}

/// The topmost frame, to be executed next, or why execution stops.
type NextFrame<'s> = std::result::Result<Active<'s>, Exit>;

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
        Active { function: self.function(frame.code), fp: self.stack.slots(frame.slots), pc: frame.pc as usize }
    }
}

/// Execute a frame until it and the frames above it have ended or wait.
pub(crate) fn execute(vm: &mut Vm, frame: Waiting) -> Exit {
    with_stack(vm, |vm, context| {
        push_waiting(vm, context, frame, Window::FIRST);
        run_frames(vm, context)
    })
}

/// Execute the main function.
pub(crate) fn execute_main(vm: &mut Vm) -> Exit {
    let promise = vm.heap.new_promise();
    vm.stack.main = Some(promise);
    let code = FunctionRef::script(0);
    with_stack(vm, |vm, context| {
        let slots = context.function(code).slots;
        let window = new_window(vm, context, Window::FIRST, slots);
        context.stack.slots(window)[..slots as usize].iter().for_each(|slot| slot.set(Value::UNDEFINED));
        let after = After::Async(promise, Waiter::Nobody);
        vm.stack.frames.push(Frame { code, pc: 0, dst: Slot(0), after, slots: window });
        run_frames(vm, context)
    })
}

/// Go on with the frames that were paused.
pub(crate) fn execute_paused(vm: &mut Vm) -> Exit {
    with_stack(vm, run_frames)
}

/// Throw a value where a frame waits.
pub(crate) fn execute_throw(vm: &mut Vm, frame: Waiting, reason: Value) -> Exit {
    with_stack(vm, |vm, context| {
        push_waiting(vm, context, frame, Window::FIRST);
        let thrown = vm.at_operation(Thrown::value(reason));
        match leave::unwind(vm, context, thrown) {
            Ok(_) => run_frames(vm, context),
            Err(exit) => exit,
        }
    })
}

fn with_stack(vm: &mut Vm, execute: impl FnOnce(&mut Vm, &Context<'_>) -> Exit) -> Exit {
    let script = vm.realm.borrow_script();
    let stack = vm.stack.slots.take().unwrap_or_default();
    // A nested execution leaves the frames below alone.
    let base = if vm.heap.meter.nesting == 0 { 0 } else { vm.stack.frames.len() };
    let context = Context { script: &script.code, prelude: vm.realm.prelude, stack: &stack, base };
    let exit = execute(vm, &context);
    vm.realm.return_script(script);
    vm.stack.slots = Some(stack);
    exit
}

/// Put a frame that waited onto the stack.
fn push_waiting(vm: &mut Vm, context: &Context<'_>, frame: Waiting, window: Window) {
    let function = context.function(frame.code);
    let window = new_window(vm, context, window, function.slots);
    for (to, from) in context.stack.slots(window).iter().zip(&frame.slots[..function.slots as usize]) {
        to.set(from.get());
    }
    let (frame, slots) = frame.with(window);
    vm.recycle(slots);
    vm.stack.frames.push(frame);
}

#[inline(always)]
fn new_window(vm: &mut Vm, context: &Context<'_>, window: Window, slots: u32) -> Window {
    let (window, bytes) = context.stack.reserve(window, slots);
    if bytes > 0 {
        vm.heap.meter.add_bytes(bytes);
    }
    window
}

/// Record the next operation of the current frame, and the slot of the value it waits for. Gives the window of its
/// slots.
#[inline(always)]
fn mark(vm: &mut Vm, pc: usize, dst: Slot) -> Window {
    let Some(frame) = vm.stack.frames.last_mut() else { return Window::FIRST };
    (frame.pc, frame.dst) = (pc as u32, dst);
    frame.slots
}

fn run_frames(vm: &mut Vm, context: &Context<'_>) -> Exit {
    let mut onward = topmost(vm, context);
    loop {
        let mut active = match onward {
            Ok(active) => active,
            Err(exit) => return exit,
        };
        onward = match run_active(vm, context, &mut active) {
            Ok(exit) => return exit,
            Err(thrown) => {
                mark(vm, active.pc, Slot(0));
                if is_retried(vm, context, &active, &thrown) {
                    topmost(vm, context)
                } else {
                    let thrown = vm.at_operation(thrown);
                    leave::unwind(vm, context, thrown)
                }
            }
        };
    }
}

/// Whether a failed operation is retried after a collection.
#[cold]
fn is_retried(vm: &mut Vm, context: &Context<'_>, active: &Active<'_>, thrown: &Thrown) -> bool {
    let (depth, Some(frame)) = (vm.stack.frames.len(), vm.stack.frames.last_mut()) else { return false };
    let Some(before) = active.pc.checked_sub(1) else { return false };
    let Some(op) = active.function.ops.get(before) else { return false };
    let marked = frame.pc;
    frame.pc = before as u32;
    if gc::may_retry(vm, thrown, op, (depth, before as u32), context.stack) {
        return true;
    }
    mark(vm, marked as usize, Slot(0));
    false
}

/// The topmost frame.
#[inline(always)]
fn topmost<'s>(vm: &mut Vm, context: &Context<'s>) -> NextFrame<'s> {
    let Some(frame) = vm.stack.frames.last() else { return Err(Exit::Idle) };
    vm.stack.current = frame.code;
    Ok(context.active(frame))
}

/// Execute operations until something is thrown or execution stops. The most frequent operations are inlined here,
/// the others are in [`execute::operation`].
#[inline(always)]
fn run_active<'s>(vm: &mut Vm, context: &Context<'s>, active: &mut Active<'s>) -> Result<Exit> {
    loop {
        // Between two operations all values are in slots: only here may the run pause or
        // anything be freed.
        vm.heap.meter.fuel -= 1;
        if vm.heap.meter.fuel < 0 && halts(vm, context, active.pc)? {
            return Ok(Exit::Paused);
        }
        let Active { function, fp, .. } = *active;
        let done = match function.ops.get(active.pc) {
            None => {
                vm.heap.meter.fuel += 1;
                Done::Return(Value::UNDEFINED)
            }
            Some(op) => {
                active.pc += 1;
                match &op.kind {
                    OpKind::Run(statement) => match statement.exec(vm, fp) {
                        Flow::Normal | Flow::Break(_) | Flow::Continue => continue,
                        Flow::Return(value) => Done::Return(value),
                        Flow::Throw(thrown) => return Err(thrown),
                    },
                    OpKind::Eval(value) => {
                        value.eval(vm, fp)?;
                        continue;
                    }
                    OpKind::Set(slot, value) => {
                        let value = value.eval(vm, fp)?;
                        fp[slot.0 as usize].set(value);
                        continue;
                    }
                    OpKind::Jump(target) => {
                        active.pc = *target as usize;
                        continue;
                    }
                    OpKind::Again(update, start) => {
                        update.eval(vm, fp)?;
                        active.pc = *start as usize;
                        continue;
                    }
                    OpKind::JumpUnless(test, target) => {
                        if !test.test(vm, fp)? {
                            active.pc = *target as usize;
                        }
                        continue;
                    }
                    OpKind::While(test, end) => {
                        if test.test(vm, fp)? {
                            vm.iteration()?;
                        } else {
                            active.pc = *end as usize;
                        }
                        continue;
                    }
                    OpKind::Call(call, dst) => {
                        let next = mark(vm, active.pc, *dst).after(function.slots);
                        if let Some(value) = call::call_operation(vm, context, active, call, next, op.at)? {
                            fp[dst.0 as usize].set(value);
                        }
                        continue;
                    }
                    OpKind::CallFixed(call, dst) => {
                        let next = mark(vm, active.pc, *dst).after(function.slots);
                        if let Some(value) = call::call_fixed(vm, context, active, call, next, op.at)? {
                            fp[dst.0 as usize].set(value);
                        }
                        continue;
                    }
                    OpKind::Return(value) => Done::Return(value.eval(vm, fp)?),
                    // All are listed, so that the jump to one needs no check.
                    OpKind::JumpIf(..)
                    | OpKind::JumpUnlessNullish(..)
                    | OpKind::Dispatch(..)
                    | OpKind::Turn
                    | OpKind::Loop(_)
                    | OpKind::Each(_)
                    | OpKind::Iterate(..)
                    | OpKind::Next { .. }
                    | OpKind::Construct(..)
                    | OpKind::Await(..)
                    | OpKind::AwaitItem(_)
                    | OpKind::Wait(..)
                    | OpKind::Throw(_)
                    | OpKind::Rethrow(_)
                    | OpKind::GetIterator(_)
                    | OpKind::GotIterator(..)
                    | OpKind::JumpIfScript(..)
                    | OpKind::Step { .. }
                    | OpKind::Took { .. }
                    | OpKind::Close { .. }
                    | OpKind::Closed { .. }
                    | OpKind::List(..)
                    | OpKind::GeneratorStart
                    | OpKind::Yield { .. }
                    | OpKind::Delegate(_)
                    | OpKind::Delegated(_)
                    | OpKind::YieldStar(_) => {
                        let mut pc = active.pc;
                        let done = operation(vm, context, op, &mut pc, function, fp);
                        active.pc = pc;
                        done?
                    }
                }
            }
        };
        let onward = match done {
            Done::Op => continue,
            Done::Return(value) => {
                if let Some(caller) = leave::return_to_caller(vm, context, value) {
                    *active = caller;
                    continue;
                }
                leave::leave(vm, context, value)
            }
            Done::Frame => topmost(vm, context),
            Done::Await(promise) => leave::suspend(vm, context, promise),
            Done::Blocked => return Ok(Exit::Blocked),
            Done::GeneratorStart => generator_frame::start_generator(vm, context),
            Done::Yield(value, is_result) => generator_frame::yield_frame(vm, context, value, is_result),
            Done::Pause => {
                if halt(vm, context, active.pc)? {
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

/// The fuel is used up, before the next operation that it was taken for: settle, and decide whether the run has to
/// pause.
#[cold]
#[inline(never)]
fn halts(vm: &mut Vm, context: &Context<'_>, pc: usize) -> Result<bool> {
    vm.heap.meter.fuel += 1;
    while pause::pause_due(vm)? {
        if halt(vm, context, pc)? {
            return Ok(true);
        }
    }
    vm.heap.meter.fuel -= 1;
    Ok(false)
}

/// Collect garbage where that is due; whether the run has to pause.
#[cold]
fn halt(vm: &mut Vm, context: &Context<'_>, pc: usize) -> Result<bool> {
    mark(vm, pc, Slot(0));
    pause::pause(vm, context.stack)
}

/// An operation that is not among the most frequent; `pc` is the next one.
#[inline(never)]
fn operation(
    vm: &mut Vm,
    context: &Context<'_>,
    op: &Op,
    pc: &mut usize,
    function: &Function,
    fp: &Slots,
) -> Result<Done> {
    let at = op.at;
    match &op.kind {
        OpKind::JumpIf(test, target) => {
            if test.test(vm, fp)? {
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
        OpKind::Turn => vm.iteration()?,
        OpKind::Loop(each) => {
            let turned = each.run(vm, fp)?;
            return Ok(end_turns(vm, turned, pc));
        }
        OpKind::Each(each) => {
            let turned = each.run(vm, fp)?;
            return Ok(end_turns(vm, turned, pc));
        }
        OpKind::Iterate(kind, value, slot, span) => {
            let value = value.eval(vm, fp)?;
            let iterator = iterator::begin_iteration(vm, *kind, value, *span)?;
            fp[slot.0 as usize].set(iterator);
        }
        OpKind::Next { iterator, item, end } => {
            let iterator = fp[iterator.0 as usize].get();
            match vm.iterator_next(iterator)? {
                Some(value) => fp[item.0 as usize].set(value),
                None => *pc = *end as usize,
            }
        }
        OpKind::Construct(native, arguments, dst) => {
            let next = mark(vm, *pc, *dst).after(function.slots);
            let mut values = Buffer::new();
            for argument in arguments {
                argument.push(vm, fp, &mut values)?;
            }
            let called = vm.construct_builtin(*native, &values);
            let called = called.map_err(|thrown| thrown.at(vm, at))?;
            match call::enter_called(vm, context, called, next, at)? {
                Some(value) => fp[dst.0 as usize].set(value),
                None => return Ok(Done::Frame),
            }
        }
        OpKind::Await(value, dst) => {
            let value = value.eval(vm, fp)?;
            let promise = vm.promise_of(value);
            mark(vm, *pc, *dst);
            return Ok(Done::Await(promise));
        }
        OpKind::AwaitItem(slot) => {
            let value = fp[slot.0 as usize].get();
            let promise = vm.promise_of(value);
            let derived = vm.heap.new_promise();
            let (fulfilled, rejected) = (Value::UNDEFINED, Value::UNDEFINED);
            vm.react(promise, Reaction::Then { fulfilled, rejected, derived });
            mark(vm, *pc, *slot);
            return Ok(Done::Await(derived));
        }
        OpKind::Wait(value, dst) => {
            let value = value.eval(vm, fp)?;
            if !leave::wait(vm, value, fp, *dst).map_err(|thrown| thrown.at(vm, at))? {
                // The operation is charged again when it goes on.
                vm.heap.meter.fuel += 1;
                mark(vm, *pc - 1, *dst);
                return Ok(Done::Blocked);
            }
        }
        OpKind::Throw(value) => {
            let value = value.eval(vm, fp)?;
            vm.stack.thrown = None;
            return Err(Thrown::value(value).at(vm, at));
        }
        OpKind::Rethrow(slot) => return Err(Thrown::value(fp[slot.0 as usize].get())),
        OpKind::GetIterator(get) => return iterate::get_iterator(vm, context, get, pc, function, fp, at),
        OpKind::GotIterator(slot, wrapping) => {
            let record = vm.iterator_record(fp[slot.0 as usize].get(), *wrapping);
            fp[slot.0 as usize].set(record.map_err(|thrown| thrown.at(vm, at))?);
        }
        OpKind::JumpIfScript(slot, target) => {
            if iterate::is_script_record(vm, fp[slot.0 as usize].get()) {
                *pc = *target as usize;
            }
        }
        OpKind::Step { iterator, item, end, taken } => {
            let Some(done) = iterate::step(vm, context, (*iterator, *item), pc, function, fp, at)? else {
                let next = vm.iterator_next(fp[iterator.0 as usize].get())?;
                *pc = if next.is_some() { *taken } else { *end } as usize;
                fp[item.0 as usize].set(next.unwrap_or(Value::UNDEFINED));
                return Ok(Done::Op);
            };
            return Ok(done);
        }
        OpKind::Took { iterator, item, end } => {
            if iterate::took(vm, fp[iterator.0 as usize].get(), &fp[item.0 as usize])
                .map_err(|thrown| thrown.at(vm, at))?
            {
                *pc = *end as usize;
            }
        }
        OpKind::Close { iterator, result, none, builtin } => {
            let record = fp[iterator.0 as usize].get();
            if !iterate::is_script_record(vm, record) {
                *pc = *builtin as usize;
                return Ok(Done::Op);
            }
            return iterate::close(vm, context, record, *result, (pc, *none), function, fp, at);
        }
        OpKind::Closed { kind, result } => {
            let result = fp[result.0 as usize].get();
            if !result.is_object() && fp[kind.0 as usize].get().as_number() != crate::eval::build::THROWN {
                return Err(vm.not_a_result(result).at(vm, at));
            }
        }
        OpKind::List(slot, spread, copies) => {
            return iterate::list(vm, context, (*slot, *spread, *copies), pc, function, fp, at);
        }
        OpKind::GeneratorStart => {
            mark(vm, *pc, Slot(0));
            return Ok(Done::GeneratorStart);
        }
        OpKind::Yield { value, dst, .. } => {
            let value = value.eval(vm, fp)?;
            mark(vm, *pc, *dst);
            return Ok(Done::Yield(value, false));
        }
        OpKind::Delegate(delegate) => return iterate::delegate(vm, context, delegate, pc, function, fp, at),
        OpKind::Delegated(delegate) => {
            if let Some(target) = iterate::delegated(vm, delegate, fp).map_err(|thrown| thrown.at(vm, at))? {
                *pc = target as usize;
            }
        }
        OpKind::YieldStar(delegate) => {
            mark(vm, *pc, delegate.received);
            let passes = fp[delegate.mode.0 as usize].get().as_number() as u8 == PASSING;
            let is_protocol = iterate::is_protocol(vm, fp[delegate.iterator.0 as usize].get());
            let is_result = !delegate.is_async && (is_protocol || passes);
            return Ok(Done::Yield(fp[delegate.result.0 as usize].get(), is_result));
        }
        // These are in the loop above.
        OpKind::Run(_)
        | OpKind::Eval(_)
        | OpKind::Set(..)
        | OpKind::Jump(_)
        | OpKind::Again(..)
        | OpKind::JumpUnless(..)
        | OpKind::While(..)
        | OpKind::Call(..)
        | OpKind::CallFixed(..)
        | OpKind::Return(_) => {}
    }
    Ok(Done::Op)
}

fn end_turns(vm: &mut Vm, turned: LoopExit, pc: &mut usize) -> Done {
    match turned {
        LoopExit::Done => Done::Op,
        LoopExit::Pause => {
            // The operation is charged again when it goes on.
            vm.heap.meter.fuel += 1;
            *pc -= 1;
            Done::Pause
        }
        LoopExit::Return(value) => Done::Return(value),
    }
}

/// The exit for what was thrown outside any frame.
pub fn stopped(thrown: Thrown) -> Exit {
    match *thrown.0 {
        Cause::Stop(failure) => Exit::Stopped(failure),
        Cause::Value(_) => Exit::Idle,
    }
}

/// An error class for what was thrown, where it is an error.
pub fn error_class(vm: &Vm, value: Value) -> Option<Class> {
    (value.is(Kind::Object)).then(|| vm.heap.class(value)).filter(|class| class.is_error())
}
