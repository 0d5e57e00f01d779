//! Methods of sparse arrays that need not visit the holes. The others are those of [`super::generic`], in which a hole
//! counts as a step, or make the array dense first, if memory can hold it.

use crate::eval::property::PropertyKey;
use crate::eval::vm::Vm;
use crate::heap::sparse::SPARSE;
use crate::meter::buffer::Buffer;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use std::ops::Range;

/// The first or last index of a value.
pub fn find(vm: &mut Vm, array: Value, target: Value, range: Range<usize>, last: bool) -> Result<Option<usize>> {
    let items = vm.heap.charged_sparse_items(array, range)?;
    let count = items.len();
    for position in 0..count {
        let (index, item) = items[if last { count - 1 - position } else { position }];
        if vm.strict_equals(item, target)? {
            return Ok(Some(index as usize));
        }
    }
    Ok(None)
}

/// Whether a value is among the items; a hole is `undefined`.
pub fn includes(vm: &mut Vm, array: Value, target: Value, range: Range<usize>) -> Result<bool> {
    let items = vm.heap.charged_sparse_items(array, range.clone())?;
    if target.is_undefined() && items.len() < range.len() {
        return Ok(true);
    }
    for &(_, item) in items.iter() {
        if vm.is_same(item, target, true) || vm.strict_equals(item, target)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A part of an array.
pub fn slice(vm: &mut Vm, array: Value, range: Range<usize>) -> Result {
    let start = range.start;
    let items = vm.heap.charged_sparse_items(array, range.clone())?;
    let part = vm.new_holes(range.len() as u32)?;
    for (index, item) in items {
        super::generic::put(vm, part, (index as usize - start) as f64, item)?;
    }
    Ok(part)
}

/// `concat` where a part is sparse.
pub fn concat(vm: &mut Vm, parts: impl Iterator<Item = Value>, total: usize) -> Result {
    // V8 cuts the length, if only holes are lost.
    let result = vm.new_holes(total.min(u32::MAX as usize) as u32)?;
    let mut start = 0;
    for part in parts {
        let mut items = Buffer::new();
        let mut size = 1;
        if !part.is(Kind::Array) {
            items.push(vm, (0, part))?;
        } else if vm.heap.is_sparse(part) {
            size = vm.heap.length(part);
            items = vm.heap.charged_sparse_items(part, 0..size)?;
        } else {
            size = vm.heap.length(part);
            let copy = vm.heap.charged_items_copy(part)?;
            items.extend(vm, (0..).zip(copy).filter(|&(_, item)| item != Value::HOLE))?;
        }
        for (index, item) in items {
            let index = start + index as usize;
            if index >= u32::MAX as usize {
                return Err(vm.range_error("Invalid array length"));
            }
            super::generic::put(vm, result, index as f64, item)?;
        }
        start += size;
    }
    Ok(result)
}

/// The items of an array that are sorted: those that are not `undefined`, then the others, without holes. Gives how
/// many the former are.
pub fn sortable(vm: &mut Vm, array: Value, target: Value) -> Result {
    let present = vm.heap.charged_sparse_items(array, 0..usize::MAX)?;
    let mut items = Buffer::with_capacity(vm, present.len())?;
    items.extend(vm, present.iter().map(|&(_, item)| item).filter(|item| !item.is_undefined()))?;
    let defined = items.len();
    items.extend(vm, present.iter().map(|&(_, item)| item).filter(|item| item.is_undefined()))?;
    vm.heap.with_items(target, |target| *target = items.into_vec());
    Ok(Value::number(defined as f64))
}

/// Write sorted items to the beginning of an array, in which holes are behind them. Gives whether that is possible.
pub fn sorted(vm: &mut Vm, array: Value, items: &[Value]) -> Result<bool> {
    if !array.is(Kind::Array) || vm.heap.flags(array) != SPARSE {
        return Ok(false);
    }
    let length = vm.heap.length(array) as u32;
    vm.work(1 + vm.heap.sparse_count(array))?;
    vm.heap.set_sparse_length(array, 0);
    vm.heap.set_sparse_length(array, length);
    for (index, &item) in (0..).zip(items) {
        vm.work(1)?;
        vm.set_key(array, PropertyKey::Index(index), item)?;
    }
    Ok(true)
}
