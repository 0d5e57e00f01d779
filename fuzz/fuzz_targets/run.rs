//! One run with tiny limits, in small slices, by a host whose answers depend on the input.

use agentscript::{
    CompileOptions, Event, Inputs, Loops, Outcome, Policy, Preset, Progress, Stress, SystemClock, ToolError, Tools,
    compile,
};
use cpu_time::ThreadTime;
use std::sync::Arc;
use std::time::Duration;

/// What tools answer.
const ANSWERS: [&str; 8] = [
    "null",
    "{\"id\":1,\"name\":\"one\",\"tags\":[\"a\",\"b\"]}",
    "[{\"id\":1},{\"id\":2,\"next\":null}]",
    "\"text \\ud83d\\ude00 \\ud800\"",
    "{\"__proto__\":{\"a\":1},\"constructor\":2,\"then\":3,\"1\":4}",
    "[[[[[[[[[[]]]]]]]]]]",
    "-1e-7",
    "",
];

/// Longest time between two looks at the clock.
const SLACK: Duration = Duration::from_millis(800);

struct AnyTool;

impl Tools for AnyTool {
    fn describe(&self, name: &str) -> Option<String> {
        (name.len() % 2 == 0).then(|| "{\"name\":\"tool\",\"inputSchema\":{\"type\":\"object\"}}".into())
    }

    fn is_app(&self, app: &str) -> bool {
        matches!(app, "items" | "users" | "shop" | "crm")
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        Some(format!("{app}:{tool}"))
    }

    fn similar(&self, name: &str) -> Vec<String> {
        vec![name.chars().rev().collect()]
    }

    fn is_reserved(&self, name: &str) -> bool {
        name.starts_with("codecall")
    }
}

fn policy() -> Policy {
    let mut policy = Policy::preset(Preset::Balanced);
    policy.loops = Loops::All;
    policy.limits.timeout_ms = 200;
    policy.limits.max_steps = 20_000;
    policy.limits.max_memory_bytes = 1 << 20;
    policy.limits.max_call_depth = 100;
    policy.limits.max_concurrency = 2;
    policy
}

/// Compile and run a script; `answers` choose what its tools give.
pub fn run(source: &str, answers: &[u8]) {
    let policy = policy();
    let outcome = match compile(source, &CompileOptions::for_policy(&policy)) {
        Ok(script) => {
            let inputs = Inputs {
                context: Some("{\"user\":{\"id\":7},\"items\":[1,2,3]}".into()),
                tools: Arc::new(AnyTool),
                clock: Arc::new(SystemClock),
                seed: 1,
                slice: None,
            };
            let mut run = script.start(inputs, &policy);
            let mode = answers.first().copied().unwrap_or(0);
            match mode % 4 {
                0 => {}
                1 => run.stress(Stress::pauses(50)),
                2 => run.stress(Stress { lazy_json: true, ..Stress::collections(64) }),
                _ => run.stress(Stress::pauses(7)),
            }
            // Time of the processor: a machine that does other things too takes longer.
            let began = ThreadTime::now();
            let outcome = drive(run, answers);
            let took = began.elapsed();
            assert!(took < SLACK || mode % 4 == 2, "the run took {took:?}");
            // What ends a run may count beyond: work at once that is too much, the text of an error.
            assert!(
                outcome.result.is_err() || outcome.stats.steps <= policy.limits.max_steps,
                "{} steps",
                outcome.stats.steps
            );
            outcome
        }
        Err(error) => Outcome::not_compiled(error.failure),
    };
    let json = outcome.to_json();
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&json) {
        // Half a pair of surrogates, and what nests deep, is JSON that serde_json refuses.
        let error = error.to_string();
        assert!(error.contains("hex escape") || error.contains("recursion limit"), "{error}: {json}");
    }
}

fn drive(mut run: agentscript::Run, answers: &[u8]) -> Outcome {
    let mut answers = answers.iter().rev();
    let mut events = Vec::new();
    let mut open = Vec::new();
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => return *outcome,
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                for call in calls {
                    assert!(call.input.starts_with('{') && call.input.ends_with('}'), "{}", call.input);
                    open.push(call.id);
                }
                let byte = usize::from(answers.next().copied().unwrap_or(0));
                if open.is_empty() || byte == 255 {
                    events.push(Event::Cancel);
                    continue;
                }
                let id = open.remove(byte / 16 % open.len());
                let result = match byte % 16 {
                    8..12 => Err(ToolError::new("TOOL_EXECUTION_ERROR", "the tool failed")),
                    12 => Err(ToolError { details: Some("{\"a\":[1]}".into()), ..ToolError::timeout("tool", 5) }),
                    13 => Err(ToolError { fatal: true, ..ToolError::new("ACCESS_DENIED", "no") }),
                    kind => Ok(ANSWERS[kind % ANSWERS.len()].into()),
                };
                events.push(Event::Settled { id, result });
            }
        }
    }
}
