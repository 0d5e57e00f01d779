//! Parts of secrets beside a mark that says that a text was cut there. Code that cuts a text may not know the secrets,
//! and a part of one is found by nothing else.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::OnceLock;

/// The mark of a cut.
const MARK: char = '…';
/// The text before the end of a text whose middle was cut out.
const BEFORE_END: &str = " bytes, cut) …";
/// The shortest part that is masked, in bytes. A shorter one says little, and occurs by accident.
const MIN_PART_BYTES: usize = 4;
/// How many marks of a text are looked at, from its beginning and from its end. A text that was cut has one, so the others are
/// the text's own.
const MAX_MARKS: usize = 128;
/// How many bytes base64 encodes together.
const GROUP: usize = 3;

/// The characters that `encodeURIComponent` encodes.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The spellings of secrets of which a part may stand beside a mark: those that one encoding makes, also within JSON.
pub(super) struct Spellings {
    secrets: Vec<String>,
    /// Only made when a text has a mark: they take many times the memory of the secrets.
    all: OnceLock<Vec<String>>,
}

impl Spellings {
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        Self { secrets: secrets.map(str::to_owned).collect(), all: OnceLock::new() }
    }

    fn all(&self) -> &[String] {
        self.all.get_or_init(|| Self::of(&self.secrets))
    }

    fn of(secrets: &[String]) -> Vec<String> {
        let mut spellings = Vec::new();
        for secret in secrets {
            spellings.push(secret.clone());
            for (set, is_form) in [(NON_ALPHANUMERIC, false), (COMPONENT, false), (COMPONENT, true)] {
                let percent = utf8_percent_encode(secret, set).to_string();
                let percent = if is_form { percent.replace("%20", "+") } else { percent };
                spellings.push(with_lower_escapes(&percent));
                spellings.push(percent);
            }
            spellings.push(html(secret, "&#39;"));
            spellings.push(html(secret, "'"));
            for [upper, lower] in each_letter(secret) {
                spellings.push(upper);
                spellings.push(lower);
            }
            for alphabet in [STANDARD, URL_SAFE] {
                let engine = GeneralPurpose::new(&alphabet, NO_PAD);
                // At each offset within encoded data, the letters that depend on the secret only.
                for skipped in 0..GROUP {
                    let rest = secret.as_bytes().get(skipped..).unwrap_or_default();
                    spellings.push(engine.encode(&rest[..rest.len() - rest.len() % GROUP]));
                }
            }
        }
        // What is cut is often JSON.
        let in_json: Vec<String> = spellings.iter().map(|spelling| json(spelling)).collect();
        spellings.extend(in_json);
        spellings.sort_unstable();
        spellings.dedup();
        spellings.retain(|spelling| spelling.len() > MIN_PART_BYTES);
        spellings
    }

    /// Replaces parts beside marks by `mask`. Returns `None` if there are none.
    pub(super) fn mask(&self, text: &str, mask: &str) -> Option<String> {
        if !text.contains(MARK) {
            return None;
        }
        let mut out = String::new();
        let mut done = 0;
        let marks: Vec<usize> = text.match_indices(MARK).map(|(at, _)| at).collect();
        let last = marks.len().saturating_sub(MAX_MARKS).max(MAX_MARKS.min(marks.len()));
        let looked_at = marks.iter().take(MAX_MARKS).chain(&marks[last..]).copied();
        for at in looked_at {
            if at < done {
                continue;
            }
            let length = self.longest(|spelling, length| text.as_bytes()[done..at].ends_with(&spelling[..length]));
            let start = text.floor_char_boundary(at - length);
            out.push_str(&text[done..start]);
            if length > 0 {
                out.push_str(mask);
            }
            let mut end = at + MARK.len_utf8();
            out.push_str(&text[at..end]);
            if text[..end].ends_with(BEFORE_END) {
                let rest = &text.as_bytes()[end..];
                let length = self.longest(|spelling, length| rest.starts_with(&spelling[spelling.len() - length..]));
                if length > 0 {
                    out.push_str(mask);
                    end = text.ceil_char_boundary(end + length);
                }
            }
            done = end;
        }
        out.push_str(&text[done..]);
        (out != text).then_some(out)
    }

    /// Returns the length of the longest part that `is_there`; 0 if there is none.
    fn longest(&self, is_there: impl Fn(&[u8], usize) -> bool) -> usize {
        let longest_of = |spelling: &String| {
            let bytes = spelling.as_bytes();
            (MIN_PART_BYTES..bytes.len()).rev().find(|&length| is_there(bytes, length)).unwrap_or(0)
        };
        self.all().iter().map(longest_of).max().unwrap_or(0)
    }
}

/// Returns a text whose escapes of addresses have small letters.
fn with_lower_escapes(percent: &str) -> String {
    let mut parts = percent.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // All of them are of two digits.
        let (digits, rest) = part.split_at(part.floor_char_boundary(2));
        out.extend(["%", &digits.to_ascii_lowercase(), rest]);
    }
    out
}

/// Returns a text as in a string of JSON.
fn json(text: &str) -> String {
    let json = Value::from(text).to_string();
    json[1..json.len() - 1].to_owned()
}

fn html(text: &str, apostrophe: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    escaped.replace('\'', apostrophe)
}

/// Returns the spellings that encode each letter or byte, with capitals and with small letters.
fn each_letter(secret: &str) -> [[String; 2]; 5] {
    let [mut hex, mut percent, mut json, mut html, mut html_hex] = <[[String; 2]; 5]>::default();
    // Writing to a text does not fail.
    for byte in secret.bytes() {
        let _ = (write!(hex[0], "{byte:02X}"), write!(hex[1], "{byte:02x}"));
        let _ = (write!(percent[0], "%{byte:02X}"), write!(percent[1], "%{byte:02x}"));
    }
    for unit in secret.encode_utf16() {
        let _ = (write!(json[0], "\\u{unit:04X}"), write!(json[1], "\\u{unit:04x}"));
    }
    for letter in secret.chars().map(u32::from) {
        let _ = write!(html[0], "&#{letter};");
        let _ = (write!(html_hex[0], "&#x{letter:X};"), write!(html_hex[1], "&#x{letter:x};"));
    }
    [hex, percent, json, html, html_hex]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_beside_marks_are_masked() {
        let spellings = Spellings::new(["s3cret \"Välue\"/with+more".to_owned()].iter().map(String::as_str));
        let mask = |text: &str| spellings.mask(text, "[secret]");
        for (text, expected) in [
            ("key: s3cret \"Väl… (90 bytes, cut) …th+more end", "key: [secret]… (90 bytes, cut) …[secret] end"),
            ("a s3cre… [cut: 100000 bytes in all]", "a [secret]… [cut: 100000 bytes in all]"),
            ("a s3cret%20%22… (90 bytes, cut) …nothing", "a [secret]… (90 bytes, cut) …nothing"),
            ("733363726574… (90 bytes, cut) …", "[secret]… (90 bytes, cut) …"),
            ("czNjcmV0… (90 bytes, cut) …", "[secret]… (90 bytes, cut) …"),
            ("s3cret \\\"V… x", "[secret]… x"),
            ("&#115;&#51;&#99;… x", "[secret]… x"),
            ("s3cret &quot;V… (90 bytes, cut) …#x6D;&#x6F;&#x72;&#x65;", "[secret]… (90 bytes, cut) …[secret]"),
            ("\\u0073\\u0033\\u00… x", "[secret]… x"),
            ("s3cret+%22V%C3%A… (90 bytes, cut) …c3%a4lue%22%2fwith%2bmore", "[secret]… (90 bytes, cut) …[secret]"),
            ("%73%33%63… x", "[secret]… x"),
            (r"\\u0073\\u0033\\u00… x", "[secret]… x"),
        ] {
            assert_eq!(mask(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["s3cret", "s3c… (90 bytes, cut) …re", "a … b", "more … s3cret", ""] {
            assert_eq!(mask(text), None, "{text}");
        }
    }
}
