//! `Boolean`.

use super::{Body, Global, Row, arg, native};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::atom::known;
use crate::value::thrown::Result;

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "Boolean",
    length: 1,
    call: Body::Native(boolean),
    construct: None,
    functions: &[],
    numbers: &[],
}];

/// Methods of booleans.
pub const METHODS: &[Row] = &[native("toString", 0, to_string), native("valueOf", 0, value_of)];

/// `Boolean(value)`
fn boolean(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(vm.truthy(arg(arguments, 0))))
}

/// `boolean.toString()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let this = receiver(vm, this, "toString")?;
    Ok(vm.heap.atom_string(if this == Value::TRUE { known::TRUE } else { known::FALSE }))
}

/// `boolean.valueOf()`
fn value_of(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this, "valueOf")
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result {
    if this.is_bool() {
        return Ok(this);
    }
    Err(vm.type_error(&brief!("Boolean.prototype.{method} requires that 'this' be a Boolean")))
}
