//! Escapes untrusted text for a terminal. Text of tools, scripts, files and servers may contain sequences that move the
//! cursor, write to the clipboard or reverse the direction of text. Here they become visible escapes.
//!
//! This is for output that people read. JSON for programs is not changed.

use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar as _;

/// Escapes control characters in a text of several lines, except for line breaks and tabs.
#[must_use]
pub fn escape_block(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_unsafe(c) && c != '\n' && c != '\t', push_visible)
}

/// Escapes control characters in a text, also line breaks and tabs.
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe, push_visible)
}

/// Escapes control characters in JSON without changing its meaning: they only occur in strings, where JSON has
/// escapes for them.
#[must_use]
pub fn escape_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_unsafe(c) && !matches!(c, '\n' | '\t' | '\r');
    escape(text, is_escaped, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Truncates a line to `columns` columns of a terminal. A truncated line ends with an ellipsis.
#[must_use]
pub fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    let mut width = 0;
    // The bytes to keep if the text turns out to be too long, leaving a column for the ellipsis.
    let mut kept = 0;
    for (at, c) in text.char_indices() {
        width += c.width().unwrap_or_default();
        if width < columns {
            kept = at + c.len_utf8();
        }
        if width > columns {
            return Cow::Owned(format!("{}…", &text[..kept]));
        }
    }
    Cow::Borrowed(text)
}

/// Returns how many columns of a terminal a line takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or_default()).sum()
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool, push: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_escaped(c) { push(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn push_visible(out: &mut String, c: char) {
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// Whether a character controls the terminal, changes the direction of text, or is invisible.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_visible() {
        let hostile = "a\u{1b}]0;x\u{7}\r\u{9b}1m\u{202e}b\nc\td\u{7f}\u{200b}";
        let expected = "a\\u{1b}]0;x\\u{7}\\u{d}\\u{9b}1m\\u{202e}b\nc\td\\u{7f}\\u{200b}";
        assert_eq!(escape_block(hostile), expected);
        assert_eq!(escape_line(hostile), expected.replace('\n', "\\u{a}").replace('\t', "\\u{9}"));
        for usual in ["", "äöü 日本語 👩‍💻 é ﷽", "{\"a\": 1}"] {
            assert!(matches!(escape_line(usual), Cow::Borrowed(_)), "{usual}");
        }
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::Value::from("\u{1b}[1m\u{9b}\u{202e}\u{e0041}\n日");
        let written = escape_json(&value.to_string()).into_owned();
        assert!(!written.chars().any(is_unsafe), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).ok(), Some(value));
    }

    #[test]
    fn text_is_truncated_by_its_width() {
        assert_eq!(truncate("abcde", 5), "abcde");
        assert_eq!(truncate("abcdef", 5), "abcd…");
        assert_eq!(truncate("日本語", 6), "日本語");
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!((width("日本e\u{301}"), truncate("", 0).len(), truncate("x", 0).as_ref()), (5, 0, "…"));
        let many = "e\u{301}".repeat(10);
        assert_eq!(truncate(&many, 10), many);
    }
}
