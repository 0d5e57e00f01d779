//! Every status and code that a script can end with, as a client sees it.

use crate::support::*;
use serde_json::{Value, json};

/// A script, its limit, and the `STATUS CODE` that it ends with; then parts of its error.
type Case = (&'static str, &'static str, &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    ("return [1, 'two', { three: 3 }]", "{}", "ok", &[]),
    ("const a = ;", "{}", "syntax_error SYNTAX_ERROR", &["1:11"]),
    ("return 'a script that is too long'", r#"{"maxScriptBytes": 10}"#, "syntax_error SCRIPT_TOO_LARGE", &[]),
    (
        "const x = 1;\nreturn eval('x');",
        "{}",
        "illegal_access VALIDATION_ERROR",
        &["IllegalBuiltinAccess", "Identifier 'eval' is not allowed in AgentScript", "2:8"],
    ),
    ("return process.env", "{}", "illegal_access VALIDATION_ERROR", &["DisallowedGlobal"]),
    ("class A {}", "{}", "illegal_access VALIDATION_ERROR", &["DisallowedSyntax"]),
    ("return [].constructor", "{}", "illegal_access VALIDATION_ERROR", &["DisallowedProperty"]),
    ("while (true) {}", "{}", "runtime_error ITERATION_LIMIT", &["1:1"]),
    ("while (true) {}", r#"{"loops": "bounded"}"#, "illegal_access LOOP_NOT_ALLOWED", &["1:1"]),
    ("for (const x of [1]) {}", r#"{"allowLoops": false}"#, "illegal_access LOOP_NOT_ALLOWED", &[]),
    ("console.log(1)", r#"{"allowConsole": false}"#, "illegal_access VALIDATION_ERROR", &["console"]),
    (
        "try { await callTool('codecall:execute', {}) } catch {} return 1",
        "{}",
        "illegal_access SELF_REFERENCE_BLOCKED",
        &["codecall:execute"],
    ),
    (
        "const user = undefined;\nreturn user.name;",
        "{}",
        "runtime_error EXECUTION_ERROR",
        &["Cannot read properties of undefined (reading 'name')", "TypeError", " 2:"],
    ),
    ("throw new RangeError('mine')", "{}", "runtime_error EXECUTION_ERROR", &["RangeError", "mine"]),
    (
        "const f = (n) => f(n + 1) + 1; return f(0)",
        "{}",
        "runtime_error EXECUTION_ERROR",
        &["RangeError", "Maximum call stack size exceeded"],
    ),
    ("const a = {}; a.a = a; return a", "{}", "runtime_error SERIALIZATION_ERROR", &[]),
    ("return 1n", "{}", "runtime_error SERIALIZATION_ERROR", &[]),
    (
        "for (let i = 0; i < 100; i++) {}",
        r#"{"maxIterations": 50}"#,
        "runtime_error ITERATION_LIMIT",
        &["iteration limit"],
    ),
    ("return Array.from({ length: 9999 }, (_, i) => i)", r#"{"maxSteps": 500}"#, "runtime_error STEP_LIMIT", &[]),
    (
        "const kept = []; for (let i = 0; i < 99999; i++) kept.push('x'.repeat(1000) + i); return kept.length",
        r#"{"maxMemoryBytes": 1000000}"#,
        "runtime_error MEMORY_LIMIT",
        &[],
    ),
    (
        "for (let i = 0; i < 5; i++) await callTool('users:list', {});",
        r#"{"maxToolCalls": 3}"#,
        "runtime_error MAX_TOOL_CALLS_EXCEEDED",
        &["\"toolCalls\":3"],
    ),
    // The server stores a long result; the command has no store.
    ("return 'x'.repeat(1000)", r#"{"maxResultBytes": 100}"#, "ok", &[]),
    ("for (let i = 0; i < 9; i++) console.log(i)", r#"{"maxConsoleCalls": 3}"#, "runtime_error CONSOLE_LIMIT", &[]),
    ("await callTool('users:gte', {})", "{}", "tool_error TOOL_NOT_FOUND", &["Did you mean 'users:get'", "\"tool\""]),
    ("await callTool('users:get', { nr: 1 })", "{}", "tool_error INVALID_INPUT", &["is a required property"]),
    (
        "await callTool('users:get', { id: 'nobody' })",
        "{}",
        "tool_error NOT_FOUND",
        &["users:get", "There is no user 'nobody'", r#""toolInput":{"id":"nobody"}"#, "\"toolCalls\":1"],
    ),
    (
        "await callTool('billing:report', { from: '2026-01' }, { timeoutMs: 50 })",
        "{}",
        "tool_error TOOL_TIMEOUT",
        &["Tool 'billing:report' timed out after 50ms"],
    ),
    (
        "const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(90)",
        r#"{"timeoutMs": 5}"#,
        "timeout TIMEOUT",
        &["Script execution timed out after 5ms"],
    ),
    ("await callTool('billing:report', { from: '2026-01' })", r#"{"maxDurationMs": 100}"#, "timeout TIMEOUT", &[]),
];

#[tokio::test]
async fn every_status_over_mcp() {
    let server = Server::start(&["--demo"]).await;
    for (script, limits, ends, parts) in CASES {
        let limits: Value = serde_json::from_str(limits).expect("JSON");
        let answer = server.ask("codecall_execute", json!({"script": script, "limits": limits})).await;
        let error = &answer["error"];
        let code = error["code"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
        let status = answer["status"].as_str().unwrap_or_default();
        assert_eq!(format!("{status}{code}"), *ends, "{script}\n{answer}");
        let place = &error["location"];
        let text = format!("{error} {}:{}", place["line"], place["column"]);
        assert!(parts.iter().all(|part| text.contains(part)), "{script}\n{answer}");
        assert!(error.is_null() || error["toolCalls"].is_number(), "{answer}");
    }
    let denied =
        json!({"script": "await users.list({}); await callTool('orders:list', {})", "allowedTools": ["users:*"]});
    let denied = server.ask("codecall_execute", denied).await;
    assert_eq!(denied["status"], "tool_error", "{denied}");
    assert_eq!(
        (&denied["error"]["code"], &denied["error"]["toolName"]),
        (&json!("ACCESS_DENIED"), &json!("orders:list"))
    );
    server.end().await;
}

#[tokio::test]
async fn logs_are_there_on_every_status() {
    let server = Server::start(&[]).await;
    for (end, status) in
        [("return 1", "ok"), ("throw new Error('x')", "runtime_error"), ("await callTool('x:y', {})", "tool_error")]
    {
        let answer = server.execute(&format!("console.log('seen'); {end}")).await;
        assert_eq!((&answer["status"], &answer["logs"]), (&json!(status), &json!(["seen"])), "{answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn all_violations_are_reported_at_once() {
    let server = Server::start(&[]).await;
    let answer = server.execute("const a = eval('1');\nconst b = process.env;\nwhile (a) { fetch(b) }").await;
    let issues = answer["error"]["issues"].as_array().expect("issues");
    let lines: Vec<u64> = issues.iter().filter_map(|issue| issue["location"]["line"].as_u64()).collect();
    assert_eq!(lines, [1, 2, 3], "{answer}");
    server.end().await;
}

#[tokio::test]
async fn a_full_queue() {
    let folder = Folder::new();
    let config = folder
        .file("c.toml", "[pool]\nmaxRuns = 1\nmaxQueue = 1\nqueueTimeoutMs = 100\n[vm]\npreset = \"experimental\"\n");
    let server = Server::start(&["--config", &config]).await;
    // A script that waits would let the others begin.
    let slow = || server.execute("const until = Date.now() + 500; while (Date.now() < until); return 1");
    let (first, second, third) = tokio::join!(slow(), slow(), slow());
    let mut codes: Vec<String> = [&first, &second, &third]
        .iter()
        .map(|answer| answer["error"]["code"].as_str().unwrap_or("ok").to_owned())
        .collect();
    codes.sort();
    assert_eq!(codes, ["QUEUE_FULL", "QUEUE_TIMEOUT", "ok"], "{first} {second} {third}");
    server.end().await;
}
