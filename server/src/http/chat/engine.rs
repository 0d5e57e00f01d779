//! Answers chat requests: code runs until it needs results of the client's tools, and when it has finished, the model
//! gets its result.

use super::call_ids;
use super::conversation::{Block, Conversation, RUN_CODE, calls, text};
use super::model::{CodeRequest, ModelResponse, ModelServer};
use super::output::Output;
use crate::http::error::{ErrorResponse, HttpError};
use crate::hub::Hub;
use crate::stateless::{ClientToolset, CodeId, Evaluate, Evaluation};
use agentscript::Policy;
use axum::http::StatusCode;
use codecall_base::tool::ErrorCode;
use codecall_config::ModelConfig;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Maximum number of messages in a request.
const MAX_MESSAGES: usize = 10_000;

/// A parsed request.
pub struct ChatRequest {
    /// The members that the model server gets unchanged.
    rest: Map<String, Value>,
    conversation: Conversation,
    tools: Arc<ClientToolset>,
    tool_choice: Value,
    /// Whether the response is streamed.
    pub stream: bool,
    /// Whether the last chunk has the usage.
    pub wants_usage: bool,
    /// Whether the response has the messages of code blocks.
    pub code_messages: bool,
}

/// The member `codecall` of a request: options of this server.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Options {
    code_messages: Option<bool>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Completion {
    /// The members of the model's response besides the choices.
    pub envelope: Map<String, Value>,
    /// The message of the assistant.
    pub message: Value,
    /// `stop`, `tool_calls`, …
    pub finish_reason: Value,
    /// The messages of code blocks, if the request asks for them. The client keeps them in place of `message`.
    pub messages: Option<Vec<Value>>,
    /// The usage of all requests to the model; `None` if the model server does not report it.
    pub usage: Option<Value>,
}

impl ChatRequest {
    /// Parses a request; `Err(body)` if it has neither tools nor code.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn read(
        mut body: Map<String, Value>,
        config: &ModelConfig,
    ) -> Result<Result<Self, Map<String, Value>>, ErrorResponse> {
        let options = match body.remove("codecall") {
            None | Some(Value::Null) => Options::default(),
            Some(options) => Options::deserialize(options).map_err(|error| {
                let problem = codecall_base::error::sanitize_serde_error(&error.to_string());
                ErrorResponse::invalid(format!("'codecall': {problem}")).with_param("codecall")
            })?,
        };
        let tools = match body.remove("tools") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(tools)) => tools,
            Some(_) => return Err(ErrorResponse::invalid("'tools' must be a list").with_param("tools")),
        };
        for legacy in ["functions", "function_call"] {
            if body.get(legacy).is_some_and(|value| !value.is_null()) {
                let message = format!("'{legacy}' is not known any more; use 'tools' and 'tool_choice'");
                return Err(ErrorResponse::invalid(message).with_param(legacy));
            }
        }
        if tools.is_empty() && !has_blocks(&body) {
            return Ok(Err(body));
        }
        if body.get("n").is_some_and(|n| !n.is_null() && n != 1) {
            return Err(ErrorResponse::invalid("'n' must be 1 where there are tools: code runs in one conversation")
                .with_param("n"));
        }
        let Some(Value::Array(messages)) = body.remove("messages") else {
            return Err(ErrorResponse::invalid("'messages' must be a list").with_param("messages"));
        };
        if messages.len() > MAX_MESSAGES {
            return Err(ErrorResponse::invalid(format!("'messages' has more than {MAX_MESSAGES} entries"))
                .with_param("messages"));
        }
        let conversation =
            Conversation::read(messages).map_err(|problem| ErrorResponse::invalid(problem).with_param("messages"))?;
        let tools = ClientToolset::read(&tools)
            .map_err(|error| ErrorResponse::invalid(error.to_string()).with_param("tools"))?;
        let tool_choice = body.remove("tool_choice").unwrap_or_default();
        // It means calls of the client's tools. The model makes one call of `run_code` at a time.
        body.remove("parallel_tool_calls");
        let wants_usage = body.get("stream_options").is_some_and(|options| options["include_usage"] == true);
        let stream = body.get("stream") == Some(&Value::Bool(true));
        let code_messages = options.code_messages.unwrap_or(config.code_messages);
        let tools = Arc::new(tools);
        Ok(Ok(Self { rest: body, conversation, tools, tool_choice, stream, wants_usage, code_messages }))
    }

    /// Returns the request for the model server. In the last turn it may not call the tool.
    fn to_model_request(&self, instructions: &str, is_last: bool) -> Value {
        let mut request = self.rest.clone();
        request.insert("messages".into(), self.conversation.to_model_messages(instructions).into());
        let parameters = json!({
            "type": "object",
            "properties": {"code": {"type": "string", "description": "JavaScript: the body of an async function"}},
            "required": ["code"],
            "additionalProperties": false,
        });
        let description = "Run JavaScript that calls the declared functions, and get what it returns";
        let function = json!({"name": RUN_CODE, "description": description, "parameters": parameters});
        request.insert("tools".into(), json!([{"type": "function", "function": function}]));
        request.insert("parallel_tool_calls".into(), false.into());
        let choice = match &self.tool_choice {
            _ if is_last => json!("none"),
            Value::Object(_) => json!({"type": "function", "function": {"name": RUN_CODE}}),
            choice => choice.clone(),
        };
        if !choice.is_null() {
            request.insert("tool_choice".into(), choice);
        }
        Value::Object(request)
    }
}

/// Whether the messages have code blocks.
fn has_blocks(body: &Map<String, Value>) -> bool {
    let messages = body.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().any(|message| {
        matches!(message["role"].as_str(), Some("code" | "code_result"))
            || calls(message).first().and_then(|call| call["id"].as_str()).is_some_and(|id| call_ids::run(id).is_some())
    })
}

/// The outcome of a step of a block.
enum Stepped {
    /// It waits for results of the calls in this message of the assistant.
    Calls(Value),
    /// It has finished with this result.
    Finished(Value),
}

/// Answers a request.
pub struct Engine<'a> {
    pub hub: &'a Hub,
    pub model: &'a ModelServer,
    pub cancel: CancellationToken,
}

impl Engine<'_> {
    /// Completes a request. The text of the model goes to `output`.
    pub async fn complete(&self, mut request: ChatRequest, output: &mut Output) -> Result<Completion, ErrorResponse> {
        self.replay_unfinished(&mut request).await?;
        let instructions = instructions(&request.tools);
        let max_turns = self.hub.config().model.max_turns;
        let mut messages = Vec::new();
        let mut usage = None;
        let mut turn = 0;
        loop {
            if let Some(block) = request.conversation.open_block() {
                match self.step(block, &request.tools).await? {
                    Stepped::Calls(message) => {
                        let message = call_message(block, message, request.code_messages, output);
                        messages.push(message.clone());
                        let messages = request.code_messages.then_some(messages);
                        let finish_reason = "tool_calls".into();
                        return Ok(Completion { envelope: Map::new(), message, finish_reason, messages, usage });
                    }
                    Stepped::Finished(result) => {
                        messages.push(json!({"role": "code_result", "id": block.id, "result": result}));
                        block.result = Some(result);
                        // A choice that forces a call applies to the first one; then the model decides.
                        request.tool_choice = match request.tool_choice.as_str() {
                            Some("none") => "none".into(),
                            _ => Value::Null,
                        };
                    }
                }
            }
            turn += 1;
            let is_last = turn >= max_turns;
            let model_request = request.to_model_request(&instructions, is_last);
            output.begin_turn();
            let mut response = self.model.complete(&model_request, &mut |choice| output.append_choice(choice)).await?;
            let text = text(&response.message);
            if !request.stream {
                output.append(&text);
            }
            if let Some(more) = response.envelope.remove("usage") {
                add_usage(usage.get_or_insert_with(|| json!({})), &more);
            }
            let names = request.tools.names();
            let function = |name: &str| names.function(name).or_else(|| names.tool(name).map(|_| name.to_owned()));
            match response.code_request(&function) {
                Some(_) if is_last => {
                    return Err(HttpError::MaxTurnsExceeded(max_turns).into());
                }
                Some(code) => {
                    let block = new_block(code, &text);
                    if !text.is_empty() {
                        messages.push(json!({"role": "assistant", "content": text}));
                    }
                    messages.push(json!({"role": "code", "id": block.id, "code": block.code}));
                    if let Some(result) = &block.result {
                        messages.push(json!({"role": "code_result", "id": block.id, "result": result}));
                    }
                    request.conversation.push(block);
                }
                None => {
                    messages.push(response.message.clone());
                    if !output.text().is_empty() {
                        response.message["content"] = output.text().into();
                    }
                    let messages = request.code_messages.then_some(messages);
                    let ModelResponse { envelope, message, finish_reason } = response;
                    return Ok(Completion { envelope, message, finish_reason, messages, usage });
                }
            }
        }
    }

    /// Replays the earlier blocks whose results the client has not kept.
    async fn replay_unfinished(&self, request: &mut ChatRequest) -> Result<(), ErrorResponse> {
        let (started, limits) = (Instant::now(), &self.hub.config().policy.limits);
        for block in request.conversation.unfinished_blocks() {
            if started.elapsed() > Duration::from_millis(limits.max_duration_ms) {
                return Err(ErrorResponse::from(HttpError::HistoryTooLong).with_param("messages"));
            }
            let result = match self.evaluate(block, &request.tools).await {
                Ok(evaluation) => match block_result(&evaluation.value) {
                    Some(result) => result,
                    None => error_result(
                        "INTERRUPTED",
                        "The conversation went on before all calls of the code were answered",
                    ),
                },
                Err(error) if error.status == StatusCode::BAD_REQUEST => error_result("INTERRUPTED", &error.message),
                Err(error) => return Err(error),
            };
            block.result = Some(result);
        }
        Ok(())
    }

    async fn step(&self, block: &Block, tools: &Arc<ClientToolset>) -> Result<Stepped, ErrorResponse> {
        let value = self.evaluate(block, tools).await?.value;
        if value["status"] == "diverged" {
            let message = value["error"]["message"].as_str().unwrap_or_default();
            return Err(ErrorResponse::from(HttpError::ReplayMismatch(message.to_owned())).with_param("messages"));
        }
        if let Some(result) = block_result(&value) {
            return Ok(Stepped::Finished(result));
        }
        if let Some(message) = value["messages"].get(0) {
            return Ok(Stepped::Calls(message.clone()));
        }
        let names = |key: &str| value[key].as_array().cloned().unwrap_or_default();
        let abandoned = names("abandoned");
        let missing: Vec<String> =
            names("waiting").iter().filter(|call| !abandoned.contains(call)).map(Value::to_string).collect();
        Err(ErrorResponse::from(HttpError::CallsNotAnswered(missing.join(", "))).with_param("messages"))
    }

    async fn evaluate(&self, block: &Block, tools: &Arc<ClientToolset>) -> Result<Evaluation, ErrorResponse> {
        let config = self.hub.config();
        let (tools, stateless) = (Arc::clone(tools), config.stateless.clone());
        let evaluator = self.hub.stateless().evaluator(self.cancel.clone());
        let mut policy: Policy = config.policy.clone();
        policy.limits.max_result_bytes = policy.limits.max_result_bytes.min(config.model.max_result_bytes);
        let request = Evaluate {
            code: block.code.clone(),
            id: Some(block.id.clone()),
            messages: Some(block.messages.clone()),
            ..Evaluate::default()
        };
        let evaluated = self
            .hub
            .stateless()
            .blocking(self.cancel.clone(), move || request.run_with(tools, policy, &stateless, &evaluator))
            .await?;
        evaluated.map_err(|message| ErrorResponse::invalid(message).with_param("messages"))
    }
}

/// Returns the result of a block that has finished.
fn block_result(value: &Value) -> Option<Value> {
    match value["status"].as_str() {
        Some("done") => Some(value["messages"][0]["result"].clone()),
        Some("deadlock" | "diverged") => Some(json!({"status": "error", "error": value["error"]})),
        Some(_) | None => None,
    }
}

fn error_result(code: &str, message: &str) -> Value {
    json!({"status": "error", "error": {"code": code, "message": message}})
}

/// Creates the block of a model's request, after the text `text`.
fn new_block(request: CodeRequest, text: &str) -> Block {
    let id = CodeId::new();
    match request {
        CodeRequest::Code(code) if code.trim().is_empty() => Block {
            result: Some(error_result(ErrorCode::SyntaxError.as_str(), "'code' is empty")),
            ..Block::new(id.as_str(), code, text)
        },
        CodeRequest::Code(code) => Block::new(id.as_str(), code, text),
        CodeRequest::Invalid { arguments, problem } => Block {
            result: Some(error_result(ErrorCode::SyntaxError.as_str(), &problem)),
            ..Block::new(id.as_str(), arguments, text)
        },
    }
}

/// Returns the message with a block's calls for the client: with the model's text and, unless the client keeps messages
/// of code blocks, with the code in the id of the first call.
fn call_message(block: &Block, mut message: Value, code_messages: bool, output: &Output) -> Value {
    let is_first = block.messages.is_empty();
    if is_first && !code_messages {
        let call = &mut message["tool_calls"][0]["id"];
        *call = call_ids::with_code(call.as_str().unwrap_or_default(), &block.code).into();
    }
    message["content"] = match output.text() {
        // The text has a message of its own.
        _ if code_messages => "".into(),
        "" => Value::Null,
        text => text.into(),
    };
    message
}

fn instructions(tools: &ClientToolset) -> String {
    format!("{}\n\n```ts\n{}```", include_str!("instructions.md").trim_end(), tools.declarations())
}

/// Adds the numbers of one usage object to another, at any depth.
fn add_usage(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            more.iter().for_each(|(key, value)| add_usage(sum.entry(key.as_str()).or_insert(Value::Null), value));
        }
        (sum, Value::Number(more)) => {
            *sum = (sum.as_u64().unwrap_or(0) + more.as_u64().unwrap_or(0)).into();
        }
        (sum @ Value::Null, more) => {
            *sum = match more {
                Value::Object(_) => json!({}),
                other => other.clone(),
            };
            if sum.is_object() {
                add_usage(sum, more);
            }
        }
        (_, _) => {}
    }
}
