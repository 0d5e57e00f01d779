//! Offers of upstreams beside tools: resources, prompts and log messages, and the clients that learn of their changes.

use super::Hub;
use codecall_base::client::Client;
use codecall_tools::pipeline::Pipeline;
use codecall_upstream::UpstreamNotification;
use codecall_upstream::mcp::LogLevel;
use futures_util::future::join_all;
use rmcp::{ErrorData, model};
use std::sync::{Arc, PoisonError};
use tokio::sync::broadcast;

impl Hub {
    /// Returns a receiver of the notifications of upstreams. There are none unless resources and prompts are exposed.
    #[must_use]
    pub fn notifications(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.notifications.subscribe()
    }

    /// Subscribes to changes of a resource. Each call needs a call of [`Hub::unsubscribe`].
    ///
    /// # Errors
    /// No upstream accepts the subscription.
    pub async fn subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        self.wait_for_connections().await;
        let add_one = |count: &mut usize| *count += 1;
        let subscribed = || self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if subscribed().get_mut(uri).map(add_one).is_some() {
            return Ok(());
        }
        self.subscribe_upstreams(uri, true).await?;
        *subscribed().entry(uri.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Cancels one subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) {
        let is_last = {
            let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
            match subscribed.get_mut(uri) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                Some(_) => subscribed.remove(uri).is_some(),
                None => false,
            }
        };
        if is_last {
            // If the upstream refuses, its notifications are not forwarded.
            let _ = self.subscribe_upstreams(uri, false).await;
        }
    }

    /// Subscribes or unsubscribes at all upstreams, because a URI does not name its upstream. One success is enough.
    async fn subscribe_upstreams(&self, uri: &str, wanted: bool) -> Result<(), ErrorData> {
        let offering = self.catalogue.upstreams().filter_map(|upstream| upstream.resources_and_prompts());
        let answers = join_all(offering.map(|upstream| upstream.set_subscribed(uri, wanted))).await;
        let mut refused = None;
        for answer in answers {
            match answer {
                Ok(()) => return Ok(()),
                Err(error) if error.code == model::ErrorCode::METHOD_NOT_FOUND => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let unsupported = || ErrorData::resource_not_found("No server supports subscriptions to this resource", None);
        let mut error = refused.unwrap_or_else(unsupported);
        error.message = self.pipeline.masked_text(&error.message).into();
        Err(error)
    }

    /// Sets the only client of this process, which servers with a session may ask for its roots at any time. Call it again
    /// when its roots have changed.
    pub fn set_only_client(&self, client: &Client) {
        *self.only_client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        let upstreams = self.catalogue.upstreams().filter_map(|up| up.resources_and_prompts());
        upstreams.for_each(|up| up.set_only_client(client.clone()));
    }

    /// Asks the servers with a session for log messages of this level and above. If clients want different levels, the lowest
    /// one counts; each client gets what it wants.
    pub fn set_log_level(&self, level: LogLevel) {
        let is_lower = self.log_level.send_if_modified(|lowest| {
            let is_lower = lowest.is_none_or(|lowest| (level as u8) < lowest as u8);
            if is_lower {
                *lowest = Some(level);
            }
            is_lower
        });
        if is_lower {
            self.catalogue.upstreams().filter_map(|up| up.resources_and_prompts()).for_each(|up| up.set_level(level));
        }
    }
}

/// Forwards the notifications of an upstream, redacted, until it is closed.
pub(super) async fn forward_notifications(
    mut receiver: broadcast::Receiver<UpstreamNotification>,
    pipeline: Arc<Pipeline>,
    sender: broadcast::Sender<UpstreamNotification>,
) {
    loop {
        match receiver.recv().await {
            Ok(UpstreamNotification::Log(mut message)) => {
                message.data = (*pipeline.masked(&Arc::new(message.data))).clone();
                message.logger = message.logger.map(|logger| pipeline.masked_text(&logger));
                let _ = sender.send(UpstreamNotification::Log(message));
            }
            Ok(notification) => drop(sender.send(notification)),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
