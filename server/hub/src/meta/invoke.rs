//! `codecall_invoke`: calls one tool without a script.

use super::*;
use codecall_base::call::{CallContext, Caller};
use codecall_base::json;
use codecall_base::offload::{self, weight};
use codecall_base::tool::{ErrorCode, ToolError};
use codecall_tools::pipeline::{ToolCall, bounded};

/// Maximum length of the tool's name in the audit record of an invalid call, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// Maximum size of the input in an answer, in bytes of JSON.
const MAX_INPUT_BYTES: usize = 2_048;

pub struct Invoke;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    /// Name as codecall_search gives it
    #[serde(alias = "toolName", alias = "name")]
    tool: String,
    /// Input that fits the tool's schema
    #[serde(alias = "arguments")]
    #[schemars(required)]
    input: Option<Members>,
}

/// Returns the arguments of a request to `execute` that is one call: it has a tool, and no script.
pub fn as_call(arguments: &Value) -> Option<Value> {
    let members = arguments.as_object()?;
    let is_call = ["tool", "toolName"].iter().any(|key| members.contains_key(*key));
    let is_filled = |value: &Value| !value.is_null() && value.as_str() != Some("");
    let has_script = ["script", "handle"].iter().any(|key| members.get(*key).is_some_and(is_filled));
    if !is_call || has_script {
        return None;
    }
    // Models fill what they leave out.
    let is_kept = |(key, value): &(&String, &Value)| is_filled(value) || *key == "input";
    Some(members.iter().filter(is_kept).map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into())
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
        "Call one tool without a script."
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn listed_arguments(&self) -> Option<&'static [&'static str]> {
        Some(&["tool", "input"])
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["ok", "error"]},
                "result": schema::any_json(),
                "truncated": execute::truncated_schema(),
                "error": {
                    "type": "object",
                    "properties": {
                        "code": {"type": "string"},
                        "message": {"type": "string"},
                        "toolName": {"type": "string"},
                    },
                    "required": ["code", "message", "toolName"],
                },
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Request { hub, arguments, client, delivery, sink, cancel } = request;
            let bytes = weight(&arguments);
            let parse = || {
                let original = arguments.clone();
                match self.parse_call(arguments) {
                    Ok((tool, input)) => Ok((tool, input, original)),
                    Err(invalid) => {
                        record_invalid(hub, original, &invalid);
                        Err(invalid)
                    }
                }
            };
            let (tool, input, original) = match offload::run(bytes, parse).await {
                Ok(Ok(parsed)) => parsed,
                Ok(Err(invalid)) => return invalid.into(),
                Err(busy) => return Answer::refused(busy.to_string()),
            };
            let call = ToolCall {
                tool: tool.clone(),
                input,
                context: CallContext { client, ..hub.context(Caller::Invoke, sink, cancel) },
                allowed: None,
                apps: None,
            };
            match hub.pipeline().data(call).await {
                Ok(result) => success(hub, result, &tool, delivery).await,
                Err(error) => offload::run_without_permit(bytes, || error_answer(error, tool, &original)),
            }
        })
    }
}

impl Invoke {
    /// Returns the name of the tool and the input.
    fn parse_call(&self, arguments: Value) -> Result<(String, Map<String, Value>), InvalidArguments> {
        let Arguments { tool, input } = parse(self, arguments)?;
        let input = Members::into_optional_map(input)
            .map_err(|problem| InvalidArguments::new(self, &format!("'input' {problem}")))?;
        Ok((tool, input))
    }
}

/// Returns the answer to a call with a result, given as JSON. Of a long one the client gets the first piece, and a handle of
/// the whole.
pub(super) async fn success(hub: &Hub, result: String, tool: &str, delivery: Delivery) -> Answer {
    let at_once = execute::max_inline_bytes(hub, usize::MAX, delivery);
    let whole = if delivery == Delivery::AtOnce || result.len() <= at_once {
        result
    } else {
        match execute::first_piece(hub, result, at_once, |outline| outline.advice_on_call(tool)).await {
            Ok((piece, truncated)) => {
                return Answer::ok(json!({"status": "ok", "result": piece, "truncated": truncated}));
            }
            Err(result) => result,
        }
    };
    match offload::run(whole.len(), || json::read(&whole)).await {
        Ok(Ok(result)) => Answer::ok(json!({"status": "ok", "result": result})),
        Ok(Err(unread)) => Answer::refused(format!("The tool was called, and its result is too large: {unread}")),
        Err(busy) => Answer::refused(busy.to_string()),
    }
}

/// Records a call with invalid arguments, which the pipeline does not see otherwise.
fn record_invalid(hub: &Hub, arguments: Value, InvalidArguments(problem): &InvalidArguments) {
    let tool = ["tool", "toolName", "name"].iter().find_map(|key| arguments.get(key)?.as_str());
    let tool = codecall_base::text::truncate(tool.unwrap_or("codecall:invoke"), MAX_NAME_BYTES).to_owned();
    let context = hub.context(Caller::Invoke, None, CancellationToken::new());
    hub.pipeline().refused(&tool, context, arguments, ToolError::new(ErrorCode::InvalidInput, problem.as_str()));
}

/// Returns the answer to a call that failed. A long input is truncated.
fn error_answer(error: ToolError, tool: String, arguments: &Value) -> Answer {
    let input = match arguments.get("input").or_else(|| arguments.get("arguments")) {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(input) => input.clone(),
        None => json!({}),
    };
    let text = input.to_string();
    let input = if text.len() > MAX_INPUT_BYTES { bounded(text, MAX_INPUT_BYTES).into() } else { input };
    let tool = bounded(tool, MAX_NAME_BYTES);
    let mut error_json = json!({"code": error.code, "message": error.message, "toolName": tool, "toolInput": input});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        error_json["details"] = details;
    }
    Answer::structured(json!({"status": "error", "error": error_json}), true)
}
