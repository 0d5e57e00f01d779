//! `codecall_execute`: run a script.

use super::*;
use crate::stateless::LanguageName;
use agentscript::{Failure, Status};
use codecall_base::json;
use codecall_base::offload;
use codecall_base::tool::ErrorCode;
use codecall_config::policy::lowered;
use codecall_runs::{ExecuteRequest, Finished};
use codecall_tools::results::{Missing, Piece};

pub struct Execute;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    script: Option<String>,
    context: Option<Value>,
    allowed_tools: Option<Texts>,
    language: Option<LanguageName>,
    limits: Option<Map<String, Value>>,
    #[serde(default)]
    dry_run: bool,
    handle: Option<String>,
    offset: Option<usize>,
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
        json!({
            "type": "object",
            "properties": {
                "script": {"type": "string", "description": "The script; its return value is the result"},
                "context": {"type": "object", "description": "Data for the script, seen as codecallContext"},
                "allowedTools": strings("The only tools the script may call; 'users:*' allows an app"),
                "language": {"enum": ["javascript", "typescript"], "description": "Found out by itself"},
                "limits": {"type": "object", "description": "Lower limits for this run: timeoutMs, maxToolCalls, maxIterations, …"},
                "dryRun": {"type": "boolean", "description": "Call no tool; tell what would be called"},
                "handle": {"type": "string", "description": "In place of script: read on in a result that was cut"},
                "offset": {"type": "integer", "description": "With handle: where to read on"},
                "limit": {"type": "integer", "description": "With handle: most bytes of this piece"},
            },
            "additionalProperties": false,
        })
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["ok", "syntax_error", "illegal_access", "runtime_error", "tool_error", "timeout"]},
                "result": {},
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
                "logs": {"type": "array", "items": {"type": "string"}},
                "truncated": {
                    "type": "object",
                    "properties": {
                        "bytes": {"type": "integer"},
                        "handle": {"type": "string"},
                        "offset": {"type": "integer"},
                        "next": {"type": "integer"},
                    },
                    "required": ["bytes", "handle"],
                },
                "dryRun": {"const": true},
                "calls": {"type": "array", "items": {"type": "object"}},
                "omitted": {"type": "integer"},
                "note": {"type": "string"},
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> Value {
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true})
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let arguments: Arguments = match read(self, request.arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return *refused,
            };
            if arguments.handle.is_some() {
                return self.piece(request.hub, arguments);
            }
            let mut script = match self.request(request.hub, arguments) {
                Ok(script) => script,
                Err(refused) => return *refused,
            };
            // What is longer than the policy lets a client see is cut here, not refused there.
            let limits = &mut script.policy.limits;
            let shown = limits.max_result_bytes;
            limits.max_result_bytes = request.hub.results().longest(shown);
            let dry = script.dry_run;
            let finished = request.hub.execute(script, request.watcher, request.cancel).await;
            let most = usize::try_from(shown).unwrap_or(usize::MAX);
            let shown = offload::run(finished.bytes(), || shown_of(request.hub, finished, most, dry)).await;
            shown.unwrap_or_else(|busy| Answer::refused(busy.to_string()))
        })
    }
}

/// What a client sees of a run, of whose result it may see `most` bytes.
fn shown_of(hub: &Hub, mut finished: Finished, most: usize, dry: bool) -> Answer {
    let meta = Some(finished.meta());
    let cut = match &mut finished.outcome.result {
        Ok(text) if text.len() > most => Some(keep(hub, std::mem::take(text), most)),
        Ok(_) | Err(_) => None,
    };
    let truncated = match cut {
        None => None,
        Some(Ok((handle, piece))) => {
            finished.outcome.result = Ok(Value::from(with_marker(hub, &handle, &piece)).to_string());
            Some(truncated(&handle, &piece))
        }
        Some(Err(())) => {
            let message = format!("The result is longer than its limit of {most} bytes; return only what is needed");
            let mut failure = Failure::of(ErrorCode::ResultTooLarge, message);
            failure.tool_calls = finished.outcome.stats.tool_calls;
            finished.outcome.result = Err(Box::new(failure));
            None
        }
    };
    let json =
        |finished: &Finished| json::parse(&if dry { finished.dry_run_json() } else { finished.outcome.to_json() });
    let mut value = json(&finished).unwrap_or_else(|_| {
        finished.outcome = codecall_runs::without_depth(finished.outcome.clone());
        json(&finished).unwrap_or_default()
    });
    if let Some(truncated) = truncated {
        value["truncated"] = truncated;
    }
    Answer { value, is_error: finished.outcome.status() != Status::Ok, meta }
}

/// Keep a result that is too long; gives its handle and the first piece of it. A text is kept as such,
/// anything else as JSON.
fn keep(hub: &Hub, json: String, most: usize) -> Result<(String, Piece), ()> {
    let mut text = match json::parse(&json) {
        Ok(Value::String(text)) => Value::String(text),
        Ok(_) | Err(_) => Value::String(json),
    };
    // Cleaned as a whole: of a secret on the edge of a piece, both halves would pass.
    hub.pipeline().secrets().redact_value(&mut text);
    let Value::String(text) = text else { return Err(()) };
    let handle = hub.results().keep(text).ok_or(())?;
    let piece = hub.results().read(&handle, 0, most).map_err(drop)?;
    Ok((handle, piece))
}

/// A piece as a client sees it: where something follows, it says so itself.
fn with_marker(hub: &Hub, handle: &str, piece: &Piece) -> String {
    let Piece { text, offset, next: Some(next), bytes } = piece else { return piece.text.clone() };
    let tool = spelled(&Execute, hub.config().tools.names);
    let more = json!({"handle": handle, "offset": next});
    format!(
        "{text}\n… [cut: these are bytes {offset} to {next} of {bytes}. Read on with {tool} {more}, or run the script again and return less]"
    )
}

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
    /// A piece of a result that was cut.
    fn piece(&self, hub: &Hub, arguments: Arguments) -> Answer {
        let Arguments { script: None, handle: Some(handle), offset, limit, .. } = arguments else {
            return refusal(self, "give either 'script' or 'handle', not both");
        };
        let most = usize::try_from(hub.config().policy.limits.max_result_bytes).unwrap_or(usize::MAX);
        match hub.results().read(&handle, offset.unwrap_or(0), limit.map_or(most, |limit| limit.min(most))) {
            Ok(piece) => {
                let result = with_marker(hub, &handle, &piece);
                Answer::ok(json!({"status": "ok", "result": result, "truncated": truncated(&handle, &piece)}))
            }
            Err(Missing::Offset(bytes)) => {
                refusal(self, &format!("'offset' must be below {bytes}, where the result ends"))
            }
            Err(Missing::Result) => {
                refusal(self, "there is no result with this 'handle' (any more); run the script again and return less")
            }
        }
    }

    fn request(&self, hub: &Hub, arguments: Arguments) -> Result<ExecuteRequest, Box<Answer>> {
        let refused = |problem: &str| Box::new(refusal(self, problem));
        let script = arguments.script.ok_or_else(|| refused("'script' is missing"))?;
        if script.trim().is_empty() {
            return Err(refused("'script' is empty"));
        }
        if arguments.offset.is_some() || arguments.limit.is_some() {
            return Err(refused("'offset' and 'limit' belong to 'handle'"));
        }
        let text = |context: Value| {
            let text = |context| object(context).map(|context| Value::Object(context).to_string());
            offload::run_without_permit(weight(&context), || text(context))
        };
        let context = match arguments.context {
            None | Some(Value::Null) => None,
            Some(context) => Some(text(context).map_err(|problem| refused(&format!("'context' {problem}")))?),
        };
        let allowed = arguments.allowed_tools.map(|allowed| names("allowedTools", allowed)).transpose();
        let allowed_tools = allowed.map_err(|problem| refused(&problem))?;
        let policy = lowered(&hub.config().policy, arguments.limits.unwrap_or_default());
        let policy = policy.map_err(|problem| refused(&problem))?;
        Ok(ExecuteRequest {
            language: arguments.language.map(Into::into),
            context,
            allowed_tools,
            dry_run: arguments.dry_run,
            ..ExecuteRequest::new(script, policy)
        })
    }
}
