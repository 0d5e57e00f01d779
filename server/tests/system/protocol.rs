//! The view of an MCP client.

use crate::support::*;
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, PeerRequestOptions, ServiceError};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

const META_TOOLS: [&str; 4] = ["codecall_search", "codecall_describe", "codecall_execute", "codecall_invoke"];

#[tokio::test]
async fn the_list_of_tools() {
    let server = Server::start(&["--demo"]).await;
    let info = server.client.peer().peer_info().expect("a greeting");
    assert_eq!(info.server_info.as_ref().map(|own| own.name.as_str()), Some("codecall"));
    let tools = server.client.peer().list_tools(None).await.expect("a list");
    assert!(tools.next_cursor.is_none());
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, META_TOOLS);
    let mut size = 0;
    for tool in &tools.tools {
        let description = tool.description.as_deref().expect("a description");
        let (own, signatures) = description.split_once("\nTools (all 23):\n").unwrap_or((description, ""));
        assert!(own.len() < 800, "{}: {} characters", tool.name, own.len());
        assert_eq!(signatures.lines().count(), if tool.name == "codecall_execute" { 27 } else { 0 }, "{signatures}");
        assert!(tool.output_schema.is_none(), "a client with one expects structured content");
        let schema = Value::Object((*tool.input_schema).clone());
        assert_eq!(schema["type"], "object");
        jsonschema::meta::validate(&schema).expect("a schema of JSON");
        assert!(tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint.is_some()), "{}", tool.name);
        // The fields that a model sees of a tool.
        size += tool.name.len() + own.len() + Value::Object((*tool.input_schema).clone()).to_string().len();
    }
    assert!(size / 4 < 450, "about {} tokens", size / 4);
    let again = server.client.peer().list_tools(None).await.expect("a list");
    assert_eq!(again.tools, tools.tools, "the list is stable");
    server.end().await;
}

#[tokio::test]
async fn search_describe_execute_invoke() {
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let server = Server::start_as(&["--demo"], lifecycle).await;
        let found = server.ask("codecall_search", json!({"query": "list unpaid invoices", "topK": 3})).await;
        assert_eq!(found["tools"][0]["name"], "billing:listInvoices", "{found}");
        assert_eq!(found["tools"].as_array().map(Vec::len), Some(3));
        let described = server
            .ask(
                "codecall_describe",
                json!({"toolNames": ["billing:listInvoices", "users:get", "no:tool"], "format": "json_schema"}),
            )
            .await;
        assert_eq!(described["notFound"], json!(["no:tool"]));
        assert_eq!(described["tools"][0]["inputSchema"]["properties"]["status"]["enum"][0], "open");
        assert!(!described["tools"][1]["usageExamples"].as_array().expect("examples").is_empty());
        let script = "
            const { invoices } = await callTool('billing:listInvoices', { status: 'overdue', limit: 3 });
            const names = [];
            for (const { userId } of invoices) names.push((await users.get({ id: userId })).name);
            return { overdue: invoices.length, names };";
        let answer = server.call("codecall_execute", json!({"script": script})).await.expect("a result");
        let stats = answer.meta.as_ref().map(|meta| meta.0["codecall/stats"].clone()).expect("statistics");
        assert_eq!(stats["toolCalls"], 4);
        let answer = data(&answer);
        assert_eq!((&answer["status"], &answer["result"]["overdue"]), (&json!("ok"), &json!(3)), "{answer}");
        assert!(answer["result"]["names"][2].is_string(), "{answer}");
        let one = json!({"tool": "users:get", "input": {"id": "usr_001"}});
        let direct = server.ask("codecall_invoke", one).await;
        assert_eq!((&direct["status"], &direct["result"]["id"]), (&json!("ok"), &json!("usr_001")));
        server.end().await;
    }
}

#[tokio::test]
async fn unknown_names_and_invalid_requests_are_refused() {
    let server = Server::start(&["--demo"]).await;
    for name in ["codecall_search", "codecall:search", "codecall.search"] {
        assert_eq!(server.ask(name, json!({"query": "users"})).await["totalIndexed"], 23, "{name}");
    }
    for name in ["users:list", "codecall_delete", "codecall", ""] {
        match server.call(name, json!({})).await {
            Err(ServiceError::McpError(error)) => assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{name}"),
            other => panic!("{name} gives {other:?}"),
        }
    }
    for (tool, arguments, parts) in [
        ("search", json!({}), ["'query' is missing", "query?: string"]),
        ("search", json!({"query": "x", "topK": 99}), ["'topK' must be from 1 to 50", "topK?: number"]),
        ("search", json!({"q": "x"}), ["unknown key 'q'", "query?: string"]),
        ("describe", json!({"toolNames": 7}), ["'toolNames'", "toolNames?: string[], tools?: string[]"]),
        ("execute", json!({"code": "return 1"}), ["unknown key 'code'", "script?: string"]),
        ("execute", json!({"script": "  "}), ["'script' is empty", "script?: string"]),
        ("execute", json!({"script": "1", "context": [1]}), ["'context' must be an object", "context?:"]),
        ("execute", json!({"script": "1", "limits": {"timeout": 1}}), ["did you mean 'timeoutMs'?", "limits?:"]),
        ("invoke", json!({"tool": "users:get", "input": 3}), ["'input' must be an object", "tool: string"]),
    ] {
        let result = server.call(&format!("codecall_{tool}"), arguments.clone()).await.expect("a result");
        let answer = text(&result);
        assert_eq!(result.is_error, Some(true), "{arguments}");
        assert!(parts.iter().all(|part| answer.contains(part)), "{tool} {arguments} is answered with: {answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn progress_and_messages() {
    let server = Server::start(&["--demo"]).await;
    let script = "
        mcpLog('warning', 'half way', { of: 2 });
        mcpNotify('stage', { name: 'first' });
        await users.get({ id: 'usr_001' });
        await callTool('users:get', { id: 'nobody' }, { throwOnError: false });";
    let request = CallToolRequestParams::new("codecall_execute")
        .with_arguments(json!({"script": script}).as_object().expect("an object").clone());
    // The client sends a progress token with every request.
    let peer = server.client.peer();
    let request = ClientRequest::CallToolRequest(Request::new(request));
    let sent = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.expect("sent");
    let token = sent.progress_token.clone();
    let _ = sent.await_response().await.expect("an answer");
    let own_progress = |progress: &[ProgressNotificationParam]| -> Vec<(f64, String)> {
        let own = progress.iter().filter(|entry| entry.progress_token == token);
        own.map(|entry| (entry.progress, entry.message.clone().unwrap_or_default())).collect()
    };
    until("progress", || server.recorded.progress.lock().expect("not poisoned").len() == 4).await;
    let progress = own_progress(&server.recorded.progress.lock().expect("not poisoned"));
    assert_eq!(progress.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0]);
    assert!(
        progress[0].1.starts_with("users:get") && progress[3].1.starts_with("users:get: NOT_FOUND"),
        "{progress:?}"
    );
    let logs = server.recorded.logs.lock().expect("not poisoned").clone();
    let logs_of = |logger: &str| logs.iter().filter(|log| log["logger"] == logger).collect::<Vec<_>>();
    let calls = logs_of("codecall.tools");
    let run = &calls[0]["data"]["runId"];
    let expected = json!({"message": "half way", "metadata": {"of": 2}, "runId": run});
    assert!(run.is_string() && logs_of("codecall.script")[0]["data"] == expected, "{logs:?}");
    assert_eq!((calls.len(), &calls[0]["data"]["event"]), (4, &json!("tool_call_start")));
    assert_eq!(calls[3]["data"]["error"]["code"], "NOT_FOUND");
    let events = server.recorded.events.lock().expect("not poisoned").clone();
    let event = &events[0]["params"];
    let notified = (&event["event"], &event["payload"], &event["runId"]);
    assert_eq!(notified, (&json!("stage"), &json!({"name": "first"}), run));
    server.end().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_cancelled_request_cancels_its_tool_call() {
    let folder = Folder::new();
    let (config, log) = crate::hostile::config(&folder, &["good"]);
    let server = Server::start(&["--config", &config]).await;
    let is_logged = |what: &str| std::fs::read_to_string(&log[0]).expect("a log").lines().any(|line| line == what);
    let request = CallToolRequestParams::new("codecall_execute").with_arguments(
        json!({"script": "return await callTool('good:never', {})"}).as_object().expect("an object").clone(),
    );
    let request = ClientRequest::CallToolRequest(Request::new(request));
    let sent = server.client.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
    let sent = sent.await.expect("sent");
    until("the call", || is_logged("called")).await;
    assert!(!is_logged("cancelled"));
    sent.cancel(Some("enough".into())).await.expect("cancelled");
    until("the cancellation", || is_logged("cancelled")).await;
    let after = server.execute("return await callTool('good:last', {})").await;
    assert_eq!(after, json!({"status": "ok", "result": "last"}), "the server goes on");
    server.end().await;
}

#[cfg(unix)]
#[tokio::test]
async fn list_changes_are_notified_and_indexed() {
    let folder = Folder::new();
    let (config, _) = crate::hostile::config(&folder, &["good"]);
    let listed =
        std::fs::read_to_string(&config).expect("a configuration").replacen('{', r#"{"expose": "direct", "#, 1);
    let config = folder.file("config.json", listed);
    let server = Server::start(&["--config", &config]).await;
    let search = || server.ask("codecall_search", json!({"query": "track a parcel"}));
    assert_eq!(search().await["tools"], json!([]));
    // The list changes when the server connects, which was notified by now.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let before = server.recorded.changes.load(Ordering::Relaxed);
    assert_eq!(server.execute("return await good.grow({})").await["result"], "grown");
    until("the notification", || server.recorded.changes.load(Ordering::Relaxed) > before).await;
    assert_eq!(search().await["tools"][0]["name"], "good:parcel");
    server.end().await;
}

fn greeting() -> [Value; 2] {
    let client =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
}

fn call(id: u32, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "codecall_execute", "arguments": arguments}})
}

/// `codecall serve` in a pipe of a shell answers all requests.
#[tokio::test]
async fn answers_come_after_the_end_of_input() {
    let messages = greeting().into_iter().chain([
        call(1, json!({"script": "return (await users.get({ id: 'usr_001' })).id"})),
        call(2, json!({"script": "return (await billing.report({ from: '2026-06' })).months.length"})),
        call(3, json!([])),
    ]);
    let input: String = messages.map(|message| format!("{message}\n")).collect();
    // Open calls get five seconds. A busy machine may take as long for the rest, but not each time.
    let mut ran = None;
    for _ in 0..5 {
        let began = std::time::Instant::now();
        let ended = finish(Command::new(PROGRAM).args(["serve", "--demo"]), &input).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        if began.elapsed() < Duration::from_secs(5) {
            ran = Some(ended);
            break;
        }
    }
    let answers = ran.expect("the server ends when its calls are answered").json_lines();
    let answer_to = |id: u32| answers.iter().find(|message| message["id"] == id).expect("an answer");
    let text = |id: u32| answer_to(id)["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
    assert!(text(1).contains(r#""result":"usr_001""#) && text(2).contains(r#""result":1"#), "{answers:?}");
    assert_eq!(answer_to(3)["error"]["code"], -32602);
}

/// Results that the protocol cannot carry unchanged.
#[tokio::test]
async fn odd_results() {
    let server = Server::start(&["--demo"]).await;
    let cut = server
        .execute(
            "const text = 'a😀'; return [text.slice(0, 2), (await users.search({ query: 'zz😀'.slice(0, 3) })).users.length]",
        )
        .await;
    assert_eq!(cut, json!({"status": "ok", "result": ["a\u{fffd}", 0]}));
    let nested = "let deep = {}; for (let i = 0; i < 500; i++) deep = { deep };";
    let deep = server.execute(&format!("{nested} console.log(1); return deep")).await;
    assert_eq!((&deep["error"]["code"], &deep["logs"]), (&json!("SERIALIZATION_ERROR"), &json!(["1"])), "{deep}");
    let sent = server.execute(&format!("{nested} return await callTool('users:get', deep)")).await;
    assert_eq!(
        (&sent["status"], &sent["error"]["code"]),
        (&json!("runtime_error"), &json!("MESSAGE_INVALID")),
        "{sent}"
    );
    server.end().await;
}

/// stdout has only MCP messages, whatever is logged; the server ends with its input.
#[tokio::test]
async fn stdout_carries_only_mcp() {
    let mut child = Command::new(PROGRAM)
        .args(["-vv", "serve", "--demo"])
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let script = "console.error('to the logs'); console.log('too'); return 1";
    for message in greeting().into_iter().chain([call(2, json!({"script": script}))]) {
        stdin.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }
    let answer = loop {
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("answers").expect("read");
        let message: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message["id"] == 2 {
            break message;
        }
    };
    let expected = json!({"status": "ok", "result": 1, "logs": ["[error] to the logs", "too"]});
    assert_eq!(answer["result"]["content"][0]["text"], expected.to_string());
    drop(stdin);
    let rest = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await.expect("ends").expect("read");
    assert_eq!(rest, None);
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).await.expect("read");
    assert!(!stderr.contains("to the logs"), "logs of scripts belong to their clients: {stderr}");
    assert_eq!(child.wait().await.expect("ends").code(), Some(0));
}
