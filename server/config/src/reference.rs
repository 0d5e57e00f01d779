//! Texts about each key, from the schema: for the reference page and `codecall config explain`.

use super::schema::{self, aliases};
use codecall_base::error::unknown_key;
use serde_json::Value;

/// A key, or the configuration as a whole.
#[derive(Clone, Debug)]
pub struct Key {
    path: String,
    schema: &'static Value,
    is_required: bool,
}

impl Key {
    /// The configuration as a whole: its path is empty.
    #[must_use]
    pub fn root() -> Self {
        Self { path: String::new(), schema: schema::root(), is_required: false }
    }

    /// The key at `path`, such as `pool.maxRuns`, `mcpServers.github.command` or `rateLimits.limit`.
    ///
    /// # Errors
    /// There is no such key; the message names the nearest one.
    pub fn find(path: &str) -> Result<Self, String> {
        let mut key = Self::root();
        for name in path.split('.').filter(|name| !name.is_empty()) {
            let name = name.split('[').next().unwrap_or_default();
            let keys = key.keys();
            let is_named =
                |candidate: &&Self| candidate.name() == name || candidate.aliases().any(|alias| alias == name);
            key = match (keys.iter().find(is_named), key.entry()) {
                (Some(found), _) => found.clone(),
                (None, Some(entry)) => entry,
                (None, None) => return Err(key.unknown(name, &keys)),
            };
        }
        Ok(key)
    }

    fn unknown(&self, name: &str, keys: &[Self]) -> String {
        let place = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
        let names: Vec<&str> = keys.iter().flat_map(|key| [key.name()].into_iter().chain(key.aliases())).collect();
        if names.is_empty() {
            return format!("{place}there are no keys below it");
        }
        format!("{place}{}", unknown_key(name, &names))
    }

    /// From the top level, with dots. `NAME` stands for the name of any entry, `[]` for any item of a list.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its last part.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    /// Its other names.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        aliases(self.schema)
    }

    /// The purpose of it, with the meaning of each value.
    #[must_use]
    pub fn text(&self) -> String {
        let text = self.schema["description"].as_str().unwrap_or_default().to_owned();
        let is_list = self.schema["type"] == "array";
        let schema = if is_list { &self.schema["items"] } else { self.schema };
        let values = schema::values(schema).map(|value| {
            let names = [&value["const"]].into_iter().chain(value["x-aliases"].as_array().into_iter().flatten());
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            format!(" {}: {}", names.join(" or "), value["description"].as_str().unwrap_or_default())
        });
        let secret = match self.secret() {
            Some("value") => " A secret.",
            Some("credentials" | "headers") => " The values are secrets.",
            Some(_) | None => "",
        };
        text + &values.collect::<String>() + secret
    }

    /// The type of its value, with bounds.
    #[must_use]
    pub fn kind(&self) -> String {
        kind(self.schema, false)
    }

    /// The part of its value that is a secret; `None`: no part.
    #[must_use]
    pub fn secret(&self) -> Option<&str> {
        self.schema["x-secret"].as_str()
    }

    /// Whether its value is accepted and not used.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        self.schema["x-ignored"] == true
    }

    /// Whether its value is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.schema["type"] == "array"
    }

    /// Whether its type has a name: it is explained as a whole.
    #[must_use]
    pub fn has_words(&self) -> bool {
        self.schema["x-type"].is_string()
    }

    /// The value that it has if it is left out, in Markdown.
    #[must_use]
    pub fn default(&self) -> String {
        let schema = self.schema;
        let default = match schema["x-short"].as_str() {
            Some(short) => &schema["properties"][short]["default"],
            None => &schema["default"],
        };
        match (&schema["x-default"], default) {
            (Value::String(words), _) => words.clone(),
            (_, Value::Null) if self.is_required => "required".into(),
            (_, Value::Null) if schema["x-ignored"] == true || schema::keys(schema).is_some() => String::new(),
            (_, Value::Null) if schema["type"] == "array" => "`[]`".into(),
            (_, Value::Null) if schema["type"] == "object" => "`{}`".into(),
            (_, Value::Null) => "none".into(),
            (_, default) => format!("`{default}`"),
        }
    }

    /// The keys of its value, or of each entry of it.
    #[must_use]
    pub fn keys(&self) -> Vec<Self> {
        let (path, schema) = match self.schema["type"].as_str() {
            Some("array") => (format!("{}[]", self.path), &self.schema["items"]),
            Some(_) | None => (self.path.clone(), self.schema),
        };
        let branch = schema["anyOf"].as_array().into_iter().flatten().find(|branch| branch["type"] == "object");
        let table = branch.unwrap_or(schema);
        let required: Vec<&str> =
            table["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let keys = schema::keys(table).into_iter().flatten().map(|(name, schema)| Self {
            path: if path.is_empty() { name.clone() } else { format!("{path}.{name}") },
            schema,
            is_required: required.contains(&name.as_str()),
        });
        keys.collect()
    }

    /// Any entry of a table whose keys are names.
    #[must_use]
    pub fn entry(&self) -> Option<Self> {
        let name = self.schema["x-name"].as_str().unwrap_or("NAME");
        let schema = Some(&self.schema["additionalProperties"]).filter(|schema| schema.is_object())?;
        Some(Self { path: format!("{}.{name}", self.path), schema, is_required: false })
    }

    /// Its keys with those of tables within it, as the rows of one table of the reference page. Tables for
    /// which `is_apart` is true, by their paths, have a table of their own.
    #[must_use]
    pub fn rows(&self, is_apart: &dyn Fn(&str) -> bool) -> Vec<Self> {
        let mut rows = Vec::new();
        for key in self.keys() {
            // A table may have fixed keys beside named entries.
            let tables = [Some(key.clone()), key.entry()];
            rows.push(key);
            for table in tables.into_iter().flatten() {
                // A type with a name is explained once on the page.
                let is_named = table.schema["x-type"].is_string();
                if !is_named && !is_apart(&table.path) {
                    rows.extend(table.rows(is_apart));
                }
            }
        }
        rows
    }
}

/// A type in words.
fn kind(schema: &Value, is_many: bool) -> String {
    let bounds = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Null, Value::Null) => String::new(),
        (least, Value::Null) if least == 0 => String::new(),
        (least, Value::Null) => format!(", at least {least}"),
        (Value::Null, most) => format!(", at most {most}"),
        (least, most) => format!(", {least} to {most}"),
    };
    let named = |name: &str| format!("{name}{}{bounds}", if is_many { "s" } else { "" });
    let values = |values: &[Value]| values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    if let Some(words) = schema["x-type"].as_str() {
        return named(words);
    }
    if let Some(constants) = schema["enum"].as_array() {
        return values(constants);
    }
    if schema["oneOf"].is_array() {
        return values(&schema::values(schema).map(|value| value["const"].clone()).collect::<Vec<_>>());
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().map(|branch| kind(branch, is_many)).collect::<Vec<_>>().join(" or ");
    }
    if let Some(short) = schema["x-short"].as_str() {
        return format!("{} or a table", kind(&schema["properties"][short], false));
    }
    match (schema["type"].as_str(), &schema["minLength"]) {
        (Some("boolean"), _) => "`true` or `false`".into(),
        (Some("integer"), _) => named("whole number"),
        (Some("string"), Value::Null) => named("text"),
        (Some("string"), least) => format!("text of at least {least} characters"),
        (Some("array"), _) => format!("list of {}", kind(&schema["items"], true)),
        (Some("object"), _) if schema["additionalProperties"].is_object() => {
            format!("table of {} by name", kind(&schema["additionalProperties"], true))
        }
        (Some("object"), _) => named("table"),
        (Some(other), _) => named(other),
        (None, _) => "any".into(),
    }
}
