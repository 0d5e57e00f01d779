//! The list of tokens, in blocks: growing it copies none, and a block is freed when the parser has read its tokens.

use super::Spanned;
use std::ops::{Index, IndexMut};

/// Tokens per block. Freeing 64 KiB or more makes glibc tidy its whole heap, so a block is smaller.
const BLOCK: usize = 1 << 10;

/// Tokens in the order of the source.
#[derive(Debug)]
pub(crate) struct Tokens<'s> {
    /// Whether a name is written with escapes.
    pub(crate) has_escaped_names: bool,
    full: Vec<Vec<Spanned<'s>>>,
    last: Vec<Spanned<'s>>,
}

impl<'s> Tokens<'s> {
    /// An empty list with the capacity that a usual source of this length needs.
    pub(super) fn for_source(bytes: usize) -> Self {
        let last = Vec::with_capacity((bytes * 2 / 5 + 8).min(BLOCK));
        Self { has_escaped_names: false, full: Vec::new(), last }
    }

    pub(super) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, token: Spanned<'s>) {
        if self.last.len() == BLOCK {
            self.begin_block();
        }
        self.last.push(token);
    }

    #[cold]
    fn begin_block(&mut self) {
        self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(BLOCK)));
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

    #[inline(always)]
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

impl<'s> IntoIterator for Tokens<'s> {
    type Item = Spanned<'s>;
    type IntoIter = IntoIter<'s>;
    fn into_iter(self) -> Self::IntoIter {
        let mut blocks = self.full;
        blocks.push(self.last);
        IntoIter { block: Vec::new().into_iter(), blocks: blocks.into_iter() }
    }
}

/// Each block is freed behind its last token.
pub(crate) struct IntoIter<'s> {
    block: std::vec::IntoIter<Spanned<'s>>,
    blocks: std::vec::IntoIter<Vec<Spanned<'s>>>,
}

impl<'s> Iterator for IntoIter<'s> {
    type Item = Spanned<'s>;
    #[inline(always)]
    fn next(&mut self) -> Option<Spanned<'s>> {
        self.block.next().or_else(|| self.next_block())
    }
}

impl<'s> IntoIter<'s> {
    /// The first token of the next block. Only the last one may be empty.
    #[cold]
    fn next_block(&mut self) -> Option<Spanned<'s>> {
        self.block = self.blocks.next()?.into_iter();
        self.block.next()
    }
}
