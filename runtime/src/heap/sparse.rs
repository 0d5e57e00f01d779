//! Sparse arrays: their items are in a tree, so a hole takes no memory.
//!
//! An array is dense until its length exceeds what memory can hold, or an item is set far behind its end. It is dense
//! again as soon as that takes no more memory. While it is sparse it has the flag [`SPARSE`], its list of items is
//! empty, and [`Array::sparse_length`](super::Array) is its length. A dense array pays nothing for this.

use super::{Heap, block, hash_cost};
use crate::value::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// The flag of an array that is sparse.
pub const SPARSE: u8 = 128;

/// The most bytes that a tree needs for an item.
pub const SPARSE_ITEM: usize = 40;

/// Bytes of a leaf of a tree: eleven items, and how they are linked.
const LEAF: usize = 11 * (size_of::<u32>() + size_of::<Value>()) + 16;

/// The memory of a sparse array beside its items, in bytes: a place among the trees, and the leaf of a tree that has few items.
pub const SPARSE_ARRAY: usize = hash_cost::<(u32, BTreeMap<u32, Value>)>() + block(LEAF);

/// An item that is set this far behind the end makes an array sparse.
pub const MAX_GAP: usize = 1 << 12;

impl Heap {
    /// Whether an array is sparse.
    #[inline]
    pub fn is_sparse(&self, array: Value) -> bool {
        self.arrays[array.index()].flags & SPARSE != 0
    }

    /// The item of a sparse array at an index, or a hole; `None` where it ends before, and where it is dense.
    #[cold]
    pub(super) fn sparse_at(&self, array: Value, index: usize) -> Option<Value> {
        if index >= self.arrays[array.index()].sparse_length as usize {
            return None;
        }
        let item = self.sparse.get(&array.payload()).and_then(|items| items.get(&(index as u32)));
        Some(item.copied().unwrap_or(Value::HOLE))
    }

    /// How many items a sparse array has, without its holes.
    pub fn sparse_count(&self, array: Value) -> usize {
        self.sparse.get(&array.payload()).map_or(0, BTreeMap::len)
    }

    /// The items of a sparse array in a range of indices, without its holes.
    pub fn sparse_items(&self, array: Value, range: Range<usize>) -> impl DoubleEndedIterator<Item = (u32, Value)> {
        let end = range.end.min(self.length(array)) as u32;
        let start = range.start.min(end as usize) as u32;
        let items = self.sparse.get(&array.payload());
        items.into_iter().flat_map(move |items| items.range(start..end).map(|(&index, &item)| (index, item)))
    }

    /// Make a dense array sparse, whose items are in `tree` already. They are counted, and no more.
    pub fn make_sparse(&mut self, array: Value, tree: BTreeMap<u32, Value>) {
        let dense = &mut self.arrays[array.index()];
        let items = std::mem::take(&mut dense.items);
        dense.flags |= SPARSE;
        dense.sparse_length = items.len() as u32;
        self.meter.bytes = self.meter.bytes.saturating_sub(block(items.capacity() * 8));
        self.meter.add_bytes(SPARSE_ARRAY + tree.len() * SPARSE_ITEM);
        self.sparse.insert(array.payload(), tree);
    }

    /// Make a sparse array dense. It takes memory for its length.
    pub fn make_dense(&mut self, array: Value) {
        let Some(tree) = self.sparse.remove(&array.payload()) else { return };
        let sparse = &mut self.arrays[array.index()];
        let mut items = vec![Value::HOLE; sparse.sparse_length as usize];
        sparse.flags &= !SPARSE;
        sparse.sparse_length = 0;
        self.meter.bytes = self.meter.bytes.saturating_sub(SPARSE_ARRAY + tree.len() * SPARSE_ITEM);
        for (index, item) in tree {
            items[index as usize] = item;
        }
        self.meter.add_bytes(block(items.capacity() * 8));
        self.arrays[array.index()].items = items;
    }

    /// Set an item of a sparse array, which grows where it has to.
    pub fn set_sparse_item(&mut self, array: Value, index: u32, item: Value) {
        let data = &mut self.arrays[array.index()];
        data.sparse_length = data.sparse_length.max(index + 1);
        if self.sparse.entry(array.payload()).or_default().insert(index, item).is_none() {
            self.meter.add_bytes(SPARSE_ITEM);
        }
    }

    /// Make a hole of an item of a sparse array.
    pub fn remove_sparse_item(&mut self, array: Value, index: u32) {
        if self.sparse.get_mut(&array.payload()).is_some_and(|items| items.remove(&index).is_some()) {
            self.meter.bytes = self.meter.bytes.saturating_sub(SPARSE_ITEM);
        }
    }

    /// Set the length of a sparse array. Gives how many items that removed.
    pub fn set_sparse_length(&mut self, array: Value, length: u32) -> usize {
        self.arrays[array.index()].sparse_length = length;
        let removed = self.sparse.get_mut(&array.payload()).map_or(0, |items| items.split_off(&length).len());
        self.meter.bytes = self.meter.bytes.saturating_sub(removed * SPARSE_ITEM);
        removed
    }
}
