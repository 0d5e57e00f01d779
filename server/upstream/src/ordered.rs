//! Progress and log messages of calls, in the order in which a server has sent them, and the notification that a page is done.
//!
//! rmcp handles each notification in a task of its own, so they would arrive in any order, and after the response of
//! their call. This transport routes them while it receives, before rmcp sees the response.

use super::mcp;
use super::notifications::{NotificationRouter, PAGE_DONE};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage, ServerNotification};
use rmcp::transport::Transport;
use std::sync::Arc;

/// A transport that routes progress and log messages.
pub struct Ordered<T> {
    inner: T,
    router: Arc<NotificationRouter>,
}

impl<T> Ordered<T> {
    /// Wraps a transport.
    pub fn new(inner: T, router: Arc<NotificationRouter>) -> Self {
        Self { inner, router }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Ordered<T> {
    type Error = T::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.inner.receive().await?;
        if let JsonRpcMessage::Notification(sent) = &message {
            match &sent.notification {
                // rmcp sees it too, because it extends the time of its request.
                ServerNotification::ProgressNotification(progress) => mcp::progress(&self.router, &progress.params),
                ServerNotification::LoggingMessageNotification(log) => mcp::log(&self.router, &log.params),
                ServerNotification::CustomNotification(custom) if custom.method == PAGE_DONE => {
                    self.router.page_done(custom.params.as_ref());
                }
                _ => {}
            }
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
