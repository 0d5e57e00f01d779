//! The spans of requests to the JSON endpoints. Requests of MCP have spans of their own.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use codecall_base::telemetry::{self, Span, TraceContext};

/// Paths whose requests have spans: not those that monitors and pages ask again and again.
const PATHS: [&str; 3] = ["/v1/evaluate", "/v1/tools/typescript", "/v1/chat/completions"];

/// Answers a request in a span, whose parent is in its headers.
pub async fn in_span(request: Request, next: Next) -> Response {
    let Some(mut span) = begin(&request) else { return next.run(request).await };
    let response = telemetry::within(span.context(), next.run(request)).await;
    let status = response.status();
    span.set("http.response.status_code", u64::from(status.as_u16()));
    if status.is_server_error() {
        span.fail(status.as_str(), status.canonical_reason().unwrap_or_default());
    }
    response
}

fn begin(request: &Request) -> Option<Span> {
    let path = PATHS.into_iter().find(|path| *path == request.uri().path())?;
    let header = |name: &str| request.headers().get(name)?.to_str().ok();
    let parent = header("traceparent").and_then(|parent| TraceContext::parse(parent, header("tracestate")));
    let mut span = Span::begin_request(parent, || format!("{} {path}", request.method()));
    span.set("http.request.method", request.method().as_str());
    span.set("http.route", path);
    Some(span)
}
