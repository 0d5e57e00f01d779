//! The journal of a run, through every way to replay it: one journal has one outcome.
//!
//! `journals/version1` has journals in the first format of each place: a file of `codecall run --record`, a signed token, and a
//! database. The database has the history of a run. Another run there stands before the answer to its last call.

use crate::durable::{Ledger, config, kill, outcome, submit};
use crate::model_server::{HttpProcess, post_json};
use crate::support::*;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// The key that signs tokens.
const KEY: &str = "a key that nobody can guess";

/// The script of the journals.
const SCRIPT: &str = include_str!("journals/version1/script.js");

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/system/journals/version1").join(name);
    path.display().to_string()
}

fn read_json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(file(name)).expect("the file")).expect("JSON")
}

fn stateless() -> Value {
    json!({"enabled": true, "key": KEY})
}

/// The outcome of the script through each way, without its statistics.
fn check(way: &str, outcome: &Value) {
    let result = json!({
        "first": {"n": 1, "text": "ä \"quoted\"", "big": 1e21, "list": [1.5, 0, null]},
        "second": {"n": 2}, "refusal": ["TOOL_EXECUTION_ERROR", true], "last": 4, "slept": true,
    });
    assert_eq!((&outcome["status"], &outcome["result"]), (&json!("ok"), &result), "{way}: {outcome}");
    assert_eq!(outcome["logs"], json!(["last 4"]), "{way}: {outcome}");
}

/// Checks the last line of a replay.
fn check_replayed(way: &str, replayed: &Finished) {
    let end = replayed.json_lines().pop().unwrap_or_else(|| panic!("{way}: {replayed:?}"));
    assert_eq!((replayed.code, &end["status"]), (Some(0), &json!("done")), "{way}: {replayed:?}");
    check(way, &end["outcome"]);
}

fn tools() -> Value {
    json!([{"name": "ledger:add", "inputSchema": {"type": "object"}}])
}

/// The answer of the ledger to a call, as a client of steps gives it.
fn answer(call: &Value) -> Value {
    let input = &call["input"];
    match input["attempt"].as_u64() {
        Some(attempt) if attempt < 2 => json!({"id": call["id"], "error": input.to_string()}),
        Some(_) | None => json!({"id": call["id"], "result": input}),
    }
}

/// Takes steps with tokens to the end. Returns the outcome.
async fn by_tokens(step: impl AsyncFn(Value) -> Value, mut request: Value) -> Value {
    loop {
        let taken = step(request.clone()).await;
        if taken["status"] == "done" {
            return taken["outcome"].clone();
        }
        let calls = taken["calls"].as_array().unwrap_or_else(|| panic!("{taken}"));
        request["results"] = calls.iter().map(answer).collect();
        request["token"] = taken["token"].clone();
    }
}

/// Takes steps with messages to the end. Returns the outcome.
async fn by_messages(step: impl AsyncFn(Value) -> Value, mut request: Value) -> Value {
    let mut messages = Vec::new();
    loop {
        request["messages"] = Value::Array(messages.clone());
        let taken = step(request.clone()).await;
        if taken["status"] == "done" {
            return taken["outcome"].clone();
        }
        request["id"] = taken["id"].clone();
        messages.extend(taken["messages"].as_array().unwrap_or_else(|| panic!("{taken}")).iter().cloned());
        for call in taken["calls"].as_array().expect("calls") {
            let answer = answer(call);
            let content = answer.get("result").map_or_else(|| json!({"error": answer["error"]}), Value::clone);
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content.to_string()}));
        }
    }
}

/// Takes a step at `/v1/evaluate`.
async fn evaluate(url: &str, request: Value) -> Value {
    let (status, taken) = post_json(url, "/v1/evaluate", &request).await;
    assert_eq!(status, 200, "{taken}");
    taken
}

/// Returns the calls that the ledger has got since some earlier ones, by their number in the script, the lowest first.
fn calls(ledger: &Ledger, since: usize) -> Vec<u64> {
    let mut calls: Vec<u64> = ledger.begun()[since..].iter().filter_map(|call| call["n"].as_u64()).collect();
    calls.sort_unstable();
    calls
}

#[tokio::test]
async fn journals_of_the_first_format_are_read() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({"stateless": stateless()}));
    let packed = std::fs::read(file("codecall.db.zlib")).expect("the database");
    std::fs::create_dir_all(folder.path("state")).expect("a folder");
    folder.file("state/codecall.db", decompress_to_vec_zlib(&packed).expect("the database"));
    folder.file("state/master.key", std::fs::read(file("master.key")).expect("the key"));
    for (name, mode) in [("state", 0o700), ("state/codecall.db", 0o600), ("state/master.key", 0o600)] {
        std::fs::set_permissions(folder.path(name), Permissions::from_mode(mode)).expect("permissions");
    }
    let (script, token, runs) = (file("script.js"), read_json("token.json"), read_json("runs.json"));

    check_replayed("a file", &codecall(&["replay", &script, "--journal", &file("record.json")]).await);
    let history = codecall(&["history", "replay", runs["history"].as_str().expect("an id"), "--config", &config]).await;
    check_replayed("the history", &history);

    let server = HttpProcess::start(&["--config", &config]).await;
    let id = format!("{}_3", token["id"].as_str().expect("an id"));
    let last = json!([{"id": id, "result": {"n": 4}}]);
    let request = json!({"code": SCRIPT, "tools": tools(), "token": token["token"], "results": last});
    check("a token", &evaluate(&server.url, request).await["outcome"]);
    check("a run that stands half way", &outcome(&server, runs["open"].as_str().expect("an id")).await);
    assert_eq!(calls(&ledger, 0), [4], "what has an answer is not called again");
    assert_eq!(server.end().await, Some(0));
}

/// A run is recorded. Its journal then goes through each way.
#[tokio::test]
async fn one_journal_has_one_outcome() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let address = ledger.start().await;
    let config = config(&folder, &address, json!({"stateless": stateless()}));
    let (script, journal) = (file("script.js"), folder.path("journal.json"));
    let run = codecall(&["run", &script, "--config", &config, "--record", &journal]).await;
    check("the run", &run.json());
    // A run with a journal of its own has none in the history.
    check("the run", &codecall(&["run", &script, "--config", &config]).await.json());
    assert_eq!(calls(&ledger, 0), [1, 1, 2, 2, 3, 3, 4, 4]);

    check_replayed("codecall replay", &codecall(&["replay", &script, "--journal", &journal]).await);
    let recorded = codecall(&["history", "--json", "--config", &config]).await.json_lines();
    let id = recorded[1]["id"].as_str().expect("an id");
    check_replayed("history replay", &codecall(&["history", "replay", id, "--config", &config]).await);

    let request = json!({"code": SCRIPT, "tools": tools()});
    let server = Server::start(&["--config", &config]).await;
    let step = async |request| data(&server.call("codecall_step", request).await.expect("a step"));
    check("codecall_step with tokens", &by_tokens(step, request.clone()).await);
    check("codecall_step with messages", &by_messages(step, request.clone()).await);
    server.end().await;
    assert_eq!(calls(&ledger, 8), [0; 0], "a replay calls no tool");

    // Threads, and worker processes.
    for (number, isolation) in
        [json!({"mode": "thread"}), json!({"mode": "process", "confine": "best-effort"})].into_iter().enumerate()
    {
        let folder = Folder::new();
        let more = json!({"stateless": stateless(), "isolation": isolation});
        let config = crate::durable::config(&folder, &address, more);
        let server = HttpProcess::start(&["--config", &config]).await;
        let step = async |request| evaluate(&server.url, request).await;
        check("/v1/evaluate with tokens", &by_tokens(step, request.clone()).await);
        check("/v1/evaluate with messages", &by_messages(step, request.clone()).await);
        let before = ledger.begun().len();
        // The last call has no answer when the server is killed. Another process makes it again, and no other call.
        let slow = SCRIPT.replace("n: first.n + 3 }", "n: first.n + 3, ms: 700 }");
        assert_ne!(slow, SCRIPT);
        let id = submit(&server, &slow, json!({})).await;
        until("the last call", || ledger.begun().len() == before + 4).await;
        let other = match number {
            // A replica, which runs already.
            0 => HttpProcess::start(&["--config", &config]).await,
            _ => {
                kill(server).await;
                let restarted = HttpProcess::start(&["--config", &config]).await;
                check("a restarted server", &outcome(&restarted, &id).await);
                assert_eq!(calls(&ledger, before), [1, 2, 3, 4, 4]);
                assert_eq!(restarted.end().await, Some(0));
                continue;
            }
        };
        tokio::time::sleep(Duration::from_millis(50)).await;
        kill(server).await;
        check("another replica", &outcome(&other, &id).await);
        let made = calls(&ledger, before);
        assert!(made == [1, 2, 3, 4, 4] || made == [1, 2, 3, 4], "{made:?}");
        assert_eq!(other.end().await, Some(0));
    }
}
