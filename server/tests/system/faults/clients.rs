//! Clients that vanish, never read, send half of everything, or far too much.

use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A call of `codecall_execute` without a session, as bytes.
fn call(victim: &Victim, script: &str) -> Vec<u8> {
    let version = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "rude", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "codecall_execute", "arguments": {"script": script}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         mcp-protocol-version: {version}\r\nmcp-method: tools/call\r\nmcp-name: codecall_execute\r\ncontent-length: {}\r\n\r\n",
        victim.address(),
        body.len()
    );
    [head, body].concat().into_bytes()
}

async fn connect(victim: &Victim) -> TcpStream {
    TcpStream::connect(victim.address()).await.expect("a connection")
}

/// Reads until the other side closes the connection or is silent for a while.
async fn answered(stream: &mut TcpStream, timeout: Duration) -> String {
    let mut bytes = vec![0; 65_536];
    let read = tokio::time::timeout(timeout, stream.read(&mut bytes)).await;
    let length = read.ok().and_then(Result::ok).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Runs of disconnected clients end, and their threads are free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_vanish() {
    let victim = Victim::start(&[]).await;
    let mut check = connect(&victim).await;
    check.write_all(&call(&victim, "return 40 + 2")).await.expect("sent");
    let answer = answered(&mut check, TIMEOUT).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(check);
    let mut streams = Vec::new();
    for _ in 0..40 {
        let mut stream = connect(&victim).await;
        stream.write_all(&call(&victim, "for (let i = 0; ; i++) await null")).await.expect("sent");
        streams.push(stream);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(streams);
    victim.recovers("40 clients that vanish").await;
    victim.end().await;
}

/// Responses that clients do not read are dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_never_read() {
    let victim = Victim::start(&[]).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = connect(&victim).await;
        let calls = call(&victim, "return 'x'.repeat(900_000)").repeat(20);
        // The server stops reading while the client does not read responses.
        let _ = tokio::time::timeout(Duration::from_millis(500), stream.write_all(&calls)).await;
        streams.push(stream);
    }
    victim.answers().await;
    let held = victim.resources();
    assert!(held.megabytes < victim.before.megabytes + 300, "{held:?}, before: {:?}", victim.before);
    drop(streams);
    victim.recovers("20 clients that never read").await;
    victim.end().await;
}

/// A request that is not HTTP is refused at once, and a too long body before it has arrived.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_send_nonsense() {
    let victim = Victim::start(&[]).await;
    let head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", victim.address());
    let long_headers = "x-header: x\r\n".repeat(100_000);
    for (what, sent) in [
        ("letters", "SSH-2.0-OpenSSH_9.7\r\n\r\n".to_owned()),
        ("a length that is none", format!("{head}content-length: -1\r\n\r\n")),
        ("two lengths", format!("{head}content-length: 1\r\ncontent-length: 9\r\n\r\n{{")),
        ("a chunk that is none", format!("{head}transfer-encoding: chunked\r\n\r\nxyz\r\n")),
        ("endless headers", format!("{head}{long_headers}\r\n")),
        ("a body of 64 MB", format!("{head}content-length: 64000000\r\n\r\n{}", " ".repeat(1_000_000))),
    ] {
        let mut stream = connect(&victim).await;
        let (mut from, mut to) = stream.split();
        let writing = async {
            let _ = to.write_all(sent.as_bytes()).await;
            std::future::pending::<()>().await;
        };
        let mut bytes = vec![0; 4096];
        let read = tokio::select! {
            read = tokio::time::timeout(AT_ONCE, from.read(&mut bytes)) => read.expect("refused at once"),
            () = writing => unreachable!("it never ends"),
        };
        // A closed connection is a refusal too.
        let answer = String::from_utf8_lossy(&bytes[..read.unwrap_or(0)]).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
        drop(stream);
        victim.recovers(what).await;
    }
    victim.end().await;
}

/// Idle connections and incomplete requests leave room for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_never_finish() {
    let victim = Victim::start_as("ulimit -n 4096", &[]).await;
    for begun in [
        &b""[..],
        b"POST /mcp HTTP/1.1\r\nhost: local",
        b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{",
    ] {
        let mut streams = Vec::new();
        for _ in 0..500 {
            let mut stream = connect(&victim).await;
            let _ = stream.write_all(begun).await;
            streams.push(stream);
        }
        victim.answers().await;
        drop(streams);
        victim.recovers(&format!("500 times {:?}", String::from_utf8_lossy(begun))).await;
    }
    victim.end().await;
}

/// Over standard input: invalid lines are answered or skipped, and the end of input ends the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_are_not_messages() {
    let greeting = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "rude", "version": "1"}}});
    let deep = "[".repeat(100_000);
    let lines = [
        greeting.to_string(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        "no JSON".into(),
        "{}".into(),
        "[]".into(),
        "null".into(),
        deep,
        r#"{"jsonrpc":"1.0","id":2,"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/list"}"#.into(),
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":[]}"#.into(),
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.into(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#.into(),
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#.into(),
    ];
    let ended = finish(Command::new(PROGRAM).arg("serve"), &(lines.join("\n") + "\n")).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answers = ended.json_lines();
    assert!(answers.iter().any(|answer| answer["id"] == 4 && answer["result"]["tools"].is_array()), "{answers:?}");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

/// More connections than the process has descriptors: other requests are answered, meanwhile and afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_the_thousand() {
    let victim = Victim::start_as("ulimit -n 1024", &[]).await;
    let mut streams = Vec::new();
    // Each is accepted, queued or refused.
    let mut late = 0;
    while streams.len() < 2_000 && late < 20 {
        match tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(victim.address())).await {
            Ok(Ok(stream)) => streams.push(stream),
            Ok(Err(_)) | Err(_) => late += 1,
        }
    }
    assert!(streams.len() >= 300, "{} connections", streams.len());
    victim.answers().await;
    drop(streams);
    victim.recovers("thousands of connections").await;
    victim.end().await;
}

/// The number of abandoned sessions is limited; each takes some 60 KB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn that_begin_sessions() {
    let victim = Victim::start(&[]).await;
    let client = http_client();
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "rude", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    for _ in 0..1_500 {
        let request = client.post(format!("{}/mcp", victim.url)).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream").body(body.clone());
        let response = request.send().await.expect("an answer");
        assert!(!response.status().is_server_error() || response.status() == 503, "{}", response.status());
        let _ = response.bytes().await;
    }
    victim.answers().await;
    let held = victim.resources();
    assert!(held.megabytes < victim.before.megabytes + 150, "{held:?}, before: {:?}", victim.before);
    victim.end().await;
}
