//! The list of tools: the meta-tools, then the tools that are visible beside them, by name.

use crate::hub::Hub;
use crate::meta::{self, MetaTool};
use codecall_tools::catalogue::Entry;
use rmcp::ErrorData;
use rmcp::model::{ListToolsResult, Tool};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How many tools a page has. Some clients read the first one only; it holds the meta-tools.
const PAGE: usize = 200;

/// A cursor is the name of the last tool that was listed: no change of the list makes it wrong.
const CURSOR: &str = "after ";

/// The meta-tools, in their order.
pub fn meta_tools(hub: &Hub) -> Arc<[Tool]> {
    meta::ALL.into_iter().filter(|tool| tool.is_enabled(hub.config())).map(|tool| meta_row(hub, tool)).collect()
}

/// A page of the list.
pub fn page(hub: &Hub, meta_tools: &[Tool], cursor: Option<String>) -> Result<ListToolsResult, ErrorData> {
    let after = match &cursor {
        None => None,
        Some(cursor) => Some(
            cursor
                .strip_prefix(CURSOR)
                .ok_or_else(|| ErrorData::invalid_params("this cursor is unknown; begin again without one", None))?,
        ),
    };
    let mut tools = if after.is_none() { meta_tools.to_vec() } else { Vec::new() };
    let snapshot = hub.catalogue().snapshot();
    let mut rest = snapshot.listed().after(after).peekable();
    let mut last = None;
    while tools.len() < PAGE
        && let Some((name, entry)) = rest.next()
    {
        tools.push(row(hub, name, entry));
        last = Some(name);
    }
    let next = last.filter(|_| rest.peek().is_some()).map(|name| format!("{CURSOR}{name}"));
    let mut page = ListToolsResult::with_all_items(tools);
    page.next_cursor = next;
    Ok(page)
}

/// A tool by its name in the list.
pub fn tool(hub: &Hub, name: &str) -> Option<Tool> {
    let snapshot = hub.catalogue().snapshot();
    let entry = snapshot.listed().lookup(name)?;
    Some(row(hub, name, entry))
}

/// A meta-tool as clients list it.
fn meta_row(hub: &Hub, tool: &dyn MetaTool) -> Tool {
    let name = meta::spelled(tool, hub.config().tools.names);
    let mut row = Tool::new(name, tool.description(), Arc::new(object(tool.input_schema())));
    row.title = Some(tool.title().to_owned());
    row.annotations = serde_json::from_value(tool.annotations()).ok();
    if hub.config().structured {
        row.output_schema = Some(Arc::new(object(tool.output_schema())));
    }
    row
}

/// A tool of an upstream as clients list it.
fn row(hub: &Hub, name: &str, entry: &Entry) -> Tool {
    let tool = &entry.definition;
    let mut row = Tool::new(name.to_owned(), tool.description.clone(), Arc::new(object(tool.input_schema.clone())));
    row.title.clone_from(&tool.title);
    if !tool.annotations.is_empty() {
        row.annotations = serde_json::from_value(Value::Object(tool.annotations.clone())).ok();
    }
    // A schema that is not one of objects describes what is not sent as structured content.
    let structured = tool.output_schema.as_ref().filter(|schema| hub.config().structured && schema["type"] == "object");
    row.output_schema = structured.map(|schema| Arc::new(object(schema.clone())));
    row
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
