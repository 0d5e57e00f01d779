//! Doors for the targets of `fuzz/`: what a client and an upstream reach, without sockets and processes.

use crate::config::{StdioConfig, UpstreamConfig, UpstreamKind};
use crate::error::Error;
use crate::hub::Hub;
use crate::upstream::Upstream;
use crate::upstream::session::McpServer;
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
    Some(McpServer::over(app, config, streams))
}
