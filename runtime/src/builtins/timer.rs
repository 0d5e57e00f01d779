//! Timers, `queueMicrotask` and `performance.now`, as Node has them; `sleep` is a function of the host.
//!
//! A timer is an event of the run: see [`Schedule`](crate::eval::schedule::Schedule).

use super::url::coded;
use super::{Body, Global, Row, arg, native, prelude};
use crate::builtins::abort;
use crate::builtins::tool::waiting;
use crate::builtins::url::params;
use crate::eval::error;
use crate::eval::execute::{Exit, stopped};
use crate::eval::job;
use crate::eval::schedule::{Action, MAX_TIMERS, Timer};
use crate::eval::vm::Vm;
use crate::heap::promise::{Job, State};
use crate::heap::{Class, InternalSlots};
use crate::interface::error_code::ErrorCode;
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::Refusal;

/// The functions, and the namespace `performance`.
pub const GLOBALS: &[Global] = &[
    Global::function(prelude("setTimeout", 5, "timer_setTimeout")),
    Global::function(prelude("setInterval", 5, "timer_setInterval")),
    Global::function(native("clearTimeout", 1, clear)),
    Global::function(native("clearInterval", 1, clear)),
    Global::function(native("queueMicrotask", 1, queue_microtask)),
    Global {
        name: "performance",
        length: 0,
        call: Body::Namespace,
        construct: None,
        functions: &[native("now", 0, performance_now)],
        numbers: &[],
    },
];

/// Globals that a policy without timers refuses.
pub const TIMERS: &[&str] = &["setTimeout", "setInterval", "clearTimeout", "clearInterval", "sleep"];

/// Methods of what `setTimeout` and `setInterval` return.
pub const METHODS: &[Row] = &[
    native("close", 0, close),
    native("hasRef", 0, has_ref),
    native("ref", 0, set_ref::<true>),
    native("refresh", 0, refresh),
    native("unref", 0, set_ref::<false>),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] =
    &[native("$set_timer", 4, set_timer), native("$sleep", 1, sleep), native("$sleep_now", 1, sleep_now)];

/// Work that a timer is, beside its callback.
const TIMER_WORK: usize = 16;
/// The longest delay; a longer one is as none.
const MAX_DELAY: f64 = 2_147_483_647.0;

/// The internal slots of what `setTimeout` and `setInterval` return: the number of the timer.
struct Timeout(u32);

impl InternalSlots for Timeout {
    fn family(&self) -> Family {
        Family::Timeout
    }

    fn tag(&self) -> &'static str {
        "Object"
    }

    fn primitive(&self) -> Option<Value> {
        Some(Value::number(f64::from(self.0)))
    }
}

/// `$set_timer(callback, delay, arguments, repeats)`
fn set_timer(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let callback = arg(arguments, 0);
    check_callback(vm, callback)?;
    let delay = delay(vm, arg(arguments, 1))?;
    let action = Action::Call(callback, arg(arguments, 2));
    let id = start(vm, delay, action, arg(arguments, 3) == Value::TRUE)?;
    Ok(vm.heap.new_with_slots(Timeout(id)))
}

/// `clearTimeout(timeout)`, `clearInterval(timeout)`: what is no timer is ignored.
fn clear(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.work(1)?;
    let id = match (arg(arguments, 0), vm.heap.slots(arg(arguments, 0))) {
        (_, Some(&Timeout(id))) => Some(id),
        (value, _) if value.is_number() || value.is_string() => Some(vm.to_number(value)? as u32),
        _ => None,
    };
    if let Some(id) = id {
        vm.schedule.clear_timer(&mut vm.heap.meter, id);
    }
    Ok(Value::UNDEFINED)
}

/// `queueMicrotask(callback)`
fn queue_microtask(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let callback = arg(arguments, 0);
    check_callback(vm, callback)?;
    vm.queue(Job::Call(callback));
    Ok(Value::UNDEFINED)
}

/// `performance.now()`: milliseconds since the run began.
fn performance_now(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.schedule.script_time(&vm.heap.meter).as_secs_f64() * 1_000.0))
}

/// `$sleep(ms)`: a promise that is fulfilled then.
fn sleep(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let delay = delay(vm, arg(arguments, 0))?;
    let promise = vm.heap.new_promise();
    start(vm, delay, Action::Resolve(promise), false)?;
    Ok(promise)
}

/// `$sleep_now(ms)`: the same for `sleep` of the synchronous dialect, which waits for it.
fn sleep_now(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    waiting::check_waiting(vm, "sleep")?;
    sleep(vm, this, arguments)
}

/// `timeout.close()`
fn close(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let id = receiver(vm, this, "close")?;
    vm.schedule.clear_timer(&mut vm.heap.meter, id);
    Ok(this)
}

/// `timeout.hasRef()`
fn has_ref(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let id = receiver(vm, this, "hasRef")?;
    Ok(Value::bool(vm.schedule.timer(id).is_none_or(|timer| timer.keeps)))
}

/// `timeout.ref()`, `timeout.unref()`: whether the run goes on for it.
fn set_ref<const KEEPS: bool>(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let id = receiver(vm, this, if KEEPS { "ref" } else { "unref" })?;
    if let Some(timer) = vm.schedule.timer_mut(id) {
        timer.keeps = KEEPS;
    }
    Ok(this)
}

/// `timeout.refresh()`
fn refresh(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let id = receiver(vm, this, "refresh")?;
    vm.work(1)?;
    vm.schedule.refresh_timer(&vm.heap.meter, id);
    Ok(this)
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<u32> {
    match vm.heap.slots::<Timeout>(this) {
        Some(&Timeout(id)) => Ok(id),
        _ => Err(vm.type_error(&brief!("Method Timeout.prototype.{method} called on incompatible receiver"))),
    }
}

fn check_callback(vm: &mut Vm, callback: Value) -> Result<()> {
    if vm.type_of(callback) == "function" {
        return Ok(());
    }
    let received = params::received(vm, callback)?;
    let message = brief!("The \"callback\" argument must be of type function. Received {received}");
    Err(coded(vm, "ERR_INVALID_ARG_TYPE", &message))
}

/// A delay in whole milliseconds, as Node takes it: at least 1, and 1 where it is no number or too long.
fn delay(vm: &mut Vm, value: Value) -> Result<u64> {
    let number = vm.to_numeric(value)?;
    if number.is(Kind::BigInt) {
        return Err(vm.type_error("Cannot mix BigInt and other types, use explicit conversions"));
    }
    let ms = number.as_number();
    Ok(if (1.0..=MAX_DELAY).contains(&ms) { ms as u64 } else { 1 })
}

/// Set a timer.
pub fn start(vm: &mut Vm, delay: u64, action: Action, repeats: bool) -> Result<u32> {
    vm.work(TIMER_WORK)?;
    let keeps = !matches!(action, Action::Abort(_));
    let place = error::calling_place(vm);
    match vm.schedule.set_timer(&mut vm.heap.meter, Timer { id: 0, delay, action, repeats, keeps, place }) {
        Some(id) => Ok(id),
        None => {
            let message = brief!("At most {MAX_TIMERS} timers can be pending");
            Err(vm.throw(Class::Error, &message))
        }
    }
}

/// An error where the policy allows no timers.
pub(super) fn check_timers(vm: &Vm) -> Result<()> {
    if vm.schedule.is_allowed() {
        return Ok(());
    }
    let message = "'AbortSignal.timeout' is not allowed in AgentScript here: the policy of this run has no timers";
    Err(Thrown::illegal(ErrorCode::ValidationError, Refusal::DisallowedGlobal, message))
}

/// Let a timer fire.
pub(crate) fn run_timer(vm: &mut Vm, timer: Timer) -> Exit {
    if let Err(thrown) = vm.work(TIMER_WORK) {
        return stopped(thrown);
    }
    match timer.action {
        Action::Call(callback, arguments) => {
            vm.schedule.begin_timer(timer);
            job::run_callback(vm, callback, arguments)
        }
        Action::Resolve(promise) => {
            vm.settle_promise(promise, State::Fulfilled, Value::UNDEFINED);
            Exit::Idle
        }
        Action::Abort(signal) => abort::time_out_signal(vm, signal),
    }
}
