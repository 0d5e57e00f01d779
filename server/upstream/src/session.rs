//! The connection to an MCP server, over any transport.
//!
//! A task for each server connects, lists the tools, and reconnects with exponential backoff when the connection ends.
//! Until the first attempt to connect has ended, calls wait for it, and the tools are those of the last connection that
//! the store knows of. While there is no connection later, calls fail at once with the reason.

mod exchange;
mod record;
mod stagger;
mod task;

use super::incoming::TASK_SUPPORT;
use super::mcp::{self, NotificationHandler};
use super::negotiate::{Negotiated, Plan, Request};
use super::notifications::{NotificationRouter, UpstreamNotification};
use super::oauth::Authorizer;
use super::pagination::{limit_tools, list_all};
use super::stdio::Child;
use super::*;
use codecall_base::client::Client;
use codecall_base::telemetry::{self, Span, SpanKind};
use codecall_base::tool::{ErrorCode, ToolResult};
use codecall_config::{Lifecycle, UpstreamConfig, UpstreamKind};
use codecall_store::{CredentialStore, MemoryCredentials, MemoryServers, ServerStore, Stores};
pub(super) use exchange::{Exchange, Failure};
use record::Remembered;
pub use record::identity;
use rmcp::model::*;
use rmcp::service::{ClientCacheConfig, ClientServiceExt, Peer, ServiceError};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleClient};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The member of `_meta` of a call that has its [key](UpstreamCall::idempotency_key).
const IDEMPOTENCY_KEY: &str = "codecall/idempotencyKey";

/// The first and the longest pause before a reconnect.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// After a connection that has lasted this long, the backoff starts again.
const BACKOFF_RESET: Duration = Duration::from_secs(60);
/// Changes of the tool list within this time are handled together.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How long a server may take to list its changed tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// An MCP server as an upstream.
pub struct McpServer {
    pub(super) shared: Arc<Shared>,
    connection_task: Mutex<Option<JoinHandle<()>>>,
}

/// State that the connection task and the callers share.
pub struct Shared {
    /// The id of the app.
    pub app: String,
    config: UpstreamConfig,
    /// Redacted in the child's stderr.
    pub(super) secrets: Arc<SecretRegistry>,
    tools: RwLock<Vec<Arc<ToolDefinition>>>,
    /// The tools that can only be called as tasks of version 2025-11-25.
    task_tools: RwLock<BTreeSet<String>>,
    /// The server's name for itself.
    title: RwLock<Option<String>>,
    started: Instant,
    state: watch::Sender<ConnectionState>,
    /// Whether `tools` are those of a connection, this one or an earlier one.
    are_tools_known: AtomicBool,
    /// Becomes true after `tools_version` has: whoever waits for it finds the tools in the catalogue.
    tools_announced: watch::Sender<bool>,
    /// Whether there was something in the store; `None` until it is read.
    recalled: watch::Sender<Option<bool>>,
    remembered: Remembered,
    /// Has the tokens of a server over HTTP.
    authorizer: Option<Result<Arc<Authorizer>, String>>,
    /// Cancelled when somebody waits for the connection.
    needed: CancellationToken,
    /// Increases with each change of `tools`.
    tools_version: watch::Sender<u64>,
    pub(super) notifications: Arc<NotificationRouter>,
    /// Whether a client has asked for resources or prompts while there was no connection.
    were_lists_missed: AtomicBool,
    /// URIs of the resources that clients have subscribed to.
    pub(super) subscribed: watch::Sender<BTreeSet<String>>,
    /// The lowest level of log messages that clients want, if one has said so.
    pub(super) log_level: watch::Sender<Option<mcp::LogLevel>>,
    /// Increases when the roots of the only client may have changed.
    pub(super) roots_version: watch::Sender<u64>,
    closing: CancellationToken,
}

#[derive(Clone)]
enum ConnectionState {
    /// It is connected when it is needed.
    Idle,
    /// It is connected when it is its turn, or when it is needed.
    Queued,
    /// The first attempt to connect is under way.
    Starting,
    /// Calls can be made.
    Connected(Connection),
    /// Calls fail with this reason.
    Disconnected(String),
}

/// A connection to a server.
#[derive(Clone)]
pub struct Connection {
    pub peer: Peer<RoleClient>,
    /// Cancelled when the server turns out to be gone: all calls fail then.
    lost: CancellationToken,
}

impl ConnectionState {
    /// Whether the first attempt to connect has begun.
    fn has_begun(&self) -> bool {
        !matches!(self, Self::Idle | Self::Queued)
    }

    /// Whether the first attempt to connect has ended.
    fn is_decided(&self) -> bool {
        matches!(self, Self::Connected(_) | Self::Disconnected(_))
    }
}

impl McpServer {
    /// Starts the connection task. `stores` have what is known of the server, and its tokens. If its tools are known and `is_lazy`, the
    /// task connects when [`Upstream::first_attempt`] or a call waits for it.
    pub fn start(
        app: &str,
        config: &UpstreamConfig,
        secrets: &Arc<SecretRegistry>,
        stores: &Stores,
        is_lazy: bool,
    ) -> Arc<dyn Upstream> {
        let shared = Self::shared(app, config, secrets, Arc::clone(&stores.servers), &stores.credentials);
        let connection_task = tokio::spawn(Arc::clone(&shared).reconnect_until_closed(is_lazy));
        Arc::new(Self { shared, connection_task: Mutex::new(Some(connection_task)) })
    }

    /// Connects over two streams. There is no reconnect when they end.
    pub fn from_streams<R, W>(app: &str, config: &UpstreamConfig, streams: (R, W)) -> Arc<dyn Upstream>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        // There is no child whose stderr could contain a secret.
        let credentials: Arc<dyn CredentialStore> = Arc::new(MemoryCredentials::default());
        let shared = Self::shared(app, config, &Arc::default(), Arc::new(MemoryServers::default()), &credentials);
        shared.recalled.send_replace(Some(false));
        let (task, max_bytes) = (Arc::clone(&shared), config.max_message_bytes);
        let connection_task = tokio::spawn(async move {
            let plan = Plan::new(Lifecycle::Initialize, None);
            let reason = stdio::run_over(&task, streams, max_bytes, plan).await;
            task.disconnected(reason);
        });
        Arc::new(Self { shared, connection_task: Mutex::new(Some(connection_task)) })
    }

    fn shared(
        app: &str,
        config: &UpstreamConfig,
        secrets: &Arc<SecretRegistry>,
        store: Arc<dyn ServerStore>,
        credentials: &Arc<dyn CredentialStore>,
    ) -> Arc<Shared> {
        let authorizer = match &config.kind {
            UpstreamKind::Http(http) => {
                let authorizer = Authorizer::new(app, http, Arc::clone(credentials), Arc::clone(secrets));
                Some(authorizer.map(Arc::new))
            }
            UpstreamKind::Stdio(_) => None,
        };
        Arc::new(Shared {
            app: app.to_owned(),
            config: config.clone(),
            secrets: Arc::clone(secrets),
            tools: RwLock::default(),
            task_tools: RwLock::default(),
            title: RwLock::default(),
            started: Instant::now(),
            state: watch::Sender::new(ConnectionState::Starting),
            are_tools_known: AtomicBool::new(false),
            tools_announced: watch::Sender::new(false),
            recalled: watch::Sender::new(None),
            remembered: Remembered::new(app, config, store),
            authorizer,
            needed: CancellationToken::new(),
            tools_version: watch::Sender::new(0),
            notifications: Arc::default(),
            were_lists_missed: AtomicBool::new(false),
            subscribed: watch::Sender::default(),
            log_level: watch::Sender::default(),
            roots_version: watch::Sender::default(),
            closing: CancellationToken::new(),
        })
    }

    /// Returns the id of the app.
    pub(super) fn app_id(&self) -> &str {
        &self.shared.app
    }

    /// Returns the peer, for requests that do not wait until the server has started.
    ///
    /// # Errors
    /// There is no connection: the reason.
    pub(super) fn peer(&self) -> Result<Peer<RoleClient>, ErrorData> {
        let reason = match &*self.shared.state.borrow() {
            ConnectionState::Connected(connection) => return Ok(connection.peer.clone()),
            ConnectionState::Disconnected(reason) => reason.clone(),
            ConnectionState::Idle | ConnectionState::Queued | ConnectionState::Starting => self.shared.starting(),
        };
        self.shared.needed.cancel();
        self.shared.were_lists_missed.store(true, Ordering::Relaxed);
        Err(ErrorData::internal_error(reason, None))
    }

    /// Waits for the first attempt to connect and returns the connection.
    async fn connection(&self) -> Result<Connection, ToolError> {
        self.shared.needed.cancel();
        let mut state = self.shared.state.subscribe();
        let state = state.wait_for(ConnectionState::is_decided).await;
        match state.map(|state| state.clone()) {
            Ok(ConnectionState::Connected(connection)) => Ok(connection),
            Ok(ConnectionState::Disconnected(reason)) => {
                let needs_login = self.shared.login_needed().is_some();
                let code = if needs_login { ErrorCode::LoginRequired } else { ErrorCode::ServerUnavailable };
                Err(ToolError::new(code, reason))
            }
            Ok(ConnectionState::Idle | ConnectionState::Queued | ConnectionState::Starting) | Err(_) => {
                Err(ToolError::new(ErrorCode::ServerStarting, self.shared.starting()))
            }
        }
    }

    /// Calls a tool once the first attempt to connect has ended.
    async fn call_tool(&self, call: UpstreamCall) -> Result<CallToolResult, ToolError> {
        let Connection { peer, lost } = self.connection().await?;
        let (app, name, key) = (&self.shared.app, call.tool.name.clone(), call.idempotency_key());
        let request = |responses, state| {
            let mut params = CallToolRequestParams::new(name.clone()).with_arguments(call.input.clone());
            if let Some(key) = &key {
                params.meta.get_or_insert_default().insert(IDEMPOTENCY_KEY.to_owned(), key.as_str().into());
            }
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let needs_task = self.shared.task_tools.read().unwrap_or_else(PoisonError::into_inner).contains(&name);
        let exchange = self.exchange(&peer, call.sink, call.client);
        let mut span = Span::begin(SpanKind::Client, || format!("tools/call {name}"));
        exchange::describe_call(&mut span, &self.shared.config, app, &name, &peer);
        let answered = async {
            tokio::select! {
                result = exchange.run(needs_task, request) => result,
                () = lost.cancelled() => Err(ServiceError::TransportClosed.into()),
            }
        };
        let result = telemetry::within(span.context(), answered).await;
        exchange::describe_result(&mut span, &result);
        match result {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(_) => Err(mcp::call_error(app, &name, ServiceError::UnexpectedResponse)),
            Err(Failure::Service(error)) => {
                if let ServiceError::McpError(ErrorData { code: mcp::URL_REQUIRED, data: Some(data), .. }) = &error {
                    let pages = data["elicitations"].as_array();
                    pages.into_iter().flatten().for_each(|page| exchange.router.expect_page(page, &exchange.client));
                }
                if let Some(login) = self.shared.login_needed() {
                    return Err(ToolError::new(ErrorCode::LoginRequired, login));
                }
                // Over HTTP a response can break off while the server is well.
                if matches!(error, ServiceError::TransportSend(_)) || peer.is_transport_closed() {
                    lost.cancel();
                }
                Err(mcp::call_error(app, &name, error))
            }
            Err(failure) => Err(mcp::failure(app, &name, failure)),
        }
    }

    /// Returns a request to the server.
    pub(super) fn exchange<'a>(&'a self, peer: &'a Peer<RoleClient>, sink: UpdateSink, client: Client) -> Exchange<'a> {
        Exchange { peer, router: &self.shared.notifications, sink, client }
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

impl Upstream for McpServer {
    fn app(&self) -> &str {
        &self.shared.app
    }

    fn source(&self) -> &'static str {
        "mcp"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.shared.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn title(&self) -> Option<String> {
        self.shared.title.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let name = call.tool.name.clone();
            mcp::tool_result(&name, &self.call_tool(call).await?)
        })
    }

    fn resources_and_prompts(&self) -> Option<&dyn ResourcesAndPrompts> {
        Some(self)
    }

    fn tools_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.tools_version.subscribe())
    }

    fn unavailable_reason(&self) -> Option<String> {
        match &*self.shared.state.borrow() {
            ConnectionState::Idle | ConnectionState::Connected(_) => None,
            ConnectionState::Queued | ConnectionState::Starting => Some(self.shared.starting()),
            ConnectionState::Disconnected(reason) => Some(reason.clone()),
        }
    }

    fn needs_login(&self) -> bool {
        self.shared.login_needed().is_some()
    }

    fn is_starting(&self) -> bool {
        !self.shared.state.borrow().is_decided()
    }

    fn are_tools_known(&self) -> bool {
        self.shared.are_tools_known.load(Ordering::Acquire)
    }

    fn recalled(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let mut recalled = self.shared.recalled.subscribe();
            recalled.wait_for(Option::is_some).await.is_ok_and(|recalled| *recalled == Some(true))
        })
    }

    fn tools_known(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut known = self.shared.tools_announced.subscribe();
            let mut state = self.shared.state.subscribe();
            tokio::select! {
                _ = known.wait_for(|known| *known) => {}
                _ = state.wait_for(ConnectionState::is_decided) => {}
            }
        })
    }

    fn start_begun(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut state = self.shared.state.subscribe();
            let _ = state.wait_for(ConnectionState::has_begun).await;
        })
    }

    fn start_ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.decided())
    }

    fn first_attempt(&self) -> BoxFuture<'_, ()> {
        self.shared.needed.cancel();
        self.start_ended()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.closing.cancel();
            let connection_task = self.connection_task.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(connection_task) = connection_task {
                let _ = connection_task.await;
            }
        })
    }
}

impl Shared {
    /// Connects again and again until the upstream is closed.
    async fn reconnect_until_closed(self: Arc<Self>, is_lazy: bool) {
        let known = self.remembered.read().await;
        let is_known = known.is_some();
        let waits = match self.config.kind {
            _ if !is_known => None,
            _ if is_lazy => Some(ConnectionState::Idle),
            UpstreamKind::Stdio(_) => Some(ConnectionState::Queued),
            // It starts no process.
            UpstreamKind::Http(_) => None,
        };
        if let Some(state) = &waits {
            self.state.send_replace(state.clone());
        }
        if let Some(known) = known {
            self.set_tools(known.title, known.tools);
        }
        self.recalled.send_replace(Some(is_known));
        if waits.is_some() {
            tokio::select! {
                () = self.needed.cancelled() => {}
                () = stagger::turn(self.decided()), if !is_lazy => {}
                () = self.closing.cancelled() => return,
            };
            self.state.send_replace(ConnectionState::Starting);
        }
        let mut backoff = INITIAL_BACKOFF;
        let (mut has_failed, mut was_login_needed) = (false, false);
        loop {
            let started = Instant::now();
            // Some older servers exit on a handshake that they do not know, so every other attempt makes no other one.
            let plan = match Plan::new(self.config.lifecycle, self.remembered.lifecycle()) {
                Plan::Remembered(_) | Plan::Unknown if has_failed => Plan::Only(Request::Initialize),
                plan => plan,
            };
            let connections = self.remembered.connections();
            let (reason, child) = self.run_connection(plan).await;
            has_failed = self.remembered.connections() == connections && !has_failed;
            let seconds = backoff.as_secs();
            let login = self.login_needed();
            // Before others know it: a command ends then.
            match &login {
                Some(login) if !std::mem::replace(&mut was_login_needed, true) => {
                    tracing::warn!(app = self.app, "{login}")
                }
                Some(_) => {}
                None => was_login_needed = false,
            }
            self.disconnected(login.clone().unwrap_or_else(|| {
                format!("The MCP server '{}' does not work: {reason}. It is tried again within {seconds} s", self.app)
            }));
            let last_output = match child {
                Some(child) => child.shut_down().await,
                None => String::new(),
            };
            if self.closing.is_cancelled() {
                self.disconnected(format!("The MCP server '{}' is closed", self.app));
                return;
            }
            if started.elapsed() > BACKOFF_RESET {
                backoff = INITIAL_BACKOFF;
            }
            // The output of the child may contain anything, so only the log gets it.
            match &login {
                Some(_) => backoff = MAX_BACKOFF / 2,
                None => tracing::warn!(app = self.app, pause_s = seconds, "MCP server is down: {reason}{last_output}"),
            }
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = self.logged_in(), if login.is_some() => backoff = INITIAL_BACKOFF / 2,
                () = self.closing.cancelled() => {}
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Resolves when the first attempt to connect has ended.
    fn decided(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut state = self.state.subscribe();
        async move {
            let _ = state.wait_for(ConnectionState::is_decided).await;
        }
    }

    fn disconnected(&self, reason: String) {
        self.state.send_replace(ConnectionState::Disconnected(reason));
    }

    /// Returns what has the tokens of a server over HTTP.
    pub(super) fn authorizer(&self) -> Option<&Result<Arc<Authorizer>, String>> {
        self.authorizer.as_ref()
    }

    /// Returns that a person must log in, for people; `None`: nobody must.
    fn login_needed(&self) -> Option<String> {
        let login = self.authorizer.as_ref()?.as_ref().ok()?.login_needed()?;
        Some(format!("The MCP server '{}' {login}", self.app))
    }

    /// Waits until somebody has logged in.
    async fn logged_in(&self) {
        match &self.authorizer {
            Some(Ok(authorizer)) => authorizer.changed().await,
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Says that the server is still starting.
    fn starting(&self) -> String {
        let (app, seconds) = (&self.app, self.started.elapsed().as_secs());
        format!("The MCP server '{app}' is still starting, for {seconds} s so far")
    }

    /// Runs one connection until it ends. Returns why it ended, and the child process to shut down, if there is one.
    async fn run_connection(&self, plan: Plan) -> (String, Option<Child>) {
        if self.closing.is_cancelled() {
            return (String::new(), None);
        }
        let max_bytes = self.config.max_message_bytes;
        match &self.config.kind {
            UpstreamKind::Stdio(config) => stdio::run(self, config, max_bytes, plan).await,
            UpstreamKind::Http(config) => (http::run(self, config, max_bytes, plan).await, None),
        }
    }

    /// Runs an MCP session, from its negotiation until the connection ends or the upstream is closed. `lost` is cancelled
    /// by whoever finds the server gone. Returns the reason.
    pub async fn run_session<T>(
        &self,
        negotiation: impl Future<Output = Result<Negotiated<T>, String>>,
        lost: CancellationToken,
    ) -> String
    where
        T: Transport<RoleClient> + 'static,
    {
        tokio::select! {
            reason = self.run_session_to_end(negotiation, lost) => reason,
            () = self.closing.cancelled() => String::new(),
        }
    }

    async fn run_session_to_end<T>(
        &self,
        negotiation: impl Future<Output = Result<Negotiated<T>, String>>,
        lost: CancellationToken,
    ) -> String
    where
        T: Transport<RoleClient> + 'static,
    {
        let (tools_changed, mut changes) = mpsc::channel(1);
        let limit = self.config.start_timeout;
        let timed_out = || format!("it did not answer within {} ms", limit.as_millis());
        let started = async {
            let handler = NotificationHandler {
                tools_changed: tools_changed.clone(),
                notifications: Arc::clone(&self.notifications),
            };
            let transport = negotiation.await?;
            let lifecycle = transport.lifecycle();
            let handshake = handler.serve_with_lifecycle(transport, mcp::lifecycle_mode(lifecycle));
            let service = handshake.await.map_err(mcp::handshake_error)?;
            service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
            self.remembered.connected(lifecycle);
            self.refresh_tools(service.peer()).await?;
            Ok::<_, String>(service)
        };
        let service = match tokio::time::timeout(limit, started).await {
            Ok(Ok(service)) => service,
            Ok(Err(reason)) => return reason,
            Err(_) => return timed_out(),
        };
        let peer = service.peer().clone();
        let sink = NotificationSink {
            tools_changed,
            notifications: Arc::clone(&self.notifications),
            subscribed: self.subscribed.subscribe(),
            log_level: self.log_level.subscribe(),
            roots_version: self.roots_version.subscribe(),
        };
        let forwarding = tokio::spawn(forward_notifications(peer.clone(), sink));
        self.state.send_replace(ConnectionState::Connected(Connection { peer: peer.clone(), lost: lost.clone() }));
        if self.were_lists_missed.swap(false, Ordering::Relaxed) {
            self.notifications.publish(UpstreamNotification::ResourceListChanged);
            self.notifications.publish(UpstreamNotification::PromptListChanged);
        }
        let mut ended = std::pin::pin!(service.waiting());
        let reason = loop {
            tokio::select! {
                _ = &mut ended => break "it ended".to_owned(),
                () = lost.cancelled() => break "the connection was lost".to_owned(),
                Some(()) = changes.recv() => {
                    tokio::time::sleep(DEBOUNCE).await;
                    while changes.try_recv().is_ok() {}
                    match tokio::time::timeout(LIST_TIMEOUT, self.refresh_tools(&peer)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(reason)) => tracing::warn!(app = self.app, "its changed list of tools cannot be read: {reason}"),
                        Err(_) => tracing::warn!(app = self.app, "the request for its changed list of tools timed out"),
                    }
                }
            }
        };
        forwarding.abort();
        // Calls that wait for a response fail now, not when the transport is closed.
        lost.cancel();
        self.disconnected(format!("The MCP server '{}' has ended and is tried again", self.app));
        reason
    }

    /// Lists the tools and stores them.
    async fn refresh_tools(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let has_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
        let tools = if has_tools {
            let list = list_all(|page| {
                let peer = peer.clone();
                async move { peer.list_tools(page).await.map(|list| (list.tools, list.next_cursor)) }
            });
            let tools = list.await.map_err(|error| format!("its tools cannot be listed: {error}"))?;
            limit_tools(&self.app, tools)
        } else {
            Vec::new()
        };
        let server_info = peer.peer_info().and_then(|info| info.server_info.clone());
        let title = server_info.map(|server| server.title.unwrap_or(server.name));
        self.remembered.write(title.clone(), &tools).await;
        self.set_tools(title, tools);
        Ok(())
    }

    fn set_tools(&self, title: Option<String>, tools: Vec<Tool>) {
        let needs_task =
            |tool: &&Tool| tool.meta.as_ref().is_some_and(|meta| meta.0.get(TASK_SUPPORT) == Some(&"required".into()));
        let task_tools = tools.iter().filter(needs_task).map(|tool| tool.name.to_string()).collect();
        *self.task_tools.write().unwrap_or_else(PoisonError::into_inner) = task_tools;
        let tools: Vec<Arc<ToolDefinition>> =
            tools.into_iter().map(|tool| Arc::new(mcp::definition(&self.app, tool))).collect();
        *self.title.write().unwrap_or_else(PoisonError::into_inner) = title;
        let mut known = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let has_changed = *known != tools;
        *known = tools;
        drop(known);
        // A server without tools is known too.
        if !self.are_tools_known.swap(true, Ordering::AcqRel) || has_changed {
            self.tools_version.send_modify(|version| *version += 1);
        }
        self.tools_announced.send_replace(true);
    }
}

/// Where the notifications of a server go.
struct NotificationSink {
    tools_changed: mpsc::Sender<()>,
    notifications: Arc<NotificationRouter>,
    subscribed: watch::Receiver<BTreeSet<String>>,
    log_level: watch::Receiver<Option<mcp::LogLevel>>,
    roots_version: watch::Receiver<u64>,
}

/// Subscribes to the notifications of a server and forwards them.
///
/// A server with sessions sends them by itself; the resource subscriptions of the previous connection are renewed, and the
/// level of log messages is set.
/// A server without sessions gets one `subscriptions/listen` request, which is repeated when the resources that clients
/// have subscribed to change.
async fn forward_notifications(peer: Peer<RoleClient>, mut sink: NotificationSink) {
    let Some(info) = peer.peer_info() else { return };
    if info.protocol_version.as_str() < "2026-07-28" {
        let wanted = sink.subscribed.borrow().clone();
        for uri in wanted {
            #[expect(deprecated, reason = "servers with sessions support no other way")]
            let _ = peer.subscribe(SubscribeRequestParams::new(uri)).await;
        }
        let has_levels = info.capabilities.logging.is_some();
        loop {
            let level = *sink.log_level.borrow_and_update();
            if let Some(level) = level.filter(|_| has_levels) {
                #[expect(deprecated, reason = "servers with sessions support no other way")]
                let _ = peer.set_level(SetLevelRequestParams::new(level)).await;
            }
            tokio::select! {
                changed = sink.log_level.changed() => if changed.is_err() { return },
                changed = sink.roots_version.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let _ = peer.notify_roots_list_changed().await;
                }
            }
        }
    }
    loop {
        let wanted = sink.subscribed.borrow_and_update().clone();
        let mut filter = SubscriptionFilter::builder();
        filter = filter.tools_list_changed().resources_list_changed().prompts_list_changed();
        let filter = if wanted.is_empty() { filter.build() } else { filter.resource_subscriptions(wanted).build() };
        let filter = filter.supported_by(&info.capabilities);
        if filter == SubscriptionFilter::default() {
            return;
        }
        // A server that refuses the request sends no notifications.
        let Ok(mut subscription) = peer.listen(filter).await else { return };
        loop {
            let next = tokio::select! {
                next = subscription.next() => next,
                changed = sink.subscribed.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
            };
            match next {
                Ok(Some(ServerNotification::ToolListChangedNotification(_))) => drop(sink.tools_changed.try_send(())),
                Ok(Some(ServerNotification::ResourceListChangedNotification(_))) => {
                    sink.notifications.publish(UpstreamNotification::ResourceListChanged)
                }
                Ok(Some(ServerNotification::PromptListChangedNotification(_))) => {
                    sink.notifications.publish(UpstreamNotification::PromptListChanged)
                }
                Ok(Some(ServerNotification::ResourceUpdatedNotification(updated))) => {
                    sink.notifications.publish(UpstreamNotification::ResourceUpdated(updated.params.uri));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}
