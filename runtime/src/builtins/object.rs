//! `Object` and the methods that every value has.
//!
//! There are no wrapper objects: `Object(1)` is 1. Functions that change property attributes other than freezing do
//! not exist.

use super::registry::registry;
use super::{Body, Global, Row, arg, function, iterating, native, prelude};
use crate::builtins::collections;
use crate::eval::callable;
use crate::eval::property::{self, refuse};
use crate::eval::property::{PropertyKey, counted_pairs};
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::object::{FROZEN, NON_EXTENSIBLE, NULL_PROTOTYPE, SEALED};
use crate::interface::error_code::ErrorCode;
use crate::meter::buffer::Buffer;
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::Refusal;
use agentscript_lang::refused::Refused;

/// `Object`
pub const GLOBALS: &[Global] = &[Global {
    name: "Object",
    length: 1,
    call: Body::Native(construct),
    construct: Some(Body::Native(construct)),
    functions: &[
        native("assign", 2, assign),
        native("create", 2, create),
        native("entries", 1, entries),
        native("freeze", 1, freeze),
        iterating("fromEntries", 1, from_entries, "Object_fromEntries"),
        native("getOwnPropertyNames", 1, get_own_property_names),
        native("getOwnPropertySymbols", 1, get_own_property_symbols),
        prelude("groupBy", 2, "Object_groupBy"),
        native("hasOwn", 2, has_own),
        native("is", 2, is),
        native("isExtensible", 1, is_extensible),
        native("isFrozen", 1, is_frozen),
        native("isSealed", 1, is_sealed),
        native("keys", 1, keys),
        native("preventExtensions", 1, prevent_extensions),
        native("seal", 1, seal),
        native("values", 1, values),
    ],
    numbers: &[],
}];

/// Methods of every value.
pub const METHODS: &[Row] = &[
    native("hasOwnProperty", 1, has_own_property),
    native("isPrototypeOf", 1, is_prototype_of),
    native("propertyIsEnumerable", 1, property_is_enumerable),
    native("toString", 0, to_string),
    native("valueOf", 0, value_of),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$arguments", 2, function::list_of_arguments),
    native("$bind", 2, function::bind_receiver),
    native("$callable", 1, function::callable),
    native("$defineEntry", 2, define_entry),
    native("$group", 3, group),
];

/// `Object(value)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 0);
    Ok(if value.is_nullish() { vm.heap.new_object() } else { value })
}

fn assign(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let target = object(vm, arg(arguments, 0))?;
    for &source in arguments.iter().skip(1).filter(|source| !source.is_nullish()) {
        for (key, value) in pairs(vm, source)? {
            vm.work(1)?;
            if !target.is_object() {
                return Err(onto_primitive(vm, target, key));
            }
            // Data may have the key `__proto__`: it is copied and changes no prototype.
            if key == PropertyKey::Name(known::PROTO)
                && target.is_object()
                && vm.heap.flags(target) & NON_EXTENSIBLE == 0
            {
                vm.define(target, key, value);
            } else {
                vm.set_key(target, key, value)?;
            }
        }
        for (symbol, value) in property::own_symbols(vm, source)? {
            vm.set_key(target, PropertyKey::Name(symbol), value)?;
        }
    }
    Ok(target)
}

/// The error of `Object.assign` that would set a property of a wrapper object.
#[cold]
fn onto_primitive(vm: &mut Vm, target: Value, key: PropertyKey) -> Thrown {
    if target.is_string() && vm.has_own(target, key) {
        let key = vm.key_text(key);
        return vm.type_error(&brief!("Cannot assign to read only property '{key}' of object '[object String]'"));
    }
    let what = vm.type_of(target);
    let message = brief!("Object.assign onto a {what} is not allowed in AgentScript: there are no wrapper objects");
    Thrown::illegal(ErrorCode::ValidationError, Refusal::IllegalBuiltinAccess, message)
}

/// `Object.create(null)`
fn create(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let prototype = arg(arguments, 0);
    if prototype != Value::NULL && !prototype.is_object() {
        let what = vm.describe(prototype);
        return Err(vm.type_error(&brief!("Object prototype may only be an Object or null: {what}")));
    }
    if prototype != Value::NULL || !arg(arguments, 1).is_undefined() {
        return Err(Thrown::illegal(
            ErrorCode::ValidationError,
            Refusal::IllegalBuiltinAccess,
            "Object.create is only allowed as Object.create(null) in AgentScript; copy with {...object} instead",
        ));
    }
    let object = vm.heap.new_object();
    vm.heap.add_flags(object, NULL_PROTOTYPE);
    Ok(object)
}

fn entries(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = object(vm, arg(arguments, 0))?;
    let pairs = pairs(vm, source)?;
    let mut entries = Buffer::with_capacity(vm, pairs.len())?;
    for (key, value) in pairs {
        vm.work(1)?;
        let key = vm.listed_key(key);
        let entry = vm.heap.new_array(vec![key, value]);
        entries.push(vm, entry)?;
    }
    Ok(vm.heap.array_of(entries))
}

fn freeze(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    if arg(arguments, 0).is(Kind::Uint8Array) && vm.heap.view_length(arg(arguments, 0)) > 0 {
        return Err(vm.type_error("Cannot freeze array buffer views with elements"));
    }
    restrict(vm, arg(arguments, 0), FROZEN | SEALED | NON_EXTENSIBLE)
}

fn from_entries(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = arg(arguments, 0);
    if source.is_nullish() {
        return Err(vm.type_error("undefined is not iterable"));
    }
    let result = vm.heap.new_object();
    for entry in vm.iterate_to_list(source)? {
        let (key, value) = collections::entry_of(vm, entry)?;
        let key = vm.to_property_key(key)?;
        vm.define(result, key, value);
        vm.work(1)?;
    }
    Ok(result)
}

/// `Object.getOwnPropertySymbols(object)`: an empty array. An object that has such a key ends the run, because symbols are
/// no values.
fn get_own_property_symbols(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let object = object(vm, arg(arguments, 0))?;
    if property::own_symbols(vm, object)?.next().is_none() {
        return Ok(vm.heap.array_of(Buffer::new()));
    }
    Err(refuse::refused(
        vm,
        &Refused {
            name: "Object.getOwnPropertySymbols",
            refusal: Refusal::DisallowedProperty,
            hint: "symbols are no values; ask for the key: `Symbol.iterator in object`",
        },
    ))
}

fn get_own_property_names(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = object(vm, arg(arguments, 0))?;
    list_of_keys(vm, source, true)
}

fn has_own(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = object(vm, arg(arguments, 0))?;
    let key = vm.to_property_key(arg(arguments, 1))?;
    Ok(Value::bool(vm.has_own(source, key)))
}

fn is(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.same_value(arg(arguments, 0), arg(arguments, 1)).map(Value::bool)
}

fn is_extensible(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 0);
    Ok(Value::bool(value.is_object() && vm.heap.flags(value) & NON_EXTENSIBLE == 0))
}

fn is_frozen(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    is_restricted(vm, arg(arguments, 0), FROZEN)
}

fn is_sealed(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    is_restricted(vm, arg(arguments, 0), SEALED)
}

fn keys(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = object(vm, arg(arguments, 0))?;
    list_of_keys(vm, source, false)
}

fn prevent_extensions(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    restrict(vm, arg(arguments, 0), NON_EXTENSIBLE)
}

fn seal(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    restrict(vm, arg(arguments, 0), SEALED | NON_EXTENSIBLE)
}

fn values(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = object(vm, arg(arguments, 0))?;
    let pairs = pairs(vm, source)?;
    let mut values = Buffer::with_capacity(vm, pairs.len())?;
    values.extend(vm, pairs.into_iter().map(|(_, value)| value))?;
    Ok(vm.heap.array_of(values))
}

fn has_own_property(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let key = vm.to_property_key(arg(arguments, 0))?;
    let this = object(vm, this)?;
    Ok(Value::bool(vm.has_own(this, key)))
}

/// No value that a script can get is a prototype.
fn is_prototype_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if this.is_nullish() && arg(arguments, 0).is_object() {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    Ok(Value::FALSE)
}

fn property_is_enumerable(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let key = vm.to_property_key(arg(arguments, 0))?;
    let this = object(vm, this)?;
    if !vm.has_own(this, key) {
        return Ok(Value::FALSE);
    }
    let keys = vm.charged_keys(this, false)?;
    Ok(Value::bool(keys.contains(&key)))
}

/// `Object.prototype.toString`
pub fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let tag = match this.kind() {
        Kind::Number => "Number",
        Kind::Undefined | Kind::Unread | Kind::Cell | Kind::Empty => "Undefined",
        Kind::Null => "Null",
        Kind::Boolean => "Boolean",
        Kind::String => "String",
        Kind::BigInt => "BigInt",
        Kind::Array => "Array",
        Kind::Object if vm.heap.class(this) == Class::DomException => "DOMException",
        Kind::Object if vm.heap.class(this).is_error() => "Error",
        Kind::Function => callable::class(vm, this),
        Kind::Native if !registry().natives[this.index()].is_function() => registry().natives[this.index()].tag(),
        Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => "Function",
        Kind::Map => "Map",
        Kind::Set => "Set",
        Kind::Promise => {
            unawaited::note_use(vm, this, PromiseUse::Text, None);
            "Promise"
        }
        Kind::InternalSlots => vm.heap.slots_tag(this),
        Kind::ArrayBuffer => "ArrayBuffer",
        Kind::Uint8Array => "Uint8Array",
        Kind::Iterator => super::iterator::tag(vm.family(this)),
        Kind::Object | Kind::App => "Object",
    };
    Ok(vm.heap.string(&brief!("[object {tag}]")))
}

fn value_of(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    object(vm, this)
}

/// `$defineEntry(object, entry)`
fn define_entry(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (key, value) = collections::entry_of(vm, arg(arguments, 1))?;
    let key = vm.to_property_key(key)?;
    vm.define(arg(arguments, 0), key, value);
    Ok(Value::UNDEFINED)
}

/// `$group(groups, key, item)`: put an item into its group.
fn group(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (groups, item) = (arg(arguments, 0), arg(arguments, 2));
    let key = vm.to_property_key(arg(arguments, 1))?;
    match vm.own_property(groups, key)? {
        Some(group) => vm.heap.push(group, item),
        None => {
            let group = vm.heap.new_array(vec![item]);
            vm.define(groups, key, group);
        }
    }
    Ok(Value::UNDEFINED)
}

/// An array of these.
fn list_of_keys(vm: &mut Vm, value: Value, all: bool) -> Result {
    let mut names = Buffer::new();
    vm.push_keys(value, all, &mut names)?;
    Ok(vm.heap.array_of(names))
}

/// A value that has properties.
fn object(vm: &mut Vm, value: Value) -> Result {
    if value.is_nullish() {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    Ok(value)
}

/// The enumerable own properties of a value, charged and counted.
pub fn pairs(vm: &mut Vm, value: Value) -> Result<Buffer<(PropertyKey, Value)>> {
    if value.is(Kind::Object) {
        vm.work(1 + vm.heap.own_len(value))?;
    } else if value.is(Kind::Promise) {
        unawaited::note_use(vm, value, PromiseUse::Properties, None);
    }
    counted_pairs(vm, value)
}

fn restrict(vm: &mut Vm, value: Value, flags: u8) -> Result {
    if value.is_object() {
        vm.heap.add_flags(value, flags);
    }
    Ok(value)
}

/// Whether a value is frozen or sealed; without properties that means not extensible.
fn is_restricted(vm: &mut Vm, value: Value, flag: u8) -> Result {
    if !value.is_object() {
        return Ok(Value::TRUE);
    }
    let flags = vm.heap.flags(value);
    if flags & flag != 0 || flags & NON_EXTENSIBLE == 0 {
        return Ok(Value::bool(flags & flag != 0));
    }
    if value.is(Kind::Uint8Array) && flag == SEALED {
        // No byte can be removed.
        let named = vm.heap.extras.get(&value).map_or(0, |&extra| vm.heap.own_len(Value::handle(Kind::Object, extra)));
        return Ok(Value::bool(named == 0));
    }
    let all = !value.is(Kind::Array);
    Ok(Value::bool(vm.charged_keys(value, all)?.is_empty()))
}
