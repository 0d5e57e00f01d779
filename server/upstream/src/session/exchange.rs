//! A request that may take several rounds: a server without a session answers that it needs input, or with a task.
//!
//! It must not know what the request is.

use super::super::answer::{self, Answer};
use super::super::incoming;
use super::super::notifications::NotificationRouter;
use super::super::questions::{MAX_ROUNDS, REPEAT_AFTER, ask_all, capabilities_of};
use codecall_base::client::{Client, Unanswered};
use codecall_base::event::UpdateSink;
use codecall_base::offload::Busy;
use codecall_base::telemetry::{self, Span};
use codecall_config::{UpstreamConfig, UpstreamKind};
use rmcp::model::*;
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use rmcp::{ErrorData, RoleClient};
use serde_json::Value;
use url::Url;

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
    /// The task has failed: the error of the request.
    TaskFailed(ErrorData),
    /// The server has cancelled the task.
    TaskCancelled,
    /// There was no time to read the result.
    Busy(Busy),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl Exchange<'_> {
    /// Sends a request until it has a result. `request` creates the one of each round, with the answers that the server has
    /// asked for, and the state that it wants back. A call that `needs_task` is made as one, if the server is of
    /// version 2025-11-25.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn run(
        &self,
        needs_task: bool,
        request: impl Fn(Option<InputResponses>, Option<String>) -> ClientRequest,
    ) -> Result<Answer, Failure> {
        let (mut responses, mut state) = (None, None);
        let mut pause = REPEAT_AFTER;
        let version = self.peer.peer_info().map(|info| info.protocol_version.clone());
        if needs_task && version == Some(ProtocolVersion::V_2025_11_25) {
            return self.call_as_task(request(None, None)).await.map(Answer::Result);
        }
        for _ in 0..=MAX_ROUNDS {
            let request = request(responses.take(), state.take());
            let stays_text = incoming::stays_text(&request);
            let answer = match self.send(request).await? {
                ServerResult::CustomResult(CustomResult(Value::String(text))) if stays_text => {
                    answer::read(text).await.map_err(Failure::Busy)?.map_err(ServiceError::McpError)?
                }
                result => Answer::Result(result),
            };
            match answer {
                Answer::Result(ServerResult::InputRequiredResult(required)) => {
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
                Answer::Result(ServerResult::CreateTaskResult(created)) => {
                    return self.wait_for(created.task).await.map(Answer::Result);
                }
                answer => return Ok(answer),
            }
        }
        Err(Failure::Rounds)
    }

    /// Sends one request. It is cancelled when the future is dropped.
    pub(super) async fn send(&self, request: ClientRequest) -> Result<ServerResult, ServiceError> {
        let in_flight = self.router.register_call(self.sink.clone(), self.client.clone());
        let handle = self.peer.send_cancellable_request(request, self.options()).await?;
        in_flight.set_sent(handle.progress_token.clone(), handle.id.clone());
        let mut cancel = CancelOnDrop(Some((self.peer.clone(), handle.id.clone())));
        let response = handle.await_response().await;
        cancel.0 = None;
        response
    }

    /// A server without a session learns with each request what its client can do, and which log messages it wants.
    pub(super) fn options(&self) -> PeerRequestOptions {
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
pub fn describe_result(span: &mut Span, result: &Result<Answer, Failure>) {
    match result {
        Ok(Answer::Result(ServerResult::CallToolResult(result))) if result.is_error == Some(true) => {
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
        Err(Failure::TaskFailed(error)) => {
            span.set("rpc.response.status_code", error.code.0.to_string());
            span.fail(&error.code.0.to_string(), "The task has failed");
        }
        Err(Failure::Busy(_)) => span.fail("busy", "There was no time to read the answer"),
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
            let params = CancelledNotificationParam::new(Some(id), Some("the result is not wanted any more".into()));
            runtime.spawn(async move { peer.notify_cancelled(params).await });
        }
    }
}
