//! An MCP server whose payments must not be made twice. It notes each call, in memory and in a file.

use crate::upstream_server::tool;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The header that says which server calls.
pub const SERVER: &str = "x-faults-server";
/// How many payments a server makes at once.
pub const PERMITS: usize = 2;

/// A call that has arrived.
#[derive(Clone, Debug)]
pub struct Call {
    pub at: Instant,
    /// When it was answered.
    pub answered: Option<Instant>,
    pub server: String,
    pub tool: String,
    pub run: String,
    pub step: String,
    /// The number of the step: a script makes them in order.
    pub order: u64,
    pub attempt: u64,
    /// The idempotency key.
    pub key: String,
}

impl Call {
    /// Whether it must not be made twice.
    pub fn pays(&self) -> bool {
        ["pay", "transfer"].contains(&self.tool.as_str())
    }
}

#[derive(Default)]
struct Book {
    calls: Vec<Call>,
    /// Numbers of calls whose answers wait.
    held: HashSet<usize>,
    file: Option<std::fs::File>,
}

/// A running server. It ends with the runtime of the test.
#[derive(Clone, Default)]
pub struct Bank(Arc<Mutex<Book>>);

impl Bank {
    /// Starts it. Calls are also lines of JSON in a file.
    pub async fn start(file: &str) -> (Self, SocketAddr) {
        let bank = Self::default();
        bank.book().file = Some(std::fs::File::create(file).expect("a file"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = axum::Router::new().route("/mcp", post(answer)).with_state(bank.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (bank, address)
    }

    /// All calls, in the order in which they have arrived.
    pub fn calls(&self) -> Vec<Call> {
        self.book().calls.clone()
    }

    /// Returns a server with so many payments under way that others wait for permits.
    pub fn busy(&self) -> Option<String> {
        let book = self.book();
        let mut open: HashMap<&str, usize> = HashMap::new();
        for call in book.calls.iter().filter(|call| call.tool == "pay" && call.answered.is_none()) {
            *open.entry(&call.server).or_default() += 1;
        }
        open.into_iter().find(|(_, open)| *open >= PERMITS).map(|(server, _)| server.to_owned())
    }

    /// Holds the answers of calls of a server that are under way, until [`Bank::release`].
    pub fn hold(&self, server: &str) {
        let mut book = self.book();
        let is_open = |call: &Call| call.server == server && call.answered.is_none();
        let held: Vec<usize> = (0..book.calls.len()).filter(|&number| is_open(&book.calls[number])).collect();
        book.held.extend(held);
    }

    pub fn release(&self) {
        self.book().held.clear();
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call. Returns its number.
    fn note(&self, server: &str, params: &Value) -> usize {
        let arguments = &params["arguments"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let call = Call {
            at: Instant::now(),
            answered: None,
            server: server.to_owned(),
            tool: text(&params["name"]),
            run: text(&arguments["run"]),
            step: text(&arguments["step"]),
            order: arguments["order"].as_u64().unwrap_or_default(),
            attempt: arguments["attempt"].as_u64().unwrap_or_default(),
            key: text(&params["_meta"]["codecall/idempotencyKey"]),
        };
        let mut book = self.book();
        if let Some(file) = &mut book.file {
            let line =
                json!({"server": server, "tool": call.tool, "run": call.run, "step": call.step, "key": call.key});
            let _ = writeln!(file, "{line}");
        }
        book.calls.push(call);
        book.calls.len() - 1
    }

    fn is_paid(&self, run: &Value, step: &Value) -> bool {
        self.book().calls.iter().any(|call| call.pays() && run == &call.run && step == &call.step)
    }
}

/// Describes calls, for a report.
pub fn describe(calls: &[&Call], began: Instant) -> String {
    let mut text = String::new();
    for call in calls {
        let ms = call.at.saturating_duration_since(began).as_millis();
        let _ = write!(text, " [{ms} ms: {} of step {} by {}, key {}]", call.tool, call.step, call.server, call.key);
    }
    text
}

async fn answer(State(bank): State<Bank>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let arguments = &message["params"]["arguments"];
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "bank", "version": "1"},
        }),
        Some("tools/list") => {
            let annotated = |name: &str, annotations: Value| {
                let mut tool = tool(name, "A tool of a bank");
                tool["annotations"] = annotations;
                tool
            };
            json!({"tools": [
                annotated("read", json!({"readOnlyHint": true})),
                annotated("find", json!({"readOnlyHint": true})),
                annotated("add", json!({"readOnlyHint": false, "idempotentHint": true})),
                annotated("pay", json!({"readOnlyHint": false, "idempotentHint": false})),
                annotated("transfer", json!({"readOnlyHint": false, "idempotentHint": false})),
            ]})
        }
        Some("tools/call") => {
            let server = headers.get(SERVER).and_then(|name| name.to_str().ok()).unwrap_or_default();
            let number = bank.note(server, &message["params"]);
            tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default())).await;
            while bank.book().held.contains(&number) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let mut content = arguments.clone();
            content["paid"] = bank.is_paid(&arguments["run"], &arguments["step"]).into();
            if let Some(call) = bank.book().calls.get_mut(number) {
                call.answered = Some(Instant::now());
            }
            json!({"content": [{"type": "text", "text": content.to_string()}]})
        }
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}
