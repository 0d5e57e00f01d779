//! The result of a tool, and its conversion to plain data for scripts and to a result of MCP.

mod long;

use super::{ErrorCode, ToolError};
use crate::json::{self as text, Unread};
pub use long::LongResult;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    /// Plain data of a tool that does not speak MCP. Such a tool fails with a [`ToolError`].
    Data(Value),
    /// A `CallToolResult` of MCP: an object with `content`, `structuredContent`, `isError`, `_meta`. A tool that fails
    /// sets `isError`.
    Mcp(Value),
    /// A long result of a tool that has succeeded, as the text that its server has sent. Nobody has looked into it.
    Long(LongResult),
}

impl From<Value> for ToolResult {
    fn from(data: Value) -> Self {
        Self::Data(data)
    }
}

impl ToolResult {
    /// Returns the whole result as JSON, to look into it or to change it. A long one is parsed, which is work for
    /// `offload::run`.
    ///
    /// # Errors
    /// It is long, and its values would take too much memory.
    pub fn read(&mut self) -> Result<&mut Value, Unread> {
        if let Self::Long(long) = self {
            *self = long.parsed()?;
        }
        match self {
            Self::Data(value) | Self::Mcp(value) => Ok(value),
            Self::Long(_) => Err(Unread::Malformed("it is not parsed")),
        }
    }

    /// Returns the whole result as JSON. A long one is parsed; if its values would take too much memory, it is as
    /// [`ToolResult::shown`] has it.
    #[must_use]
    pub fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Long(long) => match long.parsed() {
                Ok(Self::Data(value) | Self::Mcp(value)) => Cow::Owned(value),
                Ok(Self::Long(_)) | Err(_) => self.shown(),
            },
            Self::Data(_) | Self::Mcp(_) => self.shown(),
        }
    }

    /// Returns the whole result for records. A long one is the beginning of its text.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, Value> {
        match self {
            Self::Data(value) | Self::Mcp(value) => Cow::Borrowed(value),
            Self::Long(long) => Cow::Owned(long.beginning().into()),
        }
    }

    /// Estimates its size as JSON, in bytes, like [`text::weight`].
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Data(value) | Self::Mcp(value) => text::weight(value),
            Self::Long(long) => long.text().len(),
        }
    }

    /// Estimates the bytes of its JSON.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Data(value) | Self::Mcp(value) => text::size(value),
            Self::Long(long) => long.text().len(),
        }
    }

    /// Whether the tool reports a failure.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Data(_) | Self::Long(_) => false,
            Self::Mcp(result) => result["isError"] == true,
        }
    }

    /// Returns the plain data; `None` if the tool has failed. For a result of MCP this is `structuredContent` if that has
    /// something or is alone, else the only text (as [`data_of_text`] reads it), else the whole `content`. A long result is
    /// parsed: `None` too if its values would take too much memory.
    #[must_use]
    pub fn data(&self) -> Option<Cow<'_, Value>> {
        match self {
            Self::Data(data) => Some(Cow::Borrowed(data)),
            Self::Mcp(_) if self.is_error() => None,
            Self::Long(long) => Some(Cow::Owned(text::read(&long.to_data(false)).ok()?)),
            Self::Mcp(result) => Some(match (structured(result), single_text(result)) {
                (Some(data), _) => Cow::Borrowed(data),
                (None, Some(text)) => {
                    data_of_text(text).map_or_else(|| Cow::Borrowed(&result["content"][0]["text"]), Cow::Owned)
                }
                (None, None) => result.get("content").map_or_else(|| Cow::Owned(json!([])), Cow::Borrowed),
            }),
        }
    }

    /// Converts the result to plain data. `tool` is the name for the error message.
    ///
    /// # Errors
    /// The tool reports a failure.
    pub fn into_data(mut self, tool: &str) -> Result<Value, ToolError> {
        if let Some(failure) = self.failure(tool) {
            return Err(failure);
        }
        if let Self::Mcp(result) = &mut self
            && structured(result).is_some()
        {
            return Ok(result["structuredContent"].take());
        }
        Ok(self.data().map(Cow::into_owned).unwrap_or_default())
    }

    /// Writes it as text again if it is long, after somebody has read it.
    pub fn write_long(&mut self) {
        if self.weight() <= text::INLINE_LIMIT {
            return;
        }
        let written = match self {
            Self::Data(value) => LongResult::of_data(value.to_string()),
            Self::Mcp(value) => LongResult::of_mcp(value.to_string()),
            Self::Long(_) => return,
        };
        if let Ok(long) = written {
            *self = Self::Long(long);
        }
    }

    /// Adds the text of a result as the member `text` to `structuredContent`, where that has no such member and is not what
    /// the text says in JSON. Only for tools without an output schema: `structuredContent` of others is all of the data.
    pub fn join_text(&mut self) {
        let Self::Mcp(result) = self else { return };
        let Some(members) = structured(result).and_then(Value::as_object) else { return };
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(texts) = blocks.iter().map(text_of).collect::<Option<Vec<&str>>>() else { return };
        let text = texts.join("\n");
        if members.contains_key("text") || text.trim().is_empty() || parse_json(&text).as_ref() == structured(result) {
            return;
        }
        result["structuredContent"]["text"] = text.into();
    }

    /// Converts the result to a result of MCP. Plain data becomes a text, and also `structuredContent` if it is an
    /// object.
    #[must_use]
    pub fn into_mcp(self) -> Value {
        let data = match self {
            Self::Data(data) => data,
            Self::Mcp(result) => return result,
            Self::Long(long) => {
                return long.parsed().map_or_else(|unread| failed(&unread.to_string()), ToolResult::into_mcp);
            }
        };
        let text = match &data {
            Value::String(text) => text.clone(),
            data => data.to_string(),
        };
        let mut result = json!({"content": [{"type": "text", "text": text}], "isError": false});
        if data.is_object() {
            result["structuredContent"] = data;
        }
        result
    }

    /// Returns the error that the tool reports; `None` if it has not failed. `tool` is its name for the message. The error
    /// is the text of the result or, if that is JSON, one of the common forms `{message, code, details}` and
    /// `{error: {message, code, details}}`.
    #[must_use]
    pub fn failure(&self, tool: &str) -> Option<ToolError> {
        let Self::Mcp(result) = self else { return None };
        if !self.is_error() {
            return None;
        }
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(text_of).collect();
        let text = texts.join("\n");
        let value = result.get("structuredContent").cloned().or_else(|| parse_json(&text)).unwrap_or_default();
        let described = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
        let message = ["message", "error"].iter().find_map(|key| described.get(key)?.as_str());
        let mut error = ToolError::new(
            ErrorCode::ToolExecutionError,
            match message {
                Some(message) => message.to_owned(),
                None if text.trim().is_empty() => format!("Tool '{tool}' failed without a message"),
                None => text,
            },
        );
        match described.get("code") {
            Some(Value::String(code)) if !code.is_empty() && code.len() <= 100 => error.code.clone_from(code),
            Some(Value::Number(code)) => error.code = code.to_string(),
            Some(_) | None => {}
        }
        let has_more = described
            .as_object()
            .is_some_and(|members| members.keys().any(|key| key != "message" && key != "code" && key != "error"));
        if let Some(details) = described.get("details").filter(|details| !details.is_null()) {
            error.details = Some(details.to_string());
        } else if message.is_some() && has_more {
            error.details = Some(described.to_string());
        }
        Some(error)
    }
}

/// Returns the result of MCP of a tool whose result cannot be read.
fn failed(reason: &str) -> Value {
    let text = format!("The result of the tool is not read: {reason}");
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

/// Returns the text of a block of content if it is a text block.
fn text_of(block: &Value) -> Option<&str> {
    if block["type"] == "text" { block["text"].as_str() } else { None }
}

/// Returns the text of a result whose only block of content is a text block.
fn single_text(result: &Value) -> Option<&str> {
    match result["content"].as_array().map(Vec::as_slice) {
        Some([block]) => text_of(block),
        _ => None,
    }
}

/// Returns `structuredContent`; `None` if it is empty beside content, as some servers send it.
fn structured(result: &Value) -> Option<&Value> {
    let data = result.get("structuredContent")?;
    let is_empty = match data {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    let has_content = result.get("content").and_then(Value::as_array).is_some_and(|blocks| !blocks.is_empty());
    Some(data).filter(|_| !(is_empty && has_content))
}

/// Returns the data of a text: an object or a list in JSON, or a scalar if `JSON.stringify` gives back the same text.
/// Digits that a double cannot hold, such as an id, stay a text, and so do `1.10` and `1e10`.
#[must_use]
pub fn data_of_text(text: &str) -> Option<Value> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let value = text::read(trimmed).ok()?;
    let is_same = match &value {
        Value::Object(_) | Value::Array(_) => true,
        Value::Null | Value::Bool(_) | Value::String(_) => serde_json::to_string(&value).is_ok_and(|json| json == text),
        Value::Number(number) => {
            number.as_f64().is_some_and(|number| ryu_js::Buffer::new().format_finite(number) == text && text != "-0")
        }
    };
    is_same.then_some(value)
}

fn parse_json(json: &str) -> Option<Value> {
    text::read(json.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_structured_content_or_text_or_all_content() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (given, expected) in [
            (json!({"content": [text("x")], "structuredContent": {"a": 1}}), json!({"a": 1})),
            (json!({"content": [text(" {\"b\": [1]} ")]}), json!({"b": [1]})),
            (json!({"content": [text("42")]}), json!(42)),
            (json!({"content": [text("plain")]}), json!("plain")),
            (json!({"content": []}), json!([])),
            (json!({"content": [text("a"), text("b")]}), json!([text("a"), text("b")])),
            (json!({"content": [text("x")], "structuredContent": null}), json!("x")),
            (json!({"content": [text("x")], "structuredContent": {}}), json!("x")),
            (json!({"content": [text("[1]")], "structuredContent": []}), json!([1])),
            (json!({"content": [], "structuredContent": {}}), json!({})),
            (json!({"content": [text("a"), text("b")], "structuredContent": []}), json!([text("a"), text("b")])),
        ] {
            let result = ToolResult::Mcp(given);
            assert_eq!(result.data().as_deref(), Some(&expected));
            assert_eq!(result.into_data("t"), Ok(expected));
        }
        assert_eq!(ToolResult::from(json!("42")).into_data("t"), Ok(json!("42")), "plain data stay as they are");
    }

    #[test]
    fn metadata_and_text_are_both_data() {
        let joined = |text: &str, structured: Value| {
            let content = json!([{"type": "text", "text": text}]);
            let mut result = ToolResult::Mcp(json!({"content": content, "structuredContent": structured}));
            result.join_text();
            result.into_data("t").expect("data")
        };
        assert_eq!(joined("the page", json!({"length": 8})), json!({"length": 8, "text": "the page"}));
        assert_eq!(joined("{\n \"length\": 8 }", json!({"length": 8})), json!({"length": 8}));
        assert_eq!(joined("x", json!({"text": "y"})), json!({"text": "y"}));
        assert_eq!(joined(" ", json!({"a": 1})), json!({"a": 1}));
        assert_eq!(joined("x", json!([1])), json!([1]));
        assert_eq!(joined("x", json!({})), json!("x"));
    }

    /// Expectations by Node: `JSON.stringify(JSON.parse(text)) === text`.
    #[test]
    fn a_scalar_is_data_if_it_comes_back_the_same() {
        for text in ["42", "-7", "0", "1.5", "1e+21", "1e-7", "9007199254740991", "true", "null", "\"x\"", "\"a\\nb\""]
        {
            assert!(data_of_text(text).is_some(), "{text}");
        }
        for text in [
            "1234567890123456789",
            "9007199254740993",
            "1.10",
            "1e10",
            "007",
            "-0",
            "1.0",
            "+1",
            "1e400",
            " 42",
            "42\n",
            "0x10",
            "NaN",
            "\"\\u0041\"",
            "\"\\/\"",
            "",
        ] {
            assert_eq!(data_of_text(text), None, "{text}");
        }
        for text in [" [1] ", "\u{feff}{\"a\": 1.10}", "{}"] {
            assert!(data_of_text(text).is_some(), "{text}");
        }
    }

    #[test]
    fn plain_data_becomes_a_result_of_mcp() {
        assert_eq!(
            ToolResult::from(json!({"a": 1})).into_mcp(),
            json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "isError": false, "structuredContent": {"a": 1}})
        );
        assert_eq!(
            ToolResult::from(json!("x")).into_mcp(),
            json!({"content": [{"type": "text", "text": "x"}], "isError": false})
        );
    }

    #[test]
    fn a_failure_is_read_from_text_or_json() {
        let failed = |text: &str| {
            let result = ToolResult::Mcp(json!({"content": [{"type": "text", "text": text}], "isError": true}));
            assert_eq!(result.data(), None);
            result.into_data("t").expect_err("failed")
        };
        assert_eq!((failed("boom").code.as_str(), failed("boom").message.as_str()), ("TOOL_EXECUTION_ERROR", "boom"));
        let error = failed(r#"{"message": "Rate limit", "code": "RATE_LIMIT", "details": {"after": 3}}"#);
        assert_eq!(
            (error.code.as_str(), error.message.as_str(), error.details.as_deref()),
            ("RATE_LIMIT", "Rate limit", Some(r#"{"after":3}"#))
        );
        let error = failed(r#"{"error": {"message": "no", "code": 404}}"#);
        assert_eq!((error.code.as_str(), error.message.as_str()), ("404", "no"));
        assert_eq!(failed("").message, "Tool 't' failed without a message");
    }
}
