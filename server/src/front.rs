//! The MCP front: an rmcp handler written by hand, for both lifecycles of the protocol (`initialize`
//! with sessions, and 2026-07-28 without).
//!
//! It translates; what the tools do is in `meta`.

mod input;
mod list;
mod news;
mod offers;
mod watch;

use crate::hub::Hub;
use crate::meta::{self, Answer};
use codecall_base::error::Error;
use codecall_base::event::Watcher;
use codecall_base::offload;
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES, ToolError, ToolResult};
use codecall_upstream::UpstreamNotification;
use news::Wanted;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch as state;
use tokio_util::sync::{CancellationToken, DropGuard};
use watch::Level;

/// How long a client has to take what is on its way when the server ends.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Changes of upstreams that follow each other are told once.
const DEBOUNCE: Duration = Duration::from_millis(200);

const INSTRUCTIONS: &str = "The tools behind this server are not listed. Find them with codecall_search, get their schemas with \
    codecall_describe, then call as many as needed in one script with codecall_execute, which returns only what the script returns.";

const INSTRUCTIONS_WITH_TOOLS: &str = "Most tools behind this server are not listed. Find them with codecall_search, get their schemas with \
    codecall_describe, then call as many as needed in one script with codecall_execute, which returns only what the script returns. \
    What is listed can also be called as it is.";

/// Serve MCP on standard input and output until the client goes away, then close the hub.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve_stdio(hub: Arc<Hub>) -> Result<(), Error> {
    let served = serve(Arc::clone(&hub), rmcp::transport::io::stdio_pipes()).await;
    hub.close().await;
    served
}

/// The same on any pair of streams; the hub stays open.
pub(crate) async fn serve<R, W>(hub: Arc<Hub>, (input, output): (R, W)) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let protocol = |error: &dyn std::fmt::Display| Error::Protocol(error.to_string());
    let front = Front::new(hub);
    let input = input::Input::new(input, front.ended.clone());
    match front.serve((input, output)).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|error| protocol(&error)),
        // A client that goes away before it has said anything is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(protocol(&error)),
    }
}

/// Clients with a session.
type Peers = Vec<Peer<RoleServer>>;

/// The handler of one connection.
#[derive(Clone)]
pub struct Front {
    hub: Arc<Hub>,
    tools: Arc<[Tool]>,
    /// Clients with a session, to be told of changes.
    peers: Arc<Mutex<Peers>>,
    /// What a client with a session has asked to be told.
    wanted: Arc<Wanted>,
    /// Fires when the client has said all that it will say.
    ended: CancellationToken,
    /// Fires when the last copy of this handler is gone.
    gone: CancellationToken,
    _guard: Arc<DropGuard>,
}

impl Front {
    /// A handler in front of `hub`.
    #[must_use]
    pub fn new(hub: Arc<Hub>) -> Self {
        let tools = list::meta_tools(&hub);
        Self::of(hub, tools)
    }

    /// The handler of one more connection.
    #[must_use]
    pub fn session(&self) -> Self {
        Self::of(Arc::clone(&self.hub), Arc::clone(&self.tools))
    }

    fn of(hub: Arc<Hub>, tools: Arc<[Tool]>) -> Self {
        let gone = CancellationToken::new();
        let _guard = Arc::new(gone.clone().drop_guard());
        let ended = CancellationToken::new();
        Self { hub, tools, peers: Arc::default(), wanted: Arc::default(), ended, gone, _guard }
    }

    /// Tell clients with a session what changes, for as long as their connection is there.
    fn keep_telling(&self) {
        let (changed, peers) = (self.hub.catalogue().changed(), Arc::downgrade(&self.peers));
        tokio::spawn(self.gone.clone().run_until_cancelled_owned(tell_changes(changed, peers)));
        if offers::are_exposed(&self.hub) {
            let (peers, wanted) = (Arc::downgrade(&self.peers), Arc::downgrade(&self.wanted));
            tokio::spawn(self.gone.clone().run_until_cancelled_owned(news::pass_on(self.hub.news(), peers, wanted)));
        }
    }

    /// Call a meta-tool, or a tool that is visible beside them; absent: there is none of that name.
    async fn answer(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        watcher: Watcher,
        cancel: CancellationToken,
    ) -> Option<CallToolResult> {
        if meta::named(name).is_some() {
            let answer = meta::call(&self.hub, name, Value::Object(arguments), watcher, cancel).await?;
            let weight = offload::weight(&answer.value);
            return Some(offload::run_without_permit(weight, || self.result(answer)));
        }
        let result = self.hub.direct(name, arguments, watcher, cancel).await?;
        let given =
            |result: ToolResult| offload::run_without_permit(offload::weight(result.value()), || self.given(result));
        Some(result.map_or_else(failed, given))
    }

    /// A result of a tool as it came, but for what the configuration leaves out.
    fn given(&self, result: ToolResult) -> CallToolResult {
        match serde_json::from_value::<CallToolResult>(result.into_mcp()) {
            Ok(result) if self.hub.config().structured => result,
            Ok(mut result) => {
                result.structured_content = None;
                result
            }
            Err(_) => {
                failed(ToolError::new(ErrorCode::ToolExecutionError, "The tool's answer is not one that MCP knows"))
            }
        }
    }

    /// Whether resources and prompts are there, when the upstreams have been reached.
    async fn exposed<M: ConstString>(&self) -> Result<(), ErrorData> {
        if !offers::are_exposed(&self.hub) {
            return Err(ErrorData::method_not_found::<M>());
        }
        self.hub.begun().await;
        Ok(())
    }

    fn result(&self, Answer { value, is_error, meta }: Answer) -> CallToolResult {
        let result = match (value, self.hub.config().structured) {
            (Value::String(text), _) => CallToolResult::error(vec![ContentBlock::text(text)]),
            (value, true) if is_error => CallToolResult::structured_error(value),
            (value, true) => CallToolResult::structured(value),
            (value, false) if is_error => CallToolResult::error(vec![ContentBlock::text(value.to_string())]),
            (value, false) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
        };
        match meta {
            Some(Value::Object(meta)) => result.with_meta(Some(MetaObject(meta))),
            Some(_) | None => result,
        }
    }
}

/// A call that was refused or has failed, in words for a model; code and details for machines.
fn failed(error: ToolError) -> CallToolResult {
    let mut told = json!({"code": error.code});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        told["details"] = details;
    }
    let mut meta = Map::new();
    meta.insert("codecall/error".into(), told);
    CallToolResult::error(vec![ContentBlock::text(error.message)]).with_meta(Some(MetaObject(meta)))
}

/// Tell clients with a session that tools have changed.
async fn tell_changes(mut changed: state::Receiver<u64>, peers: std::sync::Weak<Mutex<Peers>>) {
    while changed.changed().await.is_ok() {
        tokio::time::sleep(DEBOUNCE).await;
        changed.mark_unchanged();
        let Some(peers) = peers.upgrade() else { return };
        for peer in present(&peers) {
            let _ = tokio::time::timeout(GRACE_PERIOD, peer.notify_tool_list_changed()).await;
        }
    }
}

/// Those that are still there. Telling a peer that is gone succeeds, so they are looked at.
fn present(peers: &Mutex<Peers>) -> Peers {
    let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
    peers.retain(|peer| !peer.is_transport_closed());
    peers.clone()
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        let (hub, uris) = (Arc::clone(self.hub), std::mem::take(&mut self.uris));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for uri in uris {
                    hub.unsubscribe(&uri).await;
                }
            });
        }
    }
}

/// Resources that a request of a client without a session wants to hear of, until it is dropped.
struct Subscribed<'a> {
    hub: &'a Arc<Hub>,
    uris: Vec<String>,
}

impl<'a> Subscribed<'a> {
    async fn to(hub: &'a Arc<Hub>, uris: &[String]) -> Self {
        let mut subscribed = Self { hub, uris: Vec::new() };
        for uri in uris {
            // What nobody tells is not heard of; the rest is.
            if hub.subscribe(uri).await.is_ok() {
                subscribed.uris.push(uri.clone());
            }
        }
        subscribed
    }
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "clients of today ask for log messages")]
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        if offers::are_exposed(&self.hub) {
            let mut resources = ResourcesCapability::default();
            (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            (capabilities.resources, capabilities.prompts) = (Some(resources), Some(prompts));
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("codecall", env!("CARGO_PKG_VERSION")))
            .with_instructions(if self.hub.config().tools.may_list() { INSTRUCTIONS_WITH_TOOLS } else { INSTRUCTIONS })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.is_empty() {
            self.keep_telling();
        }
        peers.push(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut changed, mut news) = (self.hub.catalogue().changed(), self.hub.news());
        changed.mark_unchanged();
        let (accepted, sink) = (context.accepted(), context.sink());
        let wanted = accepted.resource_subscriptions.clone().unwrap_or_default();
        let _subscribed = Subscribed::to(&self.hub, &wanted).await;
        loop {
            let sent = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changed.changed() => match change {
                    Ok(()) if accepted.tools_list_changed == Some(true) => sink.notify_tool_list_changed().await,
                    Ok(()) => continue,
                    Err(_) => return Ok(()),
                },
                told = news.recv() => match told {
                    Ok(UpstreamNotification::ResourceListChanged) if accepted.resources_list_changed == Some(true) => {
                        sink.notify_resource_list_changed().await
                    }
                    Ok(UpstreamNotification::PromptListChanged) if accepted.prompts_list_changed == Some(true) => {
                        sink.notify_prompt_list_changed().await
                    }
                    Ok(UpstreamNotification::ResourceUpdated(uri)) if wanted.contains(&uri) => sink.notify_resource_updated(uri).await,
                    // Without a session, log messages belong to requests that ask for them.
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
        self.exposed::<SubscribeRequestMethod>().await?;
        if self.wanted.resource(&request.uri, true)
            && let Err(error) = self.hub.subscribe(&request.uri).await
        {
            self.wanted.resource(&request.uri, false);
            return Err(error);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.exposed::<UnsubscribeRequestMethod>().await?;
        if self.wanted.resource(&request.uri, false) {
            self.hub.unsubscribe(&request.uri).await;
        }
        Ok(())
    }

    #[expect(deprecated, reason = "clients of today set it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.wanted.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(Level::of(request.level));
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let Some(own) = meta::named(name) else { return list::tool(&self.hub, name) };
        let listed = meta::spelled(own, self.hub.config().tools.names);
        self.tools.iter().find(|tool| tool.name == listed).cloned()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.hub.config().tools.may_list() {
            context.ct.run_until_cancelled(self.hub.begun()).await;
        }
        list::page(&self.hub, &self.tools, request.and_then(|request| request.cursor))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let single = meta::named(&request.name).is_none_or(|meta| meta.id() == "invoke");
        let answered = CancellationToken::new();
        let (watcher, forwarding) = watch::watcher(&context, self.wanted.level(), single, answered.clone());
        let arguments = request.arguments.unwrap_or_default();
        if request.name.len() > MAX_NAME_BYTES {
            let length = request.name.len();
            let message = format!("Unknown tool: its name has {length} bytes, and names have at most {MAX_NAME_BYTES}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let answer = self.answer(&request.name, arguments, watcher, context.ct.child_token());
        // After the end of the input, rmcp sends answers and lets notifications wait for ever.
        let forwarding = self.ended.run_until_cancelled(forwarding);
        match watch::told(answer, forwarding, &answered).await {
            Some(result) => Ok(result.into()),
            None => {
                let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
                let more = match self.hub.catalogue().snapshot().listed().len() {
                    0 => String::new(),
                    more => format!(", and {more} more in the list of tools"),
                };
                let message =
                    format!("Unknown tool '{}'. The tools of this server are {}{more}", request.name, known.join(", "));
                Err(ErrorData::invalid_params(message, Some(json!({"tools": known}))))
            }
        }
    }

    /// What rmcp cannot read as a request that it knows ends here: by its method or by its parameters.
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

    // Where they are not declared, they are not there: the defaults would answer with empty lists.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.exposed::<ListPromptsRequestMethod>().await?;
        Ok(ListPromptsResult::with_all_items(offers::prompts(&self.hub).await))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.exposed::<GetPromptRequestMethod>().await?;
        offers::prompt(&self.hub, request).await.map(Into::into)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.exposed::<ListResourcesRequestMethod>().await?;
        Ok(ListResourcesResult::with_all_items(offers::resources(&self.hub).await))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.exposed::<ListResourceTemplatesRequestMethod>().await?;
        Ok(ListResourceTemplatesResult::with_all_items(offers::templates(&self.hub).await))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.exposed::<ReadResourceRequestMethod>().await?;
        offers::read(&self.hub, &request.uri).await.map(Into::into)
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
