//! A conversation as a client keeps it and as the model sees it.
//!
//! The client keeps ordinary messages. A **block** in them is code that the model wrote, with the calls
//! that the code made and their answers. Where a client keeps messages of role `code` and `code_result`,
//! they say so; where it keeps ordinary messages only, the name of a block's first call holds its code.
//! The model sees a block as one call of `run_code` and its result.

use super::names;
use serde_json::{Value, json};

/// The tool that the model has.
pub const RUN_CODE: &str = "run_code";

/// Most code in all blocks of a conversation, in bytes: a short name can hold very much of it.
const MOST_CODE: usize = 8 << 20;

/// The messages, with what belongs to a block in one piece.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    items: Vec<Item>,
    /// Bytes of code in them.
    code: usize,
}

#[derive(Clone, Debug)]
enum Item {
    Message(Value),
    Block(Block),
}

/// Code and what came of it.
#[derive(Clone, Debug)]
pub struct Block {
    /// Names the run.
    pub id: String,
    /// The script.
    pub code: String,
    /// What the model said before it.
    pub text: String,
    /// Calls and answers, as messages.
    pub messages: Vec<Value>,
    /// How it ended, `{status: "success", data}` or `{status: "error", error}`; absent: that has to be
    /// found out.
    pub result: Option<Value>,
}

impl Block {
    /// Code that has not run.
    pub fn new(id: impl Into<String>, code: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), code: code.into(), text: text.into(), messages: Vec::new(), result: None }
    }

    fn has_call(&self, id: &str) -> bool {
        self.messages.iter().flat_map(calls).any(|call| call["id"] == id)
    }
}

/// The calls in a message of an assistant.
pub fn calls(message: &Value) -> &[Value] {
    let calls = message.get("tool_calls").or_else(|| message.get("toolCalls"));
    calls.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The text of a message; empty where it has none.
pub fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

impl Conversation {
    /// Read the messages of a client.
    ///
    /// # Errors
    /// A message of role `code` or `code_result` makes no sense where it stands. Other messages are the
    /// model server's affair.
    pub fn read(messages: Vec<Value>) -> Result<Self, String> {
        let mut conversation = Self::default();
        for (at, message) in messages.into_iter().enumerate() {
            conversation.take(message).map_err(|problem| format!("messages[{at}]: {problem}"))?;
        }
        Ok(conversation)
    }

    fn take(&mut self, message: Value) -> Result<(), String> {
        match message["role"].as_str() {
            Some("code") => {
                let (Some(id), Some(code)) = (message["id"].as_str(), message["code"].as_str()) else {
                    return Err("a message of role 'code' has 'id' and 'code', both texts".into());
                };
                let block = Block::new(id, code, self.said_before());
                self.push(block);
                return self.bounded();
            }
            Some("code_result") => {
                let block = self.open().filter(|block| message["id"] == block.id.as_str());
                let block = block.ok_or("a message of role 'code_result' follows the code block with its id")?;
                if !message["result"].is_object() {
                    return Err("a message of role 'code_result' has 'result', an object with 'status'".into());
                }
                block.result = Some(message["result"].clone());
                return Ok(());
            }
            Some("assistant") if !calls(&message).is_empty() => {
                let first = calls(&message)[0]["id"].as_str().unwrap_or_default();
                let left = MOST_CODE - self.code;
                if let Some((id, code)) = names::code(first, left).map_err(|names::TooLong| too_much())? {
                    let mut block = Block::new(id, code, text(&message));
                    block.messages.push(message);
                    self.push(block);
                    return self.bounded();
                }
                // Calls with names of their own are of the block that stands before them.
                let belongs = |block: &Block| names::run(first).is_none_or(|run| run == block.id);
                if let Some(block) = self.open().filter(|block| belongs(block)) {
                    block.messages.push(message);
                    return Ok(());
                }
            }
            Some("tool") => {
                let id = message.get("tool_call_id").or_else(|| message.get("toolCallId"));
                let id = id.and_then(Value::as_str).unwrap_or_default();
                if let Some(block) = self.open().filter(|block| block.has_call(id)) {
                    block.messages.push(message);
                    return Ok(());
                }
            }
            Some(_) | None => {}
        }
        self.items.push(Item::Message(message));
        Ok(())
    }

    /// The block at the end, if its result is not known.
    pub fn open(&mut self) -> Option<&mut Block> {
        match self.items.last_mut() {
            Some(Item::Block(block)) if block.result.is_none() => Some(block),
            Some(_) | None => None,
        }
    }

    /// The blocks before the end whose results are not known.
    pub fn unsettled(&mut self) -> impl Iterator<Item = &mut Block> {
        let before_end = self.items.len().saturating_sub(1);
        self.items.iter_mut().take(before_end).filter_map(|item| match item {
            Item::Block(block) if block.result.is_none() => Some(block),
            Item::Block(_) | Item::Message(_) => None,
        })
    }

    /// What an assistant has said just before, if that is all it did: it belongs to the code.
    fn said_before(&mut self) -> String {
        match self.items.last() {
            Some(Item::Message(message)) if message["role"] == "assistant" && calls(message).is_empty() => {
                let said = text(message);
                self.items.pop();
                said
            }
            Some(_) | None => String::new(),
        }
    }

    fn bounded(&self) -> Result<(), String> {
        if self.code > MOST_CODE { Err(too_much()) } else { Ok(()) }
    }

    /// Go on with a block.
    pub fn push(&mut self, block: Block) {
        self.code += block.code.len();
        self.items.push(Item::Block(block));
    }

    /// The messages for the model, with `instructions` in the first one of the system.
    pub fn for_model(&self, instructions: &str) -> Vec<Value> {
        let mut messages = Vec::with_capacity(self.items.len() + 1);
        for item in &self.items {
            match item {
                Item::Message(message) => messages.push(message.clone()),
                Item::Block(block) => messages.extend(seen(block)),
            }
        }
        instruct(&mut messages, instructions);
        messages
    }
}

fn too_much() -> String {
    format!("the conversation holds more than {MOST_CODE} bytes of code; drop what is oldest")
}

/// A block as a call of `run_code` and its result.
fn seen(block: &Block) -> [Value; 2] {
    let id = names::short(&block.id);
    let arguments = json!({"code": block.code}).to_string();
    let call = json!({"id": id, "type": "function", "function": {"name": RUN_CODE, "arguments": arguments}});
    let result = block.result.as_ref().map(Value::to_string).unwrap_or_default();
    [
        json!({"role": "assistant", "content": block.text, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": result}),
    ]
}

/// Put the instructions behind what the client tells its model. Many servers know one message of the
/// system only, and that at the beginning.
fn instruct(messages: &mut Vec<Value>, instructions: &str) {
    let first = messages.first_mut().filter(|first| matches!(first["role"].as_str(), Some("system" | "developer")));
    match first.map(|first| &mut first["content"]) {
        Some(Value::String(text)) => *text = format!("{text}\n\n{instructions}"),
        Some(Value::Array(parts)) => parts.push(json!({"type": "text", "text": instructions})),
        Some(_) | None => messages.insert(0, json!({"role": "system", "content": instructions})),
    }
}
