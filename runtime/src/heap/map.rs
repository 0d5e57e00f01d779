//! The data of `Map` and `Set`: entries in order of insertion, found by hash.

use super::Heap;
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

/// Entries in order of insertion. Removed ones are [`Value::HOLE`] until the next compaction, so that
/// iterators keep their place.
#[derive(Default)]
pub struct MapData {
    entries: Vec<(Value, Value)>,
    table: HashTable<u32>,
    hashes: Vec<u64>,
    hasher: DefaultHashBuilder,
    removed: usize,
}

impl MapData {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.removed
    }

    /// The first entry at or behind a position, with the position behind it.
    pub fn entry_from(&self, mut position: usize) -> Option<(Value, Value, usize)> {
        while let Some(&(key, value)) = self.entries.get(position) {
            position += 1;
            if key != Value::HOLE {
                return Some((key, value, position));
            }
        }
        None
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = (Value, Value)> + '_ {
        self.entries.iter().copied().filter(|&(key, _)| key != Value::HOLE)
    }

    pub(super) fn raw(&self) -> &[(Value, Value)] {
        &self.entries
    }

    pub(super) fn cost(&self) -> usize {
        96 + self.entries.capacity() * 24 + self.table.capacity() * 5
    }

    pub(super) fn release(&mut self) {
        *self = Self::default();
    }
}

impl Heap {
    /// The key that a value is in the map of that handle.
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
        data.entries.push((key.value, value));
        data.hashes.push(key.hash);
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
        if data.removed > 32 && data.removed * 2 > data.entries.len() {
            self.compact_map(map);
        }
        true
    }

    /// Remove everything.
    pub fn map_clear(&mut self, map: Value) {
        self.maps[map.index()].release();
        for iterator in &mut self.iterators.items {
            if iterator.source == map {
                iterator.position = 0;
            }
        }
    }

    /// Drop the places of removed entries, and move the iterators along.
    fn compact_map(&mut self, map: Value) {
        let data = &mut self.maps[map.index()];
        let before: Vec<usize> = data
            .entries
            .iter()
            .scan(0, |live, &(key, _)| {
                let here = *live;
                *live += usize::from(key != Value::HOLE);
                Some(here)
            })
            .collect();
        for iterator in &mut self.iterators.items {
            if iterator.source == map {
                iterator.position = before.get(iterator.position).copied().unwrap_or(data.len());
            }
        }
        let mut hashes = std::mem::take(&mut data.hashes).into_iter();
        data.hashes.reserve(data.entries.len() - data.removed);
        for &(key, _) in &data.entries {
            let hash = hashes.next().unwrap_or(0);
            if key != Value::HOLE {
                data.hashes.push(hash);
            }
        }
        data.entries.retain(|&(key, _)| key != Value::HOLE);
        data.removed = 0;
        data.table.clear();
        let MapData { table, hashes, .. } = data;
        for (index, &hash) in hashes.iter().enumerate() {
            table.insert_unique(hash, index as u32, |&index| hashes[index as usize]);
        }
    }
}
