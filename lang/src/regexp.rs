//! Patterns of regular expressions (ECMAScript 22.2.1 and Annex B): from text to a tree.
//!
//! The tree has the needs of a matcher and no more. Case-insensitive characters are sets already, names of groups are
//! numbers, and sets of a class are evaluated. Nothing is matched here.

mod case;
mod class;
mod error;
mod escape;
mod group;
mod parse;
mod property;
mod set;
mod strings;
#[cfg(test)]
mod tests;

pub use case::{canonicalize, is_word};
pub use error::{Error, Wrong};
pub use parse::{parse, validate};
pub use set::CharSet;

use std::sync::Arc;

/// Returns the message of V8 for a pattern that is no regular expression.
#[must_use]
pub fn message(source: &str, flags: Flags, error: Error) -> String {
    format!("Invalid regular expression: /{source}/{flags}: {}", error.wrong.text())
}

/// The flags of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// `d`
    pub has_indices: bool,
    /// `g`
    pub global: bool,
    /// `i`
    pub ignore_case: bool,
    /// `m`
    pub multiline: bool,
    /// `s`
    pub dot_all: bool,
    /// `u`
    pub unicode: bool,
    /// `v`
    pub unicode_sets: bool,
    /// `y`
    pub sticky: bool,
}

impl Flags {
    /// Reads flags; nothing where they are wrong: unknown, twice, or `u` with `v`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut flags = Self::default();
        for &letter in text {
            let flag = match letter {
                b'd' => &mut flags.has_indices,
                b'g' => &mut flags.global,
                b'i' => &mut flags.ignore_case,
                b'm' => &mut flags.multiline,
                b's' => &mut flags.dot_all,
                b'u' => &mut flags.unicode,
                b'v' => &mut flags.unicode_sets,
                b'y' => &mut flags.sticky,
                _ => return None,
            };
            if std::mem::replace(flag, true) {
                return None;
            }
        }
        (!(flags.unicode && flags.unicode_sets)).then_some(flags)
    }

    /// Whether characters are code points, not code units.
    #[must_use]
    pub fn is_unicode(self) -> bool {
        self.unicode || self.unicode_sets
    }
}

/// The flags in the order of the alphabet, as `flags` gives them.
impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [
            (self.has_indices, "d"),
            (self.global, "g"),
            (self.ignore_case, "i"),
            (self.multiline, "m"),
            (self.dot_all, "s"),
            (self.unicode, "u"),
            (self.unicode_sets, "v"),
            (self.sticky, "y"),
        ];
        all.into_iter().filter(|(set, _)| *set).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

/// A pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The pattern as a whole.
    pub root: Node,
    /// How many capturing groups there are.
    pub groups: u32,
    /// The names of groups with their numbers, in the order of the text, as UTF-16.
    pub names: Vec<(Vec<u16>, u32)>,
    /// The flags it was read with.
    pub flags: Flags,
}

/// A part of a pattern. Characters are code points where [`Flags::is_unicode`], else code units.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nothing: matches everywhere.
    Empty,
    /// `a`
    Char(u32),
    /// `[a-z]`, `.`, `\d`, and a letter whose case does not matter
    Set(Arc<CharSet>),
    /// `ab`
    Sequence(Vec<Node>),
    /// `a|b`
    Alternatives(Vec<Node>),
    /// `(a)`
    Capture(Box<Node>, u32),
    /// `a*`
    Repeat(Box<Repeat>),
    /// `^`, `$`, `\b`, `\B`
    Assertion(Assertion),
    /// `(?=a)`, `(?!a)`, `(?<=a)`, `(?<!a)`
    Look(Box<Look>),
    /// `\1`, `\k<name>`
    Reference(u32),
}

/// A quantified part.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The repeated part.
    pub body: Node,
    /// The least number of repetitions.
    pub min: u32,
    /// The greatest number; absent: unlimited.
    pub max: Option<u32>,
    /// Whether it is greedy.
    pub greedy: bool,
    /// The first group in the body, and the first one behind it.
    pub groups: (u32, u32),
}

/// A condition on a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assertion {
    /// `^`
    Start,
    /// `$`
    End,
    /// `^` with the flag `m`
    LineStart,
    /// `$` with the flag `m`
    LineEnd,
    /// `\b`
    Boundary,
    /// `\B`
    NoBoundary,
}

/// A lookahead or lookbehind.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The part that must match there.
    pub body: Node,
    /// Whether it is a lookbehind.
    pub behind: bool,
    /// Whether it must not match.
    pub negative: bool,
}
