//! Calls of a connection over two streams, which are answered outside of rmcp.
//!
//! rmcp has a task of kilobytes for each request, for as long as it waits. So it gets a placeholder as the response of a
//! call, which the transport drops, and a small task sends the answer. What rmcp does for its own requests is done here:
//! a cancelled call has no response, and calls that are open at the end of the input still have some time to be answered.

use super::service::conforming;
use super::suspended::Answering;
use super::transport::MessageWriter;
use rmcp::model::*;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long open calls may take after the end of the input, as with rmcp.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The result of which rmcp makes a placeholder. MCP has no results that are strings.
const PLACEHOLDER: &str = "answered elsewhere";

/// The calls of a connection that have no answer.
pub struct OpenCalls {
    writer: MessageWriter,
    /// What cancels them.
    cancels: Mutex<HashMap<RequestId, CancellationToken>>,
    tasks: TaskTracker,
}

impl OpenCalls {
    /// Creates the calls of a connection that is written to by `writer`.
    pub fn new(writer: MessageWriter) -> Arc<Self> {
        Arc::new(Self { writer, cancels: Mutex::default(), tasks: TaskTracker::new() })
    }

    /// Returns what writes to the client.
    pub fn writer(&self) -> &MessageWriter {
        &self.writer
    }

    fn cancels(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.cancels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, which `cancel` cancels.
    pub fn add(&self, id: RequestId, cancel: CancellationToken) {
        self.cancels().insert(id, cancel);
    }

    /// Sends the answer to a call when it is there.
    pub fn answer(self: &Arc<Self>, id: RequestId, answering: Answering, is_modern: bool) {
        let calls = Arc::clone(self);
        self.tasks.spawn(async move {
            let answer = answering.await;
            // In a box: a call that waits has no room for it.
            Box::pin(calls.send(id, conforming(*answer, is_modern))).await;
        });
    }

    async fn send(&self, id: RequestId, answer: Result<ServerResult, ErrorData>) {
        if self.cancels().remove(&id).is_none() {
            tracing::debug!(%id, "a cancelled call has no response");
            return;
        }
        let message = match answer {
            Ok(result) => ServerJsonRpcMessage::response(result, id),
            Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
        };
        if let Err(error) = self.writer.write(&message).await {
            tracing::debug!(%error, "the client does not read the answer to its call");
        }
    }

    /// Cancels a call. It has no response then.
    pub fn cancel(&self, id: &RequestId) {
        let cancel = self.cancels().remove(id);
        if let Some(cancel) = cancel {
            cancel.cancel();
        }
    }

    /// Waits for the answers to open calls for some time, then cancels the rest.
    pub async fn close(&self) {
        self.tasks.close();
        let _ = tokio::time::timeout(GRACE_PERIOD, self.tasks.wait()).await;
        let rest = std::mem::take(&mut *self.cancels());
        rest.into_values().for_each(|cancel| cancel.cancel());
    }
}

/// Returns what rmcp takes for the result of a call.
pub fn placeholder() -> ServerResult {
    ServerResult::CustomResult(CustomResult(PLACEHOLDER.into()))
}

/// Whether a message is the response that rmcp makes of a placeholder.
pub fn is_placeholder(message: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Response(response) = message else { return false };
    let ServerResult::CustomResult(CustomResult(Value::String(result))) = &response.result else { return false };
    result == PLACEHOLDER
}
