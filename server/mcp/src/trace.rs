//! The spans of requests, as the semantic conventions for MCP have them.

use super::interact::Subject;
use super::suspended::Answer;
use axum::http::request::Parts;
use codecall_base::telemetry::{Span, TraceContext};
use codecall_base::text::truncate;
use codecall_base::tool::MAX_NAME_BYTES;
use rmcp::RoleServer;
use rmcp::model::ServerResult;
use rmcp::service::RequestContext;

/// Begins the span of a request. Its parent is in the `_meta` of the request, or else in the headers of HTTP.
pub fn begin(context: &RequestContext<RoleServer>, subject: &Subject) -> Span {
    let parts = context.extensions.get::<Parts>();
    let header = |name: &str| parts?.headers.get(name)?.to_str().ok();
    let parent = context.meta.get_traceparent().map(|parent| (parent, context.meta.get_tracestate()));
    let parent = parent.or_else(|| Some((header("traceparent")?, header("tracestate"))));
    let parent = parent.and_then(|(parent, state)| TraceContext::parse(parent, state));
    let name = truncate(&subject.name, MAX_NAME_BYTES);
    let has_many_values = subject.method == "resources/read";
    let span_name = || if has_many_values { subject.method.to_owned() } else { format!("{} {name}", subject.method) };
    let mut span = Span::begin_request(parent, span_name);
    if !span.is_recorded() {
        return span;
    }
    span.set("mcp.method.name", subject.method);
    match subject.method {
        "tools/call" => {
            span.set("gen_ai.operation.name", "execute_tool");
            span.set("gen_ai.tool.name", name);
        }
        "prompts/get" => span.set("gen_ai.prompt.name", name),
        _ => span.set("mcp.resource.uri", name),
    }
    span.set("jsonrpc.request.id", context.id.to_string());
    if let Some(version) = context.protocol_version() {
        span.set("mcp.protocol.version", version.as_str());
    }
    if let Some(session) = header("mcp-session-id") {
        span.set("mcp.session.id", session);
    }
    span.set("network.transport", if parts.is_some() { "tcp" } else { "pipe" });
    span
}

/// Adds to a span how its request is answered.
pub fn describe_answer(span: &mut Span, answer: &Answer) {
    match answer {
        Ok(ServerResult::CallToolResult(result)) if result.is_error == Some(true) => {
            span.fail("tool_error", "The tool says that it has failed");
        }
        Ok(_) => {}
        Err(error) => {
            let code = error.code.0.to_string();
            span.set("rpc.response.status_code", code.as_str());
            span.fail(&code, &error.message);
        }
    }
}
