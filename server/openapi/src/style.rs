//! The styles of parameters: how values become parts of a path, a query, a header or a form.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// All but what RFC 3986 calls unreserved.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// With `allowReserved`: reserved characters too, but those that would begin another parameter or a fragment.
const RESERVED: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');
/// Maximum depth of `deepObject`; deeper values are JSON.
const MAX_NESTED: usize = 8;

/// How a value of several parts is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

impl Style {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "form" | "cookie" => Self::Form,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// Percent-encodes a text.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// Percent-encodes a text, apart from reserved characters and from what is encoded already.
pub fn encode_reserved(text: &str) -> String {
    let encoded = utf8_percent_encode(text, RESERVED).to_string();
    let mut out = String::with_capacity(encoded.len());
    let mut rest = encoded.as_str();
    while let Some(at) = rest.find("%25") {
        out.push_str(&rest[..at]);
        rest = &rest[at + 3..];
        let is_encoded = rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
        out.push_str(if is_encoded { "%" } else { "%25" });
    }
    out + rest
}

/// Returns a value as a text; `None` for `null`, which is the same as nothing. Lists and objects are JSON.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}

/// The parts of a list, or of an object with their names.
fn parts(value: &Value) -> Vec<(Option<&str>, String)> {
    match value {
        Value::Array(items) => items.iter().filter_map(|item| Some((None, scalar(item)?))).collect(),
        Value::Object(members) => {
            members.iter().filter_map(|(name, member)| Some((Some(name.as_str()), scalar(member)?))).collect()
        }
        value => scalar(value).into_iter().map(|text| (None, text)).collect(),
    }
}

/// Joins the parts: `a,b`, and for objects `k=v,l=w`, or `k,v,l,w` unless exploded.
fn joined(value: &Value, explode: bool, separator: &str, encode: &dyn Fn(&str) -> String) -> String {
    let part = |(name, text): (Option<&str>, String)| match name {
        None => encode(&text),
        Some(name) => format!("{}{}{}", encode(name), if explode { "=" } else { separator }, encode(&text)),
    };
    parts(value).into_iter().map(part).collect::<Vec<_>>().join(separator)
}

/// Returns the text of a parameter in a path.
pub fn path(name: &str, value: &Value, style: Style, explode: bool, encode: &dyn Fn(&str) -> String) -> String {
    let named = |text: String| match text.is_empty() {
        true => format!(";{}", encode(name)),
        false => format!(";{}={text}", encode(name)),
    };
    match style {
        Style::Label => format!(".{}", joined(value, explode, if explode { "." } else { "," }, encode)),
        Style::Matrix => match value {
            Value::Array(_) if explode => parts(value).iter().map(|(_, text)| named(encode(text))).collect(),
            Value::Object(_) if explode => format!(";{}", joined(value, true, ";", encode)),
            value => named(joined(value, false, ",", encode)),
        },
        _ => joined(value, explode, ",", encode),
    }
}

/// Returns the value of a header.
pub fn header(value: &Value, explode: bool) -> String {
    joined(value, explode, ",", &str::to_owned)
}

/// Returns the encoded pairs of a parameter in a query, a cookie or a form.
pub fn pairs(
    name: &str,
    value: &Value,
    style: Style,
    explode: bool,
    encode_value: &dyn Fn(&str) -> String,
) -> Vec<(String, String)> {
    let key = encode(name);
    let one = |text: String| if text.is_empty() { Vec::new() } else { vec![(key.clone(), text)] };
    match (style, value) {
        (_, Value::Null) => Vec::new(),
        (Style::DeepObject, Value::Object(_) | Value::Array(_)) => {
            let mut out = Vec::new();
            nested(key, value, encode_value, MAX_NESTED, &mut out);
            out
        }
        (_, Value::Array(_)) if explode => {
            parts(value).iter().map(|(_, text)| (key.clone(), encode_value(text))).collect()
        }
        (_, Value::Object(_)) if explode => {
            parts(value).iter().map(|(name, text)| (encode(name.unwrap_or_default()), encode_value(text))).collect()
        }
        (Style::SpaceDelimited, Value::Array(_) | Value::Object(_)) => one(joined(value, false, "%20", encode_value)),
        (Style::PipeDelimited, Value::Array(_) | Value::Object(_)) => one(joined(value, false, "%7C", encode_value)),
        (_, Value::Array(_) | Value::Object(_)) => one(joined(value, false, ",", encode_value)),
        (_, value) => scalar(value).map(|text| (key.clone(), encode_value(&text))).into_iter().collect(),
    }
}

/// `name[key]=value`. Items of lists have their position as the key: that is what most servers can read.
fn nested(
    key: String,
    value: &Value,
    encode_value: &dyn Fn(&str) -> String,
    depth: usize,
    out: &mut Vec<(String, String)>,
) {
    match value {
        Value::Object(members) if depth > 0 => {
            for (name, member) in members {
                nested(format!("{key}%5B{}%5D", encode(name)), member, encode_value, depth - 1, out);
            }
        }
        Value::Array(items) if depth > 0 => {
            for (at, item) in items.iter().enumerate() {
                nested(format!("{key}%5B{at}%5D"), item, encode_value, depth - 1, out);
            }
        }
        value => out.extend(scalar(value).map(|text| (key, encode_value(&text)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The table of the standard.
    #[test]
    fn styles_of_the_standard() {
        let (text, list, object) = (json!("blue"), json!(["blue", "black"]), json!({"R": 100, "G": 200}));
        for (style, explode, expected) in [
            (Style::Matrix, false, [";color", ";color=blue", ";color=blue,black", ";color=R,100,G,200"]),
            (Style::Matrix, true, [";color", ";color=blue", ";color=blue;color=black", ";R=100;G=200"]),
            (Style::Label, false, [".", ".blue", ".blue,black", ".R,100,G,200"]),
            (Style::Label, true, [".", ".blue", ".blue.black", ".R=100.G=200"]),
            (Style::Simple, false, ["", "blue", "blue,black", "R,100,G,200"]),
            (Style::Simple, true, ["", "blue", "blue,black", "R=100,G=200"]),
        ] {
            let written =
                [&json!(""), &text, &list, &object].map(|value| path("color", value, style, explode, &encode));
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        for (style, explode, expected) in [
            (Style::Form, false, ["color=", "color=blue", "color=blue,black", "color=R,100,G,200"]),
            (Style::Form, true, ["color=", "color=blue", "color=blue&color=black", "R=100&G=200"]),
            (Style::SpaceDelimited, false, ["color=", "color=blue", "color=blue%20black", "color=R%20100%20G%20200"]),
            (Style::PipeDelimited, false, ["color=", "color=blue", "color=blue%7Cblack", "color=R%7C100%7CG%7C200"]),
            (
                Style::DeepObject,
                true,
                ["color=", "color=blue", "color%5B0%5D=blue&color%5B1%5D=black", "color%5BR%5D=100&color%5BG%5D=200"],
            ),
        ] {
            let written = [&json!(""), &text, &list, &object].map(|value| {
                let pairs = pairs("color", value, style, explode, &encode);
                pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join("&")
            });
            assert_eq!(written, expected, "{style:?} {explode}");
        }
        assert_eq!(pairs("a", &json!(null), Style::Form, true, &encode), []);
        assert_eq!(pairs("a", &json!([]), Style::Form, false, &encode), []);
        assert_eq!(
            pairs("a b", &json!({"x": {"y&": [1, null]}}), Style::DeepObject, true, &encode),
            [("a%20b%5Bx%5D%5By%26%5D%5B0%5D".to_owned(), "1".to_owned())]
        );
    }

    #[test]
    fn reserved_characters() {
        assert_eq!(encode("a/b?c=d&e é%"), "a%2Fb%3Fc%3Dd%26e%20%C3%A9%25");
        assert_eq!(encode_reserved("a/b?c=d&e#f%20%zz+"), "a/b?c=d%26e%23f%20%25zz%2B");
    }
}
