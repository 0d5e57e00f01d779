//! A host for unit tests: an app, and answers to calls.

use crate::interface::host::{Event, Progress, Tools};
use crate::{Call, Outcome, Run, ToolError};

/// The app `users`.
pub struct Users {
    /// Its tools; empty: it has every tool.
    pub tools: &'static [&'static str],
    /// What `getTool` gives of each.
    pub describes: Option<&'static str>,
}

impl Tools for Users {
    fn describe(&self, name: &str) -> Option<String> {
        let tool = name.strip_prefix("users:").filter(|tool| self.tools.contains(tool));
        tool.and(self.describes).map(str::to_owned)
    }

    fn is_app(&self, app: &str) -> bool {
        app == "users"
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        let has = self.tools.is_empty() || self.tools.contains(&tool);
        (app == "users" && has).then(|| format!("{app}:{tool}"))
    }

    fn similar(&self, _: &str) -> Vec<String> {
        self.tools.iter().map(|tool| format!("users:{tool}")).collect()
    }

    fn reserved_apps(&self) -> Vec<String> {
        vec!["codecall".into()]
    }
}

/// Go on with a run to its end.
pub fn finish(mut run: Run, mut answer: impl FnMut(&Call) -> Result<String, ToolError>) -> Outcome {
    let mut events = Vec::new();
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => return *outcome,
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                events.extend(calls.iter().map(|call| Event::Settled { id: call.id, result: answer(call) }));
            }
        }
    }
}
