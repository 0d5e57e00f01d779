//! Definitions: what a server says of its tools, resources, templates and prompts is what clients are told.

use crate::support::*;
use crate::third_party::node_package;
use crate::upstream_server::UpstreamServer;
use serde_json::{Map, Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

/// The lists of MCP.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

/// Asks a process that speaks MCP on stdio. Returns the result of each request.
async fn ask(mut command: Command, requests: &[(&str, Value)]) -> Vec<Value> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let client =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let mut results = Vec::new();
    for (id, (method, params)) in [("initialize", client)].iter().chain(requests).enumerate() {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        input.write_all(format!("{request}\n").as_bytes()).await.expect("is read");
        loop {
            let line =
                tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("a line").expect("text").expect("a line");
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            if message["id"] == json!(id) && message.get("method").is_none() {
                results.push(message["result"].take());
                break;
            }
        }
        if id == 0 {
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            input.write_all(format!("{initialized}\n").as_bytes()).await.expect("is read");
        }
    }
    results.remove(0);
    results
}

/// Lists all that a configuration exposes directly.
async fn listed(config: &str, more: &[(&str, Value)]) -> Vec<Value> {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--config", config]).env_remove("RUST_LOG");
    // It waits until the server has answered.
    let search = ("tools/call", json!({"name": "codecall_search", "arguments": {"query": "anything"}}));
    let mut requests = vec![search];
    requests.extend(LISTS.iter().map(|(method, _)| (*method, json!({}))));
    requests.extend(more.iter().cloned());
    ask(command, &requests).await.split_off(1)
}

/// What a client gets: `execution` is missing, as CodeCall waits for tasks itself.
fn members(entry: &Value) -> Map<String, Value> {
    let mut members = entry.as_object().cloned().unwrap_or_default();
    members.remove("execution");
    members
}

/// Compares all members of all entries, in any order. Returns one line for each kind of member: how many are the same.
fn compare(said: &[Value], listed: &[Value]) -> Vec<String> {
    let mut table = Vec::new();
    for ((_, key), (said, listed)) in LISTS.iter().zip(said.iter().zip(listed)) {
        let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
        for entry in said[key].as_array().into_iter().flatten() {
            let same = |other: &&Value| {
                ["uri", "uriTemplate", "name"]
                    .into_iter()
                    .find_map(|id| entry.get(id).map(|own| other.get(id) == Some(own)))
                    == Some(true)
            };
            let other = listed[key].as_array().into_iter().flatten().find(same);
            let other = other.unwrap_or_else(|| panic!("{entry} is not listed: {listed}"));
            assert_eq!(members(other), members(entry), "{key}");
            for member in members(entry).keys() {
                *counts.entry(format!("{key}.{member}")).or_default() += 1;
            }
        }
        table.extend(counts.into_iter().map(|(member, count)| format!("{member} {count}")));
    }
    table
}

#[tokio::test]
async fn definitions_are_kept() {
    let icons = json!([{"src": "https://h.example/a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}, {"src": "data:image/png;base64,AAAA"}]);
    let meta = json!({"ui": {"resourceUri": "ui://box/view", "visibility": ["app", "model"]}, "example.com/level": [1, {"a": null}]});
    let about = json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"});
    let open = json!({
        "name": "open", "title": "Open a box", "description": "Open the box",
        "inputSchema": {"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}},
        "outputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
        "annotations": {"title": "Open", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
        "execution": {"taskSupport": "optional"}, "icons": icons, "_meta": meta,
    });
    let upstream = UpstreamServer::start(vec![open.clone()]).await;
    let said = vec![
        json!({"tools": [open]}),
        json!({"resources": [{
            "uri": "box://1", "name": "one", "title": "One", "description": "d", "mimeType": "text/plain", "size": 3,
            "annotations": about, "icons": icons, "_meta": meta,
        }]}),
        json!({"resourceTemplates": [{
            "uriTemplate": "box://{n}", "name": "n", "title": "N", "description": "d", "mimeType": "text/plain",
            "annotations": about, "icons": icons, "_meta": meta,
        }]}),
        json!({"prompts": [{
            "name": "ask", "title": "Ask", "description": "d", "icons": icons, "_meta": meta,
            "arguments": [{"name": "a", "title": "A", "description": "d", "required": true}],
        }]}),
    ];
    let result = json!({
        "content": [{"type": "text", "text": "1", "_meta": {"x": 1}}], "structuredContent": {"a": 1}, "_meta": {"example.com/cost": 7},
    });
    upstream.answer("tools/call", result.clone());
    for ((method, _), list) in LISTS.iter().zip(&said).skip(1) {
        upstream.answer(method, list.clone());
    }
    let folder = Folder::new();
    let config = json!({"mcpServers": {"box": {"url": upstream.url(), "lifecycle": "initialize"}}, "expose": "direct"});
    let config = folder.file("config.json", config.to_string());
    let describe =
        json!({"name": "codecall_describe", "arguments": {"toolNames": ["box:open"], "format": "json_schema"}});
    let call = json!({"name": "open", "arguments": {"tenant": "t"}});
    let lists = listed(&config, &[("tools/call", describe), ("tools/call", call)]).await;
    let table = compare(&said, &lists);
    assert_eq!(
        table,
        [
            "tools._meta 1",
            "tools.annotations 1",
            "tools.description 1",
            "tools.icons 1",
            "tools.inputSchema 1",
            "tools.name 1",
            "tools.outputSchema 1",
            "tools.title 1",
            "resources._meta 1",
            "resources.annotations 1",
            "resources.description 1",
            "resources.icons 1",
            "resources.mimeType 1",
            "resources.name 1",
            "resources.size 1",
            "resources.title 1",
            "resources.uri 1",
            "resourceTemplates._meta 1",
            "resourceTemplates.annotations 1",
            "resourceTemplates.description 1",
            "resourceTemplates.icons 1",
            "resourceTemplates.mimeType 1",
            "resourceTemplates.name 1",
            "resourceTemplates.title 1",
            "resourceTemplates.uriTemplate 1",
            "prompts._meta 1",
            "prompts.arguments 1",
            "prompts.description 1",
            "prompts.icons 1",
            "prompts.name 1",
            "prompts.title 1",
        ]
    );
    let described = lists[4]["content"][0]["text"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let described = described.unwrap_or_else(|| panic!("{}", lists[4]))["tools"][0].take();
    for member in ["title", "description", "inputSchema", "outputSchema", "annotations", "execution", "_meta"] {
        assert_eq!(described[member], said[0]["tools"][0][member], "{member}");
    }
    // An image would be thousands of tokens.
    assert_eq!(described["icons"], json!([icons[0]]));
    for member in ["content", "structuredContent", "_meta"] {
        assert_eq!(lists[5][member], result[member], "{member}: {}", lists[5]);
    }
}

#[tokio::test]
async fn hostile_definitions_are_bounded() {
    let upstream = UpstreamServer::start(vec![json!({
        "name": "open", "title": "Open\u{202e}", "inputSchema": {"type": "object"},
        "icons": [{"src": "javascript:alert(1)"}, {"src": "https://h.example/a.png"}],
        "_meta": {"note": "a<!-- send it -->b", "codecall/oddities": {"named": ["x"]}, "codecall/taskSupport": "no"},
    })])
    .await;
    upstream.answer("prompts/list", json!({"prompts": [{
        "name": "ask", "description": "a<!-- b -->", "icons": [{"src": "data:text/html,x"}], "_meta": {"x": "x".repeat(20_000)},
    }]}));
    let folder = Folder::new();
    let config = json!({"mcpServers": {"box": {"url": upstream.url(), "lifecycle": "initialize"}}, "expose": "direct"});
    let config = folder.file("config.json", config.to_string());
    let lists = listed(&config, &[]).await;
    let tools = lists[0]["tools"].as_array().expect("tools");
    let open = tools.iter().find(|tool| tool["name"] == "open").expect("listed");
    assert_eq!(open["title"], "Open");
    assert_eq!(
        (&open["icons"], &open["_meta"]),
        (&json!([{"src": "https://h.example/a.png"}]), &json!({"note": "ab"}))
    );
    assert_eq!(lists[3]["prompts"], json!([{"name": "ask", "description": "a"}]));
}

#[tokio::test]
async fn a_result_may_be_any_json() {
    let schema = json!({"type": "array", "items": {"type": "number"}});
    let upstream =
        UpstreamServer::start(vec![json!({"name": "open", "inputSchema": {"type": "object"}, "outputSchema": schema})])
            .await;
    upstream
        .answer("tools/call", json!({"content": [{"type": "text", "text": "[1, 2]"}], "structuredContent": [1, 2]}));
    let folder = Folder::new();
    let config = json!({"mcpServers": {"box": {"url": upstream.url(), "lifecycle": "initialize"}}, "expose": "direct"});
    let config = folder.file("config.json", config.to_string());
    for (lifecycle, is_listed) in [(modern(), true), (rmcp::service::ClientLifecycleMode::Initialize, false)] {
        let server = Server::start_as(&["--config", &config], lifecycle).await;
        server.search_when_started(json!({"query": "open"})).await;
        let tools = server.client.peer().list_all_tools().await.expect("a list");
        let open = tools.iter().find(|tool| tool.name == "open").expect("listed");
        // Clients before 2026-07-28 refuse a list with such a schema.
        assert_eq!(
            open.output_schema.as_ref().map(|schema| Value::Object((**schema).clone())),
            is_listed.then(|| schema.clone())
        );
        let result = server.call("open", json!({})).await.expect("a result");
        // Others have it as text.
        assert_eq!(result.structured_content, is_listed.then(|| json!([1, 2])));
        assert_eq!(text(&result), "[1, 2]");
        assert_eq!(
            server.execute("return (await callTool('box:open', {})).map((n) => n + 1)").await["result"],
            json!([2, 3])
        );
        server.end().await;
    }
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn definitions_of_a_real_server_are_kept() {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let folder = Folder::new();
    let config =
        json!({"mcpServers": {"everything": {"command": "node", "args": [everything, "stdio"]}}, "expose": "direct"});
    let config = folder.file("config.json", config.to_string());
    let mut command = Command::new("node");
    command.arg(&everything).arg("stdio");
    let requests: Vec<(&str, Value)> = LISTS.iter().map(|(method, _)| (*method, json!({}))).collect();
    let said = ask(command, &requests).await;
    let table = compare(&said, &listed(&config, &[]).await);
    for row in [
        "tools.title 1",
        "tools.annotations",
        "tools.outputSchema",
        "resources.mimeType",
        "resourceTemplates.uriTemplate",
        "prompts.arguments",
    ] {
        assert!(table.iter().any(|line| line.starts_with(row)), "{row}: {table:?}");
    }
}
