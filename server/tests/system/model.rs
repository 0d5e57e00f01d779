//! Texts that models read and write: the sizes of answers, descriptions of results, errors that can be mended, names.

use crate::support::*;
use base64::Engine as _;
use serde_json::{Value, json};
use tokio::process::Command;

/// A configuration with the library under a name that scripts cannot use for anything else, and another one.
fn library(folder: &Folder) -> String {
    let script = format!("{}/tests/system/model.sh", env!("CARGO_MANIFEST_DIR"));
    let root = folder.path("root");
    let server = json!({"command": "sh", "args": [script, root]});
    let config = json!({
        "mcpServers": {"fetch": server, "library": server}, "store": folder.path("codecall.db"),
    });
    folder.file("config.json", config.to_string())
}

/// The record in an exported row of the store.
fn inflated(line: &str) -> String {
    let row: Value = serde_json::from_str(line).expect("a row");
    let record = row["row"][2]["base64"].as_str().expect("bytes");
    let record = base64::prelude::BASE64_STANDARD.decode(record).expect("base64");
    let text = miniz_oxide::inflate::decompress_to_vec_zlib(&record).expect("compressed");
    String::from_utf8(text).expect("UTF-8")
}

/// The shapes of results are learned from them, and kept for the next process.
#[tokio::test]
async fn the_shapes_of_results_are_learned() {
    let folder = Folder::new();
    let config = library(&folder);
    let signature = async |tool: &str| {
        let described = codecall(&["describe", tool, "--config", &config]).await;
        described.json()["tools"][0]["signature"].as_str().expect("a signature").to_owned()
    };
    assert!(signature("library:rows").await.ends_with("Promise<unknown>"));
    for (tool, input) in [("rows", "{}"), ("rows", r#"{"more":1}"#), ("repr", "{}"), ("csv", "{}")] {
        let called = codecall(&["invoke", &format!("library:{tool}"), input, "--config", &config]).await;
        assert_eq!(called.code, Some(0), "{called:?}");
    }
    for (tool, expected) in [
        ("rows", "Promise<{ id: number; title?: string }[]>; // seen in 2 results; the tool does not promise it"),
        (
            "repr",
            "string /* Python repr of { id: number; lent: null; name: string }[]; parseText(text).data reads it */>; // seen",
        ),
        ("csv", "Promise<string /* CSV with the columns id, title; parseText(text).data reads it */>; // seen in 1"),
        ("fetch", "Promise<unknown>"),
    ] {
        let signature = signature(&format!("library:{tool}")).await;
        assert!(signature.contains(expected), "{signature}");
    }
    let described = codecall(&["describe", "library:rows", "--format", "json_schema", "--config", &config]).await;
    let seen = json!({"type": "{ id: number; title?: string }[]", "results": 2});
    assert_eq!(described.json()["tools"][0]["seenResult"], seen, "{described:?}");
    let exported = codecall(&["store", "export", "-", "--config", &config]).await.stdout;
    let kept: String = exported.lines().filter(|line| line.contains("known_shapes")).map(inflated).collect();
    assert!(kept.contains("title") && !kept.contains("Private") && !kept.contains("Secret"), "{kept}");
}

/// A long result comes in pieces from a server, and whole from a command, which nobody can ask again.
#[tokio::test]
async fn long_results_come_in_pieces() {
    let folder = Folder::new();
    let config = library(&folder);
    let server = Server::start(&["--config", &config]).await;
    for (tool, arguments) in [
        ("codecall_invoke", json!({"tool": "library:big", "input": {}})),
        ("codecall_execute", json!({"script": "return await library.big({})"})),
    ] {
        let mut answer = server.ask(tool, arguments).await;
        let handle = answer["truncated"]["handle"].clone();
        let mut pieces = Vec::new();
        loop {
            assert!(answer.to_string().len() < 17_000, "{tool}");
            let text = answer["result"].as_str().expect("a text").to_owned();
            pieces.push(text.split_once("\n… [cut: ").map_or(text.clone(), |(piece, _)| piece.to_owned()));
            let next = answer["truncated"]["next"].clone();
            if next.is_null() {
                break;
            }
            answer = server.ask("codecall_execute", json!({"handle": handle, "offset": next})).await;
        }
        let lengths: Vec<usize> = pieces.iter().map(String::len).collect();
        assert_eq!(lengths, [[16_000; 7].as_slice(), &[8_000]].concat(), "{tool}");
    }
    server.end().await;
    let called = codecall(&["invoke", "library:big", "--config", &config]).await;
    assert_eq!(called.json()["result"].as_str().map(str::len), Some(120_000));
    for (key, value) in [("vm", json!({"maxInlineBytes": 200_000})), ("resultStore", json!({"enabled": false}))] {
        let mut whole: Value = serde_json::from_str(&std::fs::read_to_string(&config).expect("read")).expect("JSON");
        whole[key] = value;
        let whole = folder.file("whole.json", whole.to_string());
        let server = Server::start(&["--config", &whole]).await;
        let answer = server.ask("codecall_invoke", json!({"tool": "library:big"})).await;
        assert_eq!(answer["result"].as_str().map(str::len), Some(120_000), "{key}");
        server.end().await;
    }
}

/// The part of a path that the caller needs stays, and the rest does not.
#[tokio::test]
async fn paths_that_the_caller_needs_stay_in_errors() {
    let folder = Folder::new();
    let config = library(&folder);
    let input = json!({"path": "books/a.txt"}).to_string();
    let failed = codecall(&["invoke", "library:read", &input, "--config", &config]).await;
    let expected = format!("ENOENT: /srv/other/x, not in {}/shelf: 'books/a.txt'", folder.path("root"));
    let expected = expected.replace("/srv/other/x", "[path]");
    assert_eq!((failed.code, &failed.json()["error"]["message"]), (Some(1), &json!(expected)), "{failed:?}");
}

/// Servers with names that scripts cannot use otherwise, misspelled servers, and tools in every spelling.
#[tokio::test]
async fn names_in_scripts() {
    let folder = Folder::new();
    let config = library(&folder);
    let server = Server::start(&["--config", &config]).await;
    let script = "return [await fetch.fetch({}), await callTool('fetch:fetch'), await callTool('fetch.fetch', {})]";
    let called = server.execute(script).await;
    assert_eq!(called["result"], json!(["a page", "a page", "a page"]), "{called}");
    let alone = server.execute("return await fetch('https://example.com')").await;
    let message = alone["error"]["message"].as_str().expect("a message");
    assert!(message.contains("the tools of the server 'fetch' are called as `await fetch.tool(input)`"), "{alone}");
    let misspelt = server.execute("return await libary.rows({})").await;
    assert_eq!(misspelt["error"]["hint"], "did you mean `library`?", "{misspelt}");
    for name in ["library:rwos", "library.rwos", "library_rwos", "libary:rows", "libary_rows"] {
        let refused = server.ask("codecall_invoke", json!({"tool": name})).await;
        let message = refused["error"]["message"].as_str().expect("a message");
        assert!(message.contains("Did you mean 'library:rows'"), "{message}");
        let described = server.ask("codecall_describe", json!({"toolNames": [name]})).await;
        assert!(described["warnings"].to_string().contains("did you mean 'library:rows'"), "{described}");
    }
    server.end().await;
}

/// An app is listed page by page.
#[tokio::test]
async fn an_app_is_listed() {
    let folder = Folder::new();
    let config = library(&folder);
    // The tools are known from an earlier start.
    assert_eq!(codecall(&["tools", "--config", &config]).await.code, Some(0));
    let server = Server::start(&["--config", &config]).await;
    let mut names = Vec::new();
    let mut request = json!({"filter": {"appIds": ["library"]}, "topK": 4, "query": ""});
    loop {
        let page = server.ask("codecall_search", request.clone()).await;
        assert_eq!(page["total"], 6, "{page}");
        names.extend(page["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()));
        if page["next"].is_null() {
            break;
        }
        request["offset"] = page["next"].clone();
    }
    let expected = ["big", "csv", "fetch", "read", "repr", "rows"].map(|name| format!("library:{name}"));
    assert_eq!(names, expected);
    let info = server.client.peer().peer_info().expect("a server");
    // Its few tools are listed as they are, which needs no words.
    assert_eq!(info.instructions, None);
    server.end().await;
}

/// A command that could not do what it was asked does not end with 0.
#[tokio::test]
async fn exit_codes() {
    let folder = Folder::new();
    let config = library(&folder);
    let dead =
        json!({"mcpServers": {"dead": {"command": "sh", "args": ["-c", "exit 3"]}}, "serverCache": {"enabled": false}});
    let dead = folder.file("dead.json", dead.to_string());
    let unknown = folder.file("unknown.js", "return await callTool('library:nope', {})");
    let none = folder.file("none.js", "return await callTool('dead:nope', {})");
    for (code, words, config) in [
        (1, &["invoke", "library:nope"][..], &config),
        (1, &["describe", "library:nope"], &config),
        (1, &["run", &unknown], &config),
        (1, &["search", "zzqqxx"], &config),
        (1, &["search", "--app", "nope"], &config),
        (0, &["search", "--app", "library", "--offset", "5"], &config),
        (1, &["search", "--app", "library", "--offset", "6"], &config),
        (2, &["invoke", "library:rows", "{bad"], &config),
        (2, &["invoke", "library:rows", "[]"], &config),
        (2, &["run", "/nonexistent.js"], &config),
        (2, &["run", &unknown, "--context", "{"], &config),
        (2, &["search"], &config),
        (2, &["tools"], &"/nonexistent.json".to_owned()),
        (1, &["tools"], &dead),
        (1, &["search", "anything"], &dead),
        (1, &["describe", "dead:nope"], &dead),
        (1, &["invoke", "dead:nope"], &dead),
        (1, &["run", &none], &dead),
        (1, &["status"], &dead),
    ] {
        let ran = codecall(&[words, &["--config", config]].concat()).await;
        assert_eq!(ran.code, Some(code), "{words:?}: {ran:?}");
    }
}

/// A mistake of a client is answered, and no warning. The log has no words of the library of MCP.
#[tokio::test]
async fn mistakes_of_clients_are_no_warnings() {
    let folder = Folder::new();
    let config = library(&folder);
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    });
    let call = |id: u32, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let messages = [
        hello.to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "no JSON".into(),
        "[1, 2]".into(),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/cal"}).to_string(),
        call(3, json!({"name": 5})).to_string(),
        call(4, json!({"name": "codecall_serach"})).to_string(),
        call(5, json!({"name": "codecall_search", "arguments": {"qeury": "x"}})).to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/nothing"}).to_string(),
    ];
    let input = format!("{}\n", messages.join("\n"));
    let ran = finish(Command::new(PROGRAM).args(["-vv", "serve", "--config", &config]), &input).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        !ran.stderr.contains(" WARN ") && !ran.stderr.contains(" ERROR ") && !ran.stderr.contains("rmcp"),
        "{ran:?}"
    );
    let answers = ran.json_lines();
    let message =
        |id: u32| answers.iter().find(|answer| answer["id"] == id).expect("an answer")["error"]["message"].clone();
    assert_eq!(message(2), "There is no method 'tools/cal'; did you mean 'tools/call'?");
}

/// Why a server cannot be reached is said in our words.
#[tokio::test]
async fn errors_of_connections_are_in_plain_words() {
    let folder = Folder::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let config = json!({
        "mcpServers": {
            "closed": {"url": format!("http://{closed}/mcp")},
            "wrong": {"command": "sh", "args": ["-c", "while read line; do echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"x\":1}}'; done"]},
        },
        "serverCache": {"enabled": false},
    });
    let config = folder.file("config.json", config.to_string());
    let listed = codecall(&["-vv", "invoke", "closed:x", "--config", &config]).await;
    let message = listed.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("'closed' does not work: nothing accepts connections at its address"), "{message}");
    assert!(!listed.stderr.contains("rmcp") && !listed.stderr.contains("reqwest"), "{listed:?}");
}
