//! The texts of a program: one piece of memory, however many there are.

use super::TextId;

/// Texts in WTF-8, behind each other.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Texts {
    /// Creates texts with room for so many of usual length.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { bytes: Vec::with_capacity(8 * count), ends: Vec::with_capacity(count) }
    }

    /// Adds a text.
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    /// Returns a text.
    #[must_use]
    pub fn get(&self, id: TextId) -> &[u8] {
        let index = id.0 as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    /// Returns all texts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(TextId(index as u32)))
    }

    /// Returns the number of bytes of all texts.
    #[must_use]
    pub fn total(&self) -> usize {
        self.bytes.len()
    }
}
