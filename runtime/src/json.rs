//! JSON text to values and back.
//!
//! Nothing here recurses: data may nest as deep as memory allows.

mod parse;
mod promises;
mod stringify;

pub use stringify::Layout;

use crate::heap::first_code_point;
use std::borrow::Cow;

/// Append `text` as a JSON string.
pub fn quote(text: &str, out: &mut String) {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    quote_bytes(text.as_bytes(), &mut bytes);
    // Only ASCII was put between the pieces of the text.
    out.push_str(std::str::from_utf8(&bytes).unwrap_or_default());
}

/// Append WTF-8 as a JSON string; lone surrogates become escapes.
fn quote_bytes(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    for (index, &byte) in text.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' && byte != 0xED {
            continue;
        }
        let (escape, length): (Cow<'static, str>, usize) = match byte {
            b'"' => ("\\\"".into(), 1),
            b'\\' => ("\\\\".into(), 1),
            b'\n' => ("\\n".into(), 1),
            b'\r' => ("\\r".into(), 1),
            b'\t' => ("\\t".into(), 1),
            0x08 => ("\\b".into(), 1),
            0x0c => ("\\f".into(), 1),
            0xED => match first_code_point(&text[index..]) {
                Some((unit @ 0xD800..=0xDFFF, length)) => (format!("\\u{unit:x}").into(), length),
                Some(_) | None => continue,
            },
            _ => (format!("\\u{byte:04x}").into(), 1),
        };
        out.extend_from_slice(&text[plain..index]);
        out.extend_from_slice(escape.as_bytes());
        plain = index + length;
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}
