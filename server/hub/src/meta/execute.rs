//! `codecall_execute`: runs a script, or reads another piece of a truncated result.

use super::outline::Outline;
use super::*;
use crate::stateless::LanguageName;
use agentscript::Status;
use codecall_base::event::RunId;
use codecall_base::json;
use codecall_base::offload;
use codecall_base::tool::ErrorCode;
use codecall_config::vm::lowered;
use codecall_runs::{ExecuteRequest, Finished};
use codecall_tools::results::{self, Missing, Piece};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub struct Execute;

/// Maximum length of the heading of the signatures, in characters.
pub const MAX_HEADING_CHARS: usize = 90;

/// Returns the description with signatures of tools at its end.
pub fn with_signatures(signatures: &SignatureList) -> String {
    let description = Execute.description();
    let SignatureList { text, shown, all } = signatures;
    if text.is_empty() {
        return format!("{description}\nFind tools with codecall_search.");
    }
    let heading = match signatures.is_complete() {
        true => format!("Tools (all {all}):"),
        false => format!("Tools ({shown} of {all}; codecall_search finds the others):"),
    };
    format!("{description}\n{heading}\n{}", text.trim_end())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    /// The script; its return value is the result
    script: Option<String>,
    /// In place of script: the name of a tool that is called once
    tool: Option<String>,
    /// The input of tool
    input: Option<Members>,
    /// Data for the script, seen as codecallContext
    context: Option<Members>,
    /// The only tools the script may call; 'users:*' allows an app
    allowed_tools: Option<Vec<String>>,
    /// Detected if left out
    language: Option<LanguageName>,
    /// Lower limits for this run: timeoutMs, maxToolCalls, maxIterations, …
    limits: Option<Map<String, Value>>,
    /// Call no tool; list what would be called
    #[serde(default)]
    dry_run: bool,
    /// With durable runs: a text of your own, by which a request that is sent again gets the run of the first one
    idempotency_key: Option<String>,
    /// In place of script: read on in a result that was cut, or get the outcome of a run that waited
    handle: Option<String>,
    /// With handle: the byte to read on from
    offset: Option<usize>,
    /// With handle: maximum bytes of this piece
    limit: Option<usize>,
}

impl MetaTool for Execute {
    fn id(&self) -> &'static str {
        "execute"
    }

    fn title(&self) -> &'static str {
        "Run a script"
    }

    fn description(&self) -> &'static str {
        include_str!("execute.md").trim_end()
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn listed_arguments(&self) -> Option<&'static [&'static str]> {
        Some(&["script", "tool", "input", "handle", "offset"])
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {
                    "enum": ["ok", "error", "syntax_error", "illegal_access", "runtime_error", "tool_error", "timeout", "waiting"],
                },
                "result": schema::any_json(),
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
                "warnings": {"type": "array", "items": {"type": "string"}},
                "logs": {"type": "array", "items": {"type": "string"}},
                "truncated": truncated_schema(),
                "dryRun": {"const": true},
                "calls": {"type": "array", "items": {"type": "object"}},
                "omitted": {"type": "integer"},
                "note": {"type": "string"},
                "handle": {"type": "string"},
                "approvals": {"type": "array", "items": {"type": "object"}},
                "problem": {"type": "string"},
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        if let Some(call) = invoke::as_call(&request.arguments) {
            return invoke::Invoke.answer(Request { arguments: call, ..request });
        }
        let Request { hub, arguments, client, delivery, sink, cancel } = request;
        let refused = |invalid: InvalidArguments| -> BoxFuture<'a, Answer> {
            Box::pin(std::future::ready(Answer::from(invalid)))
        };
        let arguments: Arguments = match parse(self, arguments) {
            Ok(arguments) => arguments,
            Err(invalid) => return refused(invalid),
        };
        if arguments.handle.is_some() {
            return Box::pin(async move { self.of_handle(hub, arguments, delivery, &cancel).await });
        }
        let key = arguments.idempotency_key.clone();
        let mut script = match self.request(hub, arguments) {
            Ok(script) => script,
            Err(invalid) => return refused(invalid),
        };
        let max_bytes = allow_more_result(hub, &mut script);
        script.client = client;
        let is_dry_run = script.dry_run;
        if let Some(durable) = hub.durable().filter(|_| hub.config().durable.enabled && !is_dry_run) {
            return Box::pin(waiting::execute_durably(hub, durable, script, key, (max_bytes, delivery), sink, cancel));
        }
        Box::pin(async move {
            let finished = hub.execute(script, sink, cancel).await;
            Box::pin(async move {
                match finished.is_paused {
                    true => waiting::paused(hub, &finished.id).await,
                    false => finish(hub, finished, (max_bytes, delivery), is_dry_run).await,
                }
            })
            .await
        })
    }
}

/// Lets a script return more than its client gets, because the rest is stored. Returns the limit for the client.
fn allow_more_result(hub: &Hub, script: &mut ExecuteRequest) -> u64 {
    let limits = &mut script.policy.limits;
    let max_bytes = limits.max_result_bytes;
    limits.max_result_bytes = hub.results().max_bytes(max_bytes);
    script.max_client_bytes = Some(max_bytes);
    max_bytes
}

/// Converts a run that has ended to the answer for its client, which gets at most `max_bytes` of a result that is not stored.
pub(super) async fn finish(
    hub: &Hub,
    mut finished: Finished,
    (max_bytes, delivery): (u64, Delivery),
    is_dry_run: bool,
) -> Answer {
    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let truncated = truncate_result(hub, &mut finished, max_bytes, delivery).await;
    let answer = offload::run(finished.bytes(), || to_answer(finished, truncated, is_dry_run)).await;
    answer.unwrap_or_else(|busy| Answer::refused(busy.to_string()))
}

/// Does the same for a run whose outcome is kept. A result that is longer than a client gets at once is kept with it: its text is
/// returned too, and the run is its handle.
pub(super) async fn finish_kept(
    hub: &Hub,
    mut finished: Finished,
    (max_bytes, delivery): (u64, Delivery),
) -> (Answer, Option<String>) {
    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let at_once = max_inline_bytes(hub, max_bytes, delivery);
    let is_long = finished.outcome.result.as_ref().is_ok_and(|text| text.len() > at_once);
    if !is_long || !hub.results().are_stored() {
        return (finish(hub, finished, (max_bytes as u64, delivery), false).await, None);
    }
    let json = finished.outcome.result.as_mut().map(std::mem::take).unwrap_or_default();
    let text = match redacted_text(hub, &json).await {
        Ok(text) => text,
        Err(busy) => return (Answer::refused(busy.to_string()), None),
    };
    let Some(first) = results::piece(&text, 0, at_once) else {
        finished.outcome.result = Ok(json);
        return (finish(hub, finished, (max_bytes as u64, delivery), false).await, None);
    };
    let handle = finished.id.as_str().to_owned();
    let outline = Outline::of(&json).await;
    let notice = with_notice(hub, &handle, &first, &outline.advice());
    finished.outcome.result = Ok(Value::from(notice).to_string());
    let truncated = outline.added_to(truncated(&handle, &first));
    let answer = offload::run(finished.bytes(), || to_answer(finished, Some(truncated), false)).await;
    (answer.unwrap_or_else(|busy| Answer::refused(busy.to_string())), Some(text))
}

/// Truncates a result that is longer than a client gets at once to its first piece, and stores the whole result. Returns its
/// `truncated` member; `None` if it is not truncated. `max_bytes` is the maximum length of a result that is not stored.
pub(super) async fn truncate_result(
    hub: &Hub,
    finished: &mut Finished,
    max_bytes: usize,
    delivery: Delivery,
) -> Option<Value> {
    let at_once = max_inline_bytes(hub, max_bytes, delivery);
    let text = match &mut finished.outcome.result {
        Ok(text) if text.len() > at_once => std::mem::take(text),
        Ok(_) | Err(_) => return None,
    };
    match first_piece(hub, text, at_once, Outline::advice).await {
        Ok((notice, truncated)) => {
            finished.outcome.result = Ok(Value::from(notice).to_string());
            Some(truncated)
        }
        Err(text) if text.len() <= max_bytes => {
            finished.outcome.result = Ok(text);
            None
        }
        Err(_) => {
            let message =
                format!("The result is longer than its limit of {max_bytes} bytes; return only what is needed");
            finished.fail(ErrorCode::ResultTooLarge, message);
            finished.outcome.warnings.clear();
            None
        }
    }
}

/// Returns how many bytes of a result a client gets at once.
pub(super) fn max_inline_bytes(hub: &Hub, max_bytes: usize, delivery: Delivery) -> usize {
    let stores = hub.config().result_store.enabled;
    let inline = hub.config().inline_bytes(delivery == Delivery::ToModel);
    let inline = usize::try_from(inline).unwrap_or(usize::MAX);
    if stores { inline.min(max_bytes) } else { max_bytes }
}

/// Stores a result, given as JSON. Returns its first piece with a notice, which advises what `advice` makes of its outline, and
/// the `truncated` member of the answer.
///
/// # Errors
/// It is not stored: the JSON.
pub(super) async fn first_piece(
    hub: &Hub,
    json: String,
    max_bytes: usize,
    advice: impl FnOnce(&Outline) -> String,
) -> Result<(String, Value), String> {
    let Some((handle, piece)) = store(hub, &json, max_bytes).await else { return Err(json) };
    let outline = Outline::of(&json).await;
    let notice = with_notice(hub, &handle, &piece, &advice(&outline));
    Ok((notice, outline.added_to(truncated(&handle, &piece))))
}

/// Converts a run to the answer for its client.
fn to_answer(mut finished: Finished, truncated: Option<Value>, is_dry_run: bool) -> Answer {
    let meta = finished.meta();
    let parse = |finished: &Finished| {
        json::parse(&match (&finished.outcome.result, is_dry_run) {
            (_, true) => finished.dry_run_json(),
            (Ok(_), false) => finished.outcome.to_json(),
            (Err(_), false) => finished.to_json(),
        })
    };
    let mut value = parse(&finished).unwrap_or_else(|_| {
        finished.remove_depth();
        parse(&finished).unwrap_or_default()
    });
    if let Some(truncated) = truncated {
        value["truncated"] = truncated;
    }
    Answer::structured(value, finished.outcome.status() != Status::Ok).with_meta(meta)
}

/// Stores a result. Returns the handle and the first piece.
async fn store(hub: &Hub, json: &str, max_bytes: usize) -> Option<(String, Piece)> {
    let text = redacted_text(hub, json).await.ok()?;
    hub.results().put(text, max_bytes).await
}

/// Returns the text of a result: a string as it is, anything else as JSON. Secrets are redacted before it is split, because a
/// secret could extend over two pieces.
async fn redacted_text(hub: &Hub, json: &str) -> Result<String, offload::Busy> {
    offload::run(json.len(), || {
        let mut text = match json.starts_with('"').then(|| json::parse(json)) {
            Some(Ok(Value::String(text))) => text,
            Some(_) | None => json.to_owned(),
        };
        hub.pipeline().secrets().redactor().redact_string(&mut text);
        text
    })
    .await
}

/// Returns the text of a piece, with a notice at the end if there is more to read. It advises to read on, or `instead`.
fn with_notice(hub: &Hub, handle: &str, piece: &Piece, instead: &str) -> String {
    let Piece { text, offset, next: Some(next), bytes } = piece else { return piece.text.clone() };
    let tool = listed_name(&Execute, hub.config().tools.names);
    let more = json!({"handle": handle, "offset": next});
    format!("{text}\n… [cut: these are bytes {offset} to {next} of {bytes}. Read on with {tool} {more}, or {instead}]")
}

/// Returns the JSON schema of the `truncated` member of an answer.
pub(super) fn truncated_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "bytes": {"type": "integer"},
            "handle": {"type": "string"},
            "offset": {"type": "integer"},
            "next": {"type": "integer"},
            "shape": {"type": "string"},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["bytes", "handle"],
    })
}

/// Returns the `truncated` member of an answer.
fn truncated(handle: &str, piece: &Piece) -> Value {
    let mut truncated = json!({"bytes": piece.bytes, "handle": handle});
    if piece.offset > 0 {
        truncated["offset"] = piece.offset.into();
    }
    if let Some(next) = piece.next {
        truncated["next"] = next.into();
    }
    truncated
}

impl Execute {
    /// Returns what is known of the run that a handle names, or the next piece of the result.
    async fn of_handle(
        &self,
        hub: &Hub,
        arguments: Arguments,
        delivery: Delivery,
        cancel: &CancellationToken,
    ) -> Answer {
        if let Some(run) = arguments.handle.as_deref().and_then(RunId::parse)
            && arguments.script.is_none()
            && (arguments.offset.is_some() || arguments.limit.is_some())
        {
            match waiting::long_result(hub, &run).await {
                Ok(Some(text)) => return self.piece(hub, arguments, delivery, Some(text.into())).await,
                Ok(None) => {}
                Err(error) => return Answer::refused(format!("The result cannot be read: {error}")),
            }
        } else if let Some(run) = arguments.handle.as_deref().and_then(RunId::parse)
            && arguments.script.is_none()
            && let Some(answer) = waiting::outcome(hub, &run, cancel).await
        {
            return answer;
        }
        self.piece(hub, arguments, delivery, None).await
    }

    /// Reads a piece of a stored result; `kept` is that of a durable run.
    async fn piece(&self, hub: &Hub, arguments: Arguments, delivery: Delivery, kept: Option<Arc<str>>) -> Answer {
        let Arguments { script: None, handle: Some(handle), offset, limit, .. } = arguments else {
            return InvalidArguments::new(self, "give either 'script' or 'handle', not both").into();
        };
        let max_bytes = usize::try_from(hub.config().policy.limits.max_result_bytes).unwrap_or(usize::MAX);
        let at_once = max_inline_bytes(hub, max_bytes, delivery);
        let max_bytes = limit.map_or(at_once, |limit| limit.min(max_bytes));
        let (results, offset) = (hub.results(), offset.unwrap_or(0));
        let read = match kept {
            Some(text) => results.read_in(&handle, text, offset, max_bytes).await,
            None => results.read(&handle, offset, max_bytes).await,
        };
        match read {
            Ok(piece) => {
                let result = with_notice(hub, &handle, &piece, "run the script again and return less");
                Answer::ok(json!({"status": "ok", "result": result, "truncated": truncated(&handle, &piece)}))
            }
            Err(Missing::Offset(bytes)) => {
                let problem = format!("'offset' must be below {bytes}, where the result ends");
                InvalidArguments::new(self, &problem).into()
            }
            Err(Missing::Result) => {
                let problem = "there is no result with this 'handle' (any more); run the script again and return less";
                InvalidArguments::new(self, problem).into()
            }
            Err(Missing::Busy(busy)) => Answer::refused(busy.to_string()),
        }
    }

    /// Returns the run that a client submits with the arguments of this tool.
    pub(super) fn submitted(&self, hub: &Hub, arguments: Value) -> Result<Box<ExecuteRequest>, InvalidArguments> {
        let arguments: Arguments = parse(self, arguments)?;
        if arguments.handle.is_some() || arguments.dry_run {
            return Err(InvalidArguments::new(self, "'handle' and 'dryRun' are not for runs that are submitted"));
        }
        if arguments.idempotency_key.is_some() {
            return Err(InvalidArguments::new(self, "give the key as the header 'Idempotency-Key'"));
        }
        self.request(hub, arguments)
    }

    fn request(&self, hub: &Hub, arguments: Arguments) -> Result<Box<ExecuteRequest>, InvalidArguments> {
        let invalid = |problem: &str| InvalidArguments::new(self, problem);
        if arguments.tool.is_some() || arguments.input.is_some() {
            return Err(invalid("give either 'script', or 'tool' with 'input' and nothing else"));
        }
        let script = arguments.script.ok_or_else(|| invalid("'script' is missing"))?;
        if script.trim().is_empty() {
            return Err(invalid("'script' is empty"));
        }
        if arguments.offset.is_some() || arguments.limit.is_some() {
            return Err(invalid("'offset' and 'limit' belong to 'handle'"));
        }
        if let Some(key) = &arguments.idempotency_key {
            if !hub.config().durable.enabled || arguments.dry_run {
                return Err(invalid("'idempotencyKey' is for durable runs ('durable.enabled'), and not for 'dryRun'"));
            }
            if key.is_empty() || key.len() > submit::MAX_KEY_BYTES {
                return Err(invalid(&format!("'idempotencyKey' has 1 to {} bytes", submit::MAX_KEY_BYTES)));
            }
        }
        let text = |context: Members| {
            offload::run_without_permit(context.weight(), || {
                context.into_map().map(|context| Value::Object(context).to_string())
            })
        };
        let context = arguments.context.map(text).transpose();
        let context = context.map_err(|problem| invalid(&format!("'context' {problem}")))?;
        let allowed = arguments.allowed_tools.map(|allowed| parse_names("allowedTools", allowed)).transpose();
        let allowed_tools = allowed.map_err(|problem| invalid(&problem))?;
        let policy = lowered(&hub.config().policy, arguments.limits.unwrap_or_default());
        let policy = policy.map_err(|problem| invalid(&problem))?;
        Ok(Box::new(ExecuteRequest {
            language: arguments.language.map(Into::into),
            context,
            allowed_tools,
            dry_run: arguments.dry_run,
            ..ExecuteRequest::new(script, policy)
        }))
    }
}
