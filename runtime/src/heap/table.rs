//! The properties of an object that is a table: one with many or deleted keys.

use super::{block, index_cost};
use crate::value::Value;
use crate::value::atom::Atom;
use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;
use std::ops::{Deref, DerefMut};

type Properties = IndexMap<Atom, Value, DefaultHashBuilder>;

/// Properties in the order they were made.
pub struct Table {
    properties: Properties,
    /// The most properties that it had room for. A table does not shrink, but does not count removed places as room.
    room: usize,
}

impl Table {
    /// One with room for so many properties.
    pub fn with_capacity(properties: usize) -> Self {
        Self::from(Properties::with_capacity_and_hasher(properties, DefaultHashBuilder::default()))
    }

    /// Set a property; gives how many bytes that has taken.
    pub fn set(&mut self, key: Atom, value: Value) -> usize {
        self.properties.insert(key, value);
        if self.properties.capacity() <= self.room {
            return 0;
        }
        let before = self.cost();
        self.room = self.properties.capacity();
        self.cost() - before
    }

    /// Bytes it takes beside itself: hashes, keys and values, and the indices.
    pub fn cost(&self) -> usize {
        block(self.room * size_of::<(usize, Atom, Value)>()) + index_cost::<usize>(self.room)
    }
}

impl From<Properties> for Table {
    fn from(properties: Properties) -> Self {
        Self { room: properties.capacity(), properties }
    }
}

impl FromIterator<(Atom, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (Atom, Value)>>(properties: I) -> Self {
        Self::from(Properties::from_iter(properties))
    }
}

impl Deref for Table {
    type Target = Properties;
    #[inline]
    fn deref(&self) -> &Properties {
        &self.properties
    }
}

impl DerefMut for Table {
    #[inline]
    fn deref_mut(&mut self) -> &mut Properties {
        &mut self.properties
    }
}
