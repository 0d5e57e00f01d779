//! Answers chat requests: code runs until it needs results of the client's tools, and when it has finished, the model
//! gets its result.

use super::call_ids;
use super::conversation::{Block, Conversation, RUN_CODE, calls, text};
use super::model::{CodeRequest, ModelResponse, ModelServer};
use super::output::Output;
use crate::error::{ErrorResponse, HttpError};
use agentscript::Policy;
use codecall_base::tool::ErrorCode;
use codecall_config::ModelConfig;
use codecall_hub::Hub;
use codecall_hub::stateless::messages::{
    AssistantMessage, code_message, code_result_message, failed_code_result, is_same_code_result,
};
use codecall_hub::stateless::{ClientToolset, CodeId, Evaluate, Evaluation, PendingCalls, Refusal, StepResult};
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
    pub message: CompletionMessage,
    /// `stop`, `tool_calls`, …
    pub finish_reason: Value,
    /// The messages of code blocks, if the request asks for them. The client keeps them in place of `message`.
    pub messages: Option<Vec<Value>>,
    /// The usage of all requests to the model; `None` if the model server does not report it.
    pub usage: Option<Value>,
}

/// The message of the assistant in a completion.
#[derive(Debug)]
pub enum CompletionMessage {
    /// The calls of a code block that waits for their results.
    Calls(AssistantMessage),
    /// The answer of the model: its message.
    Answer(Value),
}

impl ChatRequest {
    /// Parses a request; `Err(body)` if it has neither tools nor code.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn read(
        mut body: Map<String, Value>,
        config: &ModelConfig,
        lenient_input: bool,
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
        let tools = Arc::new(tools.with_lenient_input(lenient_input));
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
    /// It waits for results of the calls in this message.
    Calls(AssistantMessage),
    /// It has ended with this result.
    Ended(Value),
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
        self.replay_earlier(&mut request).await?;
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
                        messages.push(message.to_json());
                        let message = CompletionMessage::Calls(message);
                        let messages = request.code_messages.then_some(messages);
                        let finish_reason = "tool_calls".into();
                        return Ok(Completion { envelope: Map::new(), message, finish_reason, messages, usage });
                    }
                    Stepped::Ended(result) => {
                        messages.push(code_result_message(&block.id, result.clone()));
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
                    messages.push(code_message(&block.id, &block.code));
                    if let Some(result) = &block.result {
                        messages.push(code_result_message(&block.id, result.clone()));
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
                    let message = CompletionMessage::Answer(message);
                    return Ok(Completion { envelope, message, finish_reason, messages, usage });
                }
            }
        }
    }

    /// Replays the earlier blocks: computes the results that the client has not kept, and compares those that it has.
    async fn replay_earlier(&self, request: &mut ChatRequest) -> Result<(), ErrorResponse> {
        let (started, limits) = (Instant::now(), &self.hub.config().policy.limits);
        let invalid = |error: ErrorResponse| Err(error.with_param("messages"));
        for block in request.conversation.earlier_blocks() {
            if started.elapsed() > Duration::from_millis(limits.max_duration_ms) {
                // A result that is there need not be computed.
                match block.result {
                    Some(_) => continue,
                    None => return invalid(HttpError::HistoryTooLong.into()),
                }
            }
            // The result of a block that could not be run.
            if block.result.is_some() && block.code.trim().is_empty() {
                continue;
            }
            let step = match self.evaluate(block, &request.tools).await {
                Ok(evaluation) => evaluation.step,
                Err(Refusal::Invalid(problem)) => return invalid(ErrorResponse::invalid(problem)),
                Err(refusal @ Refusal::Unavailable(_)) => return Err(refusal.into()),
            };
            let result = match step {
                StepResult::Diverged(mismatch) => return invalid(HttpError::ReplayMismatch(mismatch.message).into()),
                StepResult::Calls(_) => {
                    let message = "The conversation went on before all calls of the code were answered";
                    error_result(ErrorCode::Interrupted, message)
                }
                StepResult::Done { outcome, .. } | StepResult::Deadlock(outcome) => outcome.into_code_result(),
            };
            match &block.result {
                None => block.result = Some(result),
                Some(given) if is_same_code_result(given, &result) => {}
                Some(_) => {
                    let problem = format!("The result of the code block '{}' is not that of its code", block.id);
                    return invalid(HttpError::ReplayMismatch(problem).into());
                }
            }
        }
        Ok(())
    }

    /// Evaluates a block with the results that the client has sent.
    async fn step(&self, block: &Block, tools: &Arc<ClientToolset>) -> Result<Stepped, ErrorResponse> {
        let began = Instant::now();
        let evaluation = self.evaluate(block, tools).await.map_err(|refusal| match refusal {
            Refusal::Invalid(problem) => ErrorResponse::invalid(problem).with_param("messages"),
            Refusal::Unavailable(_) => refusal.into(),
        })?;
        if let Some(history) = self.hub.history() {
            history.step(&block.code, None, &evaluation.to_record(), evaluation.is_error(), began.elapsed());
        }
        let invalid_messages = |error: HttpError| Err(ErrorResponse::from(error).with_param("messages"));
        match evaluation.step {
            StepResult::Calls(calls) => match calls.message() {
                Some(message) => Ok(Stepped::Calls(message)),
                None => invalid_messages(HttpError::CallsNotAnswered(quoted_ids(&calls))),
            },
            StepResult::Diverged(mismatch) => invalid_messages(HttpError::ReplayMismatch(mismatch.message)),
            StepResult::Done { outcome, .. } | StepResult::Deadlock(outcome) => {
                Ok(Stepped::Ended(outcome.into_code_result()))
            }
        }
    }

    async fn evaluate(&self, block: &Block, tools: &Arc<ClientToolset>) -> Result<Evaluation, Refusal> {
        let config = self.hub.config();
        let (tools, stateless) = (Arc::clone(tools), config.stateless.clone());
        let evaluator = self.hub.stateless().evaluator(self.cancel.clone());
        let mut policy: Policy = config.policy.clone();
        policy.limits.max_result_bytes = policy.limits.max_result_bytes.min(config.model.max_result_bytes);
        let request = Evaluate {
            code: block.code.clone(),
            id: Some(block.id.clone()),
            messages: Some(block.messages.clone()),
            first_message: block.first_message,
            ..Evaluate::default()
        };
        let evaluated = self
            .hub
            .stateless()
            .blocking(self.cancel.clone(), move || request.run_with(tools, policy, &stateless, &evaluator))
            .await?;
        evaluated.map_err(Refusal::Invalid)
    }
}

/// Returns the ids of the calls that the code awaits, as a list of JSON strings.
fn quoted_ids(calls: &PendingCalls) -> String {
    calls.awaited().map(|id| Value::from(id).to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the result of a block that was not evaluated to its end.
fn error_result(code: ErrorCode, message: &str) -> Value {
    failed_code_result(json!({"code": code.as_str(), "message": message}))
}

/// Creates the block of a model's request, after the text `text`.
fn new_block(request: CodeRequest, text: &str) -> Block {
    let id = CodeId::new();
    match request {
        CodeRequest::Code(code) if code.trim().is_empty() => Block {
            result: Some(error_result(ErrorCode::SyntaxError, "'code' is empty")),
            ..Block::new(id.as_str(), code, text)
        },
        CodeRequest::Code(code) => Block::new(id.as_str(), code, text),
        CodeRequest::Invalid { arguments, problem } => Block {
            result: Some(error_result(ErrorCode::SyntaxError, &problem)),
            ..Block::new(id.as_str(), arguments, text)
        },
    }
}

/// Returns the message with a block's calls for the client: with the model's text and, unless the client keeps messages
/// of code blocks, with the code in the id of the first call.
fn call_message(
    block: &Block,
    mut message: AssistantMessage,
    code_messages: bool,
    output: &Output,
) -> AssistantMessage {
    let is_first = block.messages.is_empty();
    if let Some(call) = message.calls.first_mut().filter(|_| is_first && !code_messages) {
        call.id = call_ids::with_code(&call.id, &block.code);
    }
    message.content = match output.text() {
        // The text has a message of its own.
        _ if code_messages => Some(String::new()),
        "" => None,
        text => Some(text.to_owned()),
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
