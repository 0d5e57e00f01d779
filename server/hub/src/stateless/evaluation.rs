//! The result of a step, in which calls have the ids of the client's messages, and its JSON.

use super::CodeId;
use super::messages::{AssistantMessage, FunctionCall, code_result_message, failed_code_result, object};
use agentscript::stateless::{Calls, Divergence, Done, Journal, Step};
use agentscript::{Message, Outcome, Status};
use codecall_base::json;
use codecall_base::tool::ErrorCode;
use codecall_config::StatelessConfig;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The result of a step.
#[derive(Debug)]
pub struct Evaluation {
    /// The id of the run.
    pub id: CodeId,
    /// Whether the script waits, has ended or cannot continue.
    pub step: StepResult,
    /// The messages that the script has sent with `mcpLog` and `mcpNotify` since the step before.
    pub messages: Vec<Message>,
}

/// How far the script has come.
#[derive(Debug)]
pub enum StepResult {
    /// It waits for results of the client's tools.
    Calls(PendingCalls),
    /// It has ended.
    Done {
        /// The outcome.
        outcome: ScriptOutcome,
        /// The ids of calls that were still without a result.
        abandoned: Vec<String>,
    },
    /// It does not make the calls of the journal.
    Diverged(Mismatch),
    /// It waits for a promise that no result can settle. The outcome is the error.
    Deadlock(ScriptOutcome),
}

/// The calls of a script that waits for results.
#[derive(Debug)]
pub struct PendingCalls {
    /// The calls of this step, in their order. Empty if the script waits for earlier ones.
    pub new: Vec<ClientCall>,
    /// The ids of all calls without a result, the new ones included.
    pub waiting: Vec<String>,
    /// The ids of those among them whose results the script does not await.
    pub abandoned: Vec<String>,
    /// The journal of the run, including this step.
    pub journal: Journal,
}

/// A call that the client has to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The input: JSON text of an object.
    pub input: String,
    /// How long the call may take, in milliseconds.
    pub timeout_ms: u64,
}

/// The difference between a script and its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The difference.
    pub message: String,
    /// The id of the first call that differs, if the difference is a call.
    pub call: Option<String>,
}

/// The outcome of a script, as JSON values.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptOutcome {
    /// The status of the run.
    pub status: Status,
    /// The result, or the `error` object of a failure.
    pub result: Result<Value, Value>,
    /// The parts of the result that its JSON text does not hold.
    pub warnings: Vec<String>,
    /// The log of the script.
    pub logs: Vec<String>,
}

impl Evaluation {
    /// Converts a step from a journal. `call_ids` has the ids of the calls in the client's history, by number.
    pub(super) fn new(step: Step, before: Journal, mut call_ids: Vec<String>) -> Self {
        let ids = |call_ids: &[String], numbers: &[u32]| -> Vec<String> {
            numbers.iter().filter_map(|number| call_ids.get(*number as usize).cloned()).collect()
        };
        let failed = |outcome: Outcome| {
            let mut outcome = ScriptOutcome::from(outcome);
            if let Err(error) = &mut outcome.result {
                add_calls(error, &before);
            }
            outcome
        };
        let id = CodeId::from_text(before.id.clone());
        let (step, messages) = match step {
            Step::Calls(calls) => {
                let Calls { new, waiting, abandoned, journal, messages } = *calls;
                call_ids.extend(new.iter().map(|call| id.call(call.number)));
                let new = new.into_iter().map(|call| ClientCall {
                    id: id.call(call.number),
                    tool: call.tool,
                    input: call.input,
                    timeout_ms: call.timeout_ms,
                });
                let calls = PendingCalls {
                    new: new.collect(),
                    waiting: ids(&call_ids, &waiting),
                    abandoned: ids(&call_ids, &abandoned),
                    journal,
                };
                (StepResult::Calls(calls), messages)
            }
            Step::Done(done) => {
                let Done { outcome, abandoned, messages, .. } = *done;
                let abandoned = ids(&call_ids, &abandoned);
                (StepResult::Done { outcome: failed(outcome), abandoned }, messages)
            }
            Step::Diverged(divergence) => (StepResult::Diverged(Mismatch::new(&divergence, &call_ids)), Vec::new()),
            Step::Deadlock(failure) => (StepResult::Deadlock(failed(Outcome::not_compiled(failure))), Vec::new()),
        };
        Self { id, step, messages }
    }

    /// Whether the run has failed, or does not match its journal.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match &self.step {
            StepResult::Calls(_) => false,
            StepResult::Done { outcome, .. } => outcome.status != Status::Ok,
            StepResult::Diverged(_) | StepResult::Deadlock(_) => true,
        }
    }

    /// Converts the result to the answer of `codecall_step` and `/v1/evaluate`. A token is signed with the key of the
    /// configuration.
    #[must_use]
    pub fn into_json(self, config: &StatelessConfig) -> Value {
        let id = self.id.as_str();
        match self.step {
            StepResult::Calls(calls) => calls.into_json(id, config),
            StepResult::Done { outcome, abandoned } => {
                let mut value = object([("status", "done".into()), ("id", id.into()), ("outcome", outcome.to_json())]);
                if !abandoned.is_empty() {
                    value["abandoned"] = json!(abandoned);
                }
                value["messages"] = Value::Array(vec![code_result_message(id, outcome.into_code_result())]);
                value
            }
            StepResult::Diverged(mismatch) => json!({"status": "diverged", "id": id, "error": mismatch.to_json()}),
            StepResult::Deadlock(outcome) => {
                json!({"status": "deadlock", "id": id, "error": outcome.result.err()})
            }
        }
    }
}

impl Evaluation {
    /// Returns what the history records of the step: the answer without token and messages.
    #[must_use]
    pub fn to_record(&self) -> Value {
        let id = self.id.as_str();
        match &self.step {
            StepResult::Calls(calls) => {
                let calls: Vec<Value> = calls.new.iter().map(ClientCall::to_json).collect();
                json!({"status": "calls", "id": id, "calls": calls})
            }
            StepResult::Done { outcome, .. } => {
                object([("status", "done".into()), ("id", id.into()), ("outcome", outcome.to_json())])
            }
            StepResult::Diverged(mismatch) => json!({"status": "diverged", "id": id, "error": mismatch.to_json()}),
            StepResult::Deadlock(outcome) => {
                json!({"status": "deadlock", "id": id, "error": outcome.result.as_ref().err()})
            }
        }
    }
}

impl StepResult {
    /// Returns the result of the code block if the script has ended; `None` if it waits or its journal does not match.
    #[must_use]
    pub fn code_result(&self) -> Option<Value> {
        match self {
            Self::Calls(_) | Self::Diverged(_) => None,
            Self::Done { outcome, .. } | Self::Deadlock(outcome) => Some(outcome.clone().into_code_result()),
        }
    }

    /// Returns the result of the code block for the model; `None` if the script waits for results.
    #[must_use]
    pub fn into_code_result(self) -> Option<Value> {
        match self {
            Self::Calls(_) => None,
            Self::Done { outcome, .. } | Self::Deadlock(outcome) => Some(outcome.into_code_result()),
            Self::Diverged(mismatch) => Some(failed_code_result(mismatch.to_json())),
        }
    }
}

impl PendingCalls {
    /// Returns the message with the new calls; `None` if there are none.
    #[must_use]
    pub fn message(&self) -> Option<AssistantMessage> {
        let calls: Vec<FunctionCall> = self.new.iter().map(FunctionCall::from).collect();
        (!calls.is_empty()).then(|| AssistantMessage { content: Some(String::new()), calls })
    }

    /// Returns the ids of the calls whose results the script awaits.
    pub fn awaited(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().filter(|call| !self.abandoned.contains(call)).map(String::as_str)
    }

    fn into_json(self, id: &str, config: &StatelessConfig) -> Value {
        let messages: Vec<Value> = self.message().iter().map(AssistantMessage::to_json).collect();
        let calls: Vec<Value> = self.new.iter().map(ClientCall::to_json).collect();
        let token = self.journal.compact().token(config.key.as_deref().map(str::as_bytes));
        let mut value = json!({
            "status": "calls",
            "id": id,
            "calls": calls,
            "waiting": self.waiting,
            "token": token,
            "messages": messages,
        });
        if !self.abandoned.is_empty() {
            value["abandoned"] = json!(self.abandoned);
        }
        value
    }
}

impl ClientCall {
    fn to_json(&self) -> Value {
        let input = json::parse(&self.input).unwrap_or_default();
        json!({"id": self.id, "name": self.tool, "input": input, "timeoutMs": self.timeout_ms})
    }
}

impl Mismatch {
    fn new(divergence: &Divergence, call_ids: &[String]) -> Self {
        let call = divergence.call.and_then(|number| call_ids.get(number as usize).cloned());
        Self { message: divergence.to_string(), call }
    }

    fn to_json(&self) -> Value {
        let mut error = json!({"code": ErrorCode::ReplayMismatch.as_str(), "message": self.message});
        if let Some(call) = &self.call {
            error["call"] = call.as_str().into();
        }
        error
    }
}

/// Most calls that an error lists.
const MAX_CALLS: usize = 20;

/// Adds the calls of a journal to an error: their names, and whether they have failed or were cancelled without an answer, these
/// first. How long they took only the client knows.
fn add_calls(error: &mut Value, journal: &Journal) {
    let answers = journal.rounds.iter().flat_map(|round| &round.answers);
    let answered: BTreeMap<u32, bool> = answers.map(|answer| (answer.call, answer.result.is_ok())).collect();
    let all = (0..).zip(journal.rounds.iter().flat_map(|round| &round.calls));
    let (good, others): (Vec<_>, Vec<_>) = all.partition(|(number, _)| answered.get(number) == Some(&true));
    let total = good.len() + others.len();
    let calls = others.into_iter().chain(good).take(MAX_CALLS).map(|(number, call): (u32, _)| {
        let status = match answered.get(&number) {
            Some(true) => "ok",
            Some(false) => "error",
            None => "cancelled",
        };
        json!({"name": call.tool, "status": status})
    });
    let calls: Vec<Value> = calls.collect();
    if !calls.is_empty() {
        error["calls"] = calls.into();
    }
    if total > MAX_CALLS {
        error["omittedCalls"] = (total - MAX_CALLS).into();
    }
}

impl From<Outcome> for ScriptOutcome {
    /// Truncates long parts of an error. A result that JSON parsers would refuse because of its depth becomes an error.
    fn from(mut outcome: Outcome) -> Self {
        if let Err(failure) = &mut outcome.result {
            failure.cut();
        }
        let mut value = json::parse(&outcome.to_json())
            .or_else(|_| {
                outcome = codecall_runs::without_depth(outcome.clone());
                json::parse(&outcome.to_json())
            })
            .unwrap_or_else(|_| json!({}));
        let result = match &outcome.result {
            Ok(_) => Ok(value["result"].take()),
            Err(_) => Err(value["error"].take()),
        };
        Self { status: outcome.status(), result, warnings: outcome.warnings, logs: outcome.logs }
    }
}

impl ScriptOutcome {
    /// Returns the outcome in the format of `codecall_execute`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (key, value) = match &self.result {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        let mut outcome = object([("status", self.status.as_str().into()), (key, value.clone())]);
        if !self.warnings.is_empty() {
            outcome["warnings"] = json!(self.warnings);
        }
        if !self.logs.is_empty() {
            outcome["logs"] = json!(self.logs);
        }
        outcome
    }

    /// Returns the result of a code block: `{status: "success", data}` or `{status: "error", error}`, and the logs.
    #[must_use]
    pub fn into_code_result(self) -> Value {
        let mut result = match self.result {
            Ok(data) => object([("status", "success".into()), ("data", data)]),
            Err(error) => failed_code_result(error),
        };
        if !self.warnings.is_empty() {
            result["warnings"] = self.warnings.into();
        }
        if !self.logs.is_empty() {
            result["logs"] = self.logs.into();
        }
        result
    }
}
