//! `fetch` in script tools, from the manifest to a real HTTP server and back; and secrets of script tools on every way out.

use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;

const EXECUTE: &str = "async function execute(params, config)";

/// A tool with a manifest of these lines.
fn tool(manifest: &str, body: &str) -> String {
    format!("/*---\ndescription = \"A tool of a test\"\n{manifest}\n---*/\n{EXECUTE} {{ {body} }}\n")
}

fn config(folder: &Folder, more: &str) -> String {
    let [state, tools, store] = ["state", "tools", "state/codecall.db"].map(|name| folder.path(name));
    std::fs::create_dir_all(&tools).expect("a folder");
    folder.file("codecall.toml", format!("stateDir = {state:?}\nstore = {store:?}\nscriptTools = {tools:?}\n{more}"))
}

async fn command(words: &[&str], input: &str) -> Finished {
    finish(Command::new(PROGRAM).args(words).env_remove("CODECALL_STORE"), input).await
}

/// A web service that answers a request with its own head, and `/hop` with a redirect to another port. It notes the heads.
async fn web_service(other: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => bytes.extend_from_slice(&piece[..count]),
                }
            }
            let head = String::from_utf8_lossy(&bytes).into_owned();
            let body = json!({"method": head.split(' ').next(), "head": head}).to_string();
            let answer = if head.starts_with("GET /hop ") {
                format!(
                    "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )
            } else {
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                )
            };
            seen.lock().expect("no test panics with the lock").push(head);
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (port, heads)
}

async fn invoke(server: &Server, tool: &str, params: Value) -> Value {
    let script = format!(
        "try {{ return await callTool('{tool}', {params}) }} \
         catch (error) {{ return {{ thrown: error.message, code: error.code }} }}"
    );
    let answer = server.execute(&script).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["result"].clone()
}

/// `codecall tool test` answers requests from the manifest, and sends none.
#[tokio::test]
async fn examples_send_no_requests() {
    let folder = Folder::new();
    let config = config(&folder, "");
    let (port, heads) = web_service(0).await;
    let url = format!("http://127.0.0.1:{port}");
    let example = |name: &str, more: &str| format!("[[examples]]\ndescription = \"{name}\"\n{more}\n");
    let responses = format!(
        "responses = [{{ url = \"{url}/a?x=1\", method = \"GET\", status = 201, headers = {{ \"X-Id\" = \"7\" }}, json = {{ n = 5 }}, times = 1 }}, \
         {{ url = \"{url}/b\", error = \"connection refused\" }}]"
    );
    let manifest = [
        &format!("hosts = [{{ host = \"{url}\", methods = [\"GET\"] }}]"),
        &example("recorded", &format!("params = {{ path = \"/a?x=1#part\" }}\n{responses}\ndata = [201, \"7\", 5]")),
        &example(
            "fails",
            &format!("params = {{ path = \"/b\" }}\n{responses}\nerror = \"fetch failed: connection refused\""),
        ),
        &example("not recorded", "params = { path = \"/c\" }\ndata = 1"),
    ]
    .map(String::as_str)
    .join("\n");
    let body = format!(
        "const r = await fetch('{url}' + params.path); return [r.status, r.headers.get('x-id'), (await r.json()).n];"
    );
    std::fs::write(folder.path("tools/web.js"), tool(&manifest, &body)).expect("written");
    let tested = command(&["tool", "test", "web", "--config", &config], "").await;
    assert_eq!(tested.code, Some(1), "{tested:?}");
    assert!(tested.stdout.starts_with("web: 2 of 3 examples\n"), "{tested:?}");
    assert!(tested.stdout.contains("there is no recorded response to GET"), "{tested:?}");
    assert_eq!(heads.lock().expect("not poisoned").len(), 0);
}

#[tokio::test]
async fn a_script_tool_fetches_what_its_manifest_names() {
    let folder = Folder::new();
    let config = config(&folder, "[fetch]\nmaxRequests = 3\n");
    let (private, private_heads) = web_service(0).await;
    let (port, heads) = web_service(private).await;
    let host = format!("hosts = [{{ host = \"http://127.0.0.1:{port}\", methods = [\"GET\", \"POST\"] }}]");
    let url = format!("http://127.0.0.1:{port}");
    let files = [
        (
            "weather",
            tool(
                &format!("secrets = [\"KEY\"]\n{host}"),
                &format!(
                    "const r = await fetch('{url}/w?city=Bern', {{ headers: {{ authorization: `Bearer ${{config.KEY}}` }} }}); \
                     const {{ method, head }} = await r.json(); \
                     return {{ ok: r.ok, status: r.status, type: r.headers.get('Content-Type'), method, auth: /authorization: (.*)/i.exec(head)[1].trim() }};"
                ),
            ),
        ),
        ("elsewhere", tool(&host, &format!("return await (await fetch('http://127.0.0.1:{private}/')).text();"))),
        ("metadata", tool(&host, "return await (await fetch('http://169.254.169.254/latest/meta-data/')).text();")),
        ("hop", tool(&host, &format!("return await (await fetch('{url}/hop')).text();"))),
        ("delete", tool(&host, &format!("return (await fetch('{url}/', {{ method: 'DELETE' }})).status;"))),
        (
            "caught",
            tool(&host, "try { await fetch('https://evil.test/'); } catch (e) { return [String(e), e.cause.code]; }"),
        ),
        ("many", tool(&host, &format!("for (let i = 0; i < 4; i++) await fetch('{url}/');"))),
        ("without", tool("", "return (await fetch('https://a.test/')).status;")),
    ];
    for (name, text) in &files {
        std::fs::write(folder.path(&format!("tools/{name}.js")), text).expect("written");
    }
    let set = command(&["secret", "set", "KEY", "--config", &config], "Zq3-9Kd_5w-fetch").await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let server = Server::start(&["--config", &config]).await;
    let answer = invoke(&server, "tools:weather", json!({})).await;
    let data =
        json!({"ok": true, "status": 200, "type": "application/json", "method": "GET", "auth": "Bearer [secret]"});
    assert_eq!(answer, json!({"success": true, "data": data}));
    let sent = heads.lock().expect("no test panics with the lock")[0].clone();
    assert!(sent.starts_with("GET /w?city=Bern HTTP/1.1\r\n") && sent.contains("Bearer Zq3-9Kd_5w-fetch"), "{sent}");
    for (tool, code, message) in [
        ("elsewhere", "FETCH_NOT_ALLOWED", "is not among the hosts of this tool"),
        ("metadata", "FETCH_NOT_ALLOWED", "is not among the hosts of this tool"),
        ("hop", "FETCH_NOT_ALLOWED", "is not among the hosts of this tool"),
        ("delete", "FETCH_NOT_ALLOWED", "name the method under 'hosts'"),
        ("many", "FETCH_LIMIT", "fetch.maxRequests"),
    ] {
        let answer = invoke(&server, &format!("tools:{tool}"), json!({})).await;
        assert_eq!(answer["code"], code, "{tool}: {answer}");
        assert!(answer["thrown"].as_str().is_some_and(|thrown| thrown.contains(message)), "{tool}: {answer}");
    }
    assert!(
        private_heads.lock().expect("no test panics with the lock").is_empty(),
        "nothing reached the other service"
    );
    let caught = invoke(&server, "tools:caught", json!({})).await;
    assert_eq!(caught["data"], json!(["TypeError: fetch failed", "FETCH_NOT_ALLOWED"]));
    let without = invoke(&server, "tools:without", json!({})).await;
    assert_eq!(without["code"], "VALIDATION_ERROR", "it was refused when it was loaded: {without}");
    server.end().await;

    // The run of the tool is in the history, with its request, and can be replayed without the service.
    let listed = command(&["history", "--json", "--tool", "fetch", "--config", &config], "").await;
    let runs = listed.json_lines();
    let weather = |run: &&Value| run["title"] == "tools:weather";
    let run = runs.iter().find(weather).unwrap_or_else(|| panic!("{listed:?}"));
    let id = run["id"].as_str().expect("an id").to_owned();
    let shown = command(&["history", "show", &id, "--json", "--config", &config], "").await;
    let text = shown.stdout.clone();
    assert!(text.contains("/w?city=Bern") && text.contains("Bearer [secret]") && !text.contains("Zq3-9Kd"), "{text}");
    let before = heads.lock().expect("no test panics with the lock").len();
    let replayed = command(&["history", "replay", &id, "--config", &config], "").await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert_eq!(heads.lock().expect("no test panics with the lock").len(), before, "a replay sends nothing");
}

/// Random secrets of 6 to 200 bytes, of all kinds of characters.
fn random_secrets(count: usize) -> Vec<String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).expect("small")
    };
    let alphabets: [Vec<char>; 4] = [
        ('!'..='~').collect(),
        ('a'..='z').chain('A'..='Z').chain('0'..='9').collect(),
        "äöüßéñ漢字かな🌍🎉 \t+/=\"'\\%&<>".chars().collect(),
        ('\u{20}'..='\u{2ff}').filter(|letter| !letter.is_control()).collect(),
    ];
    let mut secret = |index: usize| {
        let alphabet = &alphabets[index % alphabets.len()];
        let bytes = 6 + next(195);
        let mut text = format!("k{index}");
        while text.len() < bytes || text.chars().count() < 8 {
            let letter = alphabet[next(alphabet.len())];
            text.push(letter);
        }
        while text.len() > 200 {
            text.pop();
        }
        // Secrets are masked without the white space around them.
        text.trim().to_owned() + "z"
    };
    (0..count).map(&mut secret).collect()
}

/// The spellings of a secret that no output may contain.
fn spellings(secret: &str) -> Vec<String> {
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut all = vec![secret.to_owned(), Value::from(secret).to_string().trim_matches('"').to_owned(), percent, hex];
    for prefix in ["", "x", "xy"] {
        // Without the letters at the ends, which depend on what is around.
        let skipped = (3 - prefix.len()) % 3;
        let whole = &secret.as_bytes()[skipped..];
        let whole = &whole[..whole.len() - whole.len() % 3];
        all.push(STANDARD.encode(whole));
        all.push(URL_SAFE_NO_PAD.encode(whole));
    }
    all.retain(|spelling| spelling.len() >= 6);
    all
}

#[tokio::test]
async fn secrets_of_script_tools_do_not_leave() {
    let folder = Folder::new();
    let audit = folder.path("audit.jsonl");
    let config = config(&folder, &format!("[audit]\nfile = {audit:?}\n"));
    let secrets = random_secrets(16);
    let names: Vec<String> = (0..secrets.len()).map(|index| format!("S{index}")).collect();
    let needed = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let all = "const all = Object.values(config).flatMap((s) => [s, JSON.stringify(s), encodeURIComponent(s), btoa(unescapeBytes('' , s)), \
               btoa(unescapeBytes('x', s)), btoa(unescapeBytes('xy', s)), new TextEncoder().encode(s).toHex(), new TextEncoder().encode(s).toBase64({ alphabet: 'base64url' })]);";
    let helper = "function unescapeBytes(prefix, text) { return prefix + [...new TextEncoder().encode(text)].map((b) => String.fromCharCode(b)).join(''); }";
    let file = |name: &str, body: &str| {
        let text = format!(
            "/*---\ndescription = \"A tool of a test\"\nsecrets = [{needed}]\n---*/\n{helper}\n{EXECUTE} {{ {all} {body} }}\n"
        );
        std::fs::write(folder.path(&format!("tools/{name}.js")), text).expect("written");
    };
    file("result", "return all;");
    file("log", "for (const one of all) console.log(one); return all.length;");
    file("throws", "throw new Error(all.join(' '));");
    file("fails", "return { success: false, error: all.join(' '), details: all };");
    file("code", "const e = new TypeError(all[0]); e.code = all[1]; throw e;");
    // The text is cut in the middle of a secret, at each of its places.
    file(
        "cut",
        "const at = params.at; throw new Error('p'.repeat(8096 - at) + Object.values(config)[at % 16] + 'q'.repeat(9000));",
    );
    // Until now the server does not know them.
    let server = Server::start(&["--config", &config]).await;
    for (name, secret) in names.iter().zip(&secrets) {
        let set = command(&["secret", "set", name, "--config", &config], secret).await;
        assert_eq!(set.code, Some(0), "{secret:?}: {set:?}");
    }
    let mut ways: Vec<(String, String)> = Vec::new();
    for tool in ["result", "log", "throws", "fails", "code"] {
        let answer = server.execute(&format!("try {{ return await callTool('tools:{tool}', {{}}) }} catch (e) {{ return [e.message, e.code, e.details] }}")).await;
        ways.push((tool.to_owned(), answer.to_string()));
        let answer = server.execute(&format!("return await callTool('tools:{tool}', {{}})")).await;
        ways.push((format!("{tool}, uncaught"), answer.to_string()));
    }
    for at in (4..200).step_by(7) {
        let answer = server.execute(&format!("return await callTool('tools:cut', {{ at: {at} }})")).await;
        ways.push((format!("cut at {at}"), answer.to_string()));
    }
    ways.push(("standard error".into(), server.end().await));
    for words in [["history", "--json"], ["secret", "list"], ["config", "show"]] {
        let printed = command(&[words[0], words[1], "--config", &config], "").await;
        ways.push((words.join(" "), printed.stdout + &printed.stderr));
    }
    let listed = command(&["history", "--json", "--config", &config], "").await;
    for run in listed.json_lines().iter().take(12) {
        let id = run["id"].as_str().expect("an id");
        let shown = command(&["history", "show", id, "--json", "--config", &config], "").await;
        ways.push((format!("history show {id}"), shown.stdout + &shown.stderr));
    }
    for file in ["audit.jsonl", "state/codecall.db", "state/codecall.db-wal"] {
        let bytes = std::fs::read(folder.path(file)).unwrap_or_default();
        ways.push((file.to_owned(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    assert!(ways.iter().any(|(way, text)| way == "result" && text.contains("[secret]")), "{:?}", ways[0]);
    for secret in &secrets {
        // A text that is cut has no part of a secret that says much.
        let beginning: String = secret.chars().take(12).collect();
        for (way, text) in ways.iter().filter(|(way, _)| way.starts_with("cut at")) {
            assert!(!text.contains(&beginning), "{way}: {secret:?}: {}", around(text, &beginning));
        }
        for spelling in spellings(secret) {
            for (way, text) in &ways {
                assert!(!text.contains(&spelling), "{way}: {secret:?} as {spelling:?}: {}", around(text, &spelling));
            }
        }
    }
}

fn around(text: &str, part: &str) -> String {
    let at = text.find(part).unwrap_or_default();
    let (start, end) = (
        text.floor_char_boundary(at.saturating_sub(60)),
        text.ceil_char_boundary((at + part.len() + 300).min(text.len())),
    );
    text[start..end].to_owned()
}
