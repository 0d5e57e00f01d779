//! Entry points for the targets of `fuzz/` and for the sweep of `tests/`: what clients and upstreams can reach, without
//! sockets and processes.

use crate::Hub;
use codecall_base::error::Error;
use codecall_base::tool::ToolError;
use codecall_config::{Sanitization, UpstreamConfig, UpstreamKind};
use codecall_tools::pipeline::bound;
use codecall_tools::pipeline::sanitize::Sanitizer;
use codecall_upstream::session::McpServer;
use codecall_upstream::{Upstream, incoming};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Serves one MCP client until its stream ends.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve<R, W>(hub: Arc<Hub>, streams: (R, W)) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    codecall_mcp::serve(hub, streams).await
}

/// Returns the router of an HTTP server on a loopback address.
///
/// # Errors
/// The configuration of the model server is unusable.
pub fn router(hub: &Arc<Hub>, cancel: &CancellationToken) -> Result<axum::Router, Error> {
    let address = SocketAddr::from(([127, 0, 0, 1], 8931));
    codecall_http::router(&Arc::clone(hub).into(), address, None, cancel)
}

/// Returns the upstream at the other end of these streams, like a child process that is not restarted; `None` if the
/// configuration is not one of a child process.
pub fn upstream<R, W>(app: &str, config: &UpstreamConfig, streams: (R, W)) -> Option<Arc<dyn Upstream>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    match &config.kind {
        UpstreamKind::Stdio(_) => Some(McpServer::from_streams(app, config, streams)),
        UpstreamKind::Http(_) => None,
    }
}

/// Sanitization with all options.
const ALL: Sanitization = Sanitization { remove_stack_traces: true, remove_file_paths: true };

/// Removes host paths and stacks from an error. `sent` is the input of the call.
#[must_use]
pub fn clean_error(error: ToolError, sent: &Value) -> ToolError {
    Sanitizer::new(ALL, []).error(bound::error(error), Some(sent))
}

/// Truncates the result of a tool that has failed, and removes host paths and stacks from it.
pub fn clean_failure(result: &mut Value, sent: &Value) {
    bound::content(result);
    Sanitizer::new(ALL, []).content(result, sent);
}

/// Removes host paths and stacks from all strings of a value.
pub fn clean_data(value: &mut Value) {
    Sanitizer::new(ALL, []).data(value);
}

/// Parses a message of an MCP server. Returns how it was classified.
#[must_use]
pub fn incoming(text: &[u8]) -> &'static str {
    let _ = incoming::parse(text, |_| true);
    match incoming::parse(text, |_| false) {
        incoming::Incoming::Message(_) => "message",
        incoming::Incoming::Mended(_) => "mended",
        incoming::Incoming::Malformed { .. } => "malformed",
        incoming::Incoming::Ignored => "ignored",
    }
}
