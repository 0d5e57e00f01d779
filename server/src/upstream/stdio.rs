//! MCP servers as child processes.

mod child;
mod relay;

use super::session::Shared;
use crate::config::{Lifecycle, StdioConfig};
pub use child::Child;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::time::Duration;
use tokio::io::BufReader;

/// One life of a child. Gives why it is over, and the child to be ended.
pub async fn live(shared: &Shared, config: &StdioConfig, lifecycle: Lifecycle) -> (String, Option<Child>) {
    let (child, stdin, stdout) = match Child::spawn(&shared.app, config) {
        Ok(spawned) => spawned,
        Err(reason) => return (reason, None),
    };
    let longest = config.max_message_bytes;
    let (ours, theirs) = tokio::io::duplex(256 * 1024);
    let mut relay = tokio::spawn(relay::relay(BufReader::with_capacity(64 * 1024, stdout), theirs, longest));
    let transport = AsyncRwTransport::new_client(ours, stdin).with_max_line_length(longest.saturating_add(1024));
    let reason = shared.talk(transport, lifecycle).await;
    // The relay knows better why the connection has ended, where it has ended it.
    let relayed = tokio::time::timeout(Duration::from_millis(50), &mut relay).await;
    relay.abort();
    let reason = match relayed {
        Ok(Ok(Err(better))) => better,
        Ok(Ok(Ok(())) | Err(_)) | Err(_) => reason,
    };
    (reason, Some(child))
}

#[cfg(all(test, unix))]
mod tests;
