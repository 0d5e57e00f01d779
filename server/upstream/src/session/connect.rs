//! The task of a server: it connects, runs the session until that ends, and reconnects with exponential backoff.

use super::notifications::{NotificationSink, forward_notifications};
use super::stagger;
use super::{Connection, ConnectionState, Shared};
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
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
    /// Connects again and again until the upstream is closed.
    pub(super) async fn reconnect_until_closed(self: Arc<Self>, is_lazy: bool) {
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
            self.set_tools(known.title, known.tools, Vec::new());
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
