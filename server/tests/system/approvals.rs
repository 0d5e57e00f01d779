//! Calls that wait for the approval of a person.

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use crate::third_party::{client, node_package};
use crate::upstream_server::{UpstreamServer, tool};
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::Command;

/// The limit of a run that waits for longer.
const LIMIT: Duration = Duration::from_secs(6);

/// A bank with tools that read, and tools that do not.
async fn bank() -> UpstreamServer {
    let annotated = |name: &str, annotations: Value| {
        let mut tool = tool(name, "A tool of a bank");
        tool["annotations"] = annotations;
        tool
    };
    UpstreamServer::start(vec![
        annotated("balance", json!({"readOnlyHint": true})),
        annotated("transfer", json!({"destructiveHint": true})),
        annotated("close", json!({"destructiveHint": true})),
        annotated("slow", json!({})),
    ])
    .await
}

/// Writes a configuration with the bank. `approval` is the section.
fn config(folder: &Folder, bank: &UpstreamServer, approval: Value) -> String {
    let config = json!({
        "mcpServers": {"bank": {"url": bank.url()}},
        "stateDir": folder.path("state"),
        "store": folder.path("state/codecall.db"),
        "directCalls": {"enabled": true},
        "approval": approval,
    });
    folder.file("config.json", config.to_string())
}

fn destructive() -> Value {
    json!({"destructive": "always", "rules": [{"tool": "bank:slow", "approval": "never"}]})
}

/// Calls a meta-tool, and returns its answer and whether it is an error.
async fn ask(server: &Server, tool: &str, arguments: Value) -> (Value, bool) {
    let result = server.call(tool, arguments).await.expect("a result");
    (data(&result), result.is_error == Some(true))
}

async fn execute(server: &Server, script: &str) -> Value {
    ask(server, "codecall_execute", json!({"script": script})).await.0
}

/// Returns the outcome of a run that has waited.
async fn outcome(server: &Server, waiting: &Value) -> Value {
    for _ in 0..5 {
        let (answer, _) = ask(server, "codecall_execute", json!({"handle": waiting["handle"]})).await;
        if answer["status"] != "waiting" {
            return answer;
        }
    }
    panic!("it does not end: {waiting}");
}

/// Returns the ids of the approvals that a run waits for.
fn approvals(waiting: &Value) -> Vec<String> {
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let all = waiting["approvals"].as_array().expect("a list");
    all.iter().map(|approval| approval["id"].as_str().expect("an id").to_owned()).collect()
}

async fn decide(config: &str, words: &[&str]) -> Finished {
    codecall(&[words, &["--config", config]].concat()).await
}

async fn approve(config: &str, id: &str) {
    let done = decide(config, &["approve", id]).await;
    assert!(done.code == Some(0) && done.stdout.starts_with("approved: bank:"), "{done:?}");
}

/// Kills a server as the system does: it has no time for anything.
async fn kill(id: u32) {
    assert!(Command::new("kill").args(["-9", &id.to_string()]).status().await.expect("kill").success());
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// A client that wants short results gets short ones also from a run that has waited.
#[tokio::test]
async fn a_run_that_waits_keeps_the_limits_of_its_request() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    let server = Server::start(&["--config", &config]).await;
    let script = "await bank.transfer({ amount: 5 }); return 'x'.repeat(3_000)";
    let limits = json!({"maxResultBytes": 500});
    let waiting = ask(&server, "codecall_execute", json!({"script": script, "limits": limits})).await.0;
    approve(&config, &approvals(&waiting)[0]).await;
    let answer = outcome(&server, &waiting).await;
    assert!(answer["truncated"]["handle"].is_string(), "{answer}");
    assert!(answer["result"].as_str().is_some_and(|text| text.len() < 1_000), "{answer}");
    server.end().await;
}

/// A run waits, its server is killed, and another one goes on with it.
#[tokio::test]
async fn a_run_waits_over_a_restart() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    let server = Server::start(&["--config", &config]).await;
    let script = "const began = Date.now(); const random = Math.random();
        const before = await bank.balance({ account: 'very-private-result' });
        const done = await bank.transfer({ amount: 5, random });
        return { before, amount: done.amount, same: done.random === random, took: Date.now() - began }";
    let limits = json!({"maxDurationMs": LIMIT.as_millis() as u64});
    let waiting = ask(&server, "codecall_execute", json!({"script": script, "limits": limits})).await.0;
    let ids = approvals(&waiting);
    assert_eq!((ids.len(), bank.calls()), (1, 1), "only the balance was read");
    assert_eq!(waiting["approvals"][0]["tool"], "bank:transfer");
    assert_eq!(waiting["approvals"][0]["input"]["amount"], 5);
    kill(server.id()).await;

    let stored = std::fs::read(folder.path("state/codecall.db")).expect("the store");
    let wal = std::fs::read(folder.path("state/codecall.db-wal")).unwrap_or_default();
    let is_in =
        |text: &str| [&stored, &wal].iter().any(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()));
    assert!(is_in(&ids[0]) && !is_in("very-private-result") && !is_in("Math.random"), "journals are sealed");

    let listed = decide(&config, &["approvals", "--json"]).await.json();
    assert_eq!(
        (&listed["id"], &listed["state"], &listed["run"]),
        (&json!(ids[0]), &json!("waiting"), &waiting["handle"])
    );
    // The time in which it waits does not count.
    tokio::time::sleep(LIMIT).await;
    let server = Server::start(&["--config", &config]).await;
    approve(&config, &ids[0]).await;
    let answer = outcome(&server, &waiting).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let result = &answer["result"];
    assert_eq!(
        (&result["before"]["account"], &result["amount"], &result["same"]),
        (&json!("very-private-result"), &json!(5), &json!(true))
    );
    assert!(
        result["took"].as_i64().is_some_and(|ms| ms >= 6_000),
        "the script sees the time that has passed: {result}"
    );
    assert_eq!(bank.calls(), 2, "no call is made again");
    assert_eq!(outcome(&server, &waiting).await, answer, "the outcome is kept");
    let again = decide(&config, &["deny", &ids[0]]).await;
    assert!(again.code == Some(1) && again.stdout.contains("approved already"), "{again:?}");
    assert_eq!(decide(&config, &["approve", "ffffffffffff"]).await.code, Some(2));
    server.end().await;
    let history = decide(&config, &["history", "--json"]).await.json();
    assert_eq!(
        (&history["id"], &history["status"], &history["toolCalls"]),
        (&waiting["handle"], &json!("ok"), &json!(2))
    );
    let shown = decide(&config, &["history", "show", history["id"].as_str().expect("an id")]).await.json();
    assert_eq!(shown["calls"].as_array().map(Vec::len), Some(2), "{shown}");
}

/// Several calls wait, some are denied, one expires; other calls are made meanwhile.
#[tokio::test]
async fn a_script_catches_what_was_denied_or_has_expired() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, json!({"destructive": "always", "expiry": "8s"}));
    let server = Server::start(&["--config", &config]).await;
    let script = "const calls = [bank.transfer({ amount: 1 }), bank.transfer({ amount: 2 }), bank.close({}), bank.balance({ n: 4 })];
        const all = await Promise.allSettled(calls);
        const more = await bank.balance({ n: 5 });
        return [...all.map((one) => one.value ?? `${one.reason.code}: ${one.reason.message}`), more]";
    let waiting = execute(&server, script).await;
    let ids = approvals(&waiting);
    assert_eq!((ids.len(), bank.calls()), (3, 1), "{waiting}");
    let id_of = |amount: u64| {
        let is_it = |approval: &&Value| approval["input"]["amount"] == amount;
        waiting["approvals"]
            .as_array()
            .and_then(|all| all.iter().find(is_it))
            .and_then(|one| one["id"].as_str())
            .expect("it waits")
    };
    let denied = decide(&config, &["deny", id_of(2), "--reason", "too much"]).await;
    assert_eq!((denied.code, denied.stdout.starts_with("denied: bank:transfer")), (Some(0), true), "{denied:?}");
    approve(&config, id_of(1)).await;
    let answer = outcome(&server, &waiting).await;
    let result = answer["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(result[0], json!({"amount": 1}));
    assert_eq!(result[1], "APPROVAL_DENIED: A person has denied the call of tool 'bank:transfer': too much");
    assert_eq!(result[2], "APPROVAL_EXPIRED: Nobody has approved the call of tool 'bank:close' in time");
    assert_eq!((&result[3], &result[4]), (&json!({"n": 4}), &json!({"n": 5})));
    assert_eq!(bank.calls(), 3);
    // What nobody catches is the outcome.
    let waiting = execute(&server, "return await bank.close({})").await;
    decide(&config, &["deny", &approvals(&waiting)[0]]).await;
    let answer = outcome(&server, &waiting).await;
    assert_eq!(
        (&answer["status"], &answer["error"]["code"]),
        (&json!("tool_error"), &json!("APPROVAL_DENIED")),
        "{answer}"
    );
    server.end().await;
}

/// Calls without a script are made again by their client; an approval that is given once holds for further calls.
#[tokio::test]
async fn a_call_without_a_script_is_made_again_when_it_is_approved() {
    let (folder, bank) = (Folder::new(), bank().await);
    let rules = json!([{"tool": "bank:close", "approval": "once"}, {"tool": "bank:transfer", "approval": "always"}]);
    let config = config(&folder, &bank, json!({ "rules": rules }));
    let server = Server::start(&["--config", &config]).await;
    let invoke = |tool: &'static str, amount: u64| {
        let server = &server;
        async move {
            let arguments = json!({"tool": tool, "input": {"amount": amount}});
            ask(server, "codecall_invoke", arguments).await.0
        }
    };
    let id = |answer: &Value| {
        assert_eq!(answer["error"]["code"], "APPROVAL_REQUIRED", "{answer}");
        answer["error"]["details"]["approval"].as_str().expect("an id").to_owned()
    };
    let first = id(&invoke("bank:transfer", 5).await);
    assert_eq!(first, id(&invoke("bank:transfer", 5).await), "it waits once");
    assert_ne!(first, id(&invoke("bank:transfer", 6).await), "another input is another call");
    approve(&config, &first).await;
    assert_eq!(invoke("bank:transfer", 5).await["result"], json!({"amount": 5}));
    assert_ne!(first, id(&invoke("bank:transfer", 5).await), "an approval holds for one call");
    let once = id(&invoke("bank:close", 1).await);
    approve(&config, &once).await;
    for amount in [1, 2] {
        assert_eq!(invoke("bank:close", amount).await["status"], "ok");
    }
    assert_eq!(execute(&server, "return await bank.close({ amount: 3 })").await["result"], json!({"amount": 3}));
    assert_eq!(bank.calls(), 4);
    let dry = ask(&server, "codecall_execute", json!({"script": "await bank.transfer({})", "dryRun": true})).await.0;
    assert_eq!(dry["status"], "ok", "a dry run needs no approval: {dry}");
    server.end().await;
}

/// Two servers share a store: one begins a run and dies in the middle of a call, the other goes on. The call is not repeated.
#[tokio::test]
async fn another_process_goes_on_and_repeats_no_call() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    let (one, two) =
        (HttpProcess::start(&["--config", &config]).await, HttpProcess::start(&["--config", &config]).await);
    let http = codecall::http::client(TIMEOUT).expect("a client");
    let call = |url: String, arguments: Value| {
        let http = http.clone();
        async move { execute_over_http(&http, &url, arguments).await }
    };
    let script = "const done = await bank.transfer({ amount: 1 });
        let slow; try { slow = await bank.slow({}) } catch (error) { slow = error.code }
        return [done, slow, await bank.balance({ n: 2 })]";
    let waiting = call(one.url.clone(), json!({"script": script})).await;
    let id = approvals(&waiting).remove(0);
    let listed: Value = get(&http, &format!("{}/v1/approvals", two.url)).await;
    assert_eq!(
        (&listed["approvals"][0]["id"], &listed["approvals"][0]["inputDigest"].as_str().map(str::len)),
        (&json!(id), &Some(64))
    );
    let decide = |decision: &str| {
        let (url, body) =
            (format!("{}/v1/approvals/{id}", two.url), json!({"decision": decision, "by": "Ada"}).to_string());
        http.post(url).header("content-type", "application/json").body(body).send()
    };
    let wrong = decide("maybe").await.expect("answers");
    assert_eq!(wrong.status().as_u16(), 400);
    // Only one process takes it over, and only that one makes the call.
    kill(one.pid()).await;
    let decided: Value =
        serde_json::from_str(&decide("approve").await.expect("answers").text().await.expect("text")).expect("JSON");
    assert_eq!(
        (&decided["decided"], &decided["approval"]["decidedBy"]),
        (&json!(true), &json!("Ada (http)")),
        "{decided}"
    );
    let late: Value =
        serde_json::from_str(&decide("deny").await.expect("answers").text().await.expect("text")).expect("JSON");
    assert_eq!(late["decided"], false, "{late}");
    until("the slow call", || bank.calls() == 2).await;
    // It dies while its tool works.
    kill(two.pid()).await;
    let three = HttpProcess::start(&["--config", &config]).await;
    let mut answer = Value::Null;
    for _ in 0..4 {
        answer = call(three.url.clone(), json!({"handle": waiting["handle"]})).await;
        if answer["status"] != "waiting" {
            break;
        }
    }
    assert_eq!(answer["result"], json!([{"amount": 1}, "CALL_INTERRUPTED", {"n": 2}]), "{answer}");
    assert_eq!(bank.calls(), 3, "the slow call was made once");
    drop((one, two));
    three.end().await;
}

async fn get(http: &reqwest::Client, url: &str) -> Value {
    let text = http.get(url).send().await.expect("answers").text().await.expect("text");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// Calls `codecall_execute` over HTTP, without a session.
async fn execute_over_http(http: &reqwest::Client, url: &str, arguments: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "codecall_execute", "arguments": arguments, "_meta": meta},
    });
    let request = http
        .post(format!("{url}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "codecall_execute");
    let text = request.body(body.to_string()).send().await.expect("answers").text().await.expect("text");
    let line = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: ").or(Some(line)))
        .find(|line| line.contains("\"result\""));
    let message: Value = serde_json::from_str(line.unwrap_or_else(|| panic!("{text}"))).expect("JSON");
    let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"));
    serde_json::from_str(text).expect("JSON")
}

/// A client whose person decides.
#[derive(Clone)]
pub struct Person {
    pub answer: Value,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(json!({"elicitation": {"form": {}}})).expect("capabilities");
        let mut config = ClientConfig::new(capabilities, Implementation::new("person", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            panic!("a form")
        };
        self.asked.lock().expect("not poisoned").push(message);
        let schema = serde_json::to_value(requested_schema).expect("JSON").to_string();
        // A person who allows a call reads all of it first.
        let answer = match self.answer["content"]["decision"] == "allow" && schema.contains("next page") {
            true => json!({"action": "accept", "content": {"decision": "next page"}}),
            false => self.answer.clone(),
        };
        Ok(serde_json::from_value(answer).expect("an answer"))
    }
}

/// A client that can ask a person is asked, in both lifecycles, and the run goes on at once.
#[tokio::test]
async fn a_client_asks_its_person() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        for (answer, expected) in [
            (json!({"action": "accept", "content": {"decision": "allow"}}), json!({"amount": 5})),
            (
                json!({"action": "accept", "content": {"decision": "deny", "reason": "no"}}),
                json!("APPROVAL_DENIED: A person has denied the call of tool 'bank:transfer': no"),
            ),
            (
                json!({"action": "decline"}),
                json!("APPROVAL_DENIED: A person has denied the call of tool 'bank:transfer'"),
            ),
            (json!({"action": "cancel"}), json!("waiting")),
        ] {
            let person = Person { answer, asked: Arc::default() };
            let mut command = Command::new(PROGRAM);
            command.args(["serve", "--config", &config]).kill_on_drop(true);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
            let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
            let transport = AsyncRwTransport::new_client(stdout, stdin);
            let connecting = person.clone().serve_with_lifecycle(transport, lifecycle.clone());
            let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
            let script = "try { return await bank.transfer({ amount: 5 }) } catch (error) { return `${error.code}: ${error.message}` }";
            let Value::Object(arguments) = json!({"script": script}) else { panic!("an object") };
            let request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
            let result =
                tokio::time::timeout(TIMEOUT, client.call_tool(request)).await.expect("answers").expect("a result");
            let answer = data(&result);
            let got = if answer["status"] == "ok" { &answer["result"] } else { &answer["status"] };
            assert_eq!(*got, expected, "{answer}");
            let asked = person.asked.lock().expect("not poisoned").join("\n");
            let digest = "7e84cbf0f7a7c92c037058665d66152f8eb8580ab2534e52c877bccceb9cc7bf";
            assert_eq!(
                asked,
                format!("Allow this call?\nTool: bank:transfer\nSHA-256: {digest}\nInput: {{\"amount\":5}}")
            );
            let _ = client.cancel().await;
        }
    }
    assert_eq!(bank.calls(), 2, "only what was allowed is called");
    let all = decide(&config, &["approvals", "--all", "--json"]).await.json_lines();
    let mut states: Vec<&str> = all.iter().filter_map(|one| one["state"].as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["approved", "approved", "denied", "denied", "denied", "denied", "waiting", "waiting"]);
}

/// An input whose end says more than its beginning.
fn long_input() -> Value {
    json!({"note": "x".repeat(30_000), "to": "mallory", "amount": 5})
}

/// All of a long input is shown, wherever a person decides, with its digest, and the long member is named first.
#[tokio::test]
async fn all_of_a_long_input_is_shown() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    let person =
        Person { answer: json!({"action": "accept", "content": {"decision": "allow"}}), asked: Arc::default() };
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--config", &config]).kill_on_drop(true);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let transport =
        AsyncRwTransport::new_client(child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
    let connecting = person.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
    let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
    let script = format!("return (await bank.transfer({})).to", long_input());
    let Value::Object(arguments) = json!({ "script": script }) else { panic!("an object") };
    let request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
    let result = tokio::time::timeout(TIMEOUT, client.call_tool(request)).await.expect("answers").expect("a result");
    assert_eq!(data(&result)["result"], "mallory", "{result:?}");
    let asked = person.asked.lock().expect("not poisoned").clone();
    assert_eq!(asked.len(), 8, "{asked:?}");
    let shown: String = asked.iter().map(|page| page.rsplit_once("in all: ").expect("a page").1).collect();
    assert_eq!(shown, long_input().to_string(), "all of it is shown");
    let digest = asked[0].lines().find_map(|line| line.strip_prefix("SHA-256: ")).expect("a digest").to_owned();
    assert!(asked.iter().all(|page| page.contains(&digest) && page.contains("Long members: \"note\" (30002 bytes)")));
    let _ = client.cancel().await;

    // The same where it waits.
    let server = Server::start(&["--config", &config]).await;
    let waiting = execute(&server, &script).await;
    let id = approvals(&waiting).remove(0);
    let state = &waiting["approvals"][0];
    assert_eq!((&state["inputDigest"], &state["input"]), (&json!(digest), &Value::Null), "{state}");
    assert_eq!(state["longMembers"], "\"note\" (30002 bytes)");
    assert!(state["inputBytes"].as_u64().is_some_and(|bytes| bytes > 30_000), "it says that it is not all: {state}");
    let printed = decide(&config, &["approvals", &id]).await.stdout;
    let lines: Vec<&str> = printed.lines().collect();
    let at = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{printed}"));
    assert!(at("digest: ") < at("note: ") && at("long members: \"note\"") < at("note: "), "{printed}");
    assert!(printed.contains(&digest) && lines[at("to: ")] == "to: \"mallory\"", "{printed}");
    let table = decide(&config, &["approvals"]).await.stdout;
    assert!(table.contains(" bytes: see 'codecall approvals ID'"), "{table}");
    let listed = decide(&config, &["approvals", "--json"]).await.json();
    assert_eq!(listed["input"], long_input().to_string());
    let other = decide(&config, &["approve", &id, "--digest", "00"]).await;
    assert!(other.code == Some(2) && other.stderr.contains(&digest), "{other:?}");
    assert_eq!(decide(&config, &["approve", &id, "--digest", &digest[..16]]).await.code, Some(0));
    assert_eq!(outcome(&server, &waiting).await["result"], "mallory");

    // Nobody is asked about what cannot be shown.
    let huge = execute(&server, "await bank.transfer({ note: 'x'.repeat(300_000) })").await;
    assert_eq!(huge["error"]["code"], "APPROVAL_REQUIRED", "{huge}");
    assert!(huge["error"]["message"].as_str().is_some_and(|message| message.contains("bytes, more than")), "{huge}");
    server.end().await;
}

/// A client that could allow its own calls is not asked where operators have tokens.
#[tokio::test]
async fn a_client_does_not_approve_its_own_calls() {
    const OPERATOR: &str = "token-of-the-operator-0123";
    const AGENT: &str = "token-of-an-agent-01234567";
    let (folder, bank) = (Folder::new(), bank().await);
    let agent = json!({"name": "agent", "token": AGENT});
    let operators = json!({"token": OPERATOR, "tokens": [agent.clone()]});
    let lone = json!({ "tokens": [agent] });
    for (http, decided_by, is_asked) in [
        (&operators, None, false),
        (&operators, Some("operator"), false),
        (&operators, Some("client"), true),
        (&lone, None, true),
        (&lone, Some("operator"), false),
    ] {
        let what = format!("{http} {decided_by:?}");
        let mut approval = destructive();
        if let Some(who) = decided_by {
            approval["decidedBy"] = who.into();
        }
        let keys = json!({
            "mcpServers": {"bank": {"url": bank.url()}}, "http": http, "approval": approval,
            "stateDir": folder.path("state"), "store": folder.path("state/codecall.db"),
        });
        let config = folder.file("config.json", keys.to_string());
        let server = HttpProcess::start(&["--config", &config]).await;
        let person =
            Person { answer: json!({"action": "accept", "content": {"decision": "allow"}}), asked: Arc::default() };
        let address = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", server.url)).auth_header(AGENT);
        let transport = StreamableHttpClientTransport::with_client(http_client(), address);
        let connecting = person.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
        let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
        let Value::Object(arguments) = json!({"script": "return await bank.transfer({ amount: 5 })"}) else {
            panic!("an object")
        };
        let request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
        let result =
            tokio::time::timeout(TIMEOUT, client.call_tool(request)).await.expect("answers").expect("a result");
        let answer = data(&result);
        assert_eq!(person.asked.lock().expect("not poisoned").is_empty(), !is_asked, "{what}: {answer}");
        if is_asked {
            assert_eq!(answer["status"], "ok", "{what}: {answer}");
        } else {
            let id = approvals(&answer).remove(0);
            let decide = async |token: &str, body: Value| {
                let request = http_client().post(format!("{}/v1/approvals/{id}", server.url)).bearer_auth(token);
                let request = request.header("content-type", "application/json").body(body.to_string());
                let response = request.send().await.expect("an answer");
                (response.status().as_u16(), response.text().await.expect("text"))
            };
            assert_eq!(decide(AGENT, json!({"decision": "approve"})).await.0, 403, "{what}");
            if *http == operators {
                let wrong = decide(OPERATOR, json!({"decision": "approve", "inputDigest": "00"})).await;
                assert!(wrong.0 == 400 && wrong.1.contains("inputDigest"), "{wrong:?}");
                let digest = &answer["approvals"][0]["inputDigest"];
                let right = decide(OPERATOR, json!({"decision": "approve", "inputDigest": digest})).await;
                assert!(right.0 == 200 && right.1.contains("\"decided\":true"), "{right:?}");
            }
        }
        let _ = client.cancel().await;
        server.end().await;
    }
    // Without tokens nobody is known to be an operator over HTTP.
    let keys = json!({
        "mcpServers": {"bank": {"url": bank.url()}}, "approval": {"destructive": "always", "decidedBy": "operator"},
        "stateDir": folder.path("state"), "store": folder.path("state/codecall.db"),
    });
    let open = folder.file("open.json", keys.to_string());
    let server = HttpProcess::start(&["--config", &open]).await;
    let script = json!({"script": "return await bank.transfer({ amount: 6 })"});
    let waiting = execute_over_http(&http_client(), &server.url, script).await;
    let id = approvals(&waiting).remove(0);
    let body = json!({"decision": "approve"}).to_string();
    let request = http_client().post(format!("{}/v1/approvals/{id}", server.url));
    let refused = request.header("content-type", "application/json").body(body).send().await.expect("an answer");
    assert_eq!(refused.status().as_u16(), 403);
    approve(&open, &id).await;
    server.end().await;
}

/// A client of the TypeScript SDK, with and without the capability.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_client_of_another_project() {
    node_package("@modelcontextprotocol/sdk/package.json");
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    let ran = finish(Command::new("node").arg(client("approvals.mjs")).args([PROGRAM, &config]), "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
    assert_eq!(bank.calls(), 2);
}

/// Where nothing can wait, the error says what to do; and what is wrong in the section is named.
#[tokio::test]
async fn without_a_server_a_script_gets_the_error() {
    let (folder, bank) = (Folder::new(), bank().await);
    let config = config(&folder, &bank, destructive());
    let script = folder.file("script.js", "return await bank.transfer({ amount: 1 })");
    let ran = codecall(&["run", &script, "--config", &config]).await;
    let error = &ran.json()["error"];
    assert_eq!((ran.code, &error["code"]), (Some(1), &json!("APPROVAL_REQUIRED")), "{ran:?}");
    approve(&config, error["details"]["approval"].as_str().expect("an id")).await;
    assert_eq!(codecall(&["run", &script, "--config", &config]).await.json()["result"], json!({"amount": 1}));
    let wrong = folder.file("wrong.json", json!({"approval": {"destructive": "sometimes"}}).to_string());
    let checked = codecall(&["config", "check", &wrong]).await;
    assert!(checked.code != Some(0) && checked.stderr.contains("approval.destructive"), "{checked:?}");
}
