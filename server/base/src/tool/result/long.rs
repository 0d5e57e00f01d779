//! Long results, as the text that a server has sent. Their values take many times the memory of the text, so only who looks
//! into them has them, and only for that time.

use super::{ToolResult, data_of_text};
use crate::json::{self, INLINE_LIMIT, Unread};
use crate::text::truncate;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How much of a long result records show, in bytes.
const MAX_SHOWN_BYTES: usize = 16 * 1024;

/// A long result of a tool that has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongResult {
    /// JSON that can be read.
    text: String,
    /// Whether it is a `CallToolResult` of MCP; if not, it is plain data.
    is_mcp: bool,
}

/// A `CallToolResult` whose data can be read as text: it has succeeded, and its content is text only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts<'a> {
    #[serde(borrow, default)]
    content: Vec<TextBlock<'a>>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl Parts<'_> {
    /// Whether the text says all that there is to know of the result.
    fn is_plain(&self) -> bool {
        let is_complete = self.result_type.as_deref().is_none_or(|kind| kind == "complete");
        let has_data = self.structured_content.is_some_and(is_filled) || !self.content.is_empty();
        let is_valid = self.meta.is_none_or(|meta| meta.get().starts_with('{'));
        !self.is_error && is_complete && has_data && is_valid
    }
}

/// A block of content with nothing but a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextBlock<'a> {
    #[serde(rename = "type")]
    _kind: TextKind,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum TextKind {
    Text,
}

impl LongResult {
    /// Takes the text of a result of MCP.
    ///
    /// # Errors
    /// It is short, its tool has failed, or it has more than text and data: the text.
    pub fn of_mcp(text: String) -> Result<Self, String> {
        if text.len() <= INLINE_LIMIT || !json::is_readable(&text) {
            return Err(text);
        }
        match serde_json::from_str(&text).is_ok_and(|parts: Parts<'_>| parts.is_plain()) {
            true => Ok(Self { text, is_mcp: true }),
            false => Err(text),
        }
    }

    /// Takes the text of plain data.
    ///
    /// # Errors
    /// It is short, or no JSON that can be read: the text.
    pub fn of_data(text: String) -> Result<Self, String> {
        if text.len() <= INLINE_LIMIT || !json::is_readable(&text) {
            return Err(text);
        }
        Ok(Self { text, is_mcp: false })
    }

    /// Takes the text of a result that was long before, such as one that is kept.
    #[must_use]
    pub fn kept(text: String, is_mcp: bool) -> Self {
        Self { text, is_mcp }
    }

    /// Returns the text: JSON.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a `CallToolResult` of MCP; if not, it is plain data.
    #[must_use]
    pub fn is_mcp(&self) -> bool {
        self.is_mcp
    }

    /// Returns the beginning of the text, for records.
    pub(super) fn beginning(&self) -> String {
        if self.text.len() <= MAX_SHOWN_BYTES {
            return self.text.clone();
        }
        format!("{}… [cut: {} bytes in all]", truncate(&self.text, MAX_SHOWN_BYTES), self.text.len())
    }

    /// Replaces the text by another form of it, such as a redacted one: JSON.
    pub fn set_text(&mut self, text: String) {
        self.text = text;
    }

    /// Parses it.
    pub(super) fn parsed(&self) -> Result<ToolResult, Unread> {
        let value = json::read(&self.text)?;
        Ok(if self.is_mcp { ToolResult::Mcp(value) } else { ToolResult::Data(value) })
    }

    /// Returns the plain data as JSON: what [`ToolResult::data`] gives. `joins_text`: after [`ToolResult::join_text`].
    #[must_use]
    pub fn to_data(&self, joins_text: bool) -> String {
        let Ok(Parts { content, structured_content, .. }) = serde_json::from_str(&self.text) else {
            return self.text.clone();
        };
        if !self.is_mcp {
            return self.text.clone();
        }
        let structured = structured_content.filter(|data| is_filled(data) || content.is_empty()).map(RawValue::get);
        match (structured, content.as_slice()) {
            (Some(data), blocks) if joins_text => joined(data, blocks),
            (Some(data), _) => data.to_owned(),
            (None, [TextBlock { text, .. }]) => data_as_json(text),
            (None, _) => {
                let content = serde_json::from_str(&self.text).ok().and_then(|Content { content }| content);
                content.map_or_else(|| "[]".to_owned(), |content| content.get().to_owned())
            }
        }
    }
}

/// The whole content of a result.
#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// Whether `structuredContent` has something.
fn is_filled(data: &RawValue) -> bool {
    let mut rest = data.get().bytes().filter(|byte| !byte.is_ascii_whitespace());
    !matches!((rest.next(), rest.next(), rest.next()), (Some(b'{'), Some(b'}'), None) | (Some(b'['), Some(b']'), None))
        && data.get() != "null"
}

/// Returns the data of a text as JSON, as [`data_of_text`] reads it.
fn data_as_json(text: &str) -> String {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    if trimmed.starts_with(['{', '[']) && json::is_readable(trimmed) {
        return trimmed.to_owned();
    }
    data_of_text(text).unwrap_or_else(|| text.into()).to_string()
}

/// Adds texts as the member `text` to data, where that is an object without such a member, and does not say the same.
fn joined(data: &str, blocks: &[TextBlock<'_>]) -> String {
    let texts: Vec<&str> = blocks.iter().map(|block| &*block.text).collect();
    let text = texts.join("\n");
    let has_text = || serde_json::from_str(data).is_ok_and(|HasText { text }| text);
    if !data.starts_with('{') || text.trim().is_empty() || has_text() || is_same(data, text.trim()) {
        return data.to_owned();
    }
    format!("{},\"text\":{}}}", data[..data.len() - 1].trim_end(), Value::from(text))
}

/// Whether two texts are the same JSON. Those that are too large to be compared count as the same.
fn is_same(data: &str, text: &str) -> bool {
    if data == text {
        return true;
    }
    if !json::is_readable(text) {
        return false;
    }
    match (json::read(data), json::read(text)) {
        (Ok(data), Ok(text)) => data == text,
        (Err(_), _) | (_, Err(_)) => true,
    }
}

/// Whether an object has the member `text`.
#[derive(Deserialize)]
struct HasText {
    #[serde(default, deserialize_with = "present")]
    text: bool,
}

fn present<'de, D: Deserializer<'de>>(reader: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(reader).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Both ways to the data of a result: as text, and as values.
    fn both(result: &Value, joins_text: bool) -> [Value; 2] {
        let long = LongResult { text: result.to_string(), is_mcp: true };
        let mut parsed = long.parsed().expect("JSON");
        if joins_text {
            parsed.join_text();
        }
        [json::parse(&long.to_data(joins_text)).expect("JSON"), parsed.into_data("t").expect("data")]
    }

    #[test]
    fn the_data_are_those_of_the_values() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let contents = [
            json!([]),
            json!([text("plain")]),
            json!([text(" {\"b\": [1, {\"\\u00e9\": null}]} ")]),
            json!([text("\u{feff}[1]")]),
            json!([text("42")]),
            json!([text("1234567890123456789")]),
            json!([text("{\"a\": 1")]),
            json!([text("a"), text("b")]),
            json!([text("")]),
        ];
        let structured = [
            None,
            Some(json!(null)),
            Some(json!({})),
            Some(json!([])),
            Some(json!([1, "x"])),
            Some(json!({"b": [1, {"\u{e9}": null}]})),
            Some(json!({"a": {"text": 1}})),
            Some(json!({"text": null, "a": 1})),
        ];
        for content in &contents {
            for data in &structured {
                let mut result = json!({"content": content, "isError": false, "_meta": {"a": 1}});
                if let Some(data) = data {
                    result["structuredContent"] = data.clone();
                }
                if !serde_json::from_str(&result.to_string()).is_ok_and(|parts: Parts<'_>| parts.is_plain()) {
                    continue;
                }
                for joins_text in [false, true] {
                    let [as_text, as_values] = both(&result, joins_text);
                    assert_eq!(as_text, as_values, "{result} {joins_text}");
                }
            }
        }
    }

    #[test]
    fn a_result_that_has_more_than_data_is_not_taken() {
        let long = "x".repeat(INLINE_LIMIT);
        let text = json!({"type": "text", "text": long});
        let plain = json!({"content": [text], "structuredContent": {"a": 1}});
        assert!(LongResult::of_mcp(plain.to_string()).is_ok());
        for (key, value) in [
            ("isError", json!(true)),
            ("isError", json!("true")),
            ("content", json!([text, {"type": "image", "data": "AA==", "mimeType": "image/png"}])),
            ("content", json!([text, {"type": "text", "text": "a", "annotations": {"priority": 1}}])),
            ("content", json!("text")),
            ("resultType", json!("inputRequired")),
            ("_meta", json!([])),
        ] {
            let mut odd = plain.clone();
            odd[key] = value;
            assert!(LongResult::of_mcp(odd.to_string()).is_err(), "{key}");
        }
        assert!(LongResult::of_mcp(json!({"content": [], "structuredContent": {}, "x": long}).to_string()).is_err());
        assert!(LongResult::of_mcp(plain.to_string() + "]").is_err());
        assert!(LongResult::of_data(format!("[\"{long}\"]")).is_ok());
        assert!(LongResult::of_data("[1]".into()).is_err());
    }
}
