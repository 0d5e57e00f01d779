//! `join` and `toString`: arrays in arrays are walked without recursion.

use super::{MAX_LENGTH, as_array};
use crate::builtins::arg;
use crate::eval::operator::MAX_STRING;
use crate::eval::vm::Vm;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::atom::known;
use crate::value::numeric::NumberText;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// A receiver whose items are being written.
struct Level {
    array: Value,
    next: usize,
    length: usize,
}

/// Bytes between two charges.
const STRIDE: usize = 1 << 12;

pub fn join(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = joined_length(vm, this)?;
    let separator = match arg(arguments, 0) {
        Value::UNDEFINED => None,
        separator => {
            let separator = vm.to_string(separator)?;
            Some(vm.heap.charged_copy(separator)?)
        }
    };
    if length == 0 || vm.joining.contains(&this) {
        return Ok(vm.heap.atom_string(known::EMPTY));
    }
    // The items of a string cannot change, and have no conversions.
    let source = if this.is_object() { this } else { as_array(vm, this, length)? };
    let level = level_of(vm, source, length)?;
    write(vm, level, separator.as_deref().unwrap_or(b","))
}

/// The result of the receiver's own `join` (ECMAScript 23.1.3.36); `None` for the built-in one.
pub fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if this.is(Kind::Array) && !vm.has_own_method(this, known::JOIN) {
        if vm.joining.contains(&this) {
            return Ok(vm.heap.atom_string(known::EMPTY));
        }
        let length = vm.heap.length(this);
        let level = level_of(vm, this, length)?;
        return write(vm, level, b",");
    }
    if this.is_nullish() {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    if this.is_object() && !this.is(Kind::App) {
        let join = vm.get(this, known::JOIN)?;
        if join.is_callable() {
            return vm.call_nested(join, this, &[]);
        }
    }
    crate::builtins::object::to_string(vm, this, &[])
}

/// `$joining(receiver)`: the length of a receiver of `toLocaleString` whose items are written now; 0 where there is
/// nothing to write, as in a receiver within itself.
pub fn begin(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let this = arg(arguments, 0);
    let length = joined_length(vm, this)?;
    if length == 0 || vm.joining.contains(&this) {
        return Ok(Value::ZERO);
    }
    vm.work(1 + vm.joining.len() / 8)?;
    vm.joining.push(this);
    Ok(Value::number(length as f64))
}

/// `$joined()`: the items of the last one are written.
pub fn end(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    vm.joining.pop();
    Ok(Value::UNDEFINED)
}

fn joined_length(vm: &mut Vm, this: Value) -> Result<usize> {
    let length = vm.length_of(this)?;
    if length > MAX_LENGTH {
        return Err(vm.type_error("Invalid array length"));
    }
    Ok(length as usize)
}

/// The items of a receiver as text. What is being written is empty within itself, as in V8.
fn write(vm: &mut Vm, first: Level, separator: &[u8]) -> Result {
    let mut out = Buffer::from_parts(vm.heap.scratch(), Hold::NONE);
    let mut levels = vec![first];
    let (mut charge, mut charged) = (vm.work(1)?, 0);
    while let Some(level) = levels.last_mut() {
        let (array, index) = (level.array, level.next);
        if index == level.length {
            levels.pop();
            continue;
        }
        level.next += 1;
        if index > 0 {
            out.extend_from_slice(vm, if levels.len() == 1 { separator } else { b"," })?;
        }
        if out.len() > charged + STRIDE {
            charge = vm.work((out.len() - charged) / 16)?;
            charged = out.len();
            check_size(vm, out.len())?;
        }
        let item = if array.is(Kind::Array) {
            match vm.heap.at(array, index) {
                Some(item) => item,
                None => continue,
            }
        } else {
            vm.get_index(array, Value::number(index as f64))?
        };
        if item.is_nullish() || item == Value::HOLE {
            continue;
        }
        if item.is(Kind::Array) && !vm.heap.extras.contains_key(&item) {
            if levels.len() as u64 > vm.heap.meter.limits.max_call_depth {
                return Err(vm.range_error("Maximum call stack size exceeded"));
            }
            vm.work((levels.len() + vm.joining.len()) / 8)?;
            if levels.iter().all(|level| level.array != item) && !vm.joining.contains(&item) {
                let length = vm.heap.length(item);
                levels.push(level_of(vm, item, length)?);
            }
            continue;
        }
        if item.is_number() {
            out.extend_from_slice(vm, NumberText::default().format(item.as_number()).as_bytes())?;
            continue;
        }
        let text = if item.is_object() { converted(vm, item, &levels)? } else { vm.to_string(item)? };
        check_size(vm, out.len() + vm.heap.str(text).bytes as usize)?;
        out.extend_from_slice(&vm.heap, vm.heap.read_bytes(text, charge))?;
    }
    vm.work((out.len() - charged) / 16)?;
    vm.heap.string_of_parts(out.into_vec())
}

/// An object as text, whose conversion may write what is being written.
fn converted(vm: &mut Vm, item: Value, levels: &[Level]) -> Result {
    let before = vm.joining.len();
    vm.work(1 + levels.len() / 8)?;
    vm.joining.extend(levels.iter().map(|level| level.array));
    let text = vm.to_string(item);
    vm.joining.truncate(before);
    text
}

fn level_of(vm: &mut Vm, array: Value, length: usize) -> Result<Level> {
    vm.work(length + 1)?;
    Ok(Level { array, next: 0, length })
}

fn check_size(vm: &mut Vm, bytes: usize) -> Result<()> {
    if bytes > STRIDE {
        // Three bytes are at least one unit.
        if bytes as u64 / 3 > MAX_STRING {
            return Err(vm.range_error("Invalid string length"));
        }
    }
    Ok(())
}
