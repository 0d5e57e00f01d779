//! Arrays: dense, with holes marked.

use super::{Heap, block, place};
use crate::value::{Kind, Value};

/// An array. Missing items are [`Value::HOLE`].
pub struct Array {
    /// The items.
    pub items: Vec<Value>,
    /// Flags of [`super::object`].
    pub flags: u8,
}

impl Array {
    pub(super) fn cost(&self) -> usize {
        place::<Self>() + block(self.items.capacity() * 8)
    }
}

impl Heap {
    /// A new array of items.
    pub fn new_array(&mut self, items: Vec<Value>) -> Value {
        let array = Array { items, flags: 0 };
        self.meter.add_bytes(array.cost());
        Value::handle(Kind::Array, self.arrays.add(array))
    }

    /// The items of an array.
    #[inline]
    pub fn items(&self, array: Value) -> &[Value] {
        &self.arrays[array.index()].items
    }

    /// Append an item, whatever the flags of the array.
    #[inline]
    pub fn push(&mut self, array: Value, item: Value) {
        let items = &mut self.arrays[array.index()].items;
        let before = items.capacity();
        items.push(item);
        let grown = items.capacity() - before;
        self.meter.add_bytes(grown * 8);
    }

    /// Change the items of an array in a way that may need room, and count it.
    pub fn with_items<T>(&mut self, array: Value, change: impl FnOnce(&mut Vec<Value>) -> T) -> T {
        let items = &mut self.arrays[array.index()].items;
        let before = items.capacity();
        let result = change(items);
        let after = items.capacity();
        self.meter.bytes = (self.meter.bytes + after * 8).saturating_sub(before * 8);
        if after > before {
            self.meter.add_bytes(0);
        }
        result
    }
}
