//! Measures Restate itself, without CodeCall. A workflow calls a service three times (`CODECALL_CALLS`), one call after
//! the other, both by its SDK alone. It is what `durable` is to be compared with.
//!
//! `CODECALL_RESTATE=http://127.0.0.1:8080 cargo bench -p codecall-benches --bench restate --features restate`

use restate_sdk::prelude::*;
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// Number of clients at once.
const CLIENTS: usize = 64;
/// Number of all their runs.
const RUNS: usize = 3_200;
/// Number of runs that are measured, one at a time.
const SEQUENTIAL_RUNS: usize = 100;
/// Calls of a run, if `CODECALL_CALLS` says nothing else.
const CALLS: u32 = 3;

struct BareRun;

#[restate_sdk::workflow(name = "BareRun")]
impl BareRun {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, calls: u32) -> Result<u32, HandlerError> {
        let mut sum = 0;
        for id in 1..=calls {
            sum += ctx.service_client::<BareToolClient>().call(id).call().await?;
        }
        Ok(sum)
    }
}

struct BareTool;

#[restate_sdk::service(name = "BareTool")]
impl BareTool {
    #[handler]
    async fn call(&self, _ctx: Context<'_>, id: u32) -> Result<u32, HandlerError> {
        Ok(id)
    }
}

async fn post(client: &reqwest::Client, url: &str, body: &Value) -> Value {
    let request = client.post(url).header("content-type", "application/json").body(body.to_string());
    let answer = request.send().await.expect("an answer").text().await.expect("text");
    serde_json::from_str(&answer).expect("JSON")
}

async fn run(client: &reqwest::Client, restate: &str, name: String, calls: u32) -> Duration {
    let began = Instant::now();
    let answer = post(client, &format!("{restate}/BareRun/{name}/run"), &json!(calls)).await;
    assert_eq!(answer, json!(calls * (calls + 1) / 2));
    began.elapsed()
}

fn told(mut took: Vec<Duration>) -> String {
    took.sort();
    let ms = |at: usize| took[at].as_secs_f64() * 1e3;
    format!("{:.2} ms, {:.2} ms", ms(took.len() / 2), ms(took.len() * 99 / 100))
}

#[tokio::main]
async fn main() {
    let restate = std::env::var("CODECALL_RESTATE").expect("CODECALL_RESTATE: the address of the ingress");
    let admin = std::env::var("CODECALL_RESTATE_ADMIN").unwrap_or_else(|_| "http://127.0.0.1:9070".into());
    let calls = std::env::var("CODECALL_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(CALLS);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let endpoint = Endpoint::builder().bind(BareRun).bind(BareTool).build();
    tokio::spawn(async move { HttpServer::new(endpoint).serve(listener).await });
    let client = codecall::http::client(Duration::from_secs(60)).expect("a client");
    let registered = post(&client, &format!("{admin}/deployments"), &json!({"uri": address})).await;
    assert!(registered["id"].is_string(), "{registered}");
    let (client, restate, prefix) = (Arc::new(client), Arc::new(restate), std::process::id());
    for number in 0..50 {
        run(&client, &restate, format!("{prefix}-warm-{number}"), calls).await;
    }
    let mut alone = Vec::new();
    for number in 0..SEQUENTIAL_RUNS {
        alone.push(run(&client, &restate, format!("{prefix}-alone-{number}"), calls).await);
    }
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|of| {
        let (client, restate) = (Arc::clone(&client), Arc::clone(&restate));
        tokio::spawn(async move {
            let mut took = Vec::new();
            for number in 0..RUNS / CLIENTS {
                took.push(run(&client, &restate, format!("{prefix}-{of}-{number}"), calls).await);
            }
            took
        })
    });
    let mut beside = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        beside.extend(client.await.expect("ends"));
    }
    let per_second = RUNS as f64 / began.elapsed().as_secs_f64();
    let _ = writeln!(std::io::stdout(), "| Restate alone, {calls} calls | |\n|---|---:|");
    let _ = writeln!(std::io::stdout(), "| a run, alone: median, 99th percentile | {} |", told(alone));
    let _ = writeln!(std::io::stdout(), "| a run beside {} others | {} |", CLIENTS - 1, told(beside));
    let _ = writeln!(std::io::stdout(), "| runs a second | {per_second:.0} |");
}
