//! What a tool gives, and the plain data that scripts get of it.

use super::{ErrorCode, ToolError};
use serde_json::{Value, json};
use std::borrow::Cow;

/// What a tool gives.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    /// Plain data, of a tool that does not speak MCP. Such a tool fails with a [`ToolError`].
    Data(Value),
    /// A result of MCP (`CallToolResult`): an object with `content`, `structuredContent`, `isError`, `_meta`. A tool
    /// that fails gives one with `isError`.
    Mcp(Value),
}

impl From<Value> for ToolResult {
    fn from(data: Value) -> Self {
        Self::Data(data)
    }
}

impl ToolResult {
    /// All that was given, as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        match self {
            Self::Data(value) | Self::Mcp(value) => value,
        }
    }

    /// All that was given, to be masked or cleaned.
    pub fn value_mut(&mut self) -> &mut Value {
        match self {
            Self::Data(value) | Self::Mcp(value) => value,
        }
    }

    /// Whether the tool says that it has failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Data(_) => false,
            Self::Mcp(result) => result["isError"] == true,
        }
    }

    /// The plain data; absent: the tool has failed. Of a result of MCP that is `structuredContent` where it is given,
    /// else a single text, parsed where it is JSON, else all content.
    #[must_use]
    pub fn data(&self) -> Option<Cow<'_, Value>> {
        match self {
            Self::Data(data) => Some(Cow::Borrowed(data)),
            Self::Mcp(_) if self.is_error() => None,
            Self::Mcp(result) => Some(match (result.get("structuredContent"), single_text(result)) {
                (Some(data), _) => Cow::Borrowed(data),
                (None, Some(text)) => {
                    parsed(text).map_or_else(|| Cow::Borrowed(&result["content"][0]["text"]), Cow::Owned)
                }
                (None, None) => result.get("content").map_or_else(|| Cow::Owned(json!([])), Cow::Borrowed),
            }),
        }
    }

    /// The plain data.
    ///
    /// # Errors
    /// The tool, which has this name, says that it has failed.
    pub fn into_data(mut self, tool: &str) -> Result<Value, ToolError> {
        if let Some(failure) = self.failure(tool) {
            return Err(failure);
        }
        if let Self::Mcp(result) = &mut self
            && let Some(data) = result.get_mut("structuredContent")
        {
            return Ok(data.take());
        }
        Ok(self.data().map(Cow::into_owned).unwrap_or_default())
    }

    /// A result of MCP. Plain data become text, and structured content where they are an object.
    #[must_use]
    pub fn into_mcp(self) -> Value {
        let data = match self {
            Self::Data(data) => data,
            Self::Mcp(result) => return result,
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

    /// How the tool, which has this name, says that it has failed: in its texts, or in what they say as JSON. Both
    /// `{message, code, details}` and `{error: {message, code, details}}` are common.
    #[must_use]
    pub fn failure(&self, tool: &str) -> Option<ToolError> {
        let Self::Mcp(result) = self else { return None };
        if !self.is_error() {
            return None;
        }
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(text_of).collect();
        let text = texts.join("\n");
        let value = result.get("structuredContent").cloned().or_else(|| parsed(&text)).unwrap_or_default();
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

/// The text of a block of content that is one.
fn text_of(block: &Value) -> Option<&str> {
    if block["type"] == "text" { block["text"].as_str() } else { None }
}

/// The only block of content of a result, where it is a text.
fn single_text(result: &Value) -> Option<&str> {
    match result["content"].as_array().map(Vec::as_slice) {
        Some([block]) => text_of(block),
        _ => None,
    }
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_what_is_structured_or_said() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (given, expected) in [
            (json!({"content": [text("x")], "structuredContent": {"a": 1}}), json!({"a": 1})),
            (json!({"content": [text(" {\"b\": [1]} ")]}), json!({"b": [1]})),
            (json!({"content": [text("42")]}), json!(42)),
            (json!({"content": [text("plain")]}), json!("plain")),
            (json!({"content": []}), json!([])),
            (json!({"content": [text("a"), text("b")]}), json!([text("a"), text("b")])),
        ] {
            let result = ToolResult::Mcp(given);
            assert_eq!(result.data().as_deref(), Some(&expected));
            assert_eq!(result.into_data("t"), Ok(expected));
        }
        assert_eq!(ToolResult::from(json!("42")).into_data("t"), Ok(json!("42")), "plain data stay as they are");
    }

    #[test]
    fn plain_data_become_a_result() {
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
    fn failures() {
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
