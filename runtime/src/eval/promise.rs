//! Promises and microtasks in the exact order of ECMAScript (27.2).

use crate::eval::native::ClosureFn;
use crate::eval::vm::Vm;
use crate::heap::Action;
use crate::heap::promise::Job;
use crate::heap::promise::Reaction;
use crate::heap::promise::Reactions;
use crate::heap::promise::State;
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

impl Vm {
    /// The promise that the frames on the stack wait for, while it is pending.
    pub(crate) fn blocked_on(&self) -> Option<Value> {
        self.stack.blocked_on.filter(|promise| self.heap.promises[promise.index()].state == State::Pending)
    }

    /// Queue a microtask.
    #[inline]
    pub(crate) fn queue(&mut self, job: Job) {
        if self.jobs.len() == self.jobs.capacity() {
            lengthen_queue(self);
        }
        self.jobs.push_back(job);
    }

    /// Settle a promise and queue its reactions (27.2.1.4, 27.2.1.7).
    pub fn settle_promise(&mut self, promise: Value, state: State, value: Value) {
        let data = &mut self.heap.promises[promise.index()];
        if (data.state, state) == (State::Pending, State::Fulfilled) {
            self.heap.unfulfilled -= 1;
        }
        data.state = state;
        data.value = value;
        if state == State::Rejected && !data.handled {
            self.heap.meter.add_bytes(size_of::<Value>());
            self.rejected.push(promise);
        }
        match std::mem::take(&mut self.heap.promises[promise.index()].reactions) {
            Reactions::None => {}
            Reactions::One(reaction) => self.queue(Job::React(reaction, state, value)),
            reactions @ Reactions::Many(_) => {
                let meter = &mut self.heap.meter;
                meter.bytes = meter.bytes.saturating_sub(reactions.cost());
                let Reactions::Many(all) = reactions else { return };
                all.into_iter().for_each(|reaction| self.queue(Job::React(reaction, state, value)));
            }
        }
    }

    /// Resolve a promise with a value that may be a promise or a thenable (27.2.1.3.2).
    pub fn resolve_promise(&mut self, promise: Value, value: Value) {
        if promise == value {
            let error = self.new_error(crate::heap::Class::TypeError, "Chaining cycle detected for promise #<Promise>");
            return self.settle_promise(promise, State::Rejected, error);
        }
        if !value.is_object() {
            return self.settle_promise(promise, State::Fulfilled, value);
        }
        match self.get(value, known::THEN) {
            Ok(then) if then.is_callable() => {
                self.queue(Job::Adopt { promise, thenable: value, then });
            }
            // Reading this property runs no function of the script and cannot throw.
            Ok(_) | Err(_) => self.settle_promise(promise, State::Fulfilled, value),
        }
    }

    /// Reject a promise.
    pub fn reject_promise(&mut self, promise: Value, reason: Value) {
        self.settle_promise(promise, State::Rejected, reason);
    }

    /// A promise of a value; the value itself where it is a promise (27.2.4.7.1).
    pub fn promise_of(&mut self, value: Value) -> Value {
        if value.is(Kind::Promise) {
            return value;
        }
        let promise = self.heap.new_promise();
        self.resolve_promise(promise, value);
        promise
    }

    /// Add a reaction to a promise, or queue it if the promise is settled (27.2.5.4.1).
    pub fn react(&mut self, promise: Value, reaction: Reaction) {
        let data = &mut self.heap.promises[promise.index()];
        data.handled = true;
        match data.state {
            State::Pending => {
                let before = data.reactions.cost();
                data.reactions.push(reaction);
                let grown = data.reactions.cost() - before;
                self.heap.meter.add_bytes(grown);
            }
            state => {
                let value = data.value;
                self.queue(Job::React(reaction, state, value));
            }
        }
    }

    /// The resolving functions of a promise (27.2.1.3): only the first use of either counts.
    pub fn resolving_functions(&mut self, promise: Value) -> (Value, Value) {
        let used = self.heap.new_cell(Value::FALSE);
        let data = [promise, used, Value::UNDEFINED];
        (
            self.heap.new_native_closure(Action::Native(&RESOLVE), data),
            self.heap.new_native_closure(Action::Native(&REJECT), data),
        )
    }
}

#[cold]
fn lengthen_queue(vm: &mut Vm) {
    let before = vm.jobs.capacity();
    vm.jobs.reserve(1);
    vm.heap.meter.add_bytes((vm.jobs.capacity() - before) * size_of::<Job>());
}

static RESOLVE: ClosureFn = ClosureFn { length: 1, call: resolve };

fn resolve(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    settle_native_closure(vm, this, State::Fulfilled, crate::eval::native::arg(arguments, 0));
    Ok(Value::UNDEFINED)
}

static REJECT: ClosureFn = ClosureFn { length: 1, call: reject };

fn reject(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    settle_native_closure(vm, this, State::Rejected, crate::eval::native::arg(arguments, 0));
    Ok(Value::UNDEFINED)
}

/// What a resolving function does.
pub fn settle_native_closure(vm: &mut Vm, function: Value, state: State, value: Value) {
    let [promise, used, _] = vm.heap.native_closures[function.index()].data;
    let used = &mut vm.heap.cells[used.index()];
    if std::mem::replace(used, Value::TRUE) == Value::TRUE {
        return;
    }
    if state == State::Rejected { vm.reject_promise(promise, value) } else { vm.resolve_promise(promise, value) }
}
