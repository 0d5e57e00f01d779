//! Parses and measures JSON that scripts and servers have written.

use serde::de::IgnoredAny;
use serde_json::Value;

/// How deep JSON may be nested: the limit of serde_json.
pub const MAX_DEPTH: usize = 128;
/// Maximum size of JSON that is processed in place, in bytes: it takes less than a millisecond.
pub const INLINE_LIMIT: usize = 64 * 1024;
/// Maximum memory of the values that a text of others becomes, in bytes.
pub const MAX_PARSED_BYTES: usize = 512 << 20;

/// The memory of the values of JSON beside their texts, in bytes: a value is 72, a member with its name and hash 104, and lists
/// grow by doubling.
const ITEM_BYTES: usize = 108;
const LIST_BYTES: usize = 288;
const OBJECT_BYTES: usize = 460;
const NAME_BYTES: usize = 80;

/// JSON of others that is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// Its values would take more memory than they may.
    #[error("its values take {} MiB of memory, more than the {} that are possible", .bytes >> 20, .most >> 20)]
    TooLarge {
        /// The memory that they would take, in bytes.
        bytes: usize,
        /// The memory that they may take, in bytes.
        most: usize,
    },
    /// It is no JSON, or nested too deeply.
    #[error("{0}")]
    Malformed(&'static str),
}

/// Parses JSON of others, unless its values would take too much memory.
///
/// # Errors
/// See [`Unread`].
pub fn read(text: &str) -> Result<Value, Unread> {
    check_size(text.as_bytes(), MAX_PARSED_BYTES)?;
    serde_json::from_str(text).map_err(|_| malformed(text.as_bytes()))
}

/// Checks that the values of JSON take at most `most` bytes of memory.
///
/// # Errors
/// They take more: [`Unread::TooLarge`].
pub fn check_size(text: &[u8], most: usize) -> Result<(), Unread> {
    let bytes = parsed_size(text);
    if bytes > most { Err(Unread::TooLarge { bytes, most }) } else { Ok(()) }
}

/// Says why a text is no JSON that can be read.
#[must_use]
pub fn malformed(text: &[u8]) -> Unread {
    Unread::Malformed(if std::str::from_utf8(text).is_err() {
        "it is not UTF-8"
    } else if is_too_deep(text) {
        "it is nested more than 128 levels deep"
    } else {
        "it is not valid JSON"
    })
}

/// Whether a text is JSON that can be read. No value is made.
#[must_use]
pub fn is_readable(text: &str) -> bool {
    !is_too_deep(text.as_bytes()) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether JSON is nested more deeply than serde_json accepts.
#[must_use]
pub fn is_too_deep(json: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut is_too_deep = false;
    for_each_mark(json, |mark| match mark {
        b'{' | b'[' => {
            depth += 1;
            is_too_deep |= depth >= MAX_DEPTH;
        }
        b'}' | b']' => depth = depth.saturating_sub(1),
        _ => {}
    });
    is_too_deep
}

/// Estimates the memory that the values of JSON take, in bytes. It is about the most that they can take.
#[must_use]
pub fn parsed_size(json: &[u8]) -> usize {
    let mut bytes = json.len();
    for_each_mark(json, |mark| {
        bytes += match mark {
            b'{' => OBJECT_BYTES,
            b'[' => LIST_BYTES,
            b',' => ITEM_BYTES,
            b':' => NAME_BYTES,
            _ => 0,
        }
    });
    bytes
}

/// Calls `each` for the bytes of JSON outside of strings.
fn for_each_mark(json: &[u8], mut each: impl FnMut(u8)) {
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        at += 1;
        if byte != b'"' {
            each(byte);
            continue;
        }
        while let Some(&inside) = json.get(at) {
            at += 1;
            match inside {
                b'"' => break,
                b'\\' => at += 1,
                _ => {}
            }
        }
    }
}

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

/// Estimates the bytes of the JSON of a value. Values nest as deeply as readers of JSON follow, so this may recurse.
#[must_use]
pub fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(key, member)| key.len() + size(member) + 4).sum::<usize>() + 2,
    }
}

/// Estimates the size of a value as JSON, in bytes. Counting stops above [`INLINE_LIMIT`].
#[must_use]
pub fn weight(value: &Value) -> usize {
    let mut bytes = 0;
    weigh(value, &mut bytes);
    bytes
}

/// Estimates the size of an object as JSON, in bytes, like [`weight`].
#[must_use]
pub fn weight_of<'a>(members: impl IntoIterator<Item = (&'a String, &'a Value)>) -> usize {
    let mut bytes = 0;
    for (key, member) in members {
        bytes += key.len() + 4;
        weigh(member, &mut bytes);
        if bytes > INLINE_LIMIT {
            break;
        }
    }
    bytes
}

/// Adds the size of a value. It may recurse, because JSON parsers limit the depth of values.
fn weigh(value: &Value, bytes: &mut usize) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => *bytes += 8,
        Value::String(text) => *bytes += text.len() + 2,
        Value::Array(items) => {
            *bytes += 2;
            for item in items {
                weigh(item, bytes);
                if *bytes > INLINE_LIMIT {
                    return;
                }
            }
        }
        Value::Object(members) => {
            *bytes += 2;
            for (key, member) in members {
                *bytes += key.len() + 4;
                weigh(member, bytes);
                if *bytes > INLINE_LIMIT {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counting_stops_above_the_limit() {
        assert_eq!(weight(&json!(null)), 8);
        let small = json!({"a": [1, "two", {"b": null}]});
        assert!((20..60).contains(&weight(&small)), "{}", weight(&small));
        assert!(weight(&json!(vec![1; 1_000_000])) < 2 * INLINE_LIMIT);
        assert!(weight(&json!("x".repeat(INLINE_LIMIT))) > INLINE_LIMIT);
    }

    #[test]
    fn values_that_take_too_much_memory_are_not_made() {
        let ones = |count: usize| format!("[{}1]", "1,".repeat(count));
        assert_eq!(read(&ones(3)), Ok(serde_json::json!([1, 1, 1, 1])));
        assert!(matches!(read(&ones(8 << 20)), Err(Unread::TooLarge { .. })));
        assert!(matches!(read(&format!("[{}{{}}]", r#"{"":0},"#.repeat(1 << 20))), Err(Unread::TooLarge { .. })));
        let text = format!("\"{}\"", "[,{\\\"".repeat(1 << 20));
        assert!(parsed_size(text.as_bytes()) < 2 * text.len(), "a text takes its own length");
        assert!(read(&text).is_ok_and(|value| value.is_string()));
        for (text, reason) in
            [("[1", "it is not valid JSON"), (&"[".repeat(200), "it is nested more than 128 levels deep")]
        {
            assert_eq!(read(text), Err(Unread::Malformed(reason)));
            assert!(!is_readable(text));
        }
        let deepest = format!("{}{}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
        assert!(read(&deepest).is_ok() && is_readable(&deepest));
    }

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
