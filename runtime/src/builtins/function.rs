//! Methods of functions, and how messages name a value.

use super::{Global, Row, arg, native, prelude};
use crate::eval::callable;
use crate::eval::vm::Vm;
use crate::heap::{Action, NativeClosure};
use crate::meter::buffer::Buffer;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// There is no constructor `Function`.
pub const GLOBALS: &[Global] = &[];

/// Methods of functions.
pub const METHODS: &[Row] = &[
    prelude("apply", 2, "Function_apply"),
    native("bind", 1, bind),
    prelude("call", 1, "Function_call"),
    native("toString", 0, to_string),
];

/// `function.bind(receiver, ...first)`
fn bind(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if vm.type_of(this) != "function" {
        return Err(vm.type_error("Bind must be called on a function"));
    }
    let name = callable::name_string(vm, this);
    let bound = vm.heap.string("bound ");
    let name = vm.concat(bound, name)?;
    let first = arguments.get(1..).unwrap_or(&[]);
    // Binding a bound function refers to its target, not to a chain.
    let (target, receiver, before) = match this.is(Kind::NativeClosure).then(|| vm.heap.native_closures[this.index()]) {
        Some(NativeClosure { action: Action::Apply, data: [target, receiver, own] }) => (target, receiver, Some(own)),
        _ => (this, arg(arguments, 0), None),
    };
    let count = before.map_or(1, |own| vm.heap.length(own)) + first.len();
    let charge = vm.work(count)?;
    let mut own = Buffer::with_capacity(vm, count)?;
    own.push(vm, name)?;
    if let Some(before) = before {
        own.extend_from_slice(vm, &vm.heap.read_items(before, charge)[1..])?;
    }
    own.extend_from_slice(vm, first)?;
    let own = vm.heap.array_of(own);
    Ok(vm.heap.new_native_closure(Action::Apply, [target, receiver, own]))
}

/// `$bind(function, receiver)`
pub fn bind_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    bind(vm, arg(arguments, 0), &[arg(arguments, 1)])
}

fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if vm.type_of(this) != "function" {
        return Err(vm.type_error("Function.prototype.toString requires that 'this' be a Function"));
    }
    if let Some(source) = vm.function_source(this) {
        let length = source.len();
        vm.work(length / 16)?;
        vm.reserve(length)?;
    }
    let text = String::from(vm.function_text(this));
    Ok(vm.heap.string(&text))
}

/// A `TypeError` unless the value can be called.
pub fn check_callable(vm: &mut Vm, value: Value) -> Result<()> {
    if vm.type_of(value) == "function" {
        return Ok(());
    }
    let what = vm.describe(value);
    Err(vm.type_error(&brief!("{what} is not a function")))
}

/// An error unless the argument can be called.
pub fn callable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    check_callable(vm, arg(arguments, 0))?;
    Ok(Value::UNDEFINED)
}

/// `$arguments(receiver, list)`: the arguments that `apply` passes on. With a list, V8 names a receiver that is no
/// function itself; without one, the call does.
pub fn list_of_arguments(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (receiver, list) = (arg(arguments, 0), arg(arguments, 1));
    if list.is_nullish() {
        return Ok(vm.heap.array_of(Buffer::new()));
    }
    let kind = match vm.type_of(receiver) {
        "function" => None,
        "object" if receiver.is_nullish() => Some("null".into()),
        "object" => Some("an object".into()),
        kind => Some(brief!("a {kind}")),
    };
    if let Some(kind) = kind {
        let receiver = vm.receiver_text(receiver);
        let problem = "Function.prototype.apply was called on";
        return Err(vm.type_error(&brief!("{problem} {receiver}, which is {kind} and not a function")));
    }
    if !list.is_object() {
        return Err(vm.type_error("CreateListFromArrayLike called on non-object"));
    }
    let items = super::array::array_like(vm, list)?;
    Ok(vm.heap.array_of(items))
}
