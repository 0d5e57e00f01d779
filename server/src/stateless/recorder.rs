//! What records a run while it goes on, as journals have it: an ordinary run, but for the clock, which
//! stands still, and random numbers, which follow from the name of the run.

use super::CodeId;
use super::recording::{Directory, Json, Written, without_space};
use agentscript::stateless::{Answer, Issued, Journal, Round, StepOptions};
use agentscript::{Call, CallId, Event, Inputs, Language, Outcome, ToolError, Tools};
use codecall_base::json;
use codecall_base::redact::Redactor;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Records one run.
#[derive(Debug)]
pub struct Recorder {
    /// The journal without its rounds.
    journal: Journal,
    language: Option<Language>,
    context: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rounds: Vec<Round>,
    numbers: HashMap<CallId, u32>,
    tools: Directory,
}

impl Recorder {
    /// A recorder for a run of this script that begins now. `context` is JSON text of an object.
    #[must_use]
    pub fn new(script: &str, language: Option<Language>, context: Option<&str>) -> Arc<Self> {
        let id = CodeId::new();
        let context = context.map(without_space);
        let options = StepOptions { language, context: context.clone(), ..StepOptions::default() };
        let journal = Journal::new(id.as_str(), id.unix_ms().unwrap_or_default(), script, &options);
        Arc::new(Self { journal, language, context, state: Mutex::default() })
    }

    /// The file of the run that has ended so, without secrets.
    #[must_use]
    pub fn text(&self, outcome: &Outcome, secrets: &Redactor) -> String {
        let state = self.state();
        let mut journal = Journal { rounds: state.rounds.clone(), ..self.journal.clone() };
        for round in &mut journal.rounds {
            round.calls.iter_mut().for_each(|call| clean(&mut call.input, secrets));
            for answer in &mut round.answers {
                match &mut answer.result {
                    Ok(result) => clean(result, secrets),
                    Err(ToolError { message, details, .. }) => {
                        secrets.redact_string(message);
                        details.iter_mut().for_each(|details| clean(details, secrets));
                    }
                }
            }
        }
        let mut tools = state.tools.clone();
        for Json(told) in tools.described.values_mut() {
            let mut text = told.get().to_owned();
            clean(&mut text, secrets);
            if let Ok(cleaned) = RawValue::from_string(text) {
                *told = cleaned;
            }
        }
        let (mut context, mut outcome) = (self.context.clone(), outcome.to_json());
        context.iter_mut().for_each(|context| clean(context, secrets));
        clean(&mut outcome, secrets);
        let (context, outcome) = (context.as_deref(), Some(outcome.as_str()));
        Written { journal: &journal, language: self.language, context, tools: &tools, outcome }.text()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl codecall_runs::Recorder for Recorder {
    fn inputs(self: Arc<Self>, inputs: Inputs) -> Inputs {
        Inputs {
            context: self.context.clone(),
            clock: self.journal.clock(inputs.clock),
            seed: self.journal.seed(),
            tools: Arc::new(Noted { tools: inputs.tools, recorder: self }),
            slice: inputs.slice,
        }
    }

    fn calls(&self, calls: &[Call]) {
        let mut state = self.state();
        for call in calls {
            let number = u32::try_from(state.numbers.len()).unwrap_or(u32::MAX);
            state.numbers.insert(call.id, number);
        }
        let calls = calls.iter().map(|call| Issued { tool: call.tool.clone(), input: call.input.clone() }).collect();
        state.rounds.push(Round { calls, answers: Vec::new() });
    }

    fn answers(&self, events: &[Event]) {
        let mut state = self.state();
        let State { rounds, numbers, .. } = &mut *state;
        let Some(round) = rounds.last_mut() else { return };
        for event in events {
            if let Event::Settled { id, result } = event
                && let Some(&call) = numbers.get(id)
            {
                round.answers.push(Answer { call, result: result.clone() });
            }
        }
    }
}

/// JSON text without secrets. Where there are none, it stays as it is written.
fn clean(json: &mut String, secrets: &Redactor) {
    if secrets.is_empty() {
        return;
    }
    match json::parse(json) {
        Ok(value) => {
            let mut cleaned = value.clone();
            secrets.redact_value(&mut cleaned);
            if cleaned != value {
                *json = cleaned.to_string();
            }
        }
        // Too deep to be looked into: better nothing of it than a secret.
        Err(_) if secrets.redact_text(json) != json.as_str() => {
            *json = Value::from(codecall_base::redact::MASK).to_string()
        }
        Err(_) => {}
    }
}

/// Tools of which it is noted what a script has found out about them.
struct Noted {
    tools: Arc<dyn Tools>,
    recorder: Arc<Recorder>,
}

impl Noted {
    fn note(&self, note: impl FnOnce(&mut Directory)) {
        note(&mut self.recorder.state().tools);
    }
}

impl Tools for Noted {
    fn describe(&self, name: &str) -> Option<String> {
        let told = self.tools.describe(name)?;
        if let Ok(told) = RawValue::from_string(told.clone()) {
            self.note(|tools| drop(tools.described.insert(name.to_owned(), Json(told))));
        }
        Some(told)
    }

    fn is_app(&self, app: &str) -> bool {
        let is = self.tools.is_app(app);
        if is {
            self.note(|tools| {
                tools.apps.insert(app.to_owned());
            });
        }
        is
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        let name = self.tools.member(app, tool)?;
        self.note(|tools| drop(tools.members.insert(format!("{app}.{tool}"), name.clone())));
        Some(name)
    }

    fn function(&self, name: &str) -> Option<String> {
        let tool = self.tools.function(name)?;
        self.note(|tools| drop(tools.functions.insert(name.to_owned(), tool.clone())));
        Some(tool)
    }

    fn positional(&self, tool: &str) -> Option<String> {
        let property = self.tools.positional(tool)?;
        self.note(|tools| drop(tools.positional.insert(tool.to_owned(), property.clone())));
        Some(property)
    }

    fn similar(&self, name: &str) -> Vec<String> {
        let near = self.tools.similar(name);
        if !near.is_empty() {
            self.note(|tools| drop(tools.similar.insert(name.to_owned(), near.clone())));
        }
        near
    }

    fn is_reserved(&self, name: &str) -> bool {
        self.tools.is_reserved(name)
    }
}

#[cfg(test)]
mod tests;
