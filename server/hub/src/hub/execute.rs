//! Runs of scripts, steps, and direct calls of tools.

use super::Hub;
use crate::stateless::{Evaluate, Refusal, StepAnswer};
use agentscript::Dialect;
use codecall_base::call::{CallContext, Caller};
use codecall_base::client::Client;
use codecall_base::event::{EventSink, RunEvent, RunId};
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_runs::{ExecuteRequest, Finished, Refused};
use codecall_tools::pipeline::ToolCall;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Codes of runs that did not begin.
const REFUSALS: [ErrorCode; 2] = [ErrorCode::QueueFull, ErrorCode::QueueTimeout];

impl Hub {
    /// Runs a script. If it or its context mentions servers whose tools are not known, it begins once they are, or after the
    /// time limit of a tool call.
    pub fn execute(
        &self,
        request: impl Into<Box<ExecuteRequest>>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> impl Future<Output = Finished> + Send {
        self.execute_request(request.into(), sink, cancel)
    }

    async fn execute_request(
        &self,
        mut request: Box<ExecuteRequest>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Finished {
        let client = self.principal.as_ref().map(|principal| Arc::clone(&principal.name));
        let active = self.services.active.begin(&mut request, client, &cancel);
        let cancel = active.cancel();
        Box::pin(self.prepare(&mut request, &cancel)).await;
        let runs = match (request.dialect, &self.code_runs) {
            (Dialect::Sync, Some(runs)) => runs,
            (Dialect::Sync | Dialect::Async, _) => &*self.runs,
        };
        let permits =
            self.principal.as_ref().filter(|_| request.parent.is_none()).and_then(|principal| principal.runs.as_ref());
        let finished = match permits.map(|permits| Arc::clone(permits).try_acquire_owned()).transpose() {
            Ok(_permit) => runs.execute(request, self.redacting(sink), cancel).await,
            Err(_) => {
                let message = "This client already runs as many scripts at once as it may; try again later";
                runs.refuse(Refused { code: ErrorCode::QueueFull, message: message.into() })
            }
        };
        Box::pin(self.ended(finished)).await
    }

    /// Withdraws the approvals that a run has waited for, and counts a run that was refused.
    async fn ended(&self, finished: Finished) -> Finished {
        if finished.has_waited
            && !finished.is_paused
            && let Some(durable) = &self.services.durable
        {
            durable.withdraw(&finished.id).await;
        }
        if let Err(failure) = &finished.outcome.result
            && let Some(code) = REFUSALS.iter().find(|code| failure.code == code.as_str())
        {
            self.services.metrics.refused(*code);
        }
        finished
    }

    /// Waits for servers that a script mentions, and gives its run the journal that it needs to wait for a person.
    async fn prepare(&self, request: &mut ExecuteRequest, cancel: &CancellationToken) {
        let texts = [&*request.script, request.context.as_deref().unwrap_or_default()];
        let known = cancel.run_until_cancelled(self.catalogue.wait_for_mentioned(&texts));
        let limit = Duration::from_millis(request.policy.limits.tool_timeout_ms);
        // The run of a cancelled request says so itself, and a call of an unknown tool says why it is not known.
        let _ = tokio::time::timeout(limit, known).await;
        if let Some(durable) = &self.services.durable
            && request.journal.is_none()
            && self.needs_approval()
        {
            let id = request.id.get_or_insert_with(RunId::random).clone();
            request.journal = durable.journal(self, &id, request).await;
        }
    }

    /// Wraps an event sink so that messages of the script are redacted. Events of tool calls are redacted already.
    fn redacting(&self, sink: EventSink) -> EventSink {
        let sink = sink?;
        let secrets = Arc::clone(&self.config.secrets);
        Some(Arc::new(move |mut event| {
            if let RunEvent::Message(message) = &mut event {
                secrets.redactor().redact_message(message);
            }
            sink(event);
        }))
    }

    /// Calls a listed tool; `None` if there is none of that name. The result is that of the upstream, unchanged.
    pub async fn direct(
        &self,
        name: &str,
        input: Map<String, Value>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Option<Result<ToolResult, ToolError>> {
        self.direct_for(name, false, input, Client::default(), sink, cancel).await
    }

    /// Does the same for a client that the tool can ask. `is_offered`: the client's list has the tools as they are.
    pub async fn direct_for(
        &self,
        name: &str,
        is_offered: bool,
        input: Map<String, Value>,
        client: Client,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Option<Result<ToolResult, ToolError>> {
        let is_known = || {
            let snapshot = self.catalogue.snapshot();
            snapshot.listed().lookup(name).is_some() || (is_offered && snapshot.offered().lookup(name).is_some())
        };
        if !is_known() && cancel.run_until_cancelled(self.wait_for_tools()).await.is_none() {
            return Some(Err(ToolError::new(ErrorCode::ExecutionAborted, "The request was cancelled")));
        }
        // The pipeline checks again that the tool exists; this decides whether the name is one of a tool.
        if !is_known() {
            return None;
        }
        let call = ToolCall {
            tool: name.to_owned(),
            input,
            context: CallContext { client, ..self.context(Caller::Direct, sink, cancel) },
            allowed: None,
            apps: None,
        };
        Some(self.pipeline.call(call).await)
    }

    /// Returns the context of a call that no script makes.
    #[must_use]
    pub fn context(&self, caller: Caller, sink: EventSink, cancel: CancellationToken) -> CallContext {
        let timeout = Duration::from_millis(self.config.policy.limits.tool_timeout_ms);
        CallContext { caller, run: None, timeout, client: Client::default(), sink, cancel }
    }

    /// Takes a step of a run whose client owns the tools, and records it.
    ///
    /// # Errors
    /// The step was not taken.
    pub async fn step(&self, request: Evaluate, cancel: CancellationToken) -> Result<StepAnswer, Refusal> {
        let Some(history) = &self.services.history else { return self.stateless.evaluate(request, cancel).await };
        let (script, context, began) =
            (request.script().to_owned(), request.context.clone().map(Value::Object), Instant::now());
        let answer = self.stateless.evaluate(request, cancel).await?;
        history.step(&script, context.as_ref(), &answer.value, answer.is_error, began.elapsed());
        Ok(answer)
    }
}
