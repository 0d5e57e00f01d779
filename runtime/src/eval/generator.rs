//! Generators (ECMAScript 27.5, 27.6): frames that suspend at `yield`, and the requests that resume them.
//!
//! A generator object holds its frame while it is suspended. To resume it is to put the frame onto the stack, like any
//! other call. So a generator that delegates to others uses the stack of the script and never the native one.

use crate::eval::activation::Called;
use crate::eval::native::ClosureFn;
use crate::eval::node::OpKind;
use crate::eval::stack::Slots;
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Frame, Resumer, Waiter, Waiting};
use crate::heap::promise::{Reaction, State};
use crate::heap::{Action, InternalSlots, block};
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use std::collections::VecDeque;

/// The internal slots of a generator object.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Whether it is async.
    pub is_async: bool,
    /// The generator function that has made it.
    function: Value,
    state: Progress,
    /// The frame, while it is suspended at its start or at a `yield`.
    frame: Option<Waiting>,
    /// The requests to an async generator that are not settled yet, in their order.
    queue: VecDeque<Request>,
    /// What the call that has resumed an async generator gets at its first `await` or `yield`: a promise.
    promise: Value,
}

impl InternalSlots for Generator {
    fn family(&self) -> Family {
        if self.is_async { Family::AsyncGenerator } else { Family::Generator }
    }

    fn class(&self) -> &'static str {
        "Object"
    }

    fn tag(&self) -> &'static str {
        if self.is_async { "AsyncGenerator" } else { "Generator" }
    }

    fn cost(&self) -> usize {
        let frame = self.frame.as_ref().map_or(0, |frame| block(frame.slots.len() * size_of::<Value>()));
        block(size_of::<Self>()) + block(self.queue.capacity() * size_of::<Request>()) + frame
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        let slots = self.frame.iter().flat_map(|frame| frame.slots.iter().map(std::cell::Cell::get));
        let requests = self.queue.iter().flat_map(|request| [request.value, request.promise]);
        [self.promise, self.function].into_iter().chain(slots).chain(requests).for_each(reach);
    }
}

/// How far a generator is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Before its body.
    Start,
    /// At a `yield`.
    Yield,
    /// It is on the stack, or awaits something.
    Running,
    /// An async one that awaits the value of a `return` without its frame.
    Returning,
    Completed,
}

/// The method by which a generator is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// `next(value)`
    Next,
    /// `throw(error)`
    Throw,
    /// `return(value)`
    Return,
}

impl Resumption {
    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Throw => "throw",
            Self::Return => "return",
        }
    }
}

/// A call of a method of an async generator.
#[derive(Clone, Copy, Debug)]
struct Request {
    how: Resumption,
    value: Value,
    /// What the call has returned.
    promise: Value,
}

/// What resuming a generator gives.
pub enum Resumed {
    /// A frame to be executed.
    Frame(Waiting),
    /// It has ended, with this value.
    Ended(Value),
}

/// Where a frame goes on that waits at a `yield`.
pub enum ResumePoint {
    /// At this operation.
    At(u32),
    /// The generator does not handle the exception.
    Thrown,
}

impl Generator {
    /// The promise of the oldest request that is not settled.
    pub fn oldest_request(&self) -> Option<Value> {
        self.queue.front().map(|request| request.promise)
    }
}

/// A new generator object that waits with a frame, whose slots are counted already.
pub(crate) fn new_generator(vm: &mut Vm, frame: Waiting, function: Value, is_async: bool) -> Value {
    let (state, promise) = (Progress::Start, Value::UNDEFINED);
    let generator = Generator { is_async, function, state, frame: None, queue: VecDeque::new(), promise };
    let value = vm.heap.new_with_slots(generator);
    suspend_generator(vm, value, frame);
    set_progress(vm, value, Progress::Start);
    value
}

fn state_of(vm: &mut Vm, value: Value) -> Option<&mut Generator> {
    vm.heap.slots_mut(value)
}

/// Whether a value is a generator that yields synchronously.
pub(crate) fn is_generator(vm: &Vm, value: Value) -> bool {
    vm.heap.slots::<Generator>(value).is_some_and(|generator| !generator.is_async)
}

/// Whether a value is a generator object that a function has made.
pub(crate) fn is_made_by(vm: &Vm, value: Value, function: Value) -> bool {
    vm.heap.slots::<Generator>(value).is_some_and(|generator| generator.function == function)
}

fn progress(vm: &mut Vm, generator: Value) -> Progress {
    state_of(vm, generator).map_or(Progress::Completed, |generator| generator.state)
}

fn set_progress(vm: &mut Vm, generator: Value, state: Progress) {
    if let Some(generator) = state_of(vm, generator) {
        generator.state = state;
    }
}

/// A frame waits at a `yield` of a generator.
pub(crate) fn suspend_generator(vm: &mut Vm, generator: Value, frame: Waiting) {
    if let Some(generator) = state_of(vm, generator) {
        generator.state = Progress::Yield;
        generator.frame = Some(frame);
    }
}

/// A generator has ended: nothing resumes it any more.
pub(crate) fn end_generator(vm: &mut Vm, generator: Value) {
    set_progress(vm, generator, Progress::Completed);
    let frame = state_of(vm, generator).and_then(|generator| generator.frame.take());
    if let Some(frame) = frame {
        vm.recycle(frame.slots);
    }
}

/// `{value, done}`
pub(crate) fn iterator_result(vm: &mut Vm, value: Value, done: bool) -> Value {
    use crate::value::atom::known;
    let result = vm.heap.new_object();
    vm.heap.set_own(result, known::VALUE, value);
    vm.heap.set_own(result, known::DONE, Value::bool(done));
    result
}

/// Call `next`, `throw` or `return` of a generator.
pub(crate) fn call_generator(
    vm: &mut Vm,
    how: Resumption,
    is_async: bool,
    this: Value,
    value: Value,
    after: After,
) -> Result<Called> {
    let fits = state_of(vm, this).is_some_and(|generator| generator.is_async == is_async);
    vm.tick()?;
    if is_async {
        let promise = vm.heap.new_promise();
        if !fits {
            let Err(thrown) = not_a_generator(vm, how, "[AsyncGenerator]", this) else {
                return Ok(Called::Value(promise));
            };
            match *thrown.0 {
                crate::value::thrown::Cause::Value(error) => vm.reject_promise(promise, error),
                crate::value::thrown::Cause::Stop(_) => return Err(thrown),
            }
            return Ok(Called::Value(promise));
        }
        let waiter = match after {
            After::Call | After::Generator(..) | After::AsyncGenerator(..) | After::Async(..) => Waiter::Caller,
            After::Job(derived) => Waiter::Job(derived),
            After::Nested => Waiter::Nobody,
        };
        let called = request(vm, this, Request { how, value, promise }, waiter);
        return Ok(called.map_or(Called::Value(promise), Called::Frame));
    }
    if !fits {
        return not_a_generator(vm, how, "[Generator]", this);
    }
    let resumer = match after {
        After::Call | After::Generator(..) | After::AsyncGenerator(..) | After::Async(..) => Resumer::Caller,
        After::Job(derived) => Resumer::Job(derived),
        After::Nested => Resumer::Nested,
    };
    Ok(match resume_generator(vm, this, how, value, resumer)? {
        Resumed::Frame(frame) => Called::Frame(frame),
        Resumed::Ended(value) => Called::Value(iterator_result(vm, value, true)),
    })
}

#[cold]
fn not_a_generator(vm: &mut Vm, how: Resumption, class: &str, this: Value) -> Result<Called> {
    let what = vm.receiver_text(this);
    let method = how.name();
    Err(vm.type_error(&format!("Method {class}.prototype.{method} called on incompatible receiver {what}")))
}

/// Resume a synchronous generator.
pub(crate) fn resume_generator(
    vm: &mut Vm,
    this: Value,
    how: Resumption,
    value: Value,
    resumer: Resumer,
) -> Result<Resumed> {
    match progress(vm, this) {
        Progress::Running | Progress::Returning => return Err(vm.type_error("Generator is already running")),
        Progress::Start if how != Resumption::Next => end_generator(vm, this),
        Progress::Start | Progress::Yield | Progress::Completed => {}
    }
    let frame = state_of(vm, this).and_then(|generator| generator.frame.take());
    let Some(mut frame) = frame else {
        return match how {
            Resumption::Next => Ok(Resumed::Ended(Value::UNDEFINED)),
            Resumption::Return => Ok(Resumed::Ended(value)),
            Resumption::Throw => Err(Thrown::value(value)),
        };
    };
    set_progress(vm, this, Progress::Running);
    match resume_point(vm, &frame, &frame.slots, how, value) {
        ResumePoint::At(pc) => {
            frame.pc = pc;
            frame.after = After::Generator(this, resumer);
            Ok(Resumed::Frame(frame))
        }
        ResumePoint::Thrown => {
            vm.recycle(frame.slots);
            end_generator(vm, this);
            Err(Thrown::value(value))
        }
    }
}

/// Where a frame goes on that is resumed at a `yield`; the slots get what it is resumed with.
pub(crate) fn resume_point<S>(vm: &Vm, frame: &Frame<S>, slots: &Slots, how: Resumption, value: Value) -> ResumePoint {
    let function = vm.realm.function(frame.code);
    let before = frame.pc.saturating_sub(1);
    let set = |slot: agentscript_lang::program::Slot, value| slots[slot.0 as usize].set(value);
    match function.ops.get(before as usize).map(|op| &op.kind) {
        Some(OpKind::YieldStar(delegate)) => {
            set(delegate.received, value);
            set(delegate.mode, Value::number(f64::from(how as u8)));
            ResumePoint::At(frame.pc)
        }
        Some(OpKind::Yield { dst, returned, .. }) if how != Resumption::Throw => {
            set(*dst, value);
            ResumePoint::At(if how == Resumption::Return { *returned } else { frame.pc })
        }
        _ if how != Resumption::Throw => ResumePoint::At(frame.pc),
        _ => {
            let mut handlers = function.handlers.iter();
            match handlers.find(|handler| (handler.from..handler.to).contains(&before)) {
                Some(handler) => {
                    set(handler.slot, value);
                    ResumePoint::At(handler.target)
                }
                None => ResumePoint::Thrown,
            }
        }
    }
}

// ---- Async generators ----------------------------------------------------------------------

/// Queue a request; gives the frame where it resumes the generator now (27.6.3.6).
fn request(vm: &mut Vm, this: Value, request: Request, waiter: Waiter) -> Option<Waiting> {
    let Request { how, promise, .. } = request;
    let mut state = progress(vm, this);
    if state == Progress::Start && how != Resumption::Next {
        end_generator(vm, this);
        state = Progress::Completed;
    }
    if state == Progress::Completed && how != Resumption::Return {
        settle_request(vm, request, how == Resumption::Throw, true);
        return None;
    }
    let grown = state_of(vm, this).map_or(0, |generator| {
        let before = generator.queue.capacity();
        generator.queue.push_back(request);
        (generator.queue.capacity() - before) * size_of::<Request>()
    });
    vm.heap.meter.add_bytes(grown);
    match state {
        Progress::Completed => {
            await_return(vm, this);
            None
        }
        Progress::Start | Progress::Yield => {
            let frame = state_of(vm, this).and_then(|generator| {
                generator.state = Progress::Running;
                generator.promise = promise;
                generator.frame.take()
            });
            continue_async(vm, this, frame?, request, waiter)
        }
        Progress::Running | Progress::Returning => None,
    }
}

/// The frame of an async generator with the first request; `None` where that ends it.
fn continue_async(vm: &mut Vm, this: Value, mut frame: Waiting, request: Request, waiter: Waiter) -> Option<Waiting> {
    match resume_point(vm, &frame, &frame.slots, request.how, request.value) {
        ResumePoint::At(pc) => {
            frame.pc = pc;
            frame.after = After::AsyncGenerator(this, waiter);
            Some(frame)
        }
        ResumePoint::Thrown => {
            vm.recycle(frame.slots);
            end_async_generator(vm, this, Err(request.value));
            None
        }
    }
}

/// The promise that the caller of an async generator gets.
pub(crate) fn generator_promise(vm: &mut Vm, this: Value) -> Value {
    state_of(vm, this).map_or(Value::UNDEFINED, |generator| generator.promise)
}

/// Settle the promise of a request with its own value.
fn settle_request(vm: &mut Vm, request: Request, rejects: bool, done: bool) {
    let Request { how, value, promise } = request;
    if rejects {
        vm.reject_promise(promise, value);
    } else {
        let value = if how == Resumption::Return { value } else { Value::UNDEFINED };
        let result = iterator_result(vm, value, done);
        vm.resolve_promise(promise, result);
    }
}

/// Settle the promise of the first request.
fn complete_step(vm: &mut Vm, this: Value, result: std::result::Result<Value, Value>, done: bool) {
    let Some(request) = state_of(vm, this).and_then(|generator| generator.queue.pop_front()) else { return };
    match result {
        Ok(value) => {
            let result = iterator_result(vm, value, done);
            vm.resolve_promise(request.promise, result);
        }
        Err(reason) => vm.reject_promise(request.promise, reason),
    }
}

/// An async generator yields a value: gives the next request, if one is waiting, with which it goes on.
pub(crate) fn yield_async(vm: &mut Vm, this: Value, value: Value) -> Option<(Resumption, Value)> {
    complete_step(vm, this, Ok(value), false);
    let next = state_of(vm, this)?.queue.front()?;
    Some((next.how, next.value))
}

/// An async generator has ended.
pub(crate) fn end_async_generator(vm: &mut Vm, this: Value, result: std::result::Result<Value, Value>) {
    end_generator(vm, this);
    complete_step(vm, this, result, true);
    drain_queue(vm, this);
}

/// Answer the requests that wait at a generator that has ended (27.6.3.10).
fn drain_queue(vm: &mut Vm, this: Value) {
    loop {
        let Some(&request) = state_of(vm, this).and_then(|generator| generator.queue.front()) else { return };
        if request.how == Resumption::Return {
            return await_return(vm, this);
        }
        let result = if request.how == Resumption::Throw { Err(request.value) } else { Ok(Value::UNDEFINED) };
        complete_step(vm, this, result, true);
    }
}

/// Await the value of the first request, which is a `return` (27.6.3.9).
fn await_return(vm: &mut Vm, this: Value) {
    let Some(&request) = state_of(vm, this).and_then(|generator| generator.queue.front()) else { return };
    set_progress(vm, this, Progress::Returning);
    let promise = vm.promise_of(request.value);
    let data = [this, Value::UNDEFINED, Value::UNDEFINED];
    let fulfilled = vm.heap.new_native_closure(Action::Native(&RETURN_FULFILLED), data);
    let rejected = vm.heap.new_native_closure(Action::Native(&RETURN_REJECTED), data);
    vm.react(promise, Reaction::Then { fulfilled, rejected, derived: Value::UNDEFINED });
}

static RETURN_FULFILLED: ClosureFn = ClosureFn { length: 1, call: return_fulfilled };

fn return_fulfilled(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    returned(vm, this, State::Fulfilled, arguments)
}

static RETURN_REJECTED: ClosureFn = ClosureFn { length: 1, call: return_rejected };

fn return_rejected(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    returned(vm, this, State::Rejected, arguments)
}

fn returned(vm: &mut Vm, this: Value, state: State, arguments: &[Value]) -> Result {
    let [generator, ..] = vm.heap.native_closures[this.index()].data;
    let value = crate::eval::native::arg(arguments, 0);
    end_async_generator(vm, generator, if state == State::Rejected { Err(value) } else { Ok(value) });
    debug_assert!(generator.is(Kind::InternalSlots));
    Ok(Value::UNDEFINED)
}
