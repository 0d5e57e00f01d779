//! Lists of texts (ECMA-402 13).
//!
//! bounded: by a pattern

use crate::pack::{self, PHRASES};

/// The values of the option `type`.
pub const TYPES: &[&str] = &["conjunction", "disjunction", "unit"];
/// The values of the option `style`.
pub const STYLES: &[&str] = &["long", "short", "narrow"];

/// How the items of a list are joined.
#[derive(Clone, Copy, Debug)]
pub struct Patterns {
    language: &'static str,
    two: &'static str,
    start: &'static str,
    middle: &'static str,
    end: &'static str,
}

/// The texts before all items so far, between these and the next item, and behind that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Before all items so far.
    pub before: &'static str,
    /// Between these and the next item.
    pub between: &'static str,
    /// Behind that one.
    pub behind: &'static str,
}

impl Patterns {
    /// Those of a locale, by the name of its data, and of indices of [`TYPES`] and [`STYLES`].
    pub fn new(data: &'static str, kind: usize, style: usize) -> Self {
        let (kind, style) = (["s", "o", "u"][kind], ["l", "s", "n"][style]);
        let patterns = PHRASES.get(data, &format!("l/{kind}{style}")).unwrap_or_default();
        let [two, start, middle, end] = pack::fields(patterns);
        Self { language: data.split('-').next().unwrap_or_default(), two, start, middle, end }
    }

    /// How an item is joined to those before it: its index, which is not 0, the number of items, and its text in UTF-8,
    /// of which the first bytes matter.
    pub fn between(&self, index: usize, count: usize, item: &[u8]) -> Join {
        let pattern = match index {
            _ if index + 1 == count && count == 2 => self.fitting(self.two, item),
            _ if index + 1 == count => self.fitting(self.end, item),
            1 => self.start,
            _ => self.middle,
        };
        let (before, rest) = pattern.split_once("{0}").unwrap_or(("", pattern));
        let (between, behind) = rest.split_once("{1}").unwrap_or((rest, ""));
        Join { before, between, behind }
    }

    /// The pattern that fits what comes next: in Spanish "y" becomes "e" and "o" becomes "u" before the same sound, in
    /// Hebrew a hyphen stands before another script.
    fn fitting(&self, pattern: &'static str, item: &[u8]) -> &'static str {
        let at = |index: usize| item.get(index).map(u8::to_ascii_lowercase);
        match (self.language, pattern) {
            ("es", "{0} y {1}") => {
                let is_i = at(0) == Some(b'i')
                    || at(0) == Some(b'h') && at(1) == Some(b'i') && !matches!(at(2), Some(b'a' | b'e'));
                if is_i { "{0} e {1}" } else { pattern }
            }
            ("es", "{0} o {1}") => {
                let is_eleven = item.starts_with(b"11") && matches!(at(2), None | Some(b' '));
                let is_o =
                    matches!(at(0), Some(b'o' | b'8')) || at(0) == Some(b'h') && at(1) == Some(b'o') || is_eleven;
                if is_o { "{0} u {1}" } else { pattern }
            }
            ("he", "{0} \u{5d5}{1}") if !begins_in_hebrew(item) => "{0} \u{5d5}-{1}",
            _ => pattern,
        }
    }
}

/// Whether a text is empty or begins with a letter or mark of Hebrew: U+0591 to U+05F4, U+FB1D to U+FB4F.
fn begins_in_hebrew(item: &[u8]) -> bool {
    match *item {
        [] => true,
        [0xD6, second, ..] => second >= 0x91,
        [0xD7, second, ..] => second <= 0xB4,
        [0xEF, 0xAC, third, ..] => third >= 0x9D,
        [0xEF, 0xAD, third, ..] => third <= 0x8F,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(data: &'static str, kind: usize, items: &[&str]) -> String {
        let patterns = Patterns::new(data, kind, 0);
        let mut out = items[0].to_owned();
        for (index, item) in items.iter().enumerate().skip(1) {
            let Join { before, between, behind } = patterns.between(index, items.len(), item.as_bytes());
            out = [before, &out, between, item, behind].concat();
        }
        out
    }

    #[test]
    fn a_pattern_fits_the_next_item() {
        assert_eq!(joined("en", 0, &["a", "b", "c"]), "a, b, and c");
        assert_eq!(joined("es", 0, &["padre", "hijo"]), "padre e hijo");
        assert_eq!(joined("es", 0, &["nieve", "hielo"]), "nieve y hielo");
        assert_eq!(joined("es-MX", 1, &["siete", "ocho"]), "siete u ocho");
        assert_eq!(joined("he", 0, &["א", "ב"]), "א וב");
        assert_eq!(joined("he", 0, &["א", "b"]), "א ו-b");
    }

    #[test]
    fn hebrew_is_a_range_of_code_points() {
        let is_hebrew = |c: char| matches!(u32::from(c), 0x591..=0x5f4 | 0xfb1d..=0xfb4f);
        for c in '\0'..=char::MAX {
            assert_eq!(begins_in_hebrew(c.encode_utf8(&mut [0; 4]).as_bytes()), is_hebrew(c), "{c:?}");
        }
    }
}
