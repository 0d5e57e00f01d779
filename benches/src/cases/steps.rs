//! Steps of stateless runs that replay a number of answered calls and make one more.

use agentscript::stateless::{Calls, Journal, Step, StepOptions, step};
use agentscript::{NoTools, Policy, Preset, ScriptCache};
use std::sync::{Arc, LazyLock};

/// Compiled scripts. Like a server, a process compiles each script once.
static SCRIPTS: LazyLock<ScriptCache> = LazyLock::new(ScriptCache::default);

/// A run with answered calls.
pub struct Middle {
    script: String,
    options: StepOptions<'static>,
    /// The journal so far.
    pub journal: Journal,
}

/// Creates a run with this number of answered calls.
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
    /// Starts a run and answers this number of calls.
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

    /// Takes the next step, which replays the journal and makes one more call.
    ///
    /// # Errors
    /// The step does something else.
    pub fn step(&self) -> Result<Calls, String> {
        match step(&self.script, Arc::new(NoTools), &self.journal, &self.options) {
            Step::Calls(calls) => Ok(*calls),
            other => Err(format!("no calls: {other:?}")),
        }
    }
}
