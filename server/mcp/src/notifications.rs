//! Notifications for clients: of changes of the tools, and if `expose` is `direct`, those of upstreams: changes of lists
//! and of subscribed resources, log messages.

use super::run_events::{self, Level};
use super::tool_changes::ToolChanges;
use codecall_base::event::LogMessage;
use codecall_hub::LiveHub;
use codecall_upstream::UpstreamNotification;
use rmcp::model::*;
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How long a client may take to read a notification.
pub const NOTIFY_TIMEOUT: Duration = Duration::from_secs(2);

/// The clients of a connection that have a session.
pub type Peers = Vec<Peer<RoleServer>>;

/// The notifications that a session has asked for.
#[derive(Default)]
pub struct Subscriptions {
    /// URIs of resources.
    resources: Mutex<BTreeSet<String>>,
    /// The lowest level of log messages; `None` if the client has not set one.
    level: Mutex<Option<Level>>,
}

impl Subscriptions {
    /// Returns the lowest level of log messages; `None` if the client has not set one.
    pub fn level(&self) -> Option<Level> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the lowest level of log messages.
    pub fn set_level(&self, level: Level) {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// Subscribes to a resource. Returns whether the session was not subscribed before.
    pub fn subscribe(&self, uri: &str) -> bool {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).insert(uri.to_owned())
    }

    /// Cancels the subscription to a resource. Returns whether there was one.
    pub fn unsubscribe(&self, uri: &str) -> bool {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).remove(uri)
    }

    fn includes(&self, notification: &UpstreamNotification) -> bool {
        match notification {
            UpstreamNotification::ResourceListChanged | UpstreamNotification::PromptListChanged => true,
            UpstreamNotification::ResourceUpdated(uri) => {
                self.resources.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
            }
            UpstreamNotification::Log(message) => run_events::is_logged(&message.level, self.level()),
        }
    }
}

/// Forwards notifications to the clients of a connection until the connection is dropped.
pub async fn forward(
    mut receiver: Receiver<UpstreamNotification>,
    peers: Weak<Mutex<Peers>>,
    subscriptions: Weak<Subscriptions>,
) {
    loop {
        let notification = match receiver.recv().await {
            Ok(notification) => notification,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let (Some(peers), Some(subscriptions)) = (peers.upgrade(), subscriptions.upgrade()) else { return };
        if subscriptions.includes(&notification) {
            for peer in open_peers(&peers) {
                let _ = tokio::time::timeout(NOTIFY_TIMEOUT, send(&peer, notification.clone())).await;
            }
        }
    }
}

#[expect(deprecated, reason = "clients of today ask for log messages")]
async fn send(peer: &Peer<RoleServer>, notification: UpstreamNotification) -> Result<(), ServiceError> {
    match notification {
        UpstreamNotification::ResourceListChanged => peer.notify_resource_list_changed().await,
        UpstreamNotification::PromptListChanged => peer.notify_prompt_list_changed().await,
        UpstreamNotification::ResourceUpdated(uri) => {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
        }
        UpstreamNotification::Log(LogMessage { level, logger, data }) => {
            let mut params = LoggingMessageNotificationParam::new(run_events::parse_level(&level), data);
            params.logger = logger;
            peer.notify_logging_message(params).await
        }
    }
}

/// Returns the peers that are still connected. They are checked first, because notifying a disconnected peer succeeds.
pub fn open_peers(peers: &Mutex<Peers>) -> Peers {
    let mut peers = peers.lock().unwrap_or_else(PoisonError::into_inner);
    peers.retain(|peer| !peer.is_transport_closed());
    peers.clone()
}

/// Sends notifications to a client without a session until its request is cancelled.
pub async fn listen(live: &LiveHub, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let (mut changed, mut notifications) = (ToolChanges::new(live), live.get().notifications());
    changed.mark_unchanged();
    let (accepted, sink) = (context.accepted(), context.sink());
    let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
    let _subscriptions = RequestSubscriptions::new(live, &uris).await;
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
