//! The list of tokens, in blocks: growing it copies none, and a block is freed when the parser has read its tokens.

use super::Spanned;
use std::ops::{Index, IndexMut};

/// Tokens per block.
const BLOCK: usize = 1 << 11;

/// Tokens in the order of the source.
#[derive(Debug)]
pub(crate) struct Tokens<'s> {
    full: Vec<Vec<Spanned<'s>>>,
    last: Vec<Spanned<'s>>,
}

impl<'s> Tokens<'s> {
    /// An empty list with the capacity that a usual source of this length needs.
    pub(super) fn for_source(bytes: usize) -> Self {
        Self { full: Vec::new(), last: Vec::with_capacity((bytes * 2 / 5 + 8).min(BLOCK)) }
    }

    pub(super) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len()
    }

    #[inline]
    pub(super) fn push(&mut self, token: Spanned<'s>) {
        if self.last.len() == BLOCK {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(BLOCK)));
        }
        self.last.push(token);
    }

    pub(super) fn pop(&mut self) {
        if self.last.is_empty() {
            self.last = self.full.pop().unwrap_or_default();
        }
        self.last.pop();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        while self.len() > len {
            self.pop();
        }
    }

    #[inline]
    pub(super) fn last(&self) -> Option<&Spanned<'s>> {
        self.last.last().or_else(|| self.full.last()?.last())
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut Spanned<'s>> {
        self.last.last_mut().or_else(|| self.full.last_mut()?.last_mut())
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Spanned<'s>> {
        self.full.get(index / BLOCK).unwrap_or(&self.last).get(index % BLOCK)
    }
}

impl<'s> Index<usize> for Tokens<'s> {
    type Output = Spanned<'s>;
    #[inline]
    fn index(&self, index: usize) -> &Spanned<'s> {
        &self.full.get(index / BLOCK).unwrap_or(&self.last)[index % BLOCK]
    }
}

impl IndexMut<usize> for Tokens<'_> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Self::Output {
        &mut self.full.get_mut(index / BLOCK).unwrap_or(&mut self.last)[index % BLOCK]
    }
}

/// Each block is freed behind its last token.
impl<'s> IntoIterator for Tokens<'s> {
    type Item = Spanned<'s>;
    type IntoIter =
        std::iter::Chain<std::iter::Flatten<std::vec::IntoIter<Vec<Spanned<'s>>>>, std::vec::IntoIter<Spanned<'s>>>;
    fn into_iter(self) -> Self::IntoIter {
        self.full.into_iter().flatten().chain(self.last)
    }
}
