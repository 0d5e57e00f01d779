//! Tools that become tasks if the client supports them.

use crate::State;
use crate::input::{ask, field, required, response};
use crate::tools::text;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskExit, TaskOptions};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use std::time::Duration;

/// Calls the tool.
pub async fn call(
    state: &State,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let name = request.name.as_ref();
    let is_supported = context.client_capabilities().is_some_and(|client| client.supports_tasks());
    // These cannot be done without a task.
    if matches!(name, "failing_job" | "test_tool_with_task" | "confirm_delete" | "multi_input") && !is_supported {
        let needed = ClientCapabilities::builder().enable_tasks().build();
        return Err(ErrorData::missing_required_client_capability(needed));
    }
    let task = match name {
        "greet" => return Ok(done(format!("Hello, {}!", argument("name")))),
        "slow_compute" => {
            let seconds = arguments.get("seconds").and_then(Value::as_f64).unwrap_or(1.0).clamp(0.0, 60.0);
            let wait = Duration::from_secs_f64(seconds);
            let result = format!("{} is done after {seconds} s", argument("label"));
            if !is_supported {
                tokio::time::sleep(wait).await;
                return Ok(done(result));
            }
            state.tasks.spawn(TaskOptions::default(), move |task| {
                Box::pin(async move {
                    tokio::select! {
                        () = task.cancelled() => Err(TaskExit::Cancelled),
                        () = tokio::time::sleep(wait) => Ok(CallToolResult::success(text(&result))),
                    }
                })
            })
        }
        "failing_job" => state.tasks.spawn(TaskOptions::default(), |_| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(CallToolResult::error(text("This job always fails")))
            })
        }),
        "protocol_error_job" => {
            let failure = || ErrorData::internal_error("This job always fails", None);
            let wait = Duration::from_millis(200);
            if !is_supported {
                tokio::time::sleep(wait).await;
                return Err(failure());
            }
            state.tasks.spawn(TaskOptions::default(), move |_| {
                Box::pin(async move {
                    tokio::time::sleep(wait).await;
                    Err(TaskExit::Error(failure()))
                })
            })
        }
        "confirm_delete" => {
            let file = argument("filename");
            state.tasks.spawn(TaskOptions::default(), move |task| {
                Box::pin(async move {
                    let confirm = InputRequest::Elicitation(ElicitRequest::new(crate::input::form(
                        &format!("Delete {file}?"),
                        serde_json::json!({"confirm": {"type": "boolean"}}),
                        serde_json::json!(["confirm"]),
                    )));
                    let answer = task.request_input("confirm", confirm).await?;
                    let is_confirmed = answer["content"]["confirm"] == true;
                    Ok(CallToolResult::success(text(&format!("{file}: confirmed = {is_confirmed}"))))
                })
            })
        }
        "multi_input" => state.tasks.spawn(TaskOptions::default(), |task| {
            Box::pin(async move {
                let first = task.request_input("input-a", ask("Value A, please", "value"));
                let second = task.request_input("input-b", ask("Value B, please", "value"));
                let (first, second) = tokio::join!(first, second);
                let (first, second) = (first?, second?);
                let values = format!("a = {}, b = {}", first["content"]["value"], second["content"]["value"]);
                Ok(CallToolResult::success(text(&values)))
            })
        }),
        "test_tool_with_task" => {
            let Some(user) = response(request.input_responses.as_ref(), "user_name") else {
                return Ok(required([("user_name", ask("What is your name?", "name"))]).into());
            };
            let greeting = format!("Hello, {}!", field(user, "name"));
            state.tasks.spawn(TaskOptions::default(), move |_| {
                Box::pin(async move {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    Ok(CallToolResult::success(text(&greeting)))
                })
            })
        }
        name => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
    };
    Ok(CreateTaskResult::new(task).into())
}

fn done(result: String) -> CallToolResponse {
    CallToolResult::success(text(&result)).into()
}
