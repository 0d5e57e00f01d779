//! MCP servers as child processes.

mod child;
mod lines;

use super::session::Shared;
pub use child::Child;
use codecall_config::{Lifecycle, StdioConfig};
use lines::Lines;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

/// One life of a child, with messages of at most `longest` bytes. Gives why it is over, and the child to be ended.
pub async fn live(
    shared: &Shared,
    config: &StdioConfig,
    longest: usize,
    lifecycle: Lifecycle,
) -> (String, Option<Child>) {
    let (child, stdin, stdout) = match Child::spawn(&shared.app, config) {
        Ok(spawned) => spawned,
        Err(reason) => return (reason, None),
    };
    let reason = over(shared, (stdout, stdin), longest, lifecycle).await;
    (reason, Some(child))
}

/// Speak over these streams until they end. Gives the reason.
pub async fn over<R, W>(shared: &Shared, (from, to): (R, W), longest: usize, lifecycle: Lifecycle) -> String
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (lines, mut reading) = Lines::new(BufReader::with_capacity(64 * 1024, from), to, longest);
    let reason = shared.talk(lines, lifecycle).await;
    // The reader knows better why the connection has ended, where it has ended it.
    let read = tokio::time::timeout(Duration::from_millis(50), &mut reading).await;
    reading.abort();
    match read {
        Ok(Ok(Err(better))) => better,
        Ok(Ok(Ok(())) | Err(_)) | Err(_) => reason,
    }
}

#[cfg(all(test, unix))]
mod tests;
