//! The client's side of MCP, which all transports share: the handler of notifications, and the conversion of tools,
//! results and errors.

use super::incoming;
use super::notifications::{NotificationRouter, UpstreamNotification};
use codecall_base::event::{CallUpdate, LogMessage};
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, Example, ToolDefinition, ToolError, ToolResult};
use codecall_config::Lifecycle;
use rmcp::model::{self, *};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, NotificationContext, ServiceError};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Handles the notifications of a server. It declares no client capabilities.
pub struct NotificationHandler {
    /// Gets a message when the server's tools have changed.
    pub tools_changed: mpsc::Sender<()>,
    /// Gets all other notifications.
    pub notifications: Arc<NotificationRouter>,
}

impl ClientHandler for NotificationHandler {
    fn get_info(&self) -> ClientConfig {
        client_config()
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        // If the channel is full, the change is already signalled.
        let _ = self.tools_changed.try_send(());
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.publish(UpstreamNotification::ResourceListChanged);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.publish(UpstreamNotification::PromptListChanged);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.notifications.publish(UpstreamNotification::ResourceUpdated(params.uri));
    }

    // `Ordered` has routed these already.
    async fn on_progress(&self, _params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {}

    #[expect(deprecated, reason = "current servers still send log messages")]
    async fn on_logging_message(
        &self,
        _params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
    }
}

/// Returns what a client says of itself.
#[must_use]
pub fn client_config() -> ClientConfig {
    let own = Implementation::new("codecall", env!("CARGO_PKG_VERSION"));
    let mut config = ClientConfig::new(ClientCapabilities::default(), own);
    // The default is a version without a handshake, which `initialize` must not request.
    config.protocol_version = ProtocolVersion::V_2025_11_25;
    config
}

/// Routes progress to its call.
pub fn progress(router: &NotificationRouter, params: &ProgressNotificationParam) {
    let ProgressNotificationParam { progress_token, progress, total, message, .. } = params;
    let (progress, total, message) = (*progress, *total, message.clone());
    router.update_call(progress_token, CallUpdate::Progress { progress, total, message });
}

/// Routes a log message to the calls in flight.
#[expect(deprecated, reason = "current servers still send log messages")]
pub fn log(router: &NotificationRouter, params: &LoggingMessageNotificationParam) {
    let LoggingMessageNotificationParam { level, logger, data, .. } = params;
    let level = serde_json::to_value(level).ok().and_then(|level| level.as_str().map(str::to_owned));
    router.log(LogMessage { level: level.unwrap_or_default(), logger: logger.clone(), data: data.clone() });
}

/// Converts a negotiated lifecycle to rmcp's type.
#[must_use]
pub fn lifecycle_mode(lifecycle: Lifecycle) -> ClientLifecycleMode {
    match lifecycle {
        Lifecycle::Auto | Lifecycle::Initialize => ClientLifecycleMode::Initialize,
        Lifecycle::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    }
}

/// Converts a tool of MCP to a tool definition. `_meta.codecall` may add tags and examples.
#[must_use]
pub fn definition(app: &str, tool: Tool) -> ToolDefinition {
    let annotations = tool.annotations.and_then(|annotations| serde_json::to_value(annotations).ok());
    let annotations = match annotations {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let extensions = tool.meta.as_ref().and_then(|meta| meta.0.get("codecall")).cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |key: &str| extensions.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    ToolDefinition {
        app: app.to_owned(),
        name: tool.name.into_owned(),
        title: tool.title.or_else(|| annotations.get("title").and_then(Value::as_str).map(str::to_owned)),
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
        output_is_advisory: false,
        annotations,
        tags: list("tags").iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        examples: list("examples")
            .iter()
            .map(|example| Example { description: text(example, "description"), code: text(example, "code") })
            .filter(|example| !example.code.is_empty())
            .collect(),
        source: "mcp",
        // A server does not decide where its tools are visible.
        visible_in_list_tools: None,
        enabled_in_code_call: None,
    }
}

/// Converts the response to a tool call.
///
/// # Errors
/// The response is not a result.
pub fn tool_result(tool: &str, response: CallToolResponse) -> Result<ToolResult, ToolError> {
    match response {
        CallToolResponse::Complete(result) => serde_json::to_value(result)
            .map(ToolResult::Mcp)
            .map_err(|_| execution_error(format!("Tool '{tool}' returned a response that is not JSON"))),
        CallToolResponse::InputRequired(_) => {
            Err(execution_error(format!("Tool '{tool}' asks for input from a person, which is not supported here")))
        }
        CallToolResponse::Task(_) => {
            Err(execution_error(format!("Tool '{tool}' returned a task, which was not requested")))
        }
        _ => Err(execution_error(format!("Tool '{tool}' returned a response of an unknown type"))),
    }
}

fn execution_error(message: String) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionError, message)
}

fn unavailable(message: String) -> ToolError {
    ToolError::new(ErrorCode::ServerUnavailable, message)
}

/// Says why a handshake has failed.
#[must_use]
pub fn handshake_error(error: ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it wants authorization; give it in 'headers'".into();
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it exited before it responded".into(),
        ClientInitializeError::TransportError { error, .. } => match without_url(&error.to_string()) {
            // Writing to a child that has exited fails like this.
            text if text.starts_with("Broken pipe") => "it exited before it responded".into(),
            text => text,
        },
        ClientInitializeError::JsonRpcError(error) => format!("it refused the handshake: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(*fallback),
        other => truncate(&other.to_string(), 300).to_owned(),
    }
}

/// Returns the error message of a transport without its type name and without the URL, which may contain a secret.
fn without_url(text: &str) -> String {
    let text = text.split_once("] error: ").map_or(text, |(_, message)| message);
    let text = text.strip_prefix("Client error: ").unwrap_or(text).lines().next().unwrap_or_default();
    match text.split_once(" for url (") {
        Some((before, after)) => format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest)),
        None => truncate(text, 300).to_owned(),
    }
}

/// Converts an error of the protocol or the transport to the error of a tool call.
#[must_use]
pub fn call_error(app: &str, tool: &str, error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) => {
            // The transport reports a malformed response in this way, and a server a malformed request.
            let code = match error.code {
                model::ErrorCode::PARSE_ERROR => ErrorCode::MessageInvalid,
                incoming::RESPONSE_TOO_LARGE => ErrorCode::MessageTooLarge,
                _ => ErrorCode::ToolExecutionError,
            };
            let mut converted = ToolError::new(code, error.message.into_owned());
            converted.details = error.data.map(|data| data.to_string());
            converted
        }
        ServiceError::TransportClosed => {
            unavailable(format!("The MCP server '{app}' ended while the tool '{tool}' was running"))
        }
        ServiceError::TransportSend(error) => {
            unavailable(format!("The MCP server '{app}' cannot be reached: {}", without_url(&error.to_string())))
        }
        ServiceError::Cancelled { .. } => {
            ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{tool}' was cancelled"))
        }
        ServiceError::UnexpectedResponse => execution_error(format!(
            "The MCP server '{app}' returned a response of the wrong type to a call of '{tool}'"
        )),
        other => execution_error(format!("The MCP server '{app}': {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_of_mcp_becomes_a_definition() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "list", "inputSchema": {"type": "object", "properties": {"z": {}, "a": {}}},
            "annotations": {"readOnlyHint": true, "title": "List"},
            "_meta": {"codecall": {"tags": ["x"], "examples": [{"description": "d", "code": "c"}, {"description": "none"}]}},
        }))
        .expect("a tool");
        let tool = definition("users", tool);
        assert_eq!((tool.full_name().as_str(), tool.title.as_deref()), ("users:list", Some("List")));
        assert_eq!(tool.tags, ["x"]);
        assert_eq!(tool.examples.len(), 1);
        assert_eq!(tool.annotations["readOnlyHint"], true);
        assert_eq!(
            tool.input_schema["properties"].to_string(),
            r#"{"z":{},"a":{}}"#,
            "the order of the properties is kept"
        );
    }
}
