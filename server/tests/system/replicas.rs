//! Several servers of one Postgres database, also behind a balancer: each request of a client may arrive at another one.

mod cluster;

use crate::durable::Ledger;
use crate::interactive::fixture;
use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use crate::third_party::{client, node_package, python};
use cluster::Cluster;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// A client that says itself to which server each request goes.
struct Client {
    http: reqwest::Client,
    session: Option<String>,
}

/// An answer that is read event by event.
struct Events {
    response: reqwest::Response,
    read: String,
}

impl Events {
    /// Returns the next message, with the id of its event.
    async fn next(&mut self) -> Option<(Option<String>, Value)> {
        loop {
            while let Some(end) = self.read.find("\n\n") {
                let event: String = self.read.drain(..end + 2).collect();
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                if let Some(message) = field("data:").and_then(|data| serde_json::from_str(data).ok()) {
                    return Some((field("id:").map(str::to_owned), message));
                }
            }
            let chunk = tokio::time::timeout(TIMEOUT, self.response.chunk()).await.expect("an event");
            self.read.push_str(std::str::from_utf8(&chunk.ok()??).expect("UTF-8"));
        }
    }

    /// Returns the first message that is one of these.
    async fn find(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, message) = self.next().await.expect("it comes");
            if is_wanted(&message) {
                return message;
            }
        }
    }
}

impl Client {
    /// Opens a session at a server.
    async fn open(server: &HttpProcess, capabilities: Value) -> Self {
        let mut client = Self { http: http_client(), session: None };
        let opening = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": opening});
        let mut events = client.send(server, &message).await;
        let session = events.response.headers().get("mcp-session-id").expect("a session");
        client.session = Some(session.to_str().expect("text").to_owned());
        assert_eq!(events.next().await.expect("an answer").1["result"]["protocolVersion"], "2025-11-25");
        client
    }

    fn request(&self, method: reqwest::Method, server: &HttpProcess) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}/mcp", server.url));
        let request = request.header("accept", "application/json, text/event-stream");
        match &self.session {
            Some(session) => request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25"),
            None => request,
        }
    }

    async fn post(&self, server: &HttpProcess, message: &Value) -> reqwest::Response {
        let request = self.request(reqwest::Method::POST, server).header("content-type", "application/json");
        request.body(message.to_string()).send().await.expect("an answer")
    }

    async fn send(&self, server: &HttpProcess, message: &Value) -> Events {
        let response = self.post(server, message).await;
        assert_eq!(response.status(), StatusCode::OK, "{message}");
        Events { response, read: String::new() }
    }

    /// Sends a message that is no request.
    async fn note(&self, server: &HttpProcess, message: &Value) {
        assert_eq!(self.post(server, message).await.status(), StatusCode::ACCEPTED, "{message}");
    }

    async fn call(&self, server: &HttpProcess, id: u32, name: &str, arguments: Value) -> Events {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(server, &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await
    }

    /// Opens the stream for what the server sends by itself.
    async fn listen(&self, server: &HttpProcess, last: Option<&str>) -> Events {
        let mut request = self.request(reqwest::Method::GET, server);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        Events { response, read: String::new() }
    }
}

/// Returns the outcome in the answer of `codecall_execute`.
fn outcome(message: &Value) -> Value {
    let text = message["result"]["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_else(|| panic!("{message}"))).expect("JSON")
}

fn is_answer(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}

/// A session, what it asks the client, what it is told, and its end, with each request at another server than the one before.
#[tokio::test]
async fn a_session_is_that_of_all_servers() {
    let cluster =
        Cluster::start(json!({"front": "code", "mcpServers": {"legacy": {"url": fixture::serve().await}}})).await;
    let (one, two, three) = (cluster.server().await, cluster.server().await, cluster.server().await);
    let client = Client::open(&one, json!({"elicitation": {"form": {}}})).await;
    client.note(&two, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let (_, listed) = client.send(&three, &list).await.next().await.expect("an answer");
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(4), "{listed}");

    // The question comes from the second, and the answer goes to the third.
    let script = json!({"script": "return await legacy.greet({})"});
    let mut events = client.call(&two, 2, "codecall_execute", script).await;
    let asked = events.find(|message| message["method"] == "elicitation/create").await;
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    client.note(&three, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).await;
    let answered = events.find(is_answer).await;
    assert_eq!((&answered["id"], &outcome(&answered)["result"]), (&json!(2), &json!("accept Ada")), "{answered}");

    // The level is set at the first; the second logs, and the stream is open to the third.
    let set = json!({"jsonrpc": "2.0", "id": 3, "method": "logging/setLevel", "params": {"level": "warning"}});
    client.send(&one, &set).await.find(is_answer).await;
    let mut stream = client.listen(&three, None).await;
    let script = json!({"script": "mcpLog('info', 'silent'); mcpLog('warning', 'loud'); return 1"});
    client.call(&two, 4, "codecall_execute", script).await.find(is_answer).await;
    let is_of_script = |message: &Value| message["params"]["logger"] == "codecall.script";
    let logged = stream.find(is_of_script).await;
    assert_eq!(logged["params"]["data"]["message"], "loud", "{logged}");

    // A cancellation at the first ends the run at the second.
    let script = json!({"script": "await sleep(40000)"});
    let mut events = client.call(&two, 5, "codecall_execute", script).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    client.note(&one, &cancelled).await;
    while events.next().await.is_some_and(|(_, message)| !is_answer(&message)) {}

    // A server that starts now knows the session with all that has changed it.
    let four = cluster.server().await;
    let script = json!({"script": "mcpLog('info', 'silent'); mcpLog('error', 'again'); return 2"});
    client.call(&four, 6, "codecall_execute", script).await.find(is_answer).await;
    let logged = stream.find(is_of_script).await;
    assert_eq!(logged["params"]["data"]["message"], "again", "{logged}");

    let ended = client.request(reqwest::Method::DELETE, &four).send().await.expect("an answer");
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    for server in [&one, &two, &three, &four] {
        until_gone(&client, server, &list).await;
    }
}

/// Waits until a server does not know a session any more. It hears of the end from another one.
async fn until_gone(client: &Client, server: &HttpProcess, request: &Value) {
    let began = tokio::time::Instant::now();
    while client.post(server, request).await.status() != StatusCode::NOT_FOUND {
        assert!(began.elapsed() < TIMEOUT, "the session is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A stream that was lost goes on at another server; if its server was killed, the client is told so.
#[tokio::test]
async fn a_lost_stream_goes_on() {
    let cluster = Cluster::start(json!({})).await;
    let (one, two) = (cluster.server().await, cluster.server().await);
    let client = Client::open(&one, json!({})).await;
    let script = json!({"script": "await sleep(1500); return 'the end'"});
    for is_killed in [false, true] {
        let message = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "codecall_execute", "arguments": script},
        });
        let mut response = client.post(&one, &message).await;
        let first = response.chunk().await.expect("an event").expect("an event");
        let first = String::from_utf8(first.to_vec()).expect("text");
        let event = first.lines().find_map(|line| line.strip_prefix("id:")).expect("an id").trim().to_owned();
        drop(response);
        if is_killed {
            cluster.kill(&one).await;
        }
        let mut events = client.listen(&two, Some(&event)).await;
        let answer = events.find(is_answer).await;
        assert_eq!(answer["id"], 7, "{answer}");
        if is_killed {
            assert_eq!(answer["error"]["data"], json!({"code": "SERVER_ENDED", "mayHaveRun": true}), "{answer}");
        } else {
            assert_eq!(outcome(&answer)["result"], "the end", "{answer}");
        }
    }
}

/// Makes a request without a session.
pub async fn modern(server: &HttpProcess, token: Option<&str>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default().to_owned();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = http_client().post(format!("{}/mcp", server.url)).body(message.to_string());
    request = request.header("content-type", "application/json").header("mcp-protocol-version", "2026-07-28");
    request = request.header("accept", "application/json, text/event-stream").header("mcp-method", method);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let response = request.header("mcp-name", name).send().await.expect("an answer");
    Events { response, read: String::new() }.find(is_answer).await
}

/// The parameters of a call that runs a script.
pub fn call(script: &str) -> Value {
    json!({"name": "codecall_execute", "arguments": {"script": script}})
}

/// Waits for the end of a task.
async fn until_ended(server: &HttpProcess, id: &Value) -> Value {
    loop {
        let task = modern(server, None, "tasks/get", json!({"taskId": id})).await;
        if task["result"]["status"] != "working" {
            return task["result"].clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A run that is not durable ends with its server. The client is told that it may have run.
#[tokio::test]
async fn what_is_lost_says_so() {
    let cluster = Cluster::start(json!({"interaction": {"taskAfterMs": 300}})).await;
    let (one, two) = (cluster.server().await, cluster.server().await);
    let short = modern(&one, None, "tools/call", call("await sleep(900); return 'kept'")).await;
    let short = &short["result"]["taskId"];
    assert_eq!(until_ended(&one, short).await["status"], "completed");
    let long = modern(&one, None, "tools/call", call("await sleep(60000)")).await;
    cluster.kill(&one).await;
    let ended = until_ended(&two, &long["result"]["taskId"]).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert_eq!(ended["error"]["data"], json!({"code": "SERVER_ENDED", "mayHaveRun": true}), "{ended}");
    let kept = until_ended(&two, short).await;
    assert_eq!(outcome(&json!({"result": kept["result"]}))["result"], "kept", "{kept}");
}

/// A client without a session: its answers to questions, and its tasks, at other servers, and after the end of one.
#[tokio::test]
async fn requests_without_a_session_go_on() {
    let ledger = Ledger::default();
    let config = json!({
        "mcpServers": {"modern": {"url": fixture::serve().await}, "ledger": {"url": ledger.start().await}},
        // Longer than a question takes on a busy machine.
        "interaction": {"taskAfterMs": 1500},
        "durable": {"enabled": true, "leaseMs": 1000},
    });
    let cluster = Cluster::start(config).await;
    let (one, two) = (cluster.server().await, cluster.server().await);
    let send = async |server: &HttpProcess, method: &str, params: Value| modern(server, None, method, params).await;

    let mut request = call("return await modern.greet({})");
    let asked = send(&one, "tools/call", request.clone()).await;
    let questions = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let answers: serde_json::Map<_, _> = questions.keys().map(|key| (key.clone(), answer.clone())).collect();
    (request["requestState"], request["inputResponses"]) = (asked["result"]["requestState"].clone(), answers.into());
    let answered = send(&two, "tools/call", request).await;
    assert_eq!(outcome(&answered)["result"], "accept Ada", "{answered}");

    let begun = send(&one, "tools/call", call("await sleep(3000); return 'slept'")).await;
    let id = &begun["result"]["taskId"];
    assert!(id.is_string(), "{begun}");
    let ended = until_ended(&two, id).await;
    assert_eq!((&ended["status"], &ended["taskId"]), (&json!("completed"), id), "{ended}");
    assert_eq!(outcome(&json!({"result": ended["result"]}))["result"], "slept");

    let begun = send(&one, "tools/call", call("await sleep(60000)")).await;
    let id = &begun["result"]["taskId"];
    send(&two, "tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(until_ended(&two, id).await["status"], "cancelled");
    let unknown = send(&two, "tasks/get", json!({"taskId": format!("{}x", id.as_str().expect("text"))})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

    // The first is killed. A durable run goes on; the questions of a call are lost.
    let script = "const add = async (name) => (await ledger.add({ name })).name;
        const first = await add('first'); await sleep(4000); return [first, await add('second')]";
    let durable = send(&one, "tools/call", call(script)).await["result"]["taskId"].clone();
    let mut waiting = call("return await modern.greet({})");
    let asked = send(&one, "tools/call", waiting.clone()).await;
    cluster.kill(&one).await;
    let ended = until_ended(&two, &durable).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(outcome(&json!({"result": ended["result"]}))["result"], json!(["first", "second"]), "{ended}");
    assert_eq!((ledger.times("first"), ledger.times("second")), (1, 1));
    waiting["requestState"] = asked["result"]["requestState"].clone();
    let lost = send(&two, "tools/call", waiting).await;
    assert_eq!(lost["error"]["data"], json!({"code": "SERVER_ENDED", "mayHaveRun": true}), "{lost}");
    // All servers may end: what has ended is in the store.
    drop(two);
    let three = cluster.server().await;
    assert_eq!(until_ended(&three, &durable).await["status"], "completed");
}

/// Limits of rates count the calls of all servers, and a handle is read at any of them, by its client only.
#[tokio::test]
async fn rates_and_results_are_those_of_all_servers() {
    let config = json!({
        "rateLimits": [{"tool": "users:get", "limit": 5, "window": "1h"}],
        "vm": {"maxResultBytes": 2000},
        "http": {"tokens": [{"name": "ada", "token": "token-of-ada-123"}, {"name": "bob", "token": "token-of-bob-123"}]},
    });
    let cluster = Cluster::start(config).await;
    let servers = [cluster.demo().await, cluster.demo().await];
    let call = async |server: &HttpProcess, token: &str, arguments: Value| {
        modern(server, Some(token), "tools/call", json!({"name": "codecall_execute", "arguments": arguments})).await
    };
    let script = "const codes = [];
        for (let i = 0; i < 4; i++) {
          const answer = await callTool('users:get', { id: 'usr_001' }, { throwOnError: false });
          codes.push(answer.success ? 'ok' : answer.error.code);
        }
        return codes";
    let mut codes = Vec::new();
    for server in &servers {
        let answer = outcome(&call(server, "token-of-ada-123", json!({"script": script})).await);
        codes.extend(answer["result"].as_array().unwrap_or_else(|| panic!("{answer}")).clone());
    }
    assert_eq!(codes, ["ok", "ok", "ok", "ok", "ok", "RATE_LIMIT", "RATE_LIMIT", "RATE_LIMIT"]);

    let long = call(&servers[0], "token-of-ada-123", json!({"script": "return 'x'.repeat(5000)"})).await;
    let handle = outcome(&long)["truncated"]["handle"].clone();
    let rest = call(&servers[1], "token-of-ada-123", json!({"handle": handle, "offset": 4000})).await;
    assert_eq!(outcome(&rest)["result"], "x".repeat(1000), "{rest}");
    let stolen = call(&servers[1], "token-of-bob-123", json!({"handle": handle, "offset": 4000})).await;
    assert_eq!(stolen["result"]["isError"], true, "{stolen}");
}

/// A server with another master key does not join.
#[tokio::test]
async fn all_servers_need_one_master_key() {
    let cluster = Cluster::start(json!({})).await;
    let _one = cluster.server().await;
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--http", "0", "--config", cluster.config()]).env("CODECALL_MASTER_KEY", key);
    let refused = finish(&mut command, "").await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("which this server does not have (it has "), "{}", refused.stderr);
}

/// SDKs of others as clients, with each request at the next of 2 and 4 servers.
#[tokio::test]
async fn clients_of_others_use_a_balancer() {
    let url = fixture::serve().await;
    let servers =
        json!({"legacy": {"url": url, "lifecycle": "initialize"}, "modern": {"url": url, "lifecycle": "discover"}});
    let mut cluster = Cluster::start(json!({"mcpServers": servers})).await;
    cluster.balance(4).await;
    for servers in [2, 4] {
        while cluster.balanced() < servers {
            cluster.add().await;
        }
        node_package("@modelcontextprotocol/sdk");
        for (program, script) in [("node".into(), "interactive.mjs"), (python("python"), "interactive.py")] {
            let script = client(script);
            let ran = finish(Command::new(&program).arg(&script).arg(cluster.url()), "").await;
            assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{servers}: {ran:?}");
        }
    }
}

/// Many clients of both lifecycles while a server is killed and another one added: no answer is wrong, and what fails says
/// truthfully whether it may have been done. `CODECALL_CLIENTS` is the number of clients (100 by default).
#[tokio::test]
async fn no_answer_is_wrong_when_a_server_is_killed() {
    let clients = std::env::var("CODECALL_CLIENTS").ok().and_then(|number| number.parse().ok()).unwrap_or(100_usize);
    let (_, python) = (node_package("@modelcontextprotocol/client"), python("python"));
    let ledger = Ledger::default();
    let config = json!({
        "mcpServers": {"ledger": {"url": ledger.start().await}},
        // All of them may be at one server, each with a call and a stream.
        "http": {"maxSessions": clients.max(1_000), "maxConnections": 2 * clients + 1_000},
        "pool": {"maxQueue": clients.max(256)},
    });
    let mut cluster = Cluster::start(config).await;
    cluster.balance(4).await;
    for _ in 0..3 {
        cluster.add().await;
    }
    let rounds = 6;
    let kinds = [
        ("v1", clients * 4 / 10),
        ("v2-legacy", clients / 10),
        ("v2-auto", clients * 4 / 10),
        ("python-legacy", clients / 20),
        ("python-auto", clients / 20),
    ];
    let mut drivers = Vec::new();
    for (kind, number) in kinds {
        let (program, script) = match kind.strip_prefix("python-") {
            Some(_) => (python.clone(), client("many.py")),
            None => ("node".into(), client("many.mjs")),
        };
        let mut command = Command::new(program);
        command.arg(script).args([cluster.url(), kind, &number.to_string(), &rounds.to_string()]);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        drivers.push((kind, child, lines));
    }
    let total = kinds.iter().map(|(_, number)| number * rounds).sum::<usize>();
    let changing = async {
        let third = |part: usize| ledger.calls() >= total * part / 3;
        until_slow("a third of the calls", || third(1)).await;
        cluster.kill_first().await;
        until_slow("two thirds of the calls", || third(2)).await;
        cluster.add().await;
    };
    let driving = futures_util::future::join_all(drivers.into_iter().map(async |(kind, _child, mut lines)| {
        let mut calls: Vec<Value> = Vec::new();
        while let Some(line) = lines.next_line().await.expect("text") {
            calls.push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{kind}: {line}")));
        }
        (kind, calls)
    }));
    let ((), driven) = tokio::join!(changing, driving);
    let (mut ok, mut failed) = (0, Vec::new());
    for ((kind, calls), (_, number)) in driven.into_iter().zip(kinds) {
        assert_eq!(calls.len(), number * rounds, "{kind}: each call has an answer or fails");
        for call in calls {
            let times = ledger.times(call["name"].as_str().expect("a name"));
            match (&call["ok"], &call["failed"]) {
                (Value::Bool(true), _) => {
                    ok += 1;
                    assert_eq!(times, 1, "{kind}: what is answered was done once: {call}");
                }
                (_, Value::String(_)) => {
                    assert!(times <= 1, "{kind}: nothing is done twice: {call}");
                    assert!(call["mayHaveRun"] != false || times == 0, "{kind}: it says that it was not done: {call}");
                    failed.push(call);
                }
                _ => panic!("{kind}: a wrong answer: {call}"),
            }
        }
    }
    // Those that were in flight at the server that was killed.
    assert!(failed.len() <= clients, "{} of {} calls have failed: {failed:?}", failed.len(), ok + failed.len());
    let _ = writeln!(std::io::stdout(), "{ok} calls were answered, {} have failed", failed.len());
}

async fn until_slow(what: &str, condition: impl Fn() -> bool) {
    let began = tokio::time::Instant::now();
    while !condition() {
        assert!(began.elapsed() < TIMEOUT * 8, "{what} do not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
