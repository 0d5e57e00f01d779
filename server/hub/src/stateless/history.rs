//! Parses the rounds of a run from the messages of a client.
//!
//! A code block is followed by messages of an assistant, with tool calls, and of tools, with their results. Each
//! message of the assistant is a round. The results between it and the next one are the answers of that round, in this
//! order.

use agentscript::ToolError;
use agentscript::stateless::{Answer, JournalCall, Round};
use codecall_base::tool::{ErrorCode, data_of_text};
use serde_json::Value;
use std::collections::HashMap;

/// The rounds of a run, and the ids of its calls in the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// The ids of all calls, by number.
    pub names: Vec<String>,
}

/// Why messages are not the history of a run. Positions are those in the list of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// A message of another role.
    #[error(
        "messages[{0}]: only an assistant's tool calls and the results of tools can stand between a code block and its result"
    )]
    Role(usize),
    /// A call without an id, a name or arguments.
    #[error(
        "messages[{at}].tool_calls[{call}]: a tool call needs an id and a function with name and arguments, a JSON object or its text"
    )]
    Call {
        /// Position of the message.
        at: usize,
        /// Position of the call in it.
        call: usize,
    },
    /// A result that does not say of which call it is.
    #[error("messages[{0}]: the result of a tool needs 'tool_call_id', a text")]
    NoCallId(usize),
    /// A result of an unknown call.
    #[error("messages[{at}]: there was no tool call '{id}'{hint}", hint = known_calls(.calls))]
    Unknown {
        /// Position of the message.
        at: usize,
        /// The id that it names.
        id: String,
        /// The ids of the known calls.
        calls: Vec<String>,
    },
    /// Two calls of one id, or two results of one call.
    #[error("messages[{at}]: '{id}' is there twice")]
    Twice {
        /// Position of the second message.
        at: usize,
        /// The id of the call.
        id: String,
    },
}

fn known_calls(calls: &[String]) -> String {
    if calls.is_empty() { String::new() } else { format!("; there were {}", calls.join(", ")) }
}

impl History {
    /// Parses the messages between a code block and its result.
    ///
    /// Keys may be written `tool_calls` or `toolCalls`. A tool's message is an error if it has `is_error: true`, or if
    /// its content is a JSON object whose only member is `error`. Other content is a result: its JSON, or the text if
    /// it is not JSON.
    ///
    /// `first` is the position of the first of them in the list of the request, for errors.
    ///
    /// # Errors
    /// The messages are not the history of a run.
    pub fn read(messages: &[Value], first: usize) -> Result<Self, HistoryError> {
        let mut history = Self::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut answered = Vec::new();
        for (at, message) in (first..).zip(messages) {
            match message["role"].as_str() {
                Some("assistant") => history.add_round(at, message, &mut numbers)?,
                Some("tool") => {
                    let id = member(message, "tool_call_id", "toolCallId").and_then(Value::as_str);
                    let id = id.ok_or(HistoryError::NoCallId(at))?;
                    let Some(&call) = numbers.get(id) else {
                        let calls = history.names.clone();
                        return Err(HistoryError::Unknown { at, id: id.to_owned(), calls });
                    };
                    if answered.contains(&call) {
                        return Err(HistoryError::Twice { at, id: id.to_owned() });
                    }
                    answered.push(call);
                    let answer = Answer { call, result: parse_result(message) };
                    history.rounds.last_mut().ok_or(HistoryError::Role(at))?.answers.push(answer);
                }
                Some(_) | None => return Err(HistoryError::Role(at)),
            }
        }
        Ok(history)
    }

    /// Adds the calls of an assistant's message as a round.
    fn add_round(
        &mut self,
        at: usize,
        message: &Value,
        numbers: &mut HashMap<String, u32>,
    ) -> Result<(), HistoryError> {
        let calls = member(message, "tool_calls", "toolCalls").and_then(Value::as_array);
        let calls = calls.filter(|calls| !calls.is_empty()).ok_or(HistoryError::Role(at))?;
        let mut round = Round::default();
        for (number, call) in calls.iter().enumerate() {
            let wrong = || HistoryError::Call { at, call: number };
            let function = &call["function"];
            let input = match &function["arguments"] {
                Value::String(text) => text.clone(),
                Value::Object(members) => Value::Object(members.clone()).to_string(),
                _ => return Err(wrong()),
            };
            let (Some(id), Some(tool)) = (call["id"].as_str(), function["name"].as_str()) else {
                return Err(wrong());
            };
            let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            if numbers.insert(id.to_owned(), number).is_some() {
                return Err(HistoryError::Twice { at, id: id.to_owned() });
            }
            self.names.push(id.to_owned());
            round.calls.push(JournalCall { tool: tool.to_owned(), input });
        }
        self.rounds.push(round);
        Ok(())
    }
}

/// Returns a member by either of its two names.
fn member<'a>(message: &'a Value, name: &str, alias: &str) -> Option<&'a Value> {
    message.get(name).or_else(|| message.get(alias))
}

/// Parses the content of a tool's message.
fn parse_result(message: &Value) -> Result<String, ToolError> {
    let content = match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<String>(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let value: Value = serde_json::from_str(&content).unwrap_or_else(|_| Value::String(content.clone()));
    if member(message, "is_error", "isError") == Some(&Value::Bool(true)) {
        return Err(parse_error(value.get("error").unwrap_or(&value)));
    }
    match value.as_object() {
        Some(members) if members.len() == 1 && members.contains_key("error") => Err(parse_error(&members["error"])),
        _ => match data_of_text(&content) {
            // Valid JSON stays as it is written.
            Some(Value::Object(_) | Value::Array(_)) => Ok(content),
            Some(scalar) => Ok(scalar.to_string()),
            None => Ok(Value::String(content).to_string()),
        },
    }
}

/// Parses a tool's error: a message, or an object with `message`, `code` and `details`.
pub fn parse_error(error: &Value) -> ToolError {
    const CODE: &str = ErrorCode::ToolExecutionError.as_str();
    match error {
        Value::Object(members) => {
            let text = |key: &str| members.get(key).and_then(Value::as_str);
            let message = text("message").map_or_else(|| error.to_string(), str::to_owned);
            let mut tool_error = ToolError::new(text("code").unwrap_or(CODE), message);
            tool_error.details = members.get("details").map(Value::to_string);
            tool_error
        }
        Value::String(message) => ToolError::new(CODE, message.as_str()),
        other => ToolError::new(CODE, other.to_string()),
    }
}
