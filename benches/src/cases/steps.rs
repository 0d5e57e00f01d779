//! Runs without a server that remembers them, somewhere in the middle: so many calls are answered, and one more comes.

use agentscript::stateless::{Calls, Journal, Step, StepOptions, step};
use agentscript::{NoTools, Policy, Preset, ScriptCache};
use std::sync::{Arc, LazyLock};

/// Steps compile once a process, as servers do.
static SCRIPTS: LazyLock<ScriptCache> = LazyLock::new(ScriptCache::default);

/// A run in the middle.
pub struct Middle {
    script: String,
    options: StepOptions<'static>,
    /// What happened so far, as the token of the last step and its answers tell it.
    pub journal: Journal,
}

/// Makes a run with so many answered calls.
pub type Begin = fn(usize) -> Result<Middle, String>;

/// The shapes of runs.
pub const SHAPES: [(&str, Begin); 2] = [("one after the other", sequence), ("at once", parallel)];

fn sequence(calls: usize) -> Result<Middle, String> {
    let script = "
let sum = 0;
for (let id = 0; ; id++) sum += (await callTool('items:get', { id, fields: ['stock'] })).stock;";
    Middle::begin(script.into(), calls)
}

fn parallel(calls: usize) -> Result<Middle, String> {
    let script = format!(
        "
const ids = Array.from({{ length: {calls} }}, (_, id) => id);
const items = await Promise.all(ids.map((id) => callTool('items:get', {{ id, fields: ['stock'] }})));
return await callTool('items:sum', {{ sum: items.reduce((sum, item) => sum + item.stock, 0) }});"
    );
    Middle::begin(script, calls)
}

impl Middle {
    /// Answer so many calls.
    fn begin(script: String, calls: usize) -> Result<Self, String> {
        let mut policy = Policy::preset(Preset::Experimental);
        (policy.limits.max_tool_calls, policy.limits.max_concurrency) = (0, u64::MAX);
        let options = StepOptions { policy, max_rounds: usize::MAX, cache: Some(&SCRIPTS), ..StepOptions::default() };
        let journal = Journal::new("code_0mhkq1a2b3c4d5e", 1_750_000_000_000, &script, &options);
        let mut middle = Self { script, options, journal };
        let mut answered = 0;
        while answered < calls {
            let Calls { new, journal, .. } = middle.step()?;
            middle.journal = journal.compact();
            for call in new {
                let stock = format!(r#"{{"id":{},"stock":{}}}"#, call.number, call.number % 97);
                middle.journal.answer(call.number, Ok(stock)).map_err(|error| error.to_string())?;
                answered += 1;
            }
        }
        Ok(middle)
    }

    /// The next step: it plays what happened so far and makes one more call.
    ///
    /// # Errors
    /// If it is something else.
    pub fn step(&self) -> Result<Calls, String> {
        match step(&self.script, Arc::new(NoTools), &self.journal, &self.options) {
            Step::Calls(calls) => Ok(*calls),
            other => Err(format!("no calls: {other:?}")),
        }
    }
}
