//! The command line: what it prints where, and its exit codes.

use crate::support::*;
use serde_json::{Value, json};
use tokio::process::Command;

#[tokio::test]
async fn one_script() {
    let folder = Folder::new();
    let good = folder.file("good.js", "console.warn('hm');\nreturn { sum: codecallContext.n + 1 };");
    let ran = codecall(&["run", &good, "--context", r#"{"n": 1}"#]).await;
    let expected = "{\"status\":\"ok\",\"result\":{\"sum\":2},\"logs\":[\"[warn] hm\"]}\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), expected, ""));
    let context = folder.file("context.json", r#"{"n": 41}"#);
    let ran = codecall(&["run", &good, "--context", &format!("@{context}")]).await;
    assert_eq!(ran.json()["result"], json!({"sum": 42}));
    let bad = folder.file("bad.js", "return nothing.here");
    let ran = codecall(&["run", &bad]).await;
    assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!("runtime_error")), "{ran:?}");
    let piped = finish(Command::new(PROGRAM).args(["run", "-"]), "return 'piped'").await;
    assert_eq!(piped.json(), json!({"status": "ok", "result": "piped"}));
    let typed = folder.file("typed.ts", "interface A { n: number }\nconst a: A = { n: 3 };\nreturn a.n as number;");
    assert_eq!(codecall(&["run", &typed]).await.json()["result"], 3);
}

/// A dry run lists the calls, and does not change the shop.
#[tokio::test]
async fn a_dry_run_calls_nothing() {
    let folder = Folder::new();
    let script = folder.file(
        "a.js",
        "const { users: all } = await users.list({});
         for (const user of all) await users.get({ id: user.id });
         await callTool('users:list', { status: 5 }, { throwOnError: false });
         return all.length",
    );
    let ran = codecall(&["run", &script, "--demo", "--dry-run"]).await;
    let answer = ran.json();
    assert_eq!((ran.code, &answer["status"], &answer["dryRun"]), (Some(0), &json!("ok"), &json!(true)), "{ran:?}");
    let calls = answer["calls"].as_array().expect("calls");
    assert_eq!(calls[0], json!({"toolName": "users:list", "input": {}, "fits": true, "result": "example"}), "{answer}");
    let last = calls.last().expect("a call");
    assert_eq!((&last["fits"], &last["refused"]["code"]), (&json!(false), &json!("INVALID_INPUT")), "{answer}");
    assert!(calls.len() > 2 && answer["result"].as_u64().is_some_and(|n| n > 0), "{answer}");
    let long = folder.file("long.js", "return 'x'.repeat(100)");
    let ran = codecall(&["run", &long, "--max-result-bytes", "50"]).await;
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(1), &json!("RESULT_TOO_LARGE")), "{ran:?}");
}

#[tokio::test]
async fn several_scripts() {
    let folder = Folder::new();
    let one = folder.file("scripts/1.js", "return 1");
    let two = folder.file("scripts/sub/2.js", "throw new TypeError('two')");
    folder.file("scripts/notes.md", "no script");
    for words in [vec!["run", &one, &two], vec!["run", "--batch", &folder.path("scripts")]] {
        let ran = codecall(&words).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let lines = ran.json_lines();
        assert_eq!(lines[0], json!({"file": one, "status": "ok", "result": 1}));
        assert_eq!((&lines[1]["file"], &lines[1]["error"]["name"]), (&json!(two), &json!("TypeError")));
        assert!(ran.stdout.lines().all(|line| line.starts_with("{\"file\":")), "{ran:?}");
    }
    let ran = codecall(&["run", "--batch", &folder.path("scripts/sub"), &one]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// Errors before a run: exit code 2, nothing on stdout, and help on stderr.
#[tokio::test]
async fn bad_input() {
    let folder = Folder::new();
    let ok = folder.file("ok.js", "return 1");
    let latin = folder.file("latin.js", b"return '\xe9'");
    let typo = folder.file("typo.toml", "[vm]\ntimeoutMS = 3\n");
    let cut = folder.file("cut.json", "{\"topK\":\n  3,");
    let server = folder.file("server.json", r#"{"mcpServers": {"a": {"comand": "x"}}}"#);
    let mocks = folder.file("mocks.json", "{\"tools\": [\n  {\"name\": \"a:b\", \"response\": []}\n]}");
    let missing = folder.path("missing.js");
    let cases: &[(&[&str], &[&str])] = &[
        (&["run", &ok, "--config", &typo], &["vm: unknown key 'timeoutMS'; did you mean 'timeoutMs'?"]),
        (&["serve", "--config", &typo], &["vm: unknown key 'timeoutMS'; did you mean 'timeoutMs'?"]),
        (&["tools", "--config", &cut], &["cut.json", "line 2, column 5", "  2 | "]),
        (&["config", "check", &server], &["server.json: mcpServers.a: unknown key 'comand'; did you mean 'command'?"]),
        (
            &["run", &ok, "--mock-tools", &mocks],
            &["mocks.json:2:", "unknown key 'response'; did you mean 'responses'?"],
        ),
        (&["run", &latin], &["latin.js: not UTF-8 at byte 8", "save the script as UTF-8"]),
        (&["check", &latin], &["latin.js: not UTF-8 at byte 8"]),
        (&["run", &ok, "--context", "[1]"], &["--context: must be a JSON object", "@FILE"]),
        (&["run", &ok, "--context", "{x"], &["--context: not valid JSON"]),
        (&["run", &missing], &["missing.js: No such file"]),
        (&["run", &ok, &missing], &["missing.js: No such file"]),
        (&["run", &ok, "--tiemout", "3"], &["'--tiemout'", "'--timeout'"]),
        (&["run", &ok, "--timeout", "soon"], &["'soon'", "--timeout"]),
        (&["run", &ok, "--preset", "strict"], &["'strict'", "locked_down"]),
        (&["history", "--status", "failled"], &["'failled'", "a similar value exists: 'failed'"]),
        (&["history", "--kind", "exekute"], &["'exekute'", "a similar value exists: 'execute'"]),
        (&["invoke", "users:get", "[1]", "--demo"], &["must be a JSON object"]),
        (&["run"], &["<FILE>"]),
        (&["fly"], &["'fly'"]),
    ];
    for (words, parts) in cases {
        let ran = codecall(words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?} {ran:?}");
        assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{words:?} says {}", ran.stderr);
    }
}

const MOCKS: &str = r#"{"tools": [
    {"name": "users:get", "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, "responses": [
        {"input": {"id": 1}, "output": {"id": 1, "name": "Ada"}},
        {"input": {"id": 2}, "output": {"id": 2, "name": "Bob"}},
        {"input": {"id": 3}, "error": {"message": "gone", "code": "GONE"}}
    ]},
    {"name": "jobs:status", "responses": [{"input": null, "output": "busy", "times": 2}, {"input": null, "output": "done"}]}
]}"#;

#[tokio::test]
async fn mocked_tools() {
    let folder = Folder::new();
    let mocks = folder.file("mocks.json", MOCKS);
    let script = folder.file(
        "a.js",
        "const both = await Promise.all([1, 2].map((id) => callTool('users:get', { id })));
         let caught;
         try {
           await callTool('users:get', { id: 3 });
         } catch (error) {
           caught = `${error.code}: ${error.message} (${error.toolName})`;
         }
         const value = await callTool('users:get', { id: 4 }, { throwOnError: false });
         const seen = [];
         for (let i = 0; i < 3; i++) seen.push(await jobs.status({}));
         return { names: both.map(({ name }) => name), caught, code: value.error.code, success: value.success, seen };",
    );
    let expected = json!({
        "names": ["Ada", "Bob"], "caught": "GONE: gone (users:get)", "code": "NO_MOCK_RESPONSE", "success": false,
        "seen": ["busy", "busy", "done"],
    });
    // Each script starts with all responses of the fixture.
    let ran = codecall(&["run", &script, &script, "--mock-tools", &mocks]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in ran.json_lines() {
        assert_eq!(line["result"], expected, "{line}");
    }
    let uncaught = folder.file("b.js", "return await users.get({ id: 3 })");
    let ran = codecall(&["run", &uncaught, "--mock-tools", &mocks]).await;
    assert_eq!(
        (ran.code, &ran.json()["status"], &ran.json()["error"]["code"]),
        (Some(1), &json!("tool_error"), &json!("GONE"))
    );
}

#[tokio::test]
async fn check() {
    let folder = Folder::new();
    let good = folder.file("good.js", "return 1");
    let bad = folder.file("bad.js", "const n = 1;\nreturn eval('n');\n");
    let checked = codecall(&["check", &good]).await;
    assert_eq!((checked.code, checked.stdout.as_str(), checked.stderr.as_str()), (Some(0), "", ""));
    let checked = codecall(&["check", &good, &bad]).await;
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(1), ""));
    let lines: Vec<&str> = checked.stderr.lines().collect();
    assert_eq!(lines[0], "error[VALIDATION_ERROR]: Identifier 'eval' is not allowed in AgentScript");
    assert_eq!(lines[1], format!("  --> {bad}:2:8"));
    assert_eq!(lines[3..5], ["2 | return eval('n');", "  |        ^^^^"]);
    let checked = codecall(&["check", "--json", &good, &bad]).await;
    let lines = checked.json_lines();
    assert_eq!(lines[0], json!({"file": good, "ok": true, "diagnostics": []}));
    let first = &lines[1]["diagnostics"][0];
    assert_eq!((&lines[1]["ok"], &first["kind"]), (&json!(false), &json!("IllegalBuiltinAccess")));
    assert_eq!(first["location"], json!({"line": 2, "column": 8}));
    let loops = folder.file("loops.js", "while (true) {}");
    assert_eq!(codecall(&["check", &loops]).await.code, Some(0));
    assert_eq!(codecall(&["check", &loops, "--preset", "locked_down"]).await.code, Some(1));
}

#[tokio::test]
async fn limits_as_flags() {
    let folder = Folder::new();
    let script = folder.file("a.js", "let n = 0; while (true) n++;");
    for (words, status, code) in [
        (vec!["--preset", "locked_down"], "illegal_access", "LOOP_NOT_ALLOWED"),
        (vec!["--preset", "balanced", "--max-iterations", "1000"], "runtime_error", "ITERATION_LIMIT"),
        (vec!["--preset", "experimental", "--max-steps", "1000"], "runtime_error", "STEP_LIMIT"),
        (vec!["--preset", "experimental", "--max-iterations", "9999999999", "--timeout", "50"], "timeout", "TIMEOUT"),
    ] {
        let ran = codecall(&[vec!["run", script.as_str()], words.clone()].concat()).await;
        let json = ran.json();
        assert_eq!(
            (ran.code, &json["status"], &json["error"]["code"]),
            (Some(1), &json!(status), &json!(code)),
            "{words:?}"
        );
    }
}

#[tokio::test]
async fn meta_tools_from_a_shell() {
    let listed = codecall(&["tools", "--demo"]).await;
    assert!(listed.stdout.lines().count() == 23 && listed.stdout.starts_with("billing:charge "), "{listed:?}");
    let found = codecall(&["search", "refund", "an", "invoice", "--demo", "--top-k", "1"]).await;
    assert_eq!(found.json()["tools"][0]["name"], "billing:refund");
    let described = codecall(&["describe", "users:get", "--demo", "--format", "typescript"]).await;
    assert_eq!(described.json()["tools"][0]["name"], "users:get");
    let invoked = codecall(&["invoke", "users:get", r#"{"id": "usr_001"}"#, "--demo"]).await;
    assert_eq!((invoked.code, &invoked.json()["result"]["id"]), (Some(0), &json!("usr_001")));
    let failed = codecall(&["invoke", "users:get", r#"{"id": "x"}"#, "--demo"]).await;
    assert_eq!((failed.code, &failed.json()["error"]["code"]), (Some(1), &json!("NOT_FOUND")));
}

#[tokio::test]
async fn configurations() {
    let folder = Folder::new();
    let good = folder.file("good.toml", "topK = 5\n[isolation]\nmode = \"process\"");
    let checked = codecall(&["config", "check", &good]).await;
    assert_eq!((checked.code, checked.stdout), (Some(0), format!("{good}: valid\n")));
    let bad = folder.file("bad.toml", "topK = 99");
    let checked = codecall(&["config", "check", &bad]).await;
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(2), ""), "{checked:?}");
    assert!(checked.stderr.contains("bad.toml: topK: must be from 1 to 50"), "{checked:?}");

    let explained = codecall(&["config", "explain", "pool.maxRuns"]).await;
    let expected = "pool.maxRuns\n  type: whole number, 1 to 100000\n  default: 32\n  \
                    environment: CODECALL_POOL_MAX_RUNS\n  Scripts that run at the same time, beside scripts in wait for tools, timers or people. Clients share them.\n";
    assert_eq!((explained.code, explained.stdout.as_str()), (Some(0), expected));
    let section = codecall(&["config", "explain", "mcpServers.github"]).await;
    for part in ["mcpServers.NAME.command\n", "mcpServers.NAME.url\n", "other names: serverUrl, httpUrl\n"] {
        assert!(section.stdout.contains(part), "{section:?}");
    }
    let all = codecall(&["config", "explain"]).await;
    assert!(all.stdout.starts_with("$schema\n") && all.stdout.contains("\naudit\n"), "{all:?}");
    let unknown = codecall(&["config", "explain", "pool.maxRun"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""), "{unknown:?}");
    assert!(unknown.stderr.contains("pool: unknown key 'maxRun'; did you mean 'maxRuns'?"), "{unknown:?}");

    let schema = codecall(&["config", "schema"]).await;
    let committed = std::fs::read_to_string(root().join("docs/codecall.schema.json")).expect("the schema");
    assert_eq!((schema.code, schema.stdout), (Some(0), committed));
}

/// The examples give what they promise, again and again.
#[tokio::test]
async fn examples() {
    // The folders have clients, not scripts.
    let entries =
        std::fs::read_dir(root().join("examples")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let scripts = entries.filter(|path| path.extension().is_some_and(|extension| extension == "js"));
    let mut words = vec!["run".to_owned(), "--demo".to_owned()];
    words.extend(scripts.map(|path| path.display().to_string()));
    let ran = codecall(&words.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let results = ran.json_lines();
    assert!(ran.code == Some(0) && results.len() == 5, "{ran:?}");
    let result_of = |name: &str| -> &Value {
        let own = |line: &&Value| line["file"].as_str().is_some_and(|file| file.ends_with(name));
        &results.iter().find(own).expect("an example")["result"]
    };
    assert_eq!(result_of("cancel-stale-orders.js")["stale"], 5);
    assert_eq!(
        (&result_of("overdue-invoices.js")["overdue"], &result_of("overdue-invoices.js")["dueCents"]),
        (&json!(19), &json!(1_327_551))
    );
    assert_eq!(result_of("parallel.js")["settled"], json!(["Basic Keyboard", "NOT_FOUND"]));
    assert_eq!(result_of("restock.js")["scarce"], 11);
    assert_eq!(result_of("top-customers.js")["orders"], 237);
}

/// On a terminal the result is indented. `script` gives the program a terminal.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn indented_on_a_terminal() {
    let folder = Folder::new();
    let file = folder.file("a.js", "return { a: [1] }");
    let command = format!("'{PROGRAM}' run '{file}'");
    let words = ["-qec", &command, "/dev/null"];
    let ran = finish(Command::new("script").args(words), "").await;
    let text = ran.stdout.replace("\r\n", "\n");
    let expected = "{\n  \"status\": \"ok\",\n  \"result\": {\n    \"a\": [\n      1\n    ]\n  }\n}\n";
    assert!(text.ends_with(expected), "{text:?}");
}

/// The demo alone: no server of the configuration starts, whether the configuration is found or named.
#[tokio::test]
async fn the_demo_starts_no_other_server() {
    let folder = Folder::new();
    let log = folder.path("started");
    let server = json!({"command": "sh", "args": ["-c", format!("echo x >> '{log}'; exec sleep 100")]});
    let config = json!({"mcpServers": {"users2": server}, "vm": {"preset": "experimental"}});
    let config = folder.file("config.json", config.to_string());
    let script = folder.file("a.js", "const n = (await users.list({})).users.length; return n > 0 && typeof users2");
    let words: [&[&str]; 4] = [
        &["run", "--demo", &script],
        &["tools", "--demo"],
        &["search", "--demo", "list users"],
        &["invoke", "--demo", "users:list", "{}"],
    ];
    for words in words {
        let mut found = Command::new(PROGRAM);
        let ran = finish(found.args(words).env("CODECALL_CONFIG", &config), "").await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        let ran = codecall(&[words, &["--config", &config]].concat()).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        assert!(!ran.stdout.contains("users2"), "{ran:?}");
    }
    assert!(!std::path::Path::new(&log).exists(), "a server was started");
}
