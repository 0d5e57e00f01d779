//! How far a script comes with its journal.

use crate::journal::Journal;
use crate::run::kind;
use agentscript::stateless::{self, StepCall};
use agentscript::{Failure, Outcome};
use serde_json::Value;

/// A step, ready for a host.
#[derive(Clone, Debug)]
pub struct Step {
    journal: Option<Journal>,
    text: String,
}

impl Step {
    pub(crate) fn new(step: stateless::Step) -> Self {
        match step {
            stateless::Step::Calls(calls) => {
                let rows: Vec<String> = calls.new.iter().map(row).collect();
                let (waiting, abandoned) = (Value::from(calls.waiting), Value::from(calls.abandoned));
                let text = format!(r#"{{"calls":[{}],"waiting":{waiting},"abandoned":{abandoned}}}"#, rows.join(","));
                Self { journal: Some(Journal(calls.journal)), text }
            }
            stateless::Step::Done(done) => Self::done(&done.outcome),
            stateless::Step::Diverged(divergence) => Self::failed(divergence.failure()),
            stateless::Step::Deadlock(failure) => Self::failed(*failure),
        }
    }

    fn done(outcome: &Outcome) -> Self {
        let outcome_text = outcome.to_json();
        let outcome_text = outcome_text.strip_suffix('}').unwrap_or(&outcome_text);
        Self { journal: None, text: format!(r#"{outcome_text},"stats":{}}}"#, outcome.stats.to_json()) }
    }

    fn failed(failure: Failure) -> Self {
        Self::done(&Outcome::not_compiled(Box::new(failure)))
    }

    /// The journal with this round, where the script waits for answers; absent: it has ended.
    #[must_use]
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// What has come out, as JSON text: `{"calls": [{"id", "kind", "tool", "input", "timeoutMs"}], "waiting": [id], "abandoned":
    /// [id]}`, or an outcome as of [`Run::outcome`](crate::Run::outcome).
    #[must_use]
    pub fn to_json(&self) -> &str {
        &self.text
    }
}

fn row(call: &StepCall) -> String {
    let (id, kind, tool) = (call.number, kind(call.kind), Value::from(call.tool.as_str()));
    let (input, timeout_ms) = (&call.input, call.timeout_ms);
    format!(r#"{{"id":{id},"kind":"{kind}","tool":{tool},"input":{input},"timeoutMs":{timeout_ms}}}"#)
}
