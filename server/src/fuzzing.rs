//! Doors for the targets of `fuzz/` and for the sweep of `tests/`: what a client and an upstream reach, without
//! sockets and processes.

use crate::hub::Hub;
use codecall_base::error::Error;
use codecall_base::tool::ToolError;
use codecall_config::{Sanitization, StdioConfig, UpstreamConfig, UpstreamKind};
use codecall_tools::pipeline::{bound, sanitize};
use codecall_upstream::session::McpServer;
use codecall_upstream::{Upstream, incoming};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Serve one MCP client until its stream ends.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve<R, W>(hub: Arc<Hub>, streams: (R, W)) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    crate::front::serve(hub, streams).await
}

/// All paths of the HTTP server, as they are on a loopback address.
///
/// # Errors
/// The model server of the configuration cannot be used.
pub fn router(hub: &Arc<Hub>, cancel: &CancellationToken) -> Result<axum::Router, Error> {
    crate::http::router(hub, SocketAddr::from(([127, 0, 0, 1], 8931)), cancel)
}

/// The MCP server at the other end of these streams, as if it were a child process; it is not started
/// again. Absent: the configuration is one of another kind.
pub fn upstream<R, W>(app: &str, config: &UpstreamConfig, streams: (R, W)) -> Option<Arc<dyn Upstream>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let config: &StdioConfig = match &config.kind {
        UpstreamKind::Stdio(config) => config,
        UpstreamKind::Http(_) => return None,
    };
    Some(McpServer::from_streams(app, config, streams))
}

/// Everything that errors and texts are cleaned of.
const ALL: Sanitization = Sanitization { remove_stack_traces: true, remove_file_paths: true };

/// An error without host paths and stacks; `sent` is what the caller has sent.
#[must_use]
pub fn clean_error(error: ToolError, sent: &Value) -> ToolError {
    sanitize::error(bound::error(error), ALL, Some(sent))
}

/// A whole result that says that its tool has failed, cut and without host paths and stacks.
pub fn clean_failure(result: &mut Value, sent: &Value) {
    bound::content(result);
    sanitize::content(result, ALL, sent);
}

/// All texts of some data without host paths and stacks.
pub fn clean_data(value: &mut Value) {
    sanitize::data(value, ALL);
}

/// Read a message of an MCP server. Gives what it was taken for.
#[must_use]
pub fn incoming(text: &[u8]) -> &'static str {
    match incoming::parse(text) {
        incoming::Incoming::Message(_) => "message",
        incoming::Incoming::Malformed { .. } => "malformed",
        incoming::Incoming::Ignored => "ignored",
    }
}
