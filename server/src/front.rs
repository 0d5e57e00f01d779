//! The MCP front: an rmcp handler written by hand, for both lifecycles of the protocol (`initialize`
//! with sessions, and 2026-07-28 without).
//!
//! It translates; what the tools do is in `meta`.

mod input;
mod watch;

use crate::error::Error;
use crate::hub::Hub;
use crate::meta::{self, Answer, MetaTool};
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
        let tools =
            meta::ALL.into_iter().filter(|tool| tool.is_enabled(hub.config())).map(|tool| listed(&hub, tool)).collect();
        let front = Self { tools, peers: Arc::default(), level: Arc::default(), ended: CancellationToken::new(), hub };
        tokio::spawn(tell_changes(front.hub.catalogue().changed(), Arc::downgrade(&front.peers)));
        front
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

/// A meta-tool as clients list it.
fn listed(hub: &Hub, tool: &dyn MetaTool) -> Tool {
    let object = |value: Value| match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let name = hub.config().names.spell(tool);
    let mut row = Tool::new(name, tool.description(), Arc::new(object(tool.input_schema())));
    row.title = Some(tool.title().to_owned());
    row.annotations = serde_json::from_value(tool.annotations()).ok();
    if hub.config().structured {
        row.output_schema = Some(Arc::new(object(tool.output_schema())));
    }
    row
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
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("codecall", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(context.peer);
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
        let listed = self.hub.config().names.spell(meta::named(name)?);
        self.tools.iter().find(|tool| tool.name == listed).cloned()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        match request.and_then(|request| request.cursor) {
            None => Ok(ListToolsResult::with_all_items(self.tools.to_vec())),
            Some(_) => Err(ErrorData::invalid_params("there is one page only; this cursor is unknown", None)),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session_level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let (watcher, telling) = watch::watcher(&context, session_level);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let answer = async {
            let answer = self.hub.meta(&request.name, arguments, watcher.clone(), context.ct.child_token()).await;
            // The last sender: the messages end here.
            drop(watcher);
            answer
        };
        // After the end of the input, rmcp sends answers and lets notifications wait for ever.
        let (answer, _) = tokio::join!(answer, self.ended.run_until_cancelled(telling));
        match answer {
            Some(answer) => Ok(self.result(answer).into()),
            None => {
                let known: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_ref()).collect();
                let message =
                    format!("Unknown tool '{}'. The tools of this server are {}", request.name, known.join(", "));
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

    // Not declared, so not there: the defaults would answer with empty lists.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
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
