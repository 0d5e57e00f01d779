//! Calls the server's functions for data of tools, scripts and clients, with every kind of huge and hostile value. The
//! worker processes are measured from outside. Each call is made with a value and with one four times as large.

pub mod functions;
pub mod report;
pub mod schemas;
pub mod values;

use super::runner::Process;
use super::worker::{self, status_bytes};
use cpu_time::ProcessTime;
use functions::{FUNCTIONS, Function};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use values::{Made, VALUES};

/// Size of the second value relative to the first one.
const SIZE_FACTOR: usize = 4;

/// Maximum time for the second value relative to the first one.
const MAX_TIME_FACTOR: f64 = 6.0;

/// Shorter times are not compared, in milliseconds.
const SHORT_MS: f64 = 100.0;

/// A process is killed when a function takes this many times its time.
const KILL_FACTOR: u64 = 5;

/// A process is killed when it has more memory, in bytes.
const MAX_MEMORY_BYTES: u64 = 12 << 30;

/// A function with a value of a certain size.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The function.
    pub function: &'static Function,
    /// Index of the value in [`VALUES`].
    pub value: usize,
    /// Approximate size of the larger value, in bytes.
    pub bytes: usize,
}

/// The measurements of a call.
#[derive(Clone, Debug, Default)]
pub struct Took {
    /// Size of the value as text, in bytes.
    pub bytes: u64,
    /// Size of the value in memory, in bytes.
    pub memory: u64,
    /// CPU time, in milliseconds.
    pub ms: f64,
    /// Maximum growth of the resident memory of the process, in bytes.
    pub grown: u64,
    /// How the process or the function has failed; empty if it has not.
    pub end: String,
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct Result {
    /// The measurements for a quarter of the value.
    pub part: Took,
    /// The measurements for the value.
    pub whole: Took,
}

impl Case {
    /// Returns the name of the function and of the value.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}({})", self.function.name, VALUES[self.value].name)
    }

    /// Returns the maximum time for a value of this size, in milliseconds.
    #[must_use]
    pub fn max_ms(&self, bytes: u64) -> f64 {
        // Without optimisation only the growth of the time matters.
        let slow = if cfg!(debug_assertions) { 20.0 } else { 1.0 };
        slow * (bytes as f64 * self.function.nanoseconds / 1e6 + self.function.more_ms)
    }

    /// Returns the maximum growth of a process for a value of this size in memory, in bytes.
    #[must_use]
    pub fn max_bytes(&self, memory: u64) -> u64 {
        memory * self.function.copies + (20 << 20)
    }

    /// Returns the bound that it exceeds, or how it failed; `None` if it did neither.
    #[must_use]
    pub fn fault(&self, result: &Result) -> Option<&'static str> {
        for took in [&result.part, &result.whole] {
            if !took.end.is_empty() {
                return Some(if took.end.starts_with("panic") { "panic" } else { "lost" });
            }
            if took.grown > self.max_bytes(took.memory) {
                return Some("memory");
            }
            if took.ms > self.max_ms(took.bytes) {
                return Some("time");
            }
        }
        let is_worse = result.whole.ms > MAX_TIME_FACTOR * result.part.ms + SHORT_MS;
        is_worse.then_some("growth")
    }
}

/// Returns every function with every value that it accepts, of about `bytes` bytes.
#[must_use]
pub fn all(bytes: usize) -> Vec<Case> {
    let values = || VALUES.iter().enumerate();
    let takes = |function: &'static Function| {
        let fitting = values().filter(|(_, value)| function.takes.contains(&value.kind));
        fitting.map(move |(value, _)| Case { function, value, bytes })
    };
    FUNCTIONS.iter().flat_map(takes).collect()
}

/// Runs cases in `jobs` worker processes at once. `done` gets each case with its result, in no particular order.
///
/// # Panics
/// If a worker cannot be started.
pub fn run(program: &PathBuf, cases: &[Case], jobs: usize, done: impl FnMut(&Case, Result) + Send) {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                // A process is reused, because it creates things such as a hub with many tools only once.
                let mut process = None;
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut result = run_case(program, &mut process, case);
                    // A case that exceeds a bound is repeated in a new process before it is reported.
                    if case.fault(&result).is_some() {
                        result = run_case(program, &mut None, case);
                    }
                    (done.lock().expect("nothing panics with the lock"))(case, result);
                }
            });
        }
    });
}

/// Maximum size of JSON values in memory, relative to their text.
const MAX_EXPANSION: u64 = 100;

fn run_case(program: &PathBuf, process: &mut Option<Process>, case: &Case) -> Result {
    let mut took = |bytes: usize| {
        let mut ready = process.take().unwrap_or_else(|| Process::start(program));
        let request = json!({"function": case.function.name, "value": case.value, "bytes": bytes}).to_string();
        let max_ms = case.max_ms(bytes as u64) as u64 * KILL_FACTOR;
        let max_bytes = (case.max_bytes(bytes as u64) * MAX_EXPANSION).min(MAX_MEMORY_BYTES);
        let (response, lost) = ready.request(&request, max_ms.max(1000), max_bytes);
        if let Some(lost) = lost {
            return Took { bytes: bytes as u64, memory: 0, ms: lost.call_ms, grown: lost.grown, end: lost.end };
        }
        *process = Some(ready);
        response.last().and_then(|line| parse(line)).unwrap_or_default()
    };
    let part = took(case.bytes / SIZE_FACTOR);
    let whole = if part.end.is_empty() { took(case.bytes) } else { Took::default() };
    Result { part, whole }
}

fn parse(line: &str) -> Option<Took> {
    let value: Value = serde_json::from_str(line).ok()?;
    Some(Took {
        bytes: value["bytes"].as_u64()?,
        memory: value["memory"].as_u64()?,
        ms: value["ms"].as_f64()?,
        grown: value["grown"].as_u64()?,
        end: value["end"].as_str()?.to_owned(),
    })
}

/// Executes a request in the worker.
///
/// # Panics
/// If there is no such function or value.
pub fn measure(request: &Value) {
    let named = |function: &&Function| request["function"] == function.name;
    let function = FUNCTIONS.iter().find(named).expect("a function of that name");
    let value = &VALUES[request["value"].as_u64().unwrap_or_default() as usize];
    let made = (value.make)(request["bytes"].as_u64().unwrap_or_default() as usize);
    let (bytes, memory) = (made.bytes(), made.memory());
    // The first call creates what the server creates once.
    (function.call)(&Made::small(value.kind));
    let before = status_bytes("VmRSS:");
    worker::start_measurement();
    let began = ProcessTime::now();
    let result = catch_unwind(AssertUnwindSafe(|| (function.call)(&made)));
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let grown = status_bytes("VmHWM:").saturating_sub(before);
    let end = result.err().map_or_else(String::new, |panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.unwrap_or_default())
    });
    worker::print_line(&json!({"bytes": bytes, "memory": memory, "ms": ms, "grown": grown, "end": end}).to_string());
}
