//! `JSON`.

use super::{Body, Global, Row, arg, either, native};
use crate::eval::json::{self, Layout};
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::text::wtf8::to_utf16;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// `JSON`
pub const GLOBALS: &[Global] = &[Global {
    name: "JSON",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[
        either("parse", 2, parse_directly, "JSON_parse"),
        either("stringify", 3, stringify_directly, "JSON_stringify"),
    ],
    numbers: &[],
}];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$json_parse", 1, parse),
    native("$json_stringify", 3, stringify),
    native("$json_own", 2, own),
    native("$json_define", 3, define),
    native("$json_to", 2, to_json),
    native("$json_cycle", 4, cycle),
];

/// `JSON.parse(text)`
fn parse_directly(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<Value>> {
    if vm.type_of(arg(arguments, 1)) == "function" { Ok(None) } else { parse(vm, this, arguments).map(Some) }
}

/// `JSON.stringify(value, list, space)`
fn stringify_directly(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<Value>> {
    if vm.type_of(arg(arguments, 1)) == "function" { Ok(None) } else { stringify(vm, this, arguments).map(Some) }
}

/// `$json_parse(text)`
fn parse(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.to_string(arg(arguments, 0))?;
    vm.work(vm.heap.str(text).bytes as usize / 16)?;
    json::parse_string(vm, text, 0)
}

/// `$json_stringify(value, list, space)`
fn stringify(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let allow = match arg(arguments, 1) {
        list if list.is(Kind::Array) => Some(json::allowed_keys(vm, list)?),
        _ => None,
    };
    let indent = indent(vm, arg(arguments, 2))?;
    let text = json::stringify(vm, arg(arguments, 0), Layout { indent: indent.as_deref(), allow: allow.as_deref() })?;
    Ok(text.map_or(Value::UNDEFINED, |text| vm.heap.take_string(text)))
}

/// The indentation that the third argument of `JSON.stringify` asks for: at most ten characters. For V8 a number
/// between 0 and 1 asks for lines without indentation.
fn indent(vm: &mut Vm, space: Value) -> Result<Option<Vec<u8>>> {
    Ok(match space.kind() {
        Kind::Number if space.as_number() > 0.0 => Some(b" ".repeat(vm.to_integer(space)?.min(10.0) as usize)),
        Kind::String if vm.heap.str(space).units > 0 => {
            // Ten code units are in so many bytes, all of the last character included.
            let units = to_utf16(vm.heap.first_bytes::<40>(space));
            // V8 stops at a character 0.
            let end = units.iter().take(10).position(|&unit| unit == 0).unwrap_or(units.len().min(10));
            let mut indent = b"".into();
            crate::text::wtf8::push_utf16(&units[..end], &mut indent);
            Some(indent)
        }
        _ => None,
    })
}

/// `$json_own(object, key)`: an own property, `undefined` where there is none.
fn own(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let key = vm.to_property_key(arg(arguments, 1))?;
    Ok(vm.own_property(arg(arguments, 0), key)?.unwrap_or(Value::UNDEFINED))
}

/// `$json_define(object, key, value)`: make or change an own property, remove it for `undefined`;
/// no effect where the object cannot be changed.
fn define(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (object, value) = (arg(arguments, 0), arg(arguments, 2));
    let key = vm.to_property_key(arg(arguments, 1))?;
    if vm.heap.flags(object) & (crate::heap::object::FROZEN | crate::heap::object::NON_EXTENSIBLE) != 0 {
        return Ok(Value::UNDEFINED);
    }
    if value.is_undefined() {
        return vm.delete(object, key);
    }
    vm.work(1)?;
    vm.define(object, key, value);
    Ok(Value::UNDEFINED)
}

/// `$json_to(value, key)`: the result of the `toJSON` of a value.
fn to_json(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let key = vm.to_property_key(arg(arguments, 1))?;
    Ok(json::apply_to_json(vm, arg(arguments, 0), key)?.0)
}

/// `$json_cycle(path, keys, key, value)`: throws where `value` is on the path. `keys` are the keys that
/// led to each container of the path.
fn cycle(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 3);
    let path = vm.heap.charged_items_copy(arg(arguments, 0))?;
    let Some(start) = path.iter().position(|&container| container == value) else {
        return Ok(Value::UNDEFINED);
    };
    let mut keys = vm.heap.charged_items_copy(arg(arguments, 1))?;
    keys.push(vm, arg(arguments, 2))?;
    let mut edges = Buffer::new();
    for (&container, &key) in path[start..].iter().zip(&keys[start + 1..]) {
        let key = vm.to_property_key(key)?;
        edges.push(vm, (container, Some(key)))?;
    }
    let words = json::cycle_text(vm, &edges);
    Err(vm.type_error(&words))
}
