//! Calls that their servers answer with tasks: of the extension `io.modelcontextprotocol/tasks`, and of version 2025-11-25, in
//! which tasks were experimental.
//!
//! A call waits for the end of its task. The client learns how far the task is, if it has one for its own request.

use super::exchange::{Exchange, Failure};
use crate::questions::ask_all;
use codecall_base::client::TaskUpdate;
use rmcp::model::*;
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};
use rmcp::{ErrorData, RoleClient};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often a task is looked at, if its server does not say it; the bounds of what a server may say.
const POLL_AFTER: Duration = Duration::from_millis(500);
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

impl Exchange<'_> {
    /// Waits for the end of a task. It is cancelled when the future is dropped.
    pub(super) async fn wait_for(&self, mut task: Task) -> Result<ServerResult, Failure> {
        let id = task.task_id.clone();
        let cancel = CancelTaskRequest::new(CancelTaskParams::new(id.clone()));
        let mut cancel = self.cancel_on_drop(ClientRequest::CancelTaskRequest(cancel));
        let mut answered = BTreeSet::new();
        loop {
            self.changed(working(&task));
            tokio::time::sleep(pause(task.poll_interval_ms)).await;
            let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id.clone())));
            let ServerResult::GetTaskResult(found) = self.send(request).await? else {
                return Err(ServiceError::UnexpectedResponse.into());
            };
            task = found.task.task;
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
                    return Err(self.failed(error.map_err(|_| ServiceError::UnexpectedResponse)?));
                }
                TaskPayload::Cancelled => {
                    cancel.0 = None;
                    return Err(self.cancelled());
                }
                _ => {}
            }
        }
    }

    /// Makes a call as a task of version 2025-11-25, and waits for its end. It is cancelled when the future is dropped.
    pub(super) async fn call_as_task(&self, request: ClientRequest) -> Result<ServerResult, Failure> {
        let unexpected = || Failure::Service(ServiceError::UnexpectedResponse);
        let mut request = serde_json::to_value(request).map_err(|_| unexpected())?;
        let mut params = request["params"].take();
        params["task"] = json!({});
        let created = self.custom("tools/call", params).await?;
        let mut task = created["task"].clone();
        let id = json!({"taskId": task["taskId"].as_str().ok_or_else(unexpected)?});
        let interval = task["pollInterval"].as_u64();
        let cancel = CustomRequest::new("tasks/cancel", Some(id.clone()));
        let mut cancel = self.cancel_on_drop(ClientRequest::CustomRequest(cancel));
        while task["status"] == "working" {
            let message = task["statusMessage"].as_str().map(str::to_owned);
            let (poll_interval, ttl) = (Some(pause(interval)), created["task"]["ttl"].as_u64());
            self.changed(TaskUpdate::Working { message, poll_interval, ttl: ttl.map(Duration::from_millis) });
            tokio::time::sleep(pause(interval)).await;
            task = self.custom("tasks/get", id.clone()).await?;
        }
        // If the task needs an input, the server asks for it while it is asked for the result.
        let result = self.send(ClientRequest::CustomRequest(CustomRequest::new("tasks/result", Some(id)))).await;
        match result {
            Ok(result) => {
                cancel.0 = None;
                Ok(result)
            }
            Err(ServiceError::McpError(_)) if task["status"] == "cancelled" => {
                cancel.0 = None;
                Err(self.cancelled())
            }
            Err(ServiceError::McpError(error)) => {
                cancel.0 = None;
                Err(self.failed(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a request that the library does not know, and returns its result.
    async fn custom(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        let result = self.send(request).await?;
        serde_json::to_value(result).map_err(|_| Failure::Service(ServiceError::UnexpectedResponse))
    }

    fn changed(&self, update: TaskUpdate) {
        if let Some(port) = self.client.port() {
            port.task_changed(update);
        }
    }

    fn failed(&self, error: ErrorData) -> Failure {
        self.changed(TaskUpdate::Failed { code: error.code.0 });
        Failure::TaskFailed(error)
    }

    fn cancelled(&self) -> Failure {
        self.changed(TaskUpdate::Cancelled);
        Failure::TaskCancelled
    }

    fn cancel_on_drop(&self, request: ClientRequest) -> CancelTaskOnDrop {
        CancelTaskOnDrop(Some(Box::new((self.peer.clone(), request, self.options()))))
    }
}

fn working(task: &Task) -> TaskUpdate {
    TaskUpdate::Working {
        message: task.status_message.clone(),
        poll_interval: Some(pause(task.poll_interval_ms)),
        ttl: task.ttl_ms.map(Duration::from_millis),
    }
}

/// Returns how long to wait before a task is looked at again. `interval`: in milliseconds, as its server has it.
fn pause(interval: Option<u64>) -> Duration {
    interval.map_or(POLL_AFTER, Duration::from_millis).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)
}

/// Sends the request that cancels a task when it is dropped, unless it was emptied before.
struct CancelTaskOnDrop(Option<Box<(Peer<RoleClient>, ClientRequest, PeerRequestOptions)>>);

impl Drop for CancelTaskOnDrop {
    fn drop(&mut self) {
        let Some(task) = self.0.take() else { return };
        // When the process ends, there is no runtime any more, and the server ends too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let (peer, request, options) = *task;
                if let Ok(handle) = peer.send_cancellable_request(request, options).await {
                    let _ = handle.await_response().await;
                }
            });
        }
    }
}
