//! Serving one client on a pair of streams, such as standard input and output.

use super::Handler;
use super::transport::LineTransport;
use codecall_base::error::Error;
use codecall_hub::hub::{Hub, LiveHub};
use rmcp::ServiceExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long requests in progress may take after the shutdown begins.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Serves MCP on standard input and output until the client disconnects, then closes the hub.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve_stdio(hub: Arc<Hub>) -> Result<(), Error> {
    serve_stdio_until(hub, &CancellationToken::new()).await
}

/// Does the same until `cancel` is cancelled: then no message is read any more, running scripts end with
/// `POOL_DISPOSED`, and their requests are answered.
///
/// # Errors
/// The streams fail or the client does not speak MCP.
pub async fn serve_stdio_until(hub: impl Into<LiveHub>, cancel: &CancellationToken) -> Result<(), Error> {
    let hub: LiveHub = hub.into();
    let stop = CancellationToken::new();
    let mut serving = std::pin::pin!(serve_until(hub.clone(), rmcp::transport::io::stdio_pipes(), stop.clone(), true));
    let served = tokio::select! {
        served = &mut serving => served,
        () = cancel.cancelled() => {
            hub.end_runs();
            // The answers are written before the connection is closed.
            let _ = tokio::time::timeout(GRACE_PERIOD, hub.answered()).await;
            stop.cancel();
            tokio::time::timeout(GRACE_PERIOD, serving).await.unwrap_or(Ok(()))
        }
    };
    hub.close().await;
    served
}

/// Serves MCP on any pair of streams. The hub stays open.
pub async fn serve<R, W>(hub: Arc<Hub>, streams: (R, W)) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    serve_until(hub.into(), streams, CancellationToken::new(), false).await
}

/// Serves MCP until the end of the input, which is also when `stop` is cancelled. `is_only`: the process has no other client.
async fn serve_until<R, W>(
    hub: LiveHub,
    (from, to): (R, W),
    stop: CancellationToken,
    is_only: bool,
) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    // The instructions, which are written for the first message, name the tools that are known.
    hub.get().recalled().await;
    let protocol = |error: &dyn std::fmt::Display| Error::Protocol(error.to_string());
    let handler = Handler { is_only, ..Handler::new(hub.clone()) };
    let (suspended, tasks) = (Arc::clone(&handler.suspended), handler.tasks.clone());
    let mut transport = LineTransport::new(from, to, stop);
    if is_only {
        // The client is gone, but has cancelled nothing: a durable run goes on in another process.
        transport = transport.with_end_of_work(move || hub.end_runs());
    }
    let served = match handler.serve(transport).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|error| protocol(&error)),
        // A client that disconnects before its first message is no error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(protocol(&error)),
    };
    // Nobody continues them.
    suspended.clear();
    tasks.shutdown();
    served
}
