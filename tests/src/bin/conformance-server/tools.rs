//! Tools that return something, send notifications, or ask the client on a session.

use crate::{State, input, resources};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A red pixel as a PNG.
pub const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// Silence as a WAV.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// The time between two notifications.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls the tool.
pub async fn call(
    state: &State,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let content = match request.name.as_ref() {
        "test_simple_text" | "test_simple_text_too" => text("This is a simple text response for testing."),
        "test_image_content" => vec![ContentBlock::image(IMAGE, "image/png")],
        "test_audio_content" => vec![ContentBlock::Audio(AudioContent::new(SOUND, "audio/wav"))],
        "test_embedded_resource" => {
            vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]
        }
        "test_multiple_content_types" => vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(IMAGE, "image/png"),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_error_handling" => {
            return Ok(CallToolResult::error(text("This tool intentionally returns an error for testing")).into());
        }
        "test_tool_with_logging" => {
            for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(context, LoggingLevel::Info, message).await;
                tokio::time::sleep(PAUSE).await;
            }
            text("Logged")
        }
        "test_logging_tool" => {
            if let Some(level) = context.meta.log_level() {
                log(context, level, "logLevel was requested").await;
            }
            text("Logged if requested")
        }
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let notification = ProgressNotificationParam::new(token, progress).with_total(100.0);
                    let _ = context.peer.notify_progress(notification.with_message(format!("{progress} of 100"))).await;
                }
                tokio::time::sleep(PAUSE).await;
            }
            text("Completed")
        }
        "test_reconnection" => {
            tokio::time::sleep(PAUSE * 2).await;
            text("Completed")
        }
        "test_custom_header" => text(&argument("value")),
        "json_schema_2020_12_tool" => text(&format!("Hello, {}!", argument("name"))),
        "test_trigger_tool_change" => {
            state.has_more_tools.fetch_xor(true, Ordering::Relaxed);
            for listener in state.listeners() {
                let _ = listener.notify_tool_list_changed().await;
            }
            text("Announced")
        }
        "test_trigger_prompt_change" => {
            for listener in state.listeners() {
                let _ = listener.notify_prompt_list_changed().await;
            }
            text("Announced")
        }
        "test_missing_capability" => {
            if context.meta.client_capabilities().is_none_or(|client| client.sampling.is_none()) {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            text("The client supports sampling")
        }
        "test_streaming_elicitation" => {
            return Ok(input::required([("value", input::ask("A value, please", "value"))]).into());
        }
        "test_sampling" => return sample(context, argument("prompt")).await,
        "test_elicitation" => {
            let user = json!({"username": {"type": "string"}, "email": {"type": "string"}});
            return elicit(context, argument("message"), user, json!(["username", "email"])).await;
        }
        "test_elicitation_sep1034_defaults" => {
            return elicit(context, "All values have defaults".into(), defaults(), json!([])).await;
        }
        "test_elicitation_sep1330_enums" => {
            return elicit(context, "Choose, please".into(), choices(), json!([])).await;
        }
        name => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
    };
    Ok(CallToolResult::success(content).into())
}

/// A content of one text.
pub fn text(text: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::text(text)]
}

fn embedded(uri: &str, mime: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(resources::text(uri, mime, text))
}

async fn log(context: &RequestContext<RoleServer>, level: LoggingLevel, message: &str) {
    let notification = LoggingMessageNotificationParam::new(level, json!(message)).with_logger("conformance-server");
    let _ = context.peer.notify_logging_message(notification).await;
}

async fn sample(context: &RequestContext<RoleServer>, prompt: String) -> Result<CallToolResponse, ErrorData> {
    let request = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    let result = match context.peer.create_message(request).await {
        Ok(answer) => {
            let said = answer.message.content.first().and_then(|content| content.as_text());
            let said = said.map_or("", |said| said.text.as_str());
            CallToolResult::success(text(&format!("LLM response: {said}")))
        }
        Err(error) => CallToolResult::error(text(&format!("Sampling error: {error}"))),
    };
    Ok(result.into())
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: String,
    properties: Value,
    required: Value,
) -> Result<CallToolResponse, ErrorData> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(input::form(&message, properties, required)));
    let result = match context.peer.send_request(request).await {
        Ok(ClientResult::ElicitResult(answer)) => {
            let action = serde_json::to_value(&answer.action).unwrap_or_default();
            let content = answer.content.unwrap_or_default();
            let action = action.as_str().unwrap_or_default();
            CallToolResult::success(text(&format!("User response: action={action}, content={content}")))
        }
        Ok(_) => CallToolResult::error(text("Elicitation error: the answer is another result")),
        Err(error) => CallToolResult::error(text(&format!("Elicitation error: {error}"))),
    };
    Ok(result.into())
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "Name", "default": "John Doe"},
        "age": {"type": "integer", "description": "Age", "default": 30},
        "score": {"type": "number", "description": "Score", "default": 95.5},
        "status": {"type": "string", "description": "Status", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verified", "default": true}
    })
}

fn choices() -> Value {
    let titled = |titles: [&str; 3]| -> Vec<Value> {
        titles.iter().zip(1..).map(|(title, n)| json!({"const": format!("value{n}"), "title": title})).collect()
    };
    json!({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])}}
    })
}
