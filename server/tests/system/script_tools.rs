//! Script tools: called by MCP clients and the command line, changed while the server runs, and broken in every way.

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use serde_json::{Value, json};
use std::time::Duration;

const EXECUTE: &str = "async function execute(params, config)";

/// A tool with a manifest of these lines.
fn tool(manifest: &str, body: &str) -> String {
    format!("/*---\ndescription = \"A tool of a test\"\n{manifest}\n---*/\n{EXECUTE} {{ {body} }}\n")
}

/// Writes a configuration whose tools are in `tools/` of the folder. `more` are further keys.
fn config(folder: &Folder, more: &str) -> String {
    let (state, tools) = (folder.path("state"), folder.path("tools"));
    std::fs::create_dir_all(&tools).expect("a folder");
    folder.file("codecall.toml", format!("stateDir = {state:?}\nscriptTools = {tools:?}\n{more}"))
}

/// Calls a tool from a script. Returns its result, or the error that the script catches.
async fn call(server: &Server, tool: &str, params: Value) -> Value {
    let script = format!(
        "try {{ return await callTool('{tool}', {params}) }} \
         catch (error) {{ return {{ thrown: error.message, code: error.code }} }}"
    );
    let answer = server.execute(&script).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["result"].clone()
}

#[tokio::test]
async fn the_examples_answer_a_client() {
    let folder = Folder::new();
    let config = folder.file(
        "codecall.toml",
        format!(
            "stateDir = {:?}\nstore = {:?}\nscriptTools = {:?}\nexpose = \"direct\"\n",
            folder.path("state"),
            folder.path("state/codecall.db"),
            root().join("examples/tools")
        ),
    );
    let mut set = tokio::process::Command::new(PROGRAM);
    set.args(["secret", "set", "SIGNING_KEY", "--config", &config]).env_remove("CODECALL_STORE");
    let set = finish(&mut set, "correct-horse-battery").await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let server = Server::start(&["--demo", "--config", &config]).await;
    let signature = "daedaab4bc60735db5736bc1ea525646e06ae9cbcc5c0cf301bcf579b9f43600";
    for (name, params, expected) in [
        (
            "weather",
            json!({"city": "Paris"}),
            json!({"success": true, "data": {
            "city": "Paris", "temperature": 18.5, "units": "celsius", "conditions": "partly cloudy"}}),
        ),
        (
            "weather",
            json!({"city": "oslo", "units": "fahrenheit"}),
            json!({"success": true, "data": {
            "city": "Oslo", "temperature": 46.4, "units": "fahrenheit", "conditions": "rain"}}),
        ),
        (
            "weather",
            json!({"city": "Atlantis"}),
            json!({
            "success": false, "error": "No station in Atlantis. There are stations in Paris, Oslo, Lagos"}),
        ),
        (
            "sign",
            json!({"text": "pay 10"}),
            json!({"success": true, "data": {
            "text": "pay 10", "algorithm": "SHA-256", "signature": signature}}),
        ),
        (
            "orders-report",
            json!({"from": "2026-06-01", "top": 1, "format": {"currency": "EUR ", "digits": 0}}),
            json!({"success": true, "data": {
            "from": "2026-06-01", "to": "today", "orders": 0, "total": "", "largest": []}}),
        ),
        (
            "orders-report",
            json!({"from": "2026-05-01", "to": "2026-04-01"}),
            json!({
            "success": false, "error": "'to' (2026-04-01) is before 'from' (2026-05-01)"}),
        ),
        (
            "customer",
            json!({"id": "usr_999"}),
            json!({
            "success": false, "error": "There is no customer usr_999; users:list has all of them"}),
        ),
        ("customer", json!({"id": "usr_003"}), json!({"success": true, "data": {"name": "", "openOrders": 0}})),
    ] {
        let result = server.call(&format!("tools_{name}"), params).await.expect("a result");
        let answer: Value = serde_json::from_str(&text(&result)).expect("JSON");
        assert_eq!(result.is_error, Some(expected["success"] == false), "{answer}");
        match expected["data"]["orders"].is_null() && expected["data"]["name"] != "" {
            true => assert_eq!(answer, expected, "{name}"),
            // These depend on the data of the demo shop.
            false => {
                let data = &answer["data"];
                let keys = |value: &Value| value.as_object().map(|members| members.keys().cloned().collect::<Vec<_>>());
                assert_eq!(keys(data), keys(&expected["data"]), "{answer}");
                assert!(
                    data["total"].is_null() || data["total"].as_str().is_some_and(|total| total.starts_with("EUR ")),
                    "{answer}"
                );
                assert!(
                    data["largest"].is_null() || data["largest"].as_array().is_some_and(|all| all.len() == 1),
                    "{answer}"
                );
            }
        }
    }
    let missing = server.call("tools_weather", json!({"units": "kelvin"})).await.expect("a result");
    let refused = text(&missing);
    assert!(missing.is_error == Some(true) && refused.contains("\"city\" is a required property"), "{refused}");
    let found = server.ask("codecall_search", json!({"query": "weather of a city"})).await;
    assert_eq!((&found["tools"][0]["name"], &found["tools"][0]["source"]), (&json!("tools:weather"), &json!("script")));
    let described =
        server.ask("codecall_describe", json!({"toolNames": ["tools:orders-report"], "format": "json_schema"})).await;
    let schema = &described["tools"][0]["inputSchema"];
    assert_eq!(schema["required"], json!(["from"]), "{described}");
    assert_eq!(schema["properties"]["without"]["default"], json!(["cancelled"]));
    server.end().await;

    let run = |words: Vec<&'static str>| {
        let config = config.clone();
        async move { codecall(&[words, vec!["--config", &config]].concat()).await }
    };
    let runs = run(vec!["history", "--json", "--tool", "tools:sign"]).await.json_lines();
    assert_eq!((&runs[0]["kind"], &runs[0]["title"]), (&json!("tool"), &json!("tools:sign")), "{runs:?}");
    let id = runs[0]["id"].as_str().expect("an id").to_owned();
    let shown = codecall(&["history", "show", &id, "--json", "--config", &config]).await;
    assert!(shown.stdout.contains("[secret]") && !shown.stdout.contains("horse"), "{shown:?}");
    let tested = run(vec!["tool", "test"]).await;
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert_eq!(
        tested.stdout,
        "customer: 3 of 3 examples\norders-report: 2 of 2 examples\nsign: 2 of 2 examples\nweather: 3 of 3 examples\n"
    );
    let ran = run(vec!["tool", "run", "sign", "{\"text\": \"pay 10\"}"]).await;
    assert_eq!((ran.code, &ran.json()["data"]["signature"]), (Some(0), &json!(signature)));
}

/// Each class of errors, as the tool's caller sees it: the result of the tool, and what a script catches.
#[tokio::test]
async fn every_class_of_errors_has_its_words() {
    let folder = Folder::new();
    let config = config(&folder, "expose = \"direct\"\n");
    let cases = [
        ("returned", "", "return { success: false, error: 'No such city' }", "No such city", ""),
        ("thrown", "", "throw new Error('It broke')", "It broke", ""),
        (
            "typed",
            "",
            "const user = undefined; return user.name",
            "TypeError: Cannot read properties of undefined (reading 'name')",
            "",
        ),
        ("reference", "", "return missing + 1", "ReferenceError: missing is not defined", ""),
        ("silent", "", "return { success: false }", "The tool has failed without a message", ""),
        (
            "slow",
            "timeoutMs = 1000",
            "await sleep(60_000)",
            "Execution timeout: Tool exceeded maximum execution time of 1 seconds",
            "TIMEOUT",
        ),
        ("busy", "[limits]\nmaxSteps = 10000", "let n = 0; while (true) n += 1", "CPU limit exceeded: ", "STEP_LIMIT"),
        (
            "big",
            "[limits]\nmaxMemoryBytes = 1000000",
            "const all = []; for (let i = 0; i < 99999; i++) all.push('x'.repeat(1000) + i); return all.length",
            "Memory limit exceeded: ",
            "MEMORY_LIMIT",
        ),
        ("forbidden", "", "return await callTool('users:list', {})", "", "ACCESS_DENIED"),
        (
            "unknown",
            "tools = [\"*\"]",
            "return await callTool('nobody:home', {})",
            "Tool 'nobody:home' not found",
            "TOOL_NOT_FOUND",
        ),
        (
            "wrong",
            "[result]\ntype = \"string\"",
            "return 3",
            "Invalid result: the result must fit the schema: 3 is not of type \"string\"",
            "INVALID_OUTPUT",
        ),
        ("circular", "", "const a = {}; a.a = a; return a", "", "SERIALIZATION_ERROR"),
    ];
    for (name, manifest, body, ..) in cases {
        folder.file(&format!("tools/{name}.js"), tool(manifest, body));
    }
    folder.file("tools/plain.js", tool("", "console.log('seen'); return [1, 2]"));
    folder.file("tools/nothing.js", tool("", ""));
    let server = Server::start(&["--demo", "--config", &config]).await;
    for (name, _, _, message, code) in cases {
        let result = server.call(&format!("tools_{name}"), json!({})).await.expect("a result");
        let answer: Value = serde_json::from_str(&text(&result)).expect("JSON");
        assert_eq!((result.is_error, &answer["success"]), (Some(true), &json!(false)), "{name}: {answer}");
        assert!(answer["error"].as_str().expect("a text").starts_with(message), "{name}: {answer}");
        assert_eq!(answer["code"].as_str().unwrap_or_default(), code, "{name}: {answer}");
        let caught = call(&server, &format!("tools:{name}"), json!({})).await;
        assert_eq!(caught["thrown"], answer["error"], "{name}: {caught}");
        let code = if code.is_empty() { "TOOL_EXECUTION_ERROR" } else { code };
        assert_eq!(caught["code"], code, "{name}: {caught}");
    }
    assert_eq!(call(&server, "tools:plain", json!({})).await, json!({"success": true, "data": [1, 2]}));
    assert_eq!(call(&server, "tools:nothing", json!({})).await, json!({"success": true, "data": null}));
    server.end().await;
}

#[tokio::test]
async fn a_tool_calls_tools_of_its_list_only() {
    let folder = Folder::new();
    // One permit is enough for all nested runs.
    let config = config(&folder, "[pool]\nmaxRuns = 1\n");
    folder.file("tools/double.js", tool("[parameters.properties.n]\ntype = \"integer\"", "return params.n * 2"));
    folder.file(
        "tools/outer.js",
        tool(
            "tools = [\"tools:double\"]",
            "const { data } = await callTool('tools:double', { n: 21 }); params.n = data; return params",
        ),
    );
    folder.file(
        "tools/loop.js",
        tool("tools = [\"tools:loop\"]", "const inner = await callTool('tools:loop', {}); return inner.data + 1"),
    );
    let server = Server::start(&["--config", &config]).await;
    assert_eq!(call(&server, "tools:outer", json!({})).await, json!({"success": true, "data": {"n": 42}}));
    let looped = call(&server, "tools:loop", json!({})).await;
    assert_eq!(looped["thrown"], "Tools that are scripts call each other more than 8 deep");
    let wrong = call(&server, "tools:double", json!({"n": "x"})).await;
    assert_eq!(wrong["code"], "INVALID_INPUT", "{wrong}");
    server.end().await;
}

#[tokio::test]
async fn changes_are_used_and_broken_files_leave_the_last_version() {
    let folder = Folder::new();
    let config = config(&folder, "expose = \"direct\"\n");
    folder.file("tools/steady.js", tool("", "return 'steady'"));
    folder.file("tools/moving.js", tool("", "await sleep(1500); return 'first'"));
    let server = Server::start(&["--config", &config]).await;
    assert_eq!(call(&server, "tools:steady", json!({})).await["data"], "steady");
    // A run keeps the text that it has begun with.
    let first = async { call(&server, "tools:moving", json!({})).await };
    let change = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        folder.file("tools/moving.js", tool("", "return 'second'"));
    };
    assert_eq!(tokio::join!(first, change).0["data"], "first");
    let data = |tool: &'static str, expected: &'static str| {
        let server = &server;
        async move {
            for _ in 0..100 {
                if call(server, tool, json!({})).await["data"] == expected {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("{tool} does not give {expected}");
        }
    };
    data("tools:moving", "second").await;
    let changes = || server.recorded.changes.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(changes(), 0, "no list has changed");
    folder.file("tools/moving.js", tool("", "return ("));
    folder.file("tools/new.js", tool("", "return 'new'"));
    folder.file("tools/large.js", vec![b' '; 10 << 20]);
    folder.file("tools/twice.js", tool("", "return 1"));
    folder.file("tools/twice.ts", tool("", "return 1"));
    folder.file("tools/schema.js", tool("[parameters.properties.a]\ntype = \"text\"", "return 1"));
    folder.file("tools/key.json", "{\"description\": \"x\", \"secret\": []}");
    folder.file("tools/key.js", "async function execute() {}");
    data("tools:new", "new").await;
    until("the list", || changes() > 0).await;
    data("tools:moving", "second").await;
    std::fs::remove_file(folder.path("tools/steady.js")).expect("it is there");
    let before = changes();
    until("the list", || changes() > before).await;
    assert_eq!(call(&server, "tools:steady", json!({})).await["code"], "TOOL_NOT_FOUND");
    let stderr = server.end().await;
    for expected in [
        "moving.js:5:",
        "large.js: it has more than 1048576 bytes, which is the limit; put data elsewhere, and read it by a tool",
        "twice.js: there are two files of this name: the other is twice.ts; rename or delete one of them",
        "schema.js: parameters: it is no JSON schema",
        "key.json:1:",
        "unknown key 'secret'; did you mean 'secrets'?",
    ] {
        assert_eq!(stderr.matches(expected).count(), 1, "{expected}: {stderr}");
    }
}

/// Files that cannot be used: what they are, and the code, line and message of the first problem.
fn broken_files() -> [(&'static str, String, &'static str, Option<u64>, &'static str); 7] {
    let schema = tool("[parameters.properties.a]\ntype = \"text\"", "return 1");
    [
        ("syntax.js", tool("", "return (;"), "SYNTAX_ERROR", Some(5), "expected `)`"),
        ("typed.ts", tool("", "const a: = 1"), "SYNTAX_ERROR", Some(5), ""),
        ("refused.js", tool("", "return require('fs')"), "VALIDATION_ERROR", Some(5), "'require'"),
        (
            "missing.js",
            "/*---\ndescription = 'x'\n---*/\nfunction run() {}".into(),
            "VALIDATION_ERROR",
            None,
            "execute",
        ),
        ("key.js", tool("tag = []", "return 1"), "VALIDATION_ERROR", Some(3), "did you mean 'tags'?"),
        ("none.js", format!("{EXECUTE} {{}}"), "VALIDATION_ERROR", Some(1), "there is no manifest"),
        ("schema.js", schema, "VALIDATION_ERROR", None, "it is no JSON schema"),
    ]
}

#[tokio::test]
async fn a_broken_tool_says_why_wherever_it_is_named() {
    let folder = Folder::new();
    let config = config(&folder, "");
    folder.file("tools/good.js", tool("", "return 'good'"));
    for (file, text, ..) in broken_files() {
        folder.file(&format!("tools/{file}"), text);
    }
    let server = Server::start(&["--config", &config]).await;
    assert_eq!(call(&server, "tools:good", json!({})).await["data"], "good");
    let found = server.ask("codecall_search", json!({"query": "good"})).await;
    let warnings = found["warnings"].to_string();
    assert_eq!((&found["tools"][0]["name"], &found["totalIndexed"]), (&json!("tools:good"), &json!(1)), "{found}");
    for (file, _, code, line, message) in broken_files() {
        let name = file.split('.').next().expect("a name");
        for spelling in [format!("tools:{name}"), format!("tools.{name}"), format!("tools_{name}"), name.to_owned()] {
            let answer = server.ask("codecall_invoke", json!({"tool": spelling, "input": {}})).await;
            let error = &answer["error"];
            let said = error["message"].as_str().expect("a message");
            assert_eq!((&answer["status"], &error["code"]), (&json!("error"), &json!(code)), "{answer}");
            assert!(said.contains(message) && said.contains(file), "{said}");
            let first = &error["details"]["diagnostics"][0];
            assert_eq!((&first["code"], first["line"].as_u64()), (&json!(code), line), "{answer}");
            assert_eq!(first["column"].is_u64(), line.is_some(), "{answer}");
            assert_eq!(first["sourceLine"].is_string(), line.is_some(), "{answer}");
            assert_eq!(error["details"]["file"], file);
        }
        let described = server.ask("codecall_describe", json!({"toolNames": [format!("tools:{name}")]})).await;
        assert!(described["warnings"][0].as_str().is_some_and(|why| why.contains(file)), "{described}");
        let caught = call(&server, &format!("tools:{name}"), json!({})).await;
        assert_eq!(caught["code"], code, "{caught}");
        assert!(warnings.contains(&format!("Tool 'tools:{name}' cannot be used: {file}")), "{warnings}");
    }
    assert!(!warnings.contains(&folder.path("")), "no host path: {warnings}");
    // The last good version stays in use, and the status says what is wrong with it.
    folder.file("tools/good.js", tool("", "return ("));
    let reported = async || {
        let status = codecall(&["status", "--json", "--config", &config]).await;
        let status: Value = serde_json::from_str(&status.stdout).expect("JSON");
        status["servers"].as_array().expect("a list").iter().find(|one| one["app"] == "tools").expect("the app").clone()
    };
    let status = reported().await;
    assert_eq!(status["state"], "up", "{status}");
    for (file, _, _, _, message) in broken_files() {
        let broken = status["broken"].as_array().expect("a list").iter().find(|one| one["file"] == file);
        assert!(broken.expect(file)["error"].to_string().contains(message), "{status}");
    }
    let table = codecall(&["status", "--config", &config]).await;
    assert!(table.stdout.contains("syntax.js:5:"), "{table:?}");
    server.end().await;
}

#[tokio::test]
async fn a_folder_that_is_none_is_said_and_the_server_goes_on() {
    let folder = Folder::new();
    let file = folder.file("file", "x");
    for (place, expected) in [(file, "it is a file"), (folder.path("nowhere"), "there is no such folder")] {
        let config = folder.file("codecall.toml", format!("scriptTools = {place:?}\n"));
        let server = Server::start(&["--demo", "--config", &config]).await;
        assert_eq!(server.execute("return (await users.list({ limit: 1 })).users.length").await["result"], 1);
        let stderr = server.end().await;
        assert!(stderr.matches(expected).count() == 1, "{stderr}");
        let checked = codecall(&["tool", "check", "--config", &config]).await;
        assert!(checked.code == Some(2) && checked.stderr.contains(expected), "{checked:?}");
    }
}

#[tokio::test]
async fn the_command_line_writes_checks_and_runs_tools() {
    let folder = Folder::new();
    let config = config(&folder, "");
    let run = |words: &[&str]| {
        let words: Vec<String> = words.iter().chain(&["--config", &config]).map(|word| (*word).to_owned()).collect();
        async move { codecall(&words.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    for (name, flag) in [("hello", None), ("typed", Some("--typescript"))] {
        let made = run(&["tool", "new", name].into_iter().chain(flag).collect::<Vec<_>>()).await;
        assert_eq!(made.code, Some(0), "{made:?}");
        let ran = run(&["tool", "run", name, "{\"name\": \"Ada\", \"loud\": true}"]).await;
        assert_eq!((ran.code, ran.json()), (Some(0), json!({"success": true, "data": {"greeting": "HELLO, ADA"}})));
        let again = run(&["tool", "new", name]).await;
        assert!(again.code == Some(2) && again.stderr.contains("it is there already"), "{again:?}");
    }
    let tested = run(&["tool", "test"]).await;
    assert_eq!((tested.code, tested.stdout.as_str()), (Some(0), "hello: 1 of 1 examples\ntyped: 1 of 1 examples\n"));
    let refused = run(&["tool", "run", "hello", "{}"]).await;
    assert_eq!((refused.code, &refused.json()["code"]), (Some(1), &json!("INVALID_INPUT")), "{refused:?}");
    let nobody = run(&["tool", "run", "nobody"]).await;
    assert!(nobody.code == Some(2) && nobody.stderr.contains("there is no script tool 'nobody'"), "{nobody:?}");
    folder.file("tools/broken.js", "/*---\ndescription = \"x\"\n---*/\nfunction run() { require('fs') }");
    let checked = run(&["tool", "check"]).await;
    assert!(checked.code == Some(1) && checked.stderr.contains("broken.js:4:18: "), "{checked:?}");
    folder.file("tools/broken.js", "/*---\ndescription = \"x\"\n---*/\nfunction run() {}");
    let checked = run(&["tool", "check", "--json"]).await;
    let problems = checked.json_lines().into_iter().find(|line| line["ok"] == false).expect("a broken tool");
    assert_eq!(problems["problems"][0]["message"], "missing execute function", "{problems}");
    let listed = run(&["tool", "list"]).await;
    assert!(listed.stdout.starts_with("broken\tbroken\tmissing execute function\nhello\tok\tSay hello"), "{listed:?}");
    let shown = run(&["tool", "show", "typed"]).await.json();
    assert_eq!(shown["inputSchema"]["properties"]["loud"]["default"], false, "{shown}");
    let unfit = folder.file("tools/unfit.js", tool("[[examples]]\nparams = {}\ndata = 2", "return 1"));
    let failed = run(&["tool", "test", "unfit"]).await;
    assert_eq!(
        (failed.code, failed.stdout.as_str()),
        (Some(1), "unfit: 0 of 1 examples\n  example 1: data is 1, instead of 2\n")
    );
    assert_eq!(codecall(&["tool", "check", &unfit]).await.code, Some(0));
    let nowhere = codecall(&["tool", "list"]).await;
    assert!(nowhere.code == Some(2) && nowhere.stderr.contains("scriptTools.folder"), "{nowhere:?}");
}

/// Asks a server over HTTP. Returns the status and the answer.
async fn http(server: &HttpProcess, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
    let mut request = http_client().request(method, format!("{}{path}", server.url)).bearer_auth(token);
    if !body.is_null() {
        request = request.body(body.to_string());
    }
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a text");
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} {text}")))
}

#[tokio::test]
async fn tools_are_stored_over_http_and_have_versions() {
    const TOKEN: &str = "a-token-of-the-operator";
    let folder = Folder::new();
    let (store, tools) = (folder.path("codecall.db"), folder.path("tools"));
    folder.file("tools/filed.js", tool("", "return 'of the folder'"));
    let config = folder.file(
        "codecall.toml",
        format!(
            "store = {store:?}\nscriptTools = {{ folder = {tools:?}, stored = true }}\n[http]\ntoken = \"{TOKEN}\"\n\
             [[http.tokens]]\nname = \"guest\"\ntoken = \"a-token-of-a-guest\"\n"
        ),
    );
    let server = HttpProcess::start(&["--config", &config]).await;
    let ask = |method: &'static str, path: &'static str, body: Value| http(&server, TOKEN, method, path, body);
    let evaluate = || async {
        let run = codecall(&["tool", "run", "greet", "--config", &config]).await;
        (run.code, run.stdout)
    };
    let path = "/v1/tools/scripts/greet";
    let (status, refused) = http(&server, "a-token-of-a-guest", "PUT", path, json!({"code": ""})).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("OPERATOR_ONLY")));
    let (status, invalid) =
        ask("PUT", path, json!({"code": "/*---\ndescription = \"x\"\n---*/\nfunction run() { eval('1') }"})).await;
    assert_eq!((status, &invalid["problems"][0]["line"]), (400, &json!(4)), "{invalid}");
    let (_, checked) = ask("POST", "/v1/tools/scripts/greet/check", json!({"code": tool("", "return (")})).await;
    assert_eq!((&checked["ok"], &checked["problems"][0]["line"]), (&json!(false), &json!(5)), "{checked}");
    let (status, taken) = ask("PUT", "/v1/tools/scripts/Filed", json!({"code": tool("", "return 1")})).await;
    assert!(
        status == 400 && taken["error"]["message"].as_str().is_some_and(|text| text.contains("filed.js")),
        "{taken}"
    );
    for (version, word) in [(1, "hello"), (2, "good day")] {
        let code = tool("", &format!("return '{word}'"));
        let (status, stored) = ask("PUT", path, json!({"code": code, "author": "ada"})).await;
        assert_eq!((status, stored), (200, json!({"name": "greet", "version": version})));
    }
    assert_eq!(evaluate().await, (Some(0), "{\"success\":true,\"data\":\"good day\"}\n".into()));
    let (_, listed) = ask("GET", "/v1/tools/scripts", Value::Null).await;
    let rows: Vec<Value> = listed["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| json!([tool["name"], tool["origin"], tool["version"]]))
        .collect();
    assert_eq!(rows, [json!(["filed", "folder", null]), json!(["greet", "store", 2])]);
    let (_, versions) = ask("GET", "/v1/tools/scripts/greet/versions", Value::Null).await;
    let rows: Vec<Value> = versions["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|version| json!([version["version"], version["author"]]))
        .collect();
    assert_eq!(rows, [json!([2, "ada"]), json!([1, "ada"])]);
    let (_, restored) = ask("POST", "/v1/tools/scripts/greet/restore", json!({"version": 1})).await;
    assert_eq!(restored["version"], 3);
    let (_, shown) = ask("GET", path, Value::Null).await;
    assert!(shown["code"].as_str().is_some_and(|code| code.contains("'hello'")), "{shown}");
    let (status, _) = ask("POST", "/v1/tools/scripts/greet/restore", json!({"version": 9})).await;
    assert_eq!(status, 404);
    ask("POST", "/v1/tools/scripts/greet/disable", Value::Null).await;
    let (code, _) = evaluate().await;
    assert_eq!(code, Some(2));
    let diff = codecall(&["tool", "diff", "greet", "1", "2", "--config", &config]).await;
    assert!(
        diff.code == Some(1) && diff.stdout.contains("-async function execute(params, config) { return 'hello' }"),
        "{diff:?}"
    );
    // What a command changes, the server uses within a second.
    assert_eq!(codecall(&["tool", "enable", "greet", "--config", &config]).await.code, Some(0));
    for attempt in 0.. {
        let (_, shown) = ask("GET", path, Value::Null).await;
        if shown["enabled"] == true {
            break;
        }
        assert!(attempt < 100, "{shown}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // The same name in the folder: both are named, and the version in use stays.
    folder.file("tools/greet.js", tool("", "return 'of a file'"));
    let run = codecall(&["tool", "check", "--config", &config]).await;
    assert!(run.code == Some(1) && run.stderr.contains("greet.js and the stored tool greet, version 3"), "{run:?}");
    std::fs::remove_file(folder.path("tools/greet.js")).expect("it is there");
    let (status, _) = ask("DELETE", path, Value::Null).await;
    assert_eq!(status, 200);
    let (status, _) = ask("DELETE", path, Value::Null).await;
    assert_eq!(status, 404);
    let listed = codecall(&["tool", "versions", "greet", "--config", &config]).await;
    assert_eq!(listed.stdout.lines().count(), 3, "{listed:?}");
    assert_eq!(codecall(&["tool", "restore", "greet", "2", "--config", &config]).await.code, Some(0));
    assert_eq!(evaluate().await.1, "{\"success\":true,\"data\":\"good day\"}\n");
    server.end().await;
    // Without a token, nobody is an operator.
    let open = folder.file("open.toml", format!("store = {store:?}\nscriptTools = {{ stored = true }}\n"));
    let server = HttpProcess::start(&["--config", &open]).await;
    let (status, refused) = http(&server, "x", "GET", "/v1/tools/scripts", Value::Null).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("OPERATOR_ONLY")));
    server.end().await;
}
