//! Array iteration with callbacks that are leaves: the loops of the prelude, in Rust.
//!
//! Each function does as many turns as the fuel allows and returns where to continue. The loop of the prelude around it
//! can pause there. How far it gets depends on garbage, and the number of steps must not, so the extra turn of
//! that loop is given back.

use crate::builtins::arg;
use crate::eval::activation::Leaf;
use crate::eval::node::Body;
use crate::eval::vm::Vm;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// `$leaf(array, function)`: whether the functions here can be used.
pub fn is_leaf(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (array, function) = (arg(arguments, 0), arg(arguments, 1));
    let is_leaf = matches!(array.kind(), Kind::Array | Kind::Uint8Array) && function.is(Kind::Function) && {
        let function = vm.realm.function(vm.heap.closures[function.index()].code);
        function.rest.is_none() && !matches!(function.body, Body::Ops)
    };
    Ok(Value::bool(is_leaf))
}

/// Whether the fuel is used up, so that the walk has to be continued later.
#[inline(always)]
fn is_over(vm: &mut Vm) -> bool {
    let over = vm.heap.meter.fuel <= 0;
    if over {
        vm.heap.meter.granted -= 1;
    }
    over
}

/// Call `function(item, index, array)` for the items from `start` on, until `each` returns false. Gives the index to
/// continue at, or `~index` of the item that ended it.
#[inline(always)]
fn walk(
    vm: &mut Vm,
    arguments: &[Value],
    holes: bool,
    mut each: impl FnMut(&mut Vm, &Leaf<'_>, usize, Value) -> Result<bool>,
) -> Result {
    let [array, function, start, length, ..] = *arguments else { return Ok(Value::UNDEFINED) };
    let length = length.as_number() as usize;
    vm.with_leaf(function, |vm, leaf| {
        let mut index = start.as_number() as usize;
        while index < length {
            let item = item_at(vm, array, index);
            if item == Value::HOLE && !holes {
                vm.tick()?;
            } else {
                let item = if item == Value::HOLE { Value::UNDEFINED } else { item };
                if !each(vm, leaf, index, item)? {
                    return Ok(Value::number(-1.0 - index as f64));
                }
            }
            index += 1;
            if index < length && is_over(vm) {
                break;
            }
        }
        Ok(Value::number(index as f64))
    })
}

/// An item of an array or a `Uint8Array`.
#[inline(always)]
fn item_at(vm: &Vm, array: Value, index: usize) -> Value {
    if array.is(Kind::Array) {
        return vm.heap.at(array, index).unwrap_or(Value::HOLE);
    }
    if let Some(byte) = vm.heap.byte_at(array, index) {
        return byte;
    }
    vm.heap.view_byte(array, index).map_or(Value::UNDEFINED, |byte| Value::number(f64::from(byte)))
}

/// The callback, with its common arguments.
#[inline(always)]
fn call(vm: &mut Vm, leaf: &Leaf<'_>, arguments: &[Value], index: usize, item: Value) -> Result {
    leaf.call(vm, [item, Value::number(index as f64), arguments[0]])
}

/// `$forEach(array, function, start, length)`
pub fn for_each(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    walk(vm, arguments, false, |vm, leaf, index, item| call(vm, leaf, arguments, index, item).map(|_| true))
}

/// `$map(array, function, start, length, out)`
pub fn map(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let out = arg(arguments, 4);
    walk(vm, arguments, false, |vm, leaf, index, item| {
        let value = call(vm, leaf, arguments, index, item)?;
        if out.is(Kind::Array) {
            vm.set_index(out, Value::number(index as f64), value)?;
            return Ok(true);
        }
        if value.is_number() && vm.heap.set_byte(out, index as f64, value.as_number()) {
            return Ok(true);
        }
        vm.set_view_item(out, index as u32, value).map(|()| true)
    })
}

/// `$filter(array, function, start, length, out)`
pub fn filter(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let out = arg(arguments, 4);
    walk(vm, arguments, false, |vm, leaf, index, item| {
        let value = call(vm, leaf, arguments, index, item)?;
        if vm.truthy(value) {
            vm.heap.push(out, item);
        }
        Ok(true)
    })
}

/// `$until(array, function, start, length, wanted)`: to the first item for which the truth of the result
/// is `wanted`.
pub fn until(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let wanted = arg(arguments, 4) == Value::TRUE;
    walk(vm, arguments, false, |vm, leaf, index, item| {
        let value = call(vm, leaf, arguments, index, item)?;
        Ok(vm.truthy(value) != wanted)
    })
}

/// `$find(array, function, start, length, found)`: to the first item for which the result is true; it
/// goes into an array.
pub fn find(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let found = arg(arguments, 4);
    walk(vm, arguments, true, |vm, leaf, index, item| {
        let value = call(vm, leaf, arguments, index, item)?;
        if vm.truthy(value) {
            vm.heap.push(found, item);
            return Ok(false);
        }
        Ok(true)
    })
}

/// `$reduce(array, function, start, length, state)`: the value is the only item of an array.
pub fn reduce(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (array, state) = (arg(arguments, 0), arg(arguments, 4));
    let mut value = vm.heap.at(state, 0).unwrap_or(Value::UNDEFINED);
    let next = walk(vm, arguments, false, |vm, leaf, index, item| {
        value = leaf.call(vm, [value, item, Value::number(index as f64), array])?;
        Ok(true)
    })?;
    vm.heap.set_item(state, 0.0, value);
    Ok(next)
}

/// Whether a comparator orders its first argument before its second.
#[inline(always)]
fn is_before(vm: &mut Vm, leaf: &Leaf<'_>, left: Value, right: Value) -> Result<bool> {
    let order = leaf.call(vm, [left, right])?;
    Ok(if order.is_number() { order.as_number() < 0.0 } else { vm.to_number(order)? < 0.0 })
}

/// `$search(items, low, high, pivot, compare)`: where the pivot belongs, behind its equals. That is a few
/// calls, as runs are short.
pub fn search(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let [items, low, high, pivot, compare] = *arguments else { return Ok(Value::UNDEFINED) };
    vm.with_leaf(compare, |vm, leaf| {
        let (mut left, mut right) = (low.as_number() as usize, high.as_number() as usize);
        while left < right {
            let middle = left + (right - left) / 2;
            let item = vm.heap.at(items, middle).unwrap_or(Value::UNDEFINED);
            if is_before(vm, leaf, pivot, item)? {
                right = middle;
            } else {
                left = middle + 1;
            }
        }
        Ok(Value::number(left as f64))
    })
}

/// A merge of two runs, of which one was copied, one item at a time.
struct Merge {
    items: Value,
    copied: Value,
    cursor: Value,
    most_wins: usize,
}

/// The position of a merge, in the order of the array that stores it.
const TARGET: usize = 0;
const A: usize = 1;
const B: usize = 2;
const LENGTH_A: usize = 3;
const LENGTH_B: usize = 4;
const WINS_A: usize = 5;
const WINS_B: usize = 6;

impl Merge {
    /// Merge until one run is used up, which gives `true`, or one has won too often in a row, or the fuel
    /// is used up. Upwards the second run may come to its end, downwards the first.
    #[inline(always)]
    fn run(self, vm: &mut Vm, compare: Value, upwards: bool) -> Result {
        let Some(cursor) = vm.heap.first_items::<7>(self.cursor) else { return Ok(Value::UNDEFINED) };
        let mut at = cursor.map(|position| position.as_number() as usize);
        let step = |index: usize| if upwards { index + 1 } else { index.wrapping_sub(1) };
        vm.with_leaf(compare, |vm, leaf| {
            let mut done = false;
            while at[WINS_A] < self.most_wins && at[WINS_B] < self.most_wins {
                let (array_a, array_b) = if upwards { (self.copied, self.items) } else { (self.items, self.copied) };
                let a = vm.heap.at(array_a, at[A]).unwrap_or(Value::UNDEFINED);
                let b = vm.heap.at(array_b, at[B]).unwrap_or(Value::UNDEFINED);
                let b_first = is_before(vm, leaf, b, a)?;
                // The smaller one goes first upwards, the greater one downwards.
                let takes_b = b_first == upwards;
                vm.heap.set_item(self.items, at[TARGET] as f64, if takes_b { b } else { a });
                at[TARGET] = step(at[TARGET]);
                let (position, length, wins, others, least) = match takes_b {
                    true => (B, LENGTH_B, WINS_B, WINS_A, usize::from(!upwards)),
                    false => (A, LENGTH_A, WINS_A, WINS_B, usize::from(upwards)),
                };
                at[position] = step(at[position]);
                at[wins] += 1;
                at[others] = 0;
                at[length] -= 1;
                if at[length] == least {
                    done = true;
                    break;
                }
                if at[wins] < self.most_wins && is_over(vm) {
                    break;
                }
            }
            for (index, &position) in at.iter().enumerate() {
                vm.heap.set_item(self.cursor, index as f64, Value::number(position as f64));
            }
            Ok(Value::bool(done))
        })
    }

    fn new(arguments: &[Value]) -> Self {
        let most_wins = arg(arguments, 3).as_number() as usize;
        Self { items: arg(arguments, 0), copied: arg(arguments, 1), cursor: arg(arguments, 2), most_wins }
    }
}

/// `$mergeLow(items, left, cursor, gallop, compare)`
pub fn merge_low(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Merge::new(arguments).run(vm, arg(arguments, 4), true)
}

/// `$mergeHigh(items, right, cursor, gallop, compare)`
pub fn merge_high(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Merge::new(arguments).run(vm, arg(arguments, 4), false)
}
