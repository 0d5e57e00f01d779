//! Escape sequences in strings, templates and names.
//!
//! Texts are WTF-8: a lone surrogate is three bytes.

use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use std::borrow::Cow;
use std::str::Chars;

/// Returns a text with its escapes decoded; `start` is its offset.
pub(super) fn text(source: &str, start: u32) -> Result<Cow<'_, [u8]>> {
    if !source.contains('\\') {
        return Ok(Cow::Borrowed(source.as_bytes()));
    }
    let mut value = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('\\') {
        value.extend_from_slice(&rest.as_bytes()[..at]);
        let offset = start + super::len(source) - super::len(&rest[at..]);
        let mut chars = rest[at + 1..].chars();
        escape(&mut chars, &mut value).map_err(|message| {
            let length = rest.len() - at - chars.as_str().len();
            Diagnostic::syntax(message, Span::new(offset, offset + u32::try_from(length).unwrap_or(2).max(2)))
        })?;
        rest = chars.as_str();
    }
    value.extend_from_slice(rest.as_bytes());
    Ok(Cow::Owned(value))
}

/// Returns a name with its escapes decoded.
pub(crate) fn name(source: &str, start: u32) -> Result<String> {
    let invalid = || Diagnostic::syntax("invalid escape in a name", super::span_of(source, start));
    String::from_utf8(text(source, start)?.into_owned()).map_err(|_| Box::new(invalid()))
}

/// Decodes one escape sequence behind its backslash.
fn escape(chars: &mut Chars<'_>, value: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
    match chars.next() {
        Some('n') => value.push(b'\n'),
        Some('t') => value.push(b'\t'),
        Some('r') => value.push(b'\r'),
        Some('b') => value.push(8),
        Some('f') => value.push(12),
        Some('v') => value.push(11),
        Some('0') if !chars.as_str().starts_with(|c: char| c.is_ascii_digit()) => value.push(0),
        Some('0'..='9') => return Err("octal escapes are not allowed; write `\\x00` to `\\xFF`"),
        // Line continuations
        Some('\r') => skip(chars, '\n'),
        Some('\n' | '\u{2028}' | '\u{2029}') => {}
        Some('x') => push(value, digits(chars, 2).ok_or("`\\x` needs two hexadecimal digits")?),
        Some('u') => push(value, code_point(chars).ok_or("`\\u` needs four hexadecimal digits, or `{…}`")?),
        Some(other) => value.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        None => return Err("nothing follows this backslash"),
    }
    Ok(())
}

fn skip(chars: &mut Chars<'_>, character: char) {
    if let Some(rest) = chars.as_str().strip_prefix(character) {
        *chars = rest.chars();
    }
}

/// `0041` or `{41}`
fn code_point(chars: &mut Chars<'_>) -> Option<u32> {
    let Some(inside) = chars.as_str().strip_prefix('{') else { return digits(chars, 4) };
    let (hex, rest) = inside.split_once('}')?;
    if hex.is_empty() || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let hex = hex.trim_start_matches('0');
    let code = if hex.is_empty() { 0 } else { u32::from_str_radix(hex, 16).ok()? };
    *chars = rest.chars();
    (code <= 0x10_FFFF).then_some(code)
}

fn digits(chars: &mut Chars<'_>, width: usize) -> Option<u32> {
    let hex = chars.as_str().get(..width)?;
    let code = hex.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(hex, 16).ok())??;
    *chars = chars.as_str()[width..].chars();
    Some(code)
}

/// Appends a code point or a surrogate; a low surrogate behind a high one makes one character.
fn push(value: &mut Vec<u8>, code: u32) {
    if let Some(character) = char::from_u32(code) {
        value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        return;
    }
    // The source is UTF-8, so a surrogate there comes from an escape.
    if code >= 0xDC00
        && let [.., 0xED, second @ 0xA0..=0xAF, third] = **value
    {
        let high = 0xD000 | (u32::from(second) & 0x3F) << 6 | u32::from(third) & 0x3F;
        let joined = 0x1_0000 + ((high - 0xD800) << 10) + (code - 0xDC00);
        value.truncate(value.len() - 3);
        return push(value, joined);
    }
    let byte = |bits: u32| 0x80 | (bits & 0x3F) as u8;
    value.extend_from_slice(&[0xED, byte(code >> 6), byte(code)]);
}
