//! The messages of code blocks, as clients keep them in their history: the code, the tool calls that it makes, and its
//! result.

use super::evaluation::ClientCall;
use agentscript::{ErrorCode, Origin};
use serde_json::{Value, json};

/// A tool call in a message of the assistant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input: JSON text of an object.
    pub arguments: String,
}

/// A message of the assistant with tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssistantMessage {
    /// The text before the calls.
    pub content: Option<String>,
    /// The calls, in their order.
    pub calls: Vec<FunctionCall>,
}

impl From<&ClientCall> for FunctionCall {
    fn from(call: &ClientCall) -> Self {
        Self { id: call.id.clone(), name: call.tool.clone(), arguments: call.input.clone() }
    }
}

impl FunctionCall {
    /// Returns the call in the format of chat completions.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { id, name, arguments } = self;
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }
}

impl AssistantMessage {
    /// Returns the message in the format of chat completions.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let calls: Vec<Value> = self.calls.iter().map(FunctionCall::to_json).collect();
        json!({"role": "assistant", "content": self.content, "tool_calls": calls})
    }
}

/// Returns the message with the code of a block.
#[must_use]
pub fn code_message(id: &str, code: &str) -> Value {
    json!({"role": "code", "id": id, "code": code})
}

/// Returns the message with the result of a code block.
#[must_use]
pub fn code_result_message(id: &str, result: Value) -> Value {
    object([("role", "code_result".into()), ("id", id.into()), ("result", result)])
}

/// Returns the result of a code block that has failed.
#[must_use]
pub fn failed_code_result(error: Value) -> Value {
    object([("status", "error".into()), ("error", error)])
}

/// Creates an object. Unlike `json!`, this does not copy large values.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Whether a history gives the result of a code block that the block has: equal data, or an error of the same code and
/// message. An error that depends on time or on the machine may have happened once and not again.
#[must_use]
pub fn is_same_code_result(given: &Value, own: &Value) -> bool {
    let code = |result: &Value| result["error"]["code"].as_str().and_then(ErrorCode::parse);
    let may_differ = |code: ErrorCode| code == ErrorCode::Timeout || code.origin() == Origin::Host;
    if code(own).is_some_and(|code| may_differ(code) && code != ErrorCode::Interrupted)
        || code(given).is_some_and(may_differ)
    {
        return true;
    }
    if given["status"] != own["status"] {
        return false;
    }
    match given["status"].as_str() {
        Some("success") => given["data"] == own["data"],
        // Code that the model has written in a wrong form was refused in other words.
        _ if code(own) == Some(ErrorCode::SyntaxError) => given["error"]["code"] == own["error"]["code"],
        _ => ["code", "message"].iter().all(|key| given["error"][*key] == own["error"][*key]),
    }
}
