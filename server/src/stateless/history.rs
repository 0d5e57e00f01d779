//! The rounds of a run from the messages that tell of it.
//!
//! After a code block come messages of an assistant, with tool calls, and of tools, with their answers.
//! Each message of the assistant is a round; the answers that follow it are those that came before the
//! next one, in the order of the messages.

use super::CodeId;
use agentscript::ToolError;
use agentscript::stateless::{Answer, Issued, Round};
use codecall_base::tool::ErrorCode;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The rounds of one run, and the names that its calls have in the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Names of all calls so far, by number.
    pub names: Vec<String>,
}

/// Why messages do not tell of a run. Places are counted from the first message that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// A message that cannot stand there.
    #[error(
        "messages[{0}]: only an assistant's tool calls and the results of tools can stand between a code block and its result"
    )]
    Role(usize),
    /// A call without the parts that every call has.
    #[error("messages[{0}]: a tool call needs an id and a function with name and arguments, a JSON object or its text")]
    Call(usize),
    /// An answer to nothing.
    #[error("messages[{at}]: there was no tool call '{id}'{hint}", hint = known(.calls))]
    Unknown {
        /// Which message.
        at: usize,
        /// What it answers.
        id: String,
        /// The calls there were.
        calls: Vec<String>,
    },
    /// Two calls of one name, or two answers to one call.
    #[error("messages[{at}]: '{id}' is there twice")]
    Twice {
        /// Which message.
        at: usize,
        /// The name.
        id: String,
    },
}

fn known(calls: &[String]) -> String {
    if calls.is_empty() { String::new() } else { format!("; there were {}", calls.join(", ")) }
}

impl History {
    /// Read the messages that follow a code block, up to its result.
    ///
    /// Both spellings of the keys are read, `tool_calls` and `toolCalls`. An answer is an error where the
    /// message says so (`is_error: true`) or where its content is a JSON object with no member but
    /// `error`; everything else is a result: JSON where it is JSON, else text.
    ///
    /// # Errors
    /// What stands there tells of no run.
    pub fn read(messages: &[Value]) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut answered = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            match message["role"].as_str() {
                Some("assistant") => history.assistant(at, message, &mut numbers)?,
                Some("tool") => {
                    let id = either(message, "tool_call_id", "toolCallId").and_then(Value::as_str);
                    let id = id.ok_or(HistoryError::Call(at))?;
                    let Some(&call) = numbers.get(id) else {
                        let calls = history.names.clone();
                        return Err(HistoryError::Unknown { at, id: id.to_owned(), calls });
                    };
                    if answered.contains(&call) {
                        return Err(HistoryError::Twice { at, id: id.to_owned() });
                    }
                    answered.push(call);
                    let answer = Answer { call, result: answer(message) };
                    history.rounds.last_mut().ok_or(HistoryError::Role(at))?.answers.push(answer);
                }
                Some(_) | None => return Err(HistoryError::Role(at)),
            }
        }
        Ok(history)
    }

    fn assistant(
        &mut self,
        at: usize,
        message: &Value,
        numbers: &mut HashMap<String, u32>,
    ) -> Result<(), HistoryError> {
        let calls = either(message, "tool_calls", "toolCalls").and_then(Value::as_array);
        let calls = calls.filter(|calls| !calls.is_empty()).ok_or(HistoryError::Role(at))?;
        let mut round = Round::default();
        for call in calls {
            let function = &call["function"];
            let input = match &function["arguments"] {
                Value::String(text) => text.clone(),
                Value::Object(members) => Value::Object(members.clone()).to_string(),
                _ => return Err(HistoryError::Call(at)),
            };
            let (Some(id), Some(tool)) = (call["id"].as_str(), function["name"].as_str()) else {
                return Err(HistoryError::Call(at));
            };
            let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            if numbers.insert(id.to_owned(), number).is_some() {
                return Err(HistoryError::Twice { at, id: id.to_owned() });
            }
            self.names.push(id.to_owned());
            round.calls.push(Issued { tool: tool.to_owned(), input });
        }
        self.rounds.push(round);
        Ok(())
    }
}

fn either<'a>(message: &'a Value, one: &str, other: &str) -> Option<&'a Value> {
    message.get(one).or_else(|| message.get(other))
}

/// What a tool's message says.
fn answer(message: &Value) -> Result<String, ToolError> {
    let content = match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let value: Value = serde_json::from_str(&content).unwrap_or_else(|_| Value::String(content.clone()));
    if either(message, "is_error", "isError") == Some(&Value::Bool(true)) {
        return Err(error(value.get("error").unwrap_or(&value)));
    }
    match value.as_object() {
        Some(members) if members.len() == 1 && members.contains_key("error") => Err(error(&members["error"])),
        // Numbers keep all their digits where the text is JSON already.
        _ if serde_json::from_str::<serde::de::IgnoredAny>(&content).is_ok() => Ok(content),
        _ => Ok(value.to_string()),
    }
}

/// A tool's error from what is told of it.
pub fn error(told: &Value) -> ToolError {
    const CODE: &str = ErrorCode::ToolExecutionError.as_str();
    match told {
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let mut error = ToolError::new(
                text("code").unwrap_or(CODE),
                text("message").map_or_else(|| told.to_string(), str::to_owned),
            );
            error.details = members.get("details").map(Value::to_string);
            error
        }
        Value::String(message) => ToolError::new(CODE, message.as_str()),
        other => ToolError::new(CODE, other.to_string()),
    }
}

/// The message of an assistant that makes calls: `(id, tool, input)` each.
pub fn assistant<'a>(calls: impl Iterator<Item = (String, &'a str, &'a str)>) -> Value {
    let calls: Vec<Value> = calls
        .map(|(id, tool, input)| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": input}}))
        .collect();
    json!({"role": "assistant", "content": "", "tool_calls": calls})
}

/// The result of a code block as a message.
pub fn code_result(id: &CodeId, outcome: &Map<String, Value>) -> Value {
    let mut result = match outcome.get("status").and_then(Value::as_str) {
        Some("ok") => json!({"status": "success", "data": outcome.get("result")}),
        _ => json!({"status": "error", "error": outcome.get("error")}),
    };
    if let Some(logs) = outcome.get("logs") {
        result["logs"] = logs.clone();
    }
    json!({"role": "code_result", "id": id.as_str(), "result": result})
}
