//! Microtasks: the jobs of settled promises (ECMAScript 27.2.2).

use crate::eval::activation::Called;
use crate::eval::execute::{Exit, stopped};
use crate::eval::vm::Vm;
use crate::heap::frame::After;
use crate::heap::promise::{Job, Reaction, State};
use crate::value::thrown::Cause;
use crate::value::{Kind, Value};

/// What [`Vm::end_job`] takes for a callback whose exception ends the run, as nothing can catch it: of a timer, say.
const UNCAUGHT: Value = Value::NULL;

impl Vm {
    /// Run a microtask.
    pub(crate) fn run_job(&mut self, job: Job) -> Exit {
        if let Err(thrown) = self.tick() {
            return stopped(thrown);
        }
        match job {
            Job::React(Reaction::Await(number), state, value) => {
                let Some(frame) = self.stack.suspended[number as usize].take() else { return Exit::Idle };
                self.stack.suspended.release(number);
                self.stack.current = frame.code;
                match state {
                    State::Fulfilled | State::Pending => {
                        frame.slots[frame.dst.0 as usize].set(value);
                        self.execute(frame)
                    }
                    State::Rejected => self.execute_throw(frame, value),
                }
            }
            Job::React(Reaction::Then { fulfilled, rejected, derived }, state, value) => {
                let handler = if state == State::Fulfilled { fulfilled } else { rejected };
                if handler.is_callable() {
                    return self.call_job(handler, Value::UNDEFINED, &[value], derived);
                }
                self.end_job(derived, if state == State::Rejected { Err(value) } else { Ok(value) });
                Exit::Idle
            }
            Job::Adopt { promise, thenable, then } => {
                let (resolve, reject) = self.resolving_functions(promise);
                if thenable.is(Kind::Promise) && then.is(Kind::Native) {
                    let derived = Value::UNDEFINED;
                    self.react(thenable, Reaction::Then { fulfilled: resolve, rejected: reject, derived });
                    return Exit::Idle;
                }
                self.call_job(then, thenable, &[resolve, reject], reject)
            }
            Job::Call(callback) => self.call_job(callback, Value::UNDEFINED, &[], UNCAUGHT),
            Job::Throw(error) => {
                self.uncaught = Some(error);
                Exit::Idle
            }
        }
    }

    /// Finish a call of a microtask: `derived` is the promise that it settles, or a function that takes the reason
    /// where the call throws.
    pub(crate) fn end_job(&mut self, derived: Value, result: Result<Value, Value>) {
        match (derived.kind(), result) {
            (Kind::Promise, Ok(value)) => self.resolve_promise(derived, value),
            (Kind::Promise, Err(reason)) => self.reject_promise(derived, reason),
            (Kind::NativeClosure, Err(reason)) => {
                crate::eval::promise::settle_native_closure(self, derived, State::Rejected, reason)
            }
            (Kind::Null, result) => {
                // The next turn of an interval begins when its callback has returned.
                self.end_timer();
                self.uncaught = result.err();
            }
            _ => {}
        }
    }

    /// Run the callback of a timer.
    pub(crate) fn run_callback(&mut self, callback: Value, arguments: Value) -> Exit {
        let arguments = match self.heap.charged_items_copy(arguments) {
            Ok(arguments) => arguments,
            Err(thrown) => return stopped(thrown),
        };
        self.call_back(callback, &arguments)
    }

    /// Call a function for the host. What it throws ends the run.
    pub(crate) fn call_back(&mut self, callback: Value, arguments: &[Value]) -> Exit {
        self.call_job(callback, Value::UNDEFINED, arguments, UNCAUGHT)
    }

    /// Call a function from a microtask; its result resolves `derived`.
    fn call_job(&mut self, function: Value, this: Value, arguments: &[Value], derived: Value) -> Exit {
        match self.call(function, this, arguments, After::Job(derived)) {
            Ok(Called::Value(value)) => {
                self.end_job(derived, Ok(value));
                Exit::Idle
            }
            Ok(Called::Frame(frame)) => self.execute(frame),
            Err(thrown) => match *thrown.0 {
                Cause::Value(reason) => {
                    self.end_job(derived, Err(reason));
                    Exit::Idle
                }
                Cause::Stop(failure) => Exit::Stopped(failure),
            },
        }
    }
}
