//! `join` and `toString`: arrays in arrays are walked without recursion.

use super::{as_array, length_of};
use crate::atom::known;
use crate::builtins::arg;
use crate::charge::{Buffer, Hold};
use crate::numeric::NumberText;
use crate::operator::MAX_STRING;
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;

/// An array whose items are being written.
struct Level {
    array: Value,
    next: usize,
    length: usize,
}

/// Bytes between two charges.
const STRIDE: usize = 1 << 12;

pub fn join(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    length_of(vm, this)?;
    let separator = match arg(arguments, 0) {
        Value::UNDEFINED => None,
        separator => {
            let separator = vm.to_string(separator)?;
            Some(vm.charged_copy(separator)?)
        }
    };
    let array = as_array(vm, this)?;
    write(vm, array, separator.as_deref().unwrap_or(b","))
}

/// The result of the receiver's own `join` (ECMAScript 23.1.3.36); `None` for the built-in one.
pub fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if this.is(Kind::Array) && !vm.has_own_method(this, known::JOIN) {
        return write(vm, this, b",");
    }
    if this.is_object() && !this.is(Kind::App) {
        let join = vm.get(this, known::JOIN)?;
        if join.is_callable() {
            return vm.call_nested(join, this, &[]);
        }
    }
    crate::builtins::object::to_string(vm, this, &[])
}

/// The items of an array as text. An array in itself is empty, as in V8.
fn write(vm: &mut Vm, array: Value, separator: &[u8]) -> Result {
    let mut out = Buffer::from_parts(vm.heap.scratch(), Hold::NONE);
    let mut levels = vec![level_of(vm, array)?]; // bounded: by the depth of calls
    let mut charged = 0;
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
            vm.work((out.len() - charged) / 16)?;
            charged = out.len();
            check_size(vm, out.len())?;
        }
        let Some(item) = vm.heap.at(array, index) else { continue };
        if item.is_nullish() || item == Value::HOLE {
            continue;
        }
        if item.is(Kind::Array) && !vm.heap.extras.contains_key(&item) {
            if levels.len() as u64 > vm.heap.meter.limits.max_call_depth {
                return Err(vm.range_error("Maximum call stack size exceeded"));
            }
            vm.work(levels.len() / 8)?;
            if levels.iter().all(|level| level.array != item) {
                levels.push(level_of(vm, item)?);
            }
            continue;
        }
        if item.is_number() {
            out.extend_from_slice(vm, NumberText::default().format(item.as_number()).as_bytes())?;
            continue;
        }
        let text = vm.to_string(item)?;
        check_size(vm, out.len() + vm.heap.str(text).bytes as usize)?;
        out.extend_from_slice(&vm.heap, vm.heap.bytes(text))?; // charged: above, when it is written
    }
    vm.work((out.len() - charged) / 16)?;
    vm.written(out.into_vec())
}

fn level_of(vm: &mut Vm, array: Value) -> Result<Level> {
    let length = vm.heap.length(array); // charged: here
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
