//! MCP servers as child processes.

mod child;
mod last_lines;
mod transport;

use super::negotiate::{Plan, negotiate};
use super::ordered::Ordered;
use super::session::Shared;
pub use child::{Child, environment};
use codecall_config::StdioConfig;
pub use last_lines::LastLines;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio_util::sync::CancellationToken;
use transport::LineTransport;

/// Runs a child process until its connection ends, with messages of at most `max_bytes`. Returns the reason, and the
/// child to shut down.
pub async fn run(shared: &Shared, config: &StdioConfig, max_bytes: usize, plan: Plan) -> (String, Option<Child>) {
    let (child, stdin, stdout) = match Child::spawn(&shared.app, config, &shared.secrets, &shared.last_lines) {
        Ok(spawned) => spawned,
        Err(reason) => return (reason, None),
    };
    let reason = run_over(shared, (stdout, stdin), max_bytes, plan).await;
    (reason, Some(child))
}

/// Runs a session over two streams until they end. Returns the reason.
pub async fn run_over<R, W>(shared: &Shared, (from, to): (R, W), max_bytes: usize, plan: Plan) -> String
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (transport, mut reader) = LineTransport::new(BufReader::with_capacity(64 * 1024, from), to, max_bytes);
    let negotiation = negotiate(Ordered::new(transport, Arc::clone(&shared.notifications)), plan);
    let reason = shared.run_session(negotiation, CancellationToken::new()).await;
    // If the reader has ended the connection, its reason is more precise.
    let read = tokio::time::timeout(Duration::from_millis(50), &mut reader).await;
    reader.abort();
    match read {
        Ok(Ok(Err(precise))) => precise,
        Ok(Ok(Ok(())) | Err(_)) | Err(_) => reason,
    }
}

#[cfg(all(test, unix))]
mod tests;
