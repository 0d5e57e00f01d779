//! The list of tools that a client is offered: meta-tools, then tools of upstreams, by name.

use codecall_base::tool::ToolDefinition;
use codecall_config::{Front, Structured};
use codecall_hub::Hub;
use codecall_hub::hub::Offer;
use codecall_hub::meta::{self, MetaTool};
use codecall_tools::catalogue::Entry;
use codecall_tools::signatures::SignatureList;
use rmcp::ErrorData;
use rmcp::model::{Icon, ListToolsResult, MetaObject, Tool};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length of the type of seen results in a description, in bytes.
const MAX_SEEN_BYTES: usize = 300;

/// Number of tools on a page. Some clients read only the first page, which has the meta-tools.
const PAGE_SIZE: usize = 200;

/// Prefix of a cursor. The rest is the name of the last tool on the page, so a cursor stays valid when the list
/// changes.
const CURSOR_PREFIX: &str = "after ";

/// Returns a page of the list that a client is offered.
///
/// # Errors
/// The cursor is not one of this server.
pub async fn page(hub: &Hub, offer: &Offer, cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let after = match &cursor {
        None => None,
        Some(cursor) => Some(
            cursor
                .strip_prefix(CURSOR_PREFIX)
                .ok_or_else(|| ErrorData::invalid_params("this cursor is unknown; begin again without one", None))?,
        ),
    };
    let mut tools = if after.is_none() { meta_tools(hub, offer).await } else { Vec::new() };
    let snapshot = hub.catalogue().snapshot();
    let listed = if offer.lists_tools() { snapshot.offered() } else { snapshot.listed() };
    let is_callable = |entry: &Entry| !offer.lists_tools() || hub.pipeline().may_call_directly(&snapshot, entry);
    let mut rest = listed.after(after).filter(|(_, entry)| is_callable(entry)).peekable();
    let mut last = None;
    while tools.len() < PAGE_SIZE
        && let Some((name, entry)) = rest.next()
    {
        tools.push(tool_entry(hub, offer, name, entry));
        last = Some(name);
    }
    let next = last.filter(|_| rest.peek().is_some()).map(|name| format!("{CURSOR_PREFIX}{name}"));
    let mut page = ListToolsResult::with_all_items(tools);
    page.next_cursor = next;
    Ok(page)
}

/// Returns the meta-tools that are listed, in their order.
async fn meta_tools(hub: &Hub, offer: &Offer) -> Vec<Tool> {
    let signatures = match offer.lists("execute") {
        true => Some(hub.signatures(offer.extent).await),
        false => None,
    };
    meta::listed(hub.config(), offer).map(|tool| meta_tool_entry(hub, tool, signatures.as_deref())).collect()
}

/// Returns the names under which the meta-tools are called.
pub fn meta_tool_names(hub: &Hub) -> Vec<String> {
    let enabled = meta::ALL.into_iter().filter(|tool| tool.is_enabled(hub.config()));
    enabled.map(|tool| meta::listed_name(tool, hub.config().tools.names)).collect()
}

/// Returns a tool by the name under which it is called.
pub fn tool(hub: &Hub, name: &str) -> Option<Tool> {
    match meta::find(name) {
        Some(tool) => tool.is_enabled(hub.config()).then(|| meta_tool_entry(hub, tool, None)),
        None => {
            let snapshot = hub.catalogue().snapshot();
            Some(tool_entry(hub, &Offer::code(), name, snapshot.lookup_listed(name)?))
        }
    }
}

fn meta_tool_entry(hub: &Hub, tool: &dyn MetaTool, signatures: Option<&SignatureList>) -> Tool {
    let name = meta::listed_name(tool, hub.config().tools.names);
    let description = match signatures {
        Some(signatures) if tool.id() == "execute" => meta::execute_description(signatures).into(),
        Some(_) | None => Cow::Borrowed(tool.description()),
    };
    let mut listed = Tool::new(name, description, Arc::new(object(meta::listed_schema(tool))));
    listed.title = Some(tool.title().to_owned());
    listed.annotations = Some(tool.annotations());
    // Claude Code defers tools that do not say so, and then needs a request to find this one.
    listed.meta = Some(MetaObject(Map::from_iter([("anthropic/alwaysLoad".to_owned(), Value::Bool(true))])));
    // A client refuses an answer without `structuredContent` if there is an output schema. The list must not depend on the client.
    if hub.config().structured == Structured::Both {
        listed.output_schema = Some(Arc::new(object(tool.output_schema())));
    }
    listed
}

/// Returns the entry of a tool of an upstream.
fn tool_entry(hub: &Hub, offer: &Offer, name: &str, entry: &Entry) -> Tool {
    let tool = &entry.definition;
    let mut listed = Tool::new(name.to_owned(), tool.description.clone(), Arc::new(object(tool.input_schema.clone())));
    listed.title.clone_from(&tool.title);
    let icons: Vec<Icon> = tool.icons.iter().filter_map(|icon| serde_json::from_value(icon.clone()).ok()).collect();
    listed.icons = Some(icons).filter(|icons| !icons.is_empty());
    listed.meta = Some(MetaObject(tool.meta.clone())).filter(|meta| !meta.0.is_empty());
    if !tool.annotations.is_empty() {
        listed.annotations = serde_json::from_value(Value::Object(tool.annotations.clone())).ok();
    }
    // For clients before 2026-07-28, which take schemas of objects only, rmcp leaves the others out.
    let structured = tool.output_schema.as_ref().filter(|_| hub.config().structured != Structured::Text);
    listed.output_schema = structured.map(|schema| Arc::new(object(schema.clone())));
    if offer.front == Front::Bridge && listed.output_schema.is_none() && tool.output_schema.is_none() {
        note_seen_result(hub, tool, &mut listed);
    }
    listed
}

/// Adds what was seen of the results of a tool that does not say what they are: it is no promise, so it is no output schema, against
/// which clients check.
fn note_seen_result(hub: &Hub, tool: &ToolDefinition, listed: &mut Tool) {
    if let Some(seen) = hub.pipeline().result_shapes().of(tool) {
        let kind = seen.shape.to_type(MAX_SEEN_BYTES);
        listed.description = Some(format!("{} (Results seen: {kind})", tool.description.trim_end()).into());
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
