//! From the messages of a request to its answer: code runs as far as it goes without the client, and
//! where it ends the model is asked again.

use super::conversation::{Block, Conversation, RUN_CODE, calls, text};
use super::model::{ModelServer, Wanted};
use super::names;
use super::speech::Speech;
use crate::http::problem::Problem;
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

/// Most messages of one request.
const MOST_MESSAGES: usize = 10_000;

/// A request that has been read.
pub struct ChatRequest {
    /// What goes to the model server as it is.
    rest: Map<String, Value>,
    conversation: Conversation,
    tools: Arc<ClientToolset>,
    tool_choice: Value,
    /// Whether the answer comes in pieces.
    pub streams: bool,
    /// Whether the last piece tells the usage.
    pub wants_usage: bool,
    /// Whether the messages of code blocks are told.
    pub code_messages: bool,
}

/// What a request says to this server and not to the model's.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Own {
    code_messages: Option<bool>,
}

/// What a request is answered with.
#[derive(Debug)]
pub struct Reply {
    /// What stands around the choices.
    pub envelope: Map<String, Value>,
    /// The message of the assistant.
    pub message: Value,
    /// Why it ended.
    pub finish_reason: Value,
    /// The messages of code blocks, where they were asked for: what to keep in place of `message`.
    pub told: Option<Vec<Value>>,
    /// What all questions to the model have cost; absent: the server has not said.
    pub usage: Option<Value>,
}

impl ChatRequest {
    /// Read a request; `Err(body)` where it has no tools and so nothing to do with code.
    pub fn read(
        mut body: Map<String, Value>,
        config: &ModelConfig,
    ) -> Result<Result<Self, Map<String, Value>>, Problem> {
        let own = match body.remove("codecall") {
            None | Some(Value::Null) => Own::default(),
            Some(own) => Own::deserialize(own).map_err(|error| {
                let problem = codecall_base::error::sanitize_serde_error(&error.to_string(), &[]);
                Problem::request(format!("'codecall': {problem}")).about("codecall")
            })?,
        };
        let tools = match body.remove("tools") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(tools)) => tools,
            Some(_) => return Err(Problem::request("'tools' must be a list").about("tools")),
        };
        for legacy in ["functions", "function_call"] {
            if body.get(legacy).is_some_and(|value| !value.is_null()) {
                let message = format!("'{legacy}' is not known any more; use 'tools' and 'tool_choice'");
                return Err(Problem::request(message).about(legacy));
            }
        }
        if tools.is_empty() && !has_blocks(&body) {
            return Ok(Err(body));
        }
        if body.get("n").is_some_and(|n| !n.is_null() && n != 1) {
            return Err(
                Problem::request("'n' must be 1 where there are tools: code runs in one conversation").about("n")
            );
        }
        let Some(Value::Array(messages)) = body.remove("messages") else {
            return Err(Problem::request("'messages' must be a list").about("messages"));
        };
        if messages.len() > MOST_MESSAGES {
            return Err(Problem::request(format!("'messages' has more than {MOST_MESSAGES} entries")).about("messages"));
        }
        let conversation =
            Conversation::read(messages).map_err(|problem| Problem::request(problem).about("messages"))?;
        let tools = ClientToolset::read(&tools).map_err(|error| Problem::request(error.to_string()).about("tools"))?;
        let tool_choice = body.remove("tool_choice").unwrap_or_default();
        // It speaks of the client's calls; the model makes one call at a time in any case.
        body.remove("parallel_tool_calls");
        let wants_usage = body.get("stream_options").is_some_and(|options| options["include_usage"] == true);
        let streams = body.get("stream") == Some(&Value::Bool(true));
        let code_messages = own.code_messages.unwrap_or(config.code_messages);
        let tools = Arc::new(tools);
        Ok(Ok(Self { rest: body, conversation, tools, tool_choice, streams, wants_usage, code_messages }))
    }

    /// The question for the model server.
    fn question(&self, instructions: &str, is_last: bool) -> Value {
        let mut question = self.rest.clone();
        question.insert("messages".into(), self.conversation.for_model(instructions).into());
        let parameters = json!({
            "type": "object",
            "properties": {"code": {"type": "string", "description": "JavaScript: the body of an async function"}},
            "required": ["code"],
            "additionalProperties": false,
        });
        let description = "Run JavaScript that calls the declared functions, and get what it returns";
        let function = json!({"name": RUN_CODE, "description": description, "parameters": parameters});
        question.insert("tools".into(), json!([{"type": "function", "function": function}]));
        question.insert("parallel_tool_calls".into(), false.into());
        let choice = match &self.tool_choice {
            _ if is_last => json!("none"),
            Value::Object(_) => json!({"type": "function", "function": {"name": RUN_CODE}}),
            choice => choice.clone(),
        };
        if !choice.is_null() {
            question.insert("tool_choice".into(), choice);
        }
        Value::Object(question)
    }
}

/// Whether there is code in the messages.
fn has_blocks(body: &Map<String, Value>) -> bool {
    let messages = body.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().any(|message| {
        matches!(message["role"].as_str(), Some("code" | "code_result"))
            || calls(message).first().and_then(|call| call["id"].as_str()).is_some_and(|id| names::run(id).is_some())
    })
}

/// How far a block has come.
enum Stepped {
    /// It waits for these calls of the client: a message of the assistant.
    Calls(Value),
    /// It has ended.
    Ended(Value),
}

/// Answers requests.
pub struct Engine<'a> {
    pub hub: &'a Hub,
    pub model: &'a ModelServer,
    pub cancel: CancellationToken,
}

impl Engine<'_> {
    /// Answer a request; `speech` is what the model says on the way.
    pub async fn answer(&self, mut request: ChatRequest, speech: &mut Speech) -> Result<Reply, Problem> {
        self.settle(&mut request).await?;
        let instructions = instructions(&request.tools);
        let max_turns = self.hub.config().model.max_turns;
        let mut told = Vec::new();
        let mut usage = None;
        let mut turn = 0;
        loop {
            if let Some(block) = request.conversation.open() {
                match self.step(block, &request.tools).await? {
                    Stepped::Calls(message) => {
                        let message = carrying(block, message, request.code_messages, speech);
                        told.push(message.clone());
                        let told = request.code_messages.then_some(told);
                        let finish_reason = "tool_calls".into();
                        return Ok(Reply { envelope: Map::new(), message, finish_reason, told, usage });
                    }
                    Stepped::Ended(result) => {
                        told.push(json!({"role": "code_result", "id": block.id, "result": result}));
                        block.result = Some(result);
                        // A choice that forces a call forces one; afterwards the model decides.
                        request.tool_choice = match request.tool_choice.as_str() {
                            Some("none") => "none".into(),
                            _ => Value::Null,
                        };
                    }
                }
            }
            turn += 1;
            let is_last = turn >= max_turns;
            let question = request.question(&instructions, is_last);
            speech.begin_turn();
            let mut answer = self.model.ask(&question, &mut |choice| speech.say(choice)).await?;
            let said = text(&answer.message);
            if !request.streams {
                speech.remember(&said);
            }
            if let Some(more) = answer.envelope.remove("usage") {
                add(usage.get_or_insert_with(|| json!({})), &more);
            }
            let names = request.tools.names();
            let wanted =
                answer.wanted(&|name| names.function(name).or_else(|| names.tool(name).map(|_| name.to_owned())));
            match wanted {
                Some(_) if is_last => {
                    let message =
                        format!("The model has written code {max_turns} times ('model.maxTurns') and does not answer");
                    return Err(Problem::new(StatusCode::BAD_GATEWAY, message).with_code("MAX_TURNS_EXCEEDED"));
                }
                Some(wanted) => {
                    let block = begun(wanted, &said);
                    if !said.is_empty() {
                        told.push(json!({"role": "assistant", "content": said}));
                    }
                    told.push(json!({"role": "code", "id": block.id, "code": block.code}));
                    if let Some(result) = &block.result {
                        told.push(json!({"role": "code_result", "id": block.id, "result": result}));
                    }
                    request.conversation.push(block);
                }
                None => {
                    told.push(answer.message.clone());
                    if !speech.spoken().is_empty() {
                        answer.message["content"] = speech.spoken().into();
                    }
                    let told = request.code_messages.then_some(told);
                    let (envelope, message, finish_reason) = (answer.envelope, answer.message, answer.finish_reason);
                    return Ok(Reply { envelope, message, finish_reason, told, usage });
                }
            }
        }
    }

    /// Find out what became of the blocks that are over: the client keeps their calls, not their results.
    async fn settle(&self, request: &mut ChatRequest) -> Result<(), Problem> {
        let (began, limits) = (Instant::now(), &self.hub.config().policy.limits);
        for block in request.conversation.unsettled() {
            if began.elapsed() > Duration::from_millis(limits.max_duration_ms) {
                let message = "Replaying the code in 'messages' takes too long; drop what is oldest, or keep the messages of role 'code_result'";
                return Err(Problem::request(message).with_code("HISTORY_TOO_LONG").about("messages"));
            }
            let result = match self.evaluate(block, &request.tools).await {
                Ok(evaluation) => match ended(&evaluation.value) {
                    Some(result) => result,
                    None => failed("INTERRUPTED", "The code was left before all of its calls were answered"),
                },
                Err(problem) if problem.status == StatusCode::BAD_REQUEST => failed("INTERRUPTED", &problem.message),
                Err(problem) => return Err(problem),
            };
            block.result = Some(result);
        }
        Ok(())
    }

    async fn step(&self, block: &Block, tools: &Arc<ClientToolset>) -> Result<Stepped, Problem> {
        let value = self.evaluate(block, tools).await?.value;
        if value["status"] == "diverged" {
            let message = value["error"]["message"].as_str().unwrap_or_default();
            return Err(Problem::request(message).with_code(ErrorCode::ReplayMismatch.as_str()).about("messages"));
        }
        if let Some(result) = ended(&value) {
            return Ok(Stepped::Ended(result));
        }
        if let Some(message) = value["messages"].get(0) {
            return Ok(Stepped::Calls(message.clone()));
        }
        let names = |key: &str| value[key].as_array().cloned().unwrap_or_default();
        let abandoned = names("abandoned");
        let missing: Vec<String> =
            names("waiting").iter().filter(|call| !abandoned.contains(call)).map(Value::to_string).collect();
        let message = format!("These tool calls must be answered by messages of role 'tool': {}", missing.join(", "));
        Err(Problem::request(message).with_code("CALLS_NOT_ANSWERED").about("messages"))
    }

    async fn evaluate(&self, block: &Block, tools: &Arc<ClientToolset>) -> Result<Evaluation, Problem> {
        let config = self.hub.config();
        let (tools, stateless) = (Arc::clone(tools), config.stateless.clone());
        let scripts = Arc::clone(self.hub.stateless().scripts());
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
            .blocking(self.cancel.clone(), move || request.run_with(tools, policy, &stateless, &scripts))
            .await?;
        evaluated.map_err(|message| Problem::request(message).about("messages"))
    }
}

/// The result of a block that has ended, whatever it is.
fn ended(value: &Value) -> Option<Value> {
    match value["status"].as_str() {
        Some("done") => Some(value["messages"][0]["result"].clone()),
        Some("deadlock" | "diverged") => Some(json!({"status": "error", "error": value["error"]})),
        Some(_) | None => None,
    }
}

fn failed(code: &str, message: &str) -> Value {
    json!({"status": "error", "error": {"code": code, "message": message}})
}

/// The block that a model wants.
fn begun(wanted: Wanted, said: &str) -> Block {
    let id = CodeId::new();
    match wanted {
        Wanted::Code(code) if code.trim().is_empty() => Block {
            result: Some(failed(ErrorCode::SyntaxError.as_str(), "'code' is empty")),
            ..Block::new(id.as_str(), code, said)
        },
        Wanted::Code(code) => Block::new(id.as_str(), code, said),
        Wanted::Nonsense(text, problem) => Block {
            result: Some(failed(ErrorCode::SyntaxError.as_str(), &problem)),
            ..Block::new(id.as_str(), text, said)
        },
    }
}

/// The calls of a block as the client gets them: the first ones with the code, where nothing else keeps
/// it, and with what the model said.
fn carrying(block: &Block, mut message: Value, code_messages: bool, speech: &Speech) -> Value {
    let is_first = block.messages.is_empty();
    if is_first && !code_messages {
        let call = &mut message["tool_calls"][0]["id"];
        *call = names::with_code(call.as_str().unwrap_or_default(), &block.code).into();
    }
    message["content"] = match speech.spoken() {
        // A message of its own tells it there.
        _ if code_messages => "".into(),
        "" => Value::Null,
        spoken => spoken.into(),
    };
    message
}

fn instructions(tools: &ClientToolset) -> String {
    format!("{}\n\n```ts\n{}```", include_str!("instructions.md").trim_end(), tools.declarations())
}

/// Add up what is counted.
fn add(sum: &mut Value, more: &Value) {
    match (sum, more) {
        (Value::Object(sum), Value::Object(more)) => {
            more.iter().for_each(|(key, value)| add(sum.entry(key.as_str()).or_insert(Value::Null), value));
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
                add(sum, more);
            }
        }
        (_, _) => {}
    }
}
