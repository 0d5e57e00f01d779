//! The output of a request: the text of the model, which is collected, and the chunks of a streamed response.

use super::ChunkResult;
use codecall_hub::stateless::messages::FunctionCall;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Separates the texts before and after a run of code.
const SEPARATOR: &str = "\n\n";

/// The content of a chunk of a streamed response.
#[derive(Debug)]
pub enum Chunk {
    /// A part of the message.
    Choice {
        /// The part: members of the message.
        delta: Value,
        /// Why the message ends; null if it continues.
        finish_reason: Value,
        /// The `logprobs` of the model server.
        logprobs: Option<Value>,
    },
    /// The messages of code blocks.
    CodeMessages(Vec<Value>),
    /// The usage of all requests to the model.
    Usage(Value),
}

impl Chunk {
    /// Creates a part of the message, after which it continues.
    pub fn delta(delta: Value) -> Self {
        Self::Choice { delta, finish_reason: Value::Null, logprobs: None }
    }

    /// Creates the part of the message with a tool call. `index` counts the calls of the message.
    pub fn call(index: usize, call: &FunctionCall) -> Self {
        let mut call = call.to_json();
        call["index"] = index.into();
        Self::delta(json!({"tool_calls": [call]}))
    }

    /// Creates the end of the message.
    pub fn end(finish_reason: Value) -> Self {
        Self::Choice { delta: json!({}), finish_reason, logprobs: None }
    }

    /// Returns the members of the chunk besides the envelope.
    pub fn into_members(self) -> Map<String, Value> {
        let (choices, member) = match self {
            Self::Choice { delta, finish_reason, logprobs } => {
                let mut choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
                if let Some(logprobs) = logprobs {
                    choice["logprobs"] = logprobs;
                }
                (json!([choice]), None)
            }
            Self::CodeMessages(messages) => (json!([]), Some(("codecall", json!({"messages": messages})))),
            Self::Usage(usage) => (json!([]), Some(("usage", usage))),
        };
        let members = std::iter::once(("choices", choices)).chain(member);
        members.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// The text of all turns of the model.
#[derive(Debug, Default)]
pub struct Output {
    text: String,
    /// Whether the next text begins with a separator.
    needs_separator: bool,
    /// Receives the text as it comes, if the response is streamed.
    sender: Option<UnboundedSender<ChunkResult>>,
}

impl Output {
    /// Creates an output that is streamed.
    pub fn streaming_to(sender: UnboundedSender<ChunkResult>) -> Self {
        Self { sender: Some(sender), ..Self::default() }
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Begins another turn of the model.
    pub fn begin_turn(&mut self) {
        self.needs_separator = !self.text.is_empty();
    }

    /// Appends the text of a whole message. It is not streamed.
    pub fn append(&mut self, text: &str) {
        if !text.is_empty() {
            if std::mem::take(&mut self.needs_separator) {
                self.text.push_str(SEPARATOR);
            }
            self.text.push_str(text);
        }
    }

    /// Appends the text of a choice of the model's stream, and streams the choice without its calls.
    pub fn append_choice(&mut self, choice: &Value) {
        let mut delta = choice["delta"].clone();
        let Some(members) = delta.as_object_mut() else { return };
        members.remove("role");
        members.remove("tool_calls");
        members.retain(|_, value| !value.is_null() && value != "");
        if let Some(Value::String(text)) = members.get_mut("content") {
            if self.needs_separator {
                text.insert_str(0, SEPARATOR);
                self.needs_separator = false;
            }
            self.text.push_str(text);
        }
        if members.is_empty() {
            return;
        }
        let logprobs = Some(&choice["logprobs"]).filter(|logprobs| !logprobs.is_null()).cloned();
        let chunk = Chunk::Choice { delta, finish_reason: Value::Null, logprobs };
        if let Some(sender) = &self.sender {
            // If the receiver is gone, the request is cancelled too.
            let _ = sender.send(Ok(chunk));
        }
    }
}
