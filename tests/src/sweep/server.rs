//! The server's own functions that see data of tools, scripts and clients, with every kind of huge and hostile value:
//! in a worker process that is measured from outside, with a value and with one four times as large.

pub mod functions;
pub mod report;
pub mod schemas;
pub mod values;

use super::watch::Process;
use super::worker::{self, status_bytes};
use cpu_time::ProcessTime;
use functions::{FUNCTIONS, Function};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use values::{Made, VALUES};

/// How much larger the second value is.
const TIMES: usize = 4;

/// How many times the time of the first value the second one may take.
const MOST_TIMES: f64 = 6.0;

/// What is too short to be compared, in milliseconds.
const SHORT_MS: f64 = 100.0;

/// How many times its time a function may take until its process is ended.
const MOST: u64 = 5;

/// Bytes of memory at which a process is ended.
const MOST_MEMORY: u64 = 12 << 30;

/// A function, a value, and how large it is.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What is called.
    pub function: &'static Function,
    /// Which of [`VALUES`].
    pub value: usize,
    /// Bytes of the larger value, about.
    pub bytes: usize,
}

/// What a function took for one value.
#[derive(Clone, Debug, Default)]
pub struct Took {
    /// Bytes of the value, as text.
    pub bytes: u64,
    /// Bytes of memory that it has.
    pub memory: u64,
    /// Processor time in milliseconds.
    pub ms: f64,
    /// The most by which the resident memory of the process grew.
    pub grown: u64,
    /// What became of the process, or of the function; empty: it has ended well.
    pub end: String,
}

/// What became of a case.
#[derive(Clone, Debug, Default)]
pub struct Result {
    /// For a quarter of the value.
    pub part: Took,
    /// For the value.
    pub whole: Took,
}

impl Case {
    /// What it is called, with what.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}({})", self.function.name, VALUES[self.value].name)
    }

    /// Milliseconds that so many bytes may take.
    #[must_use]
    pub fn most_ms(&self, bytes: u64) -> f64 {
        // Code that is not optimised is slower, and says nothing of the time but whether it is linear.
        let slow = if cfg!(debug_assertions) { 20.0 } else { 1.0 };
        slow * (bytes as f64 * self.function.nanoseconds / 1e6 + self.function.more_ms)
    }

    /// Bytes by which a process may grow for a value that has so many in memory.
    #[must_use]
    pub fn most_bytes(&self, memory: u64) -> u64 {
        memory * self.function.copies + (20 << 20)
    }

    /// What is wrong, if anything.
    #[must_use]
    pub fn fault(&self, result: &Result) -> Option<&'static str> {
        for took in [&result.part, &result.whole] {
            if !took.end.is_empty() {
                return Some(if took.end.starts_with("panic") { "panic" } else { "lost" });
            }
            if took.grown > self.most_bytes(took.memory) {
                return Some("memory");
            }
            if took.ms > self.most_ms(took.bytes) {
                return Some("time");
            }
        }
        let is_worse = result.whole.ms > MOST_TIMES * result.part.ms + SHORT_MS;
        is_worse.then_some("growth")
    }
}

/// Every function with every value that it takes, of about so many bytes.
#[must_use]
pub fn all(bytes: usize) -> Vec<Case> {
    let values = || VALUES.iter().enumerate();
    let takes = |function: &'static Function| {
        let fitting = values().filter(|(_, value)| function.takes.contains(&value.kind));
        fitting.map(move |(value, _)| Case { function, value, bytes })
    };
    FUNCTIONS.iter().flat_map(takes).collect()
}

/// Runs cases on so many worker processes at once; `done` gets each with what it took, in no order.
///
/// # Panics
/// A worker cannot be started.
pub fn run(program: &PathBuf, cases: &[Case], jobs: usize, done: impl FnMut(&Case, Result) + Send) {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                // What is made once, a hub with many tools, need not be made for each value.
                let mut process = None;
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut result = ask(program, &mut process, case);
                    // What passes a bound is run again, in a new process, before it is told.
                    if case.fault(&result).is_some() {
                        result = ask(program, &mut None, case);
                    }
                    (done.lock().expect("nothing panics with the lock"))(case, result);
                }
            });
        }
    });
}

/// Large values of JSON have so many bytes of memory for one of their text, at most.
const LOOSE: u64 = 100;

fn ask(program: &PathBuf, process: &mut Option<Process>, case: &Case) -> Result {
    let mut took = |bytes: usize| {
        let mut ready = process.take().unwrap_or_else(|| Process::start(program));
        let order = json!({"function": case.function.name, "value": case.value, "bytes": bytes}).to_string();
        let most_ms = case.most_ms(bytes as u64) as u64 * MOST;
        let most_bytes = (case.most_bytes(bytes as u64) * LOOSE).min(MOST_MEMORY);
        let (said, lost) = ready.ask(&order, most_ms.max(1000), most_bytes);
        if let Some(lost) = lost {
            return Took { bytes: bytes as u64, memory: 0, ms: lost.call_ms, grown: lost.grown, end: lost.end };
        }
        *process = Some(ready);
        said.last().and_then(|line| read(line)).unwrap_or_default()
    };
    let part = took(case.bytes / TIMES);
    let whole = if part.end.is_empty() { took(case.bytes) } else { Took::default() };
    Result { part, whole }
}

fn read(line: &str) -> Option<Took> {
    let value: Value = serde_json::from_str(line).ok()?;
    Some(Took {
        bytes: value["bytes"].as_u64()?,
        memory: value["memory"].as_u64()?,
        ms: value["ms"].as_f64()?,
        grown: value["grown"].as_u64()?,
        end: value["end"].as_str()?.to_owned(),
    })
}

/// Do what an order says: in the worker.
///
/// # Panics
/// There is no such function or value.
pub fn measure(order: &Value) {
    let named = |function: &&Function| order["function"] == function.name;
    let function = FUNCTIONS.iter().find(named).expect("a function of that name");
    let value = &VALUES[order["value"].as_u64().unwrap_or_default() as usize];
    let made = (value.make)(order["bytes"].as_u64().unwrap_or_default() as usize);
    let (bytes, memory) = (made.bytes(), made.memory());
    // What belongs to the server and is made once is there before.
    (function.call)(&Made::small(value.kind));
    let before = status_bytes("VmRSS:");
    worker::go();
    let began = ProcessTime::now();
    let result = catch_unwind(AssertUnwindSafe(|| (function.call)(&made)));
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let grown = status_bytes("VmHWM:").saturating_sub(before);
    let end = result.err().map_or_else(String::new, |panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.unwrap_or_default())
    });
    worker::say(&json!({"bytes": bytes, "memory": memory, "ms": ms, "grown": grown, "end": end}).to_string());
}
