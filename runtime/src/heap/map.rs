//! The data of `Map` and `Set`: entries in order of insertion, found by hash.

use super::{Heap, block, slab_cost};
use crate::value::{Kind, Value};
use hashbrown::DefaultHashBuilder;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// A key as `Map` compares it: strings and BigInts by content, -0 as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    value: Value,
    hash: u64,
}

/// Entries in order of insertion; removed ones are [`Value::HOLE`] until the next compaction. Numbers of entries only
/// grow, so an iterator that stores a number, not an index, is not affected by compactions.
#[derive(Default)]
pub struct MapData {
    entries: Vec<(Value, Value)>,
    table: HashTable<u32>,
    hashes: Vec<u64>,
    numbers: Vec<usize>,
    /// The number of the next entry.
    next: usize,
    /// No entry before this index is left.
    head: usize,
    hasher: DefaultHashBuilder,
    removed: usize,
}

/// Bytes of an entry beside its entry in the table.
const ENTRY: usize = 32;
/// From so many entries on, a map grows by what the memory limit leaves.
const MANY: usize = 2048;

/// An entry found by an iterator.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its key.
    pub key: Value,
    /// Its value.
    pub value: Value,
    /// The number after its own.
    pub behind: usize,
    /// How many removed entries were skipped before it.
    pub skipped: usize,
}

impl MapData {
    pub(super) const COST: usize = slab_cost::<Self>();

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.removed
    }

    /// How many entries there are, removed ones included.
    pub fn entry_count(&self) -> usize {
        self.entries.len()
    }

    /// The first entry at or behind a number.
    pub fn entry_from(&self, number: usize) -> Option<Entry> {
        // Without compactions, numbers are consecutive.
        let guess = number.saturating_sub(*self.numbers.first()?);
        let first = match self.numbers.get(guess) {
            Some(&found) if found == number => guess,
            _ => self.numbers.partition_point(|&other| other < number),
        };
        let first = first.max(self.head);
        let skipped = self.entries[first..].iter().position(|&(key, _)| key != Value::HOLE)?;
        let (key, value) = self.entries[first + skipped];
        Some(Entry { key, value, behind: self.numbers[first + skipped] + 1, skipped })
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Value, Value)> + '_ {
        self.entries.iter().copied().filter(|&(key, _)| key != Value::HOLE)
    }

    pub(super) fn raw(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub(super) fn cost(&self) -> usize {
        let list = |capacity: usize, size: usize| block(capacity * size);
        Self::COST
            + list(self.entries.capacity(), size_of::<(Value, Value)>())
            + list(self.hashes.capacity(), size_of::<u64>())
            + list(self.numbers.capacity(), size_of::<usize>())
            + block(self.table.allocation_size())
    }

    pub(super) fn release(&mut self) {
        *self = Self::default();
    }
}

impl Heap {
    /// A value as a key of a map.
    pub fn map_key(&self, map: Value, value: Value) -> Key {
        let hasher = &self.maps[map.index()].hasher;
        let (value, hash) = match value.kind() {
            Kind::Number if value.as_number() == 0.0 => (Value::ZERO, hasher.hash_one(0_u64)),
            Kind::Number if value.as_number().is_nan() => (Value::NAN, hasher.hash_one(Value::NAN.bits())),
            Kind::String => (value, hasher.hash_one(self.bytes(value))),
            Kind::BigInt => (value, hasher.hash_one(&self.bigints[value.index()])),
            _ => (value, hasher.hash_one(value.bits())),
        };
        Key { value, hash }
    }

    fn find(&self, map: Value, key: Key) -> Option<usize> {
        let data = &self.maps[map.index()];
        let equal = |&index: &u32| {
            let other = data.entries[index as usize].0;
            data.hashes[index as usize] == key.hash
                && (other == key.value
                    || other.is_string() && key.value.is_string() && self.bytes(other) == self.bytes(key.value)
                    || other.is(Kind::BigInt)
                        && key.value.is(Kind::BigInt)
                        && self.bigints[other.index()] == self.bigints[key.value.index()])
        };
        data.table.find(key.hash, equal).map(|&index| index as usize)
    }

    /// Reserve room for up to so many entries.
    pub fn map_reserve(&mut self, map: Value, entries: usize) {
        // Many of the keys may be equal.
        const MAX_RESERVED: usize = 64;
        let data = &mut self.maps[map.index()];
        let before = data.cost();
        let more = entries.min(MAX_RESERVED);
        data.entries.reserve(more);
        data.hashes.reserve(more);
        data.numbers.reserve(more);
        let MapData { table, hashes, .. } = data;
        table.reserve(more, |&index| hashes[index as usize]);
        let grown = data.cost() - before;
        self.meter.add_bytes(grown);
    }

    /// The value of a key.
    pub fn map_get(&self, map: Value, key: Key) -> Option<Value> {
        self.find(map, key).map(|index| self.maps[map.index()].entries[index].1)
    }

    /// Set the value of a key.
    pub fn map_set(&mut self, map: Value, key: Key, value: Value) {
        if let Some(index) = self.find(map, key) {
            self.maps[map.index()].entries[index].1 = value;
            return;
        }
        let data = &mut self.maps[map.index()];
        let before = data.cost();
        let index = data.entries.len() as u32;
        if data.entries.len() == data.entries.capacity() && data.entries.len() >= MANY {
            let more = 1 + self.meter.spare(data.entries.len() * ENTRY) / ENTRY;
            data.entries.reserve_exact(more);
            data.hashes.reserve_exact(more);
            data.numbers.reserve_exact(more);
        }
        data.entries.push((key.value, value));
        data.hashes.push(key.hash);
        data.numbers.push(data.next);
        data.next += 1;
        let MapData { table, hashes, .. } = data;
        table.insert_unique(key.hash, index, |&index| hashes[index as usize]);
        let grown = data.cost() - before;
        self.meter.add_bytes(grown);
    }

    /// Remove a key; whether it was there.
    pub fn map_remove(&mut self, map: Value, key: Key) -> bool {
        let Some(index) = self.find(map, key) else { return false };
        let data = &mut self.maps[map.index()];
        if let Ok(entry) = data.table.find_entry(key.hash, |&other| other as usize == index) {
            entry.remove();
        }
        data.entries[index] = (Value::HOLE, Value::UNDEFINED);
        data.removed += 1;
        // Taking the first entry repeatedly must not scan all removed ones each time.
        while data.entries.get(data.head).is_some_and(|&(key, _)| key == Value::HOLE) {
            data.head += 1;
        }
        if data.removed > 32 && data.removed * 2 > data.entries.len() {
            self.compact_map(map);
        }
        true
    }

    /// Remove everything.
    pub fn map_clear(&mut self, map: Value) {
        let data = &mut self.maps[map.index()];
        *data = MapData { next: data.next, ..MapData::default() };
    }

    /// Drop removed entries.
    fn compact_map(&mut self, map: Value) {
        let data = &mut self.maps[map.index()];
        let mut is_live = data.entries.iter().map(|&(key, _)| key != Value::HOLE);
        data.hashes.retain(|_| is_live.next().unwrap_or(false));
        let mut is_live = data.entries.iter().map(|&(key, _)| key != Value::HOLE);
        data.numbers.retain(|_| is_live.next().unwrap_or(false));
        data.entries.retain(|&(key, _)| key != Value::HOLE);
        data.removed = 0;
        data.head = 0;
        data.table.clear();
        let MapData { table, hashes, .. } = data;
        for (index, &hash) in hashes.iter().enumerate() {
            table.insert_unique(hash, index as u32, |&index| hashes[index as usize]);
        }
    }
}
