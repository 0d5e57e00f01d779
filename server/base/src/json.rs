//! Parses and measures JSON that scripts have written.

use serde_json::Value;

/// Parses JSON that a script has written. A lone surrogate becomes U+FFFD: strings of a script are UTF-16 and may
/// contain one, for example after `slice`; strings of the protocol must not.
///
/// # Errors
/// The JSON is nested more deeply than serde_json accepts.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&replace_lone_surrogates(text)))
}

fn replace_lone_surrogates(text: &str) -> String {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match unit(escape) {
            Some(0xd800..0xdc00) if matches!(unit(&escape[6..]), Some(0xdc00..0xe000)) => 12,
            Some(0xd800..0xe000) => {
                out.push('\u{fffd}');
                rest = &escape[6..];
                continue;
            }
            Some(_) => 6,
            // An escaped character is ASCII.
            None => 2.min(escape.len()),
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out + rest
}

/// About as many bytes as the JSON of a value has. Values nest as deeply as readers of JSON follow, so this may recurse.
#[must_use]
pub fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(key, member)| key.len() + size(member) + 4).sum::<usize>() + 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_becomes_a_replacement_character() {
        for (text, expected) in [
            (r#""\ud83d\ude00 a""#, "\u{1f600} a"),
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\ude00\ud83d\n\\ud83d\u00e9é""#, "\u{fffd}\u{fffd}\n\\ud83déé"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
        ] {
            assert_eq!(parse(text).expect("JSON"), Value::from(expected), "{text}");
        }
        assert!(parse(&"[".repeat(1_000)).is_err());
    }
}
