//! What the model says while a request is answered, in one text, and in pieces for those who follow.

use crate::http::error::ErrorResponse;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// What stands between what was said before code ran and after it.
const GAP: &str = "\n\n";

/// A piece of an answer, or why there are no more.
pub type Piece = Result<Value, ErrorResponse>;

/// All that was said.
#[derive(Debug, Default)]
pub struct Speech {
    spoken: String,
    gap: bool,
    /// Who follows; absent: nobody.
    listener: Option<UnboundedSender<Piece>>,
}

impl Speech {
    /// With somebody who follows.
    pub fn followed_by(listener: UnboundedSender<Piece>) -> Self {
        Self { listener: Some(listener), ..Self::default() }
    }

    /// The text so far.
    pub fn spoken(&self) -> &str {
        &self.spoken
    }

    /// The model is asked again.
    pub fn begin_turn(&mut self) {
        self.gap = !self.spoken.is_empty();
    }

    /// The model has said this.
    pub fn remember(&mut self, text: &str) {
        if !text.is_empty() {
            if std::mem::take(&mut self.gap) {
                self.spoken.push_str(GAP);
            }
            self.spoken.push_str(text);
        }
    }

    /// A choice of a stream, without calls: it is told to who follows.
    pub fn say(&mut self, choice: &Value) {
        let mut delta = choice["delta"].clone();
        let Some(members) = delta.as_object_mut() else { return };
        members.remove("role");
        members.remove("tool_calls");
        members.retain(|_, value| !value.is_null() && value != "");
        if let Some(Value::String(text)) = members.get_mut("content") {
            if self.gap {
                text.insert_str(0, GAP);
                self.gap = false;
            }
            self.spoken.push_str(text);
        }
        if members.is_empty() {
            return;
        }
        let mut told = json!({"index": 0, "delta": delta, "finish_reason": null});
        if !choice["logprobs"].is_null() {
            told["logprobs"] = choice["logprobs"].clone();
        }
        if let Some(listener) = &self.listener {
            // Who does not follow any more has ended the request too.
            let _ = listener.send(Ok(told));
        }
    }
}
