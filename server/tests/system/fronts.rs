//! How tools are offered to clients: which list each gets, and what it can call.

use crate::support::*;
use codecall::upstream::inline::Inline;
use codecall::{Config, Hub};
use serde_json::{Map, Value, json};
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A client of a given name.
struct Named {
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    id: u64,
}

impl Named {
    async fn start(name: &str, words: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .arg("serve")
            .args(words)
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut client = Self { _child: child, input, output: BufReader::new(output).lines(), id: 0 };
        let info = json!({"name": name, "version": "1"});
        client
            .ask("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}))
            .await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})).await;
        loop {
            let line = tokio::time::timeout(TIMEOUT, self.output.next_line()).await.expect("answers");
            let message: Value = serde_json::from_str(&line.expect("read").expect("a line")).expect("JSON");
            if message["id"] == self.id {
                return message;
            }
        }
    }

    /// The names and descriptions of the listed tools.
    async fn list(&mut self) -> Map<String, Value> {
        let listed = self.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        tools.iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool.clone())).collect()
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments})).await
    }
}

/// A fixture of so many tools `notes:tool0`, …
fn fixture(folder: &Folder, count: usize) -> String {
    let schema = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "The title of the note, as it is shown in the list of notes."},
            "kind": {"enum": ["todo", "idea", "journal"], "description": "The kind of the note, by which lists are filtered."},
        },
        "required": ["title"],
    });
    let tool = |at: usize| {
        json!({
            "name": format!("notes:tool{at}"),
            "description": "Does one thing with a note of a person. It gives the note as it is afterwards, with the time of its change.",
            "inputSchema": schema,
            "responses": [{"input": null, "output": {"id": at}}],
        })
    };
    folder.file("tools.json", json!({"tools": (0..count).map(tool).collect::<Vec<_>>()}).to_string())
}

async fn listed(name: &str, tools: usize, config: Value) -> Map<String, Value> {
    let folder = Folder::new();
    let (fixture, config) = (fixture(&folder, tools), folder.file("config.json", config.to_string()));
    Named::start(name, &["--config", &config, "--mock-tools", &fixture]).await.list().await
}

fn names(tools: &Map<String, Value>) -> String {
    tools.keys().map(|name| name.trim_start_matches("codecall_")).collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_client_gets_the_cheapest_list() {
    const META: &str = "search describe execute invoke";
    for (client, tools, config, expected) in [
        ("cursor", 2, json!({}), "notes_tool0 notes_tool1"),
        ("cursor", 60, json!({}), META),
        ("cursor", 0, json!({}), META),
        ("codex-mcp-client", 2, json!({}), "search notes_tool0 notes_tool1"),
        ("goose-desktop", 2, json!({}), "search notes_tool0 notes_tool1"),
        // The configuration decides.
        ("cursor", 2, json!({"front": "code"}), META),
        ("cursor", 2, json!({"front": "bridge"}), "search notes_tool0 notes_tool1"),
        ("cursor", 2, json!({"front": {"clients": {"cursor": "code"}}}), META),
        ("other", 2, json!({"front": {"clients": {"cursor": "code"}}}), "notes_tool0 notes_tool1"),
        ("codex-mcp-client", 2, json!({"front": {"default": "code"}}), META),
        // An explicit value of `mode` or `expose` wins.
        ("cursor", 2, json!({"mode": "codecall_only"}), META),
        ("cursor", 2, json!({"mode": "codecall_only", "front": "direct"}), META),
        ("codex-mcp-client", 2, json!({"mode": "codecall_only"}), META),
        ("cursor", 2, json!({"expose": "visible"}), META),
        ("cursor", 2, json!({"expose": "direct"}), "search describe execute invoke tool0 tool1"),
        // A tool that may not be in a list, or not be called without a script, keeps the others out of it.
        ("cursor", 2, json!({"directCalls": {"enabled": false}}), "search describe execute"),
        ("cursor", 2, json!({"directCalls": {"allowedTools": ["notes:tool0"]}}), META),
        ("cursor", 2, json!({"tools": {"notes:tool0": {"visibleInListTools": false}}}), META),
        (
            "cursor",
            2,
            json!({"front": "direct", "directCalls": {"allowedTools": ["notes:tool0"]}}),
            "search describe execute notes_tool0",
        ),
        (
            "cursor",
            2,
            json!({"front": "direct", "tools": {"notes:tool0": {"visibleInListTools": false}}}),
            "search describe execute notes_tool1",
        ),
        // Scripts are offered beside many tools, where they add little.
        ("cursor", 2, json!({"front": "direct"}), "notes_tool0 notes_tool1"),
        ("cursor", 2, json!({"front": "code", "tools": {"listed": ["execute", "search"]}}), "search execute"),
    ] {
        let list = listed(client, tools, config.clone()).await;
        assert_eq!(names(&list), expected, "{client} {tools} {config}");
    }
    let list = listed("cursor", 60, json!({"front": "direct"})).await;
    assert!(names(&list).starts_with("search describe execute notes_tool0 "), "{}", names(&list));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_of_execute_has_signatures() {
    let description =
        |list: &Map<String, Value>| list["codecall_execute"]["description"].as_str().expect("a text").to_owned();
    let list = listed("other", 60, json!({})).await;
    let text = description(&list);
    assert!(
        text.contains("\nTools (all 60):\nnotes:\ntool0({title: string, kind?: \"todo\"|\"idea\"|\"journal\"})"),
        "{text}"
    );
    assert_eq!(text.matches("\ntool").count(), 60, "{text}");
    assert_eq!(description(&listed("other", 60, json!({})).await), text, "another process gives the same");
    for client in ["other", "claude-code", "claude-ai"] {
        let text = description(&listed(client, 60, json!({"tools": {"indexTokens": 0}})).await);
        assert!(!text.contains("\ntool") && text.ends_with("Find tools with codecall_search."), "{client}: {text}");
    }
    let text = description(&listed("other", 60, json!({"tools": {"indexTokens": 0}})).await);
    assert!(!text.contains("\ntool") && text.ends_with("Find tools with codecall_search."), "{text}");
    let text = description(&listed("other", 60, json!({"tools": {"indexTokens": 400}})).await);
    assert!(text.contains(" of 60; codecall_search finds the others):\nnotes ("), "{text}");
    // It cuts descriptions, and gets whole lines.
    let text = description(&listed("claude-code", 60, json!({})).await);
    assert!(text.chars().count() <= 2_048 && text.chars().count() > 1_600, "{}", text.chars().count());
    assert!(text.ends_with("\"journal\"})") && text.contains(" of 60; codecall_search finds the others):"), "{text}");
    // It brings in tools as its model needs them.
    let lean = description(&listed("claude-ai", 60, json!({})).await);
    assert!(lean.chars().count() < text.chars().count(), "{lean}");
    for tool in listed("claude-code", 60, json!({})).await.values() {
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_can_be_called() {
    let folder = Folder::new();
    let fixture = fixture(&folder, 2);
    let mut direct = Named::start("cursor", &["--mock-tools", &fixture]).await;
    let called = direct.call("notes_tool1", json!({"title": "x"})).await;
    assert_eq!(called["result"]["structuredContent"], json!({"id": 1}), "{called}");
    let refused = direct.call("notes_tool1", json!({})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert_eq!(refused["result"]["_meta"]["codecall/error"]["code"], "INVALID_INPUT", "{refused}");
    let ran = direct.call("codecall_execute", json!({"script": "return (await notes.tool1({ title: 'x' })).id"})).await;
    assert_eq!(ran["result"]["content"][0]["text"], "{\"status\":\"ok\",\"result\":1}", "{ran}");

    // The list has the meta-tools alone, and so have calls.
    let config = folder.file("code.json", json!({"front": "code"}).to_string());
    let mut code = Named::start("cursor", &["--config", &config, "--mock-tools", &fixture]).await;
    assert_eq!(code.call("notes_tool1", json!({"title": "x"})).await["error"]["code"], -32602);
    let once = code.call("codecall_execute", json!({"tool": "notes:tool1", "input": {"title": "x"}})).await;
    assert_eq!(once["result"]["content"][0]["text"], "{\"status\":\"ok\",\"result\":{\"id\":1}}", "{once}");
    let once = code.call("codecall_execute", json!({"tool": "notes:tool1", "input": {}})).await;
    let text = once["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains(r#""signature":"callTool(\"notes:tool1\", input: {"#), "{text}");
    for both in [
        json!({"tool": "notes:tool1", "script": "return 1"}),
        json!({"input": {}}),
        json!({"tool": "notes:tool1", "handle": "x", "input": {}}),
    ] {
        let refused = code.call("codecall_execute", both.clone()).await;
        assert_eq!(refused["result"]["isError"], true, "{both}: {refused}");
    }

    // Without direct calls, one call needs a script.
    let config = folder.file("off.json", json!({"directCalls": {"enabled": false}}).to_string());
    let mut off = Named::start("cursor", &["--config", &config, "--mock-tools", &fixture]).await;
    let refused = off.call("codecall_execute", json!({"tool": "notes:tool1", "input": {"title": "x"}})).await;
    assert!(refused.to_string().contains("ACCESS_DENIED"), "{refused}");
    assert_eq!(off.call("notes_tool1", json!({"title": "x"})).await["error"]["code"], -32602);

    // A host with a code mode of its own finds names that are in its list, and works on data.
    let mut bridge = Named::start("codex-mcp-client", &["--mock-tools", &fixture]).await;
    let found = bridge.call("codecall_search", json!({"query": "note of a person"})).await;
    let text = found["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("notes_tool0") && !text.contains("notes:\n"), "{text}");
    let called = bridge.call("notes_tool1", json!({"title": "x"})).await;
    assert_eq!(called["result"]["structuredContent"], json!({"id": 1}), "{called}");
}

/// The status says what each client has got.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_has_the_fronts() {
    let echo = Inline::echo(&[("users", "get", "Get a user", json!({"type": "object"}))]);
    let hub = Hub::start(Config::default(), vec![Arc::new(echo)]).expect("starts");
    for client in [Some("cursor"), Some("codex-mcp-client"), None] {
        codecall::front::offer(&hub, client).await;
    }
    let fronts = serde_json::to_value(hub.status().fronts).expect("JSON");
    assert_eq!(fronts, json!({"codex-mcp-client": ["bridge"], "cursor": ["direct"], "unnamed": ["direct"]}));
    hub.close().await;
}
