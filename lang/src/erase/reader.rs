//! The tokens of types, for crates that read types instead of erasing them.

use super::cursor::Cursor;
use crate::cook;
use crate::token::Token as T;

/// Kinds of tokens of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeTokenKind {
    /// A name or a keyword.
    Name,
    /// A number.
    Number,
    /// A text in quotes.
    Text,
    /// `{`, `=>` and the like. Each `>` is a token of its own.
    Sign,
    /// A template, a BigInt, or a name with escapes.
    Other,
}

/// A token of a type.
#[derive(Clone, Copy, Debug)]
pub struct TypeToken<'s> {
    /// Its kind.
    pub kind: TypeTokenKind,
    /// Its text in the source.
    pub text: &'s str,
    /// Offset of its first byte.
    pub start: usize,
    /// The text of the comment `/** … */` in front of it.
    pub doc: Option<&'s str>,
}

impl TypeToken<'_> {
    /// Whether it is this sign.
    #[must_use]
    pub fn is(&self, sign: &str) -> bool {
        self.kind == TypeTokenKind::Sign && self.text == sign
    }

    /// Returns the value of a number.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        (self.kind == TypeTokenKind::Number).then(|| cook::number(self.text))
    }

    /// Returns the value of a text in quotes; `None` if an escape in it is invalid.
    #[must_use]
    pub fn string(&self) -> Option<String> {
        if self.kind == TypeTokenKind::Text { cook::plain_string(self.text) } else { None }
    }
}

/// The tokens of a source from an offset on, as types have them: no `/` among them begins a regular expression.
#[derive(Clone)]
pub struct TypeTokens<'s> {
    source: &'s str,
    cursor: Cursor<'s>,
}

impl<'s> TypeTokens<'s> {
    /// Begins at an offset of a source; at its end if no character begins there.
    #[must_use]
    pub fn new(source: &'s str, offset: usize) -> Self {
        let offset = if source.is_char_boundary(offset) { offset } else { source.len() };
        Self { source, cursor: Cursor::new(source, u32::try_from(offset).unwrap_or(u32::MAX), usize::MAX) }
    }

    fn between(&self, start: u32, end: u32) -> &'s str {
        self.source.get(start as usize..end as usize).unwrap_or_default()
    }
}

impl<'s> Iterator for TypeTokens<'s> {
    type Item = TypeToken<'s>;

    fn next(&mut self) -> Option<TypeToken<'s>> {
        let (before, start) = (self.cursor.end(), self.cursor.start());
        let cursor = &mut self.cursor;
        let kind = match cursor.next? {
            T::Number => TypeTokenKind::Number,
            T::String => TypeTokenKind::Text,
            T::BigInt | T::EscapedIdent | T::Backtick => TypeTokenKind::Other,
            _ if cursor.is_any_word() => TypeTokenKind::Name,
            _ => TypeTokenKind::Sign,
        };
        match kind {
            TypeTokenKind::Other if cursor.is(T::Backtick) => cursor.template().ok()?,
            TypeTokenKind::Sign if cursor.text().starts_with('>') => cursor.close_angle().ok()?,
            _ => cursor.advance(),
        }
        let text = self.between(start, self.cursor.end());
        Some(TypeToken { kind, text, start: start as usize, doc: doc(self.between(before, start)) })
    }
}

/// Returns the text of the last comment `/** … */` among the comments between two tokens.
fn doc(mut comments: &str) -> Option<&str> {
    let mut doc = None;
    while let Some(at) = comments.find('/') {
        let comment = &comments[at..];
        comments = match comment.strip_prefix("/*").and_then(|inner| inner.split_once("*/")) {
            Some((inner, behind)) => {
                doc = inner.strip_prefix('*').or(doc);
                behind
            }
            None => comment.split_once(['\n', '\r', '\u{2028}', '\u{2029}']).map_or("", |(_, behind)| behind),
        };
    }
    doc
}
