//! Reaching a tool: its server has started, its concurrency limits allow the call, and it answers in time.

use super::approval::is_repeatable;
use super::client::{self, CallClient};
use super::trace::CallTrace;
use super::{ActiveCall, Pipeline, Target, bound, check};
use crate::catalogue::Entry;
use codecall_base::call::CallContext;
use codecall_base::client::Client;
use codecall_base::offload;
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use codecall_upstream::UpstreamCall;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a durable call waits for its server if it was not sent, or can be made twice: the server may be there again soon.
pub(super) const UNSENT_WAIT: Duration = Duration::from_secs(10);
/// How often it is tried meanwhile.
pub(super) const UNSENT_AGAIN: Duration = Duration::from_millis(200);

impl Pipeline {
    /// Calls the tool once its concurrency limits allow it, within the time limit, and checks its result.
    /// If it fails because the client was not asked or has not answered, the error says so.
    pub(super) async fn reach(&self, active: &mut ActiveCall<'_>) -> Result<ToolResult, ToolError> {
        let ActiveCall { trace, input, target: Some(Target { entry, client }), .. } = active else {
            return Err(ToolError::new(ErrorCode::ToolNotFound, "The call has no tool"));
        };
        let (timeout, cancel) = (trace.context().timeout, trace.context().cancel.child_token());
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        // The time that a server takes to start is not that of the call.
        if entry.upstream.is_starting() || entry.upstream.is_idle() {
            let started = cancel.run_until_cancelled(entry.upstream.first_attempt());
            if Box::pin(tokio::time::timeout(timeout, started)).await.is_err() {
                let reason = entry.upstream.unavailable_reason().unwrap_or_default();
                let message = format!("Tool '{}' cannot be called yet: {reason}. Try again soon", entry.name);
                return Err(ToolError::new(ErrorCode::ServerStarting, message));
            }
        }
        let answer = Box::pin(self.answer(trace, input, entry, client, &cancel));
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{}' was cancelled", entry.name))),
            answer = client::limited(client, timeout, answer) => match answer {
                Some(answer) => client.explain(answer),
                None => Err(ToolError::timeout(&entry.name, u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))),
            },
        };
        match answer {
            Ok(result) => {
                let work = check::result_work(entry.output_validator(), &result);
                let checked = || check::output(entry, result, self.check_output);
                Box::pin(offload::run(work, checked)).await.unwrap_or_else(|busy| Err(busy.into()))
            }
            Err(error) => Err(bound::error(error)),
        }
    }

    /// Returns what the tool answers to an input, which is taken.
    async fn answer(
        &self,
        trace: &CallTrace<'_>,
        input: &mut Map<String, Value>,
        entry: &Entry,
        client: &Arc<CallClient>,
        cancel: &CancellationToken,
    ) -> Result<ToolResult, ToolError> {
        let _permits = Box::pin(self.permits(&entry.definition)).await;
        let CallContext { run, timeout, .. } = trace.context();
        let mut call = UpstreamCall {
            tool: Arc::clone(&entry.definition),
            input: std::mem::take(input),
            timeout: *timeout,
            cancel: cancel.clone(),
            run: run.clone(),
            client: Client::new(Arc::<CallClient>::clone(client)),
            sink: trace.update_sink(),
            sent: Arc::new(AtomicBool::new(true)),
        };
        let Some(hold) = run.as_ref().and_then(|run| run.hold.clone()) else {
            return call_once(trace, entry, call).await;
        };
        let until = Instant::now() + UNSENT_WAIT.min(*timeout / 2);
        let is_repeatable = is_repeatable(entry);
        loop {
            // Another process may have taken the run over while the call waited, also for its permits.
            if let Err(problem) = hold.check().await {
                let message = format!("The call of tool '{}' was not made: {problem}", entry.name);
                return Err(ToolError::new(ErrorCode::ExecutionAborted, message));
            }
            call.sent = Arc::new(AtomicBool::new(true));
            let answer = call_once(trace, entry, call.clone()).await;
            let is_lost = answer.as_ref().is_err_and(|error| error.code == ErrorCode::ServerUnavailable);
            let can_repeat = is_repeatable || !call.sent.load(Ordering::Relaxed);
            if !is_lost || !can_repeat || Instant::now() >= until {
                return answer;
            }
            tokio::time::sleep(UNSENT_AGAIN).await;
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
        CallClient::new(client.clone(), app, what, Arc::clone(&self.interaction), secrets, hooks, ended)
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

/// Hands a call to its tool.
async fn call_once(trace: &CallTrace<'_>, entry: &Entry, call: UpstreamCall) -> Result<ToolResult, ToolError> {
    // While there is no connection, the call may fail without having reached anything.
    let is_there = || entry.upstream.unavailable_reason().is_none();
    let was_there = is_there();
    if was_there {
        trace.reached();
    }
    let answer = entry.upstream.call(call).await;
    if !was_there && (answer.is_ok() || is_there()) {
        trace.reached();
    }
    answer
}
