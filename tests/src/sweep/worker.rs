//! The process that runs cases: one line of JSON in, one out, until its input ends. A line before it says when the
//! arguments are made.
//!
//! The clock of a run is the processor time of its process, and stands still until the script calls `sweep:go`: how
//! busy the machine is and what it takes to make the arguments change nothing.

use super::{Case, Measured, SETTINGS, Setting};
use agentscript::{Clock, CompileOptions, Event, Inputs, Outcome, Policy, Preset, Progress, Tools};
use cpu_time::ProcessTime;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The stack of the thread that runs scripts: as large as those of the server.
const STACK: usize = 8 << 20;

/// The line that says that arguments are made.
pub const GO: &str = "go";

/// Run what standard input says, on a thread like those of the server.
pub fn serve() {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        let mut output = std::io::stdout().lock();
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let order: Value = serde_json::from_str(&line).unwrap_or_default();
            let setting = &SETTINGS[order["setting"].as_u64().unwrap_or_default() as usize];
            let measured = measure(order["script"].as_str().unwrap_or_default(), setting);
            if writeln!(output, "{}", write(&measured)).and_then(|()| output.flush()).is_err() {
                return;
            }
        }
    });
    thread.expect("a thread").join().expect("the worker catches what panics");
}

/// A case as a line for a worker.
#[must_use]
pub fn order(case: &Case) -> String {
    json!({"script": case.script, "setting": case.setting}).to_string()
}

/// What a worker answers.
#[must_use]
pub fn read(line: &str) -> Option<Measured> {
    let value: Value = serde_json::from_str(line).ok()?;
    Some(Measured {
        call_ms: value["call"].as_f64()?,
        prepare_ms: value["prepare"].as_f64()?,
        grown: value["grown"].as_u64()?,
        answer_bytes: value["answer"].as_u64()?,
        steps: value["steps"].as_u64()?,
        end: value["end"].as_str()?.to_owned(),
        reached: value["reached"].as_bool()?,
        lost: false,
    })
}

fn write(measured: &Measured) -> Value {
    json!({
        "call": measured.call_ms,
        "prepare": measured.prepare_ms,
        "grown": measured.grown,
        "answer": measured.answer_bytes,
        "steps": measured.steps,
        "end": measured.end,
        "reached": measured.reached,
    })
}

fn measure(script: &str, setting: &Setting) -> Measured {
    // The kernel forgets the most memory there was.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let before = status_bytes("VmRSS:");
    let clock = Arc::new(CallClock::default());
    let began = ProcessTime::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let outcome = run(script, setting, &clock);
        let answer = outcome.to_json().len() as u64;
        (answer, outcome)
    }));
    let (answer_bytes, steps, end) = match &outcome {
        Ok((answer, outcome)) => {
            let code = outcome.result.as_ref().map_or_else(|failure| failure.code.clone(), |_| String::new());
            (*answer, outcome.stats.steps, format!("{} {code}", outcome.status().as_str()).trim_end().to_owned())
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            (0, 0, format!("panic: {}", text.unwrap_or_default()))
        }
    };
    drop(outcome);
    let total = began.elapsed();
    let call = clock.begun.get().map_or(Duration::ZERO, |begun| begun.elapsed());
    Measured {
        call_ms: call.as_secs_f64() * 1e3,
        prepare_ms: total.saturating_sub(call).as_secs_f64() * 1e3,
        grown: status_bytes("VmHWM:").saturating_sub(before),
        answer_bytes,
        steps,
        end,
        reached: clock.begun.get().is_some(),
        lost: false,
    }
}

fn run(script: &str, setting: &Setting, clock: &Arc<CallClock>) -> Outcome {
    let mut policy = Policy::preset(Preset::Experimental);
    let limits = &mut policy.limits;
    limits.max_memory_bytes = setting.memory_bytes;
    limits.timeout_ms = setting.timeout_ms;
    limits.max_result_bytes = setting.result_bytes;
    limits.max_console_bytes = setting.console_bytes;
    // Time and memory alone have to hold.
    (limits.max_steps, limits.max_iterations, limits.max_tool_calls) = (u64::MAX / 4, u64::MAX / 4, 1000);
    // A script that is itself what is measured has no call of `sweep:go`.
    if let Some(source) = script.strip_prefix("//source\n") {
        clock.begin();
        return compile_and_run(source, &policy, clock);
    }
    compile_and_run(script, &policy, clock)
}

fn compile_and_run(script: &str, policy: &Policy, clock: &Arc<CallClock>) -> Outcome {
    let script = match agentscript::compile(script, &CompileOptions::of(policy)) {
        Ok(script) => script,
        Err(error) => return Outcome::not_compiled(error.failure),
    };
    let inputs = Inputs {
        context: None,
        tools: Arc::new(Anything),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        seed: 1,
        slice: Some(Duration::from_millis(50)),
    };
    let mut run = script.start(inputs, policy);
    let mut events = Vec::new();
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => return *outcome,
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                let _ = run.take_messages();
                if calls.is_empty() {
                    // What nobody answers: the run is told that its time is over.
                    clock.jump();
                }
                for call in calls {
                    let result = match call.tool.as_str() {
                        "sweep:go" => Ok("null".to_owned()),
                        name => Ok(answer(name, &call.input)),
                    };
                    if call.tool == "sweep:go" {
                        clock.begin();
                    }
                    events.push(Event::Settled { id: call.id, result });
                }
            }
        }
    }
}

/// What tools answer: text whose parts nobody has read yet.
fn answer(tool: &str, input: &str) -> String {
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let count = input["n"].as_u64().unwrap_or(1).min(10_000_000) as usize;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<String>>().join(",");
    match tool {
        "sweep:text" => format!("{{\"text\":\"{}\"}}", "text ".repeat(count)),
        "sweep:rows" => format!("{{\"rows\":[{}]}}", list(&|at| format!("{{\"id\":{at},\"name\":\"row {at}\"}}"))),
        "sweep:keys" => format!("{{\"keys\":{{{}}}}}", list(&|at| format!("\"key{at}\":{at}"))),
        "sweep:numbers" => format!("{{\"rows\":[{}]}}", list(&|at| at.to_string())),
        "sweep:deep" => format!("{{\"deep\":{}1{}}}", "[".repeat(count), "]".repeat(count)),
        _ => "{}".to_owned(),
    }
}

/// A line of `/proc/self/status` in bytes; 0 where there is no such file.
fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() * 1024
}

/// Processor time of the process since [`CallClock::begin`], and what was waited on top.
#[derive(Default)]
struct CallClock {
    begun: OnceLock<ProcessTime>,
    jumped: AtomicU64,
}

impl CallClock {
    fn begin(&self) {
        // Whoever watches counts from here too.
        let mut output = std::io::stdout();
        let _ = writeln!(output, "{GO}").and_then(|()| output.flush());
        let _ = self.begun.set(ProcessTime::now());
    }

    fn jump(&self) {
        self.jumped.fetch_add(1 << 40, Ordering::Relaxed);
    }
}

impl Clock for CallClock {
    fn monotonic(&self) -> Duration {
        let jumped = Duration::from_millis(self.jumped.load(Ordering::Relaxed));
        jumped + self.begun.get().map_or(Duration::ZERO, ProcessTime::elapsed)
    }

    fn unix_ms(&self) -> f64 {
        1.7e12
    }
}

/// Every tool is there, and every app but those that scripts have variables for.
struct Anything;

impl Tools for Anything {
    fn describe(&self, name: &str) -> Option<String> {
        name.starts_with("sweep:").then(|| json!({"name": name, "appId": "sweep"}).to_string())
    }

    fn is_app(&self, app: &str) -> bool {
        app == "sweep"
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        (app == "sweep").then(|| format!("{app}:{tool}"))
    }

    fn similar(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}
