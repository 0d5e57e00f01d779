//! Microtasks: the jobs of settled promises (ECMAScript 27.2.2).

use crate::activation::Called;
use crate::code::After;
use crate::execute::{Exit, stopped};
use crate::promise::{Job, Reaction, State};
use crate::thrown::Cause;
use crate::value::{Kind, Value};
use crate::vm::Vm;

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
        }
    }

    /// Finish a call of a microtask: `derived` is the promise that it settles, or a function that takes the reason
    /// where the call throws.
    pub(crate) fn end_job(&mut self, derived: Value, result: Result<Value, Value>) {
        match (derived.kind(), result) {
            (Kind::Promise, Ok(value)) => self.resolve_promise(derived, value),
            (Kind::Promise, Err(reason)) => self.reject_promise(derived, reason),
            (Kind::NativeClosure, Err(reason)) => {
                crate::promise::settle_native_closure(self, derived, State::Rejected, reason)
            }
            _ => {}
        }
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
