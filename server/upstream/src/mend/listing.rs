//! Lists of tools, resources and prompts: entries that cannot be read are left out, unreadable members are removed.
//!
//! Mending never loosens. A tool with a hint that cannot be read counts as destructive and open-world, and a person
//! approves the original text too.

use super::readable;
use codecall_base::hidden::visible;
use codecall_base::text::truncate;
use rmcp::model::{MetaObject, Prompt, PromptMessage, Resource, ResourceContents, ResourceTemplate, Skill, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The member of `_meta` of a list and of a tool that has its [`Oddities`]. Servers cannot set it.
pub const ODDITIES: &str = "codecall/oddities";

/// Maximum number of oddities of a list that are named.
const MAX_NAMED: usize = 20;
/// Maximum length of a name in an oddity, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// How many members of a tool and of its annotations are looked at; the others are removed.
const MAX_MEMBERS: usize = 64;

/// The oddities of a list or a tool.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Oddities {
    /// A sentence about each.
    pub named: Vec<String>,
    /// A digest of a tool as its server has sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
}

/// Takes the oddities out of the metadata of a list or a tool.
pub fn take_oddities(meta: &mut Option<MetaObject>) -> Oddities {
    let taken = meta.as_mut().and_then(|meta| meta.0.shift_remove(ODDITIES));
    if meta.as_ref().is_some_and(|meta| meta.0.is_empty()) && taken.is_some() {
        *meta = None;
    }
    taken.and_then(|oddities| serde_json::from_value(oddities).ok()).unwrap_or_default()
}

/// The lists other than that of tools: the key of each, and the members without which an entry is of no use.
pub const OTHERS: [(&str, &[&str]); 6] = [
    ("skills", &["uri", "frontmatter", "resources"]),
    ("resources", &["uri", "name"]),
    ("resourceTemplates", &["uriTemplate", "name"]),
    ("prompts", &["name"]),
    ("contents", &["uri", "text", "blob"]),
    ("messages", &["role", "content"]),
];

/// Mends a list of tools.
pub fn tools(members: &Map<String, Value>) -> Value {
    let mut named = Vec::new();
    let entries: Vec<Value> = match &members["tools"] {
        Value::Array(entries) => entries.clone(),
        // Tools by name, as some servers list them.
        Value::Object(entries) => entries.iter().map(|(name, entry)| named_entry(name, entry)).collect(),
        Value::Null => Vec::new(),
        other => {
            named.push(format!("its list of tools is {}, not a list", kind(other)));
            Vec::new()
        }
    };
    let mut kept = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        match tool(entry) {
            Ok(tool) => kept.push(tool),
            Err(reason) => named.push(format!("entry {} of its list of tools is left out: {reason}", at + 1)),
        }
    }
    page(members, "tools", kept, named)
}

/// Mends a list of another kind.
pub fn entries(members: &Map<String, Value>, key: &str, required: &[&str]) -> Value {
    let mut named = Vec::new();
    let mut kept = Vec::new();
    for (at, entry) in members[key].as_array().into_iter().flatten().enumerate() {
        let mut entry = entry.as_object().cloned().unwrap_or_default();
        if let ("resources" | "resourceTemplates", None | Some(Value::Null)) = (key, entry.get("name")) {
            let address = entry.get("uri").or_else(|| entry.get("uriTemplate")).cloned();
            entry.extend(address.map(|address| ("name".to_owned(), address)));
        }
        let readable = match key {
            "resources" => readable::<Resource>(&entry, required),
            "resourceTemplates" => readable::<ResourceTemplate>(&entry, required),
            "skills" => readable::<Skill>(&entry, required),
            "prompts" => readable::<Prompt>(&entry, required),
            "contents" => readable::<ResourceContents>(&entry, required),
            _ => readable::<PromptMessage>(&entry, required),
        };
        match readable {
            Some((entry, _)) => kept.push(entry.into()),
            None => named.push(format!("entry {} of its {key} is left out: it cannot be read", at + 1)),
        }
    }
    page(members, key, kept, named)
}

/// Puts the entries of a page in place, with the cursor of the next one if that can be read.
fn page(members: &Map<String, Value>, key: &str, entries: Vec<Value>, mut named: Vec<String>) -> Value {
    let mut page = Map::from_iter([(key.to_owned(), entries.into())]);
    match members.get("nextCursor") {
        Some(Value::String(cursor)) => drop(page.insert("nextCursor".into(), cursor.as_str().into())),
        Some(Value::Number(cursor)) => drop(page.insert("nextCursor".into(), cursor.to_string().into())),
        Some(Value::Null) | None => {}
        Some(other) => named.push(format!("its 'nextCursor' is {}, so that the list ends there", kind(other))),
    }
    if let Some(Value::String(description)) = members.get("description").filter(|_| key == "messages") {
        page.insert("description".into(), description.as_str().into());
    }
    if !named.is_empty() {
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        if more > 0 {
            named.push(format!("and {more} more entries are odd"));
        }
        page.insert("_meta".into(), json!({ODDITIES: Oddities { named, received: None }}));
    }
    page.into()
}

fn named_entry(name: &str, entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Value::Object(members) = &mut entry {
        members.entry("name").or_insert_with(|| name.into());
    }
    entry
}

/// Mends a tool.
///
/// # Errors
/// It is of no use: the reason.
fn tool(entry: &Value) -> Result<Value, String> {
    let Value::Object(received) = entry else { return Err(format!("it is {}", kind(entry))) };
    let name = match received.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name,
        Some(Value::String(_)) => return Err("it has an empty name".into()),
        Some(other) => return Err(format!("its name is {}", kind(other))),
        None => return Err("it has no name".into()),
    };
    if serde_json::from_value::<Tool>(entry.clone()).is_ok() {
        return Ok(without_oddities(received.clone()).into());
    }
    let mut named = Vec::new();
    let mut mended: Map<String, Value> =
        received.iter().take(MAX_MEMBERS).map(|(key, value)| (key.clone(), value.clone())).collect();
    mended.insert("name".into(), name.as_str().into());
    mend_schema(&mut mended, &mut named);
    mend_annotations(&mut mended, &mut named);
    let Some((mut mended, unreadable)) = readable::<Tool>(&mended, &["name", "inputSchema"]) else {
        return Err("it cannot be read".into());
    };
    for key in unreadable {
        named.push(format!("its '{}' cannot be read and is left out", shown(&key)));
    }
    // How the tool is called as a task, which rmcp does not read.
    if let Some(support) = received.get("execution").and_then(|execution| execution.get("taskSupport")?.as_str()) {
        set_meta(&mut mended, crate::incoming::TASK_SUPPORT, support.into());
    }
    let shown = shown(name);
    let named = named.into_iter().map(|oddity| format!("tool '{shown}': {oddity}")).collect();
    let received = Some(codecall_store::state::hex(&Sha256::digest(entry.to_string().as_bytes())));
    let mut mended = without_oddities(mended);
    set_meta(&mut mended, ODDITIES, json!(Oddities { named, received }));
    Ok(mended.into())
}

fn set_meta(tool: &mut Map<String, Value>, key: &str, value: Value) {
    let meta = tool.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    meta[key] = value;
}

fn without_oddities(mut tool: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(meta)) = tool.get_mut("_meta") {
        meta.shift_remove(ODDITIES);
    }
    tool
}

/// Gives a tool a schema that accepts any input where its own cannot be read.
fn mend_schema(tool: &mut Map<String, Value>, named: &mut Vec<String>) {
    let sent = tool.get("inputSchema").cloned();
    let reason = match &sent {
        Some(Value::Object(_)) => return,
        // Every value fits the schema `true`.
        Some(Value::Bool(true)) => None,
        Some(Value::Null) | None => None,
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(schema @ Value::Object(_)) => {
                named.push("its 'inputSchema' is a text".into());
                tool.insert("inputSchema".into(), schema);
                return;
            }
            Ok(_) | Err(_) => Some("a text"),
        },
        Some(other) => Some(kind(other)),
    };
    named.push(match (reason, &sent) {
        (Some(kind), _) => format!("its 'inputSchema' is {kind}, so that its input is not checked"),
        (None, Some(value)) => format!("its 'inputSchema' is {value}, so that its input is not checked"),
        (None, None) => "it has no 'inputSchema', so that its input is not checked".into(),
    });
    tool.insert("inputSchema".into(), json!({"type": "object"}));
}

/// Removes annotations that cannot be read. A tool with such a hint counts as destructive and open-world.
fn mend_annotations(tool: &mut Map<String, Value>, named: &mut Vec<String>) {
    const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let mut annotations = match tool.remove("annotations") {
        None | Some(Value::Null) => return,
        Some(Value::Object(annotations)) => annotations,
        Some(other) => {
            named.push(format!("its 'annotations' are {}; it counts as destructive and open-world", kind(&other)));
            tool.insert("annotations".into(), cautious(None));
            return;
        }
    };
    annotations.retain(|_, value| !value.is_null());
    let is_text = annotations.get("title").is_none_or(Value::is_string);
    if !is_text {
        annotations.shift_remove("title");
        named.push("the title of its 'annotations' cannot be read and is left out".into());
    }
    let unreadable = HINTS.into_iter().find(|hint| annotations.get(*hint).is_some_and(|value| !value.is_boolean()));
    tool.insert(
        "annotations".into(),
        match unreadable {
            None => annotations.into(),
            Some(hint) => {
                let value = annotations.get(hint).unwrap_or(&Value::Null);
                named.push(format!("its '{hint}' is {}; it counts as destructive and open-world", kind(value)));
                cautious(annotations.get("title"))
            }
        },
    );
}

/// Returns annotations that promise nothing.
fn cautious(title: Option<&Value>) -> Value {
    let mut annotations =
        json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true});
    if let Some(title) = title {
        annotations["title"] = title.clone();
    }
    annotations
}

/// Returns a name as an oddity has it: one line, without hidden text.
pub fn shown(name: &str) -> String {
    truncate(&visible(name).replace(char::is_control, " "), MAX_NAME_BYTES).to_owned()
}

/// Names the kind of a JSON value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
