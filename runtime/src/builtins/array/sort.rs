//! Sorting: by strings here, in pieces; with a comparator in the prelude, with the help of functions here.

use super::{as_array, counted, filled, generic, is_free, sparse};
use crate::builtins::arg;
use crate::eval::vm::Vm;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use std::cmp::Ordering;

/// `$comparator(compare)`: an error unless it is callable or undefined.
pub fn comparator(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let compare = arg(arguments, 0);
    if !compare.is_undefined() && vm.type_of(compare) != "function" {
        return Err(vm.type_error("The comparison function must be either a function or undefined"));
    }
    Ok(Value::UNDEFINED)
}

/// `$sortable(self, items, length, all)`: put the items of a receiver of a length into `items`, the undefined ones last,
/// without its holes unless `all`; gives how many are defined.
pub fn sortable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let array = as_array(vm, arg(arguments, 0), arg(arguments, 2).as_number() as usize)?;
    let all = arg(arguments, 3) == Value::TRUE;
    if vm.heap.is_sparse(array) && !all {
        return sparse::sortable(vm, array, arg(arguments, 1));
    }
    vm.heap.densify(array)?;
    let (mut items, charge) = counted(vm, vm.heap.length(array))?;
    let present = vm.heap.read_items(array, charge).iter().copied();
    let is_wanted = |item: &Value| all || *item != Value::HOLE;
    items.extend(vm, present.clone().filter(|item| !filled(*item).is_undefined()))?;
    let defined = items.len();
    let undefined = present.filter(is_wanted).filter(|item| filled(*item).is_undefined());
    items.extend(vm, undefined.map(|_| Value::UNDEFINED))?;
    vm.heap.with_items(arg(arguments, 1), |target| *target = items.into_vec());
    Ok(Value::number(defined as f64))
}

/// Units of work between two points where a run can pause: moves, and comparisons of long texts.
const PIECE: usize = 4096;

/// The state of a merge sort: the width of the runs, the start of the present pair, and the next item of either run.
struct Cursor {
    width: usize,
    start: usize,
    left: usize,
    right: usize,
}

impl Cursor {
    /// At the first pair of runs of a width.
    fn new(width: usize, length: usize) -> Self {
        Self { width, start: 0, left: 0, right: width.min(length) }
    }
}

/// `$order(items, length, state)`: sort the first items by their texts, a piece of work at a time; undefined where it
/// has to be called again. False where an object is among them: the script can observe its conversions. `state` is
/// `[[], [], 0, 0, 0, 0]` at first: the texts with their items, the buffer to merge into, and the cursor.
pub fn order(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let [array, length, state] = [0, 1, 2].map(|index| arg(arguments, index));
    let length = length.as_number() as usize;
    let Some([pairs, spare, width, start, left, right]) = vm.heap.first_items(state) else {
        return Ok(Value::UNDEFINED);
    };
    let [width, start, left, right] = [width, start, left, right].map(|number| number.as_number() as usize);
    let mut cursor = Cursor { width, start, left, right };
    let mut done = false;
    if cursor.width == 0 {
        let first = vm.heap.length(pairs) / 2;
        if first == 0 {
            if vm.heap.charged_items(array)?[..length].iter().any(|item| item.is_object()) {
                return Ok(Value::FALSE);
            }
            vm.reserve(length.saturating_mul(64))?;
        }
        let last = length.min(first + PIECE);
        vm.work(last - first)?;
        for index in first..last {
            let item = vm.heap.at(array, index).unwrap_or(Value::UNDEFINED);
            let text = vm.to_string(item)?;
            vm.heap.with_items(pairs, |pairs| pairs.extend([text, item]));
        }
        if last == length {
            let room = vm.heap.charged_items_copy(pairs)?;
            vm.heap.with_items(spare, |spare| *spare = room.into_vec());
            cursor = Cursor::new(1, length);
        }
    } else {
        let mut from = std::mem::take(&mut vm.heap.arrays[pairs.index()].items);
        let mut to = std::mem::take(&mut vm.heap.arrays[spare.index()].items);
        done = merge(vm, &mut from, &mut to, &mut cursor)?;
        if done {
            let items = vm.heap.arrays[array.index()].items.iter_mut();
            items.zip(from.chunks_exact(2)).for_each(|(item, pair)| *item = pair[1]);
        }
        vm.heap.arrays[pairs.index()].items = from;
        vm.heap.arrays[spare.index()].items = to;
    }
    let Cursor { width, start, left, right } = cursor;
    for (index, number) in (2..).zip([width, start, left, right]) {
        vm.heap.set_item(state, f64::from(index), Value::number(number as f64));
    }
    Ok(if done { Value::TRUE } else { Value::UNDEFINED })
}

/// A piece of a stable sort of pairs, text and item; whether it was the last one.
fn merge(vm: &mut Vm, from: &mut Vec<Value>, to: &mut Vec<Value>, cursor: &mut Cursor) -> Result<bool> {
    let length = from.len() / 2;
    let (mut moved, mut compared) = (0, 0);
    while cursor.width < length {
        while cursor.start < length {
            let middle = (cursor.start + cursor.width).min(length);
            let end = (middle + cursor.width).min(length);
            let Cursor { mut left, mut right, .. } = *cursor;
            while left < middle || right < end {
                if moved + compared >= PIECE {
                    (cursor.left, cursor.right) = (left, right);
                    vm.work(moved)?;
                    return Ok(false);
                }
                let take_left =
                    right >= end || left < middle && !comes_before(vm, from[right * 2], from[left * 2], &mut compared)?;
                let target = left + right - middle;
                let next = if take_left { &mut left } else { &mut right };
                to[target * 2] = from[*next * 2];
                to[target * 2 + 1] = from[*next * 2 + 1];
                *next += 1;
                moved += 1;
            }
            cursor.start = end;
            (cursor.left, cursor.right) = (end, (end + cursor.width).min(length));
        }
        std::mem::swap(from, to);
        *cursor = Cursor::new(cursor.width * 2, length);
    }
    vm.work(moved)?;
    Ok(true)
}

/// Whether a text comes before another one; long ones are charged for, and counted in `compared`.
fn comes_before(vm: &mut Vm, left: Value, right: Value, compared: &mut usize) -> Result<bool> {
    if left == right {
        return Ok(false);
    }
    let (a, b) = (vm.heap.str(left), vm.heap.str(right));
    let bytes = if a.is_ascii() || b.is_ascii() { a.bytes.min(b.bytes) / 64 } else { a.bytes + b.bytes };
    if bytes > 0 {
        let units = bytes as usize / 4;
        *compared += units;
        vm.work(units)?;
    }
    Ok(vm.compare_strings(left, right) == Ordering::Less)
}

/// `$sorted(self, items, length)`: write sorted items back, and delete the items after them.
pub fn sorted(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (this, sorted) = (arg(arguments, 0), arg(arguments, 1));
    let length = arg(arguments, 2).as_number();
    let items = std::mem::take(&mut vm.heap.arrays[sorted.index()].items);
    let count = items.len();
    let has_length = this.is(Kind::Array) && vm.heap.length(this) as f64 == length;
    if is_free(vm, this) && has_length {
        let target = &mut vm.heap.arrays[this.index()].items;
        target[..count].copy_from_slice(&items);
        target[count..].fill(Value::HOLE);
        vm.work(count / 8)?;
        return Ok(Value::UNDEFINED);
    }
    if has_length && sparse::sorted(vm, this, &items)? {
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
