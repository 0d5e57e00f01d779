//! Connections over HTTP whose client waits for a tool: what is read before and after, and what a client that leaves does.

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A connection that is written to and read as bytes.
struct Connection(BufReader<TcpStream>);

/// A response: its first line, its headers in lower case, and its body.
struct Response {
    status: String,
    headers: String,
    body: String,
}

impl Connection {
    async fn open(server: &HttpProcess) -> Self {
        let address = server.url.trim_start_matches("http://").to_owned();
        Self(BufReader::new(TcpStream::connect(address).await.expect("connects")))
    }

    async fn write(&mut self, request: &str) {
        self.0.write_all(request.as_bytes()).await.expect("writes");
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(TIMEOUT, self.0.read_line(&mut line)).await.expect("in time").expect("reads");
        line
    }

    async fn bytes(&mut self, length: usize) -> String {
        let mut bytes = vec![0; length];
        tokio::time::timeout(TIMEOUT, self.0.read_exact(&mut bytes)).await.expect("in time").expect("reads");
        String::from_utf8(bytes).expect("UTF-8")
    }

    /// Whether the server has closed the connection, and nothing is left to read.
    async fn has_ended(&mut self) -> bool {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), self.0.read_to_end(&mut rest)).await;
        matches!(read, Ok(Ok(0)))
    }

    async fn response(&mut self) -> Response {
        let (status, mut headers) = (self.line().await, String::new());
        loop {
            match self.line().await.as_str() {
                "\r\n" => break,
                line => headers += &line.to_ascii_lowercase(),
            }
        }
        let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = String::new();
        if let Some(length) = length {
            body = self.bytes(length.trim().parse().expect("a length")).await;
        } else if headers.contains("transfer-encoding: chunked") {
            loop {
                let length = usize::from_str_radix(self.line().await.trim(), 16).expect("a length");
                body += &self.bytes(length).await;
                assert_eq!(self.line().await, "\r\n");
                if length == 0 {
                    break;
                }
            }
        } else {
            self.0.read_to_string(&mut body).await.expect("reads");
        }
        Response { status: status.trim().to_owned(), headers, body }
    }
}

impl Response {
    /// Returns what the script has returned whose call is answered.
    fn result(&self) -> Value {
        assert!(self.status.ends_with(" 200 OK"), "{}: {}", self.status, self.body);
        let message = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let message: Value = serde_json::from_str(message.unwrap_or(&self.body)).expect("JSON");
        let text = message["result"]["content"][0]["text"].as_str().expect("a text");
        serde_json::from_str::<Value>(text).expect("JSON")["result"].take()
    }
}

/// Returns the request of a call, with more headers.
fn call(version: &str, script: &str, progress: Option<u64>, headers: &str) -> String {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(token) = progress {
        meta["progressToken"] = token.into();
    }
    let params = json!({"name": "codecall_execute", "arguments": {"script": script}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    format!(
        "POST /mcp HTTP/{version}\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: codecall_execute\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/// Requests that are sent before the response to the first are answered in turn, whichever have to wait.
#[tokio::test]
async fn requests_on_one_connection_are_answered_in_turn() {
    let server = HttpProcess::start(&["--demo"]).await;
    let mut connection = Connection::open(&server).await;
    let waits = |number: u64| call("1.1", &format!("await sleep({}); return {number}", 200 / number), None, "");
    for round in 0..3 {
        connection.write(&[waits(1).as_str(), HEALTH, &waits(2), &waits(3), HEALTH].concat()).await;
        // A part of a request, whose rest comes while another waits.
        let last = waits(4);
        let (begin, rest) = last.split_at(100 * (round + 1));
        connection.write(begin).await;
        assert_eq!(connection.response().await.result(), 1);
        connection.write(rest).await;
        assert_eq!(connection.response().await.body, "ok\n");
        for number in [2, 3] {
            assert_eq!(connection.response().await.result(), number);
        }
        assert_eq!(connection.response().await.body, "ok\n");
        assert_eq!(connection.response().await.result(), 4);
    }
    // Events come when they happen, before the end of the response.
    let script = "mcpLog('info', 'begun'); await users.get({ id: 'usr_001' }); await sleep(300); return 'done'";
    connection.write(&call("1.1", script, Some(7), "")).await;
    let response = connection.response().await;
    assert!(response.headers.contains("content-type: text/event-stream"), "{}", response.headers);
    assert_eq!(response.body.matches("notifications/progress").count(), 2, "{}", response.body);
    assert_eq!(response.result(), "done");
    connection.write(HEALTH).await;
    assert_eq!(connection.response().await.body, "ok\n");
    assert_eq!(server.end().await, Some(0));
}

/// How a response ends, and whether the connection stays, is as the request wants it.
#[tokio::test]
async fn responses_have_the_form_that_the_request_wants() {
    let server = HttpProcess::start(&["--demo"]).await;
    let script = "await sleep(100); return 'late'";
    for (version, headers, stays) in [
        ("1.1", "", true),
        ("1.1", "Connection: keep-alive\r\n", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x-other\r\nConnection: Close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: close\r\n", false),
    ] {
        let mut connection = Connection::open(&server).await;
        connection.write(&call(version, script, None, headers)).await;
        let response = connection.response().await;
        assert_eq!(response.result(), "late", "HTTP/{version} {headers}");
        assert_eq!(response.headers.contains("transfer-encoding: chunked"), version == "1.1", "{}", response.headers);
        assert!(response.headers.contains("x-accel-buffering: no"), "{}", response.headers);
        if stays {
            connection.write(HEALTH).await;
            assert_eq!(connection.response().await.body, "ok\n", "HTTP/{version} {headers}");
        } else {
            assert!(connection.has_ended().await, "HTTP/{version} {headers}");
        }
    }
    // A client that asks before it sends the body.
    let mut connection = Connection::open(&server).await;
    let request = call("1.1", script, None, "Expect: 100-continue\r\n");
    let (head, body) = request.split_once("\r\n\r\n").expect("a head");
    connection.write(&format!("{head}\r\n\r\n")).await;
    assert_eq!(
        (connection.line().await.as_str(), connection.line().await.as_str()),
        ("HTTP/1.1 100 Continue\r\n", "\r\n")
    );
    connection.write(body).await;
    assert_eq!(connection.response().await.result(), "late");
    assert_eq!(server.end().await, Some(0));
}

/// Clients that send their calls slowly delay no others.
#[tokio::test]
async fn slow_clients_delay_nobody() {
    let server = HttpProcess::start(&["--demo"]).await;
    let request = call("1.1", "return 'here'", None, "");
    let (begin, rest) = request.split_at(request.len() - 1);
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut connection = Connection::open(&server).await;
        connection.write(begin).await;
        slow.push(connection);
    }
    let mut connection = Connection::open(&server).await;
    connection.write(&request).await;
    assert_eq!(connection.response().await.result(), "here");
    for connection in &mut slow {
        connection.write(rest).await;
        assert_eq!(connection.response().await.result(), "here");
    }
    assert_eq!(server.end().await, Some(0));
}

/// A call is cancelled when its client closes the connection. One whose client still waits is answered in a shutdown.
#[tokio::test]
async fn clients_leave_while_they_wait() {
    let server = HttpProcess::start(&["--demo"]).await;
    let until_active = async |runs: u64| {
        let began = Instant::now();
        loop {
            let metrics = http_client().get(format!("{}/metrics", server.url)).send().await.expect("an answer");
            let metrics = metrics.text().await.expect("a text");
            if metrics.lines().any(|line| line == format!("codecall_runs_active {runs}")) {
                return;
            }
            assert!(began.elapsed() < TIMEOUT, "{metrics}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waits = call("1.1", "await sleep(60_000)", None, "");
    let (mut leaves, mut stays) = (Connection::open(&server).await, Connection::open(&server).await);
    leaves.write(&waits).await;
    stays.write(&waits).await;
    until_active(2).await;
    drop(leaves);
    until_active(1).await;
    let (ended, response) = tokio::join!(server.end(), stays.response());
    assert!(response.body.contains("POOL_DISPOSED"), "{}", response.body);
    assert!(stays.has_ended().await);
    assert_eq!(ended, Some(0));
}
