//! Scripts that exceed each limit in each place of a script, under every preset.
//!
//! The tested limit has the value of the preset and everything else is allowed, so only this limit can end the run.

use crate::host::{self, FastClock};
use agentscript::{
    Clock, CompileOptions, Event, Inputs, LIMITS, Limit, Limits, Loops, Outcome, Policy, Preset, ToolError, Tools,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The place in a script at which a limit is exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the middle of the script.
    Plain,
    /// After an `await`.
    Await,
    /// In a callback of a built-in.
    Callback,
    /// Inside a built-in.
    Native,
    /// In a script that tries to continue with `catch` and `finally`.
    Catch,
}

impl Place {
    /// All places, in the order of the documentation.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Await, Self::Callback, Self::Native, Self::Catch];
}

/// A limit in one place.
pub struct Row {
    /// The key of the limit.
    pub limit: &'static str,
    /// The place.
    pub place: Place,
    /// The script, in which `LIMIT` is replaced by the value of the limit.
    pub script: &'static str,
    /// The expected status and code.
    pub ends: &'static str,
    /// A part of the expected message or, if the run succeeds, of its result. `LIMIT` is replaced too.
    pub message: &'static str,
}

use Place::{Await, Callback, Catch, Native, Plain};

const TIMEOUT: (&str, &str) = ("timeout TIMEOUT", "Script execution timed out after LIMITms");
const TOOL: (&str, &str) = ("tool_error TOOL_TIMEOUT", "Tool 'users:wait' timed out after LIMITms");
const ITERATIONS: (&str, &str) = ("runtime_error ITERATION_LIMIT", "iteration limit of LIMIT loop turns");
const STEPS: (&str, &str) = ("runtime_error STEP_LIMIT", "limit of LIMIT steps");
const CALLS: (&str, &str) = ("runtime_error MAX_TOOL_CALLS_EXCEEDED", "limit of LIMIT tool calls");
const MEMORY: (&str, &str) = ("runtime_error MEMORY_LIMIT", "memory limit of LIMIT bytes");
const DEPTH: (&str, &str) = ("runtime_error EXECUTION_ERROR", "Maximum call stack size exceeded");
const RESULT: (&str, &str) = ("runtime_error RESULT_TOO_LARGE", "limit of LIMIT bytes");
const CONSOLE_BYTES: (&str, &str) = ("runtime_error CONSOLE_LIMIT", "LIMIT bytes");
const CONSOLE_CALLS: (&str, &str) = ("runtime_error CONSOLE_LIMIT", "limit of LIMIT calls");

const fn row(
    limit: &'static str,
    place: Place,
    (ends, message): (&'static str, &'static str),
    script: &'static str,
) -> Row {
    Row { limit, place, script, ends, message }
}

/// All rows, in the order of the limits.
pub static ROWS: &[Row] = &[
    row("timeoutMs", Plain, TIMEOUT, "for (;;) {}"),
    row("timeoutMs", Await, TIMEOUT, "await users.get({}); for (;;) await null;"),
    row("timeoutMs", Callback, TIMEOUT, "[2, 1].sort(() => { for (;;) {} })"),
    row("timeoutMs", Native, TIMEOUT, "const a = Array(1e6).fill(0); for (;;) a.lastIndexOf(1);"),
    row("timeoutMs", Catch, TIMEOUT, "try { for (;;) {} } catch { return 1 } finally { return 2 }"),
    row("maxDurationMs", Plain, TIMEOUT, "await users.wait({ ms: LIMIT + 9 })"),
    row("maxDurationMs", Await, TIMEOUT, "for (;;) await users.wait({ ms: 999 })"),
    row(
        "maxDurationMs",
        Callback,
        TIMEOUT,
        "await parallel([1, 2], async () => { for (;;) await users.wait({ ms: 999 }) })",
    ),
    row(
        "maxDurationMs",
        Catch,
        TIMEOUT,
        "try { await users.wait({ ms: LIMIT + 9 }) } catch { return 1 } finally { return 2 }",
    ),
    row("toolTimeoutMs", Plain, TOOL, "await users.wait({ ms: LIMIT + 1 })"),
    row("toolTimeoutMs", Await, TOOL, "await users.wait({ ms: LIMIT }); await users.wait({ ms: LIMIT + 1 })"),
    row("toolTimeoutMs", Callback, TOOL, "await Promise.all([0, 1].map((n) => users.wait({ ms: LIMIT + n })))"),
    row(
        "toolTimeoutMs",
        Catch,
        ("ok", "TOOL_TIMEOUT"),
        "try { await users.wait({ ms: LIMIT + 1 }) } catch (e) { return e.code }",
    ),
    row("maxIterations", Plain, ITERATIONS, "for (let i = 0; i <= LIMIT; i++) {}"),
    row("maxIterations", Await, ITERATIONS, "for (let i = 0; i <= LIMIT; i++) if (i % 5000 === 0) await null;"),
    row("maxIterations", Callback, ITERATIONS, "[1].forEach(() => { for (let i = 0; i <= LIMIT; i++) {} })"),
    row("maxIterations", Native, ITERATIONS, "[2, 1].sort(() => { for (let i = 0; i <= LIMIT; i++) {} return 0 })"),
    row(
        "maxIterations",
        Catch,
        ITERATIONS,
        "try { for (let i = 0; i <= LIMIT; i++) {} } catch { return 1 } finally { return 2 }",
    ),
    row("maxSteps", Plain, STEPS, "const a = Array(1e6).fill(0); for (;;) a.indexOf(1);"),
    row("maxSteps", Await, STEPS, "const a = Array(1e6).fill(0); for (;;) { await null; a.indexOf(1); }"),
    row("maxSteps", Callback, STEPS, "const a = Array(1e6).fill(0); a.forEach(() => a.indexOf(1));"),
    row("maxSteps", Native, STEPS, "const a = Array(1e6).fill(0); for (;;) a.lastIndexOf(1);"),
    row(
        "maxSteps",
        Catch,
        STEPS,
        "const a = Array(1e6).fill(0); try { for (;;) a.indexOf(1); } catch { return 1 } finally { return 2 }",
    ),
    row("maxToolCalls", Plain, CALLS, "for (let i = 0; i <= LIMIT; i++) users.get({});"),
    row("maxToolCalls", Await, CALLS, "for (let i = 0; i <= LIMIT; i++) await users.get({});"),
    row("maxToolCalls", Callback, CALLS, "await Promise.all(Array.from({ length: LIMIT + 1 }, () => users.get({})))"),
    row("maxToolCalls", Native, CALLS, "for (;;) await parallel(Array(9).fill(() => users.get({})))"),
    row("maxToolCalls", Catch, CALLS, "for (;;) try { await users.get({}) } catch {} finally { continue }"),
    row("maxMemoryBytes", Plain, MEMORY, "const a = []; for (;;) a.push('x'.repeat(1e6 + a.length));"),
    row("maxMemoryBytes", Await, MEMORY, "const a = []; for (;;) { await null; a.push('x'.repeat(1e6 + a.length)); }"),
    row("maxMemoryBytes", Callback, MEMORY, "Array.from({ length: 1e4 }, (_, i) => 'x'.repeat(1e6 + i))"),
    row("maxMemoryBytes", Native, MEMORY, "return 'x'.repeat(LIMIT + 1).length"),
    row(
        "maxMemoryBytes",
        Catch,
        MEMORY,
        "try { return Array(LIMIT).fill(0).length } catch { return 1 } finally { return 2 }",
    ),
    row("maxCallDepth", Plain, DEPTH, "const f = () => f() + 1; return f()"),
    row("maxCallDepth", Await, DEPTH, "const f = () => f() + 1; await null; return f()"),
    row("maxCallDepth", Callback, DEPTH, "const f = () => [1].map(f); return f().length"),
    row("maxCallDepth", Native, DEPTH, "const f = () => [2, 1].sort(() => f()); return f().length"),
    row(
        "maxCallDepth",
        Catch,
        ("ok", "RangeError"),
        "const f = () => f() + 1; try { return f() } catch (e) { return e.name }",
    ),
    row("maxScriptBytes", Plain, ("syntax_error SCRIPT_TOO_LARGE", "LIMIT"), "return 1 //PADDING"),
    row("maxResultBytes", Plain, RESULT, "return 'x'.repeat(LIMIT)"),
    row("maxResultBytes", Await, RESULT, "await null; return [Promise.resolve('x'.repeat(LIMIT))]"),
    row("maxResultBytes", Callback, RESULT, "return { toJSON: () => 'x'.repeat(LIMIT) }"),
    row("maxResultBytes", Native, RESULT, "return Array(LIMIT).fill(0)"),
    row("maxResultBytes", Catch, RESULT, "try { return 'x'.repeat(LIMIT) } catch { return 1 }"),
    row("maxConsoleBytes", Plain, CONSOLE_BYTES, "console.log('x'.repeat(LIMIT + 1))"),
    row("maxConsoleBytes", Await, CONSOLE_BYTES, "for (;;) { console.log('x'.repeat(1000)); await null; }"),
    row(
        "maxConsoleBytes",
        Callback,
        CONSOLE_BYTES,
        "Array(1e5).fill('x'.repeat(1000)).forEach((text) => console.log(text))",
    ),
    row("maxConsoleBytes", Native, CONSOLE_BYTES, "for (;;) console.table(Array(50).fill({ text: 'x'.repeat(1000) }))"),
    row(
        "maxConsoleBytes",
        Catch,
        CONSOLE_BYTES,
        "try { console.log('x'.repeat(LIMIT + 1)) } catch { return 1 } finally { return 2 }",
    ),
    row("maxConsoleCalls", Plain, CONSOLE_CALLS, "for (let i = 0; i <= LIMIT; i++) console.log(i)"),
    row("maxConsoleCalls", Await, CONSOLE_CALLS, "for (let i = 0; i <= LIMIT; i++) { await null; console.warn(i) }"),
    row("maxConsoleCalls", Callback, CONSOLE_CALLS, "Array(LIMIT + 1).fill(0).forEach(() => console.log(1))"),
    row("maxConsoleCalls", Native, CONSOLE_CALLS, "Array(LIMIT + 1).fill(0).map(console.log)"),
    row("maxConsoleCalls", Catch, CONSOLE_CALLS, "for (;;) try { console.error(1) } catch {} finally { continue }"),
    row(
        "maxConcurrency",
        Plain,
        ("ok", "LIMIT"),
        "await Promise.all(Array.from({ length: 120 }, () => users.wait({ ms: 5 }))); return (await users.most({})).most",
    ),
    row(
        "maxConcurrency",
        Callback,
        ("ok", "LIMIT"),
        "await parallel(Array(100).fill(() => Promise.all([users.wait({ ms: 5 }), users.wait({ ms: 5 }), users.wait({ ms: 5 }), users.wait({ ms: 5 }), users.wait({ ms: 5 }), users.wait({ ms: 5 })]))); return (await users.most({})).most",
    ),
];

/// Runs a row under a preset. Returns the status with the code, and the message or result.
///
/// # Panics
/// If the row names an unknown limit.
#[must_use]
pub fn run(row: &Row, preset: Preset) -> (String, String) {
    let limit = Limit::named(row.limit).expect("a limit");
    let value = limit.get(&Limits::preset(preset));
    let mut policy = Policy { loops: Loops::All, allow_console: true, ..Policy::preset(preset) };
    for other in LIMITS.iter().filter(|other| other.name != row.limit) {
        // Unlimited depth would need unlimited memory.
        let plenty = if other.name == "maxCallDepth" { 10_000 } else { u64::MAX / 4 };
        other.set(&mut policy.limits, if other.name == "maxToolCalls" { 0 } else { plenty });
    }
    let padding = "x".repeat(usize::try_from(value).unwrap_or_default().min(1 << 22));
    let script = row.script.replace("LIMIT", &value.to_string()).replace("PADDING", &padding);
    let outcome = execute(&script, &policy);
    let code = outcome.result.as_ref().map_or_else(|failure| format!(" {}", failure.code), |_| String::new());
    let text = match &outcome.result {
        Ok(result) => result.clone(),
        Err(failure) => failure.message.clone(),
    };
    (format!("{}{code}", outcome.status().as_str()), text)
}

/// The app `users`, whose calls [`execute`] answers.
struct Users;

impl Tools for Users {
    fn describe(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_app(&self, app: &str) -> bool {
        app == "users"
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        Some(format!("{app}:{tool}"))
    }

    fn similar(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Runs a script to its end. `users:wait` takes `ms` milliseconds, `users:most` returns the maximum number of concurrent
/// calls, and other tools answer at once.
fn execute(script: &str, policy: &Policy) -> Outcome {
    let script = match agentscript::compile(script, &CompileOptions::for_policy(policy)) {
        Ok(script) => script,
        Err(error) => return Outcome::not_compiled(error.failure),
    };
    let clock = Arc::new(FastClock::default());
    let inputs = Inputs {
        tools: Arc::new(Users),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        slice: Some(Duration::from_millis(50)),
        ..Inputs::default()
    };
    // Answers, sorted by their time.
    let mut pending: Vec<(u64, Event)> = Vec::new();
    let mut most = 0;
    host::finish(script.start(inputs, policy), |run, calls| {
        let now = clock.ms.load(Ordering::Relaxed);
        for call in calls {
            let input: serde_json::Value = serde_json::from_str(&call.input).expect("JSON");
            let wait = input["ms"].as_u64().unwrap_or(0);
            let result = match call.tool.as_str() {
                _ if wait > call.timeout_ms => Err(ToolError::timeout(&call.tool, call.timeout_ms)),
                "users:most" => Ok(format!("{{\"most\":{most}}}")),
                _ => Ok("{}".to_owned()),
            };
            pending.push((now + wait.min(call.timeout_ms), Event::Settled { id: call.id, result }));
        }
        most = most.max(pending.len());
        pending.sort_by_key(|(at, _)| *at);
        let deadline = now + u64::try_from(run.time_left().as_millis()).unwrap_or(u64::MAX / 4);
        let next = pending.first().map_or(u64::MAX, |(at, _)| *at);
        clock.ms.fetch_max(next.min(deadline), Ordering::Relaxed);
        // At its deadline, a run is resumed without an event.
        if next <= deadline && !pending.is_empty() { vec![pending.remove(0).1] } else { Vec::new() }
    })
}
