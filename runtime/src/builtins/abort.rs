//! `AbortController` and `AbortSignal`, as far as Node has them without other events: a signal cancels calls of tools,
//! and calls its listeners.

use super::timer::start;
use super::url::coded;
use super::{Body, Global, Row, arg, getter, native, prelude};
use crate::builtins::dom_exception;
use crate::builtins::registry::registry;
use crate::builtins::timer;
use crate::builtins::tool::settle;
use crate::builtins::url::params;
use crate::eval::calls::{Open, Style};
use crate::eval::execute::Exit;
use crate::eval::job;
use crate::eval::schedule::Action;
use crate::eval::vm::Vm;
use crate::heap::object::CODED;
use crate::heap::promise::{Job, State};
use crate::heap::{Class, InternalSlots, block};
use crate::interface::error_code::ErrorCode;
use crate::interface::host::{CallId, ToolError};
use crate::meter::buffer::Buffer;
use crate::value::atom::known;
use crate::value::family::Family;
use crate::value::numeric::number_text;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// The constructors.
pub const GLOBALS: &[Global] = &[
    Global {
        name: "AbortController",
        length: 0,
        call: Body::Native(call_controller),
        construct: Some(Body::Native(new_controller)),
        functions: &[],
        numbers: &[],
    },
    Global {
        name: "AbortSignal",
        length: 0,
        call: Body::Native(call_signal),
        construct: Some(Body::Native(new_signal)),
        functions: &[native("abort", 0, abort), native("any", 1, any), native("timeout", 1, timeout)],
        numbers: &[],
    },
];

/// Properties and methods of controllers.
pub const CONTROLLER_METHODS: &[Row] =
    &[getter("signal", controller_signal), prelude("abort", 0, "AbortController_abort")];

/// Properties and methods of signals.
pub const SIGNAL_METHODS: &[Row] = &[
    getter("aborted", aborted),
    getter("reason", reason),
    Row { name: "onabort", length: 0, body: Body::Accessor { get: on_abort, set: Some(set_on_abort) }, direct: None },
    native("throwIfAborted", 0, throw_if_aborted),
    native("addEventListener", 2, add_event_listener),
    native("removeEventListener", 2, remove_event_listener),
];

/// Properties of the event that listeners get.
pub const EVENT_METHODS: &[Row] = &[
    getter("type", event_type),
    getter("target", event_target),
    getter("currentTarget", event_target),
    getter("timeStamp", event_time),
    getter("isTrusted", |_, _, _| Ok(Value::TRUE)),
    getter("bubbles", |_, _, _| Ok(Value::FALSE)),
    getter("cancelable", |_, _, _| Ok(Value::FALSE)),
    getter("composed", |_, _, _| Ok(Value::FALSE)),
    getter("defaultPrevented", |_, _, _| Ok(Value::FALSE)),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    prelude("$abort", 2, "AbortSignal_fire"),
    native("$abort_target", 1, target),
    native("$abort_reason", 1, default_reason),
    native("$begin_abort", 2, begin_abort),
    native("$next_listener", 1, next_listener),
    native("$uncaught", 1, uncaught),
];

/// The longest time of `AbortSignal.timeout`, in milliseconds.
const MAX_DELAY: f64 = 4_294_967_295.0;

/// The internal slots of a signal.
#[derive(Clone, Debug)]
pub struct SignalState {
    /// Whether it was aborted.
    pub aborted: bool,
    /// Why.
    pub reason: Value,
    /// When its event was made, in milliseconds since the run began.
    pub time: f64,
    /// Its property `onabort`.
    pub on_abort: Value,
    /// What happens when it is aborted, in order.
    pub listeners: Vec<Listener>,
    /// Signals of `AbortSignal.any` that are aborted with it.
    pub dependents: Vec<Value>,
}

impl InternalSlots for SignalState {
    fn family(&self) -> Family {
        Family::AbortSignal
    }

    fn cost(&self) -> usize {
        block(self.listeners.capacity() * size_of::<Listener>())
            + block(self.dependents.capacity() * size_of::<Value>())
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        let listeners = self.listeners.iter().filter_map(|listener| match listener {
            Listener::Callback(callback) => Some(*callback),
            Listener::OnAbort | Listener::Call(_) => None,
        });
        [self.reason, self.on_abort]
            .into_iter()
            .chain(self.dependents.iter().copied())
            .chain(listeners)
            .for_each(reach);
    }
}

/// Returns how Node prints a signal, its controller or its event.
pub fn inspected(vm: &Vm, object: Value) -> String {
    let state = |signal: Value| signal_state(vm, signal);
    if let Some(&AbortController(signal)) = vm.heap.slots(object) {
        let aborted = state(signal).is_some_and(|state| state.aborted);
        brief!("AbortController {{ signal: AbortSignal {{ aborted: {aborted} }} }}")
    } else if let Some(&AbortEvent(signal)) = vm.heap.slots(object) {
        let time = number_text(state(signal).map_or(0.0, |state| state.time));
        let fields = "type: 'abort',\n  defaultPrevented: false,\n  cancelable: false";
        brief!("Event {{\n  {fields},\n  timeStamp: {time}\n}}")
    } else {
        let aborted = state(object).is_some_and(|state| state.aborted);
        brief!("AbortSignal {{ aborted: {aborted} }}")
    }
}

/// The internal slots of an `AbortController`: its signal.
struct AbortController(Value);

impl InternalSlots for AbortController {
    fn family(&self) -> Family {
        Family::AbortController
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.0);
    }
}

/// The internal slots of the event that a signal is aborted: the signal.
struct AbortEvent(Value);

impl InternalSlots for AbortEvent {
    fn family(&self) -> Family {
        Family::AbortEvent
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.0);
    }
}

/// What happens when a signal is aborted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Listener {
    /// A function is called, or the method `handleEvent` of an object.
    Callback(Value),
    /// The value of the property `onabort` is called.
    OnAbort,
    /// A call is cancelled.
    Call(CallId),
}

impl Default for SignalState {
    fn default() -> Self {
        Self {
            aborted: false,
            reason: Value::UNDEFINED,
            time: 0.0,
            on_abort: Value::NULL,
            listeners: Vec::default(),
            dependents: Vec::default(),
        }
    }
}

fn call_controller(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor AbortController cannot be invoked without 'new'"))
}

/// `new AbortController()`
fn new_controller(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    let signal = make(vm, SignalState::default());
    Ok(vm.heap.new_with_slots(AbortController(signal)))
}

fn call_signal(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Class constructor AbortSignal cannot be invoked without 'new'"))
}

fn new_signal(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(coded(vm, "ERR_ILLEGAL_CONSTRUCTOR", "Illegal constructor"))
}

/// `AbortSignal.abort(reason)`
fn abort(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let reason = default_reason(vm, Value::UNDEFINED, arguments)?;
    Ok(make(vm, SignalState { aborted: true, reason, ..SignalState::default() }))
}

/// `AbortSignal.any(signals)`
fn any(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let signals = arg(arguments, 0);
    if !signals.is(Kind::Array) {
        let received = params::received(vm, signals)?;
        let message = brief!("The \"signals\" argument must be an instance of Array. Received {received}");
        return Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message));
    }
    let signals = vm.heap.charged_items_copy(signals)?;
    for (index, &signal) in signals.iter().enumerate() {
        if signal_state(vm, signal).is_none() {
            let received = params::received(vm, signal)?;
            let message =
                brief!("The \"signals[{index}]\" argument must be an instance of AbortSignal. Received {received}");
            return Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message));
        }
    }
    vm.work(signals.len())?;
    let aborted = signals.iter().find_map(|&signal| signal_state(vm, signal).filter(|state| state.aborted));
    if let Some(SignalState { reason, .. }) = aborted {
        let reason = *reason;
        return Ok(make(vm, SignalState { aborted: true, reason, ..SignalState::default() }));
    }
    let result = make(vm, SignalState::default());
    for &signal in &*signals {
        vm.heap.meter.add_bytes(2 * size_of::<Value>());
        if let Some(state) = signal_state_mut(vm, signal) {
            state.dependents.push(result);
        }
    }
    Ok(result)
}

/// `AbortSignal.timeout(ms)`
fn timeout(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let delay = arg(arguments, 0);
    if !delay.is_number() {
        let received = params::received(vm, delay)?;
        let message = brief!("The \"delay\" argument must be of type number. Received {received}");
        return Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message));
    }
    let ms = delay.as_number();
    if ms.fract() != 0.0 || !(0.0..=MAX_DELAY).contains(&ms) {
        let range = if ms.fract() == 0.0 { ">= 0 && <= 4294967295" } else { "an integer" };
        let received = vm.to_text_lossy(delay);
        let message = brief!("The value of \"delay\" is out of range. It must be {range}. Received {received}");
        let error = vm.new_error(Class::RangeError, &message);
        let code = vm.heap.string("ERR_OUT_OF_RANGE");
        vm.heap.set_own(error, known::CODE, code);
        vm.heap.add_flags(error, CODED);
        return Err(Thrown::value(error));
    }
    timer::check_timers(vm)?;
    let signal = make(vm, SignalState::default());
    start(vm, ms.max(1.0) as u64, Action::Abort(signal), false)?;
    Ok(signal)
}

/// `controller.signal`
fn controller_signal(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    match vm.heap.slots(this) {
        Some(&AbortController(signal)) => Ok(signal),
        _ => Err(vm.type_error("Cannot read private member #signal from an object whose class did not declare it")),
    }
}

/// `signal.aborted`
fn aborted(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    state(vm, this).map(|state| Value::bool(state.aborted))
}

/// `signal.reason`
fn reason(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    state(vm, this).map(|state| state.reason)
}

/// `signal.onabort`
fn on_abort(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    state(vm, this).map(|state| state.on_abort)
}

/// `signal.onabort = listener`
fn set_on_abort(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let listener = arg(arguments, 0);
    let is_function = vm.type_of(listener) == "function";
    let known = state(vm, this)?.listeners.contains(&Listener::OnAbort);
    if is_function && !known {
        listen(vm, this, Listener::OnAbort);
    }
    let state = state(vm, this)?;
    if !is_function {
        state.listeners.retain(|listener| *listener != Listener::OnAbort);
    }
    state.on_abort = listener;
    Ok(Value::UNDEFINED)
}

/// `signal.throwIfAborted()`
fn throw_if_aborted(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let state = state(vm, this)?;
    if state.aborted { Err(Thrown::value(state.reason)) } else { Ok(Value::UNDEFINED) }
}

/// `signal.addEventListener(type, listener, options)`: there is one event, so every listener is called once.
fn add_event_listener(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let Some((is_abort, listener)) = listener(vm, this, arguments)? else { return Ok(Value::UNDEFINED) };
    let length = state(vm, this)?.listeners.len();
    vm.work(length / 8)?;
    if is_abort && !state(vm, this)?.listeners.contains(&Listener::Callback(listener)) {
        listen(vm, this, Listener::Callback(listener));
    }
    Ok(Value::UNDEFINED)
}

/// `signal.removeEventListener(type, listener)`
fn remove_event_listener(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let Some((is_abort, listener)) = listener(vm, this, arguments)? else { return Ok(Value::UNDEFINED) };
    let length = state(vm, this)?.listeners.len();
    vm.work(length / 8)?;
    if is_abort {
        state(vm, this)?.listeners.retain(|other| *other != Listener::Callback(listener));
    }
    Ok(Value::UNDEFINED)
}

/// The arguments of the two: whether the type is `abort`, and the listener; `None` where that is none.
fn listener(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<(bool, Value)>> {
    state(vm, this)?;
    let [name, listener, ..] = *arguments else {
        return Err(coded(vm, "ERR_MISSING_ARGS", "The \"type\" and \"listener\" arguments must be specified"));
    };
    let name = vm.to_string(name)?;
    if listener.is_nullish() {
        return Ok(None);
    }
    if !listener.is_object() {
        let received = params::received(vm, listener)?;
        let message = brief!("The \"listener\" argument must be an instance of EventListener. Received {received}");
        return Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message));
    }
    Ok(Some((vm.heap.charged_bytes(name)? == b"abort", listener)))
}

fn event_type(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(vm.heap.string("abort"))
}

fn event_target(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    match vm.heap.slots(this) {
        Some(&AbortEvent(signal)) => Ok(signal),
        _ => Ok(Value::NULL),
    }
}

fn event_time(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let signal = event_target(vm, this, &[])?;
    Ok(Value::number(signal_state(vm, signal).map_or(0.0, |state| state.time)))
}

/// `$abort_target(controller)`: its signal.
fn target(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    controller_signal(vm, arg(arguments, 0), &[])
}

/// `$abort_reason(reason)`: the reason, or an `AbortError`.
fn default_reason(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    match arg(arguments, 0) {
        Value::UNDEFINED => Ok(dom_exception::new_exception(vm, "AbortError", "This operation was aborted")),
        reason => Ok(reason),
    }
}

/// `$begin_abort(signal, reason)`: marks a signal as aborted and cancels its calls. Gives the event for its listeners,
/// and the signals that are aborted with it; no event where it was aborted before.
fn begin_abort(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (signal, reason) = (arg(arguments, 0), arg(arguments, 1));
    let time = vm.schedule.script_time(&vm.heap.meter).as_secs_f64() * 1_000.0;
    let state = state(vm, signal)?;
    if std::mem::replace(&mut state.aborted, true) {
        let nothing = vm.heap.array_of(Buffer::new());
        return Ok(vm.heap.new_array(vec![Value::UNDEFINED, nothing]));
    }
    state.reason = reason;
    state.time = time;
    let dependents = std::mem::take(&mut state.dependents);
    let listeners = std::mem::take(&mut state.listeners);
    vm.work(dependents.len() + listeners.len())?;
    let mut rest = Buffer::new();
    for listener in listeners {
        match listener {
            Listener::Call(id) => cancel_call(vm, id, reason),
            Listener::Callback(_) | Listener::OnAbort => rest.push(vm, listener)?,
        }
    }
    // The first one is taken from the end.
    rest.reverse();
    let rest = rest.into_vec();
    if let Some(state) = signal_state_mut(vm, signal) {
        state.listeners = rest;
    }
    let dependents = vm.heap.new_array(dependents);
    let event = vm.heap.new_with_slots(AbortEvent(signal));
    Ok(vm.heap.new_array(vec![event, dependents]))
}

/// `$next_listener(signal)`: the next listener of a signal that was aborted.
fn next_listener(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let state = state(vm, arg(arguments, 0))?;
    Ok(match state.listeners.pop() {
        Some(Listener::Callback(listener)) => listener,
        Some(Listener::OnAbort) => state.on_abort,
        Some(Listener::Call(_)) | None => Value::UNDEFINED,
    })
}

/// `$uncaught(error)`: a listener has thrown it, which ends the run.
fn uncaught(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.queue(Job::Throw(arg(arguments, 0)));
    Ok(Value::UNDEFINED)
}

fn make(vm: &mut Vm, state: SignalState) -> Value {
    vm.heap.new_with_slots(state)
}

fn state(vm: &mut Vm, this: Value) -> Result<&mut SignalState> {
    if signal_state(vm, this).is_none() {
        let what = vm.describe(this);
        let message = brief!("Value of \"this\" must be of type AbortSignal: {what}");
        return Err(coded(vm, "ERR_INVALID_THIS", &message));
    }
    match vm.heap.slots_mut::<SignalState>(this) {
        Some(state) => Ok(state),
        _ => Err(Thrown::value(Value::UNDEFINED)),
    }
}

/// The state of a signal.
pub(super) fn signal_state(vm: &Vm, signal: Value) -> Option<&SignalState> {
    vm.heap.slots(signal)
}

fn signal_state_mut(vm: &mut Vm, signal: Value) -> Option<&mut SignalState> {
    vm.heap.slots_mut(signal)
}

/// Add a listener to a signal that is not aborted. Those of calls that have ended are forgotten before the list
/// grows.
pub(super) fn listen(vm: &mut Vm, signal: Value, listener: Listener) {
    let calls = &vm.host.calls;
    let Some(state) = vm.heap.slots_mut::<SignalState>(signal) else { return };
    if state.aborted {
        return;
    }
    let before = state.listeners.capacity();
    if state.listeners.len() == before {
        state.listeners.retain(|listener| !matches!(listener, Listener::Call(id) if !calls.is_open(*id)));
    }
    state.listeners.push(listener);
    let grown = (state.listeners.capacity() - before) * size_of::<Listener>();
    vm.heap.meter.add_bytes(grown);
}

/// Cancel a call that has no answer: its promise is rejected with the reason of the signal.
fn cancel_call(vm: &mut Vm, id: CallId, reason: Value) {
    let Some(call) = vm.host.calls.cancel(id) else { return };
    vm.heap.meter.release_bytes(call.cost());
    let Open { tool, promise, style, .. } = call;
    abort_call(vm, promise, style, tool, reason);
}

/// Settle the promise of a call that was cancelled, or that is not made because its signal is aborted.
pub(super) fn abort_call(vm: &mut Vm, promise: Value, style: Style, tool: Value, reason: Value) {
    if style != Style::Success {
        return vm.reject_promise(promise, reason);
    }
    let answer = settle::failed_answer(vm, &ToolError::new(ErrorCode::ExecutionAborted, "The call was aborted"), tool);
    vm.settle_promise(promise, State::Fulfilled, answer);
}

/// Abort a signal of `AbortSignal.timeout`.
pub(super) fn time_out_signal(vm: &mut Vm, signal: Value) -> Exit {
    let reason = dom_exception::new_exception(vm, "TimeoutError", "The operation was aborted due to timeout");
    match registry().intrinsic("$abort") {
        Some(abort) => job::call_back(vm, Value::handle(Kind::Native, abort), &[signal, reason]),
        None => Exit::Idle,
    }
}
