//! Keeps the readable part of answers that MCP does not allow, and names the rest.
//!
//! rmcp reads an answer whole or not at all: one odd entry of a list would take away the list, and with it the server.
//! An answer that rmcp reads never comes here.

mod content;
mod listing;

pub use listing::{ODDITIES, shown, take_oddities};

use rmcp::model::ServerResult;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Reads a result that is none of MCP's. Returns `None` if nothing in it says what it answers.
#[must_use]
pub fn result(value: &Value) -> Option<ServerResult> {
    let members = value.as_object()?;
    let has = |key: &str| members.contains_key(key);
    let mended = if has("tools") {
        listing::tools(members)
    } else if has("protocolVersion") {
        handshake(members)
    } else if let Some((key, required)) = listing::OTHERS.iter().find(|(key, _)| has(key)) {
        listing::entries(members, key, required)
    } else if ["content", "structuredContent", "isError", "toolResult"].into_iter().any(has) {
        content::call_result(members)
    } else {
        return None;
    };
    serde_json::from_value(mended).ok()
}

/// Reads the result of a call that [`result`] does not recognise: the text or the data is the result.
#[must_use]
pub fn call_result(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.is_empty() => json!({"content": []}),
        Value::Object(_) => json!({"content": [], "structuredContent": value}),
        Value::Null => json!({"content": []}),
        Value::String(_) => json!({"content": content::blocks(value)}),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            json!({"content": [{"type": "text", "text": value.to_string()}]})
        }
    }
}

/// Mends the answer to a handshake.
fn handshake(members: &Map<String, Value>) -> Value {
    let mut mended = members.clone();
    if let Value::Number(version) = &mended["protocolVersion"] {
        mended["protocolVersion"] = version.to_string().into();
    }
    let mut capabilities = match mended.remove("capabilities") {
        Some(Value::Object(capabilities)) => capabilities,
        // A server that says nothing readable of itself is asked for tools.
        Some(_) | None => Map::from_iter([("tools".to_owned(), json!({}))]),
    };
    capabilities.retain(|_, capability| !matches!(capability, Value::Null | Value::Bool(false)));
    capabilities
        .values_mut()
        .filter(|capability| !capability.is_object())
        .for_each(|capability| *capability = json!({}));
    let mut server = mended.remove("serverInfo").unwrap_or_default();
    for key in ["name", "version"] {
        let text = match server.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ Value::Number(_)) => value.to_string(),
            Some(_) | None => "unknown".to_owned(),
        };
        match &mut server {
            Value::Object(members) => drop(members.insert(key.to_owned(), text.into())),
            other => *other = json!({key: text}),
        }
    }
    mended.insert("capabilities".into(), capabilities.into());
    mended.insert("serverInfo".into(), server);
    let required = ["protocolVersion", "capabilities", "serverInfo"];
    let (mended, _) = readable::<rmcp::model::InitializeResult>(&mended, &required).unwrap_or_default();
    mended.into()
}

/// Returns the members that `T` can read, and the names of the others; `None` if it cannot read the required members.
fn readable<T: DeserializeOwned>(
    members: &Map<String, Value>,
    required: &[&str],
) -> Option<(Map<String, Value>, Vec<String>)> {
    let is_readable = |members: &Map<String, Value>| serde_json::from_value::<T>(members.clone().into()).is_ok();
    if is_readable(members) {
        return Some((members.clone(), Vec::new()));
    }
    let is_required = |key: &String| required.contains(&key.as_str());
    let mut kept: Map<String, Value> = members.clone();
    kept.retain(|key, _| is_required(key));
    if !is_readable(&kept) {
        return None;
    }
    let mut unreadable = Vec::new();
    for (key, value) in members.iter().filter(|(key, _)| !is_required(key)) {
        kept.insert(key.clone(), value.clone());
        if !is_readable(&kept) {
            kept.shift_remove(key);
            unreadable.push(key.clone());
        }
    }
    Some((kept, unreadable))
}

#[cfg(test)]
mod tests;
