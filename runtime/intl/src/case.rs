//! The cases of languages whose letters have cases of their own.
//!
//! charged: by the callers, by the texts that they give

use icu_casemap::CaseMapper;
use icu_locale::{LanguageIdentifier, langid};

/// A language whose letters have cases of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCase {
    /// Turkish and Azerbaijani.
    Turkic,
    /// Greek.
    Greek,
    /// Lithuanian.
    Lithuanian,
}

impl OwnCase {
    /// The language of a tag, if it is one of these.
    pub fn of(tag: &str) -> Option<Self> {
        match tag.split('-').next() {
            Some("az" | "tr") => Some(Self::Turkic),
            Some("el") => Some(Self::Greek),
            Some("lt") => Some(Self::Lithuanian),
            _ => None,
        }
    }

    /// A text in lower case.
    pub fn lower(self, text: &str) -> String {
        CaseMapper::new().lowercase_to_string(text, &self.id()).into_owned()
    }

    /// A text in upper case.
    pub fn upper(self, text: &str) -> String {
        CaseMapper::new().uppercase_to_string(text, &self.id()).into_owned()
    }

    fn id(self) -> LanguageIdentifier {
        match self {
            Self::Turkic => langid!("tr"),
            Self::Greek => langid!("el"),
            Self::Lithuanian => langid!("lt"),
        }
    }
}

/// Where a text can be split for changing its case in any language: between two characters of ASCII to which nothing
/// around them matters.
pub fn last_ascii_pair(text: &str) -> Option<usize> {
    let is_plain = |byte: u8| {
        matches!(byte, b' ' | b'\n' | b'0'..=b'9') || byte.is_ascii_alphabetic() && !matches!(byte | 32, b'i' | b'j')
    };
    let pairs = text.as_bytes().windows(2).enumerate();
    pairs.rev().find(|(_, pair)| pair.iter().all(|&byte| is_plain(byte))).map(|(at, _)| at + 1)
}
