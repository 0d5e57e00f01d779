//! The arguments of the server's functions: texts, JSON values, and schemas with a value each.

use super::schemas;
use serde_json::{Map, Value, json};

/// The secret that functions redact.
pub const SECRET: &str = "s3cr3t/T0ken+42";

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A text that is parsed as JSON.
    Json,
    /// A JSON value.
    Value,
    /// A schema, and a value that is checked.
    Schema,
}

/// A value that was created.
#[derive(Clone, Debug)]
pub enum Made {
    /// A text.
    Text(String),
    /// A JSON value.
    Value(Value),
    /// A schema, and a value that is checked.
    Schema(Value, Value),
}

impl Made {
    /// Returns its approximate size as text, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Value(value) => value.to_string().len() as u64,
            Self::Schema(schema, value) => (schema.to_string().len() + value.to_string().len()) as u64,
        }
    }

    /// Returns its approximate size in memory, in bytes. Short values take many times the size of their text.
    #[must_use]
    pub fn memory(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Value(value) => memory(value),
            Self::Schema(schema, value) => memory(schema) + memory(value),
        }
    }

    /// Returns a small value of a kind.
    #[must_use]
    pub fn small(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text("a small text".into()),
            Kind::Json => Self::Text("{}".into()),
            Kind::Value => Self::Value(json!({"a": ["b"]})),
            Kind::Schema => Self::Schema(json!({"type": "object"}), json!({})),
        }
    }

    /// Returns the text, or the JSON of the value.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Value(value) | Self::Schema(value, _) => value.to_string(),
        }
    }
}

/// Creates values.
pub struct Maker {
    /// Its name in reports.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// Creates a value of about this number of bytes.
    pub make: fn(usize) -> Made,
}

macro_rules! repeated {
    ($($name:literal: $unit:expr),* $(,)?) => {
        &[$(Maker {
            name: $name,
            kind: Kind::Text,
            make: |bytes| Made::Text($unit.repeat(bytes / $unit.len())),
        }),*]
    };
}

macro_rules! made {
    ($kind:expr, $($name:literal: $make:expr),* $(,)?) => {
        &[$(Maker { name: $name, kind: $kind, make: $make }),*]
    };
}

/// All values.
pub static VALUES: std::sync::LazyLock<Vec<&'static Maker>> =
    std::sync::LazyLock::new(|| TEXTS.iter().chain(JSON).chain(PLAIN).chain(schemas::SCHEMAS).collect());

static TEXTS: &[Maker] = repeated! {
    "ascii": "a",
    "cyrillic": "я",
    "emoji": "😀",
    "marks": "e\u{301}\u{323}",
    "digits": "7",
    "words": "Lorem Ipsum ",
    "distinct words": "zeta1 9alpha beta-gamma camelCase snake_case ",
    "spaces": " ",
    "lines": "a\n",
    "paths": " /tmp/zz",
    "one path": "/tmp",
    "slashes": ":/",
    "windows paths": " C:\\a\\b",
    "addresses": " http://user:secret@host/p?token=abcdef",
    "stacks": "    at run (/srv/app/x.js:1:2)\n",
    "secrets": "s3cr3t/T0ken+42",
    "beginnings of secrets": "s3cr3t/T0ken+4",
    "secrets in per cent": "%73%33%63%72%33%74/T0ken%2B42",
    "secrets in hex": "73336372337 42f54306b656e2b3432",
    "escapes": "\\u0073\\u0033",
    "escapes of escapes": "\\\\u0073",
    "backslashes": "\\",
    "per cent": "%25",
    "per cent of per cent": "%252541",
    "entities": "&#x73;",
    "ampersands": "&",
    "base64": "QUJDREVG",
    "wrapped base64": "czNjcjN0L1Qwa2VuKzQyczNjcjN0L1Qwa2VuKzQyczNjcjN0L1Qwa2VuKzQyczNj\r\n",
    "mail addresses": "first.last@example.com ",
    "one mail address": "a.",
    "signs of mail": "@",
    "mail hosts": "a@b.",
    "cards": "4111 1111 1111 1111 ",
    "dashes and digits": "1-",
    "accounts": "DE89370400440532013000 ",
    "beginnings of accounts": "DE89 ",
    "telephones": "+49 (30) 123-456 ",
    "pluses": "+1 ",
    "social security": "123-45-6789 ",
    "control": "\u{1b}[2J",
    "directions": "\u{202e}",
    "zeros": "\0",
    "quotes": "\"",
    "brackets": "[",
    "templates": "${",
    "comments": "*/",
    "commas": "a,`",
};

static JSON: &[Maker] = made! { Kind::Json,
    "deep lists": |bytes| Made::Text("[".repeat(bytes)),
    "deep objects": |bytes| Made::Text("{\"a\":".repeat(bytes / 5)),
    "an answer that is deep": |bytes| Made::Text(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}1{}}}", "[".repeat(bytes / 2), "]".repeat(bytes / 2)
    )),
    "an answer of text": |bytes| Made::Text(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}", "a".repeat(bytes)
    )),
    "an answer of escapes": |bytes| Made::Text(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}", "\\u0041".repeat(bytes / 6)
    )),
    "an answer that is broken": |bytes| Made::Text(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{}", "1,".repeat(bytes / 2)
    )),
    "an error of text": |bytes| Made::Text(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{{\"code\":1,\"message\":\"{}\"}}}}", "a".repeat(bytes)
    )),
    "an answer of keys": |bytes| Made::Text(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{{}\"z\":1}}}}",
        (0..bytes / 12).map(|at| format!("\"key{at}\":1,")).collect::<String>()
    )),
    "the same key": |bytes| Made::Text(format!("{{{}\"a\":1}}", "\"a\":1,".repeat(bytes / 6))),
    "a long number": |bytes| Made::Text("7".repeat(bytes)),
    "a long fraction": |bytes| Made::Text(format!("0.{}", "7".repeat(bytes))),
};

static PLAIN: &[Maker] = made! { Kind::Value,
    "value of text": |bytes| Made::Value(json!({"a": "a".repeat(bytes)})),
    "value of paths": |bytes| Made::Value(json!({"a": " /tmp/zz".repeat(bytes / 8)})),
    "value of secrets": |bytes| Made::Value(json!({"a": SECRET.repeat(bytes / SECRET.len())})),
    "value of mail addresses": |bytes| Made::Value(json!({"a": "me@example.com ".repeat(bytes / 15)})),
    "value of escapes": |bytes| Made::Value(json!({"a": "\u{1}".repeat(bytes / 6)})),
    "numbers": |bytes| Made::Value(json!({"a": vec![7; bytes / 20]})),
    "long numbers": |bytes| Made::Value(json!({"a": vec![4_111_111_111_111_111_u64; bytes / 60]})),
    "short texts": |bytes| Made::Value(json!({"a": vec!["ab"; bytes / 20]})),
    "short mail addresses": |bytes| Made::Value(json!({"a": vec!["a@b.de"; bytes / 20]})),
    "short secrets": |bytes| Made::Value(json!({"a": vec![SECRET; bytes / 20]})),
    "keys": |bytes| Made::Value(keys(bytes / 40, |at| format!("key{at}"))),
    "keys of mail addresses": |bytes| Made::Value(keys(bytes / 40, |at| format!("a{at}@example.com"))),
    "keys of secrets": |bytes| Made::Value(keys(bytes / 40, |at| format!("{SECRET} {at}"))),
    "keys of masks": |bytes| Made::Value(keys(bytes / 40, |at| match at % 2 {
        0 => format!("[email] {at}"),
        _ => format!("a{at}@example.com"),
    })),
    "a long key": |bytes| Made::Value(json!({"a".repeat(bytes): 1})),
    "objects": |bytes| Made::Value(json!({"a": vec![json!({"id": 1, "name": "x"}); bytes / 200]})),
    "empty lists": |bytes| Made::Value(json!({"a": vec![json!([]); bytes / 20]})),
    "deep": |bytes| Made::Value(json!({"a": vec![deep(120); bytes / 5_000]})),
    "blocks of content": |bytes| Made::Value(json!({
        "isError": true, "content": vec![json!({"type": "text", "text": " /tmp/zz at x (y:1:2)"}); bytes / 200],
    })),
    "a long block": |bytes| Made::Value(json!({
        "isError": true, "content": [{"type": "text", "text": " /tmp/zz".repeat(bytes / 8)}],
    })),
};

fn memory(value: &Value) -> u64 {
    // A text, a list or a map is an allocation, and so is the hash table of a map.
    let (own, piece, place) = (size_of::<Value>() as u64, 16, 16);
    own + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() as u64 + piece,
        Value::Array(items) => piece + items.iter().map(memory).sum::<u64>(),
        Value::Object(members) => {
            let member = |(key, member): (&String, &Value)| key.len() as u64 + 24 + piece + place + memory(member);
            2 * piece + members.iter().map(member).sum::<u64>()
        }
    }
}

/// Returns an object with this number of members.
pub fn keys(count: usize, name: impl Fn(usize) -> String) -> Value {
    Value::Object((0..count).map(|at| (name(at), json!(at))).collect::<Map<String, Value>>())
}

/// Returns a value that is nested this deeply.
#[must_use]
pub fn deep(depth: usize) -> Value {
    (0..depth).fold(json!("end"), |inner, at| if at % 2 == 0 { json!([inner]) } else { json!({"o": inner}) })
}
