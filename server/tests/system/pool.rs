//! Many runs at once: short runs do not wait for long ones, and no run is lost. To print the figures: `cargo test
//! --release -p codecall --test system pool -- --ignored --nocapture`.

mod fairness;

use crate::runs::{Tools, ends};
use agentscript::{Inputs, Policy, Preset, Progress};
use codecall::runs::ExecuteRequest;
use codecall::{Config, Hub};
use cpu_time::ThreadTime;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Scripts that run until they are cancelled: plain loops, loops that wait, loops of long steps.
const ENDLESS: [&str; 5] = [
    "for (;;) {}",
    "for (;;) { await null; for (let i = 0; i < 1e4; i++); }",
    "const a = Array.from({ length: 3e5 }, (_, i) => `${(i * 7919) % 300007}`); for (;;) a.toSorted();",
    "const text = `[${'{\"a\":[1,2,3]},'.repeat(2e5)}0]`; for (;;) JSON.parse(text);",
    "const text = 'x'.repeat(2e3); for (;;) /(?=(x+)y)x/.test(text);",
];

const SMALL: &str =
    "const rows = [3, 1, 2].map((n) => ({ n })); return rows.sort((a, b) => a.n - b.n).map((row) => row.n)";

/// No limit ends a run before the test does.
fn endless() -> Policy {
    let mut policy = Policy::preset(Preset::Experimental);
    let limits = &mut policy.limits;
    (limits.max_steps, limits.max_iterations, limits.timeout_ms) = (u64::MAX, u64::MAX, 600_000);
    policy
}

fn hub(threads: usize, max_runs: usize, max_queue: usize) -> Arc<Hub> {
    let mut config = Config::default();
    (config.pool.threads, config.pool.max_runs, config.pool.max_queue) = (threads, max_runs, max_queue);
    Hub::start(crate::support::isolated(config), vec![Arc::new(Tools)]).expect("starts")
}

/// Measures `count` small runs, one after the other. Returns their durations, sorted.
async fn small_runs(hub: &Hub, count: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        let request = ExecuteRequest::new(SMALL, Policy::default());
        let finished = hub.execute(request, None, CancellationToken::new()).await;
        assert_eq!(finished.outcome.result.expect("ok"), "[1,2,3]");
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    took.sort();
    took
}

/// Measures the same beside endless runs.
async fn measure_beside(scripts: &[&str], count: usize) -> Vec<Duration> {
    let hub = hub(2, 32, 256);
    let cancel = CancellationToken::new();
    let others =
        scripts.iter().map(|script| hub.execute(ExecuteRequest::new(*script, endless()), None, cancel.clone()));
    let small = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let took = small_runs(&hub, count).await;
        cancel.cancel();
        took
    };
    let (others, took) = tokio::join!(join_all(others), small);
    for finished in others {
        assert_eq!(ends(&finished.outcome), "runtime_error EXECUTION_ABORTED");
    }
    hub.close().await;
    took
}

fn print_durations(what: &str, took: &[Duration]) {
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    print(&format!("{what}: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms", at(0.5), at(0.99), at(1.0)));
}

/// Prints a figure. The harness captures the output unless `--nocapture` is given.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_runs_do_not_wait_for_long_ones() {
    for script in ENDLESS {
        let took = measure_beside(&[script; 4], 20).await;
        // The long runs end when these have ended.
        assert!(took[10] < Duration::from_secs(2), "{script}: {took:?}");
    }
}

/// Runs so many scripts at once. Returns how they end, by status and code.
async fn crowd(count: usize, max_runs: usize, max_queue: usize) -> BTreeMap<String, usize> {
    let hub = hub(2, max_runs, max_queue);
    let script =
        "const all = await parallel([1, 2, 3], async (n) => (await callTool('t:echo', { n })).n); return all.length";
    let runs =
        (0..count).map(|_| hub.execute(ExecuteRequest::new(script, Policy::default()), None, CancellationToken::new()));
    let mut counts = BTreeMap::new();
    for finished in join_all(runs).await {
        *counts.entry(ends(&finished.outcome)).or_default() += 1;
    }
    hub.close().await;
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_runs_at_once() {
    let counts = crowd(1_000, 32, 100).await;
    // One that ends while others still come makes room for one more.
    let (ok, refused) = (counts["ok"], counts["runtime_error QUEUE_FULL"]);
    assert!((132..200).contains(&ok) && ok + refused == 1_000, "{counts:?}");
    assert_eq!(crowd(300, 32, 1_000).await, BTreeMap::from([("ok".to_owned(), 300)]));
}

/// Single long steps, each as long as the limits of the preset `secure` allow.
const LONG: [&str; 8] = [
    "const a = Array.from({ length: 9e4 }, (_, i) => `${(i * 7919) % 90007}`); return a.sort().length",
    "const text = `[${'{\"a\":[1,2,3]},'.repeat(2e5)}0]`; return JSON.parse(text).length",
    "const a = Array.from({ length: 9e4 }, (_, i) => ({ i, text: `row ${i}` })); return JSON.stringify(a).length",
    "return 'abc'.repeat(5e6).length",
    "return 'ab,'.repeat(5e5).split(',').join(';').length",
    "return 'a b '.repeat(5e5).replace(/b/g, 'cd').length",
    "return structuredClone(Array.from({ length: 9e4 }, (_, i) => ({ i }))).length",
    "return /(?=(x+)y)x/.test('x'.repeat(4e3))",
];

/// Returns the longest processor time of one call of `resume`, and that of the whole run.
fn longest_slice(script: &str, mut policy: Policy) -> (Duration, Duration) {
    policy.limits.timeout_ms = policy.limits.timeout_ms.min(3_500);
    let script = agentscript::compile(script, &agentscript::CompileOptions::for_policy(&policy)).expect("compiles");
    let mut run = script.start(Inputs { slice: Some(Duration::from_millis(2)), ..Inputs::default() }, &policy);
    let began = ThreadTime::now();
    let mut longest = Duration::ZERO;
    loop {
        let slice = ThreadTime::now();
        let progress = run.resume([]);
        longest = longest.max(slice.elapsed());
        if matches!(progress, Progress::Done(_)) {
            return (longest, began.elapsed());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints figures, which are for reading"]
async fn figures() {
    let endless = ENDLESS.map(|script| (script, endless()));
    for (script, policy) in endless.into_iter().chain(LONG.map(|script| (script, Policy::default()))) {
        let (longest, whole) = longest_slice(script, policy);
        let [longest, whole] = [longest, whole].map(|time| time.as_secs_f64() * 1e3);
        print(&format!("longest slice of 2 ms: {longest:.1} ms of {whole:.1} ms: {script}"));
    }
    print_durations("small runs alone", &measure_beside(&[], 300).await);
    for script in ENDLESS {
        print_durations(&format!("small runs beside 4 × {script}"), &measure_beside(&[script; 4], 300).await);
    }
    print_durations("small runs beside one of each", &measure_beside(&ENDLESS, 300).await);
    print(&format!("1000 runs at once, 32 places, a queue of 100: {:?}", crowd(1_000, 32, 100).await));
}
