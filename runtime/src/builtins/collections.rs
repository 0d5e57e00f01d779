//! `Map` and `Set`.

use super::{Body, Global, Row, arg, getter, native, prelude};
use crate::eval::vm::Vm;
use crate::heap::Yields;
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// `Map` and `Set`.
pub const GLOBALS: &[Global] = &[
    Global {
        name: "Map",
        length: 0,
        call: Body::Native(call_map),
        construct: Some(Body::Iterating(new_map, "Map_new")),
        functions: &[prelude("groupBy", 2, "Map_groupBy")],
        numbers: &[],
    },
    Global {
        name: "Set",
        length: 0,
        call: Body::Native(call_set),
        construct: Some(Body::Iterating(new_set, "Set_new")),
        functions: &[],
        numbers: &[],
    },
];

/// Methods of maps.
pub const MAP_METHODS: &[Row] = &[
    native("clear", 0, map_clear),
    native("delete", 1, map_delete),
    native("entries", 0, map_entries),
    prelude("forEach", 1, "Map_forEach"),
    native("get", 1, map_get),
    native("has", 1, map_has),
    native("keys", 0, map_keys),
    native("set", 2, map_set),
    getter("size", size),
    native("values", 0, map_values),
];

/// Methods of sets.
pub const SET_METHODS: &[Row] = &[
    native("add", 1, set_add),
    native("clear", 0, set_clear),
    native("delete", 1, set_delete),
    prelude("difference", 1, "Set_difference"),
    native("entries", 0, set_entries),
    prelude("forEach", 1, "Set_forEach"),
    native("has", 1, set_has),
    prelude("intersection", 1, "Set_intersection"),
    prelude("isDisjointFrom", 1, "Set_isDisjointFrom"),
    prelude("isSubsetOf", 1, "Set_isSubsetOf"),
    prelude("isSupersetOf", 1, "Set_isSupersetOf"),
    getter("size", size),
    prelude("symmetricDifference", 1, "Set_symmetricDifference"),
    prelude("union", 1, "Set_union"),
    native("values", 0, set_values),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$values", 3, values),
    native("$lastKey", 1, super::iterator::last_key),
    native("$isIterator", 1, is_iterator),
    native("$setLike", 3, set_like),
    native("$putEntry", 2, put_entry),
];

/// `map.size`, `set.size`
fn size(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.heap.maps[this.index()].len() as f64))
}

fn call_map(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Constructor Map requires 'new'"))
}

/// `new Map(entries)`
fn new_map(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = arg(arguments, 0);
    let map = vm.heap.new_map(Kind::Map);
    match source.kind() {
        Kind::Undefined | Kind::Null => {}
        Kind::Map if vm.is_iterable(source) => {
            for (key, value) in vm.heap.charged_entries(source)? {
                put(vm, map, key, value)?;
            }
        }
        _ => {
            let entries = vm.iterate_to_list(source)?;
            vm.heap.map_reserve(map, entries.len());
            for entry in entries {
                let (key, value) = entry_of(vm, entry)?;
                put(vm, map, key, value)?;
            }
        }
    }
    Ok(map)
}

fn call_set(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Err(vm.type_error("Constructor Set requires 'new'"))
}

/// `new Set(values)`
fn new_set(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let source = arg(arguments, 0);
    let set = vm.heap.new_map(Kind::Set);
    if !source.is_nullish() {
        let values = vm.iterate_to_list(source)?;
        vm.heap.map_reserve(set, values.len());
        for value in values {
            put(vm, set, value, Value::UNDEFINED)?;
        }
    }
    Ok(set)
}

fn map_clear(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.clear")?;
    clear(vm, this)
}

fn map_delete(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.delete")?;
    delete(vm, this, arg(arguments, 0))
}

fn map_entries(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.entries")?;
    Ok(vm.heap.new_iterator(this, Yields::Entries))
}

fn map_get(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.get")?;
    let key = arg(arguments, 0);
    charge_key(vm, key)?;
    let key = vm.heap.map_key(this, key);
    Ok(vm.heap.map_get(this, key).unwrap_or(Value::UNDEFINED))
}

fn map_has(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.has")?;
    has(vm, this, arg(arguments, 0))
}

fn map_keys(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.keys")?;
    Ok(vm.heap.new_iterator(this, Yields::Keys))
}

fn map_set(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.set")?;
    put(vm, this, arg(arguments, 0), arg(arguments, 1))?;
    Ok(this)
}

fn map_values(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Map, "Map.prototype.values")?;
    Ok(vm.heap.new_iterator(this, Yields::Values))
}

fn set_add(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Set, "Set.prototype.add")?;
    put(vm, this, arg(arguments, 0), Value::UNDEFINED)?;
    Ok(this)
}

fn set_clear(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Set, "Set.prototype.clear")?;
    clear(vm, this)
}

fn set_delete(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Set, "Set.prototype.delete")?;
    delete(vm, this, arg(arguments, 0))
}

fn set_entries(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Set, "Set.prototype.entries")?;
    Ok(vm.heap.new_iterator(this, Yields::Entries))
}

fn set_has(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check(vm, this, Kind::Set, "Set.prototype.has")?;
    has(vm, this, arg(arguments, 0))
}

fn set_values(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check(vm, this, Kind::Set, "Set.prototype.values")?;
    Ok(vm.heap.new_iterator(this, Yields::Values))
}

/// `$values(self, fn, name)`: an iterator over the values of a `Map` or `Set` for `forEach`.
fn values(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, function, name) = (arg(arguments, 0), arg(arguments, 1), arg(arguments, 2));
    let name = vm.to_text_lossy(name);
    check(vm, this, if name.starts_with("Map") { Kind::Map } else { Kind::Set }, &name)?;
    if vm.type_of(function) != "function" {
        let what = vm.describe_typed(function);
        return Err(vm.type_error(&brief!("{what} is not a function")));
    }
    Ok(vm.heap.new_iterator(this, Yields::Values))
}

/// `$isIterator(value)`
fn is_iterator(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(arg(arguments, 0).is(Kind::Iterator)))
}

/// `$putEntry(map, entry)`
fn put_entry(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (key, value) = entry_of(vm, arg(arguments, 1))?;
    put(vm, arg(arguments, 0), key, value)?;
    Ok(Value::UNDEFINED)
}

/// `$setLike(self, other, name)`: the size of something like a set (ECMAScript 24.2.1.2).
fn set_like(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, other) = (arg(arguments, 0), arg(arguments, 1));
    let name = vm.to_text_lossy(arg(arguments, 2));
    check(vm, this, Kind::Set, &name)?;
    if !other.is_object() {
        let what = vm.describe(other);
        return Err(vm.type_error(&brief!("{what} is not an object")));
    }
    let size = vm.get(other, known::SIZE)?;
    let size = vm.to_number(size)?;
    if size.is_nan() {
        return Err(vm.type_error("The 'size' property must be a number"));
    }
    if size < 0.0 {
        return Err(vm.range_error(&brief!("'{}' is an invalid size", size.trunc())));
    }
    for method in ["has", "keys"] {
        let name = vm.heap.intern_text(method);
        let function = vm.get(other, name)?;
        if vm.type_of(function) != "function" {
            return Err(vm.type_error(&brief!("The '{method}' property must be a function")));
        }
    }
    Ok(Value::number(size.trunc()))
}

/// The error for a receiver of another type.
fn check(vm: &mut Vm, this: Value, kind: Kind, method: &str) -> Result<()> {
    if this.kind() == kind { Ok(()) } else { Err(incompatible(vm, this, method)) }
}

#[cold]
fn incompatible(vm: &mut Vm, this: Value, method: &str) -> Thrown {
    let what = vm.describe(this);
    vm.type_error(&brief!("Method {method} called on incompatible receiver {what}"))
}

fn has(vm: &mut Vm, map: Value, key: Value) -> Result {
    charge_key(vm, key)?;
    let key = vm.heap.map_key(map, key);
    Ok(Value::bool(vm.heap.map_get(map, key).is_some()))
}

fn put(vm: &mut Vm, map: Value, key: Value, value: Value) -> Result<()> {
    charge_key(vm, key)?;
    let key = vm.heap.map_key(map, key);
    vm.heap.map_set(map, key, value);
    Ok(())
}

fn delete(vm: &mut Vm, map: Value, key: Value) -> Result {
    charge_key(vm, key)?;
    let key = vm.heap.map_key(map, key);
    Ok(Value::bool(vm.heap.map_remove(map, key)))
}

fn clear(vm: &mut Vm, map: Value) -> Result {
    vm.heap.map_clear(map);
    Ok(Value::UNDEFINED)
}

/// Charge for hashing and comparing a key.
pub fn charge_key(vm: &mut Vm, key: Value) -> Result<()> {
    match key.kind() {
        Kind::String => vm.heap.charge_string(key).map(drop),
        Kind::BigInt => vm.heap.charged_bigint(key).map(drop),
        _ => vm.work(1).map(drop),
    }
}

/// Key and value of an entry of an iterable, for `new Map` and `Object.fromEntries`.
pub fn entry_of(vm: &mut Vm, entry: Value) -> Result<(Value, Value)> {
    if !entry.is_object() {
        let what = vm.describe(entry);
        return Err(vm.type_error(&brief!("Iterator value {what} is not an entry object")));
    }
    let key = vm.get_index(entry, Value::ZERO)?;
    Ok((key, vm.get_index(entry, Value::number(1.0))?))
}
