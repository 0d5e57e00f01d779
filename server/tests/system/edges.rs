//! Limits at the boundaries of the program: connections, sessions, upstreams, terminals, files, secrets.

use crate::model_server::{HttpProcess, http_client, post_json};
use crate::support::*;
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

/// Returns the resident memory of a process, in bytes.
fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok()).unwrap_or_default() * 1024
}

async fn serving(folder: &Folder, http: Value) -> HttpProcess {
    let config = folder.file("config.json", json!({"http": http}).to_string());
    HttpProcess::start(&["--demo", "--config", &config]).await
}

async fn connect(server: &HttpProcess) -> TcpStream {
    let address = server.url.trim_start_matches("http://").to_owned();
    TcpStream::connect(address).await.expect("connects")
}

/// Sends a request over a new connection, and waits ten seconds at most for the answer.
async fn healthy(server: &HttpProcess) {
    let asked = http_client().get(format!("{}/healthz", server.url)).send();
    let answer = tokio::time::timeout(Duration::from_secs(10), asked).await.expect("answers").expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
}

/// Whether the server closes a connection soon.
async fn ends(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await.is_ok()
}

#[tokio::test]
async fn idle_and_half_open_connections_are_evicted() {
    let folder = Folder::new();
    let server = serving(&folder, json!({"maxConnections": 40, "headerTimeoutMs": 2000})).await;
    let mut idle = Vec::new();
    for number in 0..200 {
        let mut stream = connect(&server).await;
        if number % 2 == 0 {
            // Writing to an evicted connection fails.
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").await;
        }
        idle.push(stream);
    }
    healthy(&server).await;
    let began = Instant::now();
    for mut stream in idle {
        assert!(ends(&mut stream).await, "a connection without a request ends");
    }
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    // A connection in use is kept, as long as it is not idle for too long.
    let mut used = connect(&server).await;
    for _ in 0..3 {
        used.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.expect("writes");
        let mut answer = [0; 1000];
        let read = used.read(&mut answer).await.expect("reads");
        assert!(answer[..read].starts_with(b"HTTP/1.1 200"));
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    assert!(ends(&mut used).await);
    assert_eq!(server.end().await, Some(0));
}

/// A server without free descriptors recovers when it has some again.
#[tokio::test]
async fn the_server_recovers_from_a_lack_of_descriptors() {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n 40; exec {PROGRAM} serve --http 0 --demo");
    let server = HttpProcess::start_as(command.args(["-c", &script])).await;
    for _ in 0..3 {
        let mut streams = Vec::new();
        for _ in 0..150 {
            let mut stream = connect(&server).await;
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\n").await;
            streams.push(stream);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        healthy(&server).await;
    }
    healthy(&server).await;
    assert_eq!(server.end().await, Some(0));
}

/// Responses that the client does not read are dropped.
#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    let folder = Folder::new();
    let server = serving(&folder, json!({"writeTimeoutMs": 500})).await;
    let before = resident(server.pid());
    let body = json!({"code": "return 'x'.repeat(900_000)", "tools": []}).to_string();
    let request = format!(
        "POST /v1/evaluate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    // How long it takes to fill the buffers of the system depends on how busy the machine is.
    let mut is_let_go = false;
    for wait in [2, 8, 30] {
        let mut stream = connect(&server).await;
        stream.write_all(request.repeat(30).as_bytes()).await.expect("writes");
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let grown = resident(server.pid()).saturating_sub(before);
        assert!(grown < 150 << 20, "{grown} bytes more");
        let mut answer = Vec::new();
        // The response may be cut off in the middle.
        let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.expect("ends");
        is_let_go = answer.len() < 30 * 900_000;
        if is_let_go {
            break;
        }
    }
    assert!(is_let_go, "all answers came, however late");
    healthy(&server).await;
    assert_eq!(server.end().await, Some(0));
}

/// Starts a session. Returns the status, the id and the body.
async fn start_session(server: &HttpProcess) -> (u16, String, String) {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    let answer = http_client()
        .post(format!("{}/mcp", server.url))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(hello.to_string())
        .send()
        .await
        .expect("an answer");
    let id = answer.headers().get("mcp-session-id").map(|id| id.to_str().expect("text").to_owned());
    (answer.status().as_u16(), id.unwrap_or_default(), answer.text().await.expect("text"))
}

async fn in_session(server: &HttpProcess, id: &str, message: Option<Value>) -> reqwest::Response {
    let url = format!("{}/mcp", server.url);
    let request = match message {
        Some(message) => http_client().post(url).header("content-type", "application/json").body(message.to_string()),
        None => http_client().get(url),
    };
    let request = request.header("mcp-session-id", id).header("mcp-protocol-version", "2025-06-18");
    request.header("accept", "application/json, text/event-stream").send().await.expect("an answer")
}

#[tokio::test]
async fn sessions_expire_and_are_limited() {
    let folder = Folder::new();
    let server = serving(&folder, json!({"maxSessions": 3})).await;
    let ping = || Some(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    let initialized = || Some(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let (status, mine, _) = start_session(&server).await;
    assert_eq!(status, 200);
    assert_eq!(in_session(&server, &mine, initialized()).await.status().as_u16(), 202);
    assert!(in_session(&server, &mine, ping()).await.text().await.expect("text").contains("\"id\":2"));
    let mut others = Vec::new();
    for _ in 0..20 {
        let (status, id, _) = start_session(&server).await;
        assert_eq!(status, 200);
        others.push(id);
    }
    // The used session stays; those without a request are evicted, the oldest first.
    assert_eq!(in_session(&server, &mine, ping()).await.status().as_u16(), 200);
    assert_eq!(in_session(&server, &others[17], ping()).await.status().as_u16(), 404);
    assert_eq!(in_session(&server, &others[19], initialized()).await.status().as_u16(), 202);
    // An open stream keeps a session in use.
    let mut streams = Vec::new();
    for id in [&mine, &others[18], &others[19]] {
        let stream = in_session(&server, id, None).await;
        assert_eq!(stream.status().as_u16(), 200);
        streams.push(stream);
    }
    let (status, _, body) = start_session(&server).await;
    assert!(status == 503 && body.contains("TOO_MANY_SESSIONS"), "{status} {body}");
    drop(streams.pop());
    let began = Instant::now();
    while start_session(&server).await.0 != 200 {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.end().await, Some(0));

    let server = serving(&folder, json!({"sessionIdleMs": 300})).await;
    let (_, id, _) = start_session(&server).await;
    assert_eq!(in_session(&server, &id, initialized()).await.status().as_u16(), 202);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(in_session(&server, &id, ping()).await.status().as_u16(), 404);
}

#[tokio::test]
async fn memory_of_sessions_is_bounded() {
    let folder = Folder::new();
    let server = serving(&folder, json!({"maxSessions": 20})).await;
    for _ in 0..20 {
        start_session(&server).await;
    }
    let before = resident(server.pid());
    for _ in 0..100 {
        assert_eq!(start_session(&server).await.0, 200);
    }
    let grown = resident(server.pid()).saturating_sub(before);
    assert!(grown < 3 << 20, "{grown} bytes for 100 sessions that are gone");
    assert_eq!(server.end().await, Some(0));
}

fn upstreams(folder: &Folder, kinds: &[&str]) -> String {
    let script = folder.file("edges.sh", include_str!("edges.sh"));
    let server =
        |kind: &&str| ((*kind).to_owned(), json!({"command": "sh", "args": [script, kind], "startTimeoutMs": 30_000}));
    let servers: serde_json::Map<String, Value> = kinds.iter().map(server).collect();
    folder.file("upstreams.json", json!({"mcpServers": servers, "vm": {"toolTimeoutMs": 30_000}}).to_string())
}

#[tokio::test]
async fn lists_without_an_end() {
    let folder = Folder::new();
    let server = Server::start(&["--config", &upstreams(&folder, &["endless", "circle", "huge", "answers"])]).await;
    let found = server.search_when_started(json!({"query": "wordy one tool last", "topK": 50})).await;
    let warnings = found["warnings"].to_string();
    for part in [
        "'endless' is odd: its list is used up to entry 20000: it has more than 20000 entries",
        "'circle' is odd: its list is used up to entry 2: it returns to a page that was already read",
        "'huge' is odd: a tool is left out: it has a name of 100000 bytes",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    assert_eq!(found["totalIndexed"], 7 + 1 + 2_000 + 1, "{warnings}");
    let described = server.ask("codecall_describe", json!({"toolNames": ["huge:wordy"]})).await;
    let description = described["tools"][0]["description"].as_str().expect("text");
    assert!(description.len() < 40_000 && description.ends_with('…'), "{}", description.len());
    let stderr = server.end().await;
    assert!(stderr.contains("a tool is left out: it has a name of 100000 bytes"), "{stderr}");
}

#[tokio::test]
async fn unreadable_answers_fail_at_once() {
    let folder = Folder::new();
    let server = Server::start(&["--config", &upstreams(&folder, &["answers"])]).await;
    for (tool, code, part) in [
        ("deep", "MESSAGE_INVALID", "nested more than 128 levels deep"),
        ("nameless", "MESSAGE_INVALID", "nested more than 128 levels deep"),
        ("utf8", "MESSAGE_INVALID", "it is not UTF-8"),
        ("odd", "TOOL_EXECUTION_ERROR", "no"),
        ("late", "TOOL_TIMEOUT", "timed out after 300ms"),
    ] {
        let began = Instant::now();
        let options = if tool == "late" { ", { timeoutMs: 300 }" } else { "" };
        let answer = server.execute(&format!("return await callTool('answers:{tool}', {{}}{options})")).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answer["error"]["code"] == code && message.contains(part), "{tool}: {answer}");
        assert!(began.elapsed() < TIMEOUT, "{tool}: {:?}", began.elapsed());
        assert_eq!(server.execute("return await answers.last({})").await["result"], "last", "after {tool}");
    }
    let script = "return [await answers.twice({}), await answers.last({}), await answers.last({})]";
    assert_eq!(server.execute(script).await["result"], json!(["first", "last", "last"]));
    server.end().await;
}

/// Control sequences that a terminal would execute.
const CONTROL_SEQUENCES: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}evil\u{2066}\u{200f}\r\nfake line\u{8}\u{7f}\u{e0041}";

fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

/// Every command with every kind of hostile text, on a terminal and in a pipe.
#[tokio::test]
async fn control_characters_are_escaped_on_terminals() {
    let folder = Folder::new();
    let tool = |name: String| {
        json!({
            "name": name, "description": format!("{CONTROL_SEQUENCES} Does a thing"), "inputSchema": {"type": "object", "description": CONTROL_SEQUENCES},
            "responses": [
                {"input": {"fail": true}, "error": {"message": CONTROL_SEQUENCES, "code": CONTROL_SEQUENCES}},
                {"input": null, "output": {"text": CONTROL_SEQUENCES, CONTROL_SEQUENCES: 1}},
            ],
        })
    };
    let long = format!("shop:{}", "w".repeat(100_000));
    let fixture = json!({"tools": [tool(format!("shop:{CONTROL_SEQUENCES}")), tool("shop:good".into()), tool(long), tool("shop:日本語".repeat(500))]});
    let fixture = folder.file("fixture.json", fixture.to_string());
    let good =
        folder.file("good.js", "console.log(await callTool('shop:good', {})); return await callTool('shop:good', {})");
    let bad = folder.file("bad.js", "return await callTool('shop:good', {fail: true})");
    let wrong = folder.file(
        &format!("wrong{}.js", "\u{1b}[2J\u{202e}"),
        format!("const a = '{}'; return a + `{CONTROL_SEQUENCES}` + b c /* {CONTROL_SEQUENCES} */", "\u{1b}[2J\u{9b}"),
    );
    let journal = folder.path("journal.json");
    let recorded = codecall(&["run", &good, "--mock-tools", &fixture, "--record", &journal]).await;
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let nowhere = format!("/nowhere/{CONTROL_SEQUENCES}");
    let commands: &[&[&str]] = &[
        &["tools", "--mock-tools", &fixture],
        &["tools", "--mock-tools", &fixture, "--json"],
        &["search", "thing", "--mock-tools", &fixture],
        &["describe", "shop:good", CONTROL_SEQUENCES, "--mock-tools", &fixture],
        &["describe", "shop:good", "--format", "json_schema", "--mock-tools", &fixture],
        &["invoke", "shop:good", "{}", "--mock-tools", &fixture],
        &["invoke", "shop:good", "{\"fail\":true}", "--mock-tools", &fixture],
        &["invoke", CONTROL_SEQUENCES, "{}", "--mock-tools", &fixture],
        &["run", &good, "--mock-tools", &fixture, "-vv"],
        &["run", &bad, "--mock-tools", &fixture],
        &["run", &wrong, "--mock-tools", &fixture],
        &["run", &good, &bad, "--mock-tools", &fixture],
        &["run", &nowhere],
        &["run", "--config", &nowhere, &good],
        &["check", &wrong, &good],
        &["check", "--json", &wrong],
        &["replay", &good, "--journal", &journal],
        &["replay", &bad, "--journal", &journal],
        &["replay", &good, "--journal", &nowhere],
        &["code", "exec", "--code", "call_tool('shop', 'good', {})", "--mock-tools", &fixture],
        &["code", "exec", "--code", CONTROL_SEQUENCES],
        &[CONTROL_SEQUENCES],
        &["run", &format!("--{CONTROL_SEQUENCES}")],
    ];
    let has_terminal = finish(Command::new("script").args(["-qec", "true", "/dev/null"]), "").await.code == Some(0);
    for words in commands {
        let piped = codecall(words).await;
        let is_json = piped.stdout.starts_with('{') || piped.stdout.starts_with('[');
        let seen = if is_json { piped.stderr.clone() } else { format!("{}{}", piped.stdout, piped.stderr) };
        let shown: Vec<String> = words.iter().map(|word| word.chars().take(40).collect()).collect();
        assert!(!seen.contains("panicked") && piped.code != Some(101), "{shown:?}: {seen}");
        assert!(
            !seen.contains(is_control),
            "{shown:?}: {:?}",
            seen.chars().skip_while(|c| !is_control(*c)).take(40).collect::<String>()
        );
        if has_terminal {
            let quoted: Vec<String> = std::iter::once(PROGRAM)
                .chain(words.iter().copied())
                .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
                .collect();
            let mut command = Command::new("script");
            let seen =
                finish(command.args(["-qec", &quoted.join(" "), "/dev/null"]).env("TERM", "dumb"), "").await.stdout;
            let seen = seen.replace("\r\n", "\n");
            assert!(!seen.is_empty() || !words.contains(&"check"), "{shown:?}");
            assert!(
                !seen.contains(is_control),
                "{shown:?} on a terminal: {:?}",
                seen.chars().skip_while(|c| !is_control(*c)).take(40).collect::<String>()
            );
        }
    }
    let listed = codecall(&["tools", "--mock-tools", &fixture]).await;
    // Tools with names of more than 256 bytes, or with characters that are not seen, are left out.
    assert_eq!(listed.stdout.lines().count(), 1, "a line a tool: {}", listed.stdout);
    assert!(listed.stdout.lines().all(|line| line.len() < 2_000));
}

/// Arguments that name files must name regular files, of a limited size.
#[tokio::test]
async fn only_files_are_read() {
    let folder = Folder::new();
    let script = folder.file("script.js", "return 1");
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().await.expect("mkfifo").success());
    let huge = folder.path("huge.json");
    std::fs::File::create(&huge).expect("made").set_len(10 << 30).expect("sparse");
    let directory = folder.path("");
    for (path, why) in [
        ("/dev/zero", "it is a pipe or a device, not a file"),
        (pipe.as_str(), "it is a pipe or a device, not a file"),
        (directory.as_str(), "it is a folder, not a file"),
        (huge.as_str(), "bytes, which is the limit"),
    ] {
        let at = format!("@{path}");
        for words in [
            vec!["run", "--config", path, &script],
            vec!["serve", "--config", path],
            vec!["run", path],
            vec!["check", path],
            vec!["run", &script, "--context", &at],
            vec!["run", &script, "--mock-tools", path],
            vec!["invoke", "a:b", &at],
            vec!["replay", &script, "--journal", path],
            vec!["replay", path, "--journal", "ccj1.x"],
            vec!["replay", &script, "--journal", "ccj1.x", "--config", path],
            vec!["code", "exec", "--file", path],
            vec!["code", "exec", "--code", "1", "--input-file", path],
        ] {
            let began = Instant::now();
            let ended = codecall(&words).await;
            assert!(ended.code == Some(2) && ended.stderr.contains(why), "{words:?}: {ended:?}");
            assert!(began.elapsed() < TIMEOUT, "{words:?}");
        }
    }
    let mut endless = Command::new("sh");
    let endless = finish(endless.args(["-c", &format!("head -c 100000000 /dev/zero | {PROGRAM} check -")]), "").await;
    assert!(endless.code == Some(2) && endless.stderr.contains("which is the limit"), "{endless:?}");
}

/// Recordings and audit files can be read only by their owner, and replace only regular files.
#[tokio::test]
async fn only_files_are_written() {
    let folder = Folder::new();
    let script = folder.file("script.js", "return 1");
    let (journal, target, link, pipe) =
        (folder.path("journal.json"), folder.file("target", "target"), folder.path("link"), folder.path("pipe"));
    symlink(&target, &link).expect("a link");
    assert!(Command::new("mkfifo").arg(&pipe).status().await.expect("mkfifo").success());
    for _ in 0..2 {
        assert_eq!(codecall(&["run", &script, "--record", &journal]).await.code, Some(0));
        assert_eq!(Path::new(&journal).metadata().expect("there").mode() & 0o777, 0o600);
    }
    for (path, why) in [
        ("/dev/null", "it is a pipe or a device, not a file"),
        (pipe.as_str(), "it is a pipe or a device, not a file"),
        (link.as_str(), "it is a link, which is not followed"),
        (&folder.path(""), "not a file"),
        ("/nowhere/journal.json", "No such file"),
    ] {
        let ended = codecall(&["run", &script, "--record", path]).await;
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{path}: {ended:?}");
        let config = folder.file("audit.json", json!({"audit": {"file": path}}).to_string());
        let ended = codecall(&["run", &script, "--demo", "--config", &config]).await;
        let why = if path.starts_with("/nowhere") { "cannot be opened" } else { why };
        assert!(
            ended.code == Some(2) && ended.stderr.contains("audit.file") && (ended.stderr.contains(why)),
            "{path}: {ended:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(&target).expect("text"), "target");
    let names: Vec<_> =
        std::fs::read_dir(folder.path("")).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains(".part")), "{names:?}");
}

/// The secret of the configuration in every encoding that is redacted, made by shell tools in a script.
const SECRET: &str = "tok-Zq3/7+x&9Kd_5w";

fn encodings() -> Vec<(String, String)> {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    let each = |write: &dyn Fn(u8) -> String| SECRET.bytes().map(write).collect::<String>();
    let wrapped = |text: String| {
        text.as_bytes().chunks(5).map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>().join("\n")
    };
    let one: Vec<(&str, String)> = vec![
        ("plain", SECRET.into()),
        ("%XX", each(&|byte| format!("%{byte:02X}"))),
        ("%xx", each(&|byte| format!("%{byte:02x}"))),
        ("\\uXXXX", each(&|byte| format!("\\u{byte:04X}"))),
        ("\\xXX", each(&|byte| format!("\\x{byte:02x}"))),
        ("&#DD;", each(&|byte| format!("&#{byte};"))),
        ("hex", each(&|byte| format!("{byte:02x}"))),
        ("HEX:", each(&|byte| format!("{byte:02X}:"))),
        ("base64", STANDARD.encode(SECRET)),
        ("base64url", URL_SAFE_NO_PAD.encode(SECRET)),
        ("base64 in lines", wrapped(STANDARD.encode(format!("ab{SECRET}cd")))),
    ];
    let mut forms: Vec<(String, String)> = one.iter().map(|(name, form)| ((*name).into(), form.clone())).collect();
    for (name, form) in &one {
        forms.push((format!("base64 of {name}"), STANDARD.encode(form)));
        forms.push((format!("% of {name}"), form.bytes().map(|byte| format!("%{byte:02x}")).collect()));
    }
    forms
}

/// Every output with every encoding of a secret.
#[tokio::test]
async fn secrets_are_redacted_in_all_encodings() {
    let folder = Folder::new();
    let all: Vec<(String, String)> = encodings();
    let texts: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
    let (tool, list) = (
        |name: &str, text: &str| {
            json!({
                "name": name, "description": format!("Tells {text} of a thing"),
                "inputSchema": {"type": "object", "description": text, "properties": {"a": {"default": text}}},
                "responses": [
                    {"input": {"fail": true}, "error": {"message": format!("no {text}"), "code": "NO"}},
                    {"input": null, "output": {"told": text, text: 1}},
                ],
            })
        },
        Value::from(texts.clone()),
    );
    let tools: Vec<Value> = texts.iter().enumerate().map(|(at, text)| tool(&format!("shop:tell{at}"), text)).collect();
    let fixture = folder.file("fixture.json", json!({"tools": tools}).to_string());
    let audit = folder.path("audit.jsonl");
    let config = json!({
        "mcpServers": {"shop": {"command": "true", "env": {"API_TOKEN": SECRET}}}, "audit": {"file": audit, "stderr": true},
        "http": {"maxConnections": 100},
    });
    let config = folder.file("config.json", config.to_string());
    let script = folder.file("script.js", format!(
        "const texts = {list};
         for (const text of texts) {{ console.log(text); mcpLog('info', text, {{ [text]: text }}); mcpNotify('said', {{ [text]: text }}); }}
         const answers = [];
         for (let at = 0; at < texts.length; at++) {{
           answers.push(await callTool('shop:tell' + at, {{ a: texts[at] }}));
           answers.push(await callTool('shop:tell' + at, {{ fail: true }}, {{ throwOnError: false }}));
           answers.push(getTool('shop:tell' + at));
         }}
         return {{ texts, answers, ...Object.fromEntries(texts.map(text => [text, 1])) }}"
    ));
    let journal = folder.path("journal.json");
    let more = ["--mock-tools", &fixture, "--config", &config];
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut run = async |name: &str, words: &[&str], more: &[&str]| {
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let ended = codecall(&words).await;
        assert!(!ended.stdout.is_empty() || !ended.stderr.is_empty(), "{words:?}");
        seen.push((format!("{name}, stdout"), ended.stdout));
        seen.push((format!("{name}, stderr"), ended.stderr));
    };
    run("run", &["run", &script, "--max-tool-calls", "0", "-vvv"], &more).await;
    run("run --record", &["run", &script, "--max-tool-calls", "0", "--record", &journal], &more).await;
    run("replay", &["replay", &script, "--journal", &journal, "--config", &config], &[]).await;
    run("dry run", &["run", &script, "--max-tool-calls", "0", "--dry-run"], &more).await;
    run("tools", &["tools"], &more).await;
    run("tools --json", &["tools", "--json"], &more).await;
    run("search", &["search", "tells a thing", "--top-k", "50"], &more).await;
    for (at, (name, text)) in all.iter().enumerate() {
        let tool = format!("shop:tell{at}");
        run("describe", &["describe", &tool, "--format", "json_schema"], &more).await;
        if at % 5 == 0 {
            run("describe as TypeScript", &["describe", &tool, "--format", "typescript"], &more).await;
            run("invoke", &["invoke", &tool], &more).await;
            run("invoke that fails", &["invoke", &tool, "{\"fail\":true}"], &more).await;
            let throws = folder.file("throws.js", format!("throw new Error({})", Value::from(text.as_str())));
            run(&format!("an error with {name}"), &["run", &throws], &more).await;
            let returns = folder.file("returns.js", format!("return {}", Value::from(text.as_str())));
            run(&format!("a result with {name}"), &["run", &returns], &more).await;
            let code = format!("({{ a: {} }})", Value::from(text.as_str()));
            run("code exec", &["code", "exec", "--code", &code], &more).await;
        }
    }
    let server = Server::start(&["--mock-tools", &fixture, "--config", &config, "-vv"]).await;
    let source = std::fs::read_to_string(&script).expect("text");
    seen.push(("MCP".into(), server.execute(&source).await.to_string()));
    let describe = json!({"toolNames": ["shop:tell0", "shop:tell1", "shop:tell2", "shop:tell3"]});
    seen.push(("MCP describe".into(), server.ask("codecall_describe", describe).await.to_string()));
    seen.push(("MCP logs".into(), format!("{:?}", server.recorded.logs.lock().expect("not poisoned"))));
    seen.push(("MCP events".into(), format!("{:?}", server.recorded.events.lock().expect("not poisoned"))));
    seen.push(("MCP stderr".into(), server.end().await));
    let http = HttpProcess::start(&["--mock-tools", &fixture, "--config", &config]).await;
    let returned = json!({"code": format!("return {list}"), "tools": []});
    seen.push(("HTTP".into(), post_json(&http.url, "/v1/evaluate", &returned).await.1.to_string()));
    let thrown = json!({"code": format!("throw new Error({list}.join(' '))"), "tools": []});
    seen.push(("HTTP error".into(), post_json(&http.url, "/v1/evaluate", &thrown).await.1.to_string()));
    seen.push(("recording".into(), std::fs::read_to_string(&journal).expect("text")));
    seen.push(("records".into(), std::fs::read_to_string(&audit).expect("text")));
    for (name, text) in &seen {
        for (form, written) in &all {
            // Also as it is escaped in JSON.
            let quoted = Value::from(written.as_str()).to_string();
            let quoted = &quoted[1..quoted.len() - 1];
            for written in [written.as_str(), quoted] {
                let at = text.find(written).map(|at| text[..at].chars().rev().take(80).collect::<Vec<_>>());
                let before = at.map(|letters| letters.into_iter().rev().collect::<String>());
                assert_eq!(before, None, "{form} in {name}");
            }
        }
    }
    let masked = seen.iter().filter(|(_, text)| text.contains("[secret]")).count();
    assert!(masked > 20, "{masked} of {}", seen.len());
}

/// The reader closes the pipe in the middle of the output; the program ends anyway.
#[tokio::test]
async fn a_closed_pipe_is_no_error() {
    let mut command = Command::new("sh");
    let ended =
        finish(command.args(["-c", &format!("{PROGRAM} tools --demo | head -n 1")]).stdin(Stdio::null()), "").await;
    assert_eq!((ended.code, ended.stdout.lines().count(), ended.stderr.as_str()), (Some(0), 1, ""));
}
