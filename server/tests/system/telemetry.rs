//! Traces: a collector that gets them, and what they have in common with those of clients and upstreams.

use crate::model_server::{HttpProcess, http_client, serve};
use crate::support::*;
use crate::upstream_server::{UpstreamServer, tool};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::process::Command;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
const SECRET: &str = "sk-collector-0123456789";

/// A collector that speaks OTLP in JSON.
#[derive(Clone, Default)]
struct Collector {
    spans: Arc<Mutex<Vec<Value>>>,
    resources: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// Starts it. It refuses the first batch for a moment. Returns it and its address.
    async fn start() -> (Self, String) {
        let collector = Self::default();
        let busy = Arc::new(Mutex::new(true));
        let take = move |State(collector): State<Self>, headers: HeaderMap, body: Bytes| async move {
            if std::mem::take(&mut *busy.lock().expect("not poisoned")) {
                return (axum::http::StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]);
            }
            assert_eq!(headers["content-type"], "application/json");
            assert_eq!(headers["authorization"], format!("Bearer {SECRET}").as_str());
            let request: Value = serde_json::from_slice(&body).expect("JSON");
            for resource in request["resourceSpans"].as_array().expect("a list") {
                collector.resources.lock().expect("not poisoned").push(resource["resource"].clone());
                for scope in resource["scopeSpans"].as_array().expect("a list") {
                    let spans = scope["spans"].as_array().expect("a list");
                    collector.spans.lock().expect("not poisoned").extend(spans.iter().cloned());
                }
            }
            (axum::http::StatusCode::OK, [("retry-after", "0")])
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        let url = serve(router).await;
        (collector, url)
    }

    fn spans(&self) -> Vec<Value> {
        self.spans.lock().expect("not poisoned").clone()
    }

    fn span(&self, name: &str) -> Value {
        let spans = self.spans();
        spans.iter().find(|span| span["name"] == name).cloned().unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
    }
}

fn attribute(span: &Value, key: &str) -> Option<Value> {
    let attributes = span["attributes"].as_array().expect("a list");
    let value = &attributes.iter().find(|attribute| attribute["key"] == key)?["value"];
    value.get("stringValue").or_else(|| value.get("intValue")).cloned()
}

fn with_collector<'a>(command: &'a mut Command, url: &str) -> &'a mut Command {
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer%20{SECRET}"))
        .env("OTEL_SERVICE_NAME", "tools-of-a-test")
}

/// An upstream that notes the `_meta` of its calls.
async fn upstream() -> (UpstreamServer, Arc<Mutex<Vec<Value>>>) {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let notes = Arc::clone(&seen);
    let check = move |_| -> crate::upstream_server::Check {
        Arc::new(move |_: &HeaderMap, message: &Value| {
            if message["method"] == "tools/call" {
                notes.lock().expect("not poisoned").push(message["params"]["_meta"].clone());
            }
            None
        })
    };
    (UpstreamServer::start_with(vec![tool("echo", "Says it again")], Router::new(), check).await, seen)
}

#[tokio::test]
async fn a_run_is_a_trace_that_upstreams_continue() {
    let (collector, url) = Collector::start().await;
    let (upstream, seen) = upstream().await;
    let folder = Folder::new();
    let config = json!({"mcpServers": {"up": {"url": upstream.url()}}});
    let config = folder.file("config.json", config.to_string());
    let script = format!("await callTool('up:echo', {{key: '{SECRET}'}}); await callTool('up:none', {{}})");
    let script = folder.file("script.js", script);
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--local", "--config", &config, &script]);
    let finished = finish(with_collector(&mut command, &url), "").await;
    assert_eq!(finished.code, Some(1), "{finished:?}");

    let (run, call) = (collector.span("run"), collector.span("execute_tool up:echo"));
    let request = collector.span("tools/call echo");
    assert_eq!(run["parentSpanId"], "");
    assert_eq!((&call["parentSpanId"], &call["traceId"]), (&run["spanId"], &run["traceId"]));
    assert_eq!((&request["parentSpanId"], &request["kind"]), (&call["spanId"], &json!(3)));
    let [meta] = seen.lock().expect("not poisoned").clone().try_into().expect("one call");
    let id = |span: &Value, key: &str| span[key].as_str().expect("an id").to_owned();
    assert_eq!(meta["traceparent"], format!("00-{}-{}-01", id(&request, "traceId"), id(&request, "spanId")));
    assert_eq!(attribute(&call, "gen_ai.operation.name"), Some("execute_tool".into()));
    assert_eq!(attribute(&request, "server.address"), Some("127.0.0.1".into()));

    assert_eq!(attribute(&run, "codecall.run.status"), Some("tool_error".into()));
    let failed = collector.span("execute_tool up:none");
    assert_eq!(
        (attribute(&failed, "error.type"), &failed["status"]["code"]),
        (Some("TOOL_NOT_FOUND".into()), &json!(2))
    );
    let resource = collector.resources.lock().expect("not poisoned")[0].to_string();
    assert!(resource.contains("tools-of-a-test"), "{resource}");
    // Inputs and results are not recorded.
    assert!(!json!(collector.spans()).to_string().contains("arguments"));
}

#[tokio::test]
async fn a_client_s_trace_goes_on() {
    let (collector, url) = Collector::start().await;
    let (upstream, seen) = upstream().await;
    let folder = Folder::new();
    let config = json!({"mcpServers": {"up": {"url": upstream.url()}}});
    let config = folder.file("config.json", config.to_string());
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--http", "0", "--config", &config])
        .env("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
    let server = HttpProcess::start_as(with_collector(&mut command, &url)).await;
    let call = |meta: Value| {
        let arguments = json!({"script": format!("return await callTool('up:echo', {{key: '{SECRET}'}})")});
        let mut meta = meta;
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "a-client", "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let params = json!({"name": "codecall_execute", "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        http_client()
            .post(format!("{}/mcp", server.url))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "codecall_execute")
            .body(body.to_string())
    };
    let answer = call(json!({"traceparent": PARENT, "tracestate": "vendor=1"})).send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap_or_default());
    until("the span", || collector.spans().iter().any(|span| span["name"] == "tools/call codecall_execute")).await;
    let request = collector.span("tools/call codecall_execute");
    assert_eq!((&request["traceId"], &request["parentSpanId"]), (&json!(TRACE), &json!("00f067aa0ba902b7")));
    assert_eq!((&request["kind"], &request["traceState"]), (&json!(2), &json!("vendor=1")));
    let ids: Vec<Value> = collector.spans().iter().map(|span| span["traceId"].clone()).collect();
    assert!(ids.len() == 4 && ids.iter().all(|id| *id == TRACE), "{:#?}", collector.spans());
    let meta = seen.lock().expect("not poisoned")[0].clone();
    assert!(meta["traceparent"].as_str().is_some_and(|parent| parent.contains(TRACE)), "{meta}");
    assert_eq!(meta["tracestate"], "vendor=1");
    // The operator asks for contents, which have no secrets.
    let arguments = attribute(&collector.span("execute_tool up:echo"), "gen_ai.tool.call.arguments");
    let arguments = arguments.expect("arguments").to_string();
    assert!(arguments.contains("key") && !json!(collector.spans()).to_string().contains(SECRET), "{arguments}");

    // The header of HTTP counts without a member; a client that does not sample is followed.
    let spans = collector.spans().len();
    let unsampled = PARENT.replace("-01", "-00");
    let answer = call(json!({})).header("traceparent", &unsampled).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let meta = seen.lock().expect("not poisoned")[1].clone();
    let parent = meta["traceparent"].as_str().expect("passed on");
    assert!(parent.contains(TRACE) && parent.ends_with("-00"), "{parent}");
    assert_eq!(server.end().await, Some(0));
    assert_eq!(collector.spans().len(), spans);
}

#[tokio::test]
async fn a_collector_that_is_not_there_harms_nothing() {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--demo", "-"]);
    let finished = finish(with_collector(&mut command, "http://127.0.0.1:1"), "return 1").await;
    assert_eq!((finished.code, finished.json()["result"].clone()), (Some(0), json!(1)));
    assert!(finished.stderr.contains("the collector has not taken spans"), "{}", finished.stderr);
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--demo", "-"]).env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let finished = finish(command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), "return 1").await;
    assert_eq!((finished.code, finished.json()["result"].clone()), (Some(0), json!(1)));
    assert!(finished.stderr.contains("the protocol grpc is not supported"), "{}", finished.stderr);
}
