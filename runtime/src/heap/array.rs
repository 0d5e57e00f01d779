//! Arrays: dense, with holes marked. Those with great holes are in [`super::sparse`].

use super::{Heap, block, slab_cost};
use crate::meter::buffer::LARGE;
use crate::value::numeric::as_int32;
use crate::value::{Kind, Value};

/// An array. Missing items are [`Value::HOLE`].
pub struct Array {
    /// The items.
    pub items: Vec<Value>,
    /// The length of a sparse array; 0 for others. It fills a gap between the other fields.
    pub sparse_length: u32,
    /// Flags of [`super::object`], and [`super::sparse::SPARSE`].
    pub flags: u8,
}

impl Array {
    pub(super) fn cost(&self) -> usize {
        slab_cost::<Self>() + block(self.items.capacity() * 8)
    }
}

impl Heap {
    /// A new array of items.
    pub fn new_array(&mut self, items: Vec<Value>) -> Value {
        let array = Array { items, sparse_length: 0, flags: 0 };
        self.meter.add_bytes(array.cost());
        Value::handle(Kind::Array, self.arrays.add(array))
    }

    /// The items of an array that is not sparse.
    #[inline]
    pub fn items(&self, array: Value) -> &[Value] {
        debug_assert!(!self.is_sparse(array), "it is dense");
        &self.arrays[array.index()].items
    }

    /// How many items an array has.
    #[inline(always)]
    pub fn length(&self, array: Value) -> usize {
        // One of both is 0.
        let array = &self.arrays[array.index()];
        array.items.len() + array.sparse_length as usize
    }

    /// The element at an index of an array, where it has one: an item or a hole.
    #[inline(always)]
    pub fn at(&self, array: Value, index: usize) -> Option<Value> {
        match self.arrays[array.index()].items.get(index) {
            Some(&item) => Some(item),
            None => self.sparse_at(array, index),
        }
    }

    /// The item at an index, where there is one.
    #[inline(always)]
    pub fn item(&self, array: Value, index: f64) -> Option<Value> {
        // A negative index becomes a large one.
        let index = as_int32(index)? as usize;
        self.arrays[array.index()].items.get(index).copied().filter(|&item| item != Value::HOLE)
    }

    /// Replace the item at an index, or append it at the end; `false` where neither is enough.
    #[inline(always)]
    pub fn set_item(&mut self, array: Value, index: f64, value: Value) -> bool {
        let Some(index) = as_int32(index) else { return false };
        let index = index as usize;
        let Array { items, flags, .. } = &mut self.arrays[array.index()];
        if *flags != 0 {
            return false;
        }
        if let Some(item) = items.get_mut(index) {
            *item = value;
            return true;
        }
        if index == items.len() {
            self.push(array, value);
            return true;
        }
        false
    }

    /// Append an item, whatever the flags of the array, which is not sparse.
    #[inline]
    pub fn push(&mut self, array: Value, item: Value) {
        let items = &mut self.arrays[array.index()].items;
        if items.len() < items.capacity() {
            items.push(item);
        } else {
            self.grow(array, item);
        }
    }

    #[inline(never)]
    fn grow(&mut self, array: Value, item: Value) {
        let items = &mut self.arrays[array.index()].items;
        let before = items.capacity();
        if before * 8 >= LARGE {
            items.reserve_exact(1 + self.meter.spare(before * 8) / 8);
        }
        items.push(item);
        let grown = block(items.capacity() * 8) - block(before * 8);
        self.meter.add_bytes(grown);
    }

    /// Change the items of an array that is not sparse in a way that may allocate, and count the difference.
    pub fn with_items<T>(&mut self, array: Value, change: impl FnOnce(&mut Vec<Value>) -> T) -> T {
        debug_assert!(!self.is_sparse(array), "it is dense");
        let items = &mut self.arrays[array.index()].items;
        let before = block(items.capacity() * 8);
        let result = change(items);
        let after = block(items.capacity() * 8);
        self.meter.bytes = (self.meter.bytes + after).saturating_sub(before);
        if after > before {
            self.meter.add_bytes(0);
        }
        result
    }
}
