//! When MCP servers start: on demand, a few at a time, again after they have ended; and entries that cannot be used.

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

/// The entry of a server of `starts/server.sh` that takes so long to start.
fn server(folder: &Folder, name: &str, seconds: f64) -> Value {
    let script = root().join("server/tests/system/starts/server.sh");
    json!({"command": "sh", "args": [script, folder.path("starts.log"), name, seconds.to_string()], "lifecycle": "initialize"})
}

/// The lines of the log that begin with a word.
fn logged(folder: &Folder, word: &str) -> Vec<String> {
    let log = std::fs::read_to_string(folder.path("starts.log")).unwrap_or_default();
    log.lines().filter(|line| line.split(' ').next() == Some(word)).map(str::to_owned).collect()
}

async fn get(url: &str, path: &str) -> (u16, String) {
    let response = http_client().get(format!("{url}{path}")).send().await.expect("an answer");
    (response.status().as_u16(), response.text().await.expect("text"))
}

async fn status(url: &str) -> Value {
    serde_json::from_str(&get(url, "/v1/status").await.1).expect("JSON")
}

/// Returns app and state of each server.
fn states(status: &Value) -> Vec<(&str, &str)> {
    let servers = status["servers"].as_array().expect("servers");
    servers
        .iter()
        .map(|of| (of["app"].as_str().unwrap_or_default(), of["state"].as_str().unwrap_or_default()))
        .collect()
}

/// An entry that cannot be used switches off its server, and says why wherever somebody asks. The others run.
#[tokio::test]
async fn one_bad_server_is_one_bad_server() {
    let folder = Folder::new();
    let bad = json!({"command": "sh", "env": {"TOKEN": "${CODECALL_TEST_NOT_SET}"}});
    let mut config = json!({
        "mcpServers": {
            "good": server(&folder, "good", 0.0), "bad": bad, "odd": {"comand": "x"},
            "absent": {"command": "codecall-no-such-program"},
        },
        "openapi": {"api": {"spec": "${CODECALL_TEST_NOT_SET}"}},
    });
    let file = folder.file("config.json", config.to_string());
    let reasons = [
        "'bad' is switched off: mcpServers.bad.env.TOKEN: the environment variable CODECALL_TEST_NOT_SET is not set",
        "'odd' is switched off: mcpServers.odd: unknown key 'comand'; did you mean 'command'?",
        "'api' is switched off: openapi.api.spec: the environment variable CODECALL_TEST_NOT_SET is not set",
        "'absent' does not work: the program 'codecall-no-such-program' was not found",
    ];
    let http = HttpProcess::start(&["--config", &file]).await;
    let began = Instant::now();
    let mut ready = (503, String::new());
    while ready.0 != 200 {
        assert!(began.elapsed() < TIMEOUT, "{ready:?}");
        ready = get(&http.url, "/readyz").await;
    }
    assert_eq!(ready.1, "ready: 4 of 5 servers do not work\n");
    let status = status(&http.url).await;
    let mut found = states(&status);
    found.sort_unstable();
    assert_eq!(found, [("absent", "failed"), ("api", "failed"), ("bad", "failed"), ("good", "up"), ("odd", "failed")]);
    drop(http);
    let stdio = Server::start(&["--config", &file]).await;
    assert_eq!(stdio.execute("return await good.pid({}) > 0").await["result"], true);
    let began = Instant::now();
    let found = loop {
        let found = stdio.ask("codecall_search", json!({"query": "process of good"})).await;
        assert_eq!(found["tools"][0]["name"], "good:pid", "{found}");
        if !found["warnings"].to_string().contains("'absent' is still starting") {
            break found;
        }
        assert!(began.elapsed() < TIMEOUT, "{found}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    for reason in reasons {
        let (status, found) = (status.to_string(), found["warnings"].to_string());
        assert!(status.contains(reason) && found.contains(reason), "{reason}\n{status}\n{found}");
    }
    let answer = stdio.execute("return await bad.tool({})").await;
    assert_eq!(answer["error"]["code"], "SERVER_UNAVAILABLE", "{answer}");
    // The configuration is read again: one more server is there, and another one is not.
    config["mcpServers"]["odd"] = server(&folder, "odd", 0.0);
    config["mcpServers"]["good"]["args"] = "none".into();
    folder.file("config.json", config.to_string());
    let began = Instant::now();
    while stdio.execute("return await odd.pid({}) > 0").await["result"] != true {
        assert!(began.elapsed() < TIMEOUT, "'odd' does not start");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let answer = stdio.execute("return await callTool('good:pid', {})").await;
    assert_eq!(answer["error"]["code"], "SERVER_UNAVAILABLE", "{answer}");
    let stderr = stdio.end().await;
    assert!(stderr.contains("started: odd; ended: good; switched off: mcpServers.good.args: "), "{stderr}");
    // A wrong key that restricts a server is no small mistake.
    let confined = json!({"mcpServers": {"a": {"command": "sh", "confine": {"reed": []}}}});
    let confined = folder.file("confined.json", confined.to_string());
    let refused = codecall(&["tools", "--config", &confined]).await;
    let problem = "mcpServers.a.confine: unknown key 'reed'";
    assert!(refused.code == Some(2) && refused.stderr.contains(problem), "{refused:?}");
}

/// Returns the process of a server.
async fn pid(server: &Server, app: &str) -> u64 {
    let answer = server.execute(&format!("return await callTool('{app}:pid', {{}})")).await;
    answer["result"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

fn is_running(pid: u64) -> bool {
    std::process::Command::new("kill")
        .args(["-0", &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|ended| ended.success())
}

async fn kill(pid: u64) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().await.expect("kill").success());
}

/// A server that is killed while nobody calls it is started again by the next call, which does not fail.
#[tokio::test]
async fn the_next_call_starts_a_server_again() {
    let folder = Folder::new();
    let config = json!({"mcpServers": {"barn": server(&folder, "barn", 0.0)}});
    let stdio = Server::start(&["--config", &folder.file("config.json", config.to_string())]).await;
    let mut before = pid(&stdio, "barn").await;
    for pause in [50, 100, 300] {
        kill(before).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let began = Instant::now();
        let after = pid(&stdio, "barn").await;
        assert_ne!(before, after, "after {pause} ms");
        assert!(began.elapsed() < TIMEOUT / 4, "{:?}", began.elapsed());
        before = after;
    }
    // One that ends in a call fails that call, and no other.
    let answer = stdio.execute("return await barn.crash({})").await;
    assert_eq!(answer["error"]["code"], "SERVER_UNAVAILABLE", "{answer}");
    assert_ne!(pid(&stdio, "barn").await, before);
    stdio.end().await;
}

/// Operators see the last lines of a crash, without frames of the stack, marks and colours. Clients do not.
#[tokio::test]
async fn the_last_lines_of_a_crash() {
    let folder = Folder::new();
    let crash = "for i in $(seq 60); do echo line $i >&2; done; printf '  cow.milk()\\n      ^^^^\\n\\033[31mTypeError: no cow\\033[0m\\n    at Barn.open (barn.js:3)\\n\\nNode.js v99' >&2; exit 3";
    let config = json!({"mcpServers": {"barn": {"command": "sh", "args": ["-c", crash]}}});
    let config = folder.file("config.json", config.to_string());
    let ran = codecall(&["status", "--json", "--local", "--config", &config]).await;
    let status = ran.json();
    let lines = status["servers"][0]["lastOutput"].as_array().unwrap_or_else(|| panic!("{status}"));
    assert_eq!(lines[lines.len() - 3..], ["cow.milk()", "TypeError: no cow", "Node.js v99"], "{status}");
    assert_eq!(lines[0], "line 56");
    let ran = codecall(&["status", "--local", "--config", &config]).await;
    assert!(ran.code == Some(1) && ran.stderr.contains("barn: its last output: line 56 | "), "{ran:?}");
    let server = Server::start(&["--demo", "--config", &config]).await;
    let found = server.search_when_started(json!({"query": "cow"})).await;
    assert!(found["warnings"].to_string().contains("'barn' does not work"), "{found}");
    assert!(!found.to_string().contains("TypeError"), "{found}");
    server.end().await;
}

/// A server whose tools are known starts when it is called. One that is idle stops, and the next call starts it again.
#[tokio::test]
async fn servers_start_on_demand_and_stop_when_they_are_idle() {
    let folder = Folder::new();
    let names = ["cow", "hen", "pig"];
    let servers: Value = names.iter().map(|name| ((*name).to_owned(), server(&folder, name, 0.0))).collect();
    let config = json!({"mcpServers": servers, "servers": {"idleStopMs": 1500}, "store": folder.path("codecall.db")});
    let file = folder.file("config.json", config.to_string());
    let fetched = codecall(&["servers", "prefetch", "--config", &file]).await;
    assert_eq!((fetched.code, fetched.stderr.lines().count()), (Some(0), 3), "{fetched:?}");
    assert!(
        fetched.stderr.contains("codecall: 1 of 3: ") && fetched.stderr.contains(": 4 tools after "),
        "{fetched:?}"
    );
    let listed = codecall(&["tools", "--config", &file]).await;
    assert_eq!((listed.code, listed.stdout.lines().count()), (Some(0), 12), "{listed:?}");
    assert_eq!(logged(&folder, "begin").len(), 3);

    let http = HttpProcess::start(&["--config", &file]).await;
    assert_eq!(get(&http.url, "/readyz").await, (200, "ready\n".into()));
    let status = status(&http.url).await;
    assert_eq!(states(&status), [("cow", "idle"), ("hen", "idle"), ("pig", "idle")], "{status}");
    drop(http);
    let stdio = Server::start(&["--config", &file]).await;
    let found = stdio.ask("codecall_search", json!({"query": "feed the hen"})).await;
    assert_eq!((&found["tools"][0]["name"], &found["warnings"]), (&json!("hen:feed_hen"), &Value::Null), "{found}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(logged(&folder, "begin").len(), 3, "nothing was called");
    let first = pid(&stdio, "hen").await;
    let begun = logged(&folder, "begin");
    assert!(begun.len() == 4 && begun[3].starts_with("begin hen "), "{begun:?}");
    // A call that takes longer than the idle time is no idle time.
    assert_eq!(stdio.execute("return await hen.pause({})").await["result"], first);
    assert_eq!(pid(&stdio, "hen").await, first);
    until("the end of an idle server", || !is_running(first)).await;
    assert_ne!(pid(&stdio, "hen").await, first, "the next call starts it again");
    assert_eq!(logged(&folder, "begin").len(), 5);
    let stderr = stdio.end().await;
    assert!(!stderr.contains("is down"), "{stderr}");

    // Those that start early are there before they are called; an entry keeps its server.
    let mut config = config;
    config["servers"]["start"] = "early".into();
    config["mcpServers"]["cow"]["idleStopMs"] = 0.into();
    let stdio = Server::start(&["--config", &folder.file("config.json", config.to_string())]).await;
    until("three servers", || logged(&folder, "ready").len() == 8).await;
    let cow = pid(&stdio, "cow").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(pid(&stdio, "cow").await, cow);
    stdio.end().await;
}

/// A few servers start at a time, those that a request needs first. A search finds what there is as soon as it is there, and
/// never says that there is nothing.
#[tokio::test]
async fn a_few_start_at_a_time_and_the_needed_first() {
    let folder = Folder::new();
    let names = ["ant", "bee", "cat", "cow", "dog", "fox", "hen", "pig"];
    let servers: Value = names.iter().map(|name| ((*name).to_owned(), server(&folder, name, 1.0))).collect();
    let config = json!({"mcpServers": servers, "servers": {"startAtOnce": 2}, "store": folder.path("codecall.db")});
    let file = folder.file("config.json", config.to_string());
    let stdio = Server::start(&["--config", &file]).await;
    let search = |query: &'static str| stdio.ask("codecall_search", json!({"query": query}));
    let (found, nothing) = tokio::join!(search("feed the pig"), search("compile a kernel"));
    assert_eq!(found["tools"][0]["name"], "pig:feed_pig", "{found}");
    let begun = logged(&folder, "begin");
    let place = begun.iter().position(|line| line.starts_with("begin pig "));
    assert!(place.is_some_and(|place| place <= 4), "it comes before most others: {begun:?}");
    // All others were waited for, or it is said that they are still starting.
    let warnings = nothing["warnings"].to_string();
    let all = logged(&folder, "ready").len() == names.len();
    assert!(all || warnings.contains("No tool fits 'compile a kernel' yet: "), "{nothing}");
    for name in names {
        pid(&stdio, name).await;
    }
    stdio.end().await;
    let log = std::fs::read_to_string(folder.path("starts.log")).expect("a log");
    let mut starting = 0_i32;
    for line in log.lines() {
        starting += if line.starts_with("begin") { 1 } else { -1 };
        assert!((0..=2).contains(&starting), "{log}");
    }
    assert_eq!(logged(&folder, "begin").len(), names.len(), "each once: {log}");
}
