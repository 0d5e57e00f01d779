//! How tools are offered to a client: by the meta-tools with signatures of the tools behind them, or as they are. It is the
//! form that costs the client's model the fewest tokens.

use super::Hub;
use crate::meta;
use codecall_base::offload;
use codecall_config::Front;
use codecall_tools::catalogue::Snapshot;
use codecall_tools::signatures::{Extent, SignatureList};
use codecall_tools::tokens::estimate;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many tokens a list of the tools as they are may take more than the list of the meta-tools. Scripts are longer than calls,
/// and what a model writes costs several times what it reads.
const MARGIN_TOKENS: usize = 300;
/// A list with more tokens is never the shorter one.
const MAX_DIRECT_TOKENS: usize = 12_000;
/// `execute` is listed beside tools where it adds at most this part of their tokens.
const EXECUTE_PART: usize = 10;
/// How long the list of signatures waits for the history of the tools that were used.
const USED_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of tools that come first because they were used.
const MAX_USED: usize = 500;
/// Maximum length of the description of a tool, in characters, where a client cuts descriptions.
const MAX_DESCRIPTION_CHARS: usize = 2_048;
/// Maximum number of clients whose fronts are remembered for the status, and the length of their names in bytes.
const MAX_CLIENTS: usize = 100;
const MAX_CLIENT_BYTES: usize = 64;

/// What is known of clients, by the beginning of the name that they give themselves.
const CLIENTS: [Client; 7] = [
    // It cuts descriptions at 2 KB.
    Client { name: "claude-code", kind: Kind::Cuts },
    // They bring in tools as their model needs them.
    Client { name: "claude-ai", kind: Kind::Defers },
    Client { name: "cursor", kind: Kind::Defers },
    // They have a code mode of their own.
    Client { name: "codex", kind: Kind::HasCodeMode },
    Client { name: "opencode", kind: Kind::HasCodeMode },
    Client { name: "goose", kind: Kind::HasCodeMode },
    Client { name: "openai-mcp", kind: Kind::HasCodeMode },
];

struct Client {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It cuts descriptions.
    Cuts,
    /// It brings in tools as its model needs them.
    Defers,
    /// It has a code mode of its own.
    HasCodeMode,
}

impl Kind {
    fn of(client: Option<&str>) -> Option<Self> {
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
    /// Decides how tools are offered to a client. It waits for the lists of tools up to a bound.
    pub async fn offer(&self, client: Option<&str>) -> Offer {
        self.wait_for_tools().await;
        let offer = self.decide(client).await;
        let name = codecall_base::text::truncate(client.unwrap_or("unnamed"), MAX_CLIENT_BYTES);
        let mut fronts = self.fronts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if fronts.len() < MAX_CLIENTS || fronts.contains_key(name) {
            fronts.entry(name.to_owned()).or_default().insert(front_name(offer.front));
        }
        offer
    }

    /// Returns how tools were offered to clients, by name: a client may have several sessions with different tools.
    #[must_use]
    pub fn fronts(&self) -> BTreeMap<String, Vec<String>> {
        let fronts = self.fronts.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names = |fronts: &BTreeSet<&str>| fronts.iter().map(|front| (*front).to_owned()).collect();
        fronts.iter().map(|(client, fronts)| (client.clone(), names(fronts))).collect()
    }

    /// Whether a client is offered tools for a code mode of its own.
    #[must_use]
    pub fn is_bridged(&self, client: Option<&str>) -> bool {
        let front = self.config.tools.front.of_client(client);
        let has_code_mode = || Kind::of(client) == Some(Kind::HasCodeMode);
        self.may_list_tools() && (front == Front::Bridge || (front == Front::Auto && has_code_mode()))
    }

    /// Whether tools may be listed as they are. Where they may only be called by scripts, a list is of no use.
    fn may_list_tools(&self) -> bool {
        self.config.tools.has_fronts() && self.config.direct_calls.enabled
    }

    async fn decide(&self, client: Option<&str>) -> Offer {
        let kind = Kind::of(client);
        let extent = self.extent(kind);
        let code = Offer { front: Front::Code, extent, with_scripts: true };
        if !self.may_list_tools() {
            return code;
        }
        let snapshot = self.catalogue.snapshot();
        let front = match self.config.tools.front.of_client(client) {
            _ if self.is_bridged(client) => Front::Bridge,
            Front::Auto if self.is_cheaper_as_it_is(&snapshot, &code).await => Front::Direct,
            Front::Auto => Front::Code,
            front => front,
        };
        let with_scripts = front == Front::Code || {
            let tools = self.offered_tokens(&snapshot, usize::MAX).unwrap_or_default();
            // What is not listed is reached by scripts only.
            self.list_tokens(&Offer { extent: Extent::Tokens(0), ..code }, None) * EXECUTE_PART <= tools
                || !self.offers_all(&snapshot)
        };
        Offer { front, extent: if front == Front::Code { extent } else { Extent::Tokens(0) }, with_scripts }
    }

    fn extent(&self, kind: Option<Kind>) -> Extent {
        match (self.config.tools.settings.index_tokens, kind) {
            (_, Some(Kind::Cuts)) => Extent::Characters(MAX_DESCRIPTION_CHARS - meta::execute_description_chars()),
            (Some(tokens), _) => Extent::Tokens(usize::try_from(tokens).unwrap_or(usize::MAX)),
            (None, Some(Kind::Defers)) => Extent::Lean,
            (None, Some(Kind::HasCodeMode) | None) => Extent::Auto,
        }
    }

    /// Whether all tools can be listed, and cost less so than by the meta-tools.
    async fn is_cheaper_as_it_is(&self, snapshot: &Arc<Snapshot>, code: &Offer) -> bool {
        let is_starting =
            self.catalogue.upstreams().any(|upstream| !upstream.are_tools_known() && upstream.is_starting());
        if is_starting || snapshot.rows().is_empty() || !self.offers_all(snapshot) {
            return false;
        }
        let Some(direct) = self.offered_tokens(snapshot, MAX_DIRECT_TOKENS) else { return false };
        let signatures = self.signatures(code.extent).await;
        direct < self.list_tokens(code, Some(&signatures)) + MARGIN_TOKENS
    }

    /// Whether each tool that scripts can call can also be called by its name in a list.
    fn offers_all(&self, snapshot: &Snapshot) -> bool {
        snapshot.offered().len() >= snapshot.rows().len()
            && snapshot.rows().iter().all(|entry| {
                entry.definition.visible_in_list_tools != Some(false)
                    && self.pipeline.may_call_directly(snapshot, entry)
            })
    }

    /// Estimates the tokens of the tools as they are; `None`: more than `max`.
    fn offered_tokens(&self, snapshot: &Snapshot, max: usize) -> Option<usize> {
        snapshot.offered().after(None).try_fold(0, |sum, (_, entry)| {
            let sum = sum + entry.listed_tokens();
            (sum <= max).then_some(sum)
        })
    }

    /// Estimates the tokens of the meta-tools that an offer lists.
    fn list_tokens(&self, offer: &Offer, signatures: Option<&SignatureList>) -> usize {
        let own: usize =
            meta::listed(&self.config, offer).map(|tool| estimate(&meta::listed_json(tool).to_string())).sum();
        own + signatures.map_or(0, |list| estimate(&list.text))
    }

    /// Returns the signatures of all tools, as far as there is room. While no tool changes, the list stays the same to the byte,
    /// because clients cache what they send to their model.
    pub async fn signatures(&self, extent: Extent) -> Arc<SignatureList> {
        let version = *self.catalogue.changed().borrow();
        let snapshot = self.catalogue.snapshot();
        if let Some(list) = self.known_signatures(version, extent) {
            return list;
        }
        let seen = self.pipeline.seen();
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
        // What another request has made meanwhile is what its client has got.
        Arc::clone(lists.lists.entry(extent).or_insert(list))
    }

    fn known_signatures(&self, version: u64, extent: Extent) -> Option<Arc<SignatureList>> {
        let lists = self.signatures.0.lock().unwrap_or_else(PoisonError::into_inner);
        (lists.version == version).then(|| lists.lists.get(&extent).cloned())?
    }
}

fn front_name(front: Front) -> &'static str {
    match front {
        Front::Auto => "auto",
        Front::Code => "code",
        Front::Direct => "direct",
        Front::Bridge => "bridge",
    }
}
