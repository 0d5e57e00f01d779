//! Keys of the configuration in the environment of the process: `CODECALL_VM_PRESET` is `vm.preset`.
//!
//! One rule holds for all keys: `CODECALL_`, and the names of the path in capitals, with `_` between words. A key of texts
//! has the text as it is; a list has JSON or texts with commas between them; a table has JSON.

use super::auth::MASTER_KEY_VARIABLE;
use super::schema::{aliases, keys, root};
use super::search::INSTALLED_MODEL_VARIABLE;
use super::store::MASTER_KEY_FILE_VARIABLE;
use codecall_base::text::nearest;
use serde_json::{Map, Value};

/// The beginning of the names of all variables.
pub const PREFIX: &str = "CODECALL_";
/// The variable that names the file of the configuration.
pub const FILE: &str = "CODECALL_CONFIG";
/// Variables with a meaning of their own, which are no keys. They belong to the command line, the master key, the model
/// that the launcher has found, and the mark of child processes.
pub const OTHERS: [&str; 6] = [
    FILE,
    "CODECALL_LOG_FORMAT",
    "CODECALL_SERVER",
    MASTER_KEY_VARIABLE,
    MASTER_KEY_FILE_VARIABLE,
    INSTALLED_MODEL_VARIABLE,
];

/// A key that a variable sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The path of the key: `vm.preset`.
    pub path: String,
    /// The name of the variable.
    pub variable: String,
}

/// The variables of this process that may be keys, in order. Empty ones are as good as not set.
#[must_use]
pub fn variables() -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty() && !OTHERS.contains(&name.as_str()))
        .collect();
    variables.sort();
    variables
}

/// Writes the values of variables into a document. Returns the keys that they set, and a warning for each variable that
/// is no key.
pub fn apply(document: &mut Value, variables: &[(String, String)]) -> (Vec<Override>, Vec<String>) {
    let (mut overrides, mut warnings) = (Vec::new(), Vec::new());
    for (variable, text) in variables {
        let Some(words) = variable.strip_prefix(PREFIX).filter(|words| !words.is_empty()) else { continue };
        match resolve(root(), Some(document), words) {
            Some((path, schema)) => {
                insert(document, root(), &path, typed(text, schema));
                overrides.push(Override { path: path.join("."), variable: variable.clone() });
            }
            None => warnings.push(unknown(variable)),
        }
    }
    (overrides, warnings)
}

/// Returns the variable of a key without names of entries: that of `vm.preset` is `CODECALL_VM_PRESET`.
#[must_use]
pub fn variable(path: &str) -> String {
    let words: Vec<String> = path.split('.').map(capitals).collect();
    format!("{PREFIX}{}", words.join("_"))
}

fn unknown(variable: &str) -> String {
    let mut known = Vec::new();
    for (name, schema) in keys(root()).into_iter().flatten() {
        let inner = keys(table(schema)).into_iter().flatten().map(|(inner, _)| format!("{name}.{inner}"));
        known.extend(std::iter::once(name.clone()).chain(inner).map(|path| self::variable(&path)));
    }
    // What all begin with would make all similar.
    let words = |name: &str| name.strip_prefix(PREFIX).unwrap_or_default().to_owned();
    let known: Vec<String> = known.iter().map(|name| words(name)).collect();
    match nearest(&words(variable), known.iter().map(String::as_str), 1).first() {
        Some(near) => format!("the environment variable {variable} is no key; did you mean {PREFIX}{near}?"),
        None => format!("the environment variable {variable} is no key; it is ignored"),
    }
}

/// `maxToolCalls` becomes `MAX_TOOL_CALLS`.
fn capitals(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut was_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && was_small {
            out.push('_');
        }
        was_small = letter.is_lowercase() || letter.is_ascii_digit();
        out.extend(if letter.is_alphanumeric() { letter.to_uppercase().next() } else { Some('_') });
    }
    out
}

/// The schema of a key's table, if it can have another type too.
fn table(schema: &Value) -> &Value {
    let branch = schema["anyOf"].as_array().into_iter().flatten().find(|branch| branch["type"] == "object");
    branch.unwrap_or(schema)
}

/// The rest of `words` after `name`: `None`: `words` begins with something else, `Some("")`: nothing.
fn after<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    let rest = words.strip_prefix(name)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('_').filter(|rest| !rest.is_empty()) }
}

/// Finds the key that `words` names, in a value as far as there is one. Returns its path and its schema.
fn resolve<'a>(schema: &'a Value, value: Option<&Value>, words: &str) -> Option<(Vec<String>, &'a Value)> {
    let schema = table(schema);
    if let Some(keys) = keys(schema) {
        let known = keys.iter().filter(|(_, schema)| schema["x-ignored"] != true);
        let mut candidates: Vec<(&String, &Value, &str)> = known
            .filter_map(|(key, schema)| {
                let spellings = std::iter::once(key.as_str()).chain(aliases(schema));
                let mut rests = spellings.filter_map(|spelling| after(words, &capitals(spelling)));
                Some((key, schema, rests.next()?))
            })
            .collect();
        // A key whose whole name it is comes first, then the one with the longest name.
        candidates.sort_by_key(|(_, _, rest)| rest.len());
        return candidates.into_iter().find_map(|(key, schema, rest)| {
            let name = std::iter::once(key.as_str())
                .chain(aliases(schema))
                .find(|name| value.is_some_and(|value| value.get(name).is_some()))
                .unwrap_or(key);
            below(name, schema, value, rest)
        });
    }
    let entry = Some(&schema["additionalProperties"]).filter(|entry| entry.is_object())?;
    let existing = value.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name);
    for name in existing {
        if let Some(found) = after(words, &capitals(name)).and_then(|rest| below(name, entry, value, rest)) {
            return Some(found);
        }
    }
    if keys(table(entry)).is_none() {
        // The names of variables of a child are as they are.
        return Some((vec![words.to_owned()], entry));
    }
    // A new entry: its name is what stands before a key, or all of it.
    let splits = words.match_indices('_').map(|(at, _)| (&words[..at], &words[at + 1..]));
    let mut named = splits.filter(|(name, _)| !name.is_empty());
    let found =
        named.find_map(|(name, rest)| below(&name.to_lowercase(), entry, None, rest).filter(|_| !rest.is_empty()));
    Some(found.unwrap_or_else(|| (vec![words.to_lowercase()], entry)))
}

/// The key itself, or a key below it.
fn below<'a>(name: &str, schema: &'a Value, value: Option<&Value>, rest: &str) -> Option<(Vec<String>, &'a Value)> {
    if rest.is_empty() {
        return Some((vec![name.to_owned()], schema));
    }
    let (mut path, schema) = resolve(schema, value.and_then(|value| value.get(name)), rest)?;
    path.insert(0, name.to_owned());
    Some((path, schema))
}

/// Puts a value at a path, and makes the tables on the way.
fn insert(target: &mut Value, schema: &Value, path: &[String], value: Value) {
    let schema = table(schema);
    if let (Some(short), false) = (schema["x-short"].as_str(), target.is_object()) {
        let text = target.take();
        *target = Value::Object(Map::new());
        if text.is_string() {
            target[short] = text;
        }
    }
    let Some((name, rest)) = path.split_first() else {
        match schema["x-short"].as_str() {
            Some(short) if value.is_string() => target[short] = value,
            Some(_) | None => *target = value,
        }
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let is_key = |key: &str, inner: &Value| key == name || aliases(inner).any(|alias| alias == name);
    let known = keys(schema).into_iter().flatten().find(|(key, inner)| is_key(key, inner)).map(|(_, inner)| inner);
    let inner = known.unwrap_or(&schema["additionalProperties"]);
    insert(&mut target[name.as_str()], inner, rest, value);
}

/// The value of a text for a key with this schema. A value of the wrong type stays a text, which is then refused.
fn typed(text: &str, schema: &Value) -> Value {
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let parsed = || serde_json::from_str::<Value>(text).ok().filter(|value| !value.is_null());
    let value = match types.as_slice() {
        ["boolean"] => match text.trim() {
            "true" | "1" => Some(Value::Bool(true)),
            "false" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        ["array"] => Some(parsed().filter(Value::is_array).unwrap_or_else(|| {
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(Value::from).collect()
        })),
        ["string"] => None,
        _ if schema["oneOf"].is_array() || schema["enum"].is_array() => None,
        _ => parsed(),
    };
    let mut value = value.unwrap_or_else(|| text.into());
    escape(&mut value);
    value
}

/// The shell has expanded what is to be expanded.
fn escape(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace("${", "$${"),
        Value::Array(items) => items.iter_mut().for_each(escape),
        Value::Object(members) => members.values_mut().for_each(escape),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
