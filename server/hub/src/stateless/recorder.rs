//! Records a run for replay. A recorded run differs from others in its clock, which moves only when the script gets
//! answers or a timer fires. Its random numbers are derived from the id of the run.

use super::CodeId;
use super::journal_file::{JournalFile, JournalTools, compact};
use agentscript::stateless::{Journal, JournalCall, Round, StepOptions};
use agentscript::{Call, Language, Outcome, ToolError};
use codecall_base::json;
use codecall_base::redact::Redactor;
use codecall_base::tool::ToolLookups;
use codecall_runs::{JournalError, Recorder, StartInputs};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The recorder of one run, which keeps the journal in memory.
#[derive(Debug)]
pub struct MemoryRecorder {
    /// The journal without its rounds.
    journal: Journal,
    language: Option<Language>,
    context: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rounds: Vec<Round>,
    lookups: ToolLookups,
}

impl MemoryRecorder {
    /// Creates the recorder of a run that begins now. `context` is the JSON text of an object.
    #[must_use]
    pub fn new(script: &str, language: Option<Language>, context: Option<&str>) -> Arc<Self> {
        let id = CodeId::new();
        let context = context.map(compact);
        let options = StepOptions { language, context: context.clone(), ..StepOptions::default() };
        let journal = Journal::new(id.as_str(), id.unix_ms().unwrap_or_default(), script, &options);
        Arc::new(Self { journal, language, context, state: Mutex::default() })
    }

    /// Returns the journal of a run that has ended with `outcome` as a file, without secrets.
    #[must_use]
    pub fn to_file(&self, outcome: &Outcome, secrets: &Redactor) -> String {
        let state = self.state();
        let mut journal = Journal { rounds: state.rounds.clone(), ..self.journal.clone() };
        for round in &mut journal.rounds {
            round.calls.iter_mut().for_each(|call| redact(&mut call.input, secrets));
            for answer in &mut round.answers {
                match &mut answer.result {
                    Ok(result) => redact(result, secrets),
                    Err(ToolError { message, details, .. }) => {
                        secrets.redact_string(message);
                        details.iter_mut().for_each(|details| redact(details, secrets));
                    }
                }
            }
        }
        let mut lookups = state.lookups.clone();
        lookups.descriptions.values_mut().for_each(|description| redact(description, secrets));
        let tools = JournalTools::from(lookups);
        let mut outcome = outcome.clone();
        // In a replay, calls that the server has refused are answered by the journal as all others.
        if let Err(failure) = &mut outcome.result {
            failure.tool_calls = journal.rounds.iter().map(|round| round.calls.len() as u64).sum();
        }
        let (mut context, mut outcome) = (self.context.clone(), outcome.to_json());
        context.iter_mut().for_each(|context| redact(context, secrets));
        redact(&mut outcome, secrets);
        JournalFile { journal, language: self.language, context, tools, outcome: Some(outcome) }.to_text()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for MemoryRecorder {
    fn start(&self, start: StartInputs) -> StartInputs {
        StartInputs {
            context: self.context.clone(),
            fixed_unix_ms: Some(self.journal.unix_ms as f64),
            seed: self.journal.seed(),
            record_lookups: true,
            ..start
        }
    }

    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        self.state().lookups.append(lookups);
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        let mut state = self.state();
        let calls =
            calls.iter().map(|Call { tool, input, .. }| JournalCall { tool: tool.clone(), input: input.clone() });
        let ms = state.rounds.last().map_or(Some(0), |round| round.ms);
        if state.rounds.is_empty() {
            // Many runs wait in their first round.
            state.rounds.reserve_exact(1);
        }
        state.rounds.push(Round { calls: calls.collect(), answers: Vec::new(), ms });
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_answers<'a>(&'a self, round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>> {
        if let Some(last) = self.state().rounds.last_mut() {
            last.answers.extend_from_slice(&round.answers);
            last.ms = round.ms.or(last.ms);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Redacts the secrets in JSON text. Text without secrets stays as it is written.
fn redact(json: &mut String, secrets: &Redactor) {
    if secrets.is_empty() {
        return;
    }
    match json::parse(json) {
        Ok(value) => {
            let mut redacted = value.clone();
            secrets.redact_value(&mut redacted);
            if redacted != value {
                *json = redacted.to_string();
            }
        }
        // Too deep to be parsed: replace all of it rather than show a secret.
        Err(_) if secrets.redact_text(json) != json.as_str() => {
            *json = Value::from(codecall_base::redact::MASK).to_string()
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests;
