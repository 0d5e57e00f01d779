//! The task of a server: it connects, runs the session until that ends, and reconnects with exponential backoff.

use super::notifications::{NotificationSink, forward_notifications};
use super::{Connection, ConnectionState, Shared, Wake};
use crate::mcp::{self, NotificationHandler};
use crate::mend;
use crate::negotiate::{Negotiated, Plan, Request};
use crate::notifications::UpstreamNotification;
use crate::pagination::{Page, limit_tools, list_all};
use crate::stdio::Child;
use crate::{http, stdio};
use codecall_config::UpstreamKind;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{ClientCacheConfig, ClientServiceExt as _, Peer, ServiceError};
use rmcp::transport::Transport;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The first and the longest pause before a reconnect.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// After a connection that has lasted this long, the backoff starts again.
const BACKOFF_RESET: Duration = Duration::from_secs(60);
/// Changes of the tool list within this time are handled together.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// How long a server may take to list its changed tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

impl Shared {
    /// Connects again and again until the upstream is closed. If its tools are known and `is_lazy`, it connects when somebody
    /// needs it.
    pub(super) async fn reconnect_until_closed(self: Arc<Self>, is_lazy: bool) {
        self.recall(is_lazy).await;
        let mut backoff = INITIAL_BACKOFF;
        let (mut has_failed, mut was_login_needed) = (false, false);
        while self.closing.run_until_cancelled(self.turn()).await.is_some() {
            let started = Instant::now();
            // Some older servers exit on a handshake that they do not know, so every other attempt makes no other one.
            let plan = match Plan::new(self.config.lifecycle, self.remembered.lifecycle()) {
                Plan::Remembered(_) | Plan::Unknown if has_failed => Plan::Only(Request::Initialize),
                plan => plan,
            };
            let connections = self.remembered.connections();
            let (reason, mut child) = self.run_connection(plan).await;
            let login = self.login_needed();
            // A server that wants a login has answered.
            has_failed = self.remembered.connections() == connections && !has_failed && login.is_none();
            if matches!(*self.state.borrow(), ConnectionState::Idle(_)) {
                tracing::debug!(app = self.app, "the MCP server is stopped: it was idle");
                if let Some(child) = child {
                    child.shut_down().await;
                }
                continue;
            }
            let seconds = backoff.as_secs();
            // Before others know it: a command ends then.
            match &login {
                Some(login) if !std::mem::replace(&mut was_login_needed, true) => {
                    tracing::warn!(app = self.app, "{login}")
                }
                Some(_) => {}
                None => was_login_needed = false,
            }
            let last_output = match &mut child {
                Some(child) if !self.closing.is_cancelled() => child.last_lines().await,
                Some(_) | None => Vec::new(),
            };
            self.last_output.write().unwrap_or_else(PoisonError::into_inner).clone_from(&last_output);
            let wake = self.ended(login.clone(), &reason, seconds);
            if let Some(child) = child {
                child.shut_down().await;
            }
            if self.closing.is_cancelled() {
                break;
            }
            if started.elapsed() > BACKOFF_RESET {
                backoff = INITIAL_BACKOFF;
            }
            match &login {
                Some(_) => backoff = MAX_BACKOFF / 2,
                None => {
                    let output = last_output.join(" | ");
                    let output = if output.is_empty() { output } else { format!("; its last output: {output}") };
                    tracing::warn!(app = self.app, pause_s = seconds, "MCP server is down: {reason}{output}");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = self.logged_in(), if login.is_some() => backoff = INITIAL_BACKOFF / 2,
                () = wake.cancelled() => {}
                () = self.closing.cancelled() => {}
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
        self.disconnected(self.closed());
    }

    /// Reads what is known of the server.
    async fn recall(&self, is_lazy: bool) {
        let known = self.remembered.read().await;
        let is_known = known.is_some();
        // Before the state: a server that is not starting has tools, or has failed.
        if let Some(known) = known {
            self.set_tools(known.title, known.tools, Vec::new());
        }
        match self.config.kind {
            UpstreamKind::Stdio(_) | UpstreamKind::Http(_) if is_known && is_lazy => {
                self.state.send_replace(ConnectionState::Idle(Wake::new()));
            }
            UpstreamKind::Stdio(_) => {
                self.state.send_replace(ConnectionState::Queued(Wake::new()));
            }
            UpstreamKind::Http(_) => {}
        }
        self.recalled.send_replace(Some(is_known));
    }

    /// Waits until the next attempt to connect is due: until somebody needs it, if the server is idle, and it is its turn.
    async fn turn(&self) {
        let idle = match &*self.state.borrow() {
            ConnectionState::Idle(wake) => Some(wake.clone()),
            _ => None,
        };
        if let Some(wake) = idle {
            wake.cancelled().await;
            self.state.send_replace(ConnectionState::Queued(wake));
        }
        // A server over HTTP starts no process.
        if matches!(self.config.kind, UpstreamKind::Stdio(_)) {
            let needed = match &*self.state.borrow() {
                ConnectionState::Queued(wake) | ConnectionState::Lost(wake, _) => wake.clone(),
                _ => Wake::new(),
            };
            self.queue.wait(&needed, self.attempt_ended()).await;
        }
        self.state.send_if_modified(|state| {
            // If this attempt fails, calls fail until another one succeeds, also those that wait for it.
            let is_awaited = state.is_starting() || matches!(state, ConnectionState::Lost(..));
            if is_awaited {
                *state = ConnectionState::Starting(Instant::now());
            }
            is_awaited
        });
    }

    /// Says that a connection has ended, or could not be made. Returns what a call cancels that needs another one at once.
    fn ended(&self, login: Option<String>, reason: &str, seconds: u64) -> Wake {
        let needs_login = login.is_some();
        let problem = login.unwrap_or_else(|| {
            format!("The MCP server '{}' does not work: {reason}. It is tried again within {seconds} s", self.app)
        });
        let mut wake = Wake::new();
        self.state.send_modify(|state| {
            *state = match state {
                ConnectionState::Lost(lost, _) if !needs_login => {
                    wake = lost.clone();
                    ConnectionState::Lost(wake.clone(), problem)
                }
                _ => ConnectionState::Disconnected(problem),
            };
        });
        wake
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
        self.last_output.write().unwrap_or_else(PoisonError::into_inner).clear();
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
                () = self.stopped() => break "it was idle".to_owned(),
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
        if !matches!(*self.state.borrow(), ConnectionState::Idle(_)) {
            let problem = format!("The MCP server '{}' has ended and is tried again", self.app);
            self.state.send_replace(ConnectionState::Lost(Wake::new(), problem));
        }
        reason
    }

    /// Resolves when the server was idle for so long that it is stopped. Then it is no longer connected.
    async fn stopped(&self) {
        let Some(time) = self.idle_stop else { return std::future::pending().await };
        loop {
            self.activity.idle_for(time).await;
            let has_stopped = self.state.send_if_modified(|state| {
                // A request that begins now finds out that there is no connection, or this finds the request.
                let is_idle = self.activity.is_idle() && self.subscribed.borrow().is_empty();
                if is_idle {
                    *state = ConnectionState::Idle(Wake::new());
                }
                is_idle
            });
            if has_stopped {
                return;
            }
        }
    }

    /// Lists the tools and stores them.
    async fn refresh_tools(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let has_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
        let (mut tools, mut oddities) = (Vec::new(), Vec::new());
        if has_tools {
            let listing = list_all(|page| tools_page(peer.clone(), page)).await;
            let listing = listing.map_err(|error| format!("its tools cannot be listed: {error}"))?;
            let (usable, left_out) = limit_tools(listing.items);
            tools = usable;
            oddities = listing.oddities;
            oddities.extend(left_out);
        }
        for oddity in oddities.iter().take(MAX_LOGGED) {
            tracing::warn!(app = self.app, "{oddity}");
        }
        let server_info = peer.peer_info().and_then(|info| info.server_info.clone());
        let title = server_info.map(|server| server.title.unwrap_or(server.name));
        self.remembered.write(title.clone(), &tools).await;
        self.set_tools(title, tools, oddities);
        Ok(())
    }
}

/// Maximum number of oddities of a list that are logged.
const MAX_LOGGED: usize = 20;

/// Requests a page of the list of tools.
async fn tools_page(
    peer: Peer<RoleClient>,
    params: Option<PaginatedRequestParams>,
) -> Result<Page<Tool>, ServiceError> {
    let request = ListToolsRequest { params, ..ListToolsRequest::default() };
    let unreadable = |what: &str| Page { items: Vec::new(), next: None, oddities: vec![what.to_owned()] };
    match peer.send_request(ClientRequest::ListToolsRequest(request)).await {
        Ok(ServerResult::ListToolsResult(mut list)) => {
            let oddities = mend::take_oddities(&mut list.meta).named;
            Ok(Page { items: list.tools, next: list.next_cursor, oddities })
        }
        Ok(_) => Ok(unreadable("its list of tools cannot be read")),
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            Ok(unreadable("it says that it has tools, and does not list them"))
        }
        Err(error) => Err(error),
    }
}
