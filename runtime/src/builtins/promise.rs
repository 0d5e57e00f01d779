//! `Promise`: constructor, combinators, and methods, with the microtasks of ECMAScript 27.2.
//!
//! The combinators list their argument in the prelude, because that may run iterators; the rest is
//! here. The state of a combinator is an array: its promise, the collected values, and the number of missing ones.

use super::registry::registry;
use super::{Body, Global, NativeFn, Row, arg, native, prelude};
use crate::atom::{Atom, known};
use crate::charge::Buffer;
use crate::heap::{Action, Class};
use crate::promise::Reaction;
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use std::borrow::Cow;

/// `Promise`
pub const GLOBALS: &[Global] = &[Global {
    name: "Promise",
    length: 1,
    call: Body::Native(call),
    construct: Some(Body::Prelude("Promise_new")),
    functions: &[
        prelude("all", 1, "Promise_all"),
        prelude("allSettled", 1, "Promise_allSettled"),
        prelude("any", 1, "Promise_any"),
        prelude("race", 1, "Promise_race"),
        native("reject", 1, reject),
        native("resolve", 1, resolve),
        native("withResolvers", 0, with_resolvers),
    ],
    numbers: &[],
}];

/// Methods of promises.
pub const METHODS: &[Row] =
    &[native("then", 2, then), native("catch", 1, catch), prelude("finally", 1, "Promise_finally")];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$executor", 1, executor),
    native("$combinable", 1, combinable),
    native("$promise_of", 1, promise_of),
    native("$then", 3, intrinsic_then),
    native("$finally_receiver", 1, finally_receiver),
    native("$promise_class", 2, class),
    native("$promise_reject", 1, rejected),
    native("$promise_all", 1, all),
    native("$promise_all_settled", 1, all_settled),
    native("$promise_any", 1, any),
    native("$promise_race", 1, race),
];

/// `Promise()` without `new`
fn call(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Promise constructor cannot be invoked without 'new'"))
}

/// A static function of `Promise` is called on `Promise`: there is no other class of promises.
fn check_constructor(vm: &mut Vm, this: Value, function: &str) -> Result<()> {
    if this.is(Kind::Native) && registry().natives[this.index()].name == "Promise" {
        return Ok(());
    }
    let message = match this.is_object() {
        true => format!("{} is not a constructor", vm.describe(this)), // bounded: what is shown is cut
        false => format!("{function} called on non-object"),           // bounded: a name
    };
    Err(vm.type_error(&message))
}

/// `$promise_class(receiver, name)`: throws unless the receiver is `Promise`.
fn class(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let function = vm.to_text_lossy(arg(arguments, 1));
    check_constructor(vm, arg(arguments, 0), &function)?;
    Ok(Value::UNDEFINED)
}

/// `Promise.reject(reason)`
fn reject(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_constructor(vm, this, "PromiseReject")?;
    rejected(vm, this, arguments)
}

/// `$promise_reject(reason)`
fn rejected(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let promise = vm.heap.new_promise();
    vm.reject_promise(promise, arg(arguments, 0));
    Ok(promise)
}

/// `Promise.resolve(value)`
fn resolve(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_constructor(vm, this, "PromiseResolve")?;
    Ok(vm.promise_of(arg(arguments, 0)))
}

/// `Promise.withResolvers()`
fn with_resolvers(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    let promise = vm.heap.new_promise();
    let (resolve, reject) = vm.resolving_functions(promise);
    let object = vm.heap.new_object();
    for (name, value) in [("promise", promise), ("resolve", resolve), ("reject", reject)] {
        let name = vm.intern_text(name);
        vm.heap.set_own(object, name, value);
    }
    Ok(object)
}

/// `promise.then(onFulfilled, onRejected)`
fn then(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !this.is(Kind::Promise) {
        let receiver = vm.receiver_text(this);
        return Err(vm.type_error(&format!("Method Promise.prototype.then called on incompatible receiver {receiver}")));
    }
    Ok(vm.then(this, arg(arguments, 0), arg(arguments, 1)))
}

/// `promise.catch(onRejected)`
fn catch(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    then(vm, this, &[Value::UNDEFINED, arg(arguments, 0)])
}

/// `$executor(executor)`: a new promise and its resolving functions; an error unless the executor is callable.
fn executor(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let executor = arg(arguments, 0);
    if crate::convert::type_of(executor) != "function" {
        let text = vm.receiver_text(executor);
        return Err(vm.type_error(&format!("Promise resolver {text} is not a function")));
    }
    let promise = vm.heap.new_promise();
    let (resolve, reject) = vm.resolving_functions(promise);
    Ok(vm.heap.new_array(vec![promise, resolve, reject])) // bounded: three
}

/// `$combinable(value)`: the value; an error unless it is iterable.
fn combinable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 0);
    if vm.is_script_iterable(value) || vm.is_iterable(value) {
        return Ok(value);
    }
    let what: Cow<'_, str> = match value.kind() {
        Kind::Undefined | Kind::Empty | Kind::Unread | Kind::Cell => "undefined".into(),
        Kind::Null => "object null".into(),
        Kind::Number | Kind::Boolean => {
            format!("{} {}", crate::convert::type_of(value), vm.to_text_lossy(value)).into() // bounded: a number
        }
        _ => crate::convert::type_of(value).into(),
    };
    Err(vm.type_error(&format!("{what} is not iterable (cannot read property Symbol(Symbol.iterator))")))
}

/// `$promise_of(value)`
fn promise_of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(vm.promise_of(arg(arguments, 0)))
}

/// `$then(promise, onFulfilled, onRejected)`
fn intrinsic_then(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(vm.then(arg(arguments, 0), arg(arguments, 1), arg(arguments, 2)))
}

/// `$finally_receiver(promise)`: throws unless it is one.
fn finally_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let this = arg(arguments, 0);
    if this.is(Kind::Promise) {
        return Ok(this);
    }
    if !this.is_object() {
        return Err(vm.type_error("Promise.prototype.finally called on non-object"));
    }
    let receiver = vm.receiver_text(this);
    Err(vm.type_error(&format!("Method Promise.prototype.finally called on incompatible receiver {receiver}")))
}

/// `$promise_all(items)` (27.2.4.1)
fn all(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Vm::resolve_once, |vm, part, (_, rejects)| (vm.part(resolve_element, part), rejects))
}

/// `$promise_all_settled(items)` (27.2.4.2)
fn all_settled(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Vm::resolve_once, |vm, part, _| {
        (vm.part(settle_fulfilled, part), vm.part(settle_rejected, part))
    })
}

/// `$promise_any(items)` (27.2.4.3)
fn any(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Vm::reject_with_all, |vm, part, (resolves, _)| {
        (resolves, vm.part(reject_element, part))
    })
}

/// `$promise_race(items)` (27.2.4.5)
fn race(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let result = vm.heap.new_promise();
    let items = vm.charged_items_copy(arg(arguments, 0))?;
    let (fulfilled, rejected) = vm.combinator_functions(result);
    for item in items {
        vm.work(1)?;
        let item = vm.promise_of(item);
        vm.then(item, fulfilled, rejected);
    }
    Ok(result)
}

/// The index of the number of missing values in the state of a combinator.
const MISSING: usize = 2;

/// Makes the reactions to an item, from the state, its index, and the promise of the combinator.
type Handlers = fn(&mut Vm, (Value, usize), (Value, Value)) -> (Value, Value);

/// Subscribe to all items with the reactions that `handlers` makes; `finish` is called where there are none.
fn combine(vm: &mut Vm, items: Value, finish: fn(&mut Vm, Value, Value), handlers: Handlers) -> Result {
    let items = vm.charged_items_copy(items)?;
    let result = vm.heap.new_promise();
    let mut collected = Buffer::with_capacity(vm, items.len())?;
    collected.extend(vm, items.iter().map(|_| Value::UNDEFINED))?;
    let collected = vm.array_of(collected);
    let state = vm.heap.new_array(vec![result, collected, Value::number(items.len() as f64)]); // bounded: three
    // The same for all items: only the first use counts.
    let resolving = vm.combinator_functions(result);
    for (index, &item) in items.iter().enumerate() {
        vm.work(1)?;
        let item = vm.promise_of(item);
        let (fulfilled, rejected) = handlers(vm, (state, index), resolving);
        vm.then(item, fulfilled, rejected);
    }
    if items.is_empty() {
        finish(vm, result, collected);
    }
    Ok(result)
}

impl Vm {
    /// `promise.then(fulfilled, rejected)` for a promise.
    fn then(&mut self, promise: Value, fulfilled: Value, rejected: Value) -> Value {
        let handler = |value: Value| if value.is_callable() { value } else { Value::UNDEFINED };
        let derived = self.heap.new_promise();
        let (fulfilled, rejected) = (handler(fulfilled), handler(rejected));
        self.react(promise, Reaction::Then { fulfilled, rejected, derived });
        derived
    }

    /// A reaction to one item of a combinator.
    fn part(&mut self, native: NativeFn, (state, index): (Value, usize)) -> Value {
        let result = self.heap.at(state, 0).unwrap_or(Value::UNDEFINED);
        self.heap.new_native_closure(Action::Native(native), [state, Value::number(index as f64), result])
    }

    /// The resolving functions of the promise of a combinator. As in all its reactions, their last value is that
    /// promise: once it is settled, what they react to has lost.
    fn combinator_functions(&mut self, result: Value) -> (Value, Value) {
        let (resolve, reject) = self.resolving_functions(result);
        for function in [resolve, reject] {
            self.heap.native_closures[function.index()].data[2] = result;
        }
        (resolve, reject)
    }

    /// Store the value of an item, the first time; gives the promise and values if it was the last one.
    fn collect_part(&mut self, function: Value, value: Value) -> Option<(Value, Value)> {
        let [state, index, _] = self.heap.native_closures[function.index()].data;
        if state.is_undefined() {
            return None;
        }
        self.heap.native_closures[function.index()].data[0] = Value::UNDEFINED;
        let [result, collected, missing] = self.heap.items(state) else { return None }; // bounded: three
        let (result, collected, missing) = (*result, *collected, missing.as_number() - 1.0);
        self.heap.with_items(collected, |items| items[index.as_number() as usize] = value);
        self.heap.with_items(state, |items| items[MISSING] = Value::number(missing));
        (missing == 0.0).then_some((result, collected))
    }

    /// How V8 names a receiver in messages.
    pub fn receiver_text(&mut self, value: Value) -> String {
        match value.kind() {
            Kind::Object
            | Kind::Array
            | Kind::Map
            | Kind::Set
            | Kind::Promise
            | Kind::InternalSlots
            | Kind::ArrayBuffer
            | Kind::Uint8Array => self.object_tag(value),
            Kind::App | Kind::Iterator => "#<Object>".into(),
            Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => {
                self.function_text(value).into()
            }
            _ => self.to_text_lossy(value),
        }
    }

    /// `{status, value}` or `{status, reason}`
    fn settlement(&mut self, status: &str, name: Atom, value: Value) -> Value {
        let status = self.intern_text(status);
        let status = self.atom_string(status);
        let object = self.heap.new_object();
        self.heap.set_own(object, known::STATUS, status);
        self.heap.set_own(object, name, value);
        object
    }
}

/// Takes the value of an item of `Promise.all`.
fn resolve_element(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if let Some((result, collected)) = vm.collect_part(this, arg(arguments, 0)) {
        vm.resolve_once(result, collected);
    }
    Ok(Value::UNDEFINED)
}

/// Takes the value of an item of `Promise.allSettled`.
fn settle_fulfilled(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let settled = vm.settlement("fulfilled", known::VALUE, arg(arguments, 0));
    resolve_element(vm, this, &[settled])
}

/// Takes the reason of an item of `Promise.allSettled`.
fn settle_rejected(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let settled = vm.settlement("rejected", known::REASON, arg(arguments, 0));
    resolve_element(vm, this, &[settled])
}

/// Takes the reason of an item of `Promise.any`.
fn reject_element(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if let Some((result, collected)) = vm.collect_part(this, arg(arguments, 0)) {
        vm.reject_with_all(result, collected);
    }
    Ok(Value::UNDEFINED)
}

impl Vm {
    fn resolve_once(&mut self, promise: Value, value: Value) {
        if self.heap.promises[promise.index()].state == crate::promise::State::Pending {
            self.resolve_promise(promise, value);
        }
    }

    fn reject_with_all(&mut self, promise: Value, errors: Value) {
        if self.heap.promises[promise.index()].state == crate::promise::State::Pending {
            let error = self.new_error(Class::AggregateError, "All promises were rejected");
            self.set_errors(error, errors);
            self.reject_promise(promise, error);
        }
    }
}
