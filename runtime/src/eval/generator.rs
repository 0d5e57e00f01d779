//! Generators (ECMAScript 27.5, 27.6): frames that suspend at `yield`, and the requests that resume them.
//!
//! A generator object holds its frame while it is suspended. To resume it is to put the frame onto the stack, like any
//! other call. So a generator that delegates to others uses the stack of the script and never the native one.

use crate::eval::activation::Called;
use crate::eval::execute::function_of;
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
pub enum Onward {
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

impl Vm {
    /// A new generator object that waits with a frame, whose slots are counted already.
    pub(crate) fn new_generator(&mut self, frame: Waiting, function: Value, is_async: bool) -> Value {
        let (state, promise) = (Progress::Start, Value::UNDEFINED);
        let generator = Generator { is_async, function, state, frame: None, queue: VecDeque::new(), promise };
        let value = self.heap.new_with_slots(generator);
        self.suspend_generator(value, frame);
        self.set_progress(value, Progress::Start);
        value
    }

    fn generator(&mut self, value: Value) -> Option<&mut Generator> {
        self.heap.slots_mut(value)
    }

    /// Whether a value is a generator that yields synchronously.
    pub(crate) fn is_generator(&self, value: Value) -> bool {
        self.heap.slots::<Generator>(value).is_some_and(|generator| !generator.is_async)
    }

    /// Whether a value is a generator object that a function has made.
    pub(crate) fn is_made_by(&self, value: Value, function: Value) -> bool {
        self.heap.slots::<Generator>(value).is_some_and(|generator| generator.function == function)
    }

    fn progress(&mut self, generator: Value) -> Progress {
        self.generator(generator).map_or(Progress::Completed, |generator| generator.state)
    }

    fn set_progress(&mut self, generator: Value, state: Progress) {
        if let Some(generator) = self.generator(generator) {
            generator.state = state;
        }
    }

    /// A frame waits at a `yield` of a generator.
    pub(crate) fn suspend_generator(&mut self, generator: Value, frame: Waiting) {
        if let Some(generator) = self.generator(generator) {
            generator.state = Progress::Yield;
            generator.frame = Some(frame);
        }
    }

    /// A generator has ended: nothing resumes it any more.
    pub(crate) fn end_generator(&mut self, generator: Value) {
        self.set_progress(generator, Progress::Completed);
        let frame = self.generator(generator).and_then(|generator| generator.frame.take());
        if let Some(frame) = frame {
            self.recycle(frame.slots);
        }
    }

    /// `{value, done}`
    pub(crate) fn iterator_result(&mut self, value: Value, done: bool) -> Value {
        use crate::value::atom::known;
        let result = self.heap.new_object();
        self.heap.set_own(result, known::VALUE, value);
        self.heap.set_own(result, known::DONE, Value::bool(done));
        result
    }

    /// Call `next`, `throw` or `return` of a generator.
    pub(crate) fn call_generator(
        &mut self,
        how: Resumption,
        is_async: bool,
        this: Value,
        value: Value,
        after: After,
    ) -> Result<Called> {
        let fits = self.generator(this).is_some_and(|generator| generator.is_async == is_async);
        self.tick()?;
        if is_async {
            let promise = self.heap.new_promise();
            if !fits {
                let Err(thrown) = self.not_a_generator(how, "[AsyncGenerator]", this) else {
                    return Ok(Called::Value(promise));
                };
                match *thrown.0 {
                    crate::value::thrown::Cause::Value(error) => self.reject_promise(promise, error),
                    crate::value::thrown::Cause::Stop(_) => return Err(thrown),
                }
                return Ok(Called::Value(promise));
            }
            let waiter = match after {
                After::Call | After::Generator(..) | After::AsyncGenerator(..) | After::Async(..) => Waiter::Caller,
                After::Job(derived) => Waiter::Job(derived),
                After::Nested => Waiter::Nobody,
            };
            let called = self.request(this, Request { how, value, promise }, waiter);
            return Ok(called.map_or(Called::Value(promise), Called::Frame));
        }
        if !fits {
            return self.not_a_generator(how, "[Generator]", this);
        }
        let resumer = match after {
            After::Call | After::Generator(..) | After::AsyncGenerator(..) | After::Async(..) => Resumer::Caller,
            After::Job(derived) => Resumer::Job(derived),
            After::Nested => Resumer::Nested,
        };
        Ok(match self.resume_generator(this, how, value, resumer)? {
            Resumed::Frame(frame) => Called::Frame(frame),
            Resumed::Ended(value) => Called::Value(self.iterator_result(value, true)),
        })
    }

    #[cold]
    fn not_a_generator(&mut self, how: Resumption, class: &str, this: Value) -> Result<Called> {
        let what = self.receiver_text(this);
        let method = how.name();
        Err(self.type_error(&format!("Method {class}.prototype.{method} called on incompatible receiver {what}")))
    }

    /// Resume a synchronous generator.
    pub(crate) fn resume_generator(
        &mut self,
        this: Value,
        how: Resumption,
        value: Value,
        resumer: Resumer,
    ) -> Result<Resumed> {
        match self.progress(this) {
            Progress::Running | Progress::Returning => return Err(self.type_error("Generator is already running")),
            Progress::Start if how != Resumption::Next => self.end_generator(this),
            Progress::Start | Progress::Yield | Progress::Completed => {}
        }
        let frame = self.generator(this).and_then(|generator| generator.frame.take());
        let Some(mut frame) = frame else {
            return match how {
                Resumption::Next => Ok(Resumed::Ended(Value::UNDEFINED)),
                Resumption::Return => Ok(Resumed::Ended(value)),
                Resumption::Throw => Err(Thrown::value(value)),
            };
        };
        self.set_progress(this, Progress::Running);
        match self.onward(&frame, &frame.slots, how, value) {
            Onward::At(pc) => {
                frame.pc = pc;
                frame.after = After::Generator(this, resumer);
                Ok(Resumed::Frame(frame))
            }
            Onward::Thrown => {
                self.recycle(frame.slots);
                self.end_generator(this);
                Err(Thrown::value(value))
            }
        }
    }

    /// Where a frame goes on that is resumed at a `yield`; the slots get what it is resumed with.
    pub(crate) fn onward<S>(&self, frame: &Frame<S>, slots: &Slots, how: Resumption, value: Value) -> Onward {
        let function = function_of(&self.realm.script.code, self.realm.prelude, frame.code);
        let before = frame.pc.saturating_sub(1);
        let set = |slot: agentscript_lang::program::Slot, value| slots[slot.0 as usize].set(value);
        match function.ops.get(before as usize).map(|op| &op.kind) {
            Some(OpKind::YieldStar(delegate)) => {
                set(delegate.received, value);
                set(delegate.mode, Value::number(f64::from(how as u8)));
                Onward::At(frame.pc)
            }
            Some(OpKind::Yield { dst, returned, .. }) if how != Resumption::Throw => {
                set(*dst, value);
                Onward::At(if how == Resumption::Return { *returned } else { frame.pc })
            }
            _ if how != Resumption::Throw => Onward::At(frame.pc),
            _ => {
                let mut handlers = function.handlers.iter();
                match handlers.find(|handler| (handler.from..handler.to).contains(&before)) {
                    Some(handler) => {
                        set(handler.slot, value);
                        Onward::At(handler.target)
                    }
                    None => Onward::Thrown,
                }
            }
        }
    }

    // ---- Async generators ----------------------------------------------------------------------

    /// Queue a request; gives the frame where it resumes the generator now (27.6.3.6).
    fn request(&mut self, this: Value, request: Request, waiter: Waiter) -> Option<Waiting> {
        let Request { how, promise, .. } = request;
        let mut state = self.progress(this);
        if state == Progress::Start && how != Resumption::Next {
            self.end_generator(this);
            state = Progress::Completed;
        }
        if state == Progress::Completed && how != Resumption::Return {
            self.settle_request(request, how == Resumption::Throw, true);
            return None;
        }
        let grown = self.generator(this).map_or(0, |generator| {
            let before = generator.queue.capacity();
            generator.queue.push_back(request);
            (generator.queue.capacity() - before) * size_of::<Request>()
        });
        self.heap.meter.add_bytes(grown);
        match state {
            Progress::Completed => {
                self.await_return(this);
                None
            }
            Progress::Start | Progress::Yield => {
                let frame = self.generator(this).and_then(|generator| {
                    generator.state = Progress::Running;
                    generator.promise = promise;
                    generator.frame.take()
                });
                self.continue_async(this, frame?, request, waiter)
            }
            Progress::Running | Progress::Returning => None,
        }
    }

    /// The frame of an async generator with the first request; `None` where that ends it.
    fn continue_async(&mut self, this: Value, mut frame: Waiting, request: Request, waiter: Waiter) -> Option<Waiting> {
        match self.onward(&frame, &frame.slots, request.how, request.value) {
            Onward::At(pc) => {
                frame.pc = pc;
                frame.after = After::AsyncGenerator(this, waiter);
                Some(frame)
            }
            Onward::Thrown => {
                self.recycle(frame.slots);
                self.end_async_generator(this, Err(request.value));
                None
            }
        }
    }

    /// The promise that the caller of an async generator gets.
    pub(crate) fn generator_promise(&mut self, this: Value) -> Value {
        self.generator(this).map_or(Value::UNDEFINED, |generator| generator.promise)
    }

    /// Settle the promise of a request with its own value.
    fn settle_request(&mut self, request: Request, rejects: bool, done: bool) {
        let Request { how, value, promise } = request;
        if rejects {
            self.reject_promise(promise, value);
        } else {
            let value = if how == Resumption::Return { value } else { Value::UNDEFINED };
            let result = self.iterator_result(value, done);
            self.resolve_promise(promise, result);
        }
    }

    /// Settle the promise of the first request.
    fn complete_step(&mut self, this: Value, result: std::result::Result<Value, Value>, done: bool) {
        let Some(request) = self.generator(this).and_then(|generator| generator.queue.pop_front()) else { return };
        match result {
            Ok(value) => {
                let result = self.iterator_result(value, done);
                self.resolve_promise(request.promise, result);
            }
            Err(reason) => self.reject_promise(request.promise, reason),
        }
    }

    /// An async generator yields a value: gives the next request, if one is waiting, with which it goes on.
    pub(crate) fn yield_async(&mut self, this: Value, value: Value) -> Option<(Resumption, Value)> {
        self.complete_step(this, Ok(value), false);
        let next = self.generator(this)?.queue.front()?;
        Some((next.how, next.value))
    }

    /// An async generator has ended.
    pub(crate) fn end_async_generator(&mut self, this: Value, result: std::result::Result<Value, Value>) {
        self.end_generator(this);
        self.complete_step(this, result, true);
        self.drain_queue(this);
    }

    /// Answer the requests that wait at a generator that has ended (27.6.3.10).
    fn drain_queue(&mut self, this: Value) {
        loop {
            let Some(&request) = self.generator(this).and_then(|generator| generator.queue.front()) else { return };
            if request.how == Resumption::Return {
                return self.await_return(this);
            }
            let result = if request.how == Resumption::Throw { Err(request.value) } else { Ok(Value::UNDEFINED) };
            self.complete_step(this, result, true);
        }
    }

    /// Await the value of the first request, which is a `return` (27.6.3.9).
    fn await_return(&mut self, this: Value) {
        let Some(&request) = self.generator(this).and_then(|generator| generator.queue.front()) else { return };
        self.set_progress(this, Progress::Returning);
        let promise = self.promise_of(request.value);
        let data = [this, Value::UNDEFINED, Value::UNDEFINED];
        let fulfilled = self.heap.new_native_closure(Action::Native(&RETURN_FULFILLED), data);
        let rejected = self.heap.new_native_closure(Action::Native(&RETURN_REJECTED), data);
        self.react(promise, Reaction::Then { fulfilled, rejected, derived: Value::UNDEFINED });
    }
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
    vm.end_async_generator(generator, if state == State::Rejected { Err(value) } else { Ok(value) });
    debug_assert!(generator.is(Kind::InternalSlots));
    Ok(Value::UNDEFINED)
}
