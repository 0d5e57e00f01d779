//! Runs that have ended: what their clients get.

use crate::calls::CallLog;
use crate::without_depth;
use agentscript::{Failure, Outcome};
use codecall_base::event::RunId;
use codecall_base::json;
use codecall_base::tool::ErrorCode;
use codecall_tools::pipeline::Pipeline;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A run that has ended.
pub struct Finished {
    /// The outcome.
    pub outcome: Outcome,
    /// The id of the run.
    pub id: RunId,
    /// Whether the run has not ended: it waits for a person, and goes on later. The outcome says only that.
    pub is_paused: bool,
    /// Whether a call of it has waited for a person.
    pub has_waited: bool,
    pub(crate) log: Arc<CallLog>,
    pub(crate) pipeline: Arc<Pipeline>,
}

impl Finished {
    /// Returns about how many bytes have to be processed for the answer to the client.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let outcome = &self.outcome;
        let result = match &outcome.result {
            Ok(text) => text.len(),
            Err(failure) => failure.message.len() + failure.tool_input.as_ref().map_or(0, String::len),
        };
        let unanswered: usize = outcome.unanswered.iter().map(|call| call.input.len()).sum();
        result + unanswered + outcome.logs.iter().map(String::len).sum::<usize>()
    }

    /// Returns the number of calls that have reached their tool.
    #[must_use]
    pub fn tool_calls(&self) -> u64 {
        self.log.reached()
    }

    /// Returns name, status and duration of the calls that matter most beside an error, as JSON, and the number of further ones:
    /// those that have failed first, then those of tools that may write.
    #[must_use]
    pub fn error_calls(&self) -> (Vec<Value>, u64) {
        self.log.error_summary(&|tool| self.pipeline.only_reads(tool))
    }

    /// Returns the outcome in the format of `codecall_execute`: one line of JSON. Its calls are listed, with their
    /// status and duration: in the error of a run that has failed, else beside the result.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (calls, omitted) = match self.outcome.result {
            Ok(_) => self.log.summary(),
            Err(_) => self.error_calls(),
        };
        if calls.is_empty() {
            return self.outcome.to_json();
        }
        let mut more = format!("\"calls\":{}", Value::from(calls));
        if omitted > 0 {
            more.push_str(&format!(",\"omittedCalls\":{omitted}"));
        }
        self.outcome.to_json_with(&more)
    }

    /// Replaces the outcome by a failure outside of the script.
    pub fn fail(&mut self, code: ErrorCode, message: impl Into<String>) {
        let mut failure = Failure::from_code(code, message);
        failure.tool_calls = self.tool_calls();
        self.outcome.result = Err(Box::new(failure));
    }

    /// Removes what JSON parsers refuse because of its depth: a result becomes an error, an error loses its data.
    pub fn remove_depth(&mut self) {
        self.outcome = without_depth(self.outcome.clone());
        if let Err(failure) = &mut self.outcome.result {
            failure.tool_calls = self.log.reached();
        }
    }

    /// Returns the `_meta` of the result: the id of the run, its statistics, and its tool calls (only the first ones if
    /// there are many), including those without an answer.
    #[must_use]
    pub fn meta(&self) -> Map<String, Value> {
        let redact = |input: &str| redact_input(&self.pipeline, input);
        let mut stats = json::parse(&self.outcome.stats.to_json()).unwrap_or_default();
        if self.log.retries() > 0 {
            stats["rateLimitRetries"] = self.log.retries().into();
        }
        let calls = self.log.to_json(&self.outcome, &redact);
        let members = [("codecall/run", self.id.as_str().into()), ("codecall/stats", stats), ("codecall/calls", calls)];
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

/// Parses the input of a call, and removes secrets and personal data.
pub fn redact_input(pipeline: &Pipeline, input: &str) -> Arc<Value> {
    pipeline.masked(&Arc::new(json::parse(input).unwrap_or_default()))
}
