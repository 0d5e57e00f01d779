//! Microtasks: the jobs of settled promises (ECMAScript 27.2.2).

use crate::eval::activation::Called;
use crate::eval::execute::{self, Exit, stopped};
use crate::eval::vm::Vm;
use crate::heap::frame::After;
use crate::heap::promise::{Job, Reaction, State};
use crate::value::thrown::Cause;
use crate::value::{Kind, Value};

/// What [`job::end_job`] takes for a callback whose exception ends the run, as nothing can catch it: of a timer, say.
const UNCAUGHT: Value = Value::NULL;

/// Run a microtask.
pub(crate) fn run_job(vm: &mut Vm, job: Job) -> Exit {
    if let Err(thrown) = vm.tick() {
        return stopped(thrown);
    }
    match job {
        Job::React(Reaction::Await(number), state, value) => {
            let Some(frame) = vm.stack.suspended[number as usize].take() else { return Exit::Idle };
            vm.stack.suspended.release(number);
            vm.stack.current = frame.code;
            match state {
                State::Fulfilled | State::Pending => {
                    frame.slots[frame.dst.0 as usize].set(value);
                    execute::execute(vm, frame)
                }
                State::Rejected => execute::execute_throw(vm, frame, value),
            }
        }
        Job::React(Reaction::Then { fulfilled, rejected, derived }, state, value) => {
            let handler = if state == State::Fulfilled { fulfilled } else { rejected };
            if handler.is_callable() {
                return call_job(vm, handler, Value::UNDEFINED, &[value], derived);
            }
            end_job(vm, derived, if state == State::Rejected { Err(value) } else { Ok(value) });
            Exit::Idle
        }
        Job::Adopt { promise, thenable, then } => {
            let (resolve, reject) = vm.resolving_functions(promise);
            if thenable.is(Kind::Promise) && then.is(Kind::Native) {
                let derived = Value::UNDEFINED;
                vm.react(thenable, Reaction::Then { fulfilled: resolve, rejected: reject, derived });
                return Exit::Idle;
            }
            call_job(vm, then, thenable, &[resolve, reject], reject)
        }
        Job::Call(callback) => call_job(vm, callback, Value::UNDEFINED, &[], UNCAUGHT),
        Job::Throw(error) => {
            vm.uncaught = Some(error);
            Exit::Idle
        }
    }
}

/// Finish a call of a microtask: `derived` is the promise that it settles, or a function that takes the reason
/// where the call throws.
pub(crate) fn end_job(vm: &mut Vm, derived: Value, result: Result<Value, Value>) {
    match (derived.kind(), result) {
        (Kind::Promise, Ok(value)) => vm.resolve_promise(derived, value),
        (Kind::Promise, Err(reason)) => vm.reject_promise(derived, reason),
        (Kind::NativeClosure, Err(reason)) => {
            crate::eval::promise::settle_native_closure(vm, derived, State::Rejected, reason)
        }
        (Kind::Null, result) => {
            // The next turn of an interval begins when its callback has returned.
            vm.schedule.end_timer(&mut vm.heap.meter);
            vm.uncaught = result.err();
        }
        _ => {}
    }
}

/// Run the callback of a timer.
pub(crate) fn run_callback(vm: &mut Vm, callback: Value, arguments: Value) -> Exit {
    let arguments = match vm.heap.charged_items_copy(arguments) {
        Ok(arguments) => arguments,
        Err(thrown) => return stopped(thrown),
    };
    call_back(vm, callback, &arguments)
}

/// Call a function for the host. What it throws ends the run.
pub(crate) fn call_back(vm: &mut Vm, callback: Value, arguments: &[Value]) -> Exit {
    call_job(vm, callback, Value::UNDEFINED, arguments, UNCAUGHT)
}

/// Call a function from a microtask; its result resolves `derived`.
fn call_job(vm: &mut Vm, function: Value, this: Value, arguments: &[Value], derived: Value) -> Exit {
    match vm.call(function, this, arguments, After::Job(derived)) {
        Ok(Called::Value(value)) => {
            end_job(vm, derived, Ok(value));
            Exit::Idle
        }
        Ok(Called::Frame(frame)) => execute::execute(vm, frame),
        Err(thrown) => match *thrown.0 {
            Cause::Value(reason) => {
                end_job(vm, derived, Err(reason));
                Exit::Idle
            }
            Cause::Stop(failure) => Exit::Stopped(failure),
        },
    }
}
