//! Methods that change an array, as the specification has them: for frozen, sealed or not extensible arrays, and for
//! receivers that are no arrays.

use crate::builtins::arg;
use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::sparse::SPARSE;
use crate::meter::buffer::Buffer;
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// The largest length: 2⁵³ − 1.
pub const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

pub fn copy_within(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)?;
    let to = position(vm, arg(arguments, 0), length, 0.0)?;
    let from = position(vm, arg(arguments, 1), length, 0.0)?;
    let end = position(vm, arg(arguments, 2), length, length)?;
    move_items(vm, this, [from, to, (end - from).min(length - to)])
}

/// Copy so many items and holes from an index to another one.
pub fn move_items(vm: &mut Vm, this: Value, [from, to, count]: [f64; 3]) -> Result {
    let backwards = from < to && to < from + count;
    let mut done = 0.0;
    while done < count {
        let offset = if backwards { count - 1.0 - done } else { done };
        shift_item(vm, this, from + offset, to + offset)?;
        done += 1.0;
    }
    Ok(this)
}

pub fn fill(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)?;
    let from = position(vm, arg(arguments, 1), length, 0.0)?;
    let to = position(vm, arg(arguments, 2), length, length)?;
    fill_range(vm, this, arg(arguments, 0), [length, from, to])
}

/// Set the items between two indices; the length is the one before they were converted.
pub fn fill_range(vm: &mut Vm, this: Value, item: Value, [length, from, end]: [f64; 3]) -> Result {
    let mut index = from;
    if this.is(Kind::Array) && vm.heap.flags(this) == SPARSE && (end - index) * 4.0 > length {
        // It becomes dense sooner or later.
        vm.heap.densify(this)?;
    }
    while index < end {
        put(vm, this, index, item)?;
        index += 1.0;
    }
    Ok(this)
}

pub fn pop(vm: &mut Vm, this: Value) -> Result {
    let length = vm.length_of(this)?;
    if length == 0.0 {
        set_length(vm, this, 0.0)?;
        return Ok(Value::UNDEFINED);
    }
    let item = vm.get_index(this, Value::number(length - 1.0))?;
    remove(vm, this, length - 1.0)?;
    set_length(vm, this, length - 1.0)?;
    Ok(item)
}

pub fn push(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let mut length = vm.length_of(this)?;
    if length + arguments.len() as f64 > MAX_SAFE {
        let count = arguments.len();
        let message = brief!(
            "Pushing {count} elements on an array-like of length {length} is disallowed, as the total surpasses 2**53-1"
        );
        return Err(vm.type_error(&message));
    }
    for &item in arguments {
        put(vm, this, length, item)?;
        length += 1.0;
    }
    set_length(vm, this, length)?;
    Ok(Value::number(length))
}

pub fn reverse(vm: &mut Vm, this: Value) -> Result {
    let length = vm.length_of(this)?;
    let middle = (length / 2.0).floor();
    let mut lower = 0.0;
    while lower < middle {
        let upper = length - 1.0 - lower;
        let (low, high) = (item(vm, this, lower)?, item(vm, this, upper)?);
        match high {
            Some(high) => put(vm, this, lower, high)?,
            None if low.is_some() => remove(vm, this, lower)?,
            None => drop(vm.work(1)?),
        }
        match low {
            Some(low) => put(vm, this, upper, low)?,
            None if high.is_some() => remove(vm, this, upper)?,
            None => {}
        }
        lower += 1.0;
    }
    Ok(this)
}

pub fn shift(vm: &mut Vm, this: Value) -> Result {
    let length = vm.length_of(this)?;
    if length == 0.0 {
        set_length(vm, this, 0.0)?;
        return Ok(Value::UNDEFINED);
    }
    let first = vm.get_index(this, Value::ZERO)?;
    let mut from = 1.0;
    while from < length {
        shift_item(vm, this, from, from - 1.0)?;
        from += 1.0;
    }
    remove(vm, this, length - 1.0)?;
    set_length(vm, this, length - 1.0)?;
    Ok(first)
}

pub fn splice(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)?;
    let start = position(vm, arg(arguments, 0), length, 0.0)?;
    let added = arguments.get(2..).unwrap_or_default();
    let count = match arguments {
        [] => 0.0,
        [_] => length - start,
        [_, count, ..] => vm.to_integer(*count)?.clamp(0.0, length - start),
    };
    splice_range(vm, this, added, [length, start, count])
}

/// Replace so many items from an index on; the length is the one before they were converted.
pub fn splice_range(vm: &mut Vm, this: Value, added: &[Value], [length, start, count]: [f64; 3]) -> Result {
    let growth = added.len() as f64 - count;
    if length + growth > MAX_SAFE {
        return Err(vm.type_error("Invalid array length"));
    }
    let mut removed = Buffer::new();
    let mut index = start;
    while index < start + count {
        let item = item(vm, this, index)?.unwrap_or(Value::HOLE);
        removed.push(vm, item)?;
        vm.work(1)?;
        index += 1.0;
    }
    move_tail(vm, this, start + count, length, growth)?;
    for (offset, &item) in added.iter().enumerate() {
        put(vm, this, start + offset as f64, item)?;
    }
    set_length(vm, this, length + growth)?;
    Ok(vm.heap.array_of(removed))
}

pub fn unshift(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)?;
    let growth = arguments.len() as f64;
    if length + growth > MAX_SAFE {
        return Err(vm.type_error("Invalid array length"));
    }
    if growth > 0.0 {
        move_tail(vm, this, 0.0, length, growth)?;
        for (index, &item) in arguments.iter().enumerate() {
            put(vm, this, index as f64, item)?;
        }
    }
    set_length(vm, this, length + growth)?;
    Ok(Value::number(length + growth))
}

/// A copy of an array with another length: cut, or with holes at the end.
#[cold]
pub fn copy_of_length(vm: &mut Vm, array: Value, length: usize) -> Result {
    // An array has at most so many items.
    let copy = vm.new_holes(u32::try_from(length).unwrap_or(u32::MAX))?;
    let end = vm.heap.length(array).min(length);
    if vm.heap.is_sparse(array) {
        for (index, item) in vm.heap.charged_sparse_items(array, 0..end)? {
            put(vm, copy, f64::from(index), item)?;
        }
        return Ok(copy);
    }
    vm.work(end)?;
    for index in 0..end {
        if let Some(item) = vm.heap.at(array, index).filter(|&item| item != Value::HOLE) {
            vm.set_key(copy, PropertyKey::Index(index as u32), item)?;
        }
    }
    Ok(copy)
}

/// Move the items from `from` on by `growth`, and delete the vacated ones.
fn move_tail(vm: &mut Vm, this: Value, from: f64, length: f64, growth: f64) -> Result<()> {
    if growth > 0.0 {
        let mut index = length;
        while index > from {
            index -= 1.0;
            shift_item(vm, this, index, index + growth)?;
        }
    } else if growth < 0.0 {
        let mut index = from;
        while index < length {
            shift_item(vm, this, index, index + growth)?;
            index += 1.0;
        }
        while index > length + growth {
            index -= 1.0;
            remove(vm, this, index)?;
        }
    }
    Ok(())
}

fn key(vm: &mut Vm, index: f64) -> Result<PropertyKey> {
    vm.to_property_key(Value::number(index))
}

fn item(vm: &mut Vm, this: Value, index: f64) -> Result<Option<Value>> {
    let key = key(vm, index)?;
    vm.own_property(this, key)
}

/// Set an item; charged.
pub fn put(vm: &mut Vm, this: Value, index: f64, item: Value) -> Result<()> {
    vm.work(1)?;
    let key = key(vm, index)?;
    if !this.is_object() {
        return write_to_wrapper(vm, this, key);
    }
    vm.set_key(this, key, item)
}

/// A write to the object that a primitive value is in, which nothing else sees: only its own properties are fixed.
#[cold]
fn write_to_wrapper(vm: &mut Vm, this: Value, key: PropertyKey) -> Result<()> {
    if !vm.has_own(this, key) {
        return Ok(());
    }
    let key = vm.key_text(key);
    Err(vm.type_error(&brief!("Cannot assign to read only property '{key}' of object '[object String]'")))
}

/// Remove an item, if it is there; charged.
pub fn remove(vm: &mut Vm, this: Value, index: f64) -> Result<()> {
    vm.work(1)?;
    let key = key(vm, index)?;
    // Deleting interns the index as a name, so missing ones are skipped.
    if !vm.has_own(this, key) {
        return Ok(());
    }
    if this.is_string() {
        let key = vm.key_text(key);
        return Err(vm.type_error(&brief!("Cannot delete property '{key}' of [object String]")));
    }
    vm.delete(this, key).map(drop)
}

/// Copy an item or hole to another index.
fn shift_item(vm: &mut Vm, this: Value, from: f64, to: f64) -> Result<()> {
    match item(vm, this, from)? {
        Some(item) => put(vm, this, to, item),
        None => remove(vm, this, to),
    }
}

fn set_length(vm: &mut Vm, this: Value, length: f64) -> Result<()> {
    if !this.is_object() {
        return write_to_wrapper(vm, this, PropertyKey::Name(known::LENGTH));
    }
    vm.set(this, known::LENGTH, Value::number(length))
}

/// A position relative to an end, clamped.
fn position(vm: &mut Vm, value: Value, length: f64, default: f64) -> Result<f64> {
    if value.is_undefined() {
        return Ok(default);
    }
    let number = vm.to_integer(value)?;
    Ok(if number < 0.0 { (length + number).max(0.0) } else { number.min(length) })
}
