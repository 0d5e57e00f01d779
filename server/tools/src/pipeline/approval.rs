//! Calls that a person has to approve before they are made.
//!
//! The client is asked if it can ask a person. Otherwise the request waits in the store: the call fails with
//! `APPROVAL_REQUIRED`, and is made again when it was decided — by its run, which pauses, or by its client. A decision holds
//! for one call. What cannot be asked or read is not allowed.

use super::client::CallClient;
use super::{Pipeline, ToolCall, bound, canonical};
use crate::catalogue::Entry;
use codecall_base::call::{CallPause, client};
use codecall_base::hidden::visible;
use codecall_base::offload::{self, weight, weight_of};
use codecall_base::tool::{Approval, ErrorCode, OWN_SOURCE, ToolDefinition, ToolError};
use codecall_store::{ApprovalRequest, ApprovalRequests, ApprovalState, Decided, Decision, StoreError, now_ms};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum length of an input as a person sees it, in bytes.
const MAX_SHOWN_BYTES: usize = 4_096;
/// The same where the input is code that will run.
const MAX_SHOWN_CODE_BYTES: usize = 64 << 10;
/// Maximum length of the name of a client, in bytes.
const MAX_CLIENT_BYTES: usize = 100;
/// How often the store is asked for a decision while the client is asked.
const LOOK: Duration = Duration::from_millis(500);
/// How long it waits before it asks a store again that has failed.
const RETRY: Duration = Duration::from_secs(1);

impl Pipeline {
    /// Whether calls of a tool may have to wait for a person.
    #[must_use]
    pub fn needs_approval(&self, tool: &ToolDefinition) -> bool {
        self.approval.of(tool) != Approval::Never
    }

    /// Whether a person may have to approve the call.
    pub(super) fn may_wait(&self, entry: &Entry, call: &ToolCall) -> bool {
        self.needs_approval(&entry.definition) || pause_of(call).is_some_and(|pause| pause.is_repeated)
    }

    /// Returns when a person has approved the call that [may have to wait](Self::may_wait), or need not.
    ///
    /// # Errors
    /// The call is not approved: `APPROVAL_REQUIRED` if it still can be.
    pub(super) async fn approved(&self, entry: &Entry, call: &ToolCall, client: &CallClient) -> Result<(), ToolError> {
        let until = Instant::now() + call.context.timeout;
        loop {
            let failed = match self.try_approved(entry, call, client).await {
                Ok(()) => return Ok(()),
                Err(Unapproved::Call(error)) => return Err(error),
                Err(Unapproved::Store(error)) => error,
            };
            // A script that can wait for a person can wait for the store, too.
            if pause_of(call).is_none() || Instant::now() + RETRY > until {
                return Err(required(entry, &format!("but the approval cannot be read or stored: {failed}")));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn try_approved(&self, entry: &Entry, call: &ToolCall, client: &CallClient) -> Result<(), Unapproved> {
        let mode = self.approval.of(&entry.definition);
        let pause = pause_of(call);
        let is_repeated = pause.is_some_and(|pause| pause.is_repeated);
        let Some(requests) = &self.approval_requests else {
            return Ok(self.ask_only(entry, call, client).await?);
        };
        let work = weight_of(&call.input);
        let (subject, digest) = offload::run(work, || self.identify(entry, call)).await.map_err(ToolError::from)?;
        let gate = Gate { pipeline: self, requests: &**requests, entry, call, pause };
        if let Some(request) = requests.of_subject(&subject).await? {
            return gate.go_on_with(request, client).await;
        }
        if is_repeated {
            let before = requests.of_run(call.context.run.as_ref().map_or("", |run| run.id.as_str()));
            let was_used = before.await?.iter().any(|request| request.subject == subject);
            // The process may have ended while the tool worked, if it was reached.
            check_repeatable(entry)?;
            if was_used || mode == Approval::Never {
                return Ok(());
            }
        }
        let scope = (mode == Approval::Once).then(|| self.scope(entry));
        if let Some(scope) = &scope
            && requests.is_granted(scope).await?
        {
            return Ok(());
        }
        let max = self.approval.max_waiting;
        if !self.approval_room.take() && !self.approval_room.counted(requests.waiting().await?, max) {
            let why = "but too many calls wait for a person already (approval.maxWaiting)";
            return Err(required(entry, why).into());
        }
        let sent = Arc::new(Value::Object(call.input.clone()));
        let input = offload::run(work, || bound::text(self.masked(&sent).to_string(), max_shown(entry)));
        let input = input.await.map_err(ToolError::from)?;
        let now = now_ms();
        let expiry = i64::try_from(self.approval.expiry.as_millis()).unwrap_or(i64::MAX);
        let request = ApprovalRequest {
            id: random_id(),
            subject,
            run: call.context.run.as_ref().filter(|_| pause.is_some()).map(|run| run.id.as_str().to_owned()),
            tool: entry.name.clone(),
            input,
            input_digest: digest,
            client: self.requester(),
            once: scope.is_some(),
            scope,
            asked_ms: now,
            expires_ms: now.saturating_add(expiry),
            ..ApprovalRequest::default()
        };
        requests.ask(&request).await?;
        tracing::info!(approval = request.id, tool = entry.name, "a call waits for a person");
        gate.go_on_with(request, client).await
    }

    /// Asks the client, where there is no store in which a request could wait.
    async fn ask_only(&self, entry: &Entry, call: &ToolCall, client: &CallClient) -> Result<(), ToolError> {
        let sent = Arc::new(Value::Object(call.input.clone()));
        let input =
            offload::run(weight(&sent), || bound::text(self.masked(&sent).to_string(), max_shown(entry))).await?;
        match ask(client, &entry.name, &input, None).await {
            Some((true, _)) => Ok(()),
            Some((false, reason)) => Err(denied(&entry.name, reason.as_deref())),
            None => {
                let message = format!(
                    "Tool '{}' needs the approval of a person, but this client cannot ask one, and there is no store in which the call could wait",
                    entry.name
                );
                Err(ToolError::new(ErrorCode::ApprovalRequired, message))
            }
        }
    }

    /// Who makes the call: a token's name, or how the client names itself.
    fn requester(&self) -> Option<String> {
        let own = self.client().map(str::to_owned).or_else(|| client().map(|name| name.to_string()));
        own.map(|name| bound::text(visible(&self.masked_text(&name)).into_owned(), MAX_CLIENT_BYTES))
    }

    /// Returns which call it is, and the digest of its input.
    fn identify(&self, entry: &Entry, call: &ToolCall) -> (String, String) {
        let input = canonical(&call.input);
        let digest = hex(&[&input]);
        let subject = match call.context.run.as_ref().and_then(|run| Some((run, run.pause.as_ref()?))) {
            // The same call of a script that is replayed has the same number, and must have the same input.
            Some((run, pause)) => hex(&["run", run.id.as_str(), &pause.call.to_string(), &entry.name, &digest]),
            None => hex(&["call", self.requester().as_deref().unwrap_or_default(), &entry.name, &digest]),
        };
        (subject, digest)
    }

    /// What an approval that is given once holds for: a client, and a tool as it is now.
    fn scope(&self, entry: &Entry) -> String {
        let ToolDefinition { description, input_schema, .. } = &*entry.definition;
        let requester = self.requester();
        hex(&["once", requester.as_deref().unwrap_or_default(), &entry.name, description, &input_schema.to_string()])
    }
}

fn pause_of(call: &ToolCall) -> Option<&CallPause> {
    call.context.run.as_ref()?.pause.as_deref()
}

/// Returns how much of the input of a call is shown, in bytes.
fn max_shown(entry: &Entry) -> usize {
    // Code is approved for all calls to come, so a person sees all of it.
    if entry.definition.source == OWN_SOURCE { MAX_SHOWN_CODE_BYTES } else { MAX_SHOWN_BYTES }
}

/// Why a call is not approved.
enum Unapproved {
    Call(ToolError),
    /// The store cannot be used.
    Store(StoreError),
}

impl From<ToolError> for Unapproved {
    fn from(error: ToolError) -> Self {
        Self::Call(error)
    }
}

impl From<StoreError> for Unapproved {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn required(entry: &Entry, why: &str) -> ToolError {
    ToolError::new(ErrorCode::ApprovalRequired, format!("Tool '{}' needs the approval of a person, {why}", entry.name))
}

/// A call that waits for its approval.
struct Gate<'a> {
    pipeline: &'a Pipeline,
    requests: &'a dyn ApprovalRequests,
    entry: &'a Entry,
    call: &'a ToolCall,
    pause: Option<&'a CallPause>,
}

impl Gate<'_> {
    /// Goes on as a request was decided, or asks.
    async fn go_on_with(&self, mut request: ApprovalRequest, client: &CallClient) -> Result<(), Unapproved> {
        if request.state == ApprovalState::Waiting && request.expires_ms <= now_ms() {
            request.state = ApprovalState::Expired;
        }
        if request.state == ApprovalState::Waiting
            && let Some((is_approved, reason)) =
                ask(client, &self.entry.name, &request.input, Some((self.requests, &request.id))).await
        {
            let by = format!("client {}", request.client.as_deref().unwrap_or("without a name"));
            let decision = Decision { is_approved, by, reason };
            let decision = decision.without_secrets(&self.pipeline.secrets.redactor());
            match self.requests.decide(&request.id, &decision).await? {
                // If somebody else was faster, that decision holds.
                Decided::Done(decided) | Decided::TooLate(decided) => request = decided,
                Decided::Unknown => {}
            }
        }
        match request.state {
            ApprovalState::Waiting => {
                if let Some(pause) = self.pause {
                    pause.wait_for(&request.id);
                }
                Err(self.waits(&request).into())
            }
            state => {
                let is_first = self.requests.use_decision(&request.id).await?;
                match state {
                    ApprovalState::Approved if is_first => Ok(()),
                    // Another call, or another process, has used it.
                    ApprovalState::Approved => {
                        Err(required(self.entry, "and its approval was used by another call").into())
                    }
                    ApprovalState::Denied => Err(denied(&self.entry.name, request.reason.as_deref()).into()),
                    ApprovalState::Waiting | ApprovalState::Expired | ApprovalState::Withdrawn => {
                        let message = format!("Nobody has approved the call of tool '{}' in time", self.entry.name);
                        Err(ToolError::new(ErrorCode::ApprovalExpired, message).into())
                    }
                }
            }
        }
    }

    /// The error of a call whose request waits.
    fn waits(&self, request: &ApprovalRequest) -> ToolError {
        let ApprovalRequest { id, .. } = request;
        let again = if self.call.context.run.is_some() { "run the script again" } else { "make the same call again" };
        let mut error = required(
            self.entry,
            &format!(
                "who has not decided yet. A person can do so with 'codecall approve {id}' or 'codecall deny {id}'; then {again}"
            ),
        );
        let details = json!({"approval": id, "tool": request.tool, "expiresMs": request.expires_ms});
        error.details = Some(self.pipeline.masked(&Arc::new(details)).to_string());
        error
    }
}

/// Asks the person of a client. Returns the decision, and why; `None`: nobody has decided, or somebody did in the store.
async fn ask(
    client: &CallClient,
    tool: &str,
    input: &str,
    stored: Option<(&dyn ApprovalRequests, &str)>,
) -> Option<(bool, Option<String>)> {
    let message = format!("Allow this call?\nTool: {}\nInput: {}", visible(tool), visible(input));
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "enum": ["allow", "deny"]},
            "reason": {"type": "string", "title": "Reason (the agent sees it)"},
        },
        "required": ["decision"],
    });
    let asking = client.confirm(json!({"message": message, "requestedSchema": schema}));
    let answer = match stored {
        None => asking.await?,
        Some((requests, id)) => tokio::select! {
            answer = asking => answer?,
            () = decided(requests, id) => return None,
        },
    };
    let reason = answer["content"]["reason"].as_str().map(str::trim).filter(|reason| !reason.is_empty());
    let reason = reason.map(str::to_owned);
    match (answer["action"].as_str(), answer["content"]["decision"].as_str()) {
        (Some("accept"), Some("allow")) => Some((true, reason)),
        (Some("accept"), _) | (Some("decline"), _) => Some((false, reason)),
        // The person has closed the question.
        _ => None,
    }
}

/// Resolves when a request no longer waits.
async fn decided(requests: &dyn ApprovalRequests, id: &str) {
    loop {
        tokio::time::sleep(LOOK).await;
        let request = requests.get(id).await;
        if request.is_ok_and(|request| request.is_none_or(|request| request.state != ApprovalState::Waiting)) {
            return;
        }
    }
}

fn denied(tool: &str, reason: Option<&str>) -> ToolError {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    ToolError::new(ErrorCode::ApprovalDenied, format!("A person has denied the call of tool '{tool}'{reason}"))
}

/// Checks that a call does no harm if it is made again.
fn check_repeatable(entry: &Entry) -> Result<(), ToolError> {
    let says = |hint: &str| entry.definition.annotations.get(hint).and_then(Value::as_bool) == Some(true);
    if says("readOnlyHint") || says("idempotentHint") {
        return Ok(());
    }
    let message = format!(
        "The server ended while it called tool '{}', which may have done its work; the call is not repeated",
        entry.name
    );
    Err(ToolError::new(ErrorCode::CallInterrupted, message))
}

/// Returns the digest of texts, of which none is part of another one.
fn hex(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn random_id() -> String {
    codecall_base::event::RunId::random().as_str()[..12].to_owned()
}
