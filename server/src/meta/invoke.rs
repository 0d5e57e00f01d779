//! `codecall_invoke`: call one tool without a script.

use super::*;
use crate::pipeline::{Caller, ToolCall, is_allowed};
use crate::upstream::ToolError;
use std::time::Duration;

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
            let arguments: Arguments = match read(self, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return *refused,
            };
            let input = match object(arguments.input) {
                Ok(input) => input,
                Err(problem) => return refusal(self, &format!("'input' {problem}")),
            };
            let result = match permitted(hub, &arguments.tool) {
                Err(error) => Err(error),
                Ok(()) => {
                    let call = ToolCall {
                        tool: arguments.tool.clone(),
                        input: input.clone(),
                        caller: Caller::Invoke,
                        allowed: None,
                        apps: None,
                        timeout: Duration::from_millis(hub.config().policy.limits.tool_timeout_ms),
                        watcher,
                        cancel,
                    };
                    hub.pipeline().call(call).await
                }
            };
            match result {
                Ok(result) => Answer::ok(json!({"status": "ok", "result": result})),
                Err(error) => failed(error, &arguments.tool, input),
            }
        })
    }
}

fn permitted(hub: &Hub, tool: &str) -> Result<(), ToolError> {
    let direct = &hub.config().direct_calls;
    if !direct.enabled {
        return Err(ToolError::new("ACCESS_DENIED", "Direct calls are switched off; use codecall_execute"));
    }
    let snapshot = hub.catalogue().snapshot();
    // What is not there is the pipeline's to say.
    let Some(entry) = snapshot.lookup(tool) else { return Ok(()) };
    let allowed = direct.allowed_tools.as_ref().is_none_or(|allowed| is_allowed(&snapshot, entry, allowed));
    if allowed && direct.filter.keeps(&entry.definition) {
        return Ok(());
    }
    let message = format!("Tool '{}' may not be called directly; use codecall_execute", entry.name);
    Err(ToolError::new("ACCESS_DENIED", message))
}

fn failed(error: ToolError, tool: &str, input: Map<String, Value>) -> Answer {
    let mut told = json!({"code": error.code, "message": error.message, "toolName": tool, "toolInput": input});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        told["details"] = details;
    }
    Answer { value: json!({"status": "error", "error": told}), is_error: true, meta: None }
}
