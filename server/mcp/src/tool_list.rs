//! The list of tools: the meta-tools, then the listed tools of upstreams, by name.

use codecall_config::Structured;
use codecall_hub::Hub;
use codecall_hub::meta::{self, MetaTool};
use codecall_tools::catalogue::Entry;
use rmcp::ErrorData;
use rmcp::model::{ListToolsResult, Tool};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Number of tools on a page. Some clients read only the first page, which has the meta-tools.
const PAGE_SIZE: usize = 200;

/// Prefix of a cursor. The rest is the name of the last tool on the page, so a cursor stays valid when the list
/// changes.
const CURSOR_PREFIX: &str = "after ";

/// The meta-tools as they are listed, kept for the hub that they were made for.
#[derive(Default)]
pub struct MetaTools(Mutex<Option<MadeFor>>);

type MadeFor = (Weak<Hub>, Arc<[Tool]>);

impl MetaTools {
    /// Returns the enabled meta-tools of a hub, in their order.
    pub fn of(&self, hub: &Arc<Hub>) -> Arc<[Tool]> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some((of, tools)) if std::ptr::eq(of.as_ptr(), Arc::as_ptr(hub)) => Arc::clone(tools),
            Some(_) | None => {
                let tools = meta_tools(hub);
                *made = Some((Arc::downgrade(hub), Arc::clone(&tools)));
                tools
            }
        }
    }
}

fn meta_tools(hub: &Hub) -> Arc<[Tool]> {
    meta::ALL.into_iter().filter(|tool| tool.is_enabled(hub.config())).map(|tool| meta_tool_entry(hub, tool)).collect()
}

/// Returns a page of the list.
///
/// # Errors
/// The cursor is not one of this server.
pub fn page(hub: &Hub, meta_tools: &[Tool], cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let after = match &cursor {
        None => None,
        Some(cursor) => Some(
            cursor
                .strip_prefix(CURSOR_PREFIX)
                .ok_or_else(|| ErrorData::invalid_params("this cursor is unknown; begin again without one", None))?,
        ),
    };
    let mut tools = if after.is_none() { meta_tools.to_vec() } else { Vec::new() };
    let snapshot = hub.catalogue().snapshot();
    let mut rest = snapshot.listed().after(after).peekable();
    let mut last = None;
    while tools.len() < PAGE_SIZE
        && let Some((name, entry)) = rest.next()
    {
        tools.push(tool_entry(hub, name, entry));
        last = Some(name);
    }
    let next = last.filter(|_| rest.peek().is_some()).map(|name| format!("{CURSOR_PREFIX}{name}"));
    let mut page = ListToolsResult::with_all_items(tools);
    page.next_cursor = next;
    Ok(page)
}

/// Returns a tool of an upstream by its listed name.
pub fn tool(hub: &Hub, name: &str) -> Option<Tool> {
    let snapshot = hub.catalogue().snapshot();
    let entry = snapshot.listed().lookup(name)?;
    Some(tool_entry(hub, name, entry))
}

/// Returns the entry of a meta-tool.
fn meta_tool_entry(hub: &Hub, tool: &dyn MetaTool) -> Tool {
    let name = meta::listed_name(tool, hub.config().tools.names);
    let mut listed = Tool::new(name, tool.description(), Arc::new(object(tool.input_schema())));
    listed.title = Some(tool.title().to_owned());
    listed.annotations = Some(tool.annotations());
    // A client refuses an answer without `structuredContent` if there is an output schema. The list must not depend on the client.
    if hub.config().structured == Structured::Both {
        listed.output_schema = Some(Arc::new(object(tool.output_schema())));
    }
    listed
}

/// Returns the entry of a tool of an upstream.
fn tool_entry(hub: &Hub, name: &str, entry: &Entry) -> Tool {
    let tool = &entry.definition;
    let mut listed = Tool::new(name.to_owned(), tool.description.clone(), Arc::new(object(tool.input_schema.clone())));
    listed.title.clone_from(&tool.title);
    if !tool.annotations.is_empty() {
        listed.annotations = serde_json::from_value(Value::Object(tool.annotations.clone())).ok();
    }
    // Structured content is an object, so a schema of anything else does not apply to it.
    let structured = tool
        .output_schema
        .as_ref()
        .filter(|schema| hub.config().structured != Structured::Text && schema["type"] == "object");
    listed.output_schema = structured.map(|schema| Arc::new(object(schema.clone())));
    listed
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
