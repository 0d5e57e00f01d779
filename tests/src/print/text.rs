//! Prints strings with the necessary escapes. A lone surrogate becomes `\uD800`.

use std::fmt::Write;

/// Returns a string literal.
pub(super) fn quoted(value: &[u8]) -> String {
    format!("'{}'", escaped(value, &|c| matches!(c, '\'' | '\\' | '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\0')))
}

/// Returns the text of a template literal.
pub(super) fn template(value: &[u8]) -> String {
    escaped(value, &|c| matches!(c, '`' | '\\' | '$' | '\r' | '\0'))
}

/// Whether a key is printed without quotes. The grammar allows more keys.
pub(super) fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$'))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
}

fn escaped(mut value: &[u8], special: &dyn Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(value.len() + 2);
    loop {
        let valid = match std::str::from_utf8(value) {
            Ok(rest) => {
                characters(&mut out, rest, special);
                return out;
            }
            Err(error) => error.valid_up_to(),
        };
        let (text, rest) = value.split_at(valid);
        characters(&mut out, std::str::from_utf8(text).unwrap_or(""), special);
        // In WTF-8, bytes that are not UTF-8 are a surrogate of three bytes.
        let [first, second, third, ..] = rest else { return out };
        let code = u32::from(first & 0xF) << 12 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F);
        unit(&mut out, code);
        value = &rest[3..];
    }
}

fn characters(out: &mut String, text: &str, special: &dyn Fn(char) -> bool) {
    for character in text.chars() {
        match character {
            '\n' if special('\n') => out.push_str("\\n"),
            _ if !special(character) => out.push(character),
            '\'' | '`' | '\\' | '$' => out.extend(['\\', character]),
            _ => unit(out, u32::from(character)),
        }
    }
}

fn unit(out: &mut String, code: u32) {
    // Writing to a `String` cannot fail.
    let _ = write!(out, "\\u{code:04X}");
}
