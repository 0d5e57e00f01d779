//! The process that runs cases. It reads a line of JSON for each script. For each case it writes a line [`GO`] at the start
//! and a line of JSON at the end, and then a line [`DONE`].
//!
//! The clock of a run is the CPU time of its process since the script has called `sweep:go`. So neither a busy machine nor
//! the creation of the values affects it.

use super::{Case, Measured, SETTINGS, Setting, server};
use crate::host;
use agentscript::{Clock, CompileOptions, Event, Inputs, Outcome, Policy, Preset, Tools};
use cpu_time::ProcessTime;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Size of the native stack of the thread that runs scripts. Those of the server are larger.
const STACK: usize = 8 << 20;

/// The line at the start of a case.
pub const GO: &str = "go";

/// The line at the end of a script.
pub const DONE: &str = "done";

/// Runs the scripts that standard input requests, on a thread with a large stack.
pub fn serve() {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(|| {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let request: Value = serde_json::from_str(&line).unwrap_or_default();
            let setting = &SETTINGS[request["setting"].as_u64().unwrap_or_default() as usize];
            match request["script"].as_str() {
                Some(script) => measure(script, request["source"] == true, setting),
                None => server::measure(&request),
            }
            print_line(DONE);
        }
    });
    thread.expect("a thread").join().expect("the worker catches what panics");
}

/// Writes a line to the runner. If it has exited, this process exits too.
pub fn print_line(line: &str) {
    let mut output = std::io::stdout().lock();
    if writeln!(output, "{line}").and_then(|()| output.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Starts a measurement: resets the peak of the resident memory, and notifies the runner.
pub fn start_measurement() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    print_line(GO);
}

/// Returns the request that runs cases with the same values.
#[must_use]
pub fn request(cases: &[&Case]) -> String {
    let (source, setting) = (cases[0].is_source, cases[0].setting);
    json!({"script": super::script(cases), "source": source, "setting": setting}).to_string()
}

/// Parses a line of a response: the index of a case in its script, and its measurements.
#[must_use]
pub fn parse(line: &str) -> Option<(usize, Measured)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let measured = Measured {
        call_ms: value["call"].as_f64()?,
        grown: value["grown"].as_u64()?,
        answer_bytes: value["answer"].as_u64()?,
        end: value["end"].as_str()?.to_owned(),
        reached: value["reached"].as_bool()?,
        lost: false,
    };
    Some((value["at"].as_u64()? as usize, measured))
}

/// A case in progress.
struct Call {
    at: usize,
    begun: ProcessTime,
    /// Resident memory before the script, in bytes.
    before: u64,
}

impl Call {
    fn begin(at: usize, before: u64) -> Self {
        start_measurement();
        Self { at, begun: ProcessTime::now(), before }
    }

    fn end(&self, end: &str, answer_bytes: u64) {
        let call = self.begun.elapsed().as_secs_f64() * 1e3;
        let grown = status_bytes("VmHWM:").saturating_sub(self.before);
        let line = json!({
            "at": self.at, "call": call, "grown": grown, "answer": answer_bytes, "end": end, "reached": true,
        });
        print_line(&line.to_string());
    }
}

fn measure(script: &str, is_source: bool, setting: &Setting) {
    let before = status_bytes("VmRSS:");
    let clock = Arc::new(CallClock::default());
    let mut call = None;
    if is_source {
        call = Some(Call::begin(0, before));
        clock.begin();
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let outcome = compile_and_run(script, setting, &clock, &mut call, before);
        let answer = outcome.to_json().len() as u64;
        (answer, outcome)
    }));
    let (answer, end) = match &outcome {
        Ok((answer, outcome)) => {
            let code = outcome.result.as_ref().map_or_else(|failure| failure.code.clone(), |_| String::new());
            (*answer, format!("{} {code}", outcome.status().as_str()).trim_end().to_owned())
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            (0, format!("panic: {}", text.unwrap_or_default()))
        }
    };
    drop(outcome);
    match call {
        Some(call) => call.end(&end, answer),
        None => {
            let line = json!({"at": 0, "call": 0.0, "grown": 0, "answer": 0, "end": end, "reached": false});
            print_line(&line.to_string());
        }
    }
}

fn policy(setting: &Setting) -> Policy {
    let mut policy = all_allowed();
    let limits = &mut policy.limits;
    limits.max_memory_bytes = setting.memory_bytes;
    limits.timeout_ms = setting.timeout_ms;
    limits.max_result_bytes = setting.result_bytes;
    limits.max_console_bytes = setting.console_bytes;
    // Only the limits of time and memory are tested.
    (limits.max_steps, limits.max_iterations, limits.max_tool_calls) = (u64::MAX / 4, u64::MAX / 4, 2000);
    policy
}

fn compile_and_run(
    script: &str,
    setting: &Setting,
    clock: &Arc<CallClock>,
    call: &mut Option<Call>,
    before: u64,
) -> Outcome {
    let policy = policy(setting);
    let script = match agentscript::compile(script, &CompileOptions::for_policy(&policy)) {
        Ok(script) => script,
        Err(error) => return Outcome::not_compiled(error.failure),
    };
    let inputs = Inputs {
        context: None,
        tools: Arc::new(SweepTools),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        seed: 1,
        slice: Some(Duration::from_millis(50)),
    };
    host::finish(script.start(inputs, &policy), |run, calls| {
        let _ = run.take_messages();
        if calls.is_empty() {
            // The run waits for nothing: end it by its time limit.
            clock.jump();
        }
        let mut events = Vec::with_capacity(calls.len());
        for made in calls {
            if made.tool == "sweep:go" {
                if let Some(call) = call.take() {
                    call.end("ok", 0);
                }
                let input: Value = serde_json::from_str(&made.input).unwrap_or_default();
                *call = Some(Call::begin(input["at"].as_u64().unwrap_or_default() as usize, before));
                clock.begin();
                run.restart_timer();
            }
            events.push(Event::Settled { id: made.id, result: Ok(answer(&made.tool, &made.input)) });
        }
        events
    })
}

/// Returns the policy in which scripts have everything.
pub fn all_allowed() -> Policy {
    Policy { fetch: true, ..Policy::preset(Preset::Experimental) }
}

/// Returns the answer of a tool: JSON text that is not parsed yet.
fn answer(tool: &str, input: &str) -> String {
    // The memory of a large input would be that of this process, not that of its script.
    if !tool.starts_with("sweep:") && tool != "fetch" || tool == "sweep:none" {
        return "{}".to_owned();
    }
    let input: Value = serde_json::from_str(input).unwrap_or_default();
    let count = input["n"].as_u64().unwrap_or(1).min(10_000_000) as usize;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<String>>().join(",");
    match tool {
        "sweep:go" => "null".to_owned(),
        "sweep:text" => format!("{{\"text\":\"{}\"}}", "text ".repeat(count)),
        // What is asked for is in the body of the request.
        "fetch" => {
            let asked: Value = serde_json::from_str(input["body"].as_str().unwrap_or_default()).unwrap_or_default();
            let count = asked["n"].as_u64().unwrap_or(1).min(10_000_000) as usize;
            let body = json!({"text": "text ".repeat(count)}).to_string();
            json!({"status": 200, "statusText": "OK", "url": input["url"], "headers": [["x-a", "b"]], "body": body})
                .to_string()
        }
        "sweep:rows" => format!("{{\"rows\":[{}]}}", list(&|at| format!("{{\"id\":{at},\"name\":\"row {at}\"}}"))),
        "sweep:keys" => format!("{{\"keys\":{{{}}}}}", list(&|at| format!("\"key{at}\":{at}"))),
        "sweep:numbers" => format!("{{\"rows\":[{}]}}", list(&|at| at.to_string())),
        "sweep:deep" => format!("{{\"deep\":{}1{}}}", "[".repeat(count), "]".repeat(count)),
        _ => "{}".to_owned(),
    }
}

/// Returns the value of a line of `/proc/self/status`, in bytes; 0 if there is no such file.
pub fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() * 1024
}

/// CPU time of the process since [`CallClock::begin`], plus virtual waiting time.
#[derive(Default)]
struct CallClock {
    begun: OnceLock<ProcessTime>,
    jumped: AtomicU64,
}

impl CallClock {
    fn begin(&self) {
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

/// The tools of the app `sweep`.
struct SweepTools;

impl Tools for SweepTools {
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
