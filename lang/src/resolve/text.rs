//! The texts of a program, each once, with what is known about them as names.

use super::count;
use crate::program::{self, BindingId, TextId};
use hashbrown::DefaultHashBuilder;
use std::hash::{BuildHasher, Hasher};

/// Interned texts.
pub(super) struct Texts {
    table: Table,
    hasher: DefaultHashBuilder,
    list: program::Texts,
    facts: Vec<Facts>,
}

/// Hashes with their texts: a power of two of entries, at most half of them in use, each at the first free one from the
/// index on that the hash selects.
#[derive(Default)]
struct Table(Vec<(u32, Option<TextId>)>);

impl Table {
    /// With room for so many texts.
    fn with_capacity(count: usize) -> Self {
        Self(vec![(0, None); (2 * count).next_power_of_two().max(16)])
    }

    #[cold]
    fn grow(&mut self) {
        let len = 2 * self.0.len();
        let before = std::mem::replace(&mut self.0, vec![(0, None); len]);
        for entry in before {
            if entry.1.is_some() {
                let mut at = entry.0 as usize & (len - 1);
                while self.0[at].1.is_some() {
                    at = (at + 1) & (len - 1);
                }
                self.0[at] = entry;
            }
        }
    }
}

/// The facts on a text.
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
    /// Whether calls of the method of this name run no function of the script unless it writes such a property, once
    /// that was looked up.
    pub(super) plain_method: Option<bool>,
    /// Whether the global of this name is a plain call; unknown until it is looked up.
    pub(super) plain_global: Option<bool>,
    /// Whether the method of this name of a global is a plain call, with that global, which was looked up last.
    pub(super) plain_static: Option<(TextId, bool)>,
}

impl Texts {
    /// With room for so many texts.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            table: Table::with_capacity(count),
            hasher: DefaultHashBuilder::default(),
            list: program::Texts::with_capacity(count.min(64)),
            facts: Vec::with_capacity(count),
        }
    }

    /// Returns the number of a text.
    pub(super) fn intern(&mut self, text: &[u8]) -> TextId {
        let key = hash(&self.hasher, text);
        let mut at = key as usize;
        loop {
            at &= self.table.0.len() - 1;
            match self.table.0[at] {
                (known, Some(id)) if known == key && is_same(self.list.get(id), text) => return id,
                (_, Some(_)) => at += 1,
                (_, None) => return self.add(text, key, at),
            }
        }
    }

    /// Adds a text, whose place in the table is this, and returns its number.
    fn add(&mut self, text: &[u8], key: u32, at: usize) -> TextId {
        let id = TextId(count(self.facts.len()));
        self.list.push(text);
        self.facts.push(Facts {
            binding: None,
            written: false,
            refused_property: None,
            refused_name: None,
            free: None,
            plain_method: None,
            plain_global: None,
            plain_static: None,
        });
        self.table.0[at] = (key, Some(id));
        if self.facts.len() * 2 > self.table.0.len() {
            self.table.grow();
        }
        id
    }

    /// Returns the bytes of a text.
    pub(super) fn get(&self, id: TextId) -> &[u8] {
        self.list.get(id)
    }

    /// Returns a text for messages.
    pub(super) fn lossy(&self, id: TextId) -> String {
        String::from_utf8_lossy(self.get(id)).into_owned()
    }

    /// Returns the facts on a text.
    pub(super) fn facts(&mut self, id: TextId) -> &mut Facts {
        &mut self.facts[id.0 as usize]
    }

    /// Returns for each text whether it is the name of a written property.
    pub(super) fn written(&self) -> Vec<bool> {
        self.facts.iter().map(|facts| facts.written).collect()
    }

    /// Whether a property was written whose methods were taken for built-in ones.
    pub(super) fn has_written_plain(&self) -> bool {
        self.facts.iter().any(|facts| facts.written && facts.plain_method == Some(true))
    }

    /// All texts.
    pub(super) fn into_list(self) -> program::Texts {
        self.list
    }
}

/// Returns the hash of a text, without that of its length: the texts of a table are never parts of one key.
fn hash(hasher: &DefaultHashBuilder, text: &[u8]) -> u32 {
    let mut hasher = hasher.build_hasher();
    hasher.write(text);
    hasher.finish() as u32
}

/// Whether two texts are the same. Most are short, and are compared without a loop or a call.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        0..4 => one.iter().eq(other),
        4..8 => one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk(),
        8..=16 => one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk(),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn texts_of_all_lengths_are_compared() {
        let text: Vec<u8> = (0..40).collect();
        for len in 0..text.len() {
            let one = &text[..len];
            assert!(is_same(one, one) && !is_same(one, &text[..=len]));
            for at in 0..len {
                let mut other = one.to_vec();
                other[at] ^= 1;
                assert!(!is_same(one, &other), "{len} {at}");
            }
        }
    }
}
