//! Sorting: the order of strings here; with a function to compare, the prelude sorts by help of what
//! is here.

use super::{as_array, filled, generic, is_free, room};
use crate::builtins::arg;
use crate::error::Result;
use crate::value::Value;
use crate::vm::Vm;
use std::cmp::Ordering;

/// `$comparator(compare)`: an error unless it can be compared with.
pub fn comparator(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let compare = arg(arguments, 0);
    if !compare.is_undefined() && crate::convert::type_of(compare) != "function" {
        return Err(vm.type_error("The comparison function must be either a function or undefined"));
    }
    Ok(Value::UNDEFINED)
}

/// `$sortable(self, items, all)`: put the items of a receiver into `items`, the undefined ones last,
/// without its holes unless `all`; gives how many are defined.
pub fn sortable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let array = as_array(vm, arg(arguments, 0))?;
    let all = arg(arguments, 2) == Value::TRUE;
    room(vm, vm.heap.items(array).len())?;
    let wanted = |item: &Value| all || *item != Value::HOLE;
    let present = vm.heap.items(array).iter().copied().filter(wanted).map(filled);
    let (mut items, undefined): (Vec<Value>, Vec<Value>) = present.partition(|item| !item.is_undefined());
    let defined = items.len();
    items.extend(undefined);
    vm.heap.with_items(arg(arguments, 1), |target| *target = items);
    Ok(Value::number(defined as f64))
}

/// `$order(items, length)`: put the first items into the order of their texts. False where an object
/// is among them: the script can tell in which order and how often its text is asked for.
pub fn order(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (array, length) = (arg(arguments, 0), arg(arguments, 1).as_number() as usize);
    if vm.heap.items(array)[..length].iter().any(|item| item.is_object()) {
        return Ok(Value::FALSE);
    }
    vm.reserve(length.saturating_mul(64))?;
    vm.work(length)?;
    let mut pairs = Vec::with_capacity(length);
    for index in 0..length {
        let item = vm.heap.items(array)[index];
        pairs.push((vm.to_string(item)?, item));
    }
    let pairs = merge_sort(vm, pairs)?;
    let items = &mut vm.heap.arrays[array.index()].items;
    for (place, (_, item)) in items.iter_mut().zip(pairs) {
        *place = item;
    }
    Ok(Value::TRUE)
}

/// A stable sort that pays for what it compares.
fn merge_sort(vm: &mut Vm, mut from: Vec<(Value, Value)>) -> Result<Vec<(Value, Value)>> {
    let mut to = from.clone();
    let mut width = 1;
    while width < from.len() {
        let mut start = 0;
        while start < from.len() {
            let middle = (start + width).min(from.len());
            let end = (middle + width).min(from.len());
            let (mut left, mut right) = (start, middle);
            for place in &mut to[start..end] {
                let take_left = right >= end || left < middle && !comes_before(vm, from[right].0, from[left].0)?;
                let next = if take_left { &mut left } else { &mut right };
                *place = from[*next];
                *next += 1;
            }
            start = end;
        }
        vm.work(from.len())?;
        std::mem::swap(&mut from, &mut to);
        width *= 2;
    }
    Ok(from)
}

fn comes_before(vm: &mut Vm, left: Value, right: Value) -> Result<bool> {
    if left == right {
        return Ok(false);
    }
    let (a, b) = (vm.heap.str(left), vm.heap.str(right));
    let compared = if a.is_ascii() || b.is_ascii() { a.bytes.min(b.bytes) / 64 } else { a.bytes + b.bytes };
    if compared > 0 {
        vm.work(compared as usize / 4)?;
    }
    Ok(vm.compare_strings(left, right) == Ordering::Less)
}

/// `$sorted(self, items, length)`: put sorted items back, and remove what is behind them.
pub fn sorted(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, sorted) = (arg(arguments, 0), arg(arguments, 1));
    let length = arg(arguments, 2).as_number();
    let items = std::mem::take(&mut vm.heap.arrays[sorted.index()].items);
    let count = items.len();
    if is_free(vm, this) && vm.heap.items(this).len() as f64 == length {
        let target = &mut vm.heap.arrays[this.index()].items;
        target[..count].copy_from_slice(&items);
        target[count..].fill(Value::HOLE);
        vm.work(count / 8)?;
        return Ok(Value::UNDEFINED);
    }
    for (index, item) in items.into_iter().enumerate() {
        generic::put(vm, this, index as f64, item)?;
    }
    let mut index = count as f64;
    while index < length {
        generic::remove(vm, this, index)?;
        index += 1.0;
    }
    Ok(Value::UNDEFINED)
}

/// `$reverse(items, from, to)`
pub fn reverse_part(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let [from, to] = [1, 2].map(|index| arg(arguments, index).as_number() as usize);
    vm.heap.arrays[arg(arguments, 0).index()].items[from..to].reverse();
    vm.work((to - from) / 16)?;
    Ok(Value::UNDEFINED)
}

/// `$insert(items, from, to)`: move an item to the left, and those between to the right.
pub fn insert(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let [from, to] = [1, 2].map(|index| arg(arguments, index).as_number() as usize);
    vm.heap.arrays[arg(arguments, 0).index()].items[to..=from].rotate_right(1);
    vm.work((from - to) / 16)?;
    Ok(Value::UNDEFINED)
}

/// `$copy(source, from, target, to, count)`
pub fn copy(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (source, target) = (arg(arguments, 0), arg(arguments, 2));
    let [from, to, count] = [1, 3, 4].map(|index| arg(arguments, index).as_number() as usize);
    let arrays = &mut vm.heap.arrays;
    if source == target {
        arrays[source.index()].items.copy_within(from..from + count, to);
    } else {
        let items = std::mem::take(&mut arrays[source.index()].items);
        arrays[target.index()].items[to..to + count].copy_from_slice(&items[from..from + count]);
        arrays[source.index()].items = items;
    }
    vm.work(count / 16)?;
    Ok(Value::UNDEFINED)
}
