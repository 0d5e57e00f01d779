//! Calls that a person has to approve before they are made.
//!
//! The client is asked if it can ask a person, and its person may decide. Otherwise the request waits in the store. The
//! call fails with `APPROVAL_REQUIRED`. After the decision its run, which pauses, or its client makes it again. A
//! decision holds for one call, and for the input that the person has seen. A question that cannot be asked or read
//! allows nothing.

mod question;

use super::client::CallClient;
use super::{Pipeline, ToolCall, bound, canonical};
use crate::catalogue::Entry;
use codecall_base::call::{CallPause, client};
use codecall_base::hidden::visible;
use codecall_base::offload::{self, weight_of};
use codecall_base::tool::{Approval, ErrorCode, ToolDefinition, ToolError};
use codecall_store::{ApprovalRequest, ApprovalRequests, ApprovalState, Decided, Decision, StoreError, long_members};
use question::{Question, ask};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum length of an input that a person is asked about, in bytes: all of it is stored and shown.
const MAX_INPUT_BYTES: usize = 256 << 10;
/// Maximum length of the name of a client, in bytes.
const MAX_CLIENT_BYTES: usize = 100;
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
        if !self.approval_quota.take() && !self.approval_quota.counted(requests.waiting().await?, max) {
            let why = "but too many calls wait for a person already (approval.maxWaiting)";
            return Err(required(entry, why).into());
        }
        let input = self.shown(entry, call).await?;
        let now = requests.now_ms();
        let expiry = i64::try_from(self.approval.expiry.as_millis()).unwrap_or(i64::MAX);
        let request = ApprovalRequest {
            id: random_id(),
            subject,
            run: call.context.run.as_ref().filter(|_| pause.is_some()).map(|run| run.id.as_str().to_owned()),
            tool: entry.name.clone(),
            input_bytes: input.len() as u64,
            long_members: long_members(&input),
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
        let work = weight_of(&call.input);
        let digest = offload::run(work, || digest_of(&call.input)).await?;
        let input = self.shown(entry, call).await?;
        let question = Question { tool: &entry.name, input: &input, digest: &digest };
        let answer = if self.client_decides { ask(client, question, None).await } else { None };
        match answer {
            Some((true, _)) => Ok(()),
            Some((false, reason)) => Err(denied(&entry.name, reason.as_deref())),
            None => {
                let why = match self.client_decides {
                    true => "this client cannot ask one",
                    false => "only operators may decide (approval.decidedBy)",
                };
                let message = format!(
                    "Tool '{}' needs the approval of a person, but {why}, and there is no store in which the call could wait",
                    entry.name
                );
                Err(ToolError::new(ErrorCode::ApprovalRequired, message))
            }
        }
    }

    /// Returns the input of a call as a person sees it: all of it, without secrets and personal data.
    async fn shown(&self, entry: &Entry, call: &ToolCall) -> Result<String, ToolError> {
        let sent = Arc::new(Value::Object(call.input.clone()));
        let input = offload::run(weight_of(&call.input), || self.masked(&sent).to_string()).await?;
        if input.len() > MAX_INPUT_BYTES {
            let why = format!(
                "but its input has {} bytes, more than a person is asked about ({MAX_INPUT_BYTES}); make it shorter",
                input.len()
            );
            return Err(required(entry, &why));
        }
        Ok(input)
    }

    /// Returns the name of the caller: a token's name, or how the client names itself.
    fn requester(&self) -> Option<String> {
        let own = self.client().map(str::to_owned).or_else(|| client().map(|name| name.to_string()));
        own.map(|name| bound::text(visible(&self.masked_text(&name)).into_owned(), MAX_CLIENT_BYTES))
    }

    /// Whose the call is: the key of the client, which nobody else has, or how the only client names itself.
    fn owner(&self) -> Option<String> {
        self.owner.as_deref().map(str::to_owned).or_else(|| self.requester())
    }

    /// Returns which call it is, and the digest of its input.
    fn identify(&self, entry: &Entry, call: &ToolCall) -> (String, String) {
        let input = canonical(&call.input);
        let shown = digest_of(&call.input);
        // Of requests that are stored.
        let digest = hex(&[&input]);
        let subject = match call.context.run.as_ref().and_then(|run| Some((run, run.pause.as_ref()?))) {
            // The same call of a script that is replayed has the same number, and must have the same input.
            Some((run, pause)) => hex(&["run", run.id.as_str(), &pause.call.to_string(), &entry.name, &digest]),
            None => hex(&["call", self.owner().as_deref().unwrap_or_default(), &entry.name, &digest]),
        };
        (subject, shown)
    }

    /// Returns the scope of an approval that is given once: a client, and a tool as it is now.
    fn scope(&self, entry: &Entry) -> String {
        let ToolDefinition { description, input_schema, .. } = &*entry.definition;
        let owner = self.owner();
        hex(&["once", owner.as_deref().unwrap_or_default(), &entry.name, description, &input_schema.to_string()])
    }
}

fn pause_of(call: &ToolCall) -> Option<&CallPause> {
    call.context.run.as_ref()?.pause.as_deref()
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
        if request.state == ApprovalState::Waiting && request.expires_ms <= self.requests.now_ms() {
            request.state = ApprovalState::Expired;
        }
        let question = Question { tool: &self.entry.name, input: &request.input, digest: &request.input_digest };
        if request.state == ApprovalState::Waiting
            && self.pipeline.client_decides
            && let Some((is_approved, reason)) = ask(client, question, Some((self.requests, &request.id))).await
        {
            let by = format!("client {}", request.client.as_deref().unwrap_or("without a name"));
            let decision = Decision { digest: Some(request.input_digest.clone()), is_approved, by, reason };
            let decision = decision.without_secrets(&self.pipeline.secrets.redactor());
            match self.requests.decide(&request.id, &decision).await? {
                // If somebody else was faster, that decision holds.
                Decided::Done(decided) | Decided::TooLate(decided) | Decided::OtherInput(decided) => request = decided,
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
        let details = json!({
            "approval": id, "tool": request.tool, "expiresMs": request.expires_ms, "inputDigest": request.input_digest,
        });
        error.details = Some(self.pipeline.masked(&Arc::new(details)).to_string());
        error
    }
}

fn denied(tool: &str, reason: Option<&str>) -> ToolError {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    ToolError::new(ErrorCode::ApprovalDenied, format!("A person has denied the call of tool '{tool}'{reason}"))
}

/// Whether a call does no harm if it is made again.
pub(super) fn is_repeatable(entry: &Entry) -> bool {
    let says = |hint: &str| entry.definition.annotations.get(hint).and_then(Value::as_bool) == Some(true);
    says("readOnlyHint") || says("idempotentHint")
}

/// Checks that a call does no harm if it is made again.
fn check_repeatable(entry: &Entry) -> Result<(), ToolError> {
    if is_repeatable(entry) {
        return Ok(());
    }
    let message = format!(
        "The server ended while it called tool '{}', which may have done its work; the call is not repeated",
        entry.name
    );
    Err(ToolError::new(ErrorCode::CallInterrupted, message))
}

/// Returns the SHA-256 digest of an input: of its JSON text without spaces, with sorted members.
fn digest_of(input: &Map<String, Value>) -> String {
    let text = Value::Object(sorted(input)).to_string();
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// Sorts the members of all objects. It may recurse, because JSON parsers limit the depth of values.
fn sorted(members: &Map<String, Value>) -> Map<String, Value> {
    fn value(unsorted: &Value) -> Value {
        match unsorted {
            Value::Object(members) => Value::Object(sorted(members)),
            Value::Array(items) => items.iter().map(value).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => unsorted.clone(),
        }
    }
    let mut names: Vec<&String> = members.keys().collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), value(&members[name]))).collect()
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
