//! Stateless runs have the same results as direct runs: scripts that wait in various ways, random scripts, and the corpus,
//! under many orders of answers.

#[path = "stateless/schedule.rs"]
mod schedule;
#[path = "properties/script.rs"]
mod script;

use agentscript::stateless::{ClientTools, Journal, Step, StepOptions, step};
use agentscript::{
    CompileOptions, Event, FixedClock, Inputs, Outcome, Policy, Preset, Progress, ScriptCache, ToolError, Tools,
    compile,
};
use proptest::prelude::*;
use schedule::Schedule;
use std::sync::{Arc, LazyLock};

/// The time that all scripts see, in milliseconds since 1970-01-01 UTC.
const NOW: i64 = 1_750_000_000_123;
const KEY: &[u8] = b"a key of this test";

/// Tools whose answers only depend on their input.
struct Answers;

impl Answers {
    fn answer(tool: &str, input: &str) -> Result<String, ToolError> {
        match tool {
            "fail" => Err(ToolError {
                details: Some(input.to_owned()),
                ..ToolError::new("NOT_FOUND", format!("nothing for {input}"))
            }),
            "list" => Ok("[1,2,3,4,5,6,7]".into()),
            _ => Ok(format!(r#"{{"tool":"{tool}","input":{input}}}"#)),
        }
    }
}

impl Tools for Answers {
    fn describe(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_app(&self, app: &str) -> bool {
        app == "users"
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        Some(format!("{app}:{tool}"))
    }

    fn function(&self, name: &str) -> Option<String> {
        (name == "webSearch").then(|| "web_search".into())
    }

    fn positional(&self, tool: &str) -> Option<String> {
        (tool == "web_search").then(|| "query".into())
    }

    fn similar(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

impl ClientTools for Answers {
    fn directory(self: Arc<Self>) -> Arc<dyn Tools> {
        self
    }

    fn check(&self, tool: &str, input: &str) -> Result<(), ToolError> {
        if tool == "strict" && !input.contains("\"n\":") {
            return Err(ToolError::new("INVALID_INPUT", "Invalid input for tool 'strict': n is missing"));
        }
        Ok(())
    }
}

/// Returns a clock that stands still, so that time limits are never exceeded.
fn fixed_clock() -> Arc<FixedClock> {
    Arc::new(FixedClock { unix_ms: NOW as f64 })
}

fn options() -> StepOptions<'static> {
    static SCRIPTS: LazyLock<ScriptCache> = LazyLock::new(ScriptCache::default);
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.max_steps = 300_000;
    policy.limits.max_iterations = 20_000;
    StepOptions { policy, clock: fixed_clock(), cache: Some(&SCRIPTS), ..StepOptions::default() }
}

/// The observations that must be the same: the outcome, the messages, and the calls in their order.
#[derive(Debug, PartialEq)]
struct Observed {
    outcome: String,
    calls: Vec<String>,
    messages: String,
}

/// Runs a script directly, with answers in the order of the schedule.
fn run_directly(source: &str, mut schedule: Schedule) -> Observed {
    let options = options();
    let journal = Journal::new("code_7", NOW, source, &options);
    let script = match compile(source, &CompileOptions::for_policy(&options.policy)) {
        Ok(script) => script,
        Err(error) => {
            let outcome = Outcome::not_compiled(error.failure).to_json();
            return Observed { outcome, calls: Vec::new(), messages: "[]".into() };
        }
    };
    let inputs = Inputs { tools: Arc::new(Answers), clock: fixed_clock(), seed: journal.seed(), ..Inputs::default() };
    let mut run = script.start(inputs, &options.policy);
    let (mut events, mut calls, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    let mut open: Vec<agentscript::Call> = Vec::new();
    loop {
        let progress = run.resume(std::mem::take(&mut events));
        messages.append(&mut run.take_messages());
        let cancelled = run.take_cancelled();
        open.retain(|call: &agentscript::Call| !cancelled.contains(&call.id));
        match progress {
            Progress::Done(outcome) => {
                return Observed { outcome: outcome.to_json(), calls, messages: format!("{messages:?}") };
            }
            Progress::Yielded => {}
            Progress::Calls(new) => {
                for call in new {
                    if let Err(error) = Answers.check(&call.tool, &call.input) {
                        events.push(Event::Settled { id: call.id, result: Err(error) });
                        continue;
                    }
                    calls.push(format!("{} {}", call.tool, call.input));
                    open.push(call);
                }
                if !events.is_empty() {
                    continue;
                }
                events = schedule
                    .pick(&mut open)
                    .into_iter()
                    .map(|call| Event::Settled { id: call.id, result: Answers::answer(&call.tool, &call.input) })
                    .collect();
            }
        }
    }
}

/// Runs a script in steps, between which only a token is kept.
fn run_in_steps(source: &str, mut schedule: Schedule) -> Observed {
    let options = options();
    let mut token = Journal::new("code_7", NOW, source, &options).token(Some(KEY));
    let (mut calls, mut messages) = (Vec::new(), Vec::new());
    let mut open = Vec::new();
    loop {
        let journal = Journal::from_token(&token, Some(KEY), 1 << 20).expect("a token");
        match step(source, Arc::new(Answers), &journal, &options) {
            Step::Calls(step) => {
                messages.extend(step.messages);
                calls.extend(step.new.iter().map(|call| format!("{} {}", call.tool, call.input)));
                open.extend(step.new);
                // Calls that a signal has cancelled wait no more.
                open.retain(|call| step.waiting.contains(&call.number));
                let mut numbers: Vec<u32> = open.iter().map(|call| call.number).collect();
                numbers.sort_unstable();
                assert_eq!(numbers, step.waiting, "{source}");
                let mut journal = step.journal;
                for call in schedule.pick(&mut open) {
                    journal.answer(call.number, Answers::answer(&call.tool, &call.input)).expect("it waits");
                }
                token = journal.compact().token(Some(KEY));
            }
            Step::Done(done) => {
                messages.extend(done.messages);
                return Observed { outcome: done.outcome.to_json(), calls, messages: format!("{messages:?}") };
            }
            Step::Deadlock(failure) => {
                let outcome = Outcome::not_compiled(failure).to_json();
                return Observed { outcome, calls, messages: format!("{messages:?}") };
            }
            Step::Diverged(divergence) => panic!("{divergence}\n{source}"),
        }
    }
}

/// Returns how the two kinds of runs differ; `None` if they do not.
fn difference(source: &str, schedule: &Schedule) -> Option<String> {
    let (mut direct, mut stepped) = (run_directly(source, schedule.clone()), run_in_steps(source, schedule.clone()));
    // A step that ends in a deadlock has no logs.
    if direct.outcome.contains("a promise that nothing can settle") {
        for observed in [&mut direct, &mut stepped] {
            observed.outcome =
                observed.outcome.split(",\"logs\":[").next().unwrap_or_default().trim_end_matches('}').into();
        }
    }
    (direct != stepped).then(|| format!("{schedule:?}\n{source}\ndirect  {direct:?}\nstepped {stepped:?}"))
}

/// Scripts, each with its result if all answers arrive together.
const PROGRAMS: &[(&str, &str)] = &[
    ("return 1", r#"{"status":"ok","result":1}"#),
    (
        "try { await callTool('fail', { id: 1 }) } catch (e) { return [e.message, e.code, e.toolName, e.details] }",
        r#"{"status":"ok","result":["nothing for {\"id\":1}","NOT_FOUND","fail",{"id":1}]}"#,
    ),
    (
        "const all = await Promise.allSettled([callTool('fail', {}), callTool('list', {}), callTool('fail', { a: 1 })]);
         return all.map((one) => one.status + (one.reason?.message ?? one.value.length))",
        r#"{"status":"ok","result":["rejectednothing for {}","fulfilled7","rejectednothing for {\"a\":1}"]}"#,
    ),
    (
        "return await Promise.any([callTool('fail', {}), callTool('get', { n: 1 })])",
        r#"{"status":"ok","result":{"tool":"get","input":{"n":1}}}"#,
    ),
    (
        "const first = await Promise.race([callTool('get', { n: 1 }), callTool('get', { n: 2 }), callTool('list', {})]);
         return [first, await callTool('get', { n: 3 })]",
        r#"{"status":"ok","result":[{"tool":"get","input":{"n":1}},{"tool":"get","input":{"n":3}}]}"#,
    ),
    (
        "let seen = []; try { seen.push(await callTool('fail', {})) } catch (e) { seen.push(e.code) }
         finally { seen.push(await callTool('get', { clean: true })) } return seen",
        r#"{"status":"ok","result":["NOT_FOUND",{"tool":"get","input":{"clean":true}}]}"#,
    ),
    (
        "const chain = async (name, n) => { let out = []; for (let i = 0; i < n; i++) out.push((await callTool('get', { name, i })).input.i); return out };
         return await Promise.all([chain('short', 2), chain('long', 5)])",
        r#"{"status":"ok","result":[[0,1],[0,1,2,3,4]]}"#,
    ),
    (
        "const items = Array.from({ length: 20 }, (_, i) => i); const done = []; let next = 0;
         const worker = async (w) => { while (next < items.length) { const i = next++; done.push(w + ':' + (await callTool('get', { i })).input.i) } };
         await Promise.all([worker('a'), worker('b'), worker('c')]); return done.length",
        r#"{"status":"ok","result":20}"#,
    ),
    (
        "return await parallel(Array.from({ length: 20 }, (_, i) => () => callTool('get', { i }).then((r) => r.input.i)), { maxConcurrency: 4 })",
        r#"{"status":"ok","result":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]}"#,
    ),
    (
        "const a = Math.random(), b = crypto.randomUUID(), at = Date.now(); const r = await callTool('get', { a, b, at });
         return r.input.a === a && r.input.b === b && r.input.at === Date.now() && at",
        r#"{"status":"ok","result":1750000000123}"#,
    ),
    ("callTool('get', { nobody: 'waits' }); return (await callTool('list', {})).length", r#"{"status":"ok","result":7}"#),
    (
        "const start = Date.now(); const turns = []; for (let n = 0; n < 3; n++) { turns.push((await callTool('get', { n })).input.n); await sleep(1000) }
         return [turns, Date.now() - start, performance.now()]",
        r#"{"status":"ok","result":[[0,1,2],3000,3000]}"#,
    ),
    (
        "return await Promise.race([callTool('get', { n: 1 }).then((r) => r.input.n), sleep(10).then(() => 'timer')])",
        r#"{"status":"ok","result":1}"#,
    ),
    (
        "[1, 2].forEach(async (n) => { console.log((await callTool('get', { n })).input.n); await callTool('get', { again: n }) });
         setTimeout(async () => { console.log((await callTool('get', { late: 1 })).input.late) }, 10); return 'started'",
        r#"{"status":"ok","result":"started","warnings":["line 1, column 8: `forEach` awaits no callback, and the result was given before they ended; write `await Promise.all(list.map(async …))`"],"logs":["1","2","1"]}"#,
    ),
    (
        "callTool('fail', { nobody: 'waits' }); return 'at once'",
        r#"{"status":"tool_error","error":{"code":"NOT_FOUND","source":"tool","toolName":"fail","toolInput":{"nobody":"waits"},"message":"nothing for {\"nobody\":\"waits\"}","details":{"nobody":"waits"},"location":{"line":1,"column":1},"unhandled":true,"toolCalls":1}}"#,
    ),
    (
        "const signal = AbortSignal.timeout(50); const one = await callTool('get', { n: 1 }, { signal }); await sleep(60);
         return [one.input.n, await callTool('get', { n: 2 }, { signal }).catch((error) => error.name)]",
        r#"{"status":"ok","result":[1,"TimeoutError"]}"#,
    ),
    ("callTool('get', {}); return 'at once'", r#"{"status":"ok","result":"at once"}"#),
    (
        "let sum = 0; for (let i = 0; i < 100; i++) sum += (await callTool('get', { i })).input.i; return sum",
        r#"{"status":"ok","result":4950}"#,
    ),
    (
        "await callTool('fail', { why: 'not caught' })",
        r#"{"status":"tool_error","error":{"code":"NOT_FOUND","source":"tool","toolName":"fail","toolInput":{"why":"not caught"},"message":"nothing for {\"why\":\"not caught\"}","details":{"why":"not caught"},"location":{"line":1,"column":7},"toolCalls":1}}"#,
    ),
    (
        "const tries = await Promise.allSettled([callTool('strict', {}), callTool('strict', { n: 1 })]); return tries.map((t) => t.reason?.code ?? t.value.input.n)",
        r#"{"status":"ok","result":["INVALID_INPUT",1]}"#,
    ),
    (
        "const r = await callTool('fail', {}, { throwOnError: false }); return r.error.code",
        r#"{"status":"ok","result":"NOT_FOUND"}"#,
    ),
    (
        "async function main() { const [a, b] = await Promise.all([webSearch('news'), webSearch({ query: 'more' })]); return [a.input.query, b.input.query] }",
        r#"{"status":"ok","result":["news","more"]}"#,
    ),
    ("return { later: callTool('get', { n: 1 }), list: [users.list({})] }", r#"{"status":"ok","result":{"later":{"tool":"get","input":{"n":1}},"list":[{"tool":"users:list","input":{}}]}}"#),
    (
        "console.log('begins'); mcpLog('info', 'one'); const r = await callTool('list', {}); mcpNotify('done', { n: r.length }); console.log('ends', r); return null",
        r#"{"status":"ok","result":null,"logs":["begins","ends [\n  1, 2, 3, 4,\n  5, 6, 7\n]"]}"#,
    ),
    (
        "for await (const r of [1, 2, 3].map((n) => callTool('get', { n }))) console.log(r.input.n); return 'over'",
        r#"{"status":"ok","result":"over","logs":["1","2","3"]}"#,
    ),
    (
        "const retry = async (n) => { for (let i = 0; ; i++) try { return await callTool(i < n ? 'fail' : 'get', { i }) } catch (e) { console.warn(e.message) } };
         return (await retry(2)).input",
        r#"{"status":"ok","result":{"i":2},"logs":["[warn] nothing for {\"i\":0}","[warn] nothing for {\"i\":1}"]}"#,
    ),
    (
        "await callTool('list', {}); await new Promise(() => {}); return 1",
        r#"{"status":"runtime_error","error":{"code":"EXECUTION_ERROR","source":"script","message":"The script awaits at line 1 a promise that nothing can settle","name":"Error","location":{"line":1,"column":29},"toolCalls":1}}"#,
    ),
];

#[test]
fn programs_end_as_direct_runs_whatever_the_order_of_answers() {
    for (source, expected) in PROGRAMS {
        let observed = run_directly(source, Schedule::all_at_once());
        assert_eq!(observed.outcome, *expected, "{source}");
        // If the script makes one call at a time, there is only one order.
        let orders = if source.contains("i < 100") { 2 } else { usize::MAX };
        for schedule in Schedule::many().take(orders) {
            let difference = difference(source, &schedule);
            assert!(difference.is_none(), "{}", difference.unwrap_or_default());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(6), ..ProptestConfig::with_cases(800) })]

    #[test]
    fn random_programs_end_as_direct_runs(choices in prop::collection::vec(any::<u8>(), 0..400), seed in any::<u64>()) {
        let source = script::script(&choices);
        let difference = difference(&source, &Schedule::random(seed));
        prop_assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    }
}
