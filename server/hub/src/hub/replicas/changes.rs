//! Changes of which the clients of all replicas are notified: of the tools, and notifications of upstreams.
//!
//! Each replica has connections of its own to MCP servers. So one of them tells the others of a change that it sees,
//! such as that of a server on its machine.

use super::{Incoming, Replicas};
use crate::hub::LiveHub;
use codecall_tools::catalogue::Snapshot;
use codecall_upstream::UpstreamNotification;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// The address of messages about tools.
const TOOLS: &str = "tools";
/// The address of notifications of upstreams.
const UPSTREAMS: &str = "upstreams";
/// Changes of the tools within this time are told together.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// Notifications of upstreams within this time are the same one, seen by several replicas.
const SAME: Duration = Duration::from_secs(1);
/// Maximum number of notifications that are remembered.
const MAX_REMEMBERED: usize = 1_000;

/// A notification of an upstream that concerns all clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Shared {
    ResourceList,
    PromptList,
    Resource(String),
}

impl Shared {
    /// Log messages concern the clients of one replica.
    fn of(notification: &UpstreamNotification) -> Option<Self> {
        match notification {
            UpstreamNotification::ResourceListChanged => Some(Self::ResourceList),
            UpstreamNotification::PromptListChanged => Some(Self::PromptList),
            UpstreamNotification::ResourceUpdated(uri) => Some(Self::Resource(uri.clone())),
            UpstreamNotification::Log(_) => None,
        }
    }
}

impl From<Shared> for UpstreamNotification {
    fn from(shared: Shared) -> Self {
        match shared {
            Shared::ResourceList => Self::ResourceListChanged,
            Shared::PromptList => Self::PromptListChanged,
            Shared::Resource(uri) => Self::ResourceUpdated(uri),
        }
    }
}

/// Tells the other replicas of changes, and is told, until the process ends.
pub fn follow(live: &LiveHub, replicas: &Arc<Replicas>) {
    tokio::spawn(follow_tools(live.clone(), Arc::clone(replicas)));
    tokio::spawn(follow_upstreams(live.clone(), Arc::clone(replicas)));
}

async fn follow_tools(live: LiveHub, replicas: Arc<Replicas>) {
    let mut hubs = live.replaced();
    let mut changed = live.get().catalogue().changed();
    let known: Arc<watch::Sender<String>> = Arc::default();
    let (own, told) = (Arc::clone(&known), replicas.tools_changed.clone());
    let _served = replicas.serve(TOOLS, move |incoming: Incoming| {
        // The clients of this replica know the tools that it has.
        if incoming.body != json!(*own.borrow()) {
            told.send_modify(|changes| *changes += 1);
        }
    });
    // While a replica starts, its tools appear one after the other, and are not new to the clients.
    live.get().wait_for_tools().await;
    changed.mark_unchanged();
    known.send_replace(digest(live.get().catalogue().snapshot()).await);
    loop {
        tokio::select! {
            Ok(()) = changed.changed() => {}
            Ok(()) = hubs.changed() => {}
            else => return,
        }
        tokio::time::sleep(DEBOUNCE).await;
        changed = hubs.borrow_and_update().catalogue().changed();
        changed.mark_unchanged();
        let digest = digest(live.get().catalogue().snapshot()).await;
        if known.send_if_modified(|known| std::mem::replace(known, digest.clone()) != digest) {
            replicas.tell_all(TOOLS, json!(digest)).await;
        }
    }
}

/// Returns a text that differs between sets of tools.
async fn digest(snapshot: Arc<Snapshot>) -> String {
    let digest = tokio::task::spawn_blocking(move || {
        let mut digest = Sha256::new();
        for row in snapshot.rows() {
            let tool = &row.definition;
            let parts = json!([tool.app, tool.name, tool.description, tool.input_schema, tool.output_schema]);
            digest.update(parts.to_string());
        }
        codecall_store::state::hex(&digest.finalize())
    });
    digest.await.unwrap_or_default()
}

async fn follow_upstreams(live: LiveHub, replicas: Arc<Replicas>) {
    // All hubs of a server send to one channel.
    let hub = live.get();
    let (sender, mut received) = (hub.notifications.clone(), hub.notifications());
    drop(hub);
    let seen: Arc<Mutex<HashMap<Shared, Instant>>> = Arc::default();
    let others = Arc::clone(&seen);
    let _served = replicas.serve(UPSTREAMS, move |incoming: Incoming| {
        let Ok(shared) = serde_json::from_value::<Shared>(incoming.body) else { return };
        if is_new(&others, &shared) {
            inject(&sender, shared);
        }
    });
    loop {
        match received.recv().await {
            Ok(notification) => {
                if let Some(shared) = Shared::of(&notification)
                    && is_new(&seen, &shared)
                {
                    replicas.tell_all(UPSTREAMS, json!(shared)).await;
                }
            }
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

fn inject(sender: &broadcast::Sender<UpstreamNotification>, shared: Shared) {
    // There may be no client.
    let _ = sender.send(shared.into());
}

/// Notes a notification. Returns whether it is not one that was seen just now.
fn is_new(seen: &Mutex<HashMap<Shared, Instant>>, shared: &Shared) -> bool {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.len() >= MAX_REMEMBERED {
        seen.retain(|_, at| at.elapsed() < SAME);
    }
    let last = seen.insert(shared.clone(), Instant::now());
    last.is_none_or(|last| last.elapsed() >= SAME)
}
