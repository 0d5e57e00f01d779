//! The notifications of a connected server, and what it is told when clients want others.

use crate::mcp;
use crate::notifications::{NotificationRouter, UpstreamNotification};
use rmcp::RoleClient;
use rmcp::model::*;
use rmcp::service::Peer;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Where the notifications of a server go.
pub struct NotificationSink {
    pub tools_changed: mpsc::Sender<()>,
    pub notifications: Arc<NotificationRouter>,
    pub subscribed: watch::Receiver<BTreeSet<String>>,
    pub log_level: watch::Receiver<Option<mcp::LogLevel>>,
    pub roots_version: watch::Receiver<u64>,
}

/// Subscribes to the notifications of a server and forwards them.
///
/// A server with sessions sends them by itself; the resource subscriptions of the previous connection are renewed, and the
/// level of log messages is set.
/// A server without sessions gets one `subscriptions/listen` request, which is repeated when the resources that clients
/// have subscribed to change.
pub async fn forward_notifications(peer: Peer<RoleClient>, mut sink: NotificationSink) {
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
