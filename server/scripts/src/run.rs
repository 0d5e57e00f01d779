//! One call of a script tool: a run in a sandbox of its own, and its outcome as `{success, data}` or `{success, error}`.

use crate::{ScriptTool, ScriptTools};
use agentscript::Failure;
use codecall_base::json;
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_runs::ExecuteRequest;
use codecall_upstream::UpstreamCall;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How much earlier than its caller a tool ends itself, so that its own message says why.
const MARGIN: Duration = Duration::from_millis(100);

/// Failures that are none of the tool: the call has not begun, or nobody waits for it.
const OF_THE_SERVER: [ErrorCode; 5] = [
    ErrorCode::QueueFull,
    ErrorCode::QueueTimeout,
    ErrorCode::PoolDisposed,
    ErrorCode::ExecutionAborted,
    ErrorCode::WorkerStartupFailed,
];

/// Makes a call.
///
/// # Errors
/// The tool could not be run. A tool that fails is a result.
pub async fn call(tools: &ScriptTools, tool: &ScriptTool, call: UpstreamCall) -> Result<ToolResult, ToolError> {
    let Some(runs) = tools.runs() else {
        return Err(ToolError::new(ErrorCode::PoolDisposed, "The server is shutting down"));
    };
    let params = match tool.parameters(call.input) {
        Ok(params) => params,
        Err(message) => return Ok(failed(&format!("Invalid parameters: {message}"), None)),
    };
    let config = tools.secrets(&tool.manifest.secrets).await?;
    let policy = tool.manifest.policy(tools.policy());
    let mut policy = policy.map_err(|message| ToolError::new(ErrorCode::ToolExecutionError, message))?;
    let limit = call.timeout.saturating_sub(MARGIN).max(call.timeout / 2);
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
    policy.limits.max_duration_ms = policy.limits.max_duration_ms.min(limit_ms);
    let request = ExecuteRequest {
        language: Some(tool.language),
        context: Some(json!({"params": params, "config": config}).to_string()),
        allowed_tools: Some(tool.manifest.tools.clone()),
        fetch: (!tool.manifest.hosts.is_empty()).then(|| tool.manifest.hosts.as_slice().into()),
        parent: call.run,
        client: call.client,
        tool: Some(tool.definition.full_name().into()),
        ..ExecuteRequest::new(Arc::clone(&tool.script), policy)
    };
    let finished = runs.execute(request, None, call.cancel).await;
    match finished.outcome.result {
        Ok(result) => Ok(match json::parse(&result) {
            Ok(value) => answer(tool, value),
            Err(_) => failed("The result is nested too deeply", Some("SERIALIZATION_ERROR")),
        }),
        Err(failure) => match OF_THE_SERVER.iter().find(|code| failure.code == code.as_str()) {
            Some(code) => Err(ToolError::new(*code, failure.message)),
            None => Ok(failed(&message(&failure, tool.manifest.timeout.min(call.timeout)), code(&failure))),
        },
    }
}

/// Converts what the function has returned.
fn answer(tool: &ScriptTool, value: Value) -> ToolResult {
    let members = match value {
        Value::Object(mut members) => match members.get("success") {
            Some(Value::Bool(true)) => {
                members.entry("data").or_insert(Value::Null);
                members
            }
            Some(Value::Bool(false)) => return failed_with(members),
            Some(_) | None => success(Value::Object(members)),
        },
        data => success(data),
    };
    match tool.check_result(&members["data"]) {
        Ok(()) => ToolResult::Data(Value::Object(members)),
        Err(message) => failed(&format!("Invalid result: {message}"), Some("INVALID_OUTPUT")),
    }
}

fn success(data: Value) -> Map<String, Value> {
    Map::from_iter([("success".to_owned(), Value::Bool(true)), ("data".to_owned(), data)])
}

/// Returns a failure with a message and, if it is not simply that of the code, a code.
fn failed(message: &str, code: Option<&str>) -> ToolResult {
    let mut members = Map::from_iter([("success".to_owned(), false.into()), ("error".to_owned(), message.into())]);
    members.extend(code.map(|code| ("code".to_owned(), code.into())));
    failed_with(members)
}

fn failed_with(mut members: Map<String, Value>) -> ToolResult {
    if members.get("error").is_none_or(Value::is_null) {
        members.insert("error".into(), "The tool has failed without a message".into());
    }
    let value = Value::Object(members);
    let text = value.to_string();
    let content = json!([{"type": "text", "text": text}]);
    ToolResult::Mcp(json!({"content": content, "structuredContent": value, "isError": true}))
}

fn code(failure: &Failure) -> Option<&str> {
    (failure.code != ErrorCode::ExecutionError.as_str()).then_some(failure.code.as_str())
}

/// Words a failure for those who call the tool. `limit` is how long it may take.
fn message(failure: &Failure, limit: Duration) -> String {
    let Failure { code, message, name, .. } = failure;
    match code.as_str() {
        "TIMEOUT" => format!("Execution timeout: Tool exceeded maximum execution time of {}", seconds(limit, message)),
        "MEMORY_LIMIT" | "WORKER_MEMORY_EXCEEDED" => format!("Memory limit exceeded: {message}"),
        "STEP_LIMIT" | "ITERATION_LIMIT" => format!("CPU limit exceeded: {message}"),
        "SYNTAX_ERROR" => format!("SyntaxError: {message}"),
        _ => match name.as_deref() {
            None | Some("Error") => message.clone(),
            Some(name) => format!("{name}: {message}"),
        },
    }
}

/// Returns the time that has run out: that of the whole call, or the shorter one of the script itself.
fn seconds(limit: Duration, message: &str) -> String {
    let ms = message.rsplit_once("after ").and_then(|(_, rest)| rest.strip_suffix("ms")?.parse().ok());
    let own = Duration::from_millis(ms.unwrap_or(u64::MAX));
    // The time of the call is a little less than its limit.
    let shown = if own.saturating_add(MARGIN) < limit { own } else { limit };
    match shown.as_millis() {
        ms if ms % 1_000 == 0 => format!("{} seconds", ms / 1_000),
        ms => format!("{ms} ms"),
    }
}
