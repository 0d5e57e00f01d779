//! What all upstreams that speak MCP have in common: the client's side of the protocol, and the
//! translation of its tools, results and errors.

use super::incoming;
use super::news::{Exchange, News};
use codecall_base::event::{Report, Said};
use codecall_base::tool::{ErrorCode, Example, ToolDefinition, ToolError, ToolResult};
use codecall_config::Lifecycle;
use rmcp::model::{self, *};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, NotificationContext, ServiceError};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The client's side: it declares no capabilities and hears what the server says.
pub struct Client {
    /// Told at every change of the server's tools.
    pub changed: mpsc::Sender<()>,
    /// Told everything else.
    pub exchange: Arc<Exchange>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("codecall", env!("CARGO_PKG_VERSION"));
        let mut config = ClientConfig::new(ClientCapabilities::default(), own);
        // The default is a version without handshake, which `initialize` must not ask for.
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        // A full channel already says that the list has changed.
        let _ = self.changed.try_send(());
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.exchange.tell(News::Resources);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.exchange.tell(News::Prompts);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.exchange.tell(News::Updated(params.uri));
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = params;
        self.exchange.progress(&progress_token, Report::Progress { progress, total, message });
    }

    #[expect(deprecated, reason = "servers of today send log messages")]
    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let LoggingMessageNotificationParam { level, logger, data, .. } = params;
        let level = serde_json::to_value(level).ok().and_then(|level| level.as_str().map(str::to_owned));
        self.exchange.said(Said { level: level.unwrap_or_default(), logger, data });
    }
}

/// How a connection begins, in rmcp's words.
#[must_use]
pub fn lifecycle(lifecycle: Lifecycle) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match lifecycle {
        Lifecycle::Auto => {
            ClientLifecycleMode::Auto { preferred_versions, legacy_version: Some(ProtocolVersion::V_2025_11_25) }
        }
        Lifecycle::Initialize => ClientLifecycleMode::Initialize,
        Lifecycle::Discover => ClientLifecycleMode::Discover { preferred_versions },
    }
}

/// A tool as the catalogue knows it. `_meta.codecall` may add tags and examples.
#[must_use]
pub fn definition(app: &str, tool: Tool) -> ToolDefinition {
    let annotations = tool.annotations.and_then(|annotations| serde_json::to_value(annotations).ok());
    let annotations = match annotations {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let own = tool.meta.as_ref().and_then(|meta| meta.0.get("codecall")).cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |key: &str| own.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    ToolDefinition {
        app: app.to_owned(),
        name: tool.name.into_owned(),
        title: tool.title.or_else(|| annotations.get("title").and_then(Value::as_str).map(str::to_owned)),
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
        annotations,
        tags: list("tags").iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        examples: list("examples")
            .iter()
            .map(|example| Example { description: text(example, "description"), code: text(example, "code") })
            .filter(|example| !example.code.is_empty())
            .collect(),
        source: "mcp",
        // A server does not decide where its tools are.
        visible_in_list_tools: None,
        enabled_in_code_call: None,
    }
}

/// The answer of a tool.
///
/// # Errors
/// It is not a result.
pub fn result(tool: &str, response: CallToolResponse) -> Result<ToolResult, ToolError> {
    match response {
        CallToolResponse::Complete(result) => serde_json::to_value(result)
            .map(ToolResult::Mcp)
            .map_err(|_| failed(format!("Tool '{tool}' gave an answer that is not JSON"))),
        CallToolResponse::InputRequired(_) => {
            Err(failed(format!("Tool '{tool}' asks for input from a person, which is not possible here")))
        }
        CallToolResponse::Task(_) => Err(failed(format!("Tool '{tool}' answers with a task, which was not asked for"))),
        _ => Err(failed(format!("Tool '{tool}' gave an answer of an unknown kind"))),
    }
}

fn failed(message: String) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionError, message)
}

/// Why a connection did not begin.
#[must_use]
pub fn not_begun(error: ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it wants authorization; give it in 'headers'".into();
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended before it had answered".into(),
        ClientInitializeError::TransportError { error, .. } => match without_address(&error.to_string()) {
            // A child that has ended does not read.
            text if text.starts_with("Broken pipe") => "it ended before it had answered".into(),
            text => text,
        },
        ClientInitializeError::JsonRpcError(error) => format!("it refused to begin: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_begun(*fallback),
        other => codecall_base::text::cut(&other.to_string(), 300).to_owned(),
    }
}

/// What a transport says, without its own type and without the address, which may hold a secret.
fn without_address(text: &str) -> String {
    let text = text.split_once("] error: ").map_or(text, |(_, said)| said);
    let text = text.strip_prefix("Client error: ").unwrap_or(text).lines().next().unwrap_or_default();
    match text.split_once(" for url (") {
        Some((before, after)) => format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest)),
        None => codecall_base::text::cut(text, 300).to_owned(),
    }
}

/// What went wrong below the tool.
#[must_use]
pub fn broken(app: &str, tool: &str, error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) => {
            // The reader of a connection says so, or the server of what it was sent.
            let code = match error.code {
                model::ErrorCode::PARSE_ERROR => ErrorCode::MessageInvalid,
                incoming::TOO_LARGE => ErrorCode::MessageTooLarge,
                _ => ErrorCode::ToolExecutionError,
            };
            let mut told = ToolError::new(code, error.message.into_owned());
            told.details = error.data.map(|data| data.to_string());
            told
        }
        ServiceError::TransportClosed => {
            failed(format!("The MCP server '{app}' ended while the tool '{tool}' was running"))
        }
        ServiceError::TransportSend(error) => {
            failed(format!("The MCP server '{app}' cannot be reached: {}", without_address(&error.to_string())))
        }
        ServiceError::Cancelled { .. } => {
            ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{tool}' was cancelled"))
        }
        ServiceError::UnexpectedResponse => {
            failed(format!("The MCP server '{app}' gave an answer of the wrong kind to a call of '{tool}'"))
        }
        other => failed(format!("The MCP server '{app}': {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn definitions() {
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
        assert_eq!(tool.input_schema["properties"].to_string(), r#"{"z":{},"a":{}}"#, "order is kept");
    }
}
