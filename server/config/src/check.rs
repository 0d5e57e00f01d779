//! Checks a value against the schema of its keys: which keys exist, bounds, lengths. Types are left to serde, except
//! types that it would call by their names in Rust. On the way it brings the value into the form that the structs
//! have, and collects secrets.

use super::schema::{aliases, keys, values};
use super::secrets::FoundSecrets;
use codecall_base::error::unknown_key;
use serde_json::{Map, Number, Value, json};

/// Checks the value at `path`.
///
/// # Errors
/// The mistake, with the name of the key.
pub fn check(value: &mut Value, schema: &Value, path: &str, found: &mut FoundSecrets) -> Result<(), String> {
    if let (Some(short), true) = (schema["x-short"].as_str(), value.is_string()) {
        *value = json!({ short: value.take() });
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let branch = branches.iter().find(|branch| has_type(value, branch));
        return branch.map_or(Ok(()), |branch| check(value, branch, path, found));
    }
    let is_secret = schema["x-secret"].as_str().map(|kind| found.collect(kind, value)).is_some();
    match value {
        Value::Object(table) => match keys(schema) {
            Some(keys) => check_table(table, keys, &schema["additionalProperties"], path, found)?,
            None if schema["additionalProperties"].is_object() && !is_secret => {
                for (name, entry) in table {
                    check(entry, &schema["additionalProperties"], &join(path, name), found)?;
                }
            }
            None => {}
        },
        Value::Array(items) if schema["items"].is_object() && !is_secret => {
            for (index, item) in items.iter_mut().enumerate() {
                check(item, &schema["items"], &format!("{path}[{index}]"), found)?;
            }
        }
        Value::Number(number) => check_bounds(number, schema).map_err(|problem| format!("{path}: {problem}"))?,
        Value::String(text) => {
            if let Some(value) = values(schema).find(|value| aliases(value).any(|alias| alias == text)) {
                *text = value["const"].as_str().unwrap_or_default().to_owned();
            }
            let least = schema["minLength"].as_u64().unwrap_or(0);
            if u64::try_from(text.chars().count()).is_ok_and(|length| length < least) {
                return Err(format!("{path}: must have at least {least} characters"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => {}
    }
    match schema["type"].as_str() {
        Some("integer") if !value.is_u64() && !value.is_i64() => {
            Err(format!("{path}: wrong value, expected a whole number"))
        }
        Some("object") if !value.is_object() => {
            let short = if schema["x-short"].is_string() { "a text or " } else { "" };
            Err(format!("{path}: wrong value, expected {short}a table"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A table with fixed keys: aliases become the key's own name, keys that are `null` or ignored are removed. Where
/// `entries` is a
/// schema, other keys are names of entries.
fn check_table(
    table: &mut Map<String, Value>,
    keys: &Map<String, Value>,
    entries: &Value,
    path: &str,
    found: &mut FoundSecrets,
) -> Result<(), String> {
    for (name, mut value) in std::mem::take(table) {
        let known = keys
            .get_key_value(&name)
            .or_else(|| keys.iter().find(|(_, schema)| aliases(schema).any(|alias| alias == name)));
        let Some((key, schema)) = known else {
            if entries.is_object() {
                check(&mut value, entries, &join(path, &name), found)?;
                table.insert(name, value);
                continue;
            }
            let known: Vec<&str> =
                keys.iter().flat_map(|(key, schema)| [key.as_str()].into_iter().chain(aliases(schema))).collect();
            let problem = unknown_key(&name, &known);
            return Err(if path.is_empty() { problem } else { format!("{path}: {problem}") });
        };
        if value.is_null() || schema["x-ignored"] == true {
            continue;
        }
        check(&mut value, schema, &join(path, &name), found)?;
        if table.insert(key.clone(), value).is_some() {
            return Err(format!("{}: '{key}' is given twice, as '{name}' is another name of it", join(path, &name)));
        }
    }
    Ok(())
}

fn check_bounds(number: &Number, schema: &Value) -> Result<(), String> {
    let bound = |keyword: &str| schema[keyword].as_number();
    let (least, most) = (bound("minimum"), bound("maximum"));
    let value = number.as_f64().unwrap_or(f64::NAN);
    let is_less = |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| a < b);
    let too_small = is_less(Some(value), least.and_then(Number::as_f64));
    let too_large = is_less(most.and_then(Number::as_f64), Some(value));
    if !too_small && !too_large {
        return Ok(());
    }
    Err(match (least, most) {
        (Some(least), Some(most)) => format!("must be from {least} to {most}"),
        (Some(least), None) => format!("must be a whole number, {least} or more"),
        (None, Some(most)) => format!("must be at most {most}"),
        (None, None) => return Ok(()),
    })
}

fn has_type(value: &Value, schema: &Value) -> bool {
    match schema["type"].as_str() {
        Some("boolean") => value.is_boolean(),
        Some("integer" | "number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(_) | None => false,
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
