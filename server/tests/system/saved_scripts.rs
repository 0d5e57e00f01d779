//! Scripts that agents save: approved by a person, and run by their names.

use crate::approvals::Person;
use crate::support::*;
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use tokio::process::Command;

/// Writes a configuration with a store. `tools` is the section of script tools.
fn config(folder: &Folder, tools: &Value) -> String {
    let config = json!({
        "stateDir": folder.path("state"),
        "store": folder.path("state/codecall.db"),
        "directCalls": {"enabled": false},
        "scriptTools": tools,
    });
    folder.file("config.json", config.to_string())
}

fn saving() -> Value {
    json!({"stored": true, "saveScripts": true})
}

/// A script that agents save.
fn counted(body: &str) -> Value {
    json!({
        "name": "count-users",
        "description": "The number of users, at most `top`",
        "script": body,
        "parameters": {"type": "object", "properties": {"top": {"type": "integer", "minimum": 1, "default": 2}}},
        "tools": ["users:list"],
    })
}

const BODY: &str = "const { users } = await callTool('users:list', {});\n\
    return users.slice(0, params.top).map((user) => user.name).length";

/// Returns the id of the approval that a call waits for.
fn id(answer: &Value) -> String {
    assert_eq!(answer["error"]["code"], "APPROVAL_REQUIRED", "{answer}");
    answer["error"]["details"]["approval"].as_str().expect("an id").to_owned()
}

async fn command(config: &str, words: &[&str]) -> Finished {
    codecall(&[words, &["--config", config]].concat()).await
}

/// A person reads the code and approves it; it runs by its name, in scripts and after a restart; a change waits again.
#[tokio::test]
async fn a_person_approves_a_script_once() {
    let folder = Folder::new();
    let config = config(&folder, &saving());
    let server = Server::start(&["--demo", "--config", &config]).await;
    let run = async |server: &Server, parameters: Value| {
        server.ask("codecall_run_script", json!({"name": "count-users", "parameters": parameters})).await
    };
    let waiting = server.ask("codecall_save_script", counted(BODY)).await;
    let first = id(&waiting);
    assert_eq!(first, id(&server.ask("codecall_save_script", counted(BODY)).await), "it waits once");
    assert_eq!(run(&server, json!({})).await["error"]["code"], "TOOL_NOT_FOUND", "nothing is stored before");

    let shown = command(&config, &["approvals", &first[..6]]).await;
    assert!(shown.stdout.contains("tool: codecall:save_script\nname: \"count-users\"\ncode:\n/*---\n"), "{shown:?}");
    assert!(shown.stdout.contains(BODY) && shown.stdout.contains("tools = [\"users:list\"]"), "{shown:?}");
    assert_eq!(command(&config, &["approvals", "ffffffffffff"]).await.code, Some(2));
    assert_eq!(command(&config, &["approve", &first]).await.code, Some(0));
    let saved = server.ask("codecall_save_script", counted(BODY)).await;
    assert_eq!(saved, json!({"status": "ok", "tool": "tools:count-users", "version": 1}));

    let all = run(&server, json!({"top": 100})).await;
    let count = all["result"]["data"].as_i64().unwrap_or_else(|| panic!("{all}"));
    assert!(count > 2, "{all}");
    assert_eq!(run(&server, json!({})).await["result"], json!({"success": true, "data": 2}), "the default counts");
    let wrong = run(&server, json!({"top": 0})).await;
    assert_eq!((&wrong["status"], &wrong["error"]["code"]), (&json!("error"), &json!("INVALID_INPUT")), "{wrong}");
    let script = "return (await callTool('tools:count-users', { top: 1 })).data";
    assert_eq!(server.execute(script).await["result"], 1);
    let found = server.ask("codecall_search", json!({"query": "number of users"})).await;
    assert_eq!(found["tools"][0]["name"], "tools:count-users", "{found}");
    server.end().await;

    let server = Server::start(&["--demo", "--config", &config]).await;
    assert_eq!(run(&server, json!({"top": 1})).await["result"]["data"], 1);
    // A change is another script, and the one before stays until it is approved.
    let changed = counted("return 'changed'");
    let second = id(&server.ask("codecall_save_script", changed.clone()).await);
    let shown = command(&config, &["approvals", &second]).await;
    assert!(shown.stdout.contains("replacesVersion: 1") && shown.stdout.contains("return 'changed'"), "{shown:?}");
    assert_eq!(run(&server, json!({"top": 1})).await["result"]["data"], 1);
    assert_eq!(command(&config, &["deny", &second, "--reason", "not this"]).await.code, Some(0));
    let denied = server.ask("codecall_save_script", changed.clone()).await;
    assert_eq!(denied["error"]["code"], "APPROVAL_DENIED", "{denied}");
    assert!(denied["error"]["message"].as_str().is_some_and(|text| text.contains("not this")), "{denied}");
    assert_eq!(run(&server, json!({"top": 1})).await["result"]["data"], 1);
    server.end().await;
    let listed = command(&config, &["tool", "list"]).await;
    assert!(listed.stdout.contains("count-users") && listed.code == Some(0), "{listed:?}");
}

/// A client that can ask its person needs no second call.
#[tokio::test]
async fn a_client_asks_its_person() {
    for (decision, expected) in [("allow", "ok"), ("deny", "error")] {
        let folder = Folder::new();
        let config = config(&folder, &saving());
        let answer = json!({"action": "accept", "content": {"decision": decision}});
        let person = Person { answer, asked: Arc::default() };
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--demo", "--config", &config]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let connecting = person.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
        let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
        let call = async |tool: &'static str, arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("an object") };
            let request = CallToolRequestParams::new(tool).with_arguments(arguments);
            let answered = tokio::time::timeout(TIMEOUT, client.call_tool(request)).await.expect("answers");
            data(&answered.expect("a result"))
        };
        let saved = call("codecall_save_script", counted(BODY)).await;
        assert_eq!(saved["status"], expected, "{saved}");
        let ran = call("codecall_run_script", json!({"name": "tools:count-users"})).await;
        assert_eq!(ran["status"], expected, "{ran}");
        let asked = person.asked.lock().expect("not poisoned").join("\n");
        assert!(asked.starts_with("Allow this call?\nTool: codecall:save_script\n"), "{asked}");
        assert!(asked.contains("slice(0, params.top)"), "the person reads the code: {asked}");
        let _ = client.cancel().await;
    }
}

/// A script that cannot be a tool is refused before anybody is asked, and nothing is there unless the configuration says so.
#[tokio::test]
async fn what_is_wrong_is_refused_before_anybody_is_asked() {
    let folder = Folder::new();
    let config = config(&folder, &saving());
    let server = Server::start(&["--demo", "--config", &config]).await;
    let with = |key: &str, value: Value| {
        let mut arguments = counted(BODY);
        arguments[key] = value;
        arguments
    };
    for (arguments, words) in [
        (with("script", "const a = 1;\nreturn eval('a')".into()), "2:"),
        (with("script", "return 1;".repeat(2_000).into()), "more than 16384"),
        (with("name", "no name".into()), "cannot be the name of a tool"),
        (with("description", " ".into()), "description"),
        (with("parameters", json!({"type": "array"})), "parameters"),
        (with("parameters", json!("{")), "'parameters'"),
        (with("tools", json!([" "])), "tools"),
        (with("secrets", json!(["KEY"])), "secrets"),
    ] {
        let result = server.call("codecall_save_script", arguments.clone()).await.expect("a result");
        let text = format!("{:?}", result.content);
        assert!(result.is_error == Some(true) && text.contains(words), "{words}: {text}");
    }
    for (name, words) in [("users:list", "no saved script"), ("count-userz", "tools:count-userz")] {
        let result = server.call("codecall_run_script", json!({"name": name})).await.expect("a result");
        assert!(result.is_error == Some(true) && format!("{result:?}").contains(words), "{result:?}");
    }
    server.end().await;
    let asked = command(&config, &["approvals", "--all", "--json"]).await;
    assert_eq!(asked.stdout, "", "nobody is asked");

    let off = crate::saved_scripts::config(&folder, &json!({"stored": true}));
    let server = Server::start(&["--demo", "--config", &off]).await;
    let listed = server.client.list_all_tools().await.expect("a list");
    assert!(listed.iter().all(|tool| !tool.name.ends_with("_script")), "{listed:?}");
    assert!(server.call("codecall_save_script", counted(BODY)).await.is_err(), "it does not exist");
    server.end().await;
    let wrong = folder.file("wrong.json", json!({"scriptTools": {"saveScripts": true}}).to_string());
    let checked = codecall(&["config", "check", &wrong]).await;
    assert!(checked.code != Some(0) && checked.stderr.contains("stored = true"), "{checked:?}");
}
