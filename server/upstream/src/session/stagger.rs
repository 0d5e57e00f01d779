//! Staggers the starts of servers that nothing waits for, because their tools are known.
//!
//! A server that starts takes a processor for half a second. If all start at once, the first answers to the client, and
//! the one server that it needs first, wait for all of them.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long no server starts. Meanwhile the first requests of the client are answered.
const DELAY: Duration = Duration::from_millis(200);
/// How long a server that starts makes others wait: less than it may take, because it may sleep.
const MAX_TURN: Duration = Duration::from_millis(500);

/// As many servers of this process start at once as there are processors.
static TURNS: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(available_parallelism().map_or(1, NonZero::get))));

/// Waits for the turn of a server. The turn ends when `decided` resolves, which is when the server is up or has failed.
pub async fn turn(decided: impl Future<Output = ()> + Send + 'static) {
    tokio::time::sleep(DELAY).await;
    // The semaphore is never closed.
    if let Ok(turn) = Arc::clone(&TURNS).acquire_owned().await {
        tokio::spawn(async move {
            let _ = tokio::time::timeout(MAX_TURN, decided).await;
            drop(turn);
        });
    }
}
