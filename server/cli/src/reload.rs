//! Follows the configuration of a running server: its file, and SIGHUP.
//!
//! The file is looked at once a second, not watched. That also sees files that are replaced as a whole, as editors and
//! mounted volumes do it, on every file system.

use super::output::notice;
#[cfg(unix)]
use super::sources::is_hangup_ignored;
use super::sources::{Sources, find_config};
use codecall_base::files;
use codecall_hub::LiveHub;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Follows the configuration until `cancel` is cancelled. A configuration that cannot be used is an error in the log; the
/// server goes on with the one that it has.
pub async fn follow(sources: Sources, live: LiveHub, cancel: CancellationToken) {
    let following = async {
        let mut hangups = Hangups::new();
        let mut seen = text(&sources).await;
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut before = seen.clone();
        loop {
            let is_asked = tokio::select! {
                _ = looks.tick() => false,
                () = hangups.next() => true,
            };
            if is_asked && hangups.is_terminal_closed() {
                cancel.cancel();
                return;
            }
            let now = text(&sources).await;
            // It is read once it has stopped changing: it may be in the middle of being written.
            let is_settled = now == before;
            before.clone_from(&now);
            if is_asked {
                live.get().refresh();
            }
            if is_asked || (is_settled && now.is_some() && now != seen) {
                seen = now;
                reload(&sources, &live).await;
            }
        }
    };
    cancel.run_until_cancelled(following).await;
}

async fn reload(sources: &Sources, live: &LiveHub) {
    let loaded = sources.load();
    let changes = match loaded {
        Ok(config) => live.reload(config).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.message),
    };
    match changes {
        Ok(changes) => notice(&format!("configuration read again: {changes}")),
        // An event of the log is one line; those below it show the place in the file.
        Err(problem) => {
            let problem = problem.lines().next().unwrap_or_default();
            tracing::error!("the configuration stays as it was: {problem}");
        }
    }
}

/// The text of the file; `None`: there is none, or it cannot be read.
async fn text(sources: &Sources) -> Option<Vec<u8>> {
    let path: PathBuf = find_config(sources.config.clone()).ok()??;
    tokio::task::spawn_blocking(move || files::read(&path, files::MAX_CONFIG_BYTES).ok()).await.ok()?
}

/// SIGHUP: the request to read the configuration again, or the end of the terminal.
#[cfg(unix)]
struct Hangups {
    signal: Option<tokio::signal::unix::Signal>,
    had_terminal: bool,
}

#[cfg(unix)]
impl Hangups {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let hangups = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup()).ok());
        Self { signal: hangups.flatten(), had_terminal: has_terminal() }
    }

    async fn next(&mut self) {
        match &mut self.signal {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    }

    fn is_terminal_closed(&self) -> bool {
        self.had_terminal && !has_terminal()
    }
}

/// Whether the process has a terminal that it can be controlled from.
#[cfg(unix)]
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        std::future::pending().await
    }

    fn is_terminal_closed(&self) -> bool {
        false
    }
}
