//! The texts of a program, each once, with what is known about them as names.

use super::count;
use super::draft::BindingId;
use crate::program::{self, TextId};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hasher};

/// Interned texts.
pub(super) struct Texts {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    list: program::Texts,
    facts: Vec<Facts>,
}

/// What is known about a text.
pub(super) struct Facts {
    /// The binding of this name that is seen at the position of the walk.
    pub(super) binding: Option<BindingId>,
    /// Whether the script writes a property of this name that may hold a function.
    pub(super) written: bool,
    /// Whether it is a property that is refused, once that was looked up.
    pub(super) refused_property: Option<bool>,
    /// Whether it is a free name that is refused, once that was looked up.
    pub(super) refused_name: Option<bool>,
    /// Its number among the free names, where it is one.
    pub(super) free: Option<u32>,
}

impl Texts {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            table: HashTable::with_capacity(count),
            hasher: DefaultHashBuilder::default(),
            list: program::Texts::with_capacity(count),
            facts: Vec::with_capacity(count),
        }
    }

    /// The number of a text.
    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        let Self { table, hasher, list, facts } = self;
        let key = hash(hasher, text);
        if let Some(&id) = table.find(key, |&id| list.get(TextId(id)) == text) {
            return TextId(id);
        }
        let id = count(facts.len());
        list.push(text);
        facts.push(Facts { binding: None, written: false, refused_property: None, refused_name: None, free: None });
        table.insert_unique(key, id, |&id| hash(hasher, list.get(TextId(id))));
        TextId(id)
    }

    /// The bytes of a text.
    pub(super) fn get(&self, id: TextId) -> &[u8] {
        self.list.get(id)
    }

    /// A text for messages.
    pub(super) fn lossy(&self, id: TextId) -> String {
        String::from_utf8_lossy(self.get(id)).into_owned()
    }

    /// What is known about a text.
    pub(super) fn facts(&mut self, id: TextId) -> &mut Facts {
        &mut self.facts[id.0 as usize]
    }

    /// All texts, and which of them are names of written properties.
    pub(super) fn into_parts(self) -> (program::Texts, Vec<bool>) {
        (self.list, self.facts.into_iter().map(|facts| facts.written).collect())
    }
}

/// The hash of a text, without that of its length: the texts of a table are never parts of one key.
fn hash(hasher: &DefaultHashBuilder, text: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(text);
    hasher.finish()
}
