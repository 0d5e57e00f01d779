//! The connection to an MCP server, over any transport.
//!
//! A task for each server connects, lists the tools, and reconnects with exponential backoff when the connection ends.
//! A server whose tools the store knows is connected when a call needs it. Calls wait for the attempt; they also have a connection
//! made again that was lost. When an attempt has failed, calls fail at once with the reason until another one succeeds.

mod activity;
mod connect;
mod exchange;
mod notifications;
mod record;
mod state;
mod task;

use super::answer::Answer;
use super::incoming::TASK_SUPPORT;
use super::mcp;
use super::mend;
use super::negotiate::Plan;
use super::notifications::NotificationRouter;
use super::oauth::Authorizer;
use super::start_queue::StartQueue;
use super::stdio::{LastLines, environment};
use super::*;
pub(super) use activity::Active;
use activity::Activity;
use codecall_base::client::Client;
use codecall_base::telemetry::{self, Span, SpanKind};
use codecall_base::tool::{ErrorCode, ToolResult};
use codecall_config::{Config, Lifecycle, UpstreamConfig, UpstreamKind};
use codecall_store::Stores;
pub(super) use exchange::{Exchange, Failure};
use record::Remembered;
pub use record::identity;
use rmcp::model::*;
use rmcp::service::{Peer, ServiceError};
use rmcp::{ErrorData, RoleClient};
use state::{Connection, ConnectionState, Wake};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::task::JoinHandle;

/// The member of `_meta` of a call that has its [key](UpstreamCall::idempotency_key).
const IDEMPOTENCY_KEY: &str = "codecall/idempotencyKey";

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
    /// The last lines that its child processes have written to stderr.
    pub(super) last_lines: Arc<LastLines>,
    tools: RwLock<Vec<Arc<ToolDefinition>>>,
    /// The oddities of its list of tools, beside those of the tools in it.
    oddities: RwLock<Vec<String>>,
    /// The tools that can only be called as tasks of version 2025-11-25.
    task_tools: RwLock<BTreeSet<String>>,
    /// The server's name for itself.
    title: RwLock<Option<String>>,
    /// The last lines of stderr of the process that has ended last, while there is no other one.
    last_output: RwLock<Vec<String>>,
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
    /// The requests in progress.
    activity: Activity,
    /// Where the process waits for its turn to start.
    queue: Arc<StartQueue>,
    /// After how long without a request the process is stopped.
    idle_stop: Option<Duration>,
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

impl McpServer {
    /// Starts the connection task.
    pub fn start(app: &str, config: &UpstreamConfig, start: &Start<'_>) -> Arc<dyn Upstream> {
        let shared = Self::shared(app, config, start);
        let connection_task = tokio::spawn(Arc::clone(&shared).reconnect_until_closed(start.is_lazy));
        Arc::new(Self { shared, connection_task: Mutex::new(Some(connection_task)) })
    }

    /// Connects over two streams. There is no reconnect when they end.
    pub fn from_streams<R, W>(app: &str, config: &UpstreamConfig, streams: (R, W)) -> Arc<dyn Upstream>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        // There is no child whose stderr could contain a secret.
        let stores = Stores::in_memory(&Config::default());
        let (secrets, queue) = (Arc::default(), Arc::default());
        let start = Start { secrets: &secrets, stores: &stores, queue: &queue, is_lazy: false, idle_stop: None };
        let shared = Self::shared(app, config, &start);
        shared.recalled.send_replace(Some(false));
        let (task, max_bytes) = (Arc::clone(&shared), config.max_message_bytes);
        let connection_task = tokio::spawn(async move {
            let plan = Plan::new(Lifecycle::Initialize, None);
            let reason = stdio::run_over(&task, streams, max_bytes, plan).await;
            task.disconnected(reason);
        });
        Arc::new(Self { shared, connection_task: Mutex::new(Some(connection_task)) })
    }

    fn shared(app: &str, config: &UpstreamConfig, start: &Start<'_>) -> Arc<Shared> {
        let Start { secrets, stores, queue, idle_stop, .. } = *start;
        let authorizer = match &config.kind {
            UpstreamKind::Http(http) => {
                let authorizer = Authorizer::new(app, http, Arc::clone(&stores.credentials), Arc::clone(secrets));
                Some(authorizer.map(Arc::new))
            }
            UpstreamKind::Stdio(_) => None,
        };
        Arc::new(Shared {
            app: app.to_owned(),
            config: config.clone(),
            secrets: Arc::clone(secrets),
            last_lines: Arc::default(),
            tools: RwLock::default(),
            oddities: RwLock::default(),
            task_tools: RwLock::default(),
            title: RwLock::default(),
            last_output: RwLock::default(),
            state: watch::Sender::new(ConnectionState::Starting(Instant::now())),
            are_tools_known: AtomicBool::new(false),
            tools_announced: watch::Sender::new(false),
            recalled: watch::Sender::new(None),
            remembered: Remembered::new(app, config, Arc::clone(&stores.servers)),
            authorizer,
            activity: Activity::default(),
            queue: Arc::clone(queue),
            idle_stop,
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

    /// Begins a request: until the guard is dropped, the server is not idle. It comes before the request for a connection.
    pub(super) fn active(&self) -> Active<'_> {
        self.shared.activity.begin()
    }

    /// Returns the peer, for requests that do not wait until the server has started.
    ///
    /// # Errors
    /// There is no connection: the reason.
    pub(super) fn peer(&self) -> Result<Peer<RoleClient>, ErrorData> {
        let reason = {
            let state = self.shared.state.borrow();
            if let ConnectionState::Connected(connection) = &*state {
                return Ok(connection.peer.clone());
            }
            state.wake();
            self.shared.starting(&state)
        };
        self.shared.were_lists_missed.store(true, Ordering::Relaxed);
        Err(ErrorData::internal_error(reason, None))
    }

    /// Waits for an attempt to connect and returns the connection.
    async fn connection(&self) -> Result<Connection, ToolError> {
        let mut state = self.shared.state.subscribe();
        let state = state.wait_for(ConnectionState::wake_until_decided).await;
        match state.map(|state| state.clone()) {
            Ok(ConnectionState::Connected(connection)) => Ok(connection),
            Ok(ConnectionState::Disconnected(reason)) => {
                let needs_login = self.shared.login_needed().is_some();
                let code = if needs_login { ErrorCode::LoginRequired } else { ErrorCode::ServerUnavailable };
                Err(ToolError::new(code, reason))
            }
            Ok(state) => Err(ToolError::new(ErrorCode::ServerStarting, self.shared.starting(&state))),
            Err(_) => Err(ToolError::new(ErrorCode::ServerUnavailable, self.shared.closed())),
        }
    }

    /// Calls a tool once there is a connection. If it turns out to be lost before the call was sent, there is another one.
    async fn call_tool(&self, call: UpstreamCall) -> Result<ToolResult, ToolError> {
        let _active = self.active();
        let answer = self.call_once(&call).await;
        let is_unavailable = answer.as_ref().is_err_and(|error| error.code == ErrorCode::ServerUnavailable);
        if is_unavailable && !call.sent.load(Ordering::Relaxed) && self.shared.state.borrow().is_lost() {
            return self.call_once(&call).await;
        }
        answer
    }

    async fn call_once(&self, call: &UpstreamCall) -> Result<ToolResult, ToolError> {
        call.set_sent(false);
        let Connection { peer, lost } = self.connection().await?;
        call.set_sent(true);
        let sent = Arc::clone(&call.sent);
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
        let exchange = self.exchange(&peer, call.sink.clone(), call.client.clone());
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
            Ok(Answer::Long(long)) => Ok(ToolResult::Long(long)),
            Ok(Answer::Result(ServerResult::CallToolResult(result))) => mcp::tool_result(&name, result),
            Ok(Answer::Result(ServerResult::CustomResult(CustomResult(result)))) => {
                Ok(ToolResult::Mcp(mend::call_result(&result)))
            }
            Ok(Answer::Result(ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_))) => {
                Ok(ToolResult::Mcp(mend::call_result(&Value::Null)))
            }
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
                let is_unsent = matches!(&error, ServiceError::TransportSend(error) if !mcp::has_responded(error));
                if matches!(&error, ServiceError::TransportSend(error) if mcp::is_unsent(error)) {
                    sent.store(false, Ordering::Relaxed);
                }
                if is_unsent || peer.is_transport_closed() {
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

    fn oddities(&self) -> Vec<String> {
        let mut oddities = self.shared.oddities.read().unwrap_or_else(PoisonError::into_inner).clone();
        let tools = self.shared.tools.read().unwrap_or_else(PoisonError::into_inner);
        oddities.extend(tools.iter().flat_map(|tool| tool.oddities.iter().cloned()));
        oddities
    }

    fn title(&self) -> Option<String> {
        self.shared.title.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(self.call_tool(call))
    }

    fn resources_and_prompts(&self) -> Option<&dyn ResourcesAndPrompts> {
        Some(self)
    }

    fn tools_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.tools_version.subscribe())
    }

    fn unavailable_reason(&self) -> Option<String> {
        self.shared.state.borrow().unavailable_reason(&self.shared.app)
    }

    fn last_output(&self) -> Vec<String> {
        self.shared.last_output.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn last_lines(&self) -> Vec<String> {
        match &self.shared.config.kind {
            UpstreamKind::Stdio(config) => {
                self.shared.last_lines.without_secrets(&environment(config), &self.shared.secrets)
            }
            UpstreamKind::Http(_) => Vec::new(),
        }
    }

    fn needs_login(&self) -> bool {
        self.shared.login_needed().is_some()
    }

    fn is_starting(&self) -> bool {
        self.shared.state.borrow().is_starting()
    }

    fn is_idle(&self) -> bool {
        self.shared.state.borrow().is_idle()
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
                _ = state.wait_for(|state| !state.is_starting()) => {}
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
        Box::pin(async move {
            let mut state = self.shared.state.subscribe();
            let _ = state.wait_for(|state| !state.is_starting()).await;
        })
    }

    fn need(&self) {
        self.shared.state.borrow().wake();
    }

    fn first_attempt(&self) -> BoxFuture<'_, ()> {
        self.need();
        Box::pin(async move {
            let mut state = self.shared.state.subscribe();
            let _ = state.wait_for(ConnectionState::wake_until_decided).await;
        })
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
    /// Resolves when the next attempt to connect has ended.
    fn attempt_ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut state = self.state.subscribe();
        async move { while state.changed().await.is_ok() && state.borrow_and_update().is_starting() {} }
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

    /// Says why there is no connection yet.
    fn starting(&self, state: &ConnectionState) -> String {
        let starting = || format!("The MCP server '{}' is still starting", self.app);
        state.unavailable_reason(&self.app).unwrap_or_else(starting)
    }

    fn closed(&self) -> String {
        format!("The MCP server '{}' is closed", self.app)
    }

    fn set_tools(&self, title: Option<String>, tools: Vec<Tool>, oddities: Vec<String>) {
        *self.oddities.write().unwrap_or_else(PoisonError::into_inner) = oddities;
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
