//! The history of a conversation: parsed from the client's messages, and converted to messages for the model.
//!
//! A **block** is code that the model wrote, with the calls that the code made and their results. A client that keeps
//! messages of role `code` and `code_result` marks blocks with them. For other clients, the id of a block's first call
//! contains the code. The model sees a block as one call of `run_code` and its result.

use super::call_ids;
use codecall_hub::stateless::messages::{AssistantMessage, FunctionCall};
use serde_json::{Value, json};

/// The name of the model's only tool.
pub const RUN_CODE: &str = "run_code";

/// Maximum length of an id in an error message, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Maximum size of the code in all blocks of a conversation, in bytes. A short id can decompress to much code.
const MAX_CODE_BYTES: usize = 8 << 20;

/// A history of messages and blocks.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    items: Vec<Item>,
    /// Size of the code in all blocks.
    code_bytes: usize,
}

#[derive(Clone, Debug)]
enum Item {
    Message(Value),
    Block(Block),
}

/// Code of the model, with its calls and its result.
#[derive(Clone, Debug)]
pub struct Block {
    /// The id of the run.
    pub id: String,
    /// The script.
    pub code: String,
    /// The model's text before the code.
    pub text: String,
    /// The messages of the calls and their results.
    pub messages: Vec<Value>,
    /// The position of the first of them in the request.
    pub first_message: usize,
    /// `{status: "success", data}` or `{status: "error", error}`; `None` until the code has been replayed.
    pub result: Option<Value>,
}

impl Block {
    /// Creates a block of code that has not run.
    pub fn new(id: impl Into<String>, code: impl Into<String>, text: impl Into<String>) -> Self {
        let (messages, first_message, result) = (Vec::new(), 0, None);
        Self { id: id.into(), code: code.into(), text: text.into(), messages, first_message, result }
    }

    fn has_call(&self, id: &str) -> bool {
        self.messages.iter().flat_map(calls).any(|call| call["id"] == id)
    }
}

/// Returns the tool calls of an assistant's message.
pub fn calls(message: &Value) -> &[Value] {
    let calls = message.get("tool_calls").or_else(|| message.get("toolCalls"));
    calls.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the text of a message; empty if it has none.
pub fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

impl Conversation {
    /// Parses the messages of a client.
    ///
    /// # Errors
    /// A message of role `code` or `code_result` is invalid or at a wrong position. The model server checks the other
    /// messages.
    pub fn read(messages: Vec<Value>) -> Result<Self, String> {
        let mut conversation = Self::default();
        for (at, message) in messages.into_iter().enumerate() {
            if !message.is_object() {
                return Err(format!("messages[{at}]: a message is an object with 'role'"));
            }
            conversation.add(at, message).map_err(|problem| format!("messages[{at}]: {problem}"))?;
        }
        Ok(conversation)
    }

    /// Adds the message at a position.
    fn add(&mut self, at: usize, message: Value) -> Result<(), String> {
        match message["role"].as_str() {
            Some("code") => {
                let (Some(id), Some(code)) = (message["id"].as_str(), message["code"].as_str()) else {
                    return Err("a message of role 'code' has 'id' and 'code', both texts".into());
                };
                let block = Block::new(id, code, self.take_preceding_text());
                self.push(Block { first_message: at + 1, ..block });
                return self.check_code_size();
            }
            Some("code_result") => {
                let block = self.open_block().filter(|block| message["id"] == block.id.as_str());
                let block = block.ok_or("a message of role 'code_result' follows the code block with its id")?;
                if !message["result"].is_object() {
                    return Err("a message of role 'code_result' has 'result', an object with 'status'".into());
                }
                block.result = Some(message["result"].clone());
                return Ok(());
            }
            Some("assistant") if !calls(&message).is_empty() => {
                let first = calls(&message)[0]["id"].as_str().unwrap_or_default();
                let left = MAX_CODE_BYTES - self.code_bytes;
                let decoded = call_ids::decode_code(first, left).map_err(|call_ids::TooLong| too_much_code())?;
                if let Some((id, code)) = decoded {
                    let mut block = Block { first_message: at, ..Block::new(id, code, text(&message)) };
                    block.messages.push(message);
                    self.push(block);
                    return self.check_code_size();
                }
                // Calls whose ids the client made belong to the block before them.
                let belongs = |block: &Block| call_ids::run(first).is_none_or(|run| run == block.id);
                if let Some(block) = self.open_block().filter(|block| belongs(block)) {
                    block.messages.push(message);
                    return Ok(());
                }
            }
            Some("tool") => {
                let id = message.get("tool_call_id").or_else(|| message.get("toolCallId"));
                let id = id.and_then(Value::as_str).unwrap_or_default();
                if let Some(block) = self.open_block().filter(|block| block.has_call(id)) {
                    block.messages.push(message);
                    return Ok(());
                }
                let is_call = |item: &Item| match item {
                    Item::Message(message) => calls(message).iter().any(|call| call["id"] == id),
                    Item::Block(_) => false,
                };
                if !self.items.iter().any(is_call) {
                    let id = codecall_base::text::truncate(id, MAX_QUOTED_BYTES);
                    return Err(format!("no tool call '{id}' waits for this answer"));
                }
            }
            Some(_) | None => {}
        }
        self.items.push(Item::Message(message));
        Ok(())
    }

    /// Returns the block at the end, if it has no result yet.
    pub fn open_block(&mut self) -> Option<&mut Block> {
        match self.items.last_mut() {
            Some(Item::Block(block)) if block.result.is_none() => Some(block),
            Some(_) | None => None,
        }
    }

    /// Returns all blocks but one at the end that has no result yet.
    pub fn earlier_blocks(&mut self) -> impl Iterator<Item = &mut Block> {
        let earlier = self.items.len() - usize::from(self.open_block().is_some());
        self.items.iter_mut().take(earlier).filter_map(|item| match item {
            Item::Block(block) => Some(block),
            Item::Message(_) => None,
        })
    }

    /// Removes and returns the text of an assistant's message at the end, if it has no calls: it belongs to the code.
    fn take_preceding_text(&mut self) -> String {
        match self.items.last() {
            Some(Item::Message(message)) if message["role"] == "assistant" && calls(message).is_empty() => {
                let text = text(message);
                self.items.pop();
                text
            }
            Some(_) | None => String::new(),
        }
    }

    fn check_code_size(&self) -> Result<(), String> {
        if self.code_bytes > MAX_CODE_BYTES { Err(too_much_code()) } else { Ok(()) }
    }

    /// Appends a block.
    pub fn push(&mut self, block: Block) {
        self.code_bytes += block.code.len();
        self.items.push(Item::Block(block));
    }

    /// Returns the messages for the model, with `instructions` in the first system message.
    pub fn to_model_messages(&self, instructions: &str) -> Vec<Value> {
        let mut messages = Vec::with_capacity(self.items.len() + 1);
        for item in &self.items {
            match item {
                Item::Message(message) => messages.push(message.clone()),
                Item::Block(block) => messages.extend(to_tool_call(block)),
            }
        }
        add_instructions(&mut messages, instructions);
        messages
    }
}

fn too_much_code() -> String {
    format!("the conversation holds more than {MAX_CODE_BYTES} bytes of code; drop the oldest messages")
}

/// Converts a block to a call of `run_code` and its result.
fn to_tool_call(block: &Block) -> [Value; 2] {
    let id = call_ids::shorten(&block.id);
    let arguments = json!({"code": block.code}).to_string();
    let call = FunctionCall { id: id.clone(), name: RUN_CODE.to_owned(), arguments };
    let message = AssistantMessage { content: Some(block.text.clone()), calls: vec![call] };
    let result = block.result.as_ref().map(Value::to_string).unwrap_or_default();
    [message.to_json(), json!({"role": "tool", "tool_call_id": id, "content": result})]
}

/// Appends the instructions to the client's system message. Many model servers accept only one, at the beginning.
fn add_instructions(messages: &mut Vec<Value>, instructions: &str) {
    let first = messages.first_mut().filter(|first| matches!(first["role"].as_str(), Some("system" | "developer")));
    match first.map(|first| &mut first["content"]) {
        Some(Value::String(text)) => *text = format!("{text}\n\n{instructions}"),
        Some(Value::Array(parts)) => parts.push(json!({"type": "text", "text": instructions})),
        Some(_) | None => messages.insert(0, json!({"role": "system", "content": instructions})),
    }
}
