//! JSON strings: text in quotation marks, with escapes.
//!
//! Charged by the callers

use crate::text::wtf8::first_code_point;

/// Append `text` as a JSON string.
pub fn quote(text: &str, out: &mut String) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    quote_bytes(text.as_bytes(), &mut bytes);
    // Only ASCII was put between the pieces of the text.
    out.push_str(std::str::from_utf8(&bytes).unwrap_or_default());
}

/// Append WTF-8 as a JSON string; lone surrogates become escapes.
pub fn quote_bytes(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    escape_bytes(text, out);
    out.push(b'"');
}

/// Append WTF-8 as it stands in a JSON string.
pub fn escape_bytes(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let plain = plain_length::<true>(rest);
        out.extend_from_slice(&rest[..plain]);
        rest = &rest[plain..];
        let Some(&byte) = rest.first() else { break };
        let mut length = 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            SURROGATE => match first_code_point(rest) {
                Some((unit @ 0xD800..=0xDFFF, wide)) => {
                    out.extend_from_slice(&escape(unit));
                    length = wide;
                }
                Some(_) | None => out.push(byte),
            },
            _ => out.extend_from_slice(&escape(byte.into())),
        }
        rest = &rest[length..];
    }
}

/// `\uXXXX` of a code unit.
fn escape(unit: u32) -> [u8; 6] {
    let digit = |shift: u32| b"0123456789abcdef"[(unit >> shift & 0xF) as usize];
    [b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]
}

/// An upper bound on the bytes that [`escape_bytes`] writes.
pub fn escaped_length(text: &[u8]) -> usize {
    let length = |&byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        // A lone surrogate takes six bytes for its three.
        SURROGATE => 4,
        _ => 1,
    };
    text.iter().map(length).sum()
}

/// The first byte of surrogates in WTF-8, and of some other characters.
pub const SURROGATE: u8 = 0xED;

/// The length of the prefix that a JSON string contains verbatim: up to a quotation mark, backslash, control character
/// and, with `SURROGATES`, a possible surrogate.
#[inline]
pub fn plain_length<const SURROGATES: bool>(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    let (words, tail) = text.as_chunks::<8>();
    for (index, &word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(word);
        // The high bit of a byte says that it matched; only the lowest match is exact.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let mut found = word.wrapping_sub(ONES * 0x20) & !word;
        found |= zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        if SURROGATES {
            found |= zero(word ^ (ONES * u64::from(SURROGATE)));
        }
        found &= ONES << 7;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\' || SURROGATES && byte == SURROGATE;
    let rest = tail.iter().position(is_special).unwrap_or(tail.len());
    text.len() - tail.len() + rest
}

/// Whether a property name is printed without quotes.
pub fn is_identifier(name: &[u8]) -> bool {
    name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.first().is_some_and(|first| !first.is_ascii_digit())
}
