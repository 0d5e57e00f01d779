//! Operating a server: its configuration changes while it runs, its state, its figures, its log.

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use crate::third_party::node_package;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// Entries of two servers of another project, whose names here are `everything` and `files`.
fn servers(folder: &Folder) -> (Value, Value) {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let files = node_package("@modelcontextprotocol/server-filesystem/dist/index.js");
    let everything = json!({"command": "node", "args": [everything, "stdio"]});
    (everything, json!({"command": "node", "args": [files, folder.path("")]}))
}

/// Runs a script until its result is as wanted.
async fn until_result(server: &Server, script: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = tokio::time::Instant::now();
    loop {
        let answer = server.execute(script).await;
        if wanted(&answer) {
            return answer;
        }
        assert!(began.elapsed() < TIMEOUT, "{answer}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn is_ok(answer: &Value) -> bool {
    answer["status"] == "ok"
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn the_configuration_changes_while_the_server_runs() {
    let folder = Folder::new();
    let (everything, files) = servers(&folder);
    let vm = json!({"timeoutMs": 60_000, "toolTimeoutMs": 60_000});
    let write = |servers: Value, more: Value| {
        let mut config = json!({"mcpServers": servers, "vm": vm});
        config.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        folder.file("config.json", config.to_string())
    };
    let config = write(json!({"everything": everything}), json!({}));
    let server = Server::start(&["--config", &config]).await;
    let echo = "return await callTool('everything:echo', { message: 'hi' })";
    until_result(&server, echo, is_ok).await;

    // A server is added; the other one goes on.
    write(json!({"everything": everything, "files": files}), json!({}));
    let list = "return await callTool('files:list_allowed_directories', {})";
    until_result(&server, list, is_ok).await;
    assert!(is_ok(&server.execute(echo).await));
    assert!(server.recorded.changes.load(Ordering::Relaxed) > 0, "clients are told");

    // A run that has begun keeps the server that is taken away.
    let long = "await callTool('everything:trigger-long-running-operation', { duration: 6, steps: 3 });
        return await callTool('everything:echo', { message: 'still here' })";
    let running = server.execute(long);
    let changing = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        write(json!({"files": files}), json!({"topK": 1}));
        until_result(&server, echo, |answer| answer["error"]["code"] == "TOOL_NOT_FOUND").await;
    };
    let (answer, ()) = tokio::join!(running, changing);
    assert!(is_ok(&answer) && answer["result"].to_string().contains("still here"), "{answer}");
    let found = server.ask("codecall_search", json!({"query": "file"})).await;
    assert_eq!(found["tools"].as_array().map(Vec::len), Some(1), "topK: {found}");

    // A file that is broken changes nothing.
    folder.file("config.json", "{\"mcpServers\": {");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(is_ok(&server.execute(list).await));

    // SIGHUP reads it at once.
    write(json!({"files": files}), json!({"names": "dot"}));
    assert!(Command::new("kill").args(["-HUP", &server.id().to_string()]).status().await.expect("kill").success());
    let began = tokio::time::Instant::now();
    loop {
        let tools = server.client.peer().list_tools(None).await.expect("tools").tools;
        if tools.iter().any(|tool| tool.name == "codecall.execute") {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{tools:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let stderr = server.end().await;
    for line in [
        "codecall: configuration read again: started: files",
        "codecall: configuration read again: ended: everything; changed: topK",
        "codecall: configuration read again: changed: names, topK",
    ] {
        assert!(stderr.lines().any(|found| found == line), "{line}\n{stderr}");
    }
    assert!(stderr.contains("the configuration stays as it was: ") && stderr.contains("not valid JSON"), "{stderr}");
}

async fn get(url: &str, path: &str) -> (u16, String) {
    let response = http_client().get(format!("{url}{path}")).send().await.expect("an answer");
    (response.status().as_u16(), response.text().await.expect("text"))
}

/// The figures of a page of `/metrics` by name and labels.
fn figures(page: &str) -> BTreeMap<&str, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').expect("a figure"))
        .map(|(name, n)| (name, n.parse().expect("a number")))
        .collect()
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn state_and_figures_of_a_server() {
    let folder = Folder::new();
    let (everything, _) = servers(&folder);
    let slow = json!({"command": "sleep", "args": ["1000"], "startTimeoutMs": 3000, "lifecycle": "initialize"});
    let config = json!({"mcpServers": {"everything": everything, "slow": slow}});
    let config = folder.file("config.json", config.to_string());
    let server = HttpProcess::start(&["--config", &config]).await;
    assert_eq!(get(&server.url, "/readyz").await, (503, "starting\n".into()));
    let began = tokio::time::Instant::now();
    while get(&server.url, "/readyz").await.0 != 200 {
        assert!(began.elapsed() < TIMEOUT, "it is not ready");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let status: Value = serde_json::from_str(&get(&server.url, "/v1/status").await.1).expect("JSON");
    let state = |app: &str| {
        let servers = status["servers"].as_array().expect("servers");
        servers.iter().find(|server| server["app"] == app).cloned().unwrap_or_else(|| panic!("{status}"))
    };
    assert!(state("everything")["tools"].as_u64() > Some(5) && state("everything")["startMs"].is_u64(), "{status}");
    assert_eq!((&state("everything")["state"], &state("slow")["state"]), (&json!("up"), &json!("failed")));
    assert!(state("slow")["error"].as_str().is_some_and(|error| error.contains("'slow'")), "{status}");

    // The same for people.
    let ran = codecall(&["status", "--url", &server.url]).await;
    assert_eq!(ran.code, Some(1), "one server is not up: {ran:?}");
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows[0][0], rows[0][2], rows[1][0], rows[1][2]), ("everything", "up", "slow", "failed"), "{ran:?}");
    let ran = codecall(&["status", "--url", "http://127.0.0.1:9"]).await;
    assert!(ran.code == Some(2) && ran.stderr.starts_with("error: http://127.0.0.1:9: "), "{ran:?}");

    // Runs, calls, and what fails.
    let client = rmcp::transport::StreamableHttpClientTransport::from_uri(format!("{}/mcp", server.url));
    let client = rmcp::ServiceExt::serve((), client).await.expect("connects");
    let run = async |script: &str| {
        let arguments = json!({"script": script}).as_object().cloned().expect("a table");
        let request = rmcp::model::CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
        client.peer().call_tool_once(request).await.expect("an answer");
    };
    run("for (const x of [1, 2, 3]) await callTool('everything:echo', { message: 'x' }); return 1").await;
    run("return await callTool('everything:echo', {})").await;
    run("return await callTool('made-up:tool', {})").await;
    run("return nothing.here").await;
    let (status, page) = get(&server.url, "/metrics").await;
    assert_eq!(status, 200);
    let figures = figures(&page);
    for (name, figure) in [
        ("codecall_runs_total{status=\"ok\"}", 1.0),
        ("codecall_runs_total{status=\"tool_error\"}", 2.0),
        ("codecall_runs_total{status=\"runtime_error\"}", 1.0),
        ("codecall_runs_active", 0.0),
        ("codecall_run_duration_seconds_count", 4.0),
        ("codecall_tool_calls_total{app=\"everything\",status=\"ok\"}", 3.0),
        ("codecall_tool_calls_total{app=\"everything\",status=\"INVALID_INPUT\"}", 1.0),
        ("codecall_tool_calls_total{app=\"none\",status=\"TOOL_NOT_FOUND\"}", 1.0),
        ("codecall_tool_call_duration_seconds_count{app=\"everything\"}", 4.0),
        ("codecall_permits_available{pool=\"execute\"}", 32.0),
        ("codecall_queue_length{pool=\"execute\"}", 0.0),
        ("codecall_script_memory_bytes", 0.0),
        ("codecall_upstream_up{app=\"everything\"}", 1.0),
        ("codecall_upstream_up{app=\"slow\"}", 0.0),
    ] {
        assert_eq!(figures.get(name), Some(&figure), "{name}\n{page}");
    }
    assert!(figures["codecall_upstream_tools{app=\"everything\"}"] > 5.0, "{page}");
    #[cfg(target_os = "linux")]
    assert!(figures["process_resident_memory_bytes"] > 1e6, "{page}");
    client.cancel().await.expect("ends");
    assert_eq!(server.end().await, Some(0));
}

/// Only checks need no token.
#[tokio::test]
async fn operation_needs_the_token() {
    let folder = Folder::new();
    let token = "token-of-the-operator";
    let config = folder.file("config.json", json!({"http": {"token": token}}).to_string());
    let server = HttpProcess::start(&["--demo", "--config", &config]).await;
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 401), ("/v1/status", 401)] {
        assert_eq!(get(&server.url, path).await.0, status, "{path}");
    }
    let ran = codecall(&["status", "--url", &server.url]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("it wants a token"), "{ran:?}");
    let ran = codecall(&["status", "--url", &server.url, "--token", token, "--json"]).await;
    assert_eq!((ran.code, &ran.json()["ready"]), (Some(0), &json!(true)), "{ran:?}");
    let mut command = Command::new(PROGRAM);
    let ran_with = finish(command.args(["status", "--url", &server.url]).env("CODECALL_HTTP_TOKEN", token), "").await;
    assert_eq!(ran_with.code, Some(0), "{ran_with:?}");
    let ran_alone = finish(Command::new(PROGRAM).arg("status").env("CODECALL_HTTP_TOKEN", token), "").await;
    assert_eq!(ran_alone.code, Some(0), "{ran_alone:?}");
    let apps: Vec<Value> =
        ran.json()["servers"].as_array().expect("servers").iter().map(|server| server["app"].clone()).collect();
    assert!(apps.contains(&json!("users")), "{apps:?}");
}

/// Every line of a log in JSON is JSON, also what is told beside it in text.
#[tokio::test]
async fn a_log_for_programs() {
    let folder = Folder::new();
    let config = folder
        .file("config.json", json!({"mcpServers": {"a": {"command": "/nowhere/\u{200b}x", "strange": 1}}}).to_string());
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--http", "0", "--log-format", "json", "--config", &config]).env_remove("RUST_LOG");
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("starts");
    let mut stderr = child.stderr.take().expect("piped");
    let mut text = String::new();
    let read = async {
        let mut bytes = vec![0; 4096];
        while !text.contains("ready: 0 of 1 servers, 0 tools") {
            let n = stderr.read(&mut bytes).await.expect("text");
            assert_ne!(n, 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    };
    tokio::time::timeout(TIMEOUT, read).await.expect("says that it is ready");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect();
    let has =
        |text: &str| lines.iter().any(|line| line["fields"]["message"].as_str().is_some_and(|m| m.contains(text)));
    assert!(has("listening on http://127.0.0.1:") && has("mcpServers.a: unknown key 'strange' is ignored"), "{text}");
}

#[tokio::test]
async fn files_for_shells_and_man() {
    let ran = codecall(&["completions", "bash"]).await;
    assert!(
        ran.code == Some(0) && ran.stdout.contains("_codecall()") && ran.stdout.contains("--mock-tools"),
        "{}",
        ran.stdout
    );
    let ran = codecall(&["man"]).await;
    assert!(ran.code == Some(0) && ran.stdout.contains(".TH codecall 1"), "{}", ran.stdout);
    let folder = Folder::new();
    assert_eq!(codecall(&["man", "--output", &folder.path("")]).await.code, Some(0));
    assert!(std::path::Path::new(&folder.path("codecall-init.1")).exists());
}
