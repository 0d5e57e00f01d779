//! `codecall_invoke`: call one tool without a script.

use super::*;
use codecall_base::call::Caller;
use codecall_base::offload::{self, weight};
use codecall_base::tool::{ErrorCode, ToolError};
use codecall_tools::pipeline::{ToolCall, bounded};

/// Longest name in the record of a call that cannot be read as one, in bytes.
const LONGEST_NAME: usize = 200;

/// Longest input in an answer, in bytes of JSON.
const LONGEST_INPUT: usize = 2_048;

pub struct Invoke;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    #[serde(alias = "toolName", alias = "name")]
    tool: String,
    #[serde(default, alias = "arguments")]
    input: Value,
}

impl MetaTool for Invoke {
    fn id(&self) -> &'static str {
        "invoke"
    }

    fn is_enabled(&self, config: &Config) -> bool {
        config.direct_calls.enabled
    }

    fn title(&self) -> &'static str {
        "Call one tool"
    }

    fn description(&self) -> &'static str {
        "Call one tool directly, without a script. Use it for a single call whose whole result is needed; \
         for several calls, or to filter or join results, use codecall_execute. \
         Gives `{status: \"ok\", result}` or `{status: \"error\", error: {code, message}}`."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "tool": {"type": "string", "description": "Name as codecall_search gives it"},
                "input": {"type": "object", "description": "Input that fits the tool's schema"},
            },
            "required": ["tool", "input"],
            "additionalProperties": false,
        })
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["ok", "error"]},
                "result": {},
                "error": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "toolName": {"type": "string"},
                        "toolInput": {},
                        "details": {},
                    },
                    "required": ["code", "message", "toolName"],
                },
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> Value {
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true})
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Request { hub, arguments, watcher, cancel } = request;
            let bytes = weight(&arguments);
            let read = || {
                let given = arguments.clone();
                match read::<Arguments>(self, arguments) {
                    Ok(Arguments { tool, input }) => match object(input) {
                        Ok(input) => Ok((tool, input, given)),
                        Err(problem) => {
                            Err(Box::new(misshapen(hub, given, refusal(self, &format!("'input' {problem}")))))
                        }
                    },
                    Err(refused) => Err(Box::new(misshapen(hub, given, *refused))),
                }
            };
            let (tool, input, given) = match offload::run(bytes, read).await {
                Ok(Ok(read)) => read,
                Ok(Err(refused)) => return *refused,
                Err(busy) => return Answer::refused(busy.to_string()),
            };
            let call = ToolCall {
                tool: tool.clone(),
                input,
                context: hub.context(Caller::Invoke, watcher, cancel),
                allowed: None,
                apps: None,
            };
            match hub.pipeline().data(call).await {
                Ok(result) => Answer::ok(json!({"status": "ok", "result": result})),
                Err(error) => offload::run_without_permit(bytes, || failed(error, tool, &given)),
            }
        })
    }
}

/// A call that cannot be read as one: it never comes to the chain, and is recorded all the same.
fn misshapen(hub: &Hub, given: Value, refused: Answer) -> Answer {
    let tool = ["tool", "toolName", "name"].iter().find_map(|key| given.get(key)?.as_str());
    let tool = codecall_base::text::truncate(tool.unwrap_or("codecall:invoke"), LONGEST_NAME).to_owned();
    let message = refused.value.as_str().unwrap_or("The request does not fit the schema of codecall_invoke");
    hub.pipeline().refused(
        &tool,
        hub.context(Caller::Invoke, None, CancellationToken::new()),
        given,
        ToolError::new(ErrorCode::InvalidInput, message),
    );
    refused
}

/// What a client sees of a failure: of its input no more than the beginning.
fn failed(error: ToolError, tool: String, given: &Value) -> Answer {
    let given = given.get("input").or_else(|| given.get("arguments"));
    let input = match given {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(input) => input.clone(),
        None => json!({}),
    };
    let text = input.to_string();
    let input = if text.len() > LONGEST_INPUT { bounded(text, LONGEST_INPUT).into() } else { input };
    let tool = bounded(tool, LONGEST_NAME);
    let mut told = json!({"code": error.code, "message": error.message, "toolName": tool, "toolInput": input});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        told["details"] = details;
    }
    Answer { value: json!({"status": "error", "error": told}), is_error: true, meta: None }
}
