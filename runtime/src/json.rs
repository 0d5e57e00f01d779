//! JSON text to values and back.

/// Append `text` as a JSON string.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (index, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..=0x1f => {
                out.push_str(&text[plain..index]);
                plain = index + 1;
                out.push_str(&format!("\\u{byte:04x}"));
                continue;
            }
            _ => continue,
        };
        out.push_str(&text[plain..index]);
        out.push_str(escape);
        plain = index + 1;
    }
    out.push_str(&text[plain..]);
    out.push('"');
}
