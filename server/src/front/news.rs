//! What upstreams say without being asked, passed on to clients with a session where `expose` is
//! `direct`: changes of lists and of resources that were subscribed to, log messages.

use super::{GRACE_PERIOD, Level, Peers, watch};
use codecall_base::event::LogMessage;
use codecall_upstream::UpstreamNotification;
use rmcp::RoleServer;
use rmcp::model::*;
use rmcp::service::{Peer, ServiceError};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, Weak};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// What a connection wants to hear.
#[derive(Default)]
pub struct Wanted {
    /// Addresses of resources.
    pub resources: Mutex<BTreeSet<String>>,
    /// The least level of log messages.
    pub level: Mutex<Option<Level>>,
}

impl Wanted {
    /// The least level of log messages, where the client has named one.
    pub fn level(&self) -> Option<Level> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Note that a resource is wanted, or is not any more; whether that is new.
    pub fn resource(&self, uri: &str, wanted: bool) -> bool {
        let mut resources = self.resources.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted { resources.insert(uri.to_owned()) } else { resources.remove(uri) }
    }

    fn wants(&self, news: &UpstreamNotification) -> bool {
        match news {
            UpstreamNotification::ResourceListChanged | UpstreamNotification::PromptListChanged => true,
            UpstreamNotification::ResourceUpdated(uri) => {
                self.resources.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
            }
            UpstreamNotification::Log(said) => watch::wants(self.level(), &said.level).is_some(),
        }
    }
}

/// Tell the clients of a connection, for as long as it is there.
pub async fn pass_on(mut news: Receiver<UpstreamNotification>, peers: Weak<Mutex<Peers>>, wanted: Weak<Wanted>) {
    loop {
        let told = match news.recv().await {
            Ok(told) => told,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let (Some(peers), Some(wanted)) = (peers.upgrade(), wanted.upgrade()) else { return };
        if wanted.wants(&told) {
            for peer in super::present(&peers) {
                let _ = tokio::time::timeout(GRACE_PERIOD, tell(&peer, told.clone())).await;
            }
        }
    }
}

#[expect(deprecated, reason = "clients of today ask for log messages")]
async fn tell(peer: &Peer<RoleServer>, news: UpstreamNotification) -> Result<(), ServiceError> {
    match news {
        UpstreamNotification::ResourceListChanged => peer.notify_resource_list_changed().await,
        UpstreamNotification::PromptListChanged => peer.notify_prompt_list_changed().await,
        UpstreamNotification::ResourceUpdated(uri) => {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
        }
        UpstreamNotification::Log(LogMessage { level, logger, data }) => {
            let mut told = LoggingMessageNotificationParam::new(watch::named(&level), data);
            told.logger = logger;
            peer.notify_logging_message(told).await
        }
    }
}
