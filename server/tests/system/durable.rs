//! Runs that outlive their server.

use crate::model_server::{HttpProcess, http_client, post_json};
use crate::support::*;
use crate::upstream_server::tool;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::process::Command;

/// How long an outcome is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// An MCP server that notes its calls.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Vec<Value>>>, Arc<AtomicUsize>);

/// Counts a call that is dropped before it has an answer.
struct CountDropped(Arc<AtomicUsize>, bool);

impl Drop for CountDropped {
    fn drop(&mut self) {
        if !self.1 {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Ledger {
    /// Starts it. Returns its address.
    pub async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = axum::Router::new().route("/mcp", post(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/mcp")
    }

    /// Number of calls whose caller has gone before they had an answer.
    #[cfg(feature = "restate")]
    pub fn dropped(&self) -> usize {
        self.1.load(Ordering::SeqCst)
    }

    /// How many calls have begun.
    #[cfg(feature = "postgres")]
    pub fn calls(&self) -> usize {
        self.0.lock().expect("not poisoned").len()
    }

    /// How often a call of this name has begun.
    #[cfg(feature = "postgres")]
    pub fn times(&self, name: &str) -> usize {
        self.0.lock().expect("not poisoned").iter().filter(|arguments| arguments["name"] == name).count()
    }

    /// The arguments of the calls that have begun, in order.
    pub fn begun(&self) -> Vec<Value> {
        self.0.lock().expect("not poisoned").clone()
    }
}

async fn answer(State(ledger): State<Ledger>, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let arguments = &message["params"]["arguments"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "ledger", "version": "1"},
        }),
        Some("tools/list") => {
            let annotated = |name: &str, annotations: Value| {
                let mut tool = tool(name, "A tool of a ledger");
                tool["annotations"] = annotations;
                tool
            };
            json!({"tools": [
                annotated("read", json!({"readOnlyHint": true})),
                annotated("add", json!({"readOnlyHint": false, "idempotentHint": true})),
                annotated("pay", json!({"readOnlyHint": false, "idempotentHint": false})),
            ]})
        }
        Some("tools/call") => {
            let mut noted = arguments.clone();
            noted["key"] = message["params"]["_meta"]["codecall/idempotencyKey"].clone();
            ledger.0.lock().expect("not poisoned").push(noted);
            let mut dropped = CountDropped(Arc::clone(&ledger.1), false);
            tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or(20))).await;
            dropped.1 = true;
            let is_refused = arguments["attempt"].as_u64().is_some_and(|attempt| attempt < 2);
            json!({"content": [{"type": "text", "text": arguments.to_string()}], "isError": is_refused})
        }
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

pub fn config(folder: &Folder, url: &str, more: Value) -> String {
    let mut config = json!({
        "mcpServers": {"ledger": {"url": url}},
        "stateDir": folder.path("state"),
        "store": folder.path("state/codecall.db"),
        "durable": {"enabled": true, "leaseMs": 500},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    folder.file("config.json", config.to_string())
}

pub async fn submit(server: &HttpProcess, script: &str, context: Value) -> String {
    let (status, answer) = post_json(&server.url, "/v1/runs", &json!({"script": script, "context": context})).await;
    assert_eq!((status, &answer["status"]), (202, &json!("running")), "{answer}");
    answer["id"].as_str().expect("an id").to_owned()
}

pub async fn get(server: &HttpProcess, path: &str) -> (u16, Value) {
    let response = http_client().get(format!("{}{path}", server.url)).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.json().await.expect("JSON"))
}

/// Returns the outcome of a run.
pub async fn outcome(server: &HttpProcess, id: &str) -> Value {
    let began = Instant::now();
    loop {
        let (status, answer) = get(server, &format!("/v1/runs/{id}?wait=20")).await;
        assert_eq!(status, 200, "{answer}");
        if answer["status"] != "running" {
            return answer;
        }
        assert!(began.elapsed() < LIMIT, "it does not end: {answer}");
    }
}

pub async fn kill(server: HttpProcess) {
    let id = server.pid().to_string();
    assert!(Command::new("kill").args(["-9", &id]).status().await.expect("kill").success());
}

/// Calls one after the other, in parallel, until one succeeds, after a time, and one that must not be repeated.
pub const STEPS: &str = "
    const { run } = codecallContext, random = Math.random(), began = Date.now();
    const first = await ledger.read({ run, step: 1, random });
    const sums = await Promise.all([1, 2, 3].map((n) => ledger.add({ run, step: 2, n, ms: 10 * n })));
    let attempt = 0, last;
    while (!last) {
        try { last = await ledger.add({ run, step: 3 + attempt, attempt, ms: 5 }) } catch { attempt += 1 }
    }
    await sleep(50);
    let paid;
    try { paid = (await ledger.pay({ run, step: 6, ms: 30 })).step } catch (error) { paid = error.code }
    const end = await ledger.read({ run, step: 7, seen: sums.map((sum) => sum.n), ms: 10 });
    return { run, attempt, paid, seen: end.seen, same: end.run === first.run && first.random === random, slept: Date.now() - began >= 50 }";

/// Checks the outcome and the calls of a run of [`STEPS`], `before` and after processes were killed. Returns whether a call was
/// interrupted, and how many were made again.
pub fn check_steps(run: &str, answer: &Value, before: &[Value], begun: &[Value]) -> (bool, usize) {
    let mut result = answer["result"].clone();
    let paid = result["paid"].take();
    let expected = json!({"run": run, "attempt": 2, "paid": null, "seen": [1, 2, 3], "same": true, "slept": true});
    assert_eq!((&answer["status"], &result), (&json!("ok"), &expected), "{answer}");
    assert!(paid == 6 || paid == "CALL_INTERRUPTED", "{answer}");
    let step = |call: &Value| (call["run"] == run).then(|| call["step"].as_u64().unwrap_or_default());
    let last = before.iter().filter_map(step).max().unwrap_or_default();
    let after: Vec<u64> = begun[before.len()..].iter().filter_map(step).collect();
    // A step begins when the answers of the one before it are in the journal.
    assert!(after.iter().all(|&step| step >= last), "{last} had begun, then {after:?}");
    let counts = |wanted: u64| begun.iter().filter_map(step).filter(|&step| step == wanted).count();
    // It may have been interrupted before it reached its tool.
    assert!(counts(6) <= 1 && (paid != 6 || counts(6) == 1), "what is not idempotent is called once");
    assert!((3..=6).contains(&counts(2)) && [1, 3, 4, 5, 7].iter().all(|&step| (1..=2).contains(&counts(step))));
    (paid != 6, begun.iter().filter_map(step).count().saturating_sub(9))
}

/// Moments at which processes are killed, in milliseconds, the same in each run.
pub fn moments(most: u64) -> impl Iterator<Item = Duration> {
    let next = |seed: &u64| seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    std::iter::successors(Some(0x9E37_79B9_7F4A_7C15_u64), move |seed| Some(next(seed)))
        .skip(1)
        .map(move |seed| Duration::from_millis((seed >> 33) % most))
}

/// Returns how many times processes are killed: `CODECALL_KILLS`, or a few.
pub fn kills() -> usize {
    std::env::var("CODECALL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6)
}

/// Servers are killed at random moments. The number of moments is `CODECALL_KILLS`, or a few.
#[tokio::test]
async fn a_run_survives_its_server() {
    let kills = kills();
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let mut server = HttpProcess::start(&["--config", &config]).await;
    let (mut interrupted, mut repeated) = (0, 0);
    for (moment, wait) in moments(450).take(kills).enumerate() {
        let runs: Vec<String> = (0..3).map(|number| format!("{moment}.{number}")).collect();
        let submitted = join_all(runs.iter().map(|run| submit(&server, STEPS, json!({"run": run})))).await;
        tokio::time::sleep(wait).await;
        kill(server).await;
        let before = ledger.begun();
        server = HttpProcess::start(&["--config", &config]).await;
        for (run, id) in runs.iter().zip(&submitted) {
            let answer = outcome(&server, id).await;
            let was = check_steps(run, &answer, &before, &ledger.begun());
            interrupted += u64::from(was.0);
            repeated += was.1;
        }
    }
    assert!(kills < 50 || (interrupted > 0 && repeated > 0), "{interrupted} interrupted, {repeated} repeated");
    assert_eq!(server.end().await, Some(0));
}

/// The server of `codecall_execute` is stopped: the client gets the outcome by the handle that it is told.
#[tokio::test]
async fn an_agent_gets_the_outcome_of_another_server() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = Arc::new(Server::start(&["--config", &config]).await);
    let script = "const first = await ledger.read({ n: 1 }); await sleep(1500);
        return [first.n, (await ledger.pay({ n: 2 })).n]";
    let asked = Arc::clone(&server);
    let answer = tokio::spawn(async move { asked.ask("codecall_execute", json!({"script": script})).await });
    until("it has begun", || ledger.begun().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.expect("kill").success());
    let answer = answer.await.expect("an answer");
    assert_eq!(answer["status"], "waiting", "{answer}");
    drop(server);
    let server = Server::start(&["--config", &config]).await;
    let answer = server.ask("codecall_execute", json!({"handle": answer["handle"]})).await;
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!([1, 2])), "{answer}");
    assert_eq!(ledger.begun().len(), 2);
    // One that has ended has its outcome already.
    let answer = server.ask("codecall_execute", json!({"script": "return (await ledger.read({ n: 3 })).n"})).await;
    assert_eq!(answer["result"], 3, "{answer}");
}

#[tokio::test]
async fn an_interrupted_call_can_be_caught_or_not() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let slow = |tool: &str| format!("return (await ledger.{tool}({{ run: 'x', ms: 700 }})).run");
    let (paid, added) =
        (submit(&server, &slow("pay"), json!({})).await, submit(&server, &slow("add"), json!({})).await);
    until("both calls have begun", || ledger.begun().len() == 2).await;
    kill(server).await;
    let server = HttpProcess::start(&["--config", &config]).await;
    let failed = outcome(&server, &paid).await;
    assert_eq!(
        (&failed["status"], &failed["error"]["code"]),
        (&json!("tool_error"), &json!("CALL_INTERRUPTED")),
        "{failed}"
    );
    assert_eq!(outcome(&server, &added).await["result"], "x");
    let begun = ledger.begun();
    assert_eq!(begun.len(), 3, "only the idempotent call is made again");
    let keys: Vec<&str> = begun.iter().filter_map(|call| call["key"].as_str()).collect();
    assert_eq!(keys[2], format!("{added}:0"), "the tool can tell that it is the same call");
    assert!(keys[..2].contains(&keys[2]) && keys[0] != keys[1], "{keys:?}");
}

const ALICE: &str = "token-of-alice-0123456789";
const BOB: &str = "token-of-bob-0123456789";

/// Two clients, one of which may only read.
pub fn clients() -> Value {
    let alice = json!({"name": "alice", "token": ALICE, "tools": {"allow": ["ledger:read"]}});
    json!({"tokens": [alice, {"name": "bob", "token": BOB}]})
}

/// Checks that a run has the tools of its client, and that the other client does not see it.
pub async fn check_clients(server: &HttpProcess) {
    let send = |token: &'static str, request: reqwest::RequestBuilder| async move {
        let response = request.header("authorization", format!("Bearer {token}")).send().await.expect("an answer");
        (response.status().as_u16(), response.json::<Value>().await.unwrap_or_default())
    };
    let script = "const read = await ledger.read({ n: 1 });
        const paid = await callTool('ledger:pay', { n: 2 }).catch((error) => error.code); return [read.n, paid.n ?? paid]";
    let url = format!("{}/v1/runs", server.url);
    for (token, other, paid) in [(ALICE, BOB, json!("TOOL_NOT_FOUND")), (BOB, ALICE, json!(2))] {
        let body = json!({"script": script}).to_string();
        let request = http_client().post(&url).header("content-type", "application/json").body(body);
        let (status, submitted) = send(token, request).await;
        assert_eq!(status, 202, "{submitted}");
        let run = format!("{url}/{}", submitted["id"].as_str().expect("an id"));
        let (status, answer) = send(token, http_client().get(format!("{run}?wait=30"))).await;
        assert_eq!((status, &answer["result"]), (200, &json!([1, paid])), "{answer}");
        assert_eq!(send(other, http_client().get(&run)).await.0, 404);
        assert_eq!(send(other, http_client().post(format!("{run}/cancel"))).await.0, 404);
    }
}

#[tokio::test]
async fn a_run_belongs_to_its_client() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({"http": clients()}));
    check_clients(&HttpProcess::start(&["--config", &config]).await).await;
}

/// A server that is stopped leaves its runs to the next one at once.
#[tokio::test]
async fn a_run_outlives_a_deploy() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let durable = json!({"durable": {"enabled": true, "leaseMs": 600_000}, "pool": {"maxRuns": 4}});
    let config = config(&folder, &ledger.start().await, durable);
    let server = HttpProcess::start(&["--config", &config]).await;
    let script = "await ledger.read({ n: 1 }); await sleep(900); return (await ledger.read({ n: 2 })).n";
    let runs = join_all((0..6).map(|_| submit(&server, script, json!({})))).await;
    until("four have begun", || ledger.begun().len() >= 4).await;
    // Now they sleep.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(server.end().await, Some(0));
    let server = HttpProcess::start(&["--config", &config]).await;
    for run in runs {
        let answer = outcome(&server, &run).await;
        assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!(2)), "{answer}");
    }
    assert_eq!(ledger.begun().len(), 12, "no call is made again");
}

#[tokio::test]
async fn a_run_can_be_cancelled_and_followed() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let endless = submit(&server, "while (true) { await ledger.read({ ms: 1 }); await sleep(20) }", json!({})).await;
    until("it calls", || ledger.begun().len() > 2).await;
    let path = format!("/v1/runs/{endless}");
    let stream = http_client().get(format!("{}{path}/events", server.url)).send().await.expect("an answer");
    let mut stream = stream.bytes_stream();
    let first = stream.next().await.expect("an event").expect("bytes");
    assert!(first.starts_with(b"event: status\ndata: {\"status\":\"running\""), "{first:?}");
    let cancelled = post_json(&server.url, &format!("{path}/cancel"), &json!({})).await;
    assert_eq!(cancelled, (200, json!({"id": endless, "cancelled": true})));
    let next = tokio::time::timeout(LIMIT, stream.next()).await.expect("in time").expect("an event").expect("bytes");
    assert!(
        next.starts_with(b"event: outcome\n") && String::from_utf8_lossy(&next).contains("EXECUTION_ABORTED"),
        "{next:?}"
    );
    assert!(stream.next().await.is_none(), "nothing comes after the outcome");
    let (_, answer) = get(&server, &path).await;
    assert_eq!(answer["error"]["code"], "EXECUTION_ABORTED", "{answer}");
    let again = post_json(&server.url, &format!("{path}/cancel"), &json!({})).await;
    assert_eq!(again, (200, json!({"id": endless, "cancelled": false})));
    let calls = ledger.begun().len();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(ledger.begun().len(), calls, "it calls no more");

    // One that nobody evaluates is cancelled by the next server.
    let slow = submit(&server, "await ledger.pay({ ms: 60000 }); return 1", json!({})).await;
    until("it calls", || ledger.begun().len() > calls).await;
    kill(server).await;
    let server = HttpProcess::start(&["--config", &config]).await;
    let path = format!("/v1/runs/{slow}/cancel");
    assert_eq!(post_json(&server.url, &path, &json!({})).await.1["cancelled"], true);
    assert_eq!(outcome(&server, &slow).await["error"]["code"], "EXECUTION_ABORTED");
}

#[tokio::test]
async fn what_is_submitted_wrongly_is_refused() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let url = ledger.start().await;
    let config = config(&folder, &url, json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let with_key = |key: &'static str, body: Value| {
        let request = http_client().post(format!("{}/v1/runs", server.url)).header("content-type", "application/json");
        let sent = request.header("idempotency-key", key).body(body.to_string()).send();
        async move {
            let response = sent.await.expect("an answer");
            (response.status().as_u16(), response.json::<Value>().await.expect("JSON"))
        }
    };
    let script = json!({"script": "return (await ledger.add({ n: 1 })).n"});
    let (first, second) = (with_key("a", script.clone()).await, with_key("a", script.clone()).await);
    assert_eq!((first.0, &first), (202, &second));
    assert_eq!(outcome(&server, first.1["id"].as_str().expect("an id")).await["result"], 1);
    assert_eq!(with_key("a", script.clone()).await, first, "also when it has ended");
    assert_eq!(ledger.begun().len(), 1);
    assert_ne!(with_key("b", script).await.1["id"], first.1["id"]);
    for (status, code, request) in [
        (409, json!("KEY_USED"), with_key("a", json!({"script": "return 2"})).await),
        (400, json!(null), with_key("", json!({"script": "return 2"})).await),
        (400, json!(null), post_json(&server.url, "/v1/runs", &json!({"script": "  "})).await),
        (400, json!(null), post_json(&server.url, "/v1/runs", &json!({"script": "return 1", "handle": "x"})).await),
        (400, json!(null), post_json(&server.url, "/v1/runs", &json!({"scripts": "return 1"})).await),
        (404, json!(null), get(&server, "/v1/runs/0123456789abcdef0123456789abcdef").await),
        (404, json!(null), get(&server, "/v1/runs/none").await),
        (400, json!(null), get(&server, "/v1/runs/0123456789abcdef0123456789abcdef?wait=61").await),
        (
            404,
            json!(null),
            post_json(&server.url, "/v1/runs/0123456789abcdef0123456789abcdef/cancel", &json!({})).await,
        ),
    ] {
        assert_eq!((request.0, &request.1["error"]["code"]), (status, &code), "{}", request.1);
    }
    // A script that fails is an outcome.
    let id = submit(&server, "return nope(", json!({})).await;
    assert_eq!(outcome(&server, &id).await["status"], "syntax_error");
    drop(server);

    for (section, status, code) in [
        (json!({"durable": {}}), 501, "NO_DURABLE_RUNS"),
        (json!({"durable": {"enabled": true, "maxOpen": 1}, "pool": {"maxRuns": 1}}), 503, "TOO_MANY_RUNS"),
    ] {
        let folder = Folder::new();
        let config = self::config(&folder, &url, section);
        let server = HttpProcess::start(&["--config", &config]).await;
        let _ = post_json(&server.url, "/v1/runs", &json!({"script": "await ledger.read({ ms: 60000 })"})).await;
        let refused = post_json(&server.url, "/v1/runs", &json!({"script": "return 1"})).await;
        assert_eq!((refused.0, &refused.1["error"]["code"]), (status, &json!(code)), "{}", refused.1);
    }
}

/// Two servers share a store: when one dies, the other one goes on with its runs.
#[tokio::test]
async fn another_server_takes_over() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let (one, two) =
        (HttpProcess::start(&["--config", &config]).await, HttpProcess::start(&["--config", &config]).await);
    let script =
        "const first = await ledger.pay({ n: 1 }); await sleep(1200); return [first.n, (await ledger.pay({ n: 2 })).n]";
    let runs = join_all((0..4).map(|at| submit(if at % 2 == 0 { &one } else { &two }, script, json!({})))).await;
    until("all have begun", || ledger.begun().len() == 4).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    kill(one).await;
    for run in &runs {
        let answer = outcome(&two, run).await;
        assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!([1, 2])), "{answer}");
    }
    assert_eq!(ledger.begun().len(), 8, "no call is made twice");
}

/// A journal that was changed by somebody else ends its run, with a message that says so.
#[tokio::test]
async fn a_journal_that_is_damaged_is_not_replayed() {
    for (change, code) in [
        ("UPDATE journal_entries SET sealed = zeroblob(60) WHERE number = 1", "REPLAY_MISMATCH"),
        (
            "UPDATE journal_entries SET sealed = substr(sealed, 1, length(sealed) - 1) WHERE number = 0",
            "REPLAY_MISMATCH",
        ),
        ("DELETE FROM journal_entries WHERE number = 0", "REPLAY_MISMATCH"),
        ("DELETE FROM journal_entries WHERE number = 1", "REPLAY_MISMATCH"),
        ("UPDATE journal_entries SET number = 9 - number", "REPLAY_MISMATCH"),
        ("UPDATE journaled_runs SET header = x'00'", "REPLAY_MISMATCH"),
        // The end of it is missing: the last call is as if it had not been answered.
        ("DELETE FROM journal_entries WHERE number >= 1", "CALL_INTERRUPTED"),
    ] {
        let (folder, ledger) = (Folder::new(), Ledger::default());
        let config = config(&folder, &ledger.start().await, json!({}));
        let server = HttpProcess::start(&["--config", &config]).await;
        let run = submit(&server, "await ledger.pay({ n: 1 }); await sleep(60000); return 1", json!({})).await;
        until("it has begun", || ledger.begun().len() == 1).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        kill(server).await;
        let store = rusqlite::Connection::open(folder.path("state/codecall.db")).expect("the store");
        assert!(store.execute(change, []).expect("changed") > 0, "{change}");
        drop(store);
        let server = HttpProcess::start(&["--config", &config]).await;
        let began = Instant::now();
        let answer = loop {
            let (status, answer) = get(&server, &format!("/v1/runs/{run}?wait=20")).await;
            if answer["status"] != "running" {
                assert_eq!(status, 200, "{change}: {answer}");
                break answer;
            }
            assert!(began.elapsed() < LIMIT, "{change}: {answer}");
        };
        assert_eq!(answer["error"]["code"], code, "{change}: {answer}");
        assert_eq!(ledger.begun().len(), 1, "{change}");
    }
}

/// A program without the engine that a configuration names says so, and journals nothing elsewhere.
#[cfg(not(feature = "restate"))]
#[tokio::test]
async fn an_engine_that_is_not_built_in_is_an_error() {
    let folder = Folder::new();
    let durable = json!({"durable": {"enabled": true, "restate": "http://127.0.0.1:8080"}});
    let config = folder.file("codecall.json", durable.to_string());
    for words in
        [&["run", "--config", &config, "-"][..], &["serve", "--config", &config], &["worker"], &["worker", "drain"]]
    {
        let refused = codecall(words).await;
        let says =
            refused.stderr.contains("was built without Restate") && refused.stderr.contains("--features restate");
        assert!(refused.code == Some(2) && says, "{words:?}: {refused:?}");
    }
}
