//! The client's side of MCP, which all transports share: the handler of notifications, and the conversion of tools,
//! results and errors.

use super::incoming;
use super::mend;
use super::metadata;
use super::notifications::{NotificationRouter, UpstreamNotification};
use super::questions::{self, Attribution};
use super::session::Failure;
use codecall_base::client::Method;
use codecall_base::event::{CallUpdate, LogMessage};
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, Example, ToolDefinition, ToolError, ToolResult};
use codecall_config::Lifecycle;
use rmcp::model::{self, *};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, NotificationContext, RequestContext, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A level of log messages.
#[expect(deprecated, reason = "current servers still send log messages")]
pub type LogLevel = LoggingLevel;

/// A server wants a person to open pages before it does anything. The data of the error has their addresses.
pub const URL_REQUIRED: model::ErrorCode = ErrorCode(-32_042);

/// Handles the notifications of a server, and its requests to the client of a call.
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

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.ask(Method::Elicitation, params, &context).await
    }

    #[expect(deprecated, reason = "current servers still ask for it")]
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.ask(Method::Sampling, params, &context).await
    }

    #[expect(deprecated, reason = "current servers still ask for it")]
    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.ask(Method::Roots, json!({}), &context).await
    }

    // A request with parameters that rmcp does not know, such as a schema of a later version, comes here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        match questions::method(&request.method) {
            Some(method) => self.ask(method, request.params, &context).await.map(CustomResult::new),
            None => Err(ErrorData::new(model::ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
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

impl NotificationHandler {
    /// Asks the client of the call that a request belongs to, until the server withdraws the request.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        params: impl Serialize,
        context: &RequestContext<RoleClient>,
    ) -> Result<T, ErrorData> {
        let invalid = |what: &str| ErrorData::internal_error(format!("{what} is not one of MCP"), None);
        let params = serde_json::to_value(params).map_err(|_| invalid("the request"))?;
        let attribution = Attribution::of(&context.extensions, &context.meta);
        let asking = questions::ask(&self.notifications, attribution, method, params);
        let answer = context.ct.run_until_cancelled(asking).await;
        let withdrawn = || ErrorData::internal_error("the request was cancelled", None);
        serde_json::from_value(answer.ok_or_else(withdrawn)??).map_err(|_| invalid("the client's answer"))
    }
}

/// Returns what a client says of itself.
#[must_use]
pub fn client_config() -> ClientConfig {
    let own = Implementation::new("codecall", env!("CARGO_PKG_VERSION"));
    let mut config = ClientConfig::new(questions::declared(), own);
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
pub fn definition(app: &str, mut tool: Tool) -> ToolDefinition {
    let mut oddities = mend::take_oddities(&mut tool.meta);
    let annotations = tool.annotations.and_then(|annotations| serde_json::to_value(annotations).ok());
    let annotations = match annotations {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let mut meta = tool.meta.map(|meta| meta.0).unwrap_or_default();
    let extensions = meta.shift_remove("codecall").unwrap_or_default();
    let execution = meta.shift_remove(incoming::TASK_SUPPORT).map(|support| json!({"taskSupport": support}));
    let (meta, left_out) = metadata::meta(meta);
    let (icons, odd_icons) = metadata::icons(tool.icons.unwrap_or_default());
    let odd = left_out.into_iter().chain(odd_icons);
    oddities.named.extend(odd.map(|oddity| format!("tool '{}': {oddity}", mend::shown(&tool.name))));
    let list = |key: &str| extensions.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let full_name = match app {
        "" => tool.name.to_string(),
        app => format!("{app}:{}", tool.name),
    };
    ToolDefinition {
        app: app.to_owned(),
        name: tool.name.into_owned(),
        title: tool.title.or_else(|| annotations.get("title").and_then(Value::as_str).map(str::to_owned)),
        description: tool.description.unwrap_or_default().into_owned(),
        input_schema: Value::Object((*tool.input_schema).clone()),
        output_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
        output_is_advisory: false,
        annotations,
        icons: icons.iter().filter_map(|icon| serde_json::to_value(icon).ok()).collect(),
        meta,
        execution,
        tags: list("tags").iter().filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        examples: list("examples").iter().filter_map(|given| example(&full_name, given)).collect(),
        source: "mcp",
        oddities: oddities.named,
        received: oddities.received,
        // A server does not decide where its tools are visible, nor who approves their calls.
        visible_in_list_tools: None,
        enabled_in_code_call: None,
        approval: None,
    }
}

/// Converts an example of a server: a script, or the input of one call with its output. `None`: it is neither.
fn example(tool: &str, given: &Value) -> Option<Example> {
    let text = |key: &str| given.get(key).and_then(Value::as_str).unwrap_or_default();
    if !text("code").is_empty() {
        return Some(Example { description: text("description").to_owned(), code: text("code").to_owned() });
    }
    let input = given.get("input")?.as_object()?;
    Some(Example::of_call(tool, text("description"), input, given.get("output")))
}

/// Converts the result of a tool call.
///
/// # Errors
/// It is not JSON.
pub fn tool_result(tool: &str, mut result: CallToolResult) -> Result<ToolResult, ToolError> {
    // It is not copied.
    let data = result.structured_content.take();
    let with_data = |mut value: Value| {
        if let (Some(data), Some(members)) = (data, value.as_object_mut()) {
            members.insert("structuredContent".into(), data);
        }
        value
    };
    serde_json::to_value(result)
        .map(|value| ToolResult::Mcp(with_data(value)))
        .map_err(|_| execution_error(format!("Tool '{tool}' returned a response that is not JSON")))
}

fn execution_error(message: String) -> ToolError {
    ToolError::new(ErrorCode::ToolExecutionError, message)
}

fn unavailable(message: String) -> ToolError {
    ToolError::new(ErrorCode::ServerUnavailable, message)
}

/// Why a handshake has failed whose connection has ended: of a process, that is its exit.
pub const EXITED: &str = "it exited before it responded";

/// Says why a handshake has failed.
#[must_use]
pub fn handshake_error(error: ClientInitializeError) -> String {
    if error.is_authorization_required() {
        return "it wants authorization; give it in 'headers'".into();
    }
    match error {
        ClientInitializeError::ConnectionClosed(_) => EXITED.into(),
        ClientInitializeError::TransportError { error, .. } => match transport_error(&error) {
            // Writing to a child that has exited fails like this.
            text if text.starts_with("Broken pipe") => EXITED.into(),
            text => text,
        },
        ClientInitializeError::JsonRpcError(error) => format!("it refused the handshake: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(*fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of MCP that is spoken here".into()
        }
        ClientInitializeError::Cancelled => "the connection was cancelled".into(),
        // The words of the library would quote the whole message.
        _ => "its answer to the handshake is not one of MCP".into(),
    }
}

/// Whether a server over HTTP has responded, though not as MCP says: it is not gone.
#[must_use]
pub fn has_responded(error: &DynamicTransportError) -> bool {
    matches!(
        error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
        Some(
            StreamableHttpError::HttpStatus(_)
                | StreamableHttpError::UnexpectedServerResponse(_)
                | StreamableHttpError::UnexpectedContentType(_)
        )
    )
}

/// Whether a message has not been sent as a whole: there was no connection. A process reads a message when its line is whole.
pub fn is_unsent(error: &DynamicTransportError) -> bool {
    if let Some(error) = error.error.downcast_ref::<std::io::Error>() {
        return matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::NotConnected);
    }
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => error.is_connect(),
        Some(_) | None => false,
    }
}

/// Says why a message could not be sent.
fn transport_error(error: &DynamicTransportError) -> String {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(error) = cause {
        // The error of the transport does not name its cause.
        if let Some(StreamableHttpError::Client(client)) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            cause = Some(client);
            continue;
        }
        match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(ErrorKind::ConnectionRefused) => return "nothing accepts connections at its address".into(),
            Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::UnexpectedEof) => {
                return "the connection was closed".into();
            }
            Some(ErrorKind::TimedOut) => return "it did not accept the connection in time".into(),
            Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
                return "there is no way to its address".into();
            }
            Some(_) | None => cause = error.source(),
        }
    }
    match without_url(&error.to_string()).as_str() {
        "error sending request" => "there is no connection to its address".into(),
        text => text.to_owned(),
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

/// Converts the failure of a request to the error of a tool call.
#[must_use]
pub fn failure(app: &str, tool: &str, failure: Failure) -> ToolError {
    match failure {
        Failure::Service(error) => call_error(app, tool, error),
        Failure::Unanswered(unanswered) => ToolError::new(ErrorCode::InputRequired, unanswered.to_string()),
        Failure::TaskFailed(error) => call_error(app, tool, ServiceError::McpError(error)),
        Failure::Busy(busy) => busy.into(),
        Failure::Rounds => {
            execution_error(format!("The MCP server '{app}' asks for input again and again for '{tool}'"))
        }
        Failure::TaskCancelled => execution_error(format!("The MCP server '{app}' has cancelled the task of '{tool}'")),
    }
}

/// Converts an error of the protocol or the transport to the error of a tool call.
#[must_use]
pub fn call_error(app: &str, tool: &str, error: ServiceError) -> ToolError {
    match error {
        ServiceError::McpError(error) => {
            // The transport reports a malformed response in this way, and a server a malformed request.
            let code = match error.code {
                model::ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | URL_REQUIRED => ErrorCode::InputRequired,
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
            unavailable(format!("The MCP server '{app}' cannot be reached: {}", transport_error(&error)))
        }
        ServiceError::Cancelled { .. } => {
            ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{tool}' was cancelled"))
        }
        ServiceError::UnexpectedResponse => execution_error(format!(
            "The MCP server '{app}' returned a response of the wrong type to a call of '{tool}'"
        )),
        ServiceError::Timeout { timeout } => {
            let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            ToolError::timeout(&format!("{app}:{tool}"), ms)
        }
        _ => execution_error(format!("The MCP server '{app}' did not answer a call of '{tool}' as MCP says")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_of_mcp_becomes_a_definition() {
        let tool: Tool = serde_json::from_value(json!({
            "name": "list", "inputSchema": {"type": "object", "properties": {"z": {}, "a": {}}},
            "annotations": {"readOnlyHint": true, "title": "List"},
            "_meta": {"codecall": {"tags": ["x"], "examples": [{"description": "d", "code": "c"}, {"description": "none"},
                {"input": {"id": "it's"}, "output": {"name": "a\u{2028}b"}}, {"description": "all", "input": {}},
                {"input": [1]}, 5, {"code": 5}]}},
        }))
        .expect("a tool");
        let tool = definition("users", tool);
        assert_eq!((tool.full_name().as_str(), tool.title.as_deref()), ("users:list", Some("List")));
        assert_eq!(tool.tags, ["x"]);
        let examples: Vec<(&str, &str)> = tool.examples.iter().map(|one| (&*one.description, &*one.code)).collect();
        assert_eq!(
            examples,
            [
                ("d", "c"),
                (
                    "Call users:list",
                    r#"return await callTool('users:list', {"id":"it's"}); // gives {"name":"a\u2028b"}"#
                ),
                ("all", "return await callTool('users:list', {});"),
            ]
        );
        assert_eq!(tool.annotations["readOnlyHint"], true);
        assert_eq!(
            tool.input_schema["properties"].to_string(),
            r#"{"z":{},"a":{}}"#,
            "the order of the properties is kept"
        );
    }
}
