//! An MCP server over HTTP, whose tools a test can change, and which can want a token.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Decides about a request by its headers and its body; `None`: it is answered.
pub type Check = Arc<dyn Fn(&HeaderMap, &Value) -> Option<Response> + Send + Sync>;

/// How long the tool `slow` takes.
const SLOW: Duration = Duration::from_secs(5);

/// A running server. It ends with the runtime of the test.
#[derive(Clone)]
pub struct UpstreamServer {
    pub address: SocketAddr,
    tools: Arc<Mutex<Vec<Value>>>,
    /// The results of other methods, and of calls in place of their input.
    results: Arc<Mutex<BTreeMap<String, Value>>>,
    /// The methods of all requests that were answered; of calls, the name of the tool.
    pub requests: Arc<Mutex<Vec<String>>>,
    check: Check,
}

impl UpstreamServer {
    /// Starts a server whose tools answer with their input.
    pub async fn start(tools: Vec<Value>) -> Self {
        Self::start_with(tools, Router::new(), |_| Arc::new(|_, _| None)).await
    }

    /// Does the same with more routes, and a check that knows the address.
    pub async fn start_with(tools: Vec<Value>, routes: Router, check: impl FnOnce(SocketAddr) -> Check) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (tools, requests, results) = (Arc::new(Mutex::new(tools)), Arc::default(), Arc::default());
        let server = Self { address, tools, results, requests, check: check(address) };
        let router = Router::new().route("/mcp", post(answer)).with_state(server.clone()).merge(routes);
        tokio::spawn(async move { axum::serve(listener, router).await });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn set_tools(&self, tools: Vec<Value>) {
        *self.tools.lock().expect("not poisoned") = tools;
    }

    /// Sets the result of a method.
    pub fn answer(&self, method: &str, result: Value) {
        self.results.lock().expect("not poisoned").insert(method.to_owned(), result);
    }

    /// How many calls were answered.
    pub fn calls(&self) -> usize {
        self.requests.lock().expect("not poisoned").iter().filter(|request| request.starts_with("tools/call")).count()
    }
}

async fn answer(State(server): State<UpstreamServer>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    if let Some(refusal) = (server.check)(&headers, &message) {
        return refusal;
    }
    let method = message["method"].as_str().unwrap_or_default();
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let params = &message["params"];
    let noted = format!("{method} {}", params["name"].as_str().unwrap_or_default());
    server.requests.lock().expect("not poisoned").push(noted.trim_end().to_owned());
    let set = server.results.lock().expect("not poisoned").get(method).cloned();
    let result = match method {
        _ if set.is_some() => set.unwrap_or_default(),
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "upstream", "version": "1"},
        }),
        "tools/list" => json!({"tools": *server.tools.lock().expect("not poisoned")}),
        "tools/call" if params["name"] == "slow" => {
            tokio::time::sleep(SLOW).await;
            json!({"content": [{"type": "text", "text": "late"}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": params["arguments"].to_string()}]}),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

/// A tool without parameters.
pub fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}
