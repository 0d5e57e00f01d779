//! The texts of a program, each once, with what is known about them as names.

use super::count;
use super::scope::NONE;
use crate::program::{self, TextId};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Interned texts.
pub(super) struct Texts {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    list: program::Texts,
    facts: Vec<Facts>,
}

/// What is known about a text.
pub(super) struct Facts {
    /// The binding of this name that is seen at the place of the walk, or [`NONE`].
    pub(super) binding: u32,
    /// Whether the script writes a property of this name that may hold a function.
    pub(super) written: bool,
    /// Whether it is a property that is refused.
    pub(super) refused_property: Known,
    /// Whether it is a free name that is refused.
    pub(super) refused_name: Known,
    /// Its number among the free names.
    pub(super) free: u32,
}

/// The answer to a question that may not have been asked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Not,
    Yes,
    No,
}

impl From<bool> for Known {
    fn from(answer: bool) -> Self {
        if answer { Self::Yes } else { Self::No }
    }
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
        let hash = hasher.hash_one(text);
        if let Some(&id) = table.find(hash, |&id| list.get(TextId(id)) == text) {
            return TextId(id);
        }
        let id = count(facts.len());
        list.push(text);
        facts.push(Facts {
            binding: NONE,
            written: false,
            refused_property: Known::Not,
            refused_name: Known::Not,
            free: NONE,
        });
        table.insert_unique(hash, id, |&id| hasher.hash_one(list.get(TextId(id))));
        TextId(id)
    }

    /// The bytes of a text.
    pub(super) fn get(&self, id: TextId) -> &[u8] {
        self.list.get(id)
    }

    /// A text as it is shown in messages.
    pub(super) fn show(&self, id: TextId) -> String {
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
