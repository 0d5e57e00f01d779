//! `code_execution`: every example of its reference, through the meta-tool and through `codecall code exec`.

use crate::support::*;
use codecall::meta;
use codecall::upstream::fixture::Fixture;
use codecall::{Config, Hub};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

const TOOLS: &str = r#"{"tools": [
    {"name": "github:get_user", "inputSchema": {"type": "object", "properties": {"username": {"type": "string"}}, "required": ["username"]}, "responses": [
        {"input": {"username": "octocat"}, "output": {"name": "The Octocat", "public_repos": 8}},
        {"input": {"username": "torvalds"}, "output": {"name": "Linus Torvalds", "public_repos": 9}},
        {"input": null, "error": {"message": "Not Found", "code": "NOT_FOUND"}}
    ]},
    {"name": "gitlab:get_user", "responses": [{"input": null, "output": {"name": "Tanuki"}}]},
    {"name": "api:ping", "responses": [{"input": null, "output": "pong"}]},
    {"name": "api:slow", "responses": [{"input": null, "output": "late"}], "delayMs": 100},
    {"name": "api:never", "responses": [{"input": null, "output": "too late"}], "delayMs": 600000}
]}"#;

/// An example, and its result: the value, or the code of the error with parts of its message.
struct Example {
    name: &'static str,
    request: Value,
    gives: Result<Value, (&'static str, &'static [&'static str])>,
}

fn example(
    name: &'static str,
    request: Value,
    gives: Result<Value, (&'static str, &'static [&'static str])>,
) -> Example {
    Example { name, request, gives }
}

fn code(code: &str) -> Value {
    json!({"code": code})
}

const OCTOCAT: &str = "var res = call_tool('github', 'get_user', {username: input.username}); return res.ok ? res.result : {error: res.error};";
const CHECKED: &str = "var res = call_tool('github', 'get_user', {username: input.username});
if (res.ok) {
  return {
    name: res.result.name,
    repos: res.result.public_repos
  };
} else {
  return {
    error: 'Failed to get user: ' + res.error.message
  };
}";
const FILE: &str = "const users = ['octocat', 'torvalds'];
const names = users
  .map(username => call_tool('github', 'get_user', {username}))
  .filter(res => res.ok)
  .map(res => res.result.name);
return {names};
";
const CONVERSIONS: &str = "var num = parseInt('42', 10); var float = parseFloat('2.75');
var str = (42).toString(); var fixed = (2.74999).toFixed(2);
var value = ''; var bool = Boolean(value); var isTruthy = !!value;
var isArray = Array.isArray([]); var isObject = typeof value === 'object' && value !== null;
[num, float, str, fixed, bool, isTruthy, isArray, isObject]";
const LIBRARY: &str = "var copy = Object.create(null); copy.a = 1;
var day = new Date(0);
({ keys: Object.keys(copy), list: Array.isArray([1].map(x => x)), sum: [1, 2].reduce((a, b) => a + b, 0), text: ' a,b '.trim().split(','),
   at: 'abc'.indexOf('c'), part: 'abc'.substring(1), max: Math.max(Math.round(1.5), Math.floor(2.7)), random: Math.random() < 1,
   time: day.getTime(), iso: day.toISOString(), now: Date.now() > 0, json: JSON.stringify(JSON.parse('{\"a\":[1]}')) })";

fn examples() -> Vec<Example> {
    let octocat = || json!({"name": "The Octocat", "public_repos": 8});
    vec![
        example(
            "basic request",
            json!({"code": "({ result: input.value * 2 })", "input": {"value": 21}}),
            Ok(json!({"result": 42})),
        ),
        example(
            "TypeScript request",
            json!({"code": "const x: number = 42; const msg: string = 'hello'; ({ result: x, message: msg })", "language": "typescript", "input": {}}),
            Ok(json!({"result": 42, "message": "hello"})),
        ),
        example(
            "full request with options",
            json!({"code": OCTOCAT, "input": {"username": "octocat"}, "options": {"timeout_ms": 30000, "max_tool_calls": 10, "allowed_servers": ["github", "gitlab"]}}),
            Ok(octocat()),
        ),
        example(
            "full request whose tool fails",
            json!({"code": OCTOCAT, "input": {"username": "nobody"}}),
            Ok(json!({"error": {"message": "Not Found", "code": "NOT_FOUND"}})),
        ),
        example(
            "global input",
            json!({"code": "var username = input.username; var limit = input.limit; [username, limit]", "input": {"username": "octocat", "limit": 10}}),
            Ok(json!(["octocat", 10])),
        ),
        example("no input is an empty object", code("input"), Ok(json!({}))),
        example(
            "call_tool, success",
            json!({"code": CHECKED, "input": {"username": "octocat"}}),
            Ok(json!({"name": "The Octocat", "repos": 8})),
        ),
        example(
            "call_tool, failure",
            json!({"code": CHECKED, "input": {"username": "nobody"}}),
            Ok(json!({"error": "Failed to get user: Not Found"})),
        ),
        example(
            "error handling",
            code(
                "var res = call_tool('server', 'tool', {arg: 'value'}); if (!res.ok) { return {error: res.error.code}; } var data = res.result; return data;",
            ),
            Ok(json!({"error": "TOOL_NOT_FOUND"})),
        ),
        example(
            "input that does not fit the tool",
            code("call_tool('github', 'get_user', {}).error.code"),
            Ok(json!("INVALID_INPUT")),
        ),
        example(
            "several calls at once",
            code(
                "call_tools([{server: 'api', tool: 'slow', args: {}}, {server: 'api', tool: 'ping'}]).map(r => r.result)",
            ),
            Ok(json!(["late", "pong"])),
        ),
        example(
            "standard library",
            code(LIBRARY),
            Ok(json!({
                "keys": ["a"], "list": true, "sum": 3, "text": ["a", "b"], "at": 2, "part": "bc", "max": 2, "random": true,
                "time": 0, "iso": "1970-01-01T00:00:00.000Z", "now": true, "json": "{\"a\":[1]}",
            })),
        ),
        example("type conversions", code(CONVERSIONS), Ok(json!([42, 2.75, "42", "2.75", false, false, true, false]))),
        example("console", code("console.log('to the log of the server', 1); 'done'"), Ok(json!("done"))),
        example("no modules", code("require('fs')"), Err(("SYNTAX_ERROR", &["'require' is not allowed"]))),
        example("waiting", code("sleep(5); 'done'"), Ok(json!("done"))),
        example(
            "no files",
            code("fs.readFileSync('/etc/passwd')"),
            Err(("RUNTIME_ERROR", &["fs is not defined", "call_tool(server, tool, args)"])),
        ),
        example("no network", code("fetch('http://localhost')"), Err(("SYNTAX_ERROR", &["'fetch' is not allowed"]))),
        example("no process", code("process.env.HOME"), Err(("SYNTAX_ERROR", &["'process' is not allowed"]))),
        example("no Node.js", code("Buffer.from('x')"), Err(("SYNTAX_ERROR", &["'Buffer' is not allowed"]))),
        example("SYNTAX_ERROR", code("var x = { missing bracket"), Err(("SYNTAX_ERROR", &["SyntaxError: ", "line 1"]))),
        example(
            "RUNTIME_ERROR",
            code("var x = null; x.property"),
            Err(("RUNTIME_ERROR", &["TypeError: Cannot read properties of null (reading 'property')", "line 1"])),
        ),
        example(
            "RUNTIME_ERROR of nothing",
            code("var x; x.name"),
            Err(("RUNTIME_ERROR", &["Cannot read properties of undefined (reading 'name')"])),
        ),
        example(
            "TIMEOUT",
            json!({"code": "while(true) {}", "options": {"timeout_ms": 300}}),
            Err(("TIMEOUT", &["timed out after 300ms"])),
        ),
        example(
            "TIMEOUT while a tool is waited for",
            json!({"code": "call_tool('api', 'never', {})", "options": {"timeout_ms": 200}}),
            Err(("TIMEOUT", &["timed out after 200ms"])),
        ),
        example(
            "MAX_TOOL_CALLS_EXCEEDED",
            json!({"code": "for(var i=0;i<10;i++){call_tool('api','ping',{})}", "options": {"max_tool_calls": 5}}),
            Err(("MAX_TOOL_CALLS_EXCEEDED", &["limit of 5 tool calls"])),
        ),
        example(
            "MAX_TOOL_CALLS_EXCEEDED cannot be caught",
            json!({"code": "try { call_tool('api','ping',{}); call_tool('api','ping',{}) } catch { } 1", "options": {"max_tool_calls": 1}}),
            Err(("MAX_TOOL_CALLS_EXCEEDED", &[])),
        ),
        example(
            "no limit of calls",
            json!({"code": "let n = 0; for (let i = 0; i < 300; i++) n += call_tool('api','ping',{}).ok; n", "options": {"max_tool_calls": 0}}),
            Ok(json!(300)),
        ),
        example(
            "SERVER_NOT_ALLOWED",
            json!({"code": "call_tool('gitlab', 'get_user', {username: 'test'})", "options": {"allowed_servers": ["github"]}}),
            Err(("SERVER_NOT_ALLOWED", &["'gitlab'"])),
        ),
        example(
            "SERVER_NOT_ALLOWED of a server that does not exist",
            json!({"code": "call_tool('secrets', 'read', {})", "options": {"allowed_servers": ["github"]}}),
            Err(("SERVER_NOT_ALLOWED", &["'secrets'"])),
        ),
        example(
            "an allowed server",
            json!({"code": "call_tool('github', 'get_user', {username: 'octocat'})", "options": {"allowed_servers": ["github"]}}),
            Ok(json!({"ok": true, "result": octocat()})),
        ),
        example(
            "an empty list of servers allows all",
            json!({"code": "call_tool('gitlab', 'get_user', {}).result.name", "options": {"allowed_servers": []}}),
            Ok(json!("Tanuki")),
        ),
        example(
            "SERIALIZATION_ERROR",
            code("({fn: function() { return 42; }})"),
            Err(("SERIALIZATION_ERROR", &["function"])),
        ),
        example(
            "command line, sum",
            json!({"code": "({sum: input.a + input.b})", "input": {"a": 5, "b": 10}}),
            Ok(json!({"sum": 15})),
        ),
        example(
            "command line, tool call",
            json!({"code": "var r = call_tool('github','get_user',{username:input.user}); r", "input": {"user": "octocat"}}),
            Ok(json!({"ok": true, "result": octocat()})),
        ),
        example(
            "command line, inline tool call",
            json!({"code": "call_tool('github', 'get_user', {username: input.user})", "input": {"user": "octocat"}}),
            Ok(json!({"ok": true, "result": octocat()})),
        ),
        example(
            "command line, error",
            code("throw new Error('Test error')"),
            Err(("RUNTIME_ERROR", &["Error: Test error"])),
        ),
        example("command line, saved script", code(FILE), Ok(json!({"names": ["The Octocat", "Linus Torvalds"]}))),
        example("valid: null", code("null"), Ok(Value::Null)),
        example("valid: true", code("return true"), Ok(json!(true))),
        example("valid: a number", code("1.5"), Ok(json!(1.5))),
        example("valid: a string", code("'text'"), Ok(json!("text"))),
        example("valid: arrays", code("[[1, 2, 3], ['a', 'b']]"), Ok(json!([[1, 2, 3], ["a", "b"]]))),
        example(
            "valid: objects",
            code("({key: 'value', nested: {object: true}})"),
            Ok(json!({"key": "value", "nested": {"object": true}})),
        ),
        example(
            "invalid: a function",
            code("const f = function() {}; [f]"),
            Err(("SERIALIZATION_ERROR", &["function"])),
        ),
        example(
            "a result that is a function",
            code("return () => 1"),
            Err(("SERIALIZATION_ERROR", &["it is a function; call it, or return plain data"])),
        ),
        example(
            "a last expression that is a function",
            code("() => 1"),
            Err(("SERIALIZATION_ERROR", &["it is a function; call it, or return plain data"])),
        ),
        example(
            "an async function as the whole code",
            code("(async function () { return 1; })"),
            Err(("SERIALIZATION_ERROR", &["it is a function"])),
        ),
        example(
            "a function inside",
            code("({ list: [{ fn: call_tool }] })"),
            Err(("SERIALIZATION_ERROR", &["it holds a function"])),
        ),
        example("a BigInt inside", code("({ list: [1n] })"), Err(("SERIALIZATION_ERROR", &["it holds a BigInt"]))),
        example("a BigInt", code("1n"), Err(("SERIALIZATION_ERROR", &["it holds a BigInt"]))),
        example("no value", code("undefined"), Ok(Value::Null)),
        example(
            "invalid: a cycle",
            code("var a = {}; a.self = a; return a;"),
            Err(("SERIALIZATION_ERROR", &["circular"])),
        ),
        example("invalid: a date", code("new Date()"), Err(("SERIALIZATION_ERROR", &["toISOString()"]))),
        example("invalid: a regular expression", code("new RegExp('x')"), Err(("SERIALIZATION_ERROR", &["RegExp"]))),
        example("thrown values", code("throw 'a text'"), Err(("RUNTIME_ERROR", &["a text"]))),
        example(
            "tools of the server itself",
            code("call_tool('codecall', 'execute', {script: '1'})"),
            Err(("RUNTIME_ERROR", &["codecall:execute"])),
        ),
    ]
}

fn check(name: &str, answer: &Value, gives: &Result<Value, (&str, &[&str])>) {
    match gives {
        // `undefined` is no value.
        Ok(_) if name == "no value" => {
            assert_eq!((&answer["ok"], answer.get("value")), (&json!(true), None), "{answer}");
            let why = answer["warnings"][0].as_str().expect("a warning");
            assert!(why.contains("the result is undefined"), "{answer}");
        }
        Ok(value) => assert_eq!(answer, &json!({"ok": true, "value": value}), "{name}"),
        Err((code, parts)) => {
            let error = &answer["error"];
            assert_eq!((&answer["ok"], &error["code"]), (&json!(false), &json!(code)), "{name}: {answer}");
            let members: Vec<&String> = error.as_object().expect("an object").keys().collect();
            assert_eq!(members, ["code", "message", "stack"], "{name}");
            let message = error["message"].as_str().expect("a text");
            assert!(parts.iter().all(|part| message.contains(part)), "{name}: {message}");
            let stack = error["stack"].as_str().expect("a text");
            assert!(
                stack.is_empty()
                    || *code == "RUNTIME_ERROR" && message.starts_with(stack.lines().next().unwrap_or("?")),
                "{name}: {stack}"
            );
        }
    }
}

fn hub(mocks: &str, config: impl FnOnce(&mut Config)) -> Arc<Hub> {
    let fixture = Fixture::load(Path::new(mocks)).expect("a fixture");
    let mut with = Config::default();
    with.code_execution.enabled = true;
    config(&mut with);
    Hub::start(isolated(with), fixture.upstreams()).expect("starts")
}

async fn ask(hub: &Hub, request: Value) -> (Value, bool) {
    let answer = meta::call(hub, "code_execution", request, None, CancellationToken::new()).await.expect("it is there");
    (answer.content.into_value(), answer.is_error)
}

#[tokio::test]
async fn every_example_through_the_meta_tool() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    let hub = hub(&mocks, |_| ());
    for Example { name, request, gives } in examples() {
        let (mut answer, is_error) = ask(&hub, request).await;
        // On the command line, the log has them.
        let logs = answer.as_object_mut().and_then(|answer| answer.remove("logs"));
        assert_eq!(logs, (name == "console").then(|| json!(["to the log of the server 1"])), "{name}");
        check(name, &answer, &gives);
        assert_eq!(is_error, gives.is_err(), "{name}");
    }
    hub.close().await;
}

/// Returns the flags that correspond to a request.
fn flags(request: &Value) -> Vec<String> {
    let mut flags =
        vec!["code".into(), "exec".into(), format!("--code={}", request["code"].as_str().unwrap_or_default())];
    if let Some(input) = request.get("input") {
        flags.push(format!("--input={input}"));
    }
    if let Some(language) = request["language"].as_str() {
        flags.push(format!("--language={language}"));
    }
    let options = &request["options"];
    for (key, flag) in [("timeout_ms", "timeout"), ("max_tool_calls", "max-tool-calls")] {
        if let Some(number) = options.get(key) {
            flags.push(format!("--{flag}={number}"));
        }
    }
    if let Some(servers) = options["allowed_servers"].as_array().filter(|servers| !servers.is_empty()) {
        let servers: Vec<&str> = servers.iter().filter_map(Value::as_str).collect();
        flags.push(format!("--allowed-servers={}", servers.join(",")));
    }
    flags
}

#[tokio::test]
async fn every_example_on_the_command_line() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    for Example { name, request, gives } in examples() {
        let mut words = flags(&request);
        words.extend(["--log-level=info".into(), "--mock-tools".into(), mocks.clone()]);
        let ran = finish(Command::new(PROGRAM).args(&words), "").await;
        assert_eq!(ran.code, Some(i32::from(gives.is_err())), "{name}: {ran:?}");
        check(name, &serde_json::from_str(&ran.stdout).expect("JSON"), &gives);
        assert!(ran.stdout.starts_with("{\n  \"ok\": "), "{name}: {}", ran.stdout);
        assert_eq!(ran.stderr.contains("to the log of the server 1"), name == "console", "{name}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn files_and_levels_on_the_command_line() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    let script = folder.file("script.js", FILE);
    let params = folder.file("params.json", r#"{"value": 21}"#);
    let double = folder.file("double.ts", "const n: number = input.value; ({ result: n * 2 })");
    let config =
        folder.file("config.json", r#"{"code_execution_max_tool_calls": 1, "code_execution_timeout_ms": 5000}"#);
    let quiet = "--log-level=error";
    let code_of = |ran: &Finished| serde_json::from_str::<Value>(&ran.stdout).expect("JSON")["error"]["code"].clone();

    let ran = codecall(&["code", "exec", "--file", &script, "--mock-tools", &mocks]).await;
    check(
        "file",
        &serde_json::from_str(&ran.stdout).expect("JSON"),
        &Ok(json!({"names": ["The Octocat", "Linus Torvalds"]})),
    );
    let ran = codecall(&["code", "exec", "--file", &double, "--input-file", &params]).await;
    check("input file", &serde_json::from_str(&ran.stdout).expect("JSON"), &Ok(json!({"result": 42})));
    let piped = finish(Command::new(PROGRAM).args(["code", "exec", "--file", "-"]), "6 * 7").await;
    check("standard input", &serde_json::from_str(&piped.stdout).expect("JSON"), &Ok(json!(42)));

    // The configuration sets a value, and a flag overrides it.
    let with = ["code", "exec", "--file", &script, "--mock-tools", &mocks, "--config", &config, quiet];
    let ran = codecall(&with).await;
    assert_eq!((ran.code, code_of(&ran)), (Some(1), json!("MAX_TOOL_CALLS_EXCEEDED")), "{ran:?}");
    let ran = codecall(&[&with[..], &["--max-tool-calls=0"]].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");

    // By default stderr is empty, and the answer has what was logged.
    let ran = codecall(&["code", "exec", "--code=console.log('heard'); 1"]).await;
    let logs = |ran: &Finished| serde_json::from_str::<Value>(&ran.stdout).expect("JSON")["logs"].clone();
    assert_eq!((ran.code, ran.stderr.as_str(), &logs(&ran)), (Some(0), "", &json!(["heard"])), "{ran:?}");
    for (level, is_logged) in [("trace", true), ("debug", true), ("info", true), ("warn", false), ("error", false)] {
        let ran = codecall(&["code", "exec", "--code=console.log('heard'); 1", "--log-level", level]).await;
        assert_eq!((ran.code, ran.stderr.contains("heard")), (Some(0), is_logged), "{level}: {ran:?}");
        assert_eq!(logs(&ran).is_null(), is_logged, "{level}: {ran:?}");
    }
}

/// Errors before a run: exit code 2, and nothing on stdout.
#[tokio::test]
async fn wrong_arguments_on_the_command_line() {
    let folder = Folder::new();
    let typo = folder.file("typo.json", r#"{"enable_code_exection": true}"#);
    let cases: &[(&[&str], &str)] = &[
        (&[], "--code"),
        (&["--code=1", "--file=a.js"], "cannot be used with"),
        (&["--file=missing.js"], "missing.js"),
        (&["--code=1", "--input={x"], "--input: not valid JSON"),
        (&["--code=1", "--input=[1]"], "--input: must be a JSON object"),
        (&["--code=1", "--input-file=missing.json"], "missing.json"),
        (&["--code=1", "--input={}", "--input-file=a.json"], "cannot be used with"),
        (&["--code=1", "--timeout=0"], "1..=600000"),
        (&["--code=1", "--timeout=600001"], "1..=600000"),
        (&["--code=1", "--max-tool-calls=-1"], "--max-tool-calls"),
        (&["--code=1", "--log-level=loud"], "trace, debug, info, warn, error"),
        (&["--code=1", "--config=missing.json"], "missing.json"),
        (&["--code=1", "--config", &typo], "unknown key 'enable_code_exection'; did you mean 'enable_code_execution'?"),
        (&["--code= "], "'code' is empty"),
    ];
    for (words, part) in cases {
        let ran = codecall(&[&["code", "exec"], *words].concat()).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?} {ran:?}");
        assert!(ran.stderr.contains(part), "{words:?} says {}", ran.stderr);
    }
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let folder = Folder::new();
    let hub = hub(&folder.file("mocks.json", TOOLS), |_| ());
    for (request, part) in [
        (json!({}), "missing field `code`"),
        (json!({"code": 1}), "'code': wrong value, expected a string"),
        (json!({"code": " "}), "'code' is empty"),
        (json!({"code": "1", "language": "python"}), "'language'"),
        (json!({"code": "1", "input": [1]}), "'input' must be an object"),
        (json!({"code": "1", "script": "1"}), "unknown key 'script'"),
        (json!({"code": "1", "options": {"timeout": 1}}), "unknown key 'timeout'; did you mean 'timeout_ms'?"),
        (json!({"code": "1", "options": {"timeout_ms": 0}}), "'options.timeout_ms' must be from 1 to 600000"),
        (json!({"code": "1", "options": {"timeout_ms": 600_001}}), "'options.timeout_ms' must be from 1 to 600000"),
        (json!({"code": "1", "options": {"max_tool_calls": -1}}), "'options.max_tool_calls' must be from 0"),
        (json!({"code": "1", "options": {"allowed_servers": ["a", 1]}}), "'options.allowed_servers[1]': wrong value"),
        (json!({"code": "1", "options": {"allowed_servers": ["a", " "]}}), "'options.allowed_servers[1]' is empty"),
    ] {
        let (answer, is_error) = ask(&hub, request).await;
        let text = answer.as_str().expect("a text");
        assert!(is_error && text.contains(part), "{part}: {text}");
    }
    hub.close().await;
}

/// No list, an empty one and an empty text allow all servers, on the command line and in requests.
#[tokio::test]
async fn an_empty_list_of_servers_allows_all() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    let hub = hub(&mocks, |_| ());
    let script = "call_tool('api', 'ping', {}).ok && call_tool('gitlab', 'get_user', {}).ok";
    for servers in [json!(null), json!([]), json!(""), json!(["api", "gitlab"])] {
        let (answer, _) = ask(&hub, json!({"code": script, "options": {"allowed_servers": servers}})).await;
        assert_eq!(answer, json!({"ok": true, "value": true}), "{servers}");
    }
    for servers in [json!(["api"]), json!("api")] {
        let (answer, _) = ask(&hub, json!({"code": script, "options": {"allowed_servers": servers}})).await;
        assert_eq!(answer["error"]["code"], "SERVER_NOT_ALLOWED", "{servers}");
    }
    hub.close().await;
    let code = format!("--code={script}");
    let run = async |flags: &[&str]| {
        let words = ["code", "exec", &code, "--mock-tools", &mocks, "--log-level=error"];
        codecall(&words.into_iter().chain(flags.iter().copied()).collect::<Vec<_>>()).await
    };
    for flags in [&[][..], &["--allowed-servers="], &["--allowed-servers", ""], &["--allowed-servers=api, gitlab"]] {
        let ran = run(flags).await;
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!((ran.code, &answer["value"]), (Some(0), &json!(true)), "{flags:?}: {ran:?}");
    }
    let one = run(&["--allowed-servers=api"]).await;
    assert!(one.code == Some(1) && one.stdout.contains("SERVER_NOT_ALLOWED"), "{one:?}");
    let wrong = run(&["--allowed-servers=api,"]).await;
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("--allowed-servers: one of the names is empty"),
        "{wrong:?}"
    );
}

/// The configuration enables it, under its own name; the policy applies to it.
#[tokio::test]
async fn over_mcp() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    let server = Server::start(&["--mock-tools", &mocks]).await;
    let listed = server.client.peer().list_all_tools().await.expect("a list");
    assert!(listed.iter().all(|tool| tool.name != "code_execution"));
    assert!(server.call("code_execution", json!({"code": "1"})).await.is_err());
    server.end().await;

    let config = folder.file("config.toml", "enable_code_execution = true\nnames = \"colon\"\n[vm]\npreset = \"locked_down\"\ndisabledBuiltins = [\"Math\"]\n");
    let server = Server::start(&["--mock-tools", &mocks, "--config", &config]).await;
    let listed = server.client.peer().list_all_tools().await.expect("a list");
    let tool = listed.iter().find(|tool| tool.name == "code_execution").expect("it is listed");
    assert_eq!(tool.input_schema["required"], json!(["code"]));
    assert_eq!(tool.input_schema["properties"]["options"]["properties"]["timeout_ms"]["maximum"], 600_000);
    let result = server
        .call("code_execution", json!({"code": "[1, 2].map((n) => call_tool('api', 'ping', {n}).result)"}))
        .await
        .expect("a result");
    assert_eq!((data(&result), result.is_error), (json!({"ok": true, "value": ["pong", "pong"]}), Some(false)));
    let result = server
        .call("code_execution", json!({"code": "let n = 0; while (n < 3) n++; Math.max(n)"}))
        .await
        .expect("a result");
    assert_eq!(result.is_error, Some(true));
    assert_eq!(data(&result)["error"]["code"], "SYNTAX_ERROR");
    server.end().await;
}

/// Ten runs at a time by default: the eleventh waits.
#[tokio::test]
async fn runs_have_permits_of_their_own() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    let hub = hub(&mocks, |config| config.code_execution.pool_size = 2);
    let loads = || hub.loads().map(|(pool, load)| (pool, load.active + load.available)).collect::<Vec<_>>();
    assert_eq!(loads(), [("execute", hub.config().pool.max_runs), ("code_execution", 2)]);
    // Runs that wait hold none of the two.
    let slow = || ask(&hub, code("call_tool('api', 'slow', {}).result"));
    let answers = futures_util::future::join_all((0..6).map(|_| slow())).await;
    assert!(answers.iter().all(|(answer, _)| answer == &json!({"ok": true, "value": "late"})), "{answers:?}");
    hub.close().await;
}

/// A waiting run holds no thread: more runs than threads can wait at the same time.
#[tokio::test]
async fn waiting_calls_hold_no_thread() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", TOOLS);
    let hub = hub(&mocks, |config| (config.code_execution.pool_size, config.pool.threads) = (50, 1));
    let began = Instant::now();
    let slow = || ask(&hub, code("[1, 2].map(() => call_tool('api', 'slow', {}).result).join()"));
    let answers = futures_util::future::join_all((0..50).map(|_| slow())).await;
    assert!(answers.iter().all(|(answer, _)| answer["value"] == "late,late"), "{answers:?}");
    assert!(began.elapsed() < Duration::from_millis(50 * 200), "{:?}", began.elapsed());
    hub.close().await;
}

#[tokio::test]
async fn a_cancelled_run_ends() {
    let folder = Folder::new();
    let hub = hub(&folder.file("mocks.json", TOOLS), |_| ());
    let cancel = CancellationToken::new();
    let asked = meta::call(&hub, "code_execution", code("call_tool('api', 'never', {})"), None, cancel.clone());
    let (answer, ()) = tokio::join!(asked, async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    let value = answer.expect("it is there").content.into_value();
    assert_eq!(value["error"]["code"], "RUNTIME_ERROR", "{value}");
    hub.close().await;
}
