//! The same script, fresh each time, in this interpreter and in its peers: source text in, JSON out,
//! tool calls answered with JSON text.

use agentscript::{CompileOptions, Event, FixedClock, Inputs, NoTools, Policy, Preset, Progress};
use rquickjs::{Context, Runtime};
use std::sync::Arc;

/// A script with the answer to its tool calls.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// The source.
    pub script: &'static str,
    /// JSON text that every tool call gives.
    pub answer: String,
}

/// The cases of the bench.
#[must_use]
pub fn cases() -> Vec<Case> {
    let rows: Vec<String> = (0..100)
        .map(|i| {
            format!(
                r#"{{"id":{i},"name":"user {i}","active":{},"team":"t{}","score":{}}}"#,
                i % 3 == 0,
                i % 7,
                i * 13 % 97
            )
        })
        .collect();
    vec![
        Case { name: "return 1 + 1", script: "return 1 + 1", answer: "null".into() },
        Case {
            name: "two tool calls, filter over 100 rows",
            script: r#"
const users = await callTool('users:list', { limit: 100 });
const teams = await callTool('users:list', { limit: 100, page: 2 });
const active = users.filter((u) => u.active && u.score > 20);
return { total: users.length + teams.length, names: active.map((u) => `${u.name} (${u.team})`) };
"#,
            answer: format!("[{}]", rows.join(",")),
        },
    ]
}

/// Compile and run in this interpreter.
///
/// # Panics
/// If the script is not one of the cases, which compile and succeed.
#[must_use]
pub fn ours(case: &Case) -> String {
    let policy = Policy::preset(Preset::Balanced);
    let script = agentscript::compile(case.script, &CompileOptions::of(&policy)).expect("the case compiles");
    let inputs = Inputs {
        context: None,
        tools: Arc::new(NoTools),
        clock: Arc::new(FixedClock::default()),
        seed: 1,
        slice: None,
    };
    let mut run = script.start(inputs, &policy);
    let mut events = Vec::new();
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => return outcome.result.expect("the case succeeds"),
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                events.extend(
                    calls.into_iter().map(|call| Event::Settled { id: call.id, result: Ok(case.answer.clone()) }),
                );
            }
        }
    }
}

/// What a host of QuickJS has to define for the same script.
const BRIDGE: &str = "
const __calls = [];
let __result;
function callTool(name, input) {
  return new Promise((resolve) => __calls.push({ name, input: JSON.stringify(input), resolve }));
}
function __settle(text) { for (const call of __calls.splice(0)) call.resolve(JSON.parse(text)); }
";

/// Compile and run in QuickJS-ng: a fresh runtime and context.
///
/// # Panics
/// If the script fails.
#[must_use]
pub fn quickjs(case: &Case) -> String {
    let runtime = Runtime::new().expect("a runtime");
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        let script = case.script;
        let source = format!(
            "{BRIDGE}(async () => {{ {script} }})().then((r) => {{ __result = JSON.stringify(r); }});undefined"
        );
        ctx.eval::<(), _>(source).expect("the case runs");
    });
    loop {
        while runtime.execute_pending_job().expect("no job fails") {}
        let result = context.with(|ctx| ctx.eval::<Option<String>, _>("__result").expect("a result"));
        if let Some(result) = result {
            return result;
        }
        context.with(|ctx| {
            let settle: rquickjs::Function = ctx.eval("__settle").expect("the bridge");
            settle.call::<_, ()>((case.answer.as_str(),)).expect("settling works");
        });
    }
}
