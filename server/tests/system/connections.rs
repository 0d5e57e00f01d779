//! MCP servers that start slowly, do not start, end during a call or outlive this program.

use crate::support::*;
use crate::third_party::{client, node_package, python};
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::process::Command;

const SECOND: Duration = Duration::from_secs(1);
const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";

/// A configuration with the server `slow`, which reads its input after so many milliseconds.
fn slow(folder: &Folder, milliseconds: u32, more: Value) -> String {
    node_package("@modelcontextprotocol/sdk");
    let log = folder.path("slow.log");
    let slow = json!({"command": "node", "args": [client("slow_server.mjs"), log], "env": {"START_AFTER": milliseconds.to_string()}});
    let mut config = json!({
        "mcpServers": {"slow": slow}, "store": folder.path("codecall.db"), "vm": {"toolTimeoutMs": 1_000},
    });
    for (key, value) in more.as_object().expect("an object") {
        match (config.get_mut(key).and_then(Value::as_object_mut), value) {
            (Some(members), Value::Object(more)) => members.extend(more.clone()),
            _ => config[key] = value.clone(),
        }
    }
    folder.file("config.json", config.to_string())
}

fn messages(folder: &Folder) -> Vec<String> {
    let log = std::fs::read_to_string(folder.path("slow.log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// A server that takes longer than any probe is started once and answers both requests of the handshake late.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_slow_server_is_started_once() {
    let folder = Folder::new();
    let config = slow(&folder, 12_000, json!({}));
    let listed = codecall(&["tools", "--config", &config]).await;
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), "slow:knit  Knit a woollen scarf\n"), "{listed:?}");
    assert!(listed.stderr.contains("codecall: The MCP server 'slow' is still starting"), "{listed:?}");
    assert!(!listed.stderr.contains("WARN"), "{listed:?}");
    let seen = messages(&folder);
    let count = |method: &str| seen.iter().filter(|line| *line == method).count();
    assert_eq!((count("start"), count("initialize"), count("tools/list")), (1, 1, 1), "{seen:?}");
    // What it speaks is remembered: the next start asks for nothing else.
    let called = codecall(&["invoke", "slow:knit", "--config", &config]).await;
    assert_eq!(called.json(), json!({"status": "ok", "result": "a scarf"}), "{called:?}");
    let next = messages(&folder).split_off(seen.len());
    assert_eq!(next[..3], ["start", "initialize", "notifications/initialized"], "{next:?}");
}

/// A server of both lifecycles whose start lasts longer than the first request is left alone.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_slow_server_of_both_lifecycles() {
    let time = python("mcp-server-time");
    let folder = Folder::new();
    let start = format!("sleep 7; exec {} --local-timezone UTC", time.display());
    let config = json!({"mcpServers": {"time": {"command": "sh", "args": ["-c", start]}}});
    let config = folder.file("config.json", config.to_string());
    let input = json!({"timezone": "UTC"}).to_string();
    let called = codecall(&["invoke", "time:get_current_time", &input, "--config", &config]).await;
    assert_eq!((called.code, &called.json()["result"]["timezone"]), (Some(0), &json!("UTC")), "{called:?}");
}

/// The example of the README, with nothing in the cache of npm.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn npx_installs_a_server_first() {
    let folder = Folder::new();
    folder.file("files/hello.txt", "hello");
    let files = folder.path("files");
    let server = json!({
        "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", files],
        "env": {"npm_config_cache": folder.path("npm")},
    });
    let config = folder.file("config.json", json!({"mcpServers": {"files": server}}).to_string());
    let script = format!("return await files.read_text_file({{ path: '{files}/hello.txt' }})");
    let script = folder.file("script.js", script);
    let mut run = Command::new(PROGRAM);
    run.args(["run", &script, "--config", &config]).env_remove("RUST_LOG").stdin(Stdio::null()).kill_on_drop(true);
    let ran = tokio::time::timeout(TIMEOUT * 3, run.output()).await.expect("ends").expect("ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && stdout.contains("hello"), "{stdout}\n{stderr}");
    until_gone(&folder.path("npm")).await;
}

/// Only what names a server waits for it.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn nobody_waits_for_the_slow() {
    let everything = node_package(EVERYTHING);
    let folder = Folder::new();
    let fast = json!({"mcpServers": {"fast": {"command": "node", "args": [everything, "stdio"]}}});
    let config = slow(&folder, 60_000, fast);
    let server = Server::start(&["--config", &config]).await;
    let began = Instant::now();
    let script = "return await callTool('fast:echo', { message: 'hello' })";
    loop {
        let answer = server.execute(script).await;
        if answer["result"] == "Echo: hello" {
            break;
        }
        assert_eq!(answer["error"]["code"], "SERVER_STARTING", "{answer}");
        assert!(began.elapsed() < TIMEOUT / 2, "'fast' does not start");
    }
    let began = Instant::now();
    let found = server.ask("codecall_search", json!({"query": "echo a message"})).await;
    assert_eq!(found["tools"][0]["name"], "fast:echo");
    assert!(found["warnings"][0].as_str().is_some_and(|text| text.contains("'slow' is still starting")), "{found}");
    let described = server.ask("codecall_describe", json!({"toolNames": ["fast:echo"]})).await;
    assert_eq!(described["tools"][0]["name"], "fast:echo");
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
    // A call waits for as long as it may take, and says what to do.
    for (tool, arguments) in [
        ("codecall_execute", json!({"script": "return await slow.knit({})"})),
        ("codecall_execute", json!({"script": "return await callTool('knit', {})"})),
        ("codecall_invoke", json!({"tool": "slow:knit", "input": {}})),
    ] {
        let answer = server.ask(tool, arguments.clone()).await;
        assert_eq!(answer["error"]["code"], "SERVER_STARTING", "{arguments}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("'slow' is still starting") && message.contains("Try again soon"), "{message}");
    }
    assert_eq!(server.execute(script).await["result"], "Echo: hello");
    server.end().await;
    until_gone(&folder.path("slow.log")).await;
}

/// The tools of the last start are known at once, and not announced as news.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn tools_of_the_last_start() {
    let folder = Folder::new();
    let config = slow(&folder, 0, json!({}));
    let listed = codecall(&["tools", "--config", &config]).await;
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), "slow:knit  Knit a woollen scarf\n"), "{listed:?}");
    let starts = messages(&folder).len();
    let config = slow(&folder, 60_000, json!({"expose": "direct"}));
    let began = Instant::now();
    let again = codecall(&["tools", "--config", &config]).await;
    assert_eq!((again.code, again.stdout, again.stderr), (Some(0), listed.stdout, String::new()));
    let found = codecall(&["search", "knit", "a", "scarf", "--config", &config]).await;
    assert_eq!(found.json()["tools"][0]["name"], "slow:knit", "{found:?}");
    assert!(began.elapsed() < 30 * SECOND, "{:?}", began.elapsed());
    assert_eq!(messages(&folder).len(), starts, "no server was started for it");

    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let began = Instant::now();
        let server = Server::start_as(&["--config", &config], lifecycle).await;
        let found = server.ask("codecall_search", json!({"query": "knit a scarf"})).await;
        assert_eq!((&found["tools"][0]["name"], &found["warnings"]), (&json!("slow:knit"), &Value::Null), "{found}");
        let tools = server.client.peer().list_all_tools().await.expect("a list");
        assert!(tools.iter().any(|tool| tool.name == "knit"), "{tools:?}");
        assert!(began.elapsed() < 30 * SECOND, "{:?}", began.elapsed());
        let answer = server.execute("return await slow.knit({})").await;
        assert_eq!(answer["error"]["code"], "SERVER_STARTING", "{answer}");
        let found = server.ask("codecall_search", json!({"query": "knit a scarf"})).await;
        assert!(found["warnings"][0].as_str().is_some_and(|text| text.contains("is still starting")), "{found}");
        server.end().await;
    }
    // The server lists the same tools: nothing has changed for the client.
    let config = slow(&folder, 4_000, json!({"expose": "direct", "vm": {"toolTimeoutMs": 30_000}}));
    let server = Server::start(&["--config", &config]).await;
    let tools = server.client.peer().list_all_tools().await.expect("a list");
    assert!(tools.iter().any(|tool| tool.name == "knit"), "{tools:?}");
    tokio::time::sleep(SECOND).await;
    let before = server.recorded.changes.load(Ordering::Relaxed);
    assert_eq!(server.execute("return await slow.knit({})").await["result"], "a scarf");
    tokio::time::sleep(SECOND).await;
    assert_eq!(server.recorded.changes.load(Ordering::Relaxed), before);
    server.end().await;
    // A damaged record is the same as none.
    let database = rusqlite::Connection::open(folder.path("codecall.db")).expect("a database");
    assert_eq!(database.execute("UPDATE known_servers SET record = x'7b'", []), Ok(1));
    drop(database);
    let listed = codecall(&["tools", "--config", &config]).await;
    assert!(listed.stdout.contains("slow:knit") && listed.stderr.contains("is damaged and is ignored"), "{listed:?}");
}

/// The tools that scripts can call have changed, though none is listed.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_change_of_tools_that_are_not_listed_is_announced() {
    let folder = Folder::new();
    let config = slow(&folder, 1_500, json!({"vm": {"toolTimeoutMs": 30_000}}));
    let server = Server::start(&["--config", &config]).await;
    assert_eq!(server.execute("return await slow.knit({})").await["result"], "a scarf");
    tokio::time::sleep(SECOND).await;
    assert_eq!(server.recorded.changes.load(Ordering::Relaxed), 1);
    server.end().await;
}

/// A command says which server did not start, and why, and fails.
#[tokio::test]
async fn servers_that_do_not_start() {
    let folder = Folder::new();
    let config = json!({"mcpServers": {
        "exits": {"command": "sh", "args": ["-c", "exit 1"]},
        "absent": {"command": "codecall-no-such-program"},
        "hangs": {"command": "sh", "args": ["-c", "exec sleep 1000"], "startTimeoutMs": 1_000},
        "refuses": {"url": "http://127.0.0.1:9/mcp"},
    }});
    let config = folder.file("config.json", config.to_string());
    let listed = codecall(&["tools", "--json", "--config", &config]).await;
    assert_eq!((listed.code, listed.stdout.trim()), (Some(1), "[]"), "{listed:?}");
    for reason in [
        "codecall: The MCP server 'exits' does not work: it exited before it responded",
        "codecall: The MCP server 'absent' does not work: the program 'codecall-no-such-program' was not found",
        "codecall: The MCP server 'hangs' does not work: it did not answer within 1000 ms",
        "codecall: The MCP server 'refuses' does not work: ",
    ] {
        assert!(listed.stderr.contains(reason), "{reason}: {listed:?}");
    }
    let found = codecall(&["search", "anything", "--config", &config]).await;
    assert_eq!(found.code, Some(1), "{found:?}");
    let called = codecall(&["invoke", "exits:tool", "--config", &config]).await;
    assert_eq!((called.code, &called.json()["error"]["code"]), (Some(1), &json!("SERVER_UNAVAILABLE")), "{called:?}");
    // With others that work, they are warnings of a search.
    let server = Server::start(&["--demo", "--config", &config]).await;
    let found = server.search_when_started(json!({"query": "list users"})).await;
    assert!(found["warnings"].to_string().contains("'absent' does not work"), "{found}");
    server.end().await;
}

/// A server over HTTP that is killed during a call is an error at once.
#[cfg(unix)]
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_server_over_http_dies_in_a_call() {
    let everything = node_package(EVERYTHING);
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let start = || {
        let mut command = Command::new("node");
        command.arg(&everything).arg("streamableHttp").env("PORT", port.to_string());
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("starts")
    };
    let mut upstream = start();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let folder = Folder::new();
    let config = json!({"mcpServers": {"web": {"url": format!("http://127.0.0.1:{port}/mcp")}}});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--config", &config]).await;
    let echo = "return await web.echo({ message: 'hello' })";
    assert_eq!(server.execute(echo).await["result"], "Echo: hello");
    let long = "return await callTool('web:trigger-long-running-operation', { duration: 25, steps: 5 })";
    let killed = async {
        tokio::time::sleep(2 * SECOND).await;
        upstream.kill().await.expect("killed");
        Instant::now()
    };
    let (answer, killed) = tokio::join!(server.execute(long), killed);
    assert!(killed.elapsed() < 10 * SECOND, "{:?}", killed.elapsed());
    assert_eq!(answer["error"]["code"], "SERVER_UNAVAILABLE", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("ended while the tool 'trigger-long-running-operation' was running"), "{message}");
    let down = server.execute(echo).await;
    assert_eq!(down["error"]["code"], "SERVER_UNAVAILABLE", "{down}");
    // It is reached again once it is there again.
    let _upstream = start();
    let began = Instant::now();
    while server.execute(echo).await["result"] != "Echo: hello" {
        assert!(began.elapsed() < TIMEOUT, "it is not reached again");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    server.end().await;
}

/// Returns the processes in whose environment or arguments a text occurs, except for this one.
#[cfg(target_os = "linux")]
fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let has_text = |number: &String| {
        let read = |file: &str| std::fs::read(format!("/proc/{number}/{file}")).unwrap_or_default();
        let all = [read("environ"), read("cmdline")].concat();
        all.windows(text.len()).any(|part| part == text.as_bytes())
    };
    numbers
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()) && *number != own)
        .filter(has_text)
        .collect()
}

/// Waits until no process is left in whose environment or arguments a text occurs.
#[cfg(target_os = "linux")]
async fn until_gone(text: &str) {
    let began = Instant::now();
    while !processes_with(text).is_empty() {
        let left = processes_with(text);
        let names = left.iter().map(|id| std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default());
        assert!(began.elapsed() < 20 * SECOND, "left: {:?}", names.collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(not(target_os = "linux"))]
async fn until_gone(_: &str) {}

/// A configuration with a server that ignores the end of its input and SIGTERM, and starts others: one in its group, one in
/// a session of its own.
#[cfg(target_os = "linux")]
fn stubborn(folder: &Folder) -> (String, String) {
    let mark = folder.path("stubborn");
    let script = folder.file("stubborn.sh", include_str!("connections/stubborn.sh"));
    let server = json!({"command": "sh", "args": [script], "env": {"MARK": mark}});
    let config = json!({"mcpServers": {"stubborn": server}, "serverCache": {"enabled": false}});
    (folder.file("config.json", config.to_string()), mark)
}

/// However this program ends, nothing that it has started is left.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_running() {
    // SIGHUP reads the configuration of a server again.
    for signal in ["TERM", "INT", "KILL"] {
        let folder = Folder::new();
        let (config, mark) = stubborn(&folder);
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--http=0", "--config"]).arg(&config).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("starts");
        until("three processes", || processes_with(&mark).len() == 3).await;
        let id = child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().await.expect("kill").success());
        let ended = tokio::time::timeout(TIMEOUT, child.wait()).await.expect("ends").expect("ends");
        assert_eq!(ended.code(), (signal != "KILL").then_some(0), "{signal}");
        until_gone(&mark).await;
    }
}

/// The second signal ends the program at once, but not before its servers.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_running_after_two_signals() {
    let folder = Folder::new();
    let (config, mark) = stubborn(&folder);
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--http", "0", "--config", &config]).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("starts");
    until("three processes", || processes_with(&mark).len() == 3).await;
    let id = child.id().expect("it runs").to_string();
    // Two signals that follow each other at once may arrive as one.
    let ended = loop {
        assert!(Command::new("kill").arg(&id).status().await.expect("kill").success());
        if let Ok(ended) = tokio::time::timeout(Duration::from_millis(50), child.wait()).await {
            break ended.expect("ends");
        }
    };
    assert_eq!(ended.code(), Some(130));
    until_gone(&mark).await;
}

/// The terminal of a command is closed.
#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn nothing_is_left_running_after_the_terminal() {
    let folder = Folder::new();
    let (config, mark) = stubborn(&folder);
    let script = folder.file("script.js", "return await stubborn.wait({})");
    let mut command = Command::new("python3");
    command.arg(client("terminal.py")).args(["waiting", PROGRAM, "-v", "run", &script, "--config", &config]);
    let ran = finish(&mut command, "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "closed"), "{ran:?}");
    until_gone(&mark).await;
}

/// A program that was started to outlive its terminal does so.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn nohup_is_respected() {
    let mut command = Command::new("nohup");
    command.args([PROGRAM, "serve", "--http", "0", "--demo"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().expect("starts");
    let id = child.id().expect("it runs");
    let is_ready =
        || std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|text| text.starts_with(PROGRAM));
    until("the program", is_ready).await;
    tokio::time::sleep(SECOND).await;
    assert!(Command::new("kill").args(["-HUP", &id.to_string()]).status().await.expect("kill").success());
    assert!(tokio::time::timeout(SECOND, child.wait()).await.is_err(), "it goes on");
    child.kill().await.expect("killed");
}
