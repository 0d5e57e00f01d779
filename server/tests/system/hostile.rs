//! Broken MCP servers: each causes a clear error, the others continue, and nothing is left behind.

use crate::support::*;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes a configuration with servers of these modes. Returns it, and the log files of the servers.
pub fn config(folder: &Folder, kinds: &[&str]) -> (String, Vec<String>) {
    let script = folder.file("hostile.sh", include_str!("hostile.sh"));
    let mut servers = Map::new();
    let mut logs = Vec::new();
    for kind in kinds {
        let log = folder.file(&format!("{kind}.log"), "");
        servers.insert(
            (*kind).into(),
            json!({"command": "sh", "args": [script, kind, log], "startTimeoutMs": if *kind == "many" { 30_000 } else { 2_000 }}),
        );
        logs.push(log);
    }
    servers.insert("absent".into(), json!({"command": "/no/such/program"}));
    let config = json!({"mcpServers": servers, "vm": {"toolTimeoutMs": 8_000}});
    (folder.file("config.json", config.to_string()), logs)
}

/// Waits until all processes of these servers have ended.
async fn wait_for_exit(logs: &[String]) {
    let began = Instant::now();
    while !running_processes(logs).is_empty() {
        assert!(began.elapsed() < TIMEOUT, "left: {:?}", running_processes(logs));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the processes of servers that still run.
fn running_processes(logs: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    for log in logs {
        let text = std::fs::read_to_string(log).expect("a log");
        for pid in text.lines().filter_map(|line| line.strip_prefix("pid ")) {
            // A zombie has ended.
            let state = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
            if state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')) {
                left.push(format!("{log}: {pid}"));
            }
        }
    }
    left
}

#[tokio::test]
async fn broken_servers_do_not_affect_the_others() {
    let folder = Folder::new();
    let (config, logs) = config(&folder, &["babble", "dead", "flood", "good", "silent"]);
    let began = Instant::now();
    let server = Server::start(&["--config", &config]).await;
    let found = server.search_when_started(json!({"query": "pid", "topK": 20})).await;
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    let names: Vec<&str> =
        found["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["flood:pid", "good:pid"]);
    let warnings = found["warnings"].to_string();
    for part in [
        "The MCP server 'absent' does not work: the program 'program' was not found",
        "The MCP server 'babble' does not work: it did not answer within 2000 ms",
        "The MCP server 'dead' does not work: it exited before it responded",
        "The MCP server 'silent' does not work: it did not answer within 2000 ms",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert!(!warnings.contains("licence"), "what servers say on stderr is for the log: {warnings}");
    let script = "const ends = [];
        for (const name of ['good:last', 'flood:last', 'dead:last', 'absent:last']) {
          const { success, data, error } = await callTool(name, {}, { throwOnError: false });
          ends.push(success ? data : error.message);
        }
        return ends;";
    let answer = server.execute(script).await;
    assert_eq!(answer["result"][0], "last");
    assert_eq!(answer["result"][1], "last", "{answer}");
    assert!(answer["result"][2].as_str().is_some_and(|text| text.contains("'dead' does not work")), "{answer}");
    assert!(answer["result"][3].as_str().is_some_and(|text| text.contains("'absent' does not work")), "{answer}");
    let began = Instant::now();
    let stderr = server.end().await;
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    assert!(stderr.len() < 100_000, "a flood is not passed on: {} bytes", stderr.len());
    assert!(stderr.contains("no licence found"), "{stderr}");
    wait_for_exit(&logs).await;
}

#[tokio::test]
async fn calls_that_go_wrong() {
    let folder = Folder::new();
    let (config, logs) = config(&folder, &["good"]);
    let server = Server::start(&["--config", &config]).await;
    for (tool, code, part) in [
        ("fail", "TOOL_EXECUTION_ERROR", "out of order"),
        ("never", "TOOL_TIMEOUT", "Tool 'good:never' timed out after 500ms"),
        ("huge", "MESSAGE_TOO_LARGE", "The response has 50000"),
        ("die", "SERVER_UNAVAILABLE", "The MCP server 'good' ended while the tool 'die' was running"),
    ] {
        let began = Instant::now();
        let options = if tool == "never" { ", { timeoutMs: 500 }" } else { "" };
        let answer = server.execute(&format!("return await callTool('good:{tool}', {{}}{options})")).await;
        assert_eq!(
            (&answer["status"], &answer["error"]["code"]),
            (&json!("tool_error"), &json!(code)),
            "{tool}: {answer}"
        );
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(part), "{tool}: {message}");
        assert!(began.elapsed() < TIMEOUT, "{tool}: {:?}", began.elapsed());
        if tool != "die" {
            assert_eq!(server.execute("return await good.last({})").await["result"], "last", "after {tool}");
        }
    }
    // The server is restarted without state.
    let script =
        "const { success, data } = await callTool('good:babble', {}, { throwOnError: false }); return success && data";
    let mut again = Value::Null;
    for _ in 0..100 {
        again = server.execute(script).await["result"].clone();
        if again == "after all" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(again, "after all", "lines that are not JSON are passed over");
    server.end().await;
    wait_for_exit(&logs).await;
}

/// Answers whose values would take many times the memory of their text, from `servers` servers at once, of `bytes` each.
/// Returns the largest memory of the program in MiB before and after, and how long calls of a neighbour took.
#[cfg(target_os = "linux")]
async fn answers_of_many_values(servers: usize, bytes: usize) -> (u64, u64, Vec<Duration>) {
    let folder = Folder::new();
    let script = folder.file("hostile.sh", include_str!("hostile.sh"));
    let entry = |name: String| {
        let log = folder.file(&format!("{name}.log"), "");
        (name, json!({"command": "sh", "args": [script, "good", log]}))
    };
    let names = (0..servers).map(|number| format!("s{number}")).chain(["good".to_owned()]);
    let upstreams: Map<String, Value> = names.map(entry).collect();
    // What a script gets is limited by its own memory, which is not what is measured.
    let config = json!({"mcpServers": upstreams, "vm": {"maxMemoryBytes": 4 << 20, "toolTimeoutMs": 60_000, "timeoutMs": 60_000}});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--config", &config]).await;
    assert_eq!(server.execute("return await good.last({})").await["result"], "last");
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
    };
    let before = peak();
    let tools = ["ones", "text", "objects", "failed", "error", "blocks", "log"];
    let hostile = |number: usize| {
        let tool = tools[number % tools.len()];
        let call = format!("s{number}:{tool}");
        let script =
            format!("return (await callTool('{call}', {{ bytes: {bytes} }}, {{ throwOnError: false }})).success");
        let server = &server;
        async move { (tool, server.execute(&script).await) }
    };
    let times = std::sync::Mutex::new(Vec::new());
    let neighbour = async {
        loop {
            let began = Instant::now();
            assert_eq!(server.execute("return await good.last({})").await["result"], "last");
            times.lock().expect("not poisoned").push(began.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::select! {
        ended = futures_util::future::join_all((0..servers).map(hostile)) => ended,
        () = neighbour => unreachable!("it has no end"),
    };
    for (tool, answer) in ended {
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        // The script gets an answer, or an error that says that it is too large for it.
        assert!(answer["status"] == "ok" || ["MEMORY_LIMIT", "MESSAGE_TOO_LARGE"].contains(&code), "{tool}: {answer}");
    }
    let after = peak();
    assert_eq!(server.execute("return await good.last({})").await["result"], "last");
    server.end().await;
    (before, after, times.into_inner().expect("not poisoned"))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn values_of_answers_are_not_made_unless_somebody_wants_them() {
    let (before, after, _) = answers_of_many_values(7, 4 << 20).await;
    assert!(after - before < 400, "{before} MiB, then {after}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "SKIPPED: it takes long, and prints figures"]
#[expect(clippy::print_stdout, reason = "it is for its figures")]
async fn measured_answers_of_many_values() {
    let (before, after, mut times) = answers_of_many_values(16, 15 << 20).await;
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    println!("{before} MiB, then {after}; {} calls of a neighbour, p99 {p99:?}", times.len());
}

#[tokio::test]
async fn ten_thousand_tools() {
    let folder = Folder::new();
    let (config, logs) = config(&folder, &["many", "good"]);
    let server = Server::start(&["--config", &config]).await;
    let began = Instant::now();
    let mut found = Value::Null;
    // A search does not wait for a slow list for long.
    while found["totalIndexed"] != 10_001 + 15 && began.elapsed() < TIMEOUT {
        found = server.ask("codecall_search", json!({"query": "does thing number 4711", "topK": 3})).await;
    }
    assert_eq!(found["totalIndexed"], 10_001 + 15);
    assert_eq!(found["tools"][0]["name"], "many:tool_4711", "{found}");
    assert_eq!(server.execute("return await good.last({})").await["result"], "last");
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    server.end().await;
    wait_for_exit(&logs).await;
}

/// A server that gets a signal ends its upstreams.
#[tokio::test]
async fn nothing_is_left_after_a_signal() {
    let folder = Folder::new();
    let (config, logs) = config(&folder, &["good", "flood"]);
    let mut child = tokio::process::Command::new(PROGRAM)
        .args(["serve", "--config", &config])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("starts");
    until("the servers", || running_processes(&logs).len() == 3).await;
    let pid = child.id().expect("runs").to_string();
    let sent = finish(tokio::process::Command::new("kill").args(["-TERM", &pid]), "").await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    tokio::time::timeout(TIMEOUT, child.wait()).await.expect("ends").expect("ends");
    wait_for_exit(&logs).await;
}
