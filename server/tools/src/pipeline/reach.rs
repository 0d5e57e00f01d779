//! Reaching a tool: its server has started, its concurrency limits allow the call, and it answers in time.

use super::client::{self, CallClient};
use super::trace::CallTrace;
use super::{Pipeline, ToolCall};
use crate::catalogue::Entry;
use codecall_base::client::Client;
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use codecall_upstream::UpstreamCall;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

impl Pipeline {
    /// Calls the tool once its concurrency limits allow it, within the time limit.
    /// If it fails because the client was not asked or has not answered, the error says so.
    pub(super) async fn reach(
        &self,
        entry: &Arc<Entry>,
        call: Box<ToolCall>,
        client: &CallClient,
        trace: &CallTrace<'_>,
    ) -> Result<ToolResult, ToolError> {
        let (timeout, cancel) = (call.context.timeout, call.context.cancel.child_token());
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        // The time that a server takes to start is not that of the call.
        if entry.upstream.is_starting() {
            let started = cancel.run_until_cancelled(entry.upstream.first_attempt());
            if tokio::time::timeout(timeout, started).await.is_err() {
                let reason = entry.upstream.unavailable_reason().unwrap_or_default();
                let message = format!("Tool '{}' cannot be called yet: {reason}. Try again soon", entry.name);
                return Err(ToolError::new(ErrorCode::ServerStarting, message));
            }
        }
        // In a box: whatever waits for it would hold it twice.
        let answer = Box::pin(async {
            let _permits = self.permits(&entry.definition).await;
            let ToolCall { input, context, .. } = *call;
            let call = UpstreamCall {
                tool: Arc::clone(&entry.definition),
                input,
                timeout,
                cancel: cancel.clone(),
                run: context.run,
                client: context.client,
                sink: trace.update_sink(),
            };
            // While there is no connection, the call may fail without having reached anything.
            let is_there = || entry.upstream.unavailable_reason().is_none();
            if is_there() {
                trace.reached();
                return entry.upstream.call(call).await;
            }
            let answer = entry.upstream.call(call).await;
            if answer.is_ok() || is_there() {
                trace.reached();
            }
            answer
        });
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{}' was cancelled", entry.name))),
            answer = client::limited(client, timeout, answer) => match answer {
                Some(answer) => client.explain(answer),
                None => Err(ToolError::timeout(&entry.name, timeout_ms)),
            },
        }
    }

    /// Returns the client of a request as something of an upstream reaches it: `what` is a tool, a prompt or a resource. It
    /// is asked until `ended` is cancelled.
    #[must_use]
    pub fn client_of(&self, client: &Client, app: &str, what: &str, ended: CancellationToken) -> Client {
        Client::new(Arc::new(self.call_client(client, app, what, ended)))
    }

    pub(super) fn call_client(&self, client: &Client, app: &str, what: &str, ended: CancellationToken) -> CallClient {
        let (secrets, hooks) = (Arc::clone(&self.secrets), Arc::clone(&self.hooks));
        CallClient::new(client.clone(), app, what, self.interaction, secrets, hooks, ended)
    }

    /// Acquires a permit of every limit that applies to a tool, in the order of the rules, so that no two calls wait for
    /// each other.
    pub(super) async fn permits(&self, tool: &ToolDefinition) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::new();
        for (_, semaphore) in self.concurrency_limits.iter().filter(|(pattern, _)| pattern.matches(tool)) {
            // The semaphore is never closed.
            permits.extend(Arc::clone(semaphore).acquire_owned().await.ok());
        }
        permits
    }
}
