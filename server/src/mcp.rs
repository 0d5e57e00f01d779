//! The MCP server: an rmcp handler for both lifecycles of the protocol (`initialize` with sessions, and 2026-07-28
//! without).
//!
//! It translates requests and results; `meta` implements the tools.

mod notifications;
mod resources;
mod run_events;
mod tool_list;
mod transport;

use crate::hub::{Hub, LiveHub};
use crate::meta::{self, Answer, AnswerContent};
use codecall_base::error::Error;
use codecall_base::event::EventSink;
use codecall_base::offload;
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES, ToolError, ToolResult};
use codecall_upstream::UpstreamNotification;
use notifications::Subscriptions;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt};
use run_events::Level;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a client may take to read a notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long requests in progress may take after the shutdown begins.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Changes of the tools within this time cause one notification.
const DEBOUNCE: Duration = Duration::from_millis(200);

const INSTRUCTIONS: &str = "The tools behind this server are not listed. Find them with codecall_search, get their schemas with \
    codecall_describe, then call as many as needed in one script with codecall_execute, which returns only what the script returns.";

const INSTRUCTIONS_WITH_TOOLS: &str = "Most tools behind this server are not listed. Find them with codecall_search, get their schemas with \
    codecall_describe, then call as many as needed in one script with codecall_execute, which returns only what the script returns. \
    What is listed can also be called as it is.";

/// Serves MCP on standard input and output until the client disconnects, then closes the hub.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve_stdio(hub: Arc<Hub>) -> Result<(), Error> {
    serve_stdio_until(hub, &CancellationToken::new()).await
}

/// Does the same until `cancel` is cancelled: then no message is read any more, running scripts end with
/// `POOL_DISPOSED`, and their requests are answered.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve_stdio_until(hub: impl Into<LiveHub>, cancel: &CancellationToken) -> Result<(), Error> {
    let hub: LiveHub = hub.into();
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(serve_until(hub.clone(), rmcp::transport::io::stdio_pipes(), stop.clone()));
    let served = tokio::select! {
        served = &mut serving => served,
        () = cancel.cancelled() => {
            hub.end_runs();
            // The answers are written before the connection is closed.
            let _ = tokio::time::timeout(GRACE_PERIOD, hub.answered()).await;
            stop.cancel();
            tokio::time::timeout(GRACE_PERIOD, serving).await.unwrap_or(Ok(()))
        }
    };
    hub.close().await;
    served
}

/// Serves MCP on any pair of streams. The hub stays open.
pub(crate) async fn serve<R, W>(hub: Arc<Hub>, streams: (R, W)) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    serve_until(hub.into(), streams, CancellationToken::new()).await
}

/// Serves MCP until the end of the input, which is also when `stop` is cancelled.
async fn serve_until<R, W>(hub: LiveHub, streams: (R, W), stop: CancellationToken) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let protocol = |error: &dyn std::fmt::Display| Error::Protocol(error.to_string());
    let handler = Handler::new(hub);
    let transport = transport::LineTransport::new(streams, handler.input_ended.clone(), stop);
    match handler.serve(transport).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|error| protocol(&error)),
        // A client that disconnects before its first message is no error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(protocol(&error)),
    }
}

/// The clients of a connection that have a session.
type Peers = Vec<Peer<RoleServer>>;

/// The handler of one connection.
#[derive(Clone)]
pub struct Handler {
    live: LiveHub,
    meta_tools: Arc<MetaTools>,
    /// Clients with a session, which get notifications.
    peers: Arc<Mutex<Peers>>,
    /// What the session has subscribed to.
    subscriptions: Arc<Subscriptions>,
    /// Cancelled at the end of the client's input.
    input_ended: CancellationToken,
    /// Cancelled when the last clone of this handler is dropped.
    dropped: CancellationToken,
    _guard: Arc<DropGuard>,
}

impl Handler {
    /// Creates a handler that serves `hub`.
    #[must_use]
    pub fn new(hub: impl Into<LiveHub>) -> Self {
        Self::with_meta_tools(hub.into(), Arc::default())
    }

    /// Creates the handler of another connection to the same hub.
    #[must_use]
    pub fn for_session(&self) -> Self {
        Self::with_meta_tools(self.live.clone(), Arc::clone(&self.meta_tools))
    }

    fn with_meta_tools(live: LiveHub, meta_tools: Arc<MetaTools>) -> Self {
        let dropped = CancellationToken::new();
        let _guard = Arc::new(dropped.clone().drop_guard());
        let input_ended = CancellationToken::new();
        let (peers, subscriptions) = (Arc::default(), Arc::default());
        Self { live, meta_tools, peers, subscriptions, input_ended, dropped, _guard }
    }

    /// The hub of this moment.
    fn hub(&self) -> Arc<Hub> {
        self.live.get()
    }

    /// Starts the tasks that notify clients with a session. They end with the connection.
    fn start_notifying(&self) {
        let notifying = notify_tool_changes(self.live.clone(), Arc::downgrade(&self.peers));
        tokio::spawn(self.dropped.clone().run_until_cancelled_owned(notifying));
        if resources::are_exposed(&self.hub()) {
            let (peers, subscriptions) = (Arc::downgrade(&self.peers), Arc::downgrade(&self.subscriptions));
            let forwarding = notifications::forward(self.hub().notifications(), peers, subscriptions);
            tokio::spawn(self.dropped.clone().run_until_cancelled_owned(forwarding));
        }
    }

    /// Calls a meta-tool or a listed tool; `None` if there is no tool of that name.
    async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Option<CallToolResult> {
        if meta::find(name).is_some() {
            let answer = meta::call(&self.hub(), name, Value::Object(arguments), sink, cancel).await?;
            return Some(offload::run_without_permit(answer.content.weight(), || self.meta_tool_result(answer)));
        }
        let result = self.hub().direct(name, arguments, sink, cancel).await?;
        let convert = |result: ToolResult| {
            offload::run_without_permit(offload::weight(result.value()), || self.tool_result(result))
        };
        Some(result.map_or_else(error_result, convert))
    }

    /// Converts the result of an upstream's tool, without structured content if the configuration says so.
    fn tool_result(&self, result: ToolResult) -> CallToolResult {
        match serde_json::from_value::<CallToolResult>(result.into_mcp()) {
            Ok(result) if self.hub().config().structured => result,
            Ok(mut result) => {
                result.structured_content = None;
                result
            }
            Err(_) => error_result(ToolError::new(
                ErrorCode::ToolExecutionError,
                "The tool's answer is not one that MCP knows",
            )),
        }
    }

    /// Waits for the upstreams, for a request about resources or prompts.
    ///
    /// # Errors
    /// They are not exposed, so there is no such method.
    async fn check_exposed<M: ConstString>(&self) -> Result<(), ErrorData> {
        if !resources::are_exposed(&self.hub()) {
            return Err(ErrorData::method_not_found::<M>());
        }
        self.hub().wait_for_connections().await;
        Ok(())
    }

    /// Converts the answer of a meta-tool.
    fn meta_tool_result(&self, Answer { content, is_error, meta }: Answer) -> CallToolResult {
        let text = |value: &Value| vec![ContentBlock::text(value.to_string())];
        let result = match (content, self.hub().config().structured) {
            (AnswerContent::Refusal(text), _) => CallToolResult::error(vec![ContentBlock::text(text)]),
            (AnswerContent::Structured(value), true) if is_error => CallToolResult::structured_error(value),
            (AnswerContent::Structured(value), true) => CallToolResult::structured(value),
            (AnswerContent::Structured(value), false) if is_error => CallToolResult::error(text(&value)),
            (AnswerContent::Structured(value), false) => CallToolResult::success(text(&value)),
        };
        match meta {
            Some(meta) => result.with_meta(Some(MetaObject(meta))),
            None => result,
        }
    }
}

/// Returns the result of a call that was refused or has failed: the message as text, code and details in `_meta`.
fn error_result(error: ToolError) -> CallToolResult {
    let mut data = json!({"code": error.code});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        data["details"] = details;
    }
    let mut meta = Map::new();
    meta.insert("codecall/error".into(), data);
    CallToolResult::error(vec![ContentBlock::text(error.message)]).with_meta(Some(MetaObject(meta)))
}

/// Notifies clients with a session of changes of the tools.
async fn notify_tool_changes(live: LiveHub, peers: std::sync::Weak<Mutex<Peers>>) {
    let mut changes = ToolChanges::new(&live);
    while changes.next().await {
        tokio::time::sleep(DEBOUNCE).await;
        changes.mark_unchanged();
        let Some(peers) = peers.upgrade() else { return };
        for peer in open_peers(&peers) {
            let _ = tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_tool_list_changed()).await;
        }
    }
}

/// Changes of the tools: of the upstreams, and of the configuration.
struct ToolChanges {
    replaced: watch::Receiver<Arc<Hub>>,
    changed: watch::Receiver<u64>,
}

impl ToolChanges {
    fn new(live: &LiveHub) -> Self {
        let mut replaced = live.replaced();
        let changed = replaced.borrow_and_update().catalogue().changed();
        Self { replaced, changed }
    }

    /// Waits for a change. `false`: there are no more.
    async fn next(&mut self) -> bool {
        tokio::select! {
            change = self.changed.changed() => match change {
                Ok(()) => return true,
                // The catalogue is that of a hub that was replaced.
                Err(_) => if self.replaced.changed().await.is_err() { return false },
            },
            replaced = self.replaced.changed() => if replaced.is_err() { return false },
        }
        self.changed = self.replaced.borrow_and_update().catalogue().changed();
        self.changed.mark_unchanged();
        true
    }

    fn mark_unchanged(&mut self) {
        self.changed.mark_unchanged();
    }
}

/// The meta-tools as they are listed, for the hub that they were made for.
type MetaTools = Mutex<Option<(std::sync::Weak<Hub>, Arc<[Tool]>)>>;

impl Handler {
    /// Returns the meta-tools of a hub.
    fn meta_tools(&self, hub: &Arc<Hub>) -> Arc<[Tool]> {
        let mut made = self.meta_tools.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some((of, tools)) if std::ptr::eq(of.as_ptr(), Arc::as_ptr(hub)) => Arc::clone(tools),
            Some(_) | None => {
                let tools = tool_list::meta_tools(hub);
                *made = Some((Arc::downgrade(hub), Arc::clone(&tools)));
                tools
            }
        }
    }
}

/// Returns the peers that are still connected. They are checked first, because notifying a disconnected peer succeeds.
fn open_peers(peers: &Mutex<Peers>) -> Peers {
    let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
    peers.retain(|peer| !peer.is_transport_closed());
    peers.clone()
}

/// The subscriptions of a request without a session. Dropping it cancels them.
struct RequestSubscriptions<'a> {
    hub: &'a LiveHub,
    uris: Vec<String>,
}

impl<'a> RequestSubscriptions<'a> {
    async fn new(hub: &'a LiveHub, uris: &[String]) -> Self {
        let mut subscriptions = Self { hub, uris: Vec::new() };
        for uri in uris {
            // A resource that no upstream lets subscribe to does not prevent the others.
            if hub.get().subscribe(uri).await.is_ok() {
                subscriptions.uris.push(uri.clone());
            }
        }
        subscriptions
    }
}

impl Drop for RequestSubscriptions<'_> {
    fn drop(&mut self) {
        let (hub, uris) = (self.hub.get(), std::mem::take(&mut self.uris));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for uri in uris {
                    hub.unsubscribe(&uri).await;
                }
            });
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "clients of today ask for log messages")]
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        if resources::are_exposed(&self.hub()) {
            let mut resources = ResourcesCapability::default();
            (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            (capabilities.resources, capabilities.prompts) = (Some(resources), Some(prompts));
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("codecall", env!("CARGO_PKG_VERSION")))
            .with_instructions(if self.hub().config().tools.may_list() {
                INSTRUCTIONS_WITH_TOOLS
            } else {
                INSTRUCTIONS
            })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.is_empty() {
            self.start_notifying();
        }
        peers.push(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut changed, mut notifications) = (ToolChanges::new(&self.live), self.hub().notifications());
        changed.mark_unchanged();
        let (accepted, sink) = (context.accepted(), context.sink());
        let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
        let _subscriptions = RequestSubscriptions::new(&self.live, &uris).await;
        loop {
            let sent = tokio::select! {
                () = context.cancelled() => return Ok(()),
                is_changed = changed.next() => match is_changed {
                    true if accepted.tools_list_changed == Some(true) => sink.notify_tool_list_changed().await,
                    true => continue,
                    false => return Ok(()),
                },
                notification = notifications.recv() => match notification {
                    Ok(UpstreamNotification::ResourceListChanged) if accepted.resources_list_changed == Some(true) => {
                        sink.notify_resource_list_changed().await
                    }
                    Ok(UpstreamNotification::PromptListChanged) if accepted.prompts_list_changed == Some(true) => {
                        sink.notify_prompt_list_changed().await
                    }
                    Ok(UpstreamNotification::ResourceUpdated(uri)) if uris.contains(&uri) => sink.notify_resource_updated(uri).await,
                    // Without a session, only a request that asks for log messages gets them.
                    Ok(_) | Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return Ok(()),
                },
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_exposed::<SubscribeRequestMethod>().await?;
        if self.subscriptions.subscribe(&request.uri)
            && let Err(error) = self.hub().subscribe(&request.uri).await
        {
            self.subscriptions.unsubscribe(&request.uri);
            return Err(error);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_exposed::<UnsubscribeRequestMethod>().await?;
        if self.subscriptions.unsubscribe(&request.uri) {
            self.hub().unsubscribe(&request.uri).await;
        }
        Ok(())
    }

    #[expect(deprecated, reason = "clients of today set it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.set_level(Level::from(request.level));
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let hub = self.hub();
        let Some(meta_tool) = meta::find(name) else { return tool_list::tool(&hub, name) };
        let listed = meta::listed_name(meta_tool, hub.config().tools.names);
        self.meta_tools(&hub).iter().find(|tool| tool.name == listed).cloned()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let hub = self.hub();
        if hub.config().tools.may_list() {
            context.ct.run_until_cancelled(hub.wait_for_tools()).await;
        }
        tool_list::page(&hub, &self.meta_tools(&hub), request.and_then(|request| request.cursor))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _request = self.hub().begin_request();
        let single = meta::find(&request.name).is_none_or(|meta| meta.id() == "invoke");
        let answered = CancellationToken::new();
        let (sink, forwarding) = run_events::event_sink(&context, self.subscriptions.level(), single, answered.clone());
        let arguments = request.arguments.unwrap_or_default();
        if request.name.len() > MAX_NAME_BYTES {
            let length = request.name.len();
            let message = format!("Unknown tool: its name has {length} bytes, and names have at most {MAX_NAME_BYTES}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let answer = self.call(&request.name, arguments, sink, context.ct.child_token());
        // After the end of the input, rmcp sends responses, but never completes the sending of notifications.
        let forwarding = self.input_ended.run_until_cancelled(forwarding);
        match run_events::after_events(answer, forwarding, &answered).await {
            Some(result) => Ok(result.into()),
            None => {
                let hub = self.hub();
                let meta_tools = self.meta_tools(&hub);
                let known: Vec<&str> = meta_tools.iter().map(|tool| tool.name.as_ref()).collect();
                let more = match hub.catalogue().snapshot().listed().len() {
                    0 => String::new(),
                    more => format!(", and {more} more in the list of tools"),
                };
                let message =
                    format!("Unknown tool '{}'. The tools of this server are {}{more}", request.name, known.join(", "));
                Err(ErrorData::invalid_params(message, Some(json!({"tools": known}))))
            }
        }
    }

    /// Refuses a request that rmcp does not recognize: its method is unknown, or its parameters do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "tools/call" => Err(ErrorData::invalid_params(
                "The parameters of tools/call must be {name: string, arguments?: object}",
                None,
            )),
            _ => Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }

    // If resources and prompts are not exposed, these methods do not exist. The defaults would return empty lists.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.check_exposed::<ListPromptsRequestMethod>().await?;
        Ok(ListPromptsResult::with_all_items(resources::list_prompts(&self.hub()).await))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.check_exposed::<GetPromptRequestMethod>().await?;
        resources::get_prompt(&self.hub(), request).await.map(Into::into)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.check_exposed::<ListResourcesRequestMethod>().await?;
        Ok(ListResourcesResult::with_all_items(resources::list(&self.hub()).await))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.check_exposed::<ListResourceTemplatesRequestMethod>().await?;
        Ok(ListResourceTemplatesResult::with_all_items(resources::list_templates(&self.hub()).await))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.check_exposed::<ReadResourceRequestMethod>().await?;
        resources::read(&self.hub(), &request.uri).await.map(Into::into)
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

#[cfg(test)]
mod tests;
