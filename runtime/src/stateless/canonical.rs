//! JSON in a form in which equal data is equal text: RFC 8785.

use serde_json::Value;

/// The canonical form of a JSON text (RFC 8785): no white space, the keys of objects in the order of
/// their UTF-16 code units, numbers as ECMAScript prints them.
///
/// # Errors
/// The text is not JSON, or nests deeper than 128 levels.
pub fn canonical(text: &str) -> serde_json::Result<String> {
    let mut out = String::with_capacity(text.len());
    write(&serde_json::from_str(text)?, &mut out);
    Ok(out)
}

/// The depth is bounded by the parser's.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
        Value::String(text) => crate::text::quote::quote(text, out),
        // Integers beyond the precision of a double are equal where the doubles are, as for the script.
        Value::Number(number) => out.push_str(ryu_js::Buffer::new().format(number.as_f64().unwrap_or(f64::NAN))),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                crate::text::quote::quote(key, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
    }
}
