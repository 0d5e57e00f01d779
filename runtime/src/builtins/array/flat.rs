//! `flat` and `flatMap`, without recursion.

use super::{as_array, length_of, room};
use crate::builtins::arg;
use crate::error::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;

pub fn flat(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    length_of(vm, this)?;
    let depth = match arg(arguments, 0) {
        Value::UNDEFINED => 1.0,
        depth => vm.to_integer(depth)?,
    };
    let array = as_array(vm, this)?;
    let mut out = Vec::new();
    vm.work(vm.heap.items(array).len())?;
    // Arrays whose items are being taken, with the next index.
    let mut levels = vec![(array, 0)];
    while let Some((array, index)) = levels.last_mut() {
        let items = vm.heap.items(*array);
        let Some(&item) = items.get(*index) else {
            levels.pop();
            continue;
        };
        *index += 1;
        if item.is(Kind::Array) && levels.len() as f64 <= depth {
            if levels.len() as u64 > vm.heap.meter.limits.max_call_depth {
                return Err(vm.range_error("Maximum call stack size exceeded"));
            }
            levels.push((item, 0));
            vm.work(vm.heap.items(item).len() + 1)?;
        } else if item != Value::HOLE {
            if out.len() == out.capacity() {
                vm.reserve((out.len() + 1).saturating_mul(16))?;
            }
            out.push(item);
        }
    }
    Ok(vm.heap.new_array(out))
}

/// `$append(array, result)`: the items of an array, or the result itself.
pub fn append(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (target, result) = (arg(arguments, 0), arg(arguments, 1));
    if !result.is(Kind::Array) {
        vm.heap.push(target, result);
        return Ok(Value::UNDEFINED);
    }
    room(vm, vm.heap.items(result).len())?;
    let items: Vec<Value> = vm.heap.items(result).iter().copied().filter(|&item| item != Value::HOLE).collect();
    vm.heap.with_items(target, |out| out.extend(items));
    Ok(Value::UNDEFINED)
}
