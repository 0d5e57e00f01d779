//! Texts on a terminal. What tools, scripts, files and servers say may hold sequences that move the cursor,
//! write to the clipboard or turn lines around: here they become visible.
//!
//! Only for what people read; JSON for programs is not touched.

use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar as _;

/// A text of several lines without anything that a terminal obeys, but for line breaks and tabs.
#[must_use]
pub fn block(text: &str) -> Cow<'_, str> {
    escaped(text, |c| acts(c) && c != '\n' && c != '\t', visible)
}

/// The same in one line.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, acts, visible)
}

/// JSON that means the same, without anything that a terminal obeys: such characters are only in its texts,
/// and become escapes there.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    let is_ours = |c: char| acts(c) && !matches!(c, '\n' | '\t' | '\r');
    escaped(text, is_ours, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// A text of one line that takes at most `columns` of a terminal; what is cut off is an ellipsis.
#[must_use]
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    let mut width = 0;
    // Where the text is cut if it turns out to be too long: with a column for the ellipsis.
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

/// How many columns of a terminal a text of one line takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or_default()).sum()
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_escaped(c) { escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn visible(out: &mut String, c: char) {
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// Whether a terminal does something at this character, or shows a text otherwise than it is: controls, marks
/// of direction, and what is not seen at all.
fn acts(c: char) -> bool {
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
    fn what_acts_is_seen() {
        let hostile = "a\u{1b}]0;x\u{7}\r\u{9b}1m\u{202e}b\nc\td\u{7f}\u{200b}";
        let expected = "a\\u{1b}]0;x\\u{7}\\u{d}\\u{9b}1m\\u{202e}b\nc\td\\u{7f}\\u{200b}";
        assert_eq!(block(hostile), expected);
        assert_eq!(line(hostile), expected.replace('\n', "\\u{a}").replace('\t', "\\u{9}"));
        for usual in ["", "äöü 日本語 👩‍💻 é ﷽", "{\"a\": 1}"] {
            assert!(matches!(line(usual), Cow::Borrowed(_)), "{usual}");
        }
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::Value::from("\u{1b}[1m\u{9b}\u{202e}\u{e0041}\n日");
        let written = json(&value.to_string()).into_owned();
        assert!(!written.chars().any(acts), "{written}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&written).ok(), Some(value));
    }

    #[test]
    fn texts_are_cut_by_what_is_seen() {
        assert_eq!(cut("abcde", 5), "abcde");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!((width("日本e\u{301}"), cut("", 0).len(), cut("x", 0).as_ref()), (5, 0, "…"));
        let many = "e\u{301}".repeat(10);
        assert_eq!(cut(&many, 10), many);
    }
}
