//! The MCP front: an rmcp handler written by hand, for both lifecycles of the protocol (`initialize`
//! with sessions, and 2026-07-28 without).
//!
//! It translates; what the tools do is in `meta`.

mod input;
mod list;
mod offers;
mod watch;

use crate::error::Error;
use crate::hub::Hub;
use crate::meta::{self, Answer};
use crate::runs::Watcher;
use crate::upstream::ToolError;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch as state;
use tokio_util::sync::CancellationToken;

/// How long a client has to take what is on its way when the server ends.
const FAREWELL: Duration = Duration::from_secs(2);
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

async fn serve<R, W>(hub: Arc<Hub>, (input, output): (R, W)) -> Result<(), Error>
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

/// The handler of one connection.
#[derive(Clone)]
pub struct Front {
    hub: Arc<Hub>,
    tools: Arc<[Tool]>,
    /// Clients with a session, to be told of changes.
    peers: Arc<Mutex<Vec<Peer<RoleServer>>>>,
    /// The level that a client with a session has asked for.
    level: Arc<Mutex<Option<watch::Level>>>,
    /// Fires when the client has said all that it will say.
    ended: CancellationToken,
}

impl Front {
    /// A handler in front of `hub`. Needs a tokio runtime.
    #[must_use]
    pub fn new(hub: Arc<Hub>) -> Self {
        let tools = list::meta_tools(&hub);
        let front = Self { tools, peers: Arc::default(), level: Arc::default(), ended: CancellationToken::new(), hub };
        tokio::spawn(tell_changes(front.hub.catalogue().changed(), Arc::downgrade(&front.peers)));
        front
    }

    /// The handler of one more connection, which is told of changes with the others.
    #[must_use]
    pub fn session(&self) -> Self {
        Self { level: Arc::default(), ended: CancellationToken::new(), ..self.clone() }
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
            let answer = self.hub.meta(name, Value::Object(arguments), watcher, cancel).await?;
            return Some(self.result(answer));
        }
        let result = self.hub.direct(name, arguments, watcher, cancel).await?;
        Some(result.map_or_else(failed, |whole| self.whole(whole)))
    }

    /// A result of a tool as it came, but for what the configuration leaves out.
    fn whole(&self, value: Value) -> CallToolResult {
        match serde_json::from_value::<CallToolResult>(value) {
            Ok(result) if self.hub.config().structured => result,
            Ok(mut result) => {
                result.structured_content = None;
                result
            }
            Err(_) => failed(ToolError::new("TOOL_EXECUTION_ERROR", "The tool's answer is not one that MCP knows")),
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
async fn tell_changes(mut changed: state::Receiver<u64>, peers: std::sync::Weak<Mutex<Vec<Peer<RoleServer>>>>) {
    while changed.changed().await.is_ok() {
        tokio::time::sleep(DEBOUNCE).await;
        changed.mark_unchanged();
        let Some(peers) = peers.upgrade() else { return };
        let present = {
            let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
            // Telling a peer that is gone succeeds, so they are looked at.
            peers.retain(|peer| !peer.is_transport_closed());
            peers.clone()
        };
        for peer in present {
            let _ = tokio::time::timeout(FAREWELL, peer.notify_tool_list_changed()).await;
        }
    }
}

impl ServerHandler for Front {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "clients of today ask for log messages")]
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        if offers::are_exposed(&self.hub) {
            capabilities.resources = Some(ResourcesCapability::default());
            capabilities.prompts = Some(PromptsCapability::default());
        }
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("codecall", env!("CARGO_PKG_VERSION")))
            .with_instructions(if self.hub.config().tools.may_list() { INSTRUCTIONS_WITH_TOOLS } else { INSTRUCTIONS })
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|peer| !peer.is_transport_closed());
        peers.push(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.hub.catalogue().changed();
        changed.mark_unchanged();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changed.changed() => {
                    if change.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }

    #[expect(deprecated, reason = "clients of today set it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch::Level::of(request.level));
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let Some(own) = meta::named(name) else { return list::tool(&self.hub, name) };
        let listed = self.hub.config().tools.names.spell(own);
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
        let session_level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (watcher, telling) = watch::watcher(&context, session_level);
        let arguments = request.arguments.unwrap_or_default();
        // It takes the last sender along: the messages end with it.
        let answer = self.answer(&request.name, arguments, watcher, context.ct.child_token());
        // After the end of the input, rmcp sends answers and lets notifications wait for ever.
        let (answer, _) = tokio::join!(answer, self.ended.run_until_cancelled(telling));
        match answer {
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
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
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
