//! The outline of a long result, for a client that gets its beginning: shape, lengths of lists, and a way to select a part.

use agentscript::declarations::name;
use agentscript::text_form::{self, Form, Reading};
use agentscript::{CompileOptions, compile};
use codecall_base::json;
use codecall_base::offload;
use codecall_base::shape::Shape;
use serde_json::{Map, Value};

/// Maximum length of a result that is looked into, in bytes.
const MAX_BYTES: usize = 4 << 20;
/// Maximum length of a shape, in bytes.
const MAX_SHAPE_BYTES: usize = 600;
/// Maximum number of lists whose items are counted.
const MAX_COUNTS: usize = 20;
/// Maximum number of properties of an item that a selection names.
const MAX_SELECTED: usize = 3;
/// How many items a selection takes.
const ITEMS: usize = 20;

/// The outline of a long result.
#[derive(Debug, Default)]
pub struct Outline {
    /// Its type in TypeScript; empty: it was not looked into.
    shape: String,
    /// How many items its lists have, by the names of the properties; that of the result itself is `""`.
    counts: Map<String, Value>,
    /// How a script selects a part of it, as an expression of `r`.
    selection: Option<String>,
}

impl Outline {
    /// Returns the outline of a result, given as JSON.
    pub async fn of(json: &str) -> Self {
        if json.len() > MAX_BYTES {
            return Self::default();
        }
        let read = || json::read(json).map(|value| Self::of_value(&value)).unwrap_or_default();
        offload::run(json.len(), read).await.unwrap_or_default()
    }

    fn of_value(value: &Value) -> Self {
        let shape = Shape::of(value).to_type(MAX_SHAPE_BYTES);
        let mut counts = Map::new();
        let selection = match value {
            Value::Array(items) => {
                counts.insert(String::new(), items.len().into());
                Some(selected("r", items))
            }
            Value::Object(members) => {
                let lists = members.iter().filter_map(|(key, value)| Some((key, value.as_array()?)));
                counts.extend(lists.clone().take(MAX_COUNTS).map(|(key, items)| (key.clone(), items.len().into())));
                let longest = lists.max_by_key(|(_, items)| items.len());
                longest.filter(|(_, items)| items.len() > 1).map(|(key, items)| selected(&member("r", key), items))
            }
            Value::String(text) => Some(selected_of_text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        };
        Self { shape, counts, selection }
    }

    /// Returns what a script does instead of reading on.
    pub fn advice(&self) -> String {
        match &self.selection {
            Some(selection) => format!("run the script again with `return {selection}` in place of `return r`"),
            None => "run the script again and return less".into(),
        }
    }

    /// Returns what a script does instead of one call of a tool.
    pub fn advice_on_call(&self, tool: &str) -> String {
        let selection = self.selection.as_deref().unwrap_or("JSON.stringify(r).slice(0, 2000)");
        let tool = Value::from(tool);
        format!("select a part in a script: const r = await callTool({tool}, {{…}}); return {selection}")
    }

    /// Adds shape and counts to the `truncated` member of an answer.
    pub fn added_to(self, mut truncated: Value) -> Value {
        if !self.shape.is_empty() {
            truncated["shape"] = self.shape.into();
        }
        if !self.counts.is_empty() {
            truncated["counts"] = self.counts.into();
        }
        truncated
    }
}

/// Returns an expression for a property of an object.
fn member(object: &str, key: &str) -> String {
    if name(key) == key { format!("{object}.{key}") } else { format!("{object}[{}]", Value::from(key)) }
}

/// Returns an expression for the first items of a list, with a few properties of each.
fn selected(list: &str, items: &[Value]) -> String {
    let first = items.iter().find_map(Value::as_object);
    let is_short = |value: &Value| !matches!(value, Value::Array(_) | Value::Object(_));
    let keys = first.into_iter().flatten().filter(|(key, value)| name(key) == key.as_str() && is_short(value));
    let keys: Vec<&str> = keys.map(|(key, _)| key.as_str()).take(MAX_SELECTED).collect();
    let keys = keys.join(", ");
    let mapped = format!("{list}.slice(0, {ITEMS}).map(({{{keys}}}) => ({{{keys}}}))");
    // A key may be a word of the language.
    let is_script =
        |script: &str| compile(&format!("const r = []; return {script}"), &CompileOptions::default()).is_ok();
    if !keys.is_empty() && is_script(&mapped) { mapped } else { format!("{list}.slice(0, {ITEMS})") }
}

fn selected_of_text(text: &str) -> String {
    let content = text_form::content(text);
    let is_readable = |text: &str| text.starts_with(['{', '[']) && json::is_readable(text);
    if content.starts_with('{') && is_readable(content) {
        return "Object.keys(parseText(r).data)".into();
    }
    let has_rows = is_readable(content)
        || content.lines().next().is_some_and(is_readable)
        || Form::ALL.into_iter().any(|form| text_form::check(form, content, Reading::default()).is_ok());
    if has_rows { format!("parseText(r).data.slice(0, {ITEMS})") } else { "r.slice(0, 2000)".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selection_follows_the_shape() {
        for (value, selection, counts) in [
            (
                json!([{"id": 1, "tags": [], "name": "a", "x-y": 1, "n": 2, "m": 3}]),
                "r.slice(0, 20).map(({id, name, n}) => ({id, name, n}))",
                json!({"": 1}),
            ),
            (json!({"total": 2, "items": [1, 2], "a-b": [1]}), "r.items.slice(0, 20)", json!({"items": 2, "a-b": 1})),
            (json!({"a-b": [1, 2]}), "r[\"a-b\"].slice(0, 20)", json!({"a-b": 2})),
            (json!([{"class": 1}]), "r.slice(0, 20)", json!({"": 1})),
            (json!("some text"), "r.slice(0, 2000)", json!({})),
            (json!("a,b\n1,2\n"), "parseText(r).data.slice(0, 20)", json!({})),
        ] {
            let outline = Outline::of_value(&value);
            assert_eq!(outline.selection.as_deref(), Some(selection), "{value}");
            assert_eq!(Value::Object(outline.counts), counts, "{value}");
            let script = format!("const r = codecallContext; return {selection}");
            assert!(compile(&script, &CompileOptions::default()).is_ok(), "{script}");
        }
        assert_eq!(Outline::of_value(&json!({"a": 1})).advice(), "run the script again and return less");
    }
}
