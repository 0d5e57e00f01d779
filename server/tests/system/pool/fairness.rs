//! Clients share the pool: runs of one that wait, or never end, do not hold up another one.

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ALICE: &str = "token-of-alice-0123456789";
const BOB: &str = "token-of-bob-0123456789";

const SMALL: &str = "return [3, 1, 2].sort().length";

async fn start(folder: &Folder, config: Value) -> HttpProcess {
    let mut all = json!({
        "http": {"tokens": [{"name": "alice", "token": ALICE}, {"name": "bob", "token": BOB}]},
        "vm": {"preset": "experimental"},
    });
    for (key, value) in config.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    let config = folder.file("config.json", all.to_string());
    HttpProcess::start(&["--demo", "--config", &config]).await
}

/// Runs a script of a client. Returns its answer.
async fn execute(client: &reqwest::Client, server: &HttpProcess, token: &str, id: usize, script: &str) -> Value {
    let params = json!({
        "name": "codecall_execute", "arguments": {"script": script},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}},
    });
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let sent = client
        .post(format!("{}/mcp", server.url))
        .bearer_auth(token)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "codecall_execute")
        .body(body.to_string());
    let Ok(answer) = sent.send().await else { return Value::Null };
    let text = answer.text().await.unwrap_or_default();
    let line = text.lines().rev().find_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("\"id\"")));
    let message: Value = serde_json::from_str(line.unwrap_or(&text)).unwrap_or(Value::String(text));
    let content = message["result"]["content"][0]["text"].as_str();
    content.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(message)
}

/// Measures small scripts of a client, one after the other. Returns their durations, sorted.
async fn small_scripts(server: &HttpProcess, count: usize) -> Vec<Duration> {
    let client = http_client();
    let mut took = Vec::new();
    for id in 0..count + 5 {
        let began = Instant::now();
        let answer = execute(&client, server, BOB, id, SMALL).await;
        assert_eq!(answer["result"], 3, "{answer}");
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // The first ones start threads and connections.
    took.drain(..5);
    took.sort();
    took
}

/// Returns a figure of the server.
async fn gauge(server: &HttpProcess, name: &str) -> usize {
    let text = http_client().get(format!("{}/metrics", server.url)).bearer_auth(OPERATOR).send().await;
    let text = text.expect("an answer").text().await.expect("text");
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number") as usize
}

const OPERATOR: &str = "token-of-the-operator-0123";

fn config(pool: Value) -> Value {
    let operator = json!({"name": "operator", "token": OPERATOR, "operator": true});
    let tokens = json!([{"name": "alice", "token": ALICE}, {"name": "bob", "token": BOB}, operator]);
    json!({"http": {"tokens": tokens, "maxConnections": 1_000}, "pool": pool})
}

/// Measures a client alone, and beside so many scripts of another one. Returns the 99th percentiles.
async fn measure(config: Value, script: &str, runs: usize, waiting: usize, count: usize) -> [Duration; 2] {
    let folder = Folder::new();
    let server = start(&folder, config).await;
    let p99 = |took: &[Duration]| took[(took.len() - 1) * 99 / 100];
    let alone = small_scripts(&server, count).await;
    let client = http_client();
    let others = join_all((0..runs).map(|id| execute(&client, &server, ALICE, id, script)));
    let beside = async {
        let began = Instant::now();
        while gauge(&server, "codecall_runs_waiting{pool=\"execute\"}").await < waiting {
            assert!(began.elapsed() < TIMEOUT, "they do not begin");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        small_scripts(&server, count).await
    };
    let beside = tokio::select! {
        ended = others => panic!("the others end first: {:?}", ended.first()),
        beside = beside => beside,
    };
    assert_eq!(server.end().await, Some(0));
    [p99(&alone), p99(&beside)]
}

const SLEEPS: &str = "await sleep(600_000)";

/// More sleeping scripts than permits, places and positions in the queue leave room for another client.
#[tokio::test(flavor = "multi_thread")]
async fn sleeping_scripts_of_a_client_do_not_hold_up_another() {
    for pool in
        [json!({"maxRuns": 4}), json!({"maxRuns": 4, "maxWaiting": 4, "maxQueue": 20, "queueTimeoutMs": 600_000})]
    {
        let waiting = if pool["maxWaiting"].is_null() && !is_isolated() { 24 } else { 4 };
        let took = measure(config(pool), SLEEPS, 24, waiting, 20).await;
        assert!(took[1] < Duration::from_secs(5), "{took:?}");
    }
}

/// 300 sleeping scripts. It prints the 99th percentiles.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "SKIPPED: prints figures, and needs a machine that is not busy: bash .ci/run"]
async fn three_hundred_sleeping_scripts_of_a_client() {
    let waiting = if is_isolated() { 32 } else { 300 };
    for (name, script, waiting) in [
        ("that sleep", SLEEPS, waiting),
        ("that sleep again and again", "for (;;) await sleep(100)", waiting / 2),
        ("that never end", "for (;;) {}", 0),
    ] {
        let took = measure(config(json!({})), script, 300, waiting, 300).await;
        let ratio = took[1].as_secs_f64() / took[0].as_secs_f64();
        super::print(&format!("beside 300 scripts {name}: p99 {:?}, alone {:?}: × {ratio:.2}", took[1], took[0]));
    }
}
