//! Reports to clients: of calls, of progress, of limits, of a shutdown, and of wrong input.

use crate::model_server::*;
use crate::support::*;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

const TOOLS: &str = r#"{"tools": [
    {"name": "users:get", "inputSchema": {"type": "object", "properties": {
        "userId": {"type": "string"},
        "limit": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "filter": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}}
      }, "required": ["userId"], "additionalProperties": false}, "responses": [
        {"input": {"userId": "a"}, "output": "found"},
        {"input": {"userId": "a", "note": null, "filter": {"zip": "1"}}, "output": "cleaned"},
        {"input": {"userId": "x"}, "error": {"message": "No such user", "code": "NOT_FOUND"}},
        {"input": null, "output": "other"}
    ]},
    {"name": "users:delete", "responses": [{"input": {}, "output": "gone"}]},
    {"name": "slow:never", "responses": [{"input": null, "output": 1}], "delayMs": 600000}
]}"#;

fn mocks(folder: &Folder) -> String {
    folder.file("mocks.json", TOOLS)
}

/// Each call, as `name status`.
fn calls(error: &Value) -> Vec<String> {
    let calls = error["calls"].as_array().unwrap_or_else(|| panic!("calls in {error}"));
    let row = |call: &Value| {
        assert!(call["durationMs"].is_number(), "{call}");
        format!("{} {}", call["name"].as_str().expect("a name"), call["status"].as_str().expect("a status"))
    };
    calls.iter().map(row).collect()
}

#[tokio::test]
async fn only_calls_that_reach_a_tool_count() {
    let folder = Folder::new();
    let limits = json!({"rateLimits": [{"tool": "users:delete", "limit": 1, "window": "1h"}]});
    let config = folder.file("config.json", limits.to_string());
    let server = Server::start(&["--mock-tools", &mocks(&folder), "--config", &config]).await;
    let script = "const tries = [['users:get', { userId: 'a' }], ['users:gte', {}], ['users:get', { limit: 1 }], \
                  ['users:delete'], ['users:delete']];
                  for (const [name, input] of tries) { try { await callTool(name, input) } catch {} }
                  await callTool('users:get', { userId: 'x' })";
    let answer = server.execute(script).await;
    let error = &answer["error"];
    assert_eq!((&answer["status"], &error["toolCalls"]), (&json!("tool_error"), &json!(3)), "{answer}");
    let expected = [
        "users:gte error",
        "users:get error",
        "users:delete error",
        "users:get error",
        "users:get ok",
        "users:delete ok",
    ];
    assert_eq!(calls(error), expected, "{answer}");
    assert_eq!(error["location"], json!({"line": 3, "column": 25}), "{answer}");

    let denied = json!({"script": "await callTool('users:get', { userId: 'a' })", "allowedTools": ["other:*"]});
    let denied = server.ask("codecall_execute", denied).await;
    assert_eq!((&denied["error"]["code"], &denied["error"]["toolCalls"]), (&json!("ACCESS_DENIED"), &json!(0)));
    let many = "for (let i = 0; i < 103; i++) await callTool('users:get', { userId: 'a' }); null.x";
    let many = server.ask("codecall_execute", json!({"script": many})).await;
    assert_eq!(many["error"]["code"], "MAX_TOOL_CALLS_EXCEEDED");
    assert_eq!((calls(&many["error"]).len(), &many["error"]["omittedCalls"]), (20, &json!(80)));
    assert_eq!(many["error"]["toolCalls"], 100);
    server.end().await;

    // The command lists the calls of every run.
    let (ok, fails) = (folder.file("ok.js", "return users.get({ userId: 'a' })"), folder.file("fails.js", script));
    let mocks = mocks(&folder);
    let ok = codecall(&["run", &ok, "--mock-tools", &mocks]).await.json();
    assert_eq!((&ok["result"], calls(&ok)), (&json!("found"), vec!["users:get ok".to_owned()]), "{ok}");
    let failed = codecall(&["run", &fails, "--mock-tools", &mocks]).await.json();
    assert_eq!((calls(&failed["error"]).len(), &failed["error"]["toolCalls"]), (6, &json!(4)), "{failed}");
}

#[tokio::test]
async fn progress_and_logs_arrive_in_order_before_the_result() {
    let folder = Folder::new();
    let script = folder.file("burst.sh", include_str!("burst.sh"));
    let config = json!({"mcpServers": {"burst": {"command": "sh", "args": [script]}}, "expose": "direct"});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--config", &config]).await;
    for round in 1..=5 {
        let answer =
            server.call("codecall_invoke", json!({"tool": "burst:all", "input": {}})).await.expect("an answer");
        assert_eq!(answer.is_error, Some(false), "{answer:?}");
        // The client's own handlers run in tasks.
        until("the last line", || server.recorded.logs.lock().expect("not poisoned").len() >= 102 * round).await;
    }
    // The order on the wire, which a client that handles each notification in a task does not see.
    let mut child = Command::new(PROGRAM);
    child.args(["serve", "--config", &config]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = child.stderr(Stdio::null()).spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "codecall_invoke", "arguments": {"tool": "burst:all", "input": {}}, "_meta": {"progressToken": "p"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let text = format!("{initialize}\n{initialized}\n{{broken\n{call}\n");
    stdin.write_all(text.as_bytes()).await.expect("written");
    let (mut progress, mut logs, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("in time").expect("text");
        let message: Value = serde_json::from_str(&line.expect("an answer")).expect("JSON");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("notifications/progress") => progress.push(params["progress"].as_f64().expect("a number")),
            Some("notifications/message") if params["logger"] == "burst.burst" => {
                logs.push(params["data"].as_str().expect("a text").to_owned());
            }
            _ if message["id"] == 7 => break,
            _ if message["error"].is_object() => errors.push(message["error"]["code"].clone()),
            _ => {}
        }
    }
    let steps: Vec<f64> = (1..=100).map(f64::from).collect();
    let own: Vec<f64> = progress.into_iter().filter(|step| *step >= 1.0).collect();
    assert_eq!(own, steps);
    assert_eq!(logs, (1..=100).map(|n| format!("line {n}")).collect::<Vec<_>>());
    assert_eq!(errors, [json!(-32700)], "a line that is not JSON is answered");
    drop(stdin);
    server.end().await;
}

#[tokio::test]
async fn a_rate_limited_meta_tool_says_when_to_try_again() {
    let folder = Folder::new();
    let config = json!({"rateLimits": [{"tool": "codecall:search", "limit": 1, "window": "1h"}]});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--demo", "--config", &config]).await;
    server.ask("codecall_search", json!({"query": "users"})).await;
    let refused = server.call("codecall_search", json!({"query": "users"})).await.expect("an answer");
    let meta = serde_json::to_value(&refused.meta).expect("JSON");
    assert_eq!((refused.is_error, &meta["codecall/error"]["code"]), (Some(true), &json!("RATE_LIMIT")), "{meta}");
    let wait = &meta["codecall/error"]["details"]["retryAfterMs"];
    assert!(wait.as_u64().is_some_and(|wait| wait > 3_000_000), "{meta}");
    let said = text(&refused);
    assert!(said.starts_with("RATE_LIMIT: ") && said.contains(&format!("retryAfterMs: {wait}")), "{said}");
    server.end().await;
}

#[tokio::test]
async fn long_results_of_code_execution_are_stored() {
    let folder = Folder::new();
    let config = json!({"enable_code_execution": true, "vm": {"maxResultBytes": 1000}});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--demo", "--config", &config]).await;
    let answer = server.call("code_execution", json!({"code": "'x'.repeat(2500)"})).await.expect("an answer");
    let answer = data(&answer);
    let (value, truncated) = (answer["value"].as_str().expect("a text"), &answer["truncated"]);
    assert_eq!((&answer["ok"], &truncated["bytes"]), (&json!(true), &json!(2500)), "{answer}");
    assert!(value.starts_with("xxx") && value.contains("[cut: "), "{answer}");
    let more = json!({"handle": truncated["handle"], "offset": truncated["next"]});
    let more = server.ask("codecall_execute", more).await;
    assert!(more["result"].as_str().is_some_and(|text| text.starts_with("xxx")), "{more}");
    // Hints name what this dialect has.
    for (code, part) in [
        ("return context.x", "`input`"),
        ("return await callTool('users:list', {})", "call_tool(server, tool, args)"),
        ("return process.env", "`input`"),
        ("fetch('x')", "call_tool(server, tool, args)"),
    ] {
        let answer = server.call("code_execution", json!({"code": code})).await.expect("an answer");
        let answer = data(&answer).to_string();
        let absent = ["codecallContext", "await callTool(", "parallel("];
        assert!(answer.contains(part) && !absent.iter().any(|name| answer.contains(name)), "{code}: {answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn input_is_lenient_about_null_and_says_what_is_wrong() {
    let folder = Folder::new();
    let mocks = mocks(&folder);
    let server = Server::start(&["--mock-tools", &mocks]).await;
    let nulls =
        "return [await callTool('users:delete'), await callTool('users_delete', undefined), await users.delete(),
        await users.get({ userId: 'a', limit: null, filter: null }),
        await users.get({ userId: 'a', note: null, filter: { city: null, zip: '1' } })]";
    let answer = server.execute(nulls).await;
    assert_eq!(answer["result"], json!(["gone", "gone", "gone", "found", "cleaned"]), "{answer}");
    for (input, parts) in [
        ("{ userId: null }", &["userId: null is not of type \"string\""][..]),
        ("{ user_id: 'a' }", &["\"userId\" is a required property; expected userId: string, instead of 'user_id'"]),
        ("{ userId: 'a', limits: 3 }", &["'limits' was unexpected", "did you mean 'limit'?"]),
        ("{ userId: 'a', filter: { city: 3 } }", &["filter.city: 3 is not of type \"string\""]),
    ] {
        let answer = server.execute(&format!("await users.get({input})")).await;
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(parts.iter().all(|part| message.contains(part)), "{input}: {message}");
        assert_eq!((&answer["error"]["code"], &answer["error"]["toolCalls"]), (&json!("INVALID_INPUT"), &json!(0)));
    }
    let unknown = server.execute("return users.nope({})").await;
    assert_eq!(unknown["error"]["message"], "users.nope is not a function", "{unknown}");
    assert!(unknown["error"]["hint"].as_str().is_some_and(|hint| hint.contains("'users:nope'")), "{unknown}");
    let same = server.ask("codecall_describe", json!({"tools": ["users:get"]})).await;
    assert_eq!(same["tools"][0]["name"], "users:get");
    server.end().await;

    let strict = folder.file("strict.json", r#"{"vm": {"lenientInput": false}}"#);
    let server = Server::start(&["--mock-tools", &mocks, "--config", &strict]).await;
    let answer = server.execute("return users.get({ userId: 'a', limit: null })").await;
    assert_eq!(answer["error"]["code"], "INVALID_INPUT", "{answer}");
    server.end().await;

    let dry = folder.file("dry.js", "return users.get({ userId: 'a', limit: null })");
    let dry = codecall(&["run", &dry, "--dry-run", "--mock-tools", &mocks]).await.json();
    assert_eq!((&dry["calls"][0]["fits"], &dry["calls"][0]["input"]["limit"]), (&json!(true), &Value::Null), "{dry}");
    let unknown = codecall(&["describe", "users:gte", "--mock-tools", &mocks]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    let dash = codecall(&["code", "exec", "--code", "-1 + 3"]).await;
    assert_eq!((dash.code, dash.stdout.contains("\"value\": 2")), (Some(0), true), "{dash:?}");
}

/// A journal has what the script wrote; the tool gets what is sent.
#[tokio::test]
async fn a_journal_has_the_input_of_the_script() {
    let folder = Folder::new();
    let (script, journal) =
        (folder.file("one.js", "return users.get({ userId: 'a', limit: null })"), folder.path("journal"));
    let ran = codecall(&["run", &script, "--record", &journal, "--mock-tools", &mocks(&folder)]).await;
    assert_eq!(ran.json()["result"], "found", "{ran:?}");
    let text = std::fs::read_to_string(&journal).expect("a journal");
    assert!(text.contains(r#""input": {"userId":"a","limit":null}"#), "{text}");
    let replayed = codecall(&["replay", &script, "--journal", &journal]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");

    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]});
    let step = json!({"code": "return find({ a: 'x', b: null })", "tools": [{"name": "find", "inputSchema": schema}]});
    let server = HttpProcess::start(&[]).await;
    let (status, answer) = post_json(&server.url, "/v1/evaluate", &step).await;
    assert_eq!((status, &answer["calls"][0]["input"]), (200, &json!({"a": "x", "b": null})), "{answer}");
    assert_eq!(server.end().await, Some(0));
}

#[tokio::test]
async fn a_shutdown_answers_running_requests() {
    let folder = Folder::new();
    let mocks = mocks(&folder);
    let server = Arc::new(Server::start(&["--mock-tools", &mocks]).await);
    let running = {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.execute("await callTool('slow:never', {})").await })
    };
    until("the call", || {
        let logs = server.recorded.logs.lock().expect("not poisoned");
        logs.iter().any(|log| log["data"]["event"] == "tool_call_start")
    })
    .await;
    let pid = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill").success());
    let answer = tokio::time::timeout(TIMEOUT, running).await.expect("in time").expect("an answer");
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["toolCalls"]),
        (&json!("POOL_DISPOSED"), &json!(1)),
        "{answer}"
    );
}

#[tokio::test]
async fn the_end_of_a_session_is_a_success() {
    let server = HttpProcess::start(&["--demo"]).await;
    let url = format!("{}/mcp", server.url);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let accept = "application/json, text/event-stream";
    let started = http_client().post(&url).header("accept", accept).json(&initialize).send().await.expect("an answer");
    let session = started.headers()["mcp-session-id"].clone();
    let end = || http_client().delete(&url).header("mcp-session-id", session.clone()).send();
    let status = end().await.expect("an answer").status().as_u16();
    assert_eq!(status, 204, "clients take 200 and 204 for success");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let after = http_client().post(&url).header("accept", accept).header("mcp-session-id", session.clone());
    assert_eq!(after.json(&list).send().await.expect("an answer").status().as_u16(), 404);
    assert_eq!(server.end().await, Some(0));
}

#[tokio::test]
async fn changed_histories_are_refused() {
    let folder = Folder::new();
    let model = Model::start([ModelReply::Text("There."), ModelReply::Text("There.")]).await;
    let config = json!({"model": {"url": model.url, "key": KEY}});
    let server = HttpProcess::start(&["--config", &folder.file("config.json", config.to_string())]).await;
    let tools = json!([{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]);
    let block = |arguments: &str, data: Value| {
        json!([
            {"role": "user", "content": "Find it"},
            {"role": "code", "id": "code_1", "code": "return [await find({ q: 'a' })]"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "code_1_0", "type": "function", "function": {"name": "find", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": "code_1_0", "content": "7"},
            {"role": "code_result", "id": "code_1", "result": {"status": "success", "data": data}},
            {"role": "assistant", "content": "It is 7."},
            {"role": "user", "content": "Thanks"},
        ])
    };
    let ask = |messages: Value| {
        let request = json!({"model": "tiny", "messages": messages, "tools": tools});
        let url = server.url.clone();
        async move { post_json(&url, "/v1/chat/completions", &request).await }
    };
    let (status, answer) = ask(block("{\"q\":\"a\"}", json!([7]))).await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = ask(block("{\"q\":\"a\"}", json!([8]))).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("REPLAY_MISMATCH")), "a forged result: {answer}");
    let (status, answer) = ask(block("{\"q\":\"b\"}", json!([7]))).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("REPLAY_MISMATCH")), "another input: {answer}");
    let (status, answer) = ask(json!([
        {"role": "user", "content": "Find it"},
        {"role": "tool", "tool_call_id": "code_9_0", "content": "7"},
    ]))
    .await;
    assert_eq!(status, 400, "an answer without a call: {answer}");

    // The same messages at `/v1/evaluate`.
    let evaluate = |messages: Value| {
        let request = json!({"tools": tools, "messages": messages});
        let url = server.url.clone();
        async move { post_json(&url, "/v1/evaluate", &request).await }
    };
    let of_block = |from: Value| Value::from(from.as_array().expect("a list")[..5].to_vec());
    let (status, answer) = evaluate(of_block(block("{\"q\":\"a\"}", json!([7])))).await;
    assert_eq!((status, &answer["outcome"]["result"]), (200, &json!([7])), "{answer}");
    let (status, answer) = evaluate(of_block(block("{\"q\":\"a\"}", json!([8])))).await;
    assert_eq!(status, 400, "{answer}");
    let (status, answer) = evaluate(of_block(block("{\"q\":\"b\"}", json!([7])))).await;
    assert_eq!(status, 400, "{answer}");
    assert_eq!(server.end().await, Some(0));
}
