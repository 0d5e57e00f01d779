//! The text that the model writes while a request is answered: collected, and streamed to the client.

use crate::http::error::ErrorResponse;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Separates the texts before and after a run of code.
const SEPARATOR: &str = "\n\n";

/// A choice of a streamed response, or the error that ends the stream.
pub type Chunk = Result<Value, ErrorResponse>;

/// The text of all turns of the model.
#[derive(Debug, Default)]
pub struct Output {
    text: String,
    /// Whether the next text begins with a separator.
    needs_separator: bool,
    /// Receives the text as it comes, if the response is streamed.
    sender: Option<UnboundedSender<Chunk>>,
}

impl Output {
    /// Creates an output that is streamed.
    pub fn streaming_to(sender: UnboundedSender<Chunk>) -> Self {
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
        let mut chunk = json!({"index": 0, "delta": delta, "finish_reason": null});
        if !choice["logprobs"].is_null() {
            chunk["logprobs"] = choice["logprobs"].clone();
        }
        if let Some(sender) = &self.sender {
            // If the receiver is gone, the request is cancelled too.
            let _ = sender.send(Ok(chunk));
        }
    }
}
