//! The JSON schema of the configuration, generated from the structs of its sections. Input is checked against it, and the
//! reference page and the schema for editors are made from it.
//!
//! Keywords of its own:
//!
//! | keyword | meaning |
//! |---|---|
//! | `x-aliases` | other names of the key or the value |
//! | `x-default` | the default in words, where it is no constant |
//! | `x-ignored` | the key is accepted and not used |
//! | `x-name` | what the reference writes for the name of an entry |
//! | `x-secret` | which texts of the value are secrets: see `secrets.rs` |
//! | `x-short` | a text instead of the table is the value of this key |
//! | `x-type` | the type in words |

use super::Config;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Returns the schema of the whole configuration.
pub fn root() -> &'static Value {
    static ROOT: LazyLock<Value> = LazyLock::new(of_type::<Config>);
    &ROOT
}

/// Returns the schema of a section, without references.
pub fn of_type<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(with_plain_text));
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Returns the keys of a section.
pub fn properties<T: JsonSchema>() -> Vec<String> {
    of_type::<T>()["properties"].as_object().map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the schema for editors: standard keywords only, with aliases as properties of their own.
#[must_use]
pub fn published() -> Value {
    let mut schema = Schema::try_from(root().clone()).unwrap_or_default();
    RecursiveTransform(publish).transform(&mut schema);
    let mut schema = schema.to_value();
    if let Some(schema) = schema.as_object_mut()
        && let Some(dialect) = schema.shift_remove("$schema")
    {
        schema.shift_insert(0, "$schema".into(), dialect);
    }
    schema
}

/// Removes `null`, which means the same as leaving a key out.
fn without_null(schema: &mut Schema) {
    let is_null = |value: &Value| value.is_null() || value == "null" || *value == json!({ "type": "null" });
    let Some(schema) = schema.as_object_mut() else { return };
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
    for keyword in ["type", "enum", "anyOf"] {
        let Some(Value::Array(items)) = schema.get_mut(keyword) else { continue };
        items.retain(|item| !is_null(item));
        if keyword == "enum" || items.len() != 1 {
            continue;
        }
        match (keyword, items.remove(0)) {
            ("anyOf", Value::Object(only)) => {
                schema.shift_remove(keyword);
                let outer = std::mem::replace(schema, only);
                schema.extend(outer);
            }
            (_, only) => drop(schema.insert(keyword.to_owned(), only)),
        }
    }
}

/// Puts descriptions on one line, and removes names of Rust types.
fn with_plain_text(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    schema.shift_remove("title");
    schema.shift_remove("format");
}

fn publish(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        let other_names: Vec<(String, Value)> = properties.iter().flat_map(|(name, key)| renamed(name, key)).collect();
        properties.extend(other_names);
    }
    if let Some(Value::Array(values)) = schema.get_mut("oneOf") {
        let other_names = |value: &Value| aliases(value).map(|alias| json!({ "const": alias })).collect::<Vec<_>>();
        values.extend(values.iter().flat_map(other_names).collect::<Vec<_>>());
    }
    if schema.contains_key("x-default") {
        schema.shift_remove("default");
    }
    if let Some(Value::String(short)) = schema.shift_remove("x-short") {
        let text = schema["properties"][&short].clone();
        let description = schema.shift_remove("description");
        let table = std::mem::take(schema);
        schema.extend(description.map(|description| ("description".to_owned(), description)));
        schema.insert("anyOf".into(), json!([table, text]));
    }
    schema.retain(|keyword, _| !keyword.starts_with("x-"));
}

/// Returns the aliases of a key, as keys.
fn renamed(name: &str, key: &Value) -> Vec<(String, Value)> {
    let mut other = key.clone();
    if let Some(other) = other.as_object_mut() {
        other.shift_remove("x-aliases");
        other.insert("description".into(), format!("Another name of `{name}`.").into());
    }
    aliases(key).map(|alias| (alias.to_owned(), other.clone())).collect()
}

/// Returns the values of a key that has a fixed set of them, with their documentation.
pub fn values(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["oneOf"].as_array().into_iter().flatten()
}

/// Returns the other names of a key or a value.
pub fn aliases(key: &Value) -> impl Iterator<Item = &str> {
    key["x-aliases"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Returns the keys of a table, if it has fixed keys.
pub fn keys(schema: &Value) -> Option<&Map<String, Value>> {
    schema["properties"].as_object()
}

/// A key that others write for themselves: any value is accepted and not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored;

impl JsonSchema for Ignored {
    fn schema_name() -> Cow<'static, str> {
        "Ignored".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-ignored": true })
    }
}
