//! `flat` and `flatMap`, without recursion.

use super::{as_array, counted};
use crate::builtins::arg;
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

pub fn flat(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let length = vm.length_of(this)? as usize;
    let depth = match arg(arguments, 0) {
        Value::UNDEFINED => 1.0,
        depth => vm.to_integer(depth)?,
    };
    let array = as_array(vm, this, length)?;
    let mut out = Buffer::new();
    vm.work(vm.heap.length(array))?;
    // Arrays whose items are being taken, with the next index.
    let mut levels = vec![(array, 0)];
    while let Some((array, index)) = levels.last_mut() {
        let Some(item) = vm.heap.at(*array, *index) else {
            levels.pop();
            continue;
        };
        *index += 1;
        if item.is(Kind::Array) && levels.len() as f64 <= depth {
            if levels.len() as u64 > vm.heap.meter.limits.max_call_depth {
                return Err(vm.range_error("Maximum call stack size exceeded"));
            }
            levels.push((item, 0));
            vm.work(vm.heap.length(item) + 1)?;
        } else if item != Value::HOLE {
            out.push(vm, item)?;
        }
    }
    Ok(vm.heap.array_of(out))
}

/// `$append(array, result)`: the items of an array, or the result itself.
pub fn append(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (target, result) = (arg(arguments, 0), arg(arguments, 1));
    if !result.is(Kind::Array) {
        vm.heap.push(target, result);
        return Ok(Value::UNDEFINED);
    }
    vm.heap.densify(result)?;
    let (mut items, charge) = counted(vm, vm.heap.length(result))?;
    let present = vm.heap.read_items(result, charge).iter().copied().filter(|&item| item != Value::HOLE);
    items.extend(vm, present)?;
    vm.reserve(items.len() * size_of::<Value>())?;
    vm.heap.with_items(target, |out| out.extend_from_slice(&items));
    Ok(Value::UNDEFINED)
}
