//! A host that answers tool calls from a fixture, in virtual time: calls are answered in the order of their delays, but
//! without waiting.

use crate::corpus::Case;
use agentscript::{
    Call, CallKind, Clock, CompileOptions, Dialect, Event, Inputs, Language, Limit, Linker, Loops, Outcome, Policy,
    Preset, Progress, Run, TimeFlow, ToolError, Tools,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The tools of a fixture.
pub struct Fixture {
    tools: Vec<Value>,
    used: Mutex<HashMap<(usize, usize), u64>>,
    allowed: Option<Vec<String>>,
}

impl Fixture {
    /// Loads the tools of a file; without one, there are none.
    ///
    /// # Panics
    /// If the file is not a fixture.
    #[must_use]
    pub fn load(file: Option<&Path>, allowed: Option<Vec<String>>) -> Self {
        let tools = file.map_or_else(Vec::new, |file| {
            let text = std::fs::read_to_string(file).expect("a fixture is a text file");
            let fixture: Value = serde_json::from_str(&text).expect("a fixture is JSON");
            fixture["tools"].as_array().cloned().expect("a fixture has tools")
        });
        Self { tools, used: Mutex::default(), allowed }
    }

    fn find(&self, name: &str) -> Option<(usize, &Value)> {
        self.tools.iter().enumerate().find(|(_, tool)| tool["name"] == name)
    }

    /// Returns the delay of a call in milliseconds, and the answer.
    pub fn answer(&self, call: &Call) -> (u64, Result<String, ToolError>) {
        let Some((number, tool)) = self.find(&call.tool) else {
            let message = format!("Tool '{}' is not known", call.tool);
            return (0, Err(ToolError::new("TOOL_NOT_FOUND", message)));
        };
        if self.allowed.as_ref().is_some_and(|allowed| !allowed.contains(&call.tool)) {
            let message = format!("Tool '{}' is not allowed in this run", call.tool);
            return (0, Err(ToolError::new("ACCESS_DENIED", message)));
        }
        let delay = tool["delayMs"].as_u64().unwrap_or(0);
        if delay > call.timeout_ms {
            return (call.timeout_ms, Err(ToolError::timeout(&call.tool, call.timeout_ms)));
        }
        let input: Value = serde_json::from_str(&call.input).unwrap_or_default();
        let mut used = self.used.lock().expect("no test panics with the lock");
        for (index, response) in tool["responses"].as_array().into_iter().flatten().enumerate() {
            let count = used.entry((number, index)).or_default();
            let fits = fits(&response["input"], &input, call.kind);
            if !fits || response["times"].as_u64().is_some_and(|times| *count >= times) {
                continue;
            }
            *count += 1;
            return (
                delay,
                match response.get("error") {
                    Some(error) => Err(ToolError {
                        message: error["message"].as_str().unwrap_or_default().into(),
                        code: error["code"].as_str().unwrap_or("TOOL_EXECUTION_ERROR").into(),
                        details: error.get("details").map(Value::to_string),
                        fatal: false,
                    }),
                    None => Ok(response["output"].to_string()),
                },
            );
        }
        (delay, Err(ToolError::new("NO_MOCK_RESPONSE", format!("No response of '{}' for this input", call.tool))))
    }
}

/// Whether a response is one to an input. Of the input of `fetch`, it names only some parts.
fn fits(wanted: &Value, input: &Value, kind: CallKind) -> bool {
    match (wanted, kind) {
        (Value::Null, _) => true,
        (Value::Object(parts), CallKind::Fetch) => parts.iter().all(|(name, part)| input[name] == *part),
        (wanted, _) => wanted == input,
    }
}

impl Tools for Fixture {
    fn describe(&self, name: &str) -> Option<String> {
        let (_, tool) = self.find(name)?;
        let app = name.split_once(':').map_or(name, |(app, _)| app);
        let or_default = |key: &str, other: Value| tool.get(key).cloned().unwrap_or(other);
        Some(
            json!({
                "name": name,
                "appId": app,
                "description": or_default("description", json!("")),
                "inputSchema": or_default("inputSchema", json!({"type": "object"})),
                "outputSchema": or_default("outputSchema", Value::Null),
                "annotations": {},
            })
            .to_string(),
        )
    }

    fn is_app(&self, app: &str) -> bool {
        self.tools
            .iter()
            .any(|tool| tool["name"].as_str().and_then(|name| name.split_once(':')).is_some_and(|(a, _)| a == app))
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        let name = format!("{app}:{tool}");
        self.find(&name).map(|_| name)
    }

    fn similar(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }

    fn reserved_apps(&self) -> Vec<String> {
        vec!["codecall".into()]
    }
}

/// A clock that adds virtual waiting time to the real time. The script sees virtual time only.
pub struct TestClock {
    waited: Mutex<Duration>,
    began_unix_ms: f64,
}

impl Default for TestClock {
    fn default() -> Self {
        Self { waited: Mutex::default(), began_unix_ms: agentscript::SystemClock.unix_ms() }
    }
}

impl Clock for TestClock {
    fn monotonic(&self) -> Duration {
        agentscript::SystemClock.monotonic() + *self.waited.lock().expect("no test panics with the lock")
    }

    fn unix_ms(&self) -> f64 {
        self.began_unix_ms
    }

    fn flow(&self) -> TimeFlow {
        TimeFlow::Events
    }
}

/// A virtual clock, in which each reading takes five milliseconds.
#[derive(Default)]
pub struct FastClock {
    /// The current time, in milliseconds.
    pub ms: AtomicU64,
}

impl Clock for FastClock {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.ms.fetch_add(5, Ordering::Relaxed))
    }

    fn unix_ms(&self) -> f64 {
        0.0
    }
}

/// Returns the policy of a case.
///
/// # Panics
/// If the case names an unknown preset or limit.
#[must_use]
pub fn policy(case: &Case) -> Policy {
    let preset = case.preset.as_deref().map_or(Preset::Experimental, |name| Preset::named(name).expect("a preset"));
    let mut policy = Policy::preset(preset);
    // Only cases that test the time limit have a short one, so that a busy machine causes no failures.
    if case.preset.is_none() {
        policy.limits.timeout_ms = 300_000;
    }
    for (name, value) in case.limits.iter().filter_map(Value::as_object).flatten() {
        match (name.as_str(), value) {
            ("allowConsole", Value::Bool(allow)) => policy.allow_console = *allow,
            ("loops", Value::String(loops)) => {
                policy.loops = if loops == "bounded" { Loops::Bounded } else { panic!("loops are 'bounded'") };
            }
            ("timers", Value::Bool(allow)) => policy.timers = *allow,
            ("fetch", Value::Bool(allow)) => policy.fetch = *allow,
            ("allowLoops", Value::Bool(allow)) => policy.loops = if *allow { Loops::All } else { Loops::None },
            ("disabledBuiltins", Value::Array(names)) => {
                policy.disabled_builtins.extend(names.iter().filter_map(Value::as_str).map(Into::into));
            }
            ("disabledGlobals", Value::Array(names)) => {
                policy.disabled_globals.extend(names.iter().filter_map(Value::as_str).map(Into::into));
            }
            (name, value) => Limit::named(name)
                .expect("a limit")
                .set(&mut policy.limits, value.as_u64().expect("limits are numbers")),
        }
    }
    policy
}

/// Runs a case. `prepare` may change the run before it starts.
///
/// # Panics
/// If the case names an unknown preset, limit or dialect.
#[must_use]
pub fn run(case: &Case, prepare: impl FnOnce(&mut Run)) -> Outcome {
    let policy = policy(case);
    let mut options = CompileOptions::for_policy(&policy);
    options.language = case.language.as_deref().map(|language| match language {
        "typescript" => Language::TypeScript,
        _ => Language::JavaScript,
    });
    options.linker = Linker::new(match case.dialect.as_deref() {
        None => Dialect::Async,
        Some("sync") => Dialect::Sync,
        Some(other) => panic!("{}: there is no dialect '{other}'", case.name),
    });
    let fixture = Arc::new(Fixture::load(case.tools.as_deref(), case.allowed.clone()));
    let script = match agentscript::compile(&case.script, &options.with_tools(&*fixture)) {
        Ok(script) => script,
        Err(error) => return Outcome::not_compiled(error.failure),
    };
    let clock = Arc::new(TestClock::default());
    let inputs = Inputs {
        context: case.context.clone(),
        tools: Arc::clone(&fixture) as _,
        clock: Arc::clone(&clock) as _,
        seed: 1,
        slice: None,
    };
    let mut run = script.start(inputs, &policy);
    prepare(&mut run);
    drive(run, &fixture, &clock)
}

/// Resumes a run until its end. `answer` returns the events with which it goes on after calls.
pub fn finish(mut run: Run, mut answer: impl FnMut(&mut Run, Vec<Call>) -> Vec<Event>) -> Outcome {
    let mut events = Vec::new();
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => return *outcome,
            Progress::Yielded => {}
            Progress::Calls(calls) => events = answer(&mut run, calls),
        }
    }
}

/// Resumes a run until its end, with the answers of a fixture in virtual time.
fn drive(run: Run, fixture: &Fixture, clock: &TestClock) -> Outcome {
    // Answers, sorted by their time and the order of their calls.
    let mut pending: Vec<(u64, usize, Event)> = Vec::new();
    let (mut now, mut count) = (0, 0);
    finish(run, |run, calls| {
        for call in calls {
            let (delay, result) = fixture.answer(&call);
            pending.push((now + delay, count, Event::Settled { id: call.id, result }));
            count += 1;
        }
        pending.sort_by_key(|&(at, order, _)| (at, order));
        for id in run.take_cancelled() {
            pending.retain(|(_, _, event)| !matches!(event, Event::Settled { id: of, .. } if *of == id));
        }
        // Of a timer and an answer at the same time, the timer comes first.
        let timer = run.next_timer().map(|due| due.as_millis() as u64);
        let at = timer.into_iter().chain(pending.first().map(|&(at, _, _)| at)).min();
        let Some(at) = at.map(|at| at.max(now)) else { return Vec::new() };
        *clock.waited.lock().expect("no test panics with the lock") += Duration::from_millis(at - now);
        now = at;
        let answer = timer.is_none_or(|due| due > at).then(|| pending.remove(0).2);
        std::iter::once(Event::Time(at)).chain(answer).collect()
    })
}
