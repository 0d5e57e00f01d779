//! MCP servers as child processes.

mod child;
mod relay;

use super::session::Shared;
use crate::config::{Lifecycle, StdioConfig};
pub use child::Child;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

/// One life of a child. Gives why it is over, and the child to be ended.
pub async fn live(shared: &Shared, config: &StdioConfig, lifecycle: Lifecycle) -> (String, Option<Child>) {
    let (child, stdin, stdout) = match Child::spawn(&shared.app, config) {
        Ok(spawned) => spawned,
        Err(reason) => return (reason, None),
    };
    let reason = over(shared, (stdout, stdin), config.max_message_bytes, lifecycle).await;
    (reason, Some(child))
}

/// Speak over these streams until they end. Gives the reason.
pub async fn over<R, W>(shared: &Shared, (from, to): (R, W), longest: usize, lifecycle: Lifecycle) -> String
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (ours, theirs) = tokio::io::duplex(256 * 1024);
    let mut relay = tokio::spawn(relay::relay(BufReader::with_capacity(64 * 1024, from), theirs, longest));
    let transport = AsyncRwTransport::new_client(ours, to).with_max_line_length(longest.saturating_add(1024));
    let reason = shared.talk(transport, lifecycle).await;
    // The relay knows better why the connection has ended, where it has ended it.
    let relayed = tokio::time::timeout(Duration::from_millis(50), &mut relay).await;
    relay.abort();
    match relayed {
        Ok(Ok(Err(better))) => better,
        Ok(Ok(Ok(())) | Err(_)) | Err(_) => reason,
    }
}

#[cfg(all(test, unix))]
mod tests;
