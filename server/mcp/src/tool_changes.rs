//! Changes of the tools, of which clients are notified.

use super::notifications::{NOTIFY_TIMEOUT, Peers, open_peers};
use codecall_hub::hub::{Hub, LiveHub};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// Changes of the tools within this time cause one notification.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Notifies clients with a session of changes of the tools.
pub async fn notify(live: LiveHub, peers: Weak<Mutex<Peers>>) {
    let mut changes = ToolChanges::new(&live);
    while changes.next().await {
        tokio::time::sleep(DEBOUNCE).await;
        changes.mark_unchanged();
        let Some(peers) = peers.upgrade() else { return };
        for peer in open_peers(&peers) {
            let _ = tokio::time::timeout(NOTIFY_TIMEOUT, peer.notify_tool_list_changed()).await;
        }
    }
}

/// Changes of the tools: of the upstreams, and of the configuration; also those that other replicas of the server have seen.
pub struct ToolChanges {
    replaced: watch::Receiver<Arc<Hub>>,
    changed: watch::Receiver<u64>,
    replicas: Option<watch::Receiver<u64>>,
}

impl ToolChanges {
    pub fn new(live: &LiveHub) -> Self {
        let mut replaced = live.replaced();
        let changed = replaced.borrow_and_update().catalogue().changed();
        let replicas = live.get().replicas().map(|replicas| replicas.tools_changed());
        Self { replaced, changed, replicas }
    }

    /// Waits for a change. `false`: there are no more.
    pub async fn next(&mut self) -> bool {
        let replicas = async {
            match &mut self.replicas {
                // It lives as long as the server.
                Some(replicas) => drop(replicas.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = replicas => return true,
            change = self.changed.changed() => match change {
                Ok(()) => return true,
                // The catalogue is that of a hub that was replaced.
                Err(_) => if self.replaced.changed().await.is_err() { return false },
            },
            replaced = self.replaced.changed() => if replaced.is_err() { return false },
        }
        self.changed = self.replaced.borrow_and_update().catalogue().changed();
        self.changed.mark_unchanged();
        true
    }

    pub fn mark_unchanged(&mut self) {
        self.changed.mark_unchanged();
        self.replicas.iter_mut().for_each(watch::Receiver::mark_unchanged);
    }
}
