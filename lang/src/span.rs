//! Where something stands in the source.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A range of byte offsets in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the range from `start` to `end`.
    #[must_use]
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the smallest range that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the text at this range, or nothing where the range does not fit the source.
    #[must_use]
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: offset(range.start), end: offset(range.end) }
    }
}

impl From<Range<u32>> for Span {
    fn from(range: Range<u32>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// Returns a byte offset as spans keep it; sources are limited to far less than 4 GiB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A position in the source as people count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Line, from 1. `\n`, `\r`, `\r\n`, U+2028 and U+2029 end lines.
    pub line: u32,
    /// Column in UTF-16 code units, from 1.
    pub column: u32,
}

impl Location {
    /// Returns the line and column of a byte offset.
    #[must_use]
    pub fn of(source: &str, at: u32) -> Self {
        let mut location = Self { line: 1, column: 1 };
        let mut characters = source.char_indices().peekable();
        while let Some((offset, character)) = characters.next() {
            if offset >= at as usize {
                break;
            }
            match character {
                '\r' if characters.peek().is_some_and(|&(_, next)| next == '\n') => {}
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => {
                    location.line += 1;
                    location.column = 1;
                }
                _ => location.column += character.len_utf16() as u32,
            }
        }
        location
    }
}
