//! A mock model server over HTTP with scripted responses, and processes of the program for one request each.

use crate::support::*;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// The API key of the model server.
pub const KEY: &str = "sk-model-0123456789";

/// A scripted response.
#[derive(Clone)]
pub enum ModelReply {
    /// A call of `run_code`.
    Code(&'static str),
    /// Text and a call of `run_code`.
    TextAndCode(&'static str, &'static str),
    /// A final answer.
    Text(&'static str),
    /// Any message.
    Message(Value),
    /// An error.
    Error(u16, Value),
    /// A body that is not JSON.
    InvalidBody,
    /// No response.
    NoResponse,
}

#[derive(Clone)]
struct Script {
    replies: Arc<Mutex<VecDeque<ModelReply>>>,
    requests: Arc<Mutex<Vec<Value>>>,
}

/// The mock model server.
pub struct Model {
    /// The value of `model.url`.
    pub url: String,
    script: Script,
}

impl Model {
    pub async fn start(replies: impl IntoIterator<Item = ModelReply>) -> Self {
        let script = Script { replies: Arc::new(Mutex::new(replies.into_iter().collect())), requests: Arc::default() };
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route(
                "/v1/models",
                get(|| async { Json(json!({"object": "list", "data": [{"id": "tiny", "object": "model"}]})) }),
            )
            .with_state(script.clone());
        Self { url: format!("{}/v1", serve(router).await), script }
    }

    /// Returns all requests, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.script.requests.lock().expect("not poisoned").clone()
    }

    /// Returns the number of responses that were not requested.
    pub fn unused_replies(&self) -> usize {
        self.script.replies.lock().expect("not poisoned").len()
    }
}

/// Serves on a free port. Returns the address.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn complete(State(script): State<Script>, headers: HeaderMap, body: Bytes) -> Response {
    let question: Value = serde_json::from_slice(&body).expect("JSON");
    let streams = question["stream"] == true;
    let counts = question["stream_options"]["include_usage"] == true;
    script.requests.lock().expect("not poisoned").push(question);
    if headers.get("authorization").is_none_or(|given| given != &format!("Bearer {KEY}")) {
        let error = json!({"error": {"message": format!("wrong key, not {KEY}"), "type": "authentication_error"}});
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    let reply = script.replies.lock().expect("not poisoned").pop_front();
    let call = |code: &str| {
        let arguments = json!({"code": code}).to_string();
        json!([{"id": "call_1", "type": "function", "function": {"name": "run_code", "arguments": arguments}}])
    };
    let message = match reply.expect("a question too many") {
        ModelReply::Code(code) => json!({"role": "assistant", "content": null, "tool_calls": call(code)}),
        ModelReply::TextAndCode(text, code) => json!({"role": "assistant", "content": text, "tool_calls": call(code)}),
        ModelReply::Text(text) => json!({"role": "assistant", "content": text}),
        ModelReply::Message(message) => message,
        ModelReply::Error(status, error) => {
            let status = StatusCode::from_u16(status).expect("a status");
            return (status, [("retry-after", "7")], Json(error)).into_response();
        }
        ModelReply::InvalidBody => return "<html>".into_response(),
        ModelReply::NoResponse => return std::future::pending().await,
    };
    let finish_reason = if message["tool_calls"].is_null() { "stop" } else { "tool_calls" };
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
        "prompt_tokens_details": {"cached_tokens": 3}});
    if !streams {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason});
        let whole = json!({"id": "chatcmpl-model", "object": "chat.completion", "created": 1, "model": "tiny-1",
            "choices": [choice], "usage": usage});
        return Json(whole).into_response();
    }
    let mut events = String::from(": a comment\n\n");
    let mut event = |delta: Value, finish_reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
        let chunk = json!({"id": "chatcmpl-model", "object": "chat.completion.chunk", "created": 1, "model": "tiny-1",
            "choices": [choice]});
        events.push_str(&format!("data: {chunk}\n\n"));
    };
    event(json!({"role": "assistant", "content": ""}), Value::Null);
    for piece in pieces(message["content"].as_str().unwrap_or_default()) {
        event(json!({"content": piece}), Value::Null);
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let function = json!({"name": call["function"]["name"], "arguments": ""});
        event(
            json!({"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}),
            Value::Null,
        );
        for piece in pieces(call["function"]["arguments"].as_str().unwrap_or_default()) {
            event(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), Value::Null);
        }
    }
    event(json!({}), finish_reason.into());
    if counts {
        let chunk = json!({"id": "chatcmpl-model", "object": "chat.completion.chunk", "choices": [], "usage": usage});
        events.push_str(&format!("data: {chunk}\n\n"));
    }
    events.push_str("data: [DONE]\n\n");
    ([("content-type", "text/event-stream; charset=utf-8")], events).into_response()
}

fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(7).map(|piece| piece.iter().collect()).collect()
}

/// A process of `codecall serve --http` on a free port.
pub struct HttpProcess {
    pub url: String,
    child: Child,
}

impl HttpProcess {
    pub async fn start(words: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        Self::start_as(command.args(["serve", "--http", "0"]).args(words)).await
    }

    /// Starts a command that serves over HTTP.
    pub async fn start_as(command: &mut Command) -> Self {
        let (line, child) = Self::start_saying(command, "listening on").await;
        let url =
            line.strip_prefix("codecall: listening on ").unwrap_or_else(|| panic!("says where: {line}")).to_owned();
        Self { url, child }
    }

    /// Starts a command and waits until it says something. Returns that line.
    #[expect(clippy::print_stderr, reason = "the harness captures it")]
    pub async fn start_saying(command: &mut Command, said: &str) -> (String, Child) {
        command.env_remove("RUST_LOG").kill_on_drop(true);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut line = String::new();
        // Warnings come before the address.
        while !line.contains(said) {
            let next = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("says where").expect("text");
            let Some(next) = next else { break };
            line = next;
        }
        // Later output must be read, or the server would block. The harness shows it if the test fails.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                eprintln!("{line}");
            }
        });
        (line, child)
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("runs")
    }

    /// Sends SIGTERM and returns the exit code.
    pub async fn end(mut self) -> Option<i32> {
        let id = self.child.id().expect("runs").to_string();
        assert!(Command::new("kill").arg(&id).status().await.expect("kill").success());
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await.expect("ends");
        ended.expect("ends").code()
    }
}

/// Starts a process for each request, so that no process has state of an earlier one.
pub async fn one_process_for_each_request(words: Vec<String>) -> (String, Arc<Mutex<u32>>) {
    let started = Arc::new(Mutex::new(0));
    let count = Arc::clone(&started);
    let answer = move |request: Request| {
        *count.lock().expect("not poisoned") += 1;
        forward(words.clone(), request)
    };
    (serve(Router::new().fallback(any(answer))).await, started)
}

async fn forward(words: Vec<String>, request: Request) -> Response {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let process = HttpProcess::start(&words).await;
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    let mut headers = head.headers;
    headers.remove("host");
    let path = head.uri.path_and_query().expect("a path");
    let sent = http_client().request(head.method, format!("{}{path}", process.url)).headers(headers).body(body).send();
    let response = sent.await.expect("an answer");
    let mut answer = Response::builder().status(response.status());
    for (name, value) in response.headers() {
        if name != "transfer-encoding" && name != "content-length" {
            answer = answer.header(name, value);
        }
    }
    let whole = response.bytes().await.expect("a body");
    drop(process);
    answer.body(Body::from(whole)).expect("an answer")
}

pub fn http_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(TIMEOUT).build().expect("a client")
}

/// Sends a request to an endpoint. Returns the status and the body.
pub async fn post_json(url: &str, path: &str, body: &Value) -> (u16, Value) {
    let sent =
        http_client().post(format!("{url}{path}")).header("content-type", "application/json").body(body.to_string());
    let response = sent.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("text");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
