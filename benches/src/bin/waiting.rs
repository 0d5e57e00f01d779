//! Measures the memory of many runs that wait at the same time. Prints a line of JSON for each state.
//!
//! Each state is measured once, because memory does not vary like time. Panics if a result is wrong.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

use agentscript::{CallId, CompileOptions, Event, Inputs, Policy, Preset, Progress, Run, Script};
use serde_json::json;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of runs that wait at the same time.
const RUNS: usize = 100_000;
/// Number of rows in the answer to a call.
const ROWS: usize = 5;
const THREADS: usize = 2;

/// A script with two sequential tool calls.
const JOIN: &str = r#"
const users = await callTool('users:list', { limit: 100 });
const teams = await callTool('users:list', { limit: 100, page: 2 });
const active = users.filter((u) => u.active && u.score > 20);
return { total: users.length + teams.length, names: active.map((u) => `${u.name} (${u.team})`) };
"#;

fn main() {
    let policy = Policy::preset(Preset::Balanced);
    let compile = || agentscript::compile(JOIN, &CompileOptions::for_policy(&policy)).expect("the script compiles");
    let script = compile();
    waiting("of one script", &policy, || Arc::clone(&script));
    waiting("of a script each", &policy, compile);
}

/// A run that waits for a tool call.
struct Waiting {
    number: usize,
    run: Run,
    call: CallId,
}

/// Starts runs until all wait, then resumes them with their answers, in another order and on other threads.
fn waiting(what: &str, policy: &Policy, script: impl Fn() -> Arc<Script> + Sync) {
    let inputs = Inputs::default();
    let before = resident();
    let began = Instant::now();
    let mut runs: Vec<Waiting> = in_parallel((0..RUNS).collect(), |number| {
        let mut run = script().start(inputs.clone(), policy);
        let call = only_call(run.resume([]));
        Some(Waiting { number, run, call })
    });
    report(what, "wait for their first tool", before, began.elapsed());
    shuffle(&mut runs, 1);
    let began = Instant::now();
    let mut runs = in_parallel(runs, |mut waiting| {
        let Progress::Calls(calls) = answer(&mut waiting) else { panic!("the script calls a second tool") };
        waiting.call = only_call(Progress::Calls(calls));
        Some(waiting)
    });
    report(what, "wait for their second tool", before, began.elapsed());
    shuffle(&mut runs, 2);
    let began = Instant::now();
    let left = in_parallel(runs, |mut waiting| {
        let Progress::Done(outcome) = answer(&mut waiting) else { panic!("the script ends") };
        assert_eq!(outcome.result.expect("the script succeeds"), expected(waiting.number));
        None::<Waiting>
    });
    assert!(left.is_empty());
    report(what, "have ended", before, began.elapsed());
}

/// Returns the only call that a run has made.
fn only_call(progress: Progress) -> CallId {
    let Progress::Calls(calls) = progress else { panic!("the script calls a tool") };
    assert_eq!(calls.len(), 1, "one call at a time");
    calls[0].id
}

fn answer(waiting: &mut Waiting) -> Progress {
    waiting.run.resume([Event::Settled { id: waiting.call, result: Ok(rows(waiting.number, ROWS)) }])
}

/// Returns rows that are different for each run.
fn rows(number: usize, count: usize) -> String {
    let mut text = String::from("[");
    for index in 0..count {
        let comma = if index == 0 { "" } else { "," };
        let active = index % 2 == 0;
        let _ = write!(
            text,
            r#"{comma}{{"id":{index},"name":"user {number}.{index}","active":{active},"team":"t{index}","score":50}}"#
        );
    }
    text + "]"
}

/// Returns the expected result of the script.
fn expected(number: usize) -> String {
    let names: Vec<String> = (0..ROWS)
        .filter(|index| index % 2 == 0)
        .map(|index| format!(r#""user {number}.{index} (t{index})""#))
        .collect();
    format!(r#"{{"total":{},"names":[{}]}}"#, ROWS * 2, names.join(","))
}

fn report(what: &str, state: &str, before: usize, took: Duration) {
    let memory = resident().saturating_sub(before);
    let rate = RUNS as f64 / took.as_secs_f64();
    let line = json!({ "runs": RUNS, "what": what, "state": state, "resident": memory, "rate": rate });
    println!("{line}");
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Processes items on several threads. Returns the results.
fn in_parallel<T: Send, U: Send>(items: Vec<T>, work: impl Fn(T) -> Option<U> + Sync) -> Vec<U> {
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let next = AtomicUsize::new(0);
    let part = || {
        let mut done = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let item = item.lock().unwrap_or_else(PoisonError::into_inner).take();
            done.extend(item.and_then(&work));
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(part)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread succeeds")).collect()
    })
}

/// Shuffles items, always in the same way.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for index in (1..items.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(index, (state >> 33) as usize % (index + 1));
    }
}
