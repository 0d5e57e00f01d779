//! How tools can be offered to clients, what is known of clients, and the signatures that they get.

use super::Hub;
use codecall_base::offload;
use codecall_base::text::truncate;
use codecall_config::Front;
use codecall_tools::signatures::{Extent, SignatureList};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the list of signatures waits for the history of the tools that were used.
const USED_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of tools that come first because they were used.
const MAX_USED: usize = 500;
/// Maximum number of clients whose fronts are remembered for the status, and the length of their names in bytes.
const MAX_CLIENTS: usize = 100;
const MAX_CLIENT_BYTES: usize = 64;

/// Known clients, by the beginning of the name that a client gives itself.
const CLIENTS: [Client; 7] = [
    // It cuts descriptions at 2 KB.
    Client { name: "claude-code", kind: ClientKind::Cuts },
    // They bring in tools as their model needs them.
    Client { name: "claude-ai", kind: ClientKind::Defers },
    Client { name: "cursor", kind: ClientKind::Defers },
    // They have a code mode of their own.
    Client { name: "codex", kind: ClientKind::HasCodeMode },
    Client { name: "opencode", kind: ClientKind::HasCodeMode },
    Client { name: "goose", kind: ClientKind::HasCodeMode },
    Client { name: "openai-mcp", kind: ClientKind::HasCodeMode },
];

struct Client {
    name: &'static str,
    kind: ClientKind,
}

/// How a client treats a list of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// It cuts descriptions.
    Cuts,
    /// It brings in tools as its model needs them.
    Defers,
    /// It has a code mode of its own.
    HasCodeMode,
}

impl ClientKind {
    /// Returns what is known of a client by the name that it gives itself; `None`: nothing.
    #[must_use]
    pub fn of(client: Option<&str>) -> Option<Self> {
        let name = client?.to_ascii_lowercase();
        CLIENTS.iter().find(|client| name.starts_with(client.name)).map(|client| client.kind)
    }
}

/// How tools are offered to a client, as it was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Never [`Front::Auto`].
    pub front: Front,
    /// The length of the list of signatures.
    pub extent: Extent,
    /// Whether the meta-tools for scripts are listed beside the tools.
    pub with_scripts: bool,
}

impl Offer {
    /// The meta-tools, without signatures.
    #[must_use]
    pub fn code() -> Self {
        Self { front: Front::Code, extent: Extent::Tokens(0), with_scripts: true }
    }

    /// Whether a meta-tool is listed, by its name without the prefix.
    #[must_use]
    pub fn lists(&self, id: &str) -> bool {
        match (self.front, id) {
            (Front::Code | Front::Auto, _) => true,
            (Front::Direct, "execute" | "search" | "describe") => self.with_scripts,
            (Front::Direct, "invoke") => false,
            (Front::Bridge, "execute" | "describe" | "invoke") => false,
            (Front::Direct | Front::Bridge, _) => true,
        }
    }

    /// Whether tools are listed as they are.
    #[must_use]
    pub fn lists_tools(&self) -> bool {
        matches!(self.front, Front::Direct | Front::Bridge)
    }
}

/// The lists of signatures of the tools of one moment, by extent.
#[derive(Default)]
pub struct Signatures(Mutex<Lists>);

#[derive(Default)]
struct Lists {
    /// The count of changes that they were made at.
    version: u64,
    lists: BTreeMap<Extent, Arc<SignatureList>>,
}

/// The fronts of clients by name, for the status.
#[derive(Default)]
pub struct Fronts(Mutex<BTreeMap<String, BTreeSet<&'static str>>>);

impl Hub {
    /// Returns how tools were offered to clients, by name: a client may have several sessions with different tools.
    #[must_use]
    pub fn fronts(&self) -> BTreeMap<String, Vec<String>> {
        let fronts = self.fronts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = |fronts: &BTreeSet<&str>| fronts.iter().map(|front| (*front).to_owned()).collect();
        fronts.iter().map(|(client, fronts)| (client.clone(), names(fronts))).collect()
    }

    /// Notes for the status how tools were offered to a client.
    pub fn note_front(&self, client: Option<&str>, front: Front) {
        let name = truncate(client.unwrap_or("unnamed"), MAX_CLIENT_BYTES);
        let front = match front {
            Front::Auto => "auto",
            Front::Code => "code",
            Front::Direct => "direct",
            Front::Bridge => "bridge",
        };
        let mut fronts = self.fronts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fronts.len() < MAX_CLIENTS || fronts.contains_key(name) {
            fronts.entry(name.to_owned()).or_default().insert(front);
        }
    }

    /// Whether a client is offered tools for a code mode of its own.
    #[must_use]
    pub fn is_bridged(&self, client: Option<&str>) -> bool {
        let front = self.config.tools.front.of_client(client);
        let has_code_mode = || ClientKind::of(client) == Some(ClientKind::HasCodeMode);
        self.may_list_tools() && (front == Front::Bridge || (front == Front::Auto && has_code_mode()))
    }

    /// Whether tools may be listed as they are. Where they may only be called by scripts, a list is of no use.
    #[must_use]
    pub fn may_list_tools(&self) -> bool {
        self.config.tools.has_fronts() && self.config.direct_calls.enabled
    }

    /// Returns the signatures of all tools, as far as there is room. While no tool changes, the list stays the same to the byte,
    /// because clients cache what they send to their model.
    pub async fn signatures(&self, extent: Extent) -> Arc<SignatureList> {
        let version = *self.catalogue.changed().borrow();
        let snapshot = self.catalogue.snapshot();
        if let Some(list) = self.known_signatures(version, extent) {
            return list;
        }
        let seen = self.pipeline.result_shapes();
        let apps: BTreeSet<&str> = snapshot.rows().iter().map(|entry| entry.definition.app.as_str()).collect();
        join_all(apps.into_iter().map(|app| seen.load(app))).await;
        let used = match self.history() {
            // Without it the list is as good as at the first start.
            Some(history) => match tokio::time::timeout(USED_TIMEOUT, history.store().used_tools(MAX_USED)).await {
                Ok(Ok(used)) => used,
                Ok(Err(_)) | Err(_) => Vec::new(),
            },
            None => Vec::new(),
        };
        let make = || Arc::new(SignatureList::new(snapshot.rows(), seen, &used, extent));
        let list = offload::run_without_permit(offload::INLINE_LIMIT + 1, make);
        let mut lists = self.signatures.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.version != version {
            *lists = Lists { version, lists: BTreeMap::new() };
        }
        // A list that another request has made meanwhile stays: its client has it.
        Arc::clone(lists.lists.entry(extent).or_insert(list))
    }

    fn known_signatures(&self, version: u64, extent: Extent) -> Option<Arc<SignatureList>> {
        let lists = self.signatures.0.lock().unwrap_or_else(PoisonError::into_inner);
        (lists.version == version).then(|| lists.lists.get(&extent).cloned())?
    }
}
