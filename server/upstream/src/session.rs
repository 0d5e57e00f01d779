//! The connection to an MCP server, whatever it runs on.
//!
//! A task of its own looks after each: it connects, learns the tools, and connects again when the
//! connection has ended, later each time. Calls meanwhile fail at once with the reason.

use super::lists::{self, Pages};
use super::mcp::{self, Client};
use super::news::{Exchange, News};
use super::stdio::Child;
use super::*;
use codecall_base::tool::{ErrorCode, ToolResult};
use codecall_config::{Lifecycle, UpstreamConfig, UpstreamKind};
use rmcp::model::*;
use rmcp::service::{ClientCacheConfig, ClientServiceExt, Peer, PeerRequestOptions, ServiceError};
use rmcp::transport::IntoTransport;
use rmcp::{ErrorData, RoleClient};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// First and longest pause before another attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection that has lasted this long begins again with the first pause.
const HEALTHY: Duration = Duration::from_secs(60);
/// Changes of a list that follow each other are answered together.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// An MCP server.
pub struct McpServer {
    pub(super) shared: Arc<Shared>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// What the task and the callers share.
pub struct Shared {
    /// The app's id.
    pub app: String,
    config: UpstreamConfig,
    tools: RwLock<Vec<Arc<ToolDefinition>>>,
    /// What the server calls itself.
    title: RwLock<Option<String>>,
    link: watch::Sender<Link>,
    version: watch::Sender<u64>,
    /// What the server says on its own.
    pub(super) exchange: Arc<Exchange>,
    /// Addresses of resources that somebody wants to hear of.
    pub(super) subscribed: watch::Sender<BTreeSet<String>>,
    /// A call has found that the connection is of no use.
    lost: Notify,
    closing: CancellationToken,
}

/// The connection, as callers see it.
#[derive(Clone)]
enum Link {
    /// Never reached yet.
    Starting,
    /// In use.
    Up(Peer<RoleClient>),
    /// Not there, and why.
    Down(String),
}

impl McpServer {
    /// Begin to connect.
    pub fn start(app: &str, config: &UpstreamConfig) -> Arc<dyn Upstream> {
        let shared = Self::shared(app, config);
        let keeper = tokio::spawn(Arc::clone(&shared).keep());
        Arc::new(Self { shared, keeper: Mutex::new(Some(keeper)) })
    }

    /// A connection over these streams, which is not made again when they end.
    pub fn over<R, W>(app: &str, config: &UpstreamConfig, streams: (R, W)) -> Arc<dyn Upstream>
    where
        R: tokio::io::AsyncRead + Send + Unpin + 'static,
        W: tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let shared = Self::shared(app, config);
        let (speaker, longest) = (Arc::clone(&shared), config.max_message_bytes);
        let keeper = tokio::spawn(async move {
            let reason = stdio::over(&speaker, streams, longest, Lifecycle::Initialize).await;
            speaker.link.send_replace(Link::Down(reason));
        });
        Arc::new(Self { shared, keeper: Mutex::new(Some(keeper)) })
    }

    fn shared(app: &str, config: &UpstreamConfig) -> Arc<Shared> {
        Arc::new(Shared {
            app: app.to_owned(),
            config: config.clone(),
            tools: RwLock::default(),
            title: RwLock::default(),
            link: watch::Sender::new(Link::Starting),
            version: watch::Sender::new(0),
            exchange: Arc::default(),
            subscribed: watch::Sender::default(),
            lost: Notify::new(),
            closing: CancellationToken::new(),
        })
    }

    /// The app's id.
    pub(super) fn app_id(&self) -> &str {
        &self.shared.app
    }

    /// The other side, when it has been reached.
    ///
    /// # Errors
    /// It does not work, and why.
    pub(super) async fn peer(&self) -> Result<Peer<RoleClient>, ErrorData> {
        let mut link = self.shared.link.subscribe();
        let link = link.wait_for(|link| !matches!(link, Link::Starting)).await.map(|link| link.clone());
        match link {
            Ok(Link::Up(peer)) => Ok(peer),
            Ok(Link::Down(reason)) => Err(ErrorData::internal_error(reason, None)),
            Ok(Link::Starting) | Err(_) => {
                Err(ErrorData::internal_error(format!("The MCP server '{}' is not there", self.shared.app), None))
            }
        }
    }

    /// Call a tool, when the server has been reached.
    async fn ask(&self, call: UpstreamCall) -> Result<CallToolResponse, ToolError> {
        let peer = self.peer().await.map_err(|error| ToolError::new(ErrorCode::ToolExecutionError, error.message))?;
        let name = call.tool.name.clone();
        let params = CallToolRequestParams::new(name.clone()).with_arguments(call.input);
        let asked = self.ask_peer(&peer, params, call.listener).await;
        asked.map_err(|error| {
            if matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) {
                self.shared.lost.notify_waiters();
            }
            mcp::broken(&self.shared.app, &name, error)
        })
    }

    /// The same as `call_tool_once`, which does not tell the token of the call's progress.
    async fn ask_peer(
        &self,
        peer: &Peer<RoleClient>,
        params: CallToolRequestParams,
        listener: Listener,
    ) -> Result<CallToolResponse, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let _under_way = self.shared.exchange.begin(handle.progress_token.clone(), listener);
        let mut abandoned = Abandoned(Some((peer.clone(), handle.id.clone())));
        let answered = handle.await_response().await;
        abandoned.0 = None;
        match answered? {
            ServerResult::CallToolResult(result) => Ok(CallToolResponse::Complete(result)),
            ServerResult::InputRequiredResult(result) => Ok(CallToolResponse::InputRequired(result)),
            ServerResult::CreateTaskResult(result) => Ok(CallToolResponse::Task(result)),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }
}

/// A call that nobody waits for any more, unless it is emptied before it is dropped: the server is told.
struct Abandoned(Option<(Peer<RoleClient>, RequestId)>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some((peer, id)) = self.0.take() else { return };
        // At the end of the process there is no runtime any more, and no server either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let told = CancelledNotificationParam::new(Some(id), Some("nobody waits for the result".into()));
            runtime.spawn(async move { peer.notify_cancelled(told).await });
        }
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
            mcp::result(&name, self.ask(call).await?)
        })
    }

    fn offers(&self) -> Option<&dyn Offers> {
        Some(self)
    }

    fn changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.version.subscribe())
    }

    fn trouble(&self) -> Option<String> {
        match &*self.shared.link.borrow() {
            Link::Up(_) => None,
            Link::Starting => Some(format!("The MCP server '{}' is still starting", self.shared.app)),
            Link::Down(reason) => Some(reason.clone()),
        }
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.shared.link.subscribe().wait_for(|link| !matches!(link, Link::Starting)).await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.closing.cancel();
            let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(keeper) = keeper {
                let _ = keeper.await;
            }
        })
    }
}

impl Shared {
    /// Keep connected until the upstream is closed.
    async fn keep(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        let mut lifecycle = self.config.lifecycle;
        loop {
            let began = Instant::now();
            let (reason, child) = self.live(lifecycle).await;
            let seconds = pause.as_secs();
            self.link.send_replace(Link::Down(format!(
                "The MCP server '{}' does not work: {reason}. It is tried again within {seconds} s",
                self.app
            )));
            let last_words = match child {
                Some(child) => child.end().await,
                None => String::new(),
            };
            if self.closing.is_cancelled() {
                self.link.send_replace(Link::Down(format!("The MCP server '{}' is closed", self.app)));
                return;
            }
            if began.elapsed() > HEALTHY {
                pause = FIRST_PAUSE;
            }
            // Some old servers end when they are greeted in the new way.
            if self.config.lifecycle == Lifecycle::Auto {
                lifecycle = if lifecycle == Lifecycle::Auto { Lifecycle::Initialize } else { Lifecycle::Auto };
            }
            // What the child has said is for the log alone: it may hold anything.
            tracing::warn!(app = self.app, pause_s = seconds, "MCP server is down: {reason}{last_words}");
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.closing.cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// One connection. Gives why it is over, and the child to be ended where there is one.
    async fn live(&self, lifecycle: Lifecycle) -> (String, Option<Child>) {
        if self.closing.is_cancelled() {
            return (String::new(), None);
        }
        let longest = self.config.max_message_bytes;
        match &self.config.kind {
            UpstreamKind::Stdio(config) => stdio::live(self, config, longest, lifecycle).await,
            UpstreamKind::Http(config) => (http::live(self, config, longest, lifecycle).await, None),
        }
    }

    /// Speak with the server until the connection ends or the upstream is closed. Gives the reason.
    pub async fn talk<T, E, A>(&self, transport: T, lifecycle: Lifecycle) -> String
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        tokio::select! {
            reason = self.speak(transport, lifecycle) => reason,
            () = self.closing.cancelled() => String::new(),
        }
    }

    async fn speak<T, E, A>(&self, transport: T, lifecycle: Lifecycle) -> String
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let (changed, mut changes) = mpsc::channel(1);
        let limit = self.config.start_timeout;
        let late = || format!("it did not answer within {} ms", limit.as_millis());
        let started = async {
            let greeting = Client { changed: changed.clone(), exchange: Arc::clone(&self.exchange) }
                .serve_with_lifecycle(transport, mcp::lifecycle(lifecycle));
            let service = greeting.await.map_err(mcp::not_begun)?;
            service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
            self.learn(service.peer()).await?;
            Ok::<_, String>(service)
        };
        let service = match tokio::time::timeout(limit, started).await {
            Ok(Ok(service)) => service,
            Ok(Err(reason)) => return reason,
            Err(_) => return late(),
        };
        let peer = service.peer().clone();
        let sink =
            NotificationSink { changed, exchange: Arc::clone(&self.exchange), subscribed: self.subscribed.subscribe() };
        let listener = tokio::spawn(listen(peer.clone(), sink));
        self.link.send_replace(Link::Up(peer.clone()));
        let mut ended = std::pin::pin!(service.waiting());
        let reason = loop {
            tokio::select! {
                _ = &mut ended => break "it ended".to_owned(),
                () = self.lost.notified() => break "the connection was lost".to_owned(),
                Some(()) = changes.recv() => {
                    tokio::time::sleep(DEBOUNCE).await;
                    while changes.try_recv().is_ok() {}
                    match tokio::time::timeout(limit, self.learn(&peer)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(reason)) => tracing::warn!(app = self.app, "its changed list of tools cannot be read: {reason}"),
                        Err(_) => tracing::warn!(app = self.app, "its changed list of tools does not come"),
                    }
                }
            }
        };
        listener.abort();
        self.link.send_replace(Link::Down(format!("The MCP server '{}' has ended and is tried again", self.app)));
        reason
    }

    /// Ask for the tools.
    async fn learn(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let has_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
        let tools = if has_tools {
            let listed = Pages::all(|page| {
                let peer = peer.clone();
                async move { peer.list_tools(page).await.map(|list| (list.tools, list.next_cursor)) }
            });
            let tools = listed.await.map_err(|error| format!("its tools cannot be listed: {error}"))?;
            lists::all_bounded(&self.app, tools)
        } else {
            Vec::new()
        };
        let tools: Vec<Arc<ToolDefinition>> =
            tools.into_iter().map(|tool| Arc::new(mcp::definition(&self.app, tool))).collect();
        let own = peer.peer_info().and_then(|info| info.server_info.clone());
        let title = own.map(|own| own.title.unwrap_or(own.name));
        *self.title.write().unwrap_or_else(PoisonError::into_inner) = title;
        let mut known = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if *known != tools {
            *known = tools;
            drop(known);
            self.version.send_modify(|version| *version += 1);
        }
        Ok(())
    }
}

/// What a server says, and who is told.
struct NotificationSink {
    changed: mpsc::Sender<()>,
    exchange: Arc<Exchange>,
    subscribed: watch::Receiver<BTreeSet<String>>,
}

/// Hear what a server says on its own: servers with sessions are asked once more for the resources that
/// were subscribed to before; those without are asked for everything, again at every change of that.
async fn listen(peer: Peer<RoleClient>, mut sink: NotificationSink) {
    let Some(info) = peer.peer_info() else { return };
    if info.protocol_version.as_str() < "2026-07-28" {
        let wanted = sink.subscribed.borrow().clone();
        for uri in wanted {
            #[expect(deprecated, reason = "servers with sessions know nothing else")]
            let _ = peer.subscribe(SubscribeRequestParams::new(uri)).await;
        }
        return;
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
        // One that refuses has nothing to say.
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
                Ok(Some(ServerNotification::ToolListChangedNotification(_))) => drop(sink.changed.try_send(())),
                Ok(Some(ServerNotification::ResourceListChangedNotification(_))) => sink.exchange.tell(News::Resources),
                Ok(Some(ServerNotification::PromptListChangedNotification(_))) => sink.exchange.tell(News::Prompts),
                Ok(Some(ServerNotification::ResourceUpdatedNotification(told))) => {
                    sink.exchange.tell(News::Updated(told.params.uri));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}
