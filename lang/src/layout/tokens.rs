//! The list of tokens, in blocks: growing it copies none, and a block is freed when the parser has read its tokens.

use super::Spanned;
use crate::spare;
use crate::token::Token;
use std::cell::Cell;
use std::ops::{Index, IndexMut};

/// Tokens per block. Freeing 64 KiB or more makes glibc tidy its whole heap, so a block is smaller.
const BLOCK: usize = 1 << 10;

thread_local! {
    /// The memory of a block.
    static SPARE: Cell<Vec<Spanned>> = const { Cell::new(Vec::new()) };
}

/// Tokens in the order of the source.
#[derive(Debug)]
pub(crate) struct Tokens {
    full: Vec<Vec<Spanned>>,
    last: Vec<Spanned>,
}

impl Tokens {
    /// An empty list with the capacity that a usual source of this length needs.
    pub(super) fn for_source(bytes: usize) -> Self {
        let mut last: Vec<Spanned> = spare::take(&SPARE);
        last.reserve_exact((bytes * 2 / 5 + 8).min(BLOCK));
        Self { full: Vec::new(), last }
    }

    pub(super) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len()
    }

    #[inline(always)]
    pub(super) fn push(&mut self, token: Spanned) {
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

    /// The tokens with a `(` of no width before those at these indices, and without those that are trivia.
    pub(super) fn with_parentheses(self, mut indices: Vec<usize>) -> Self {
        indices.sort_unstable();
        let mut indices = indices.into_iter().peekable();
        let mut tokens = Self { full: Vec::new(), last: Vec::new() };
        for (index, (start, token, end)) in self.into_iter().enumerate() {
            while indices.next_if_eq(&index).is_some() {
                tokens.push((start, Token::LParen, start));
            }
            if token != Token::Trivia {
                tokens.push((start, token, end));
            }
        }
        tokens
    }

    #[inline(always)]
    pub(super) fn last(&self) -> Option<&Spanned> {
        self.last.last().or_else(|| self.full.last()?.last())
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut Spanned> {
        self.last.last_mut().or_else(|| self.full.last_mut()?.last_mut())
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&Spanned> {
        self.full.get(index / BLOCK).unwrap_or(&self.last).get(index % BLOCK)
    }
}

impl Index<usize> for Tokens {
    type Output = Spanned;
    #[inline]
    fn index(&self, index: usize) -> &Spanned {
        &self.full.get(index / BLOCK).unwrap_or(&self.last)[index % BLOCK]
    }
}

impl IndexMut<usize> for Tokens {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Self::Output {
        &mut self.full.get_mut(index / BLOCK).unwrap_or(&mut self.last)[index % BLOCK]
    }
}

impl IntoIterator for Tokens {
    type Item = Spanned;
    type IntoIter = IntoIter;
    fn into_iter(self) -> Self::IntoIter {
        let mut blocks = self.full;
        blocks.push(self.last);
        IntoIter { block: Vec::new(), read: 0, blocks: blocks.into_iter() }
    }
}

/// Each block is freed, or kept for the next source, behind its last token.
pub(crate) struct IntoIter {
    block: Vec<Spanned>,
    /// How many of its tokens have been read.
    read: usize,
    blocks: std::vec::IntoIter<Vec<Spanned>>,
}

impl Iterator for IntoIter {
    type Item = Spanned;
    // The parts one by one: a copy of the whole, with its padding, is slow to read again.
    #[inline(always)]
    fn next(&mut self) -> Option<Spanned> {
        if self.read == self.block.len() {
            self.next_block();
        }
        let &(start, token, end) = self.block.get(self.read)?;
        self.read += 1;
        Some((start, token, end))
    }
}

impl IntoIter {
    /// Goes to the next block, if there is one. Only the last one may be empty.
    #[cold]
    fn next_block(&mut self) {
        spare::put_back(&SPARE, std::mem::take(&mut self.block));
        self.block = self.blocks.next().unwrap_or_default();
        self.read = 0;
    }
}
