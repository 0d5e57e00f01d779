//! `Promise`: constructor, combinators, and methods, with the microtasks of ECMAScript 27.2.
//!
//! The combinators list their argument in the prelude, because that may run iterators; the rest is
//! here. The state of a combinator is an array: its promise, the collected values, the number of missing ones, and the
//! functions that settle the promise. Missing values are holes.

use super::registry::registry;
use super::{Body, Global, Row, arg, either, native, prelude};
use crate::builtins::ClosureFn;
use crate::builtins::error;
use crate::eval::property::PropertyKey;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::promise::Reaction;
use crate::heap::{Action, Class};
use crate::meter::buffer::Buffer;
use crate::value::atom::{Atom, known};
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
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
        prelude("try", 1, "Promise_try"),
        native("withResolvers", 0, with_resolvers),
    ],
    numbers: &[],
}];

/// Methods of promises.
pub const METHODS: &[Row] =
    &[native("then", 2, then), either("catch", 1, catch, "Promise_catch"), prelude("finally", 1, "Promise_finally")];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$executor", 1, executor),
    native("$resolvers", 0, resolvers),
    native("$called", 1, called),
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
    native("$own_then", 1, own_then),
    native("$method", 2, method),
    native("$combinator", 0, combinator),
    native("$combinator_part", 2, combinator_part),
    native("$combinator_end", 2, combinator_end),
    native("$combinator_failed", 2, combinator_failed),
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
        true => brief!("{} is not a constructor", vm.describe(this)),
        false => brief!("{function} called on non-object"),
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
        let name = vm.heap.intern_text(name);
        vm.heap.set_own(object, name, value);
    }
    Ok(object)
}

/// `promise.then(onFulfilled, onRejected)`
fn then(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !this.is(Kind::Promise) {
        let receiver = vm.receiver_text(this);
        return Err(vm.type_error(&brief!("Method Promise.prototype.then called on incompatible receiver {receiver}")));
    }
    Ok(perform_then(vm, this, arg(arguments, 0), arg(arguments, 1)))
}

/// `promise.catch(onRejected)` of a promise without a `then` of its own.
fn catch(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<Value>> {
    let is_plain = this.is(Kind::Promise) && !vm.has_own_method(this, known::THEN);
    if is_plain { then(vm, this, &[Value::UNDEFINED, arg(arguments, 0)]).map(Some) } else { Ok(None) }
}

/// `$executor(executor)`: a new promise and its resolving functions; an error unless the executor is callable.
fn executor(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let executor = arg(arguments, 0);
    if vm.type_of(executor) != "function" {
        let text = vm.receiver_text(executor);
        return Err(vm.type_error(&brief!("Promise resolver {text} is not a function")));
    }
    resolvers(vm, Value::UNDEFINED, &[])
}

/// `$called(value)`: the value; an error unless it is callable.
fn called(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let function = arg(arguments, 0);
    if vm.type_of(function) == "function" {
        return Ok(function);
    }
    let what = vm.describe_typed(function);
    Err(vm.type_error(&brief!("{what} is not a function")))
}

/// `$resolvers()`: a new promise and its resolving functions.
fn resolvers(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    let promise = vm.heap.new_promise();
    let (resolve, reject) = vm.resolving_functions(promise);
    Ok(vm.heap.new_array(vec![promise, resolve, reject]))
}

/// `$combinable(value)`: the value; an error unless it is iterable.
fn combinable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 0);
    if vm.is_script_iterable(value) || vm.is_iterable(value) {
        return Ok(value);
    }
    unawaited::note_use(vm, value, PromiseUse::Iterate, None);
    let what: Cow<'_, str> = match value.kind() {
        Kind::Undefined | Kind::Empty | Kind::Unread | Kind::Cell => "undefined".into(),
        Kind::Null => "object null".into(),
        Kind::Number | Kind::Boolean => brief!("{} {}", vm.type_of(value), vm.to_text_lossy(value)).into(),
        _ => vm.type_of(value).into(),
    };
    Err(vm.type_error(&brief!("{what} is not iterable (cannot read property Symbol(Symbol.iterator))")))
}

/// `$promise_of(value)`
fn promise_of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(vm.promise_of(arg(arguments, 0)))
}

/// `$then(promise, onFulfilled, onRejected)`
fn intrinsic_then(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(perform_then(vm, arg(arguments, 0), arg(arguments, 1), arg(arguments, 2)))
}

/// `$finally_receiver(value)`: throws unless it is an object.
fn finally_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let this = arg(arguments, 0);
    if !this.is_object() {
        return Err(vm.type_error("Promise.prototype.finally called on non-object"));
    }
    Ok(this)
}

/// `$promise_all(items)` (27.2.4.1)
fn all(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Combinator::All)
}

/// `$promise_all_settled(items)` (27.2.4.2)
fn all_settled(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Combinator::AllSettled)
}

/// `$promise_any(items)` (27.2.4.3)
fn any(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Combinator::Any)
}

/// `$promise_race(items)` (27.2.4.5)
fn race(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    combine(vm, arg(arguments, 0), Combinator::Race)
}

/// `$own_then(value)`: whether it is a promise with a `then` of its own, or an array with one.
fn own_then(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    if vm.heap.extras.is_empty() {
        return Ok(Value::FALSE);
    }
    let value = arg(arguments, 0);
    let has = |vm: &mut Vm, item: Value| item.is(Kind::Promise) && vm.has_own(item, PropertyKey::Name(known::THEN));
    if !value.is(Kind::Array) {
        return Ok(Value::bool(has(vm, value)));
    }
    let items = vm.heap.charged_items_copy(value)?;
    Ok(Value::bool(items.iter().any(|&item| has(vm, item))))
}

/// `$method(value, name)`: a method that is called next; an error unless it is callable.
fn method(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let name = vm.to_property_key(arg(arguments, 1))?;
    let method = vm.get_key(arg(arguments, 0), name)?;
    if method.is_callable() {
        return Ok(method);
    }
    let what = vm.describe_typed(method);
    Err(vm.type_error(&brief!("{what} is not a function")))
}

/// `$combinator()`: the state of a combinator that gets its items one by one. One value is missing until the end.
fn combinator(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    let result = vm.promise_of_call(false);
    let (resolves, rejects) = combinator_functions(vm, result);
    let collected = vm.heap.new_array(vec![]);
    Ok(vm.heap.new_array(vec![result, collected, Value::number(1.0), resolves, rejects]))
}

/// `$combinator_part(state, kind)`: the reactions to the next item.
fn combinator_part(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (state, kind) = (arg(arguments, 0), Combinator::numbered(arg(arguments, 1)));
    let collected = vm.heap.at(state, COLLECTED).unwrap_or(Value::UNDEFINED);
    let index = vm.heap.length(collected);
    vm.heap.push(collected, Value::HOLE);
    add_missing(vm, state, 1.0);
    let resolving = [RESOLVES, REJECTS].map(|part| vm.heap.at(state, part).unwrap_or(Value::UNDEFINED));
    let (fulfilled, rejected) = kind.handlers(vm, (state, index), resolving);
    Ok(vm.heap.new_array(vec![fulfilled, rejected]))
}

/// `$combinator_end(state, kind)`: there are no further items.
fn combinator_end(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (state, kind) = (arg(arguments, 0), Combinator::numbered(arg(arguments, 1)));
    if add_missing(vm, state, -1.0) == 0.0 {
        let [result, collected] = [RESULT, COLLECTED].map(|part| vm.heap.at(state, part).unwrap_or(Value::UNDEFINED));
        kind.finish(vm, result, collected);
    }
    Ok(Value::UNDEFINED)
}

/// `$combinator_failed(state, error)`: an item could not be taken.
fn combinator_failed(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let rejects = vm.heap.at(arg(arguments, 0), REJECTS).unwrap_or(Value::UNDEFINED);
    vm.call_nested(rejects, Value::UNDEFINED, &[arg(arguments, 1)])
}

/// The parts of the state of a combinator.
const RESULT: usize = 0;
const COLLECTED: usize = 1;
const MISSING: usize = 2;
const RESOLVES: usize = 3;
const REJECTS: usize = 4;

/// Which combinator it is; the prelude has the numbers.
#[derive(Clone, Copy)]
enum Combinator {
    All,
    AllSettled,
    Any,
    Race,
}

impl Combinator {
    fn numbered(number: Value) -> Self {
        match number.as_number() as u8 {
            0 => Self::All,
            1 => Self::AllSettled,
            2 => Self::Any,
            _ => Self::Race,
        }
    }

    /// The reactions to an item, from the state and its index, and the functions of the promise of the combinator.
    fn handlers(self, vm: &mut Vm, part: (Value, usize), [resolves, rejects]: [Value; 2]) -> (Value, Value) {
        match self {
            Self::All => (new_part(vm, &RESOLVE_ELEMENT, part), rejects),
            Self::AllSettled => (new_part(vm, &SETTLE_FULFILLED, part), new_part(vm, &SETTLE_REJECTED, part)),
            Self::Any => (resolves, new_part(vm, &REJECT_ELEMENT, part)),
            Self::Race => (resolves, rejects),
        }
    }

    /// Settle the promise: no value is missing.
    fn finish(self, vm: &mut Vm, result: Value, collected: Value) {
        match self {
            Self::All | Self::AllSettled => resolve_once(vm, result, collected),
            Self::Any => reject_with_all(vm, result, collected),
            Self::Race => {}
        }
    }
}

/// How many items are made between two charges.
const PIECE: usize = 1 << 12;

/// Subscribe to all items.
fn combine(vm: &mut Vm, items: Value, kind: Combinator) -> Result {
    let items = vm.heap.charged_items_copy(items)?;
    let result = vm.promise_of_call(false);
    let mut collected = Buffer::with_capacity(vm, items.len())?;
    for piece in items.chunks(PIECE) {
        vm.work(piece.len() / 8)?;
        collected.extend(vm, piece.iter().map(|_| Value::HOLE))?;
    }
    let collected = vm.heap.array_of(collected);
    // The same for all items: only the first use counts.
    let (resolves, rejects) = combinator_functions(vm, result);
    let missing = Value::number(items.len() as f64);
    let state = vm.heap.new_array(vec![result, collected, missing, resolves, rejects]);
    for (index, &item) in items.iter().enumerate() {
        vm.work(1)?;
        let item = vm.promise_of(item);
        let (fulfilled, rejected) = kind.handlers(vm, (state, index), [resolves, rejects]);
        perform_then(vm, item, fulfilled, rejected);
    }
    if items.is_empty() {
        kind.finish(vm, result, collected);
    }
    Ok(result)
}

/// `promise.then(fulfilled, rejected)` for a promise.
fn perform_then(vm: &mut Vm, promise: Value, fulfilled: Value, rejected: Value) -> Value {
    let handler = |value: Value| if value.is_callable() { value } else { Value::UNDEFINED };
    let derived = vm.heap.new_promise();
    let (fulfilled, rejected) = (handler(fulfilled), handler(rejected));
    vm.react(promise, Reaction::Then { fulfilled, rejected, derived });
    derived
}

/// A reaction to one item of a combinator.
fn new_part(vm: &mut Vm, native: &'static ClosureFn, (state, index): (Value, usize)) -> Value {
    let result = vm.heap.at(state, 0).unwrap_or(Value::UNDEFINED);
    vm.heap.new_native_closure(Action::Native(native), [state, Value::number(index as f64), result])
}

/// The resolving functions of the promise of a combinator. As in all its reactions, their last value is that
/// promise: once it is settled, what they react to has lost.
fn combinator_functions(vm: &mut Vm, result: Value) -> (Value, Value) {
    let (resolve, reject) = vm.resolving_functions(result);
    for function in [resolve, reject] {
        vm.heap.native_closures[function.index()].data[2] = result;
    }
    (resolve, reject)
}

/// Store the value of an item, the first time; gives the promise and values if it was the last one.
fn collect_part(vm: &mut Vm, function: Value, value: Value) -> Option<(Value, Value)> {
    let [state, index, _] = vm.heap.native_closures[function.index()].data;
    if state.is_undefined() {
        return None;
    }
    vm.heap.native_closures[function.index()].data[0] = Value::UNDEFINED;
    let [result, collected] = vm.heap.first_items(state)?;
    if vm.heap.at(collected, index.as_number() as usize) != Some(Value::HOLE) {
        // Both functions of an item of `allSettled` were called.
        return None;
    }
    vm.heap.with_items(collected, |items| items[index.as_number() as usize] = value);
    (add_missing(vm, state, -1.0) == 0.0).then_some((result, collected))
}

/// Change the number of missing values of a combinator; gives it.
fn add_missing(vm: &mut Vm, state: Value, change: f64) -> f64 {
    let missing = vm.heap.at(state, MISSING).map_or(0.0, Value::as_number) + change;
    vm.heap.with_items(state, |items| items[MISSING] = Value::number(missing));
    missing
}

/// `{status, value}` or `{status, reason}`
fn settlement(vm: &mut Vm, status: &str, name: Atom, value: Value) -> Value {
    let status = vm.heap.intern_text(status);
    let status = vm.heap.atom_string(status);
    let object = vm.heap.new_object();
    vm.heap.set_own(object, known::STATUS, status);
    vm.heap.set_own(object, name, value);
    object
}

static RESOLVE_ELEMENT: ClosureFn = ClosureFn { length: 1, call: resolve_element };

/// Takes the value of an item of `Promise.all`.
fn resolve_element(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if let Some((result, collected)) = collect_part(vm, this, arg(arguments, 0)) {
        resolve_once(vm, result, collected);
    }
    Ok(Value::UNDEFINED)
}

static SETTLE_FULFILLED: ClosureFn = ClosureFn { length: 1, call: settle_fulfilled };

/// Takes the value of an item of `Promise.allSettled`.
fn settle_fulfilled(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let settled = settlement(vm, "fulfilled", known::VALUE, arg(arguments, 0));
    resolve_element(vm, this, &[settled])
}

static SETTLE_REJECTED: ClosureFn = ClosureFn { length: 1, call: settle_rejected };

/// Takes the reason of an item of `Promise.allSettled`.
fn settle_rejected(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let settled = settlement(vm, "rejected", known::REASON, arg(arguments, 0));
    resolve_element(vm, this, &[settled])
}

static REJECT_ELEMENT: ClosureFn = ClosureFn { length: 1, call: reject_element };

/// Takes the reason of an item of `Promise.any`.
fn reject_element(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if let Some((result, collected)) = collect_part(vm, this, arg(arguments, 0)) {
        reject_with_all(vm, result, collected);
    }
    Ok(Value::UNDEFINED)
}

fn resolve_once(vm: &mut Vm, promise: Value, value: Value) {
    if vm.heap.promises[promise.index()].state == crate::heap::promise::State::Pending {
        vm.resolve_promise(promise, value);
    }
}

fn reject_with_all(vm: &mut Vm, promise: Value, errors: Value) {
    if vm.heap.promises[promise.index()].state == crate::heap::promise::State::Pending {
        let error = vm.new_error(Class::AggregateError, "All promises were rejected");
        error::set_errors(vm, error, errors);
        vm.reject_promise(promise, error);
    }
}
