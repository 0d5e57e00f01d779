//! Calls over HTTP without a session, which are answered outside of rmcp's service of their request.
//!
//! rmcp serves each such request with a task and queues of its own, of tens of kilobytes, for as long as it waits. So rmcp only
//! checks a call. Whoever serves HTTP puts a [`Detachment`] into the extensions of the request, takes the call from it, and
//! drops the response of rmcp. This module does not know HTTP.

use super::Handler;
use super::run_events::Outlet;
use super::service::{Passed, conforming};
use axum::http::request::Parts;
use futures_channel::mpsc;
use rmcp::RoleServer;
use rmcp::model::*;
use rmcp::service::{Peer, RequestContext, serve_directly};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::CancellationToken;

/// Messages in the queue to a client that does not read. More of them wait.
const QUEUE_CAPACITY: usize = 16;

/// Messages to the client of a call; the last one is the answer.
// Not tokio's channel: each would have room for 32 messages.
pub type ClientMessages = mpsc::Receiver<Box<ServerJsonRpcMessage>>;

/// Sends messages to the client of a call.
#[derive(Clone)]
pub(super) struct MessageSender(mpsc::Sender<Box<ServerJsonRpcMessage>>);

impl MessageSender {
    /// Waits for room in the queue. If the client is gone, nothing is sent.
    pub(super) async fn send(&mut self, message: Box<ServerJsonRpcMessage>) {
        if poll_fn(|context| self.0.poll_ready(context)).await.is_ok() {
            let _ = self.0.start_send(message);
        }
    }
}

/// Where a call goes that is taken out of rmcp.
#[derive(Clone, Default)]
pub struct Detachment(Arc<Mutex<Option<DetachedCall>>>);

/// A call that rmcp has checked.
pub struct DetachedCall {
    handler: Handler,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
}

impl Detachment {
    /// Returns that of a request over HTTP without a session; `None`: rmcp answers the request.
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let has_session = context.meta.protocol_version().is_none_or(|version| version.has_initialize());
        let parts = context.extensions.get::<Parts>().filter(|_| !has_session)?;
        parts.extensions.get::<Self>().cloned()
    }

    /// Takes a call out of rmcp.
    pub(super) fn put(&self, handler: &Handler, request: CallToolRequestParams, context: RequestContext<RoleServer>) {
        // The peer of the request would keep the queues of its service.
        let mut detached = RequestContext::new(context.id, silent_peer());
        (detached.meta, detached.extensions) = (context.meta, context.extensions);
        let call = DetachedCall { handler: handler.clone(), request, context: detached };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    /// Returns the call; `None`: the request is no call, or is answered by rmcp.
    #[must_use]
    pub fn take(&self) -> Option<DetachedCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl DetachedCall {
    /// Begins the call, in a task of its own: also one that is cancelled is recorded. Returns the messages to its client.
    #[must_use]
    pub fn begin(self, cancel: CancellationToken) -> ClientMessages {
        let Self { handler, request, mut context } = self;
        let (sender, messages) = mpsc::channel(QUEUE_CAPACITY);
        let mut sender = MessageSender(sender);
        context.ct = cancel;
        context.extensions.insert(Outlet::Stream(sender.clone()));
        let id = context.id.clone();
        let answer = handler.answer_call(request, context);
        tokio::spawn(async move {
            let message = match conforming(*answer.await, true) {
                Ok(result) => ServerJsonRpcMessage::response(result, id),
                Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
            };
            sender.send(Box::new(message)).await;
        });
        messages
    }
}

/// Returns a peer that is not connected: without a session, nothing is sent but on the stream of a request.
fn silent_peer() -> Peer<RoleServer> {
    static SILENT: OnceLock<Peer<RoleServer>> = OnceLock::new();
    let streams = || (tokio::io::empty(), tokio::io::sink());
    SILENT.get_or_init(|| serve_directly(Passed::default(), streams(), None).peer().clone()).clone()
}
