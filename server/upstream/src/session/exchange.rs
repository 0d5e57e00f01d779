//! A request that may take several rounds: a server without a session answers that it needs input, or with a task.
//!
//! It must not know what the request is.

use super::super::notifications::NotificationRouter;
use super::super::questions::{MAX_ROUNDS, REPEAT_AFTER, ask_all, capabilities_of};
use codecall_base::client::{Client, Unanswered};
use codecall_base::event::UpdateSink;
use codecall_base::telemetry::{self, Span};
use codecall_config::{UpstreamConfig, UpstreamKind};
use rmcp::RoleClient;
use rmcp::model::*;
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use url::Url;

/// How often a task is looked at, if its server does not say it; the bounds of what a server may say.
const POLL_AFTER: Duration = Duration::from_millis(500);
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

/// A request and all that belongs to it.
pub struct Exchange<'a> {
    pub peer: &'a Peer<RoleClient>,
    pub router: &'a NotificationRouter,
    /// Receives progress and log messages.
    pub sink: UpdateSink,
    /// Answers what the server asks.
    pub client: Client,
}

/// Why a request has no result.
pub enum Failure {
    /// An error of the protocol or the transport.
    Service(ServiceError),
    /// The client has not answered what the server asks.
    Unanswered(Unanswered),
    /// The server asks again and again.
    Rounds,
    /// The server has cancelled the task.
    TaskCancelled,
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl Exchange<'_> {
    /// Sends a request until it has a result. `request` creates the one of each round, with the answers that the server has
    /// asked for, and the state that it wants back.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn run(
        &self,
        request: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
    ) -> Result<ServerResult, Failure> {
        let (mut responses, mut state) = (None, None);
        let mut pause = REPEAT_AFTER;
        for _ in 0..=MAX_ROUNDS {
            match self.send(request(responses.take(), state.take())).await? {
                ServerResult::InputRequiredResult(required) => {
                    state = required.request_state;
                    match required.input_requests.filter(|requests| !requests.is_empty()) {
                        Some(requests) => {
                            responses = Some(ask_all(&self.client, requests).await.map_err(Failure::Unanswered)?);
                        }
                        None => {
                            tokio::time::sleep(pause).await;
                            pause *= 2;
                        }
                    }
                }
                ServerResult::CreateTaskResult(created) => return self.wait_for(created.task).await,
                result => return Ok(result),
            }
        }
        Err(Failure::Rounds)
    }

    /// Sends one request. It is cancelled when the future is dropped.
    async fn send(&self, request: ClientRequest) -> Result<ServerResult, ServiceError> {
        let in_flight = self.router.register_call(self.sink.clone(), self.client.clone());
        let handle = self.peer.send_cancellable_request(request, self.options()).await?;
        in_flight.set_sent(handle.progress_token.clone(), handle.id.clone());
        let mut cancel = CancelOnDrop(Some((self.peer.clone(), handle.id.clone())));
        let response = handle.await_response().await;
        cancel.0 = None;
        response
    }

    /// A server without a session learns with each request what its client can do, and which log messages it wants.
    fn options(&self) -> PeerRequestOptions {
        let mut meta = RequestMetaObject::default();
        if let Some(trace) = telemetry::current() {
            meta.set_traceparent(trace.parent());
            trace.state.as_deref().into_iter().for_each(|state| meta.set_tracestate(state));
        }
        if self.peer.peer_info().is_none_or(|info| info.protocol_version.as_str() < "2026-07-28") {
            return PeerRequestOptions::no_options().with_meta(meta);
        }
        meta.set_client_capabilities(capabilities_of(&self.client));
        let level = self.client.port().and_then(|port| port.log_level());
        if let Some(level) = level.and_then(|level| serde_json::from_value(level.into()).ok()) {
            meta.set_log_level(level);
        }
        PeerRequestOptions::no_options().with_meta(meta)
    }

    /// Waits for the end of a task. It is cancelled when the future is dropped.
    async fn wait_for(&self, task: Task) -> Result<ServerResult, Failure> {
        let id = task.task_id;
        let mut cancel = CancelTaskOnDrop(Some((self.peer.clone(), id.clone(), self.options())));
        let mut interval = task.poll_interval_ms;
        let mut answered = BTreeSet::new();
        loop {
            let pause = interval.map_or(POLL_AFTER, Duration::from_millis).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1);
            tokio::time::sleep(pause).await;
            let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id.clone())));
            let ServerResult::GetTaskResult(found) = self.send(request).await? else {
                return Err(ServiceError::UnexpectedResponse.into());
            };
            interval = found.task.task.poll_interval_ms;
            match found.task.payload {
                TaskPayload::InputRequired { mut input_requests } => {
                    // A server may repeat a question whose answer it has not read yet.
                    input_requests.retain(|key, _| !answered.contains(key));
                    if !input_requests.is_empty() {
                        let responses = ask_all(&self.client, input_requests).await.map_err(Failure::Unanswered)?;
                        answered.extend(responses.keys().cloned());
                        let params = UpdateTaskParams::new(id.clone(), responses);
                        self.send(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params))).await?;
                    }
                }
                TaskPayload::Completed { result } => {
                    cancel.0 = None;
                    return serde_json::from_value(Value::Object(result))
                        .map_err(|_| Failure::Service(ServiceError::UnexpectedResponse));
                }
                TaskPayload::Failed { error } => {
                    cancel.0 = None;
                    let error = serde_json::from_value(Value::Object(error));
                    return Err(error.map_or(ServiceError::UnexpectedResponse, ServiceError::McpError).into());
                }
                TaskPayload::Cancelled => {
                    cancel.0 = None;
                    return Err(Failure::TaskCancelled);
                }
                _ => {}
            }
        }
    }
}

/// Adds to a span what is called, and where.
pub fn describe_call(span: &mut Span, config: &UpstreamConfig, app: &str, tool: &str, peer: &Peer<RoleClient>) {
    if !span.is_recorded() {
        return;
    }
    span.set("mcp.method.name", "tools/call");
    span.set("gen_ai.operation.name", "execute_tool");
    span.set("gen_ai.tool.name", tool);
    span.set("codecall.app", app);
    if let Some(info) = peer.peer_info() {
        span.set("mcp.protocol.version", info.protocol_version.as_str());
    }
    match &config.kind {
        UpstreamKind::Stdio(_) => span.set("network.transport", "pipe"),
        UpstreamKind::Http(http) => {
            span.set("network.transport", "tcp");
            span.set("network.protocol.name", "http");
            if let Ok(url) = Url::parse(&http.url) {
                span.set("server.address", url.host_str().unwrap_or_default());
                span.set("server.port", u64::from(url.port_or_known_default().unwrap_or_default()));
            }
        }
    }
}

/// Adds to a span how its call has ended.
pub fn describe_result(span: &mut Span, result: &Result<ServerResult, Failure>) {
    match result {
        Ok(ServerResult::CallToolResult(result)) if result.is_error == Some(true) => {
            span.fail("tool_error", "The tool says that it has failed");
        }
        Ok(_) => {}
        Err(Failure::Service(ServiceError::McpError(error))) => {
            span.set("rpc.response.status_code", error.code.0.to_string());
            span.fail(&error.code.0.to_string(), "The server answers with an error");
        }
        Err(Failure::Service(_)) => span.fail("transport", "There is no answer"),
        Err(Failure::Unanswered(_)) => span.fail("unanswered", "The client has not answered what the server asks"),
        Err(Failure::Rounds) => span.fail("rounds", "The server asks again and again"),
        Err(Failure::TaskCancelled) => span.fail("cancelled", "The server has cancelled the task"),
    }
}

/// Sends `notifications/cancelled` for a request when it is dropped, unless it was emptied before.
struct CancelOnDrop(Option<(Peer<RoleClient>, RequestId)>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some((peer, id)) = self.0.take() else { return };
        // When the process ends, there is no runtime any more, and the server ends too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let params = CancelledNotificationParam::new(Some(id), Some("the result is no longer wanted".into()));
            runtime.spawn(async move { peer.notify_cancelled(params).await });
        }
    }
}

/// Does the same for a task.
struct CancelTaskOnDrop(Option<(Peer<RoleClient>, String, PeerRequestOptions)>);

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        let Some((peer, id, options)) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)));
            runtime.spawn(async move {
                if let Ok(handle) = peer.send_cancellable_request(request, options).await {
                    let _ = handle.await_response().await;
                }
            });
        }
    }
}
