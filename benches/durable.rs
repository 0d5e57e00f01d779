//! Measures the cost of durable runs: three instant tool calls (`CODECALL_CALLS`), one after the other, with and
//! without a journal.
//!
//! `cargo bench -p codecall-benches --bench durable` prints a table. With the feature `postgres` and the address of
//! an empty database in `CODECALL_POSTGRES` the journals are there. With the feature `restate` and the address of an ingress in
//! `CODECALL_RESTATE` it is Restate that keeps them, with a worker in this process.

use codecall::hub::DurableEngine;
use codecall::store::Database;
use codecall::tool::ToolDefinition;
use codecall::upstream::inline::Inline;
use codecall::upstream::{Upstream, UpstreamCall};
use codecall::{Config, Extensions, Hub, LiveHub, meta};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Number of runs that are measured, one at a time.
const SEQUENTIAL_RUNS: usize = 400;
/// Number of clients at once.
const CLIENTS: usize = 64;
/// Number of all their runs.
const CONCURRENT_RUNS: usize = 6_400;
/// Calls of a run, if `CODECALL_CALLS` says nothing else.
const CALLS: usize = 3;

fn calls() -> usize {
    std::env::var("CODECALL_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(CALLS)
}

fn script() -> String {
    let calls = calls();
    format!(
        "let sum = 0; for (let id = 1; id <= {calls}; id++) sum += (await callTool('users:get', {{ id }})).id; return sum"
    )
}

/// The engine that keeps the journals in place of the store.
#[cfg(feature = "restate")]
fn engine(config: &Config) -> Option<Arc<dyn DurableEngine>> {
    restate(config).map(|client| client as _)
}

#[cfg(feature = "restate")]
fn restate(config: &Config) -> Option<Arc<codecall_restate::RestateClient>> {
    codecall_restate::RestateClient::configured(&config.durable).expect("an address")
}

#[cfg(not(feature = "restate"))]
fn engine(config: &Config) -> Option<Arc<dyn DurableEngine>> {
    assert!(config.durable.restate.is_none(), "CODECALL_RESTATE needs the feature restate");
    None
}

fn hub(folder: &Path, durable: bool) -> LiveHub {
    let mut config = Config::default();
    (config.pool.threads, config.pool.max_runs) = (2, CLIENTS);
    config.state_dir = Some(folder.to_owned());
    config.history.record = codecall::config::RecordedRuns::Off;
    config.durable.enabled = durable;
    config.durable.restate = std::env::var("CODECALL_RESTATE").ok().filter(|_| durable);
    let engine = engine(&config);
    let upstreams: Vec<Arc<dyn Upstream>> = vec![Arc::new(users())];
    let extensions = Extensions { upstreams, database: Some(database(folder)), engine, ..Extensions::default() };
    let live = LiveHub::from(Hub::start_with(config, extensions).expect("starts"));
    meta::resume_runs(&live, &CancellationToken::new());
    live
}

/// Starts the worker of a hub whose journals Restate keeps.
#[cfg(feature = "restate")]
async fn start_worker(live: &LiveHub) {
    let hub = live.get();
    let Some(restate) = restate(hub.config()) else { return };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let worker = codecall_restate::Worker::new(live.clone(), restate);
    let (registered, is_registered) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let served = worker.serve(listener, &address, CancellationToken::new(), |_| {
            let _ = registered.send(());
        });
        served.await.expect("serves");
    });
    is_registered.await.expect("registers");
}

#[cfg(not(feature = "restate"))]
async fn start_worker(_live: &LiveHub) {}

/// A tool that answers at once. With `CODECALL_READ_ONLY` it says that it only reads, so that its calls may be repeated.
fn users() -> Inline {
    let read_only = std::env::var_os("CODECALL_READ_ONLY").map(|_| ("readOnlyHint".to_owned(), json!(true)));
    let definition = ToolDefinition {
        app: "users".into(),
        name: "get".into(),
        description: "Returns a user".into(),
        input_schema: json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}),
        annotations: read_only.into_iter().collect(),
        ..ToolDefinition::default()
    };
    let get = |call: UpstreamCall| async move { Ok(json!({"id": call.input["id"], "name": "Ada", "role": "admin"})) };
    Inline::new("users").define(definition, get)
}

#[cfg(feature = "postgres")]
fn database(folder: &Path) -> Database {
    match std::env::var("CODECALL_POSTGRES") {
        Ok(url) => Database::postgres(&url).expect("an address"),
        Err(_) => Database::file(&folder.join("codecall.db")),
    }
}

#[cfg(not(feature = "postgres"))]
fn database(folder: &Path) -> Database {
    Database::file(&folder.join("codecall.db"))
}

async fn run(hub: &Hub) -> Duration {
    let script = json!({"script": script()});
    let began = Instant::now();
    let answer = meta::call_for_command(hub, "codecall_execute", script, CancellationToken::new());
    let answer: Value = answer.await.expect("a meta-tool").content.into_value();
    assert_eq!(answer["status"], "ok", "{answer}");
    began.elapsed()
}

/// The figures of a hub.
struct Figures {
    /// Time of a run, alone: the median and the 99th percentile.
    alone: [Duration; 2],
    /// The duration beside other clients.
    beside: [Duration; 2],
    per_second: f64,
}

fn percentiles(mut took: Vec<Duration>) -> [Duration; 2] {
    took.sort();
    [took[took.len() / 2], took[took.len() * 99 / 100]]
}

async fn measure(live: &LiveHub) -> Figures {
    let hub = live.get();
    for _ in 0..50 {
        run(&hub).await;
    }
    let mut alone = Vec::new();
    for _ in 0..SEQUENTIAL_RUNS {
        alone.push(run(&hub).await);
    }
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        let hub = Arc::clone(&hub);
        tokio::spawn(async move {
            let mut took = Vec::new();
            for _ in 0..CONCURRENT_RUNS / CLIENTS {
                took.push(run(&hub).await);
            }
            took
        })
    });
    let mut beside = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        beside.extend(client.await.expect("ends"));
    }
    let per_second = CONCURRENT_RUNS as f64 / began.elapsed().as_secs_f64();
    Figures { alone: percentiles(alone), beside: percentiles(beside), per_second }
}

#[tokio::main]
async fn main() {
    let folder = std::env::temp_dir().join(format!("codecall-durable-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (plain, durable) = (hub(&folder, false), hub(&folder, true));
    start_worker(&durable).await;
    let (before, after) = (measure(&plain).await, measure(&durable).await);
    let size = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |file| file.len());
    let bytes = size("codecall.db") + size("codecall.db-wal");
    let line = |what: &str, here: String, there: String| {
        let _ = writeln!(std::io::stdout(), "| {what} | {here} | {there} |");
    };
    let ms = |[median, late]: [Duration; 2]| {
        format!("{:.2} ms, {:.2} ms", median.as_secs_f64() * 1e3, late.as_secs_f64() * 1e3)
    };
    line(&format!("{} calls, one after the other", calls()), "in memory".into(), "durable".into());
    let _ = writeln!(std::io::stdout(), "|---|---:|---:|");
    line("a run, alone: median, 99th percentile", ms(before.alone), ms(after.alone));
    let added = (after.alone[0].saturating_sub(before.alone[0])).as_secs_f64() * 1e6;
    if calls() > 0 {
        line("added for each call, median", String::new(), format!("{:.0} µs", added / calls() as f64));
    }
    line(&format!("a run beside {} others", CLIENTS - 1), ms(before.beside), ms(after.beside));
    line("runs a second", format!("{:.0}", before.per_second), format!("{:.0}", after.per_second));
    let runs = (50 + SEQUENTIAL_RUNS + CONCURRENT_RUNS) as u64;
    // Another store, and Restate, keep them elsewhere.
    if ["CODECALL_POSTGRES", "CODECALL_RESTATE"].iter().all(|name| std::env::var_os(name).is_none()) {
        line("bytes of an ended run in the file", String::new(), (bytes / runs).to_string());
    }
    durable.close().await;
    plain.close().await;
    let _ = std::fs::remove_dir_all(folder);
}
