//! Measures the cost of running scripts in worker processes: a fresh run, concurrent runs, memory.
//!
//! `cargo build --release -p codecall && cargo bench -p codecall-benches --bench isolation` prints a
//! table. The program of the workers is `codecall` of the same profile, or `CODECALL_PROGRAM`.

use codecall::config::IsolationMode;
use codecall::runs::ExecuteRequest;
use codecall::{Config, Hub};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Number of sequential runs for the time of a run.
const SEQUENTIAL_RUNS: usize = 400;
/// Number of concurrent runs for the throughput.
const CONCURRENCY: usize = 8;
/// Number of all runs for the throughput.
const CONCURRENT_RUNS: usize = 4_000;

fn program() -> PathBuf {
    let beside = || {
        let itself = std::env::current_exe().expect("a path");
        itself.parent().and_then(|deps| deps.parent()).expect("a folder").join("codecall")
    };
    std::env::var_os("CODECALL_PROGRAM").map_or_else(beside, PathBuf::from)
}

fn hub(mode: IsolationMode) -> Arc<Hub> {
    let mut config = Config::default();
    config.pool.threads = 2;
    (config.isolation.mode, config.isolation.workers) = (mode, Some(2));
    config.isolation.program = Some(program());
    Hub::start(config, codecall::upstream::demo::open().into_iter().collect()).expect("starts")
}

/// Returns a script that is different for each `number`, so it is not in the cache.
fn script(number: usize) -> String {
    format!(
        "const rows = [3, 1, 2].map((n) => ({{ n, text: `row ${{n + {number}}}` }}));
         const total = rows.reduce((sum, {{ n }}) => sum + n, 0);
         return {{ total, rows: rows.sort((a, b) => a.n - b.n).map(({{ text }}) => text) }};"
    )
}

/// Returns such a script with three tool calls, two of them concurrent.
fn script_with_calls(number: usize) -> String {
    format!(
        "const [users, orders] = await Promise.all([users_list(), callTool('orders:list', {{}})]);
         async function users_list() {{ return callTool('users:list', {{}}); }}
         const one = await callTool('users:list', {{}});
         return [typeof users, typeof orders, typeof one, {number}];"
    )
}

async fn run(hub: &Hub, script: String) {
    let request = ExecuteRequest::new(script, hub.config().policy.clone());
    let finished = hub.execute(request, None, CancellationToken::new()).await;
    assert!(finished.outcome.result.is_ok(), "{:?}", finished.outcome);
}

/// Returns the median time of single runs.
async fn alone(hub: &Hub, script: impl Fn(usize) -> String) -> Duration {
    let mut took = Vec::new();
    for number in 0..SEQUENTIAL_RUNS {
        let began = Instant::now();
        run(hub, script(number)).await;
        took.push(began.elapsed());
    }
    took.sort();
    took[took.len() / 2]
}

async fn per_second(hub: &Arc<Hub>, script: fn(usize) -> String) -> f64 {
    let began = Instant::now();
    let tasks: Vec<_> = (0..CONCURRENCY)
        .map(|task| {
            let hub = Arc::clone(hub);
            tokio::spawn(async move {
                for number in (task..CONCURRENT_RUNS).step_by(CONCURRENCY) {
                    run(&hub, script(number)).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("ends");
    }
    CONCURRENT_RUNS as f64 / began.elapsed().as_secs_f64()
}

/// Returns the private memory of each worker, in MiB.
fn memory() -> Vec<f64> {
    let own = std::process::id().to_string();
    let mut all = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1).map(str::to_owned));
        if parent.as_deref() == Some(own.as_str()) {
            let text = std::fs::read_to_string(process.path().join("smaps_rollup")).unwrap_or_default();
            let private = text.lines().filter(|line| line.starts_with("Private_"));
            let kib: f64 = private.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).sum();
            all.push(kib / 1024.0);
        }
    }
    all
}

#[tokio::main]
async fn main() {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "| | threads | workers |\n|---|---:|---:|");
    let began = Instant::now();
    let workers = hub(IsolationMode::Process);
    let start = began.elapsed();
    let threads = hub(IsolationMode::Thread);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let line = |what: &str, here: String, there: String| {
        let _ = writeln!(std::io::stdout(), "| {what} | {here} | {there} |");
    };
    line("a server and its first worker", String::new(), format!("{:.1} ms", ms(start)));
    let (here, there) = (alone(&threads, script).await, alone(&workers, script).await);
    line("a fresh run, median", format!("{:.3} ms", ms(here)), format!("{:.3} ms", ms(there)));
    let (here, there) = (alone(&threads, script_with_calls).await, alone(&workers, script_with_calls).await);
    line("the same with three tool calls", format!("{:.3} ms", ms(here)), format!("{:.3} ms", ms(there)));
    let (here, there) = (per_second(&threads, script).await, per_second(&workers, script).await);
    line("runs a second, two at a time", format!("{here:.0}"), format!("{there:.0}"));
    let (here, there) = (per_second(&threads, script_with_calls).await, per_second(&workers, script_with_calls).await);
    line("the same with three tool calls", format!("{here:.0}"), format!("{there:.0}"));
    let memory = memory();
    let most = memory.iter().copied().fold(0.0, f64::max);
    line(&format!("private memory of a worker ({} of them)", memory.len()), String::new(), format!("{most:.1} MiB"));
    let _ = writeln!(out, "\n{}", workers.isolation().join("\n"));
    workers.close().await;
    threads.close().await;
}
