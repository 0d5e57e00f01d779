//! Decides how tools are offered to a client: by the meta-tools with signatures of the tools behind them, or as they are. It is the
//! form that costs the client's model the fewest tokens.

use crate::hub::{ClientKind, Hub, Offer};
use crate::meta;
use codecall_config::Front;
use codecall_tools::catalogue::Snapshot;
use codecall_tools::signatures::Extent;
use codecall_tools::tokens::estimate;
use std::sync::Arc;

/// How many tokens a list of the tools as they are may take more than the list of the meta-tools. Scripts are longer than calls,
/// and what a model writes costs several times what it reads.
const MARGIN_TOKENS: usize = 300;
/// A list with more tokens is never the shorter one.
const MAX_DIRECT_TOKENS: usize = 9_000;
/// `execute` is listed beside tools where it adds at most this part of their tokens.
const EXECUTE_PART: usize = 10;
/// Maximum length of the description of a tool, in characters, where a client cuts descriptions.
const MAX_DESCRIPTION_CHARS: usize = 2_048;

/// Decides how tools are offered to a client, by the name that it gives itself. It waits for the lists of tools up to a bound.
pub async fn offer(hub: &Hub, client: Option<&str>) -> Offer {
    hub.wait_for_tools().await;
    let offer = decide(hub, client).await;
    hub.note_front(client, offer.front);
    offer
}

async fn decide(hub: &Hub, client: Option<&str>) -> Offer {
    let code = Offer { extent: extent(hub, client), ..Offer::code() };
    if !hub.may_list_tools() {
        return code;
    }
    let snapshot = hub.catalogue().snapshot();
    let front = match hub.config().tools.front.of_client(client) {
        _ if hub.is_bridged(client) => Front::Bridge,
        Front::Auto => match cheapest(hub, &snapshot, code).await {
            Some(code) => return code,
            None => Front::Direct,
        },
        Front::Code => return code,
        front => front,
    };
    let tools = offered_tokens(&snapshot, usize::MAX).unwrap_or_default();
    // Scripts alone reach a tool that the list leaves out.
    let with_scripts = list_tokens(hub, &Offer::code()) * EXECUTE_PART <= tools || !offers_all(hub, &snapshot);
    Offer { front, with_scripts, ..Offer::code() }
}

fn extent(hub: &Hub, client: Option<&str>) -> Extent {
    match (hub.config().tools.settings.index_tokens, ClientKind::of(client)) {
        (Some(0), _) => Extent::Tokens(0),
        (_, Some(ClientKind::Cuts)) => Extent::Characters(MAX_DESCRIPTION_CHARS - meta::execute_description_chars()),
        (Some(tokens), _) => Extent::Tokens(usize::try_from(tokens).unwrap_or(usize::MAX)),
        (None, Some(ClientKind::Defers)) => Extent::Lean,
        (None, Some(ClientKind::HasCodeMode) | None) => Extent::Auto,
    }
}

/// Returns the offer of the meta-tools with signatures that take fewer tokens than all tools as they are; `None`: there is none.
async fn cheapest(hub: &Hub, snapshot: &Arc<Snapshot>, code: Offer) -> Option<Offer> {
    let mut upstreams = hub.catalogue().upstreams();
    let is_starting = upstreams.any(|upstream| !upstream.are_tools_known() && upstream.is_starting());
    if is_starting || snapshot.rows().is_empty() || !offers_all(hub, snapshot) {
        return Some(code);
    }
    let Some(direct) = offered_tokens(snapshot, MAX_DIRECT_TOKENS) else { return Some(code) };
    let room = direct.saturating_sub(list_tokens(hub, &code) + MARGIN_TOKENS);
    // With less detail than there could be, the signatures of all tools may fit.
    let (extent, is_reduced) = match code.extent {
        Extent::Auto => (Extent::Tokens(room), true),
        Extent::Tokens(tokens) => (Extent::Tokens(tokens.min(room)), tokens > room),
        other @ (Extent::Lean | Extent::Characters(_)) => (other, false),
    };
    let signatures = hub.signatures(extent).await;
    let fits = if is_reduced { signatures.is_complete() } else { estimate(&signatures.text) <= room };
    fits.then_some(Offer { extent, ..code })
}

/// Whether each tool that scripts can call can also be called by its name in a list.
fn offers_all(hub: &Hub, snapshot: &Snapshot) -> bool {
    let tools = snapshot.rows();
    snapshot.offered().len() >= tools.len()
        && tools.iter().all(|entry| {
            entry.definition.visible_in_list_tools != Some(false) && hub.pipeline().may_call_directly(snapshot, entry)
        })
}

/// Estimates the tokens of the tools as they are; `None`: more than `max`.
fn offered_tokens(snapshot: &Snapshot, max: usize) -> Option<usize> {
    snapshot.offered().after(None).try_fold(0, |sum, (_, entry)| {
        let sum = sum + entry.listed_tokens();
        (sum <= max).then_some(sum)
    })
}

/// Estimates the tokens of the meta-tools that an offer lists, without signatures.
fn list_tokens(hub: &Hub, offer: &Offer) -> usize {
    meta::listed(hub.config(), offer).map(|tool| estimate(&meta::listed_json(tool).to_string())).sum()
}
