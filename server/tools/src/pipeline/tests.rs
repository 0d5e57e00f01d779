//! The results of calls of tools, and the reasons of refusals.

use super::*;
use crate::catalogue::tests::catalogue;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn pipeline() -> Pipeline {
    let schema = json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": false,
    });
    let any = || json!({"type": "object"});
    let tools = [
        ("users", "get", "", schema),
        ("users", "fail", "", any()),
        ("users", "slow", "", any()),
        ("odd", "schema", "", json!({"type": "nonsense"})),
    ];
    let on = Sanitization { remove_stack_traces: true, remove_file_paths: true };
    Pipeline::new(Arc::new(catalogue(&tools, ToolFilter::default())), on)
}

async fn call(tool: &str, input: Value, allowed: Option<&[&str]>) -> Result<Value, ToolError> {
    let Value::Object(input) = input else { panic!("an object") };
    let allowed = allowed.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    let timeout = Duration::from_millis(20);
    let cancel = CancellationToken::new();
    let call = ToolCall {
        tool: tool.into(),
        input,
        context: CallContext {
            caller: Caller::Script,
            run: None,
            timeout,
            client: Client::default(),
            sink: None,
            cancel,
        },
        allowed,
        apps: None,
    };
    let data = pipeline().data(call).await?;
    Ok(serde_json::from_str(&data).expect("JSON"))
}

async fn failure(tool: &str, input: Value, allowed: Option<&[&str]>) -> (String, String) {
    let error = call(tool, input, allowed).await.expect_err("refused");
    (error.code, error.message)
}

/// A server may have thousands of calls that wait for their tools.
#[test]
fn a_call_that_waits_is_small() {
    fn size<F>(_: impl FnOnce(&'static Pipeline, ToolCall) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(|pipeline, call| pipeline.data(call));
    assert!(size <= 1 << 10, "{size} bytes");
}

#[tokio::test]
async fn a_call_that_fits_gets_through() {
    let input = json!({"id": 1});
    assert_eq!(call("users:get", input.clone(), None).await, Ok(input.clone()));
    assert_eq!(call("users.get", input.clone(), Some(&["users:*"])).await, Ok(input.clone()));
    assert_eq!(call("get", input.clone(), Some(&["users.get"])).await, Ok(input));
    assert_eq!(call("odd:schema", json!({}), None).await, Ok(json!({})));
}

#[tokio::test]
async fn each_refusal_has_its_code() {
    let (code, message) = failure("users:gte", json!({}), None).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("TOOL_NOT_FOUND", "Tool 'users:gte' not found. Did you mean 'users:get'?")
    );
    assert_eq!(failure("users:get", json!({"id": 1}), Some(&["users:list"])).await.0, "ACCESS_DENIED");
    let (code, message) = failure("users:get", json!({"id": "x", "extra": 1}), None).await;
    assert_eq!(code, "INVALID_INPUT");
    assert!(message.contains("id: \"x\" is not of type \"integer\"") && message.contains("extra"), "{message}");
    let (code, message) = failure("users:slow", json!({}), None).await;
    assert_eq!((code.as_str(), message.as_str()), ("TOOL_TIMEOUT", "Tool 'users:slow' timed out after 20ms"));
    assert_eq!(failure("codecall:execute", json!({}), None).await.0, "SELF_REFERENCE_BLOCKED");
}

#[tokio::test]
async fn paths_of_the_host_stay_there() {
    let (_, message) = failure("users:fail", json!({}), None).await;
    assert_eq!(message, "at [path]: broken");
}
