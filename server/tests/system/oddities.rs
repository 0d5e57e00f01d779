//! MCP servers that do not quite speak MCP: what is good of their answers is kept, and what is not is named.
//! `docs/reference/servers.md` has the table, which `UPDATE=1` writes.

mod table;

use crate::support::*;
use axum::Router;
use axum::body::Bytes;
use axum::extract::Path as UrlPath;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use table::*;

const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":@ID@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
const OK_TOOL: &str = r#"{"name":"ok","inputSchema":{"type":"object"}}"#;
const OK_RESULT: &str = r#"{"content":[{"type":"text","text":"fine"}]}"#;

fn response(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":@ID@,"result":{result}}}"#)
}

/// A server over stdio with these answers.
fn stdio(folder: &Folder, name: &str, files: &[(&str, &str)]) -> Value {
    let script = root().join("server/tests/system/oddities/server.sh").display().to_string();
    for (file, text) in [("initialize", HANDSHAKE), ("ok", &response(OK_RESULT))].iter().chain(files) {
        folder.file(&format!("{name}/{file}"), format!("{text}\n"));
    }
    json!({"command": "sh", "args": [script, folder.path(name)], "lifecycle": "initialize"})
}

/// A tool for each answer, `t0` and so on.
fn tools(count: usize) -> String {
    let tools: Vec<String> = (0..count).map(|at| format!(r#"{{"name":"t{at}","inputSchema":{{}}}}"#)).collect();
    response(&format!(r#"{{"tools":[{}]}}"#, tools.join(",")))
}

async fn serving(folder: &Folder, servers: Map<String, Value>) -> Server {
    let config = json!({"mcpServers": servers, "vm": {"toolTimeoutMs": 10_000}});
    Server::start(&["--config", &folder.file("config.json", config.to_string())]).await
}

/// Returns the outcome of a call of each tool: its result as JSON, or the message of its error.
async fn outcomes(server: &Server, app: &str, count: usize) -> Vec<Result<Value, String>> {
    let script = format!(
        "const all = await Promise.allSettled(Array.from({{ length: {count} }}, (_, at) => callTool(`{app}:t${{at}}`, {{}})));
         return all.map((one) => one.status === 'fulfilled' ? {{ value: one.value }} : {{ error: `${{one.reason.code}}: ${{one.reason.message}}` }})"
    );
    let answer = server.execute(&script).await;
    let outcomes = answer["result"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    let outcome = |outcome: Value| match outcome["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(outcome["value"].clone()),
    };
    outcomes.into_iter().map(outcome).collect()
}

/// Compares what a script gets with what the table says. Returns the difference.
fn problem(what: &str, gets: &str, outcome: &Result<Value, String>) -> Option<String> {
    let is_same = match (gets.strip_prefix('!'), outcome) {
        (Some(part), Err(message)) => message.contains(part),
        (None, Ok(value)) => serde_json::from_str::<Value>(gets).is_ok_and(|expected| expected == *value),
        (Some(_), Ok(_)) | (None, Err(_)) => false,
    };
    (!is_same).then(|| format!("{what}: {outcome:?} in place of {gets}"))
}

fn assert_none(problems: Vec<String>) {
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn odd_entries_take_no_list_away() {
    let folder = Folder::new();
    let mut servers = Map::new();
    for (at, Listed { entry, .. }) in ENTRIES.iter().enumerate() {
        let list = response(&format!(r#"{{"tools":[{entry},{OK_TOOL}]}}"#));
        let name = format!("e{at}");
        servers.insert(name.clone(), stdio(&folder, &name, &[("tools_list", &list), ("odd", &response(OK_RESULT))]));
    }
    for (at, page) in PAGES.iter().enumerate() {
        let name = format!("p{at}");
        let list = response(page.list);
        let next: Vec<(String, &str)> =
            page.next.iter().map(|(cursor, text)| (format!("tools_list.{cursor}"), *text)).collect();
        let mut files = vec![("tools_list", list.as_str())];
        files.extend(next.iter().map(|(file, text)| (file.as_str(), *text)));
        servers.insert(name.clone(), stdio(&folder, &name, &files));
    }
    for (at, (_, handshake)) in HANDSHAKES.iter().enumerate() {
        let name = format!("h{at}");
        let list = response(&format!(r#"{{"tools":[{OK_TOOL}]}}"#));
        servers.insert(name.clone(), stdio(&folder, &name, &[("initialize", handshake), ("tools_list", &list)]));
    }
    let server = serving(&folder, servers).await;
    let mut problems = Vec::new();
    let called = async |name: String| server.execute(&format!("return await callTool('{name}', {{ a: 1 }})")).await;
    for (at, Listed { what, is_used, .. }) in ENTRIES.iter().enumerate() {
        let ok = called(format!("e{at}:ok")).await;
        let odd = called(format!("e{at}:odd")).await;
        let seen = if odd["result"] == "fine" { true } else { odd["error"]["code"] != "TOOL_NOT_FOUND" };
        if ok["result"] != "fine" || seen != *is_used || (*is_used && odd["result"] != "fine") {
            problems.push(format!("{what}: {ok} {odd}"));
        }
    }
    for (at, (what, _)) in HANDSHAKES.iter().enumerate() {
        let ok = called(format!("h{at}:ok")).await;
        if ok["result"] != "fine" {
            problems.push(format!("{what}: {ok}"));
        }
    }
    let all = server.ask("codecall_search", json!({"query": "tool", "topK": 1})).await;
    let warnings = all["warnings"].as_array().cloned().unwrap_or_default();
    let warning = |app: &str| {
        let named = format!("'{app}' is odd");
        warnings.iter().filter_map(Value::as_str).find(|text| text.contains(&named)).unwrap_or_default().to_owned()
    };
    let entries = ENTRIES.iter().enumerate().map(|(at, one)| (format!("e{at}"), one.what, one.says));
    let pages = PAGES.iter().enumerate().map(|(at, one)| (format!("p{at}"), one.what, one.says));
    for (app, what, says) in entries.chain(pages) {
        let warning = warning(&app);
        if warning.is_empty() != says.is_empty() || !warning.contains(says) {
            problems.push(format!("{what}: search warns '{warning}'"));
        }
    }
    for (at, page) in PAGES.iter().enumerate() {
        let names = ["ok", "second"].map(|name| format!("p{at}:{name}"));
        let described = server.ask("codecall_describe", json!({"toolNames": names})).await;
        let found = described["tools"].as_array().map_or(0, Vec::len);
        if found != page.tools.len() {
            problems.push(format!("{}: {described}", page.what));
        }
    }
    // A hint that cannot be read never makes a tool harmless.
    for (at, Listed { what, says, .. }) in
        ENTRIES.iter().enumerate().filter(|(_, one)| one.says.contains("destructive"))
    {
        let described = server.ask("codecall_describe", json!({"toolNames": [format!("e{at}:odd")]})).await;
        let annotations = &described["tools"][0]["annotations"];
        if annotations["readOnlyHint"] != false
            || annotations["destructiveHint"] != true
            || annotations["openWorldHint"] != true
        {
            problems.push(format!("{what}, {says}: {annotations}"));
        }
    }
    server.end().await;
    assert_none(problems);
}

#[tokio::test]
async fn odd_results_are_results() {
    let folder = Folder::new();
    let mut servers = Map::new();
    let results: Vec<(String, String)> =
        RESULTS.iter().enumerate().map(|(at, one)| (format!("t{at}"), response(one.sent))).collect();
    let lines: Vec<(String, String)> =
        LINES.iter().enumerate().map(|(at, one)| (format!("t{at}"), one.sent.to_owned())).collect();
    for (name, answers) in [("results", &results), ("lines", &lines)] {
        let list = tools(answers.len());
        let mut files = vec![("tools_list", list.as_str())];
        files.extend(answers.iter().map(|(file, text)| (file.as_str(), text.as_str())));
        servers.insert(name.to_owned(), stdio(&folder, name, &files));
    }
    let server = serving(&folder, servers).await;
    let mut problems = Vec::new();
    for (app, table) in [("results", &RESULTS[..]), ("lines", &LINES[..])] {
        let outcomes = outcomes(&server, app, table.len()).await;
        problems.extend(table.iter().zip(&outcomes).filter_map(|(one, outcome)| problem(one.what, one.gets, outcome)));
    }
    server.end().await;
    assert_none(problems);
}

/// Answers a call of `tN` with the answer N of the table.
async fn answered(UrlPath(kind): UrlPath<String>, headers: HeaderMap, body: Bytes) -> Response {
    static SESSIONS: AtomicU32 = AtomicU32::new(0);
    static LOST: LazyLock<String> = LazyLock::new(|| {
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#
            .into()
    });
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let send = |status: u16, media_type: &str, body: &str| {
        let body = body.replace("@ID@", &id.to_string());
        let status = StatusCode::from_u16(status).expect("a status");
        let mut response = (status, body).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
        if !media_type.is_empty() {
            response.headers_mut().insert(header::CONTENT_TYPE, media_type.parse().expect("a header"));
        }
        response
    };
    let json = "application/json";
    match message["method"].as_str().unwrap_or_default() {
        "initialize" if kind == "noisy" => {
            let handshake = HANDSHAKE.replace("@ID@", &id.to_string());
            send(
                200,
                "text/event-stream",
                &format!(
                    ": hi\n\nevent: ping\ndata: {{}}\n\ndata: null\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{{}}}}\n\ndata: {handshake}\n\n"
                ),
            )
        }
        "initialize" => {
            let mut response = send(200, json, HANDSHAKE);
            if kind == "sessions" {
                let session = SESSIONS.fetch_add(1, Ordering::Relaxed).to_string();
                response.headers_mut().insert("mcp-session-id", session.parse().expect("a header"));
            }
            response
        }
        "tools/list" if kind == "sessions" || kind == "noisy" => send(200, json, &tools(1)),
        "tools/list" => send(200, json, &tools(POSTED.len())),
        // The first session is lost at the first call.
        "tools/call" if kind == "sessions" && headers.get("mcp-session-id").is_some_and(|id| id == "0") => {
            send(400, json, &LOST)
        }
        "tools/call" if kind == "sessions" || kind == "noisy" => send(200, json, &response(OK_RESULT)),
        "tools/call" => {
            let name = message["params"]["name"].as_str().unwrap_or_default();
            let at = name.trim_start_matches('t').parse::<usize>().expect("a number");
            let Posted { status, media_type, body, .. } = &POSTED[at];
            send(*status, media_type, body)
        }
        _ => send(400, json, r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32601,"message":"Method not found"}}"#),
    }
}

#[tokio::test]
async fn odd_answers_over_http_end_their_calls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/{kind}", post(answered))).await });
    let folder = Folder::new();
    let servers = ["posted", "sessions", "noisy"]
        .map(|kind| (kind.to_owned(), json!({"url": format!("http://{address}/{kind}"), "lifecycle": "initialize"})));
    let server = serving(&folder, servers.into_iter().collect()).await;
    let mut problems = Vec::new();
    for (at, one) in POSTED.iter().enumerate() {
        let began = Instant::now();
        let script = format!(
            "try {{ return {{ value: await callTool('posted:t{at}', {{}}) }} }} catch (error) {{ return {{ error: `${{error.code}}: ${{error.message}}` }} }}"
        );
        let answer = server.execute(&script).await["result"].clone();
        let outcome = match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["value"].clone()),
        };
        problems.extend(problem(one.what, one.gets, &outcome));
        if began.elapsed() > Duration::from_secs(5) {
            problems.push(format!("{}: {:?}", one.what, began.elapsed()));
        }
    }
    for (kind, what) in [("sessions", "a lost session with status 400"), ("noisy", "events before the handshake")] {
        let outcome = outcomes(&server, kind, 1).await.remove(0);
        problems.extend(problem(what, r#""fine""#, &outcome));
    }
    server.end().await;
    assert_none(problems);
}

/// The page has the table of this test.
#[test]
fn the_page_has_the_table() {
    let path = root().join("docs/reference/servers.md");
    let page = std::fs::read_to_string(&path).expect("a page");
    let (begin, end) = ("<!-- begin of the table -->\n", "<!-- end of the table -->\n");
    let cell = |text: &str| {
        let short: String = text.chars().take(110).collect();
        let more = if short.len() < text.len() { "…" } else { "" };
        format!("`` {}{more} ``", short.replace('|', "\\|").replace(['\n', '\r'], " "))
    };
    let seen = |gets: &str| match gets.strip_prefix('!') {
        Some(part) => format!("an error: {part}"),
        None => cell(gets),
    };
    let mut table = String::from(
        "### Entries of the list of tools\n\n| what a server sends | for example | the tool | `status` and search say |\n|---|---|---|---|\n",
    );
    for Listed { what, entry, is_used, says } in &ENTRIES {
        let used = if *is_used { "works" } else { "is left out" };
        let _ = writeln!(table, "| {what} | {} | {used} | {says} |", cell(entry));
    }
    table.push_str("\n### Lists and handshakes\n\n| what a server sends | the tools |\n|---|---|\n");
    for Page { what, tools, says, .. } in &PAGES {
        let says = if says.is_empty() { String::new() } else { format!("; `status` and search say: {says}") };
        let _ =
            writeln!(table, "| {what} | {}{says} |", if tools.is_empty() { "none".into() } else { tools.join(", ") });
    }
    for (what, _) in &HANDSHAKES {
        let _ = writeln!(table, "| in the answer to *initialize*: {what} | all |");
    }
    for (title, answers) in [("Results of calls", &RESULTS[..]), ("Messages over stdio", &LINES[..])] {
        let _ =
            write!(table, "\n### {title}\n\n| what a server sends | for example | a script gets |\n|---|---|---|\n");
        for Answer { what, sent, gets } in answers {
            let _ = writeln!(table, "| {what} | {} | {} |", cell(sent), seen(gets));
        }
    }
    table.push_str("\n### Responses over HTTP\n\n| what a server sends | status | media type | a script gets |\n|---|---:|---|---|\n");
    for Posted { what, status, media_type, gets, .. } in &POSTED {
        let _ = writeln!(table, "| {what} | {status} | {media_type} | {} |", seen(gets));
    }
    let (before, rest) = page.split_once(begin).expect("the begin of the table");
    let (_, after) = rest.split_once(end).expect("the end of the table");
    let written = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &written).expect("the page");
    }
    assert!(std::env::var_os("UPDATE").is_some() || written == page, "run it with UPDATE=1");
}
