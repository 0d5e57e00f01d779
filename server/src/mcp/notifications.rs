//! Notifications of upstreams, forwarded to clients with a session if `expose` is `direct`: changes of lists and of
//! subscribed resources, log messages.

use super::{Level, NOTIFY_TIMEOUT, Peers, run_events};
use codecall_base::event::LogMessage;
use codecall_upstream::UpstreamNotification;
use rmcp::RoleServer;
use rmcp::model::*;
use rmcp::service::{Peer, ServiceError};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, Weak};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

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
            for peer in super::open_peers(&peers) {
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
