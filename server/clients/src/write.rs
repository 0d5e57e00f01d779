//! Writes our configuration, or adds to one that exists.

use crate::plan::{Plan, Planned, PlannedSetting, STARTING};
use crate::read::{self, split_mark, with_line_ends_of};
use indexmap::IndexSet;
use serde_json::Value;
use std::collections::BTreeSet;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

const HEAD: &str = "\
# The configuration of CodeCall, begun by `codecall init`.
# `codecall config explain` lists all keys, `codecall config check` checks this file, `codecall config show` prints
# what it amounts to. `${NAME}` in a value is an environment variable.

# Limits and permissions of scripts: \"locked_down\", \"secure\" (default), \"balanced\" or \"experimental\".
# [vm]
# preset = \"secure\"

# How often tools may be called.
# [[rateLimits]]
# tool = \"github:*\"
# limit = 60
# window = \"1m\"

# A record of every call.
# [audit]
# file = \"/var/log/codecall.jsonl\"
";

/// A file after the servers of a plan were added.
#[derive(Clone, Debug)]
pub struct Written {
    /// The text of the file.
    pub text: String,
    /// The names of the servers that were added.
    pub added: IndexSet<String>,
    /// The names of servers that the file has already; they are not changed.
    pub kept: IndexSet<String>,
    /// The names of servers of which the file has others with the same name; these are not changed, and those are not
    /// added.
    pub different: IndexSet<String>,
    /// The keys of settings that were added.
    pub settings: Vec<String>,
    /// The keys of settings of which the file has other values; these are not changed.
    pub different_settings: Vec<String>,
}

impl Written {
    /// Whether the file has a server of the plan.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.added.contains(name) || self.kept.contains(name)
    }
}

/// Adds the servers of a plan to a text; `None`: to a new one.
///
/// # Errors
/// The text is not TOML.
pub fn write(existing: Option<&str>, plan: &Plan) -> Result<Written, String> {
    let (mark, text) = split_mark(existing.unwrap_or(HEAD));
    let mut document = read::toml(text)?;
    // Comments at the end stay before what is added.
    let mut end = document.trailing().as_str().unwrap_or_default().to_owned();
    let before: Value = toml::from_str(text).map_err(|_| "not valid TOML".to_owned())?;
    let (settings, different_settings) = add_settings(&mut document, &before, plan);
    // Those of a new file stay above its settings.
    let head = if existing.is_none() && !settings.is_empty() { std::mem::take(&mut end) + "\n" } else { String::new() };
    let servers = document.entry("mcpServers").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or("'mcpServers' is not a table")?;
    let known: BTreeSet<String> = servers.iter().map(|(name, _)| name.to_owned()).collect();
    let (mut added, mut kept, mut different) = (IndexSet::new(), IndexSet::new(), IndexSet::new());
    for planned in &plan.servers {
        if known.contains(&planned.name) {
            let keys = Value::Object(planned.keys());
            let other = &before["mcpServers"][&planned.name];
            let is_same = STARTING.iter().all(|key| keys.get(*key) == other.get(*key));
            if is_same { &mut kept } else { &mut different }.insert(planned.name.clone());
            continue;
        }
        let before = if added.is_empty() { end.as_str() } else { "" };
        servers.insert(&planned.name, Item::Table(entry(planned, before)));
        added.insert(planned.name.clone());
    }
    if added.is_empty() && settings.is_empty() {
        return Ok(Written { text: format!("{mark}{text}"), added, kept, different, settings, different_settings });
    }
    if !added.is_empty() || !head.is_empty() {
        document.set_trailing("");
    }
    let text = with_line_ends_of(text, format!("{head}{document}"));
    Ok(Written { text: format!("{mark}{text}"), added, kept, different, settings, different_settings })
}

/// Adds the settings of a plan. Returns the keys that were added, and those that have other values.
fn add_settings(document: &mut DocumentMut, before: &Value, plan: &Plan) -> (Vec<String>, Vec<String>) {
    let (mut added, mut different) = (Vec::new(), Vec::new());
    for PlannedSetting { setting, client, path } in &plan.settings {
        let name = setting.path();
        let known = setting.key.iter().try_fold(before, |at, key| at.get(key));
        if known.is_some() || added.contains(&name) {
            if known.is_none_or(|known| *known != setting.value) {
                different.push(name);
            }
            continue;
        }
        let Some((last, tables)) = setting.key.split_last() else { continue };
        let table = tables.iter().try_fold(document.as_table_mut() as &mut dyn TableLike, |table, key| {
            table.entry(key).or_insert_with(|| Item::Table(Table::new())).as_table_like_mut()
        });
        let Some(table) = table else {
            different.push(name);
            continue;
        };
        table.insert(last, Item::Value(toml(&setting.value)));
        if let Some(mut key) = table.key_mut(last) {
            let from = format!("# From {client}: {} ({}).\n", line(&setting.from), line(&path.display().to_string()));
            key.leaf_decor_mut().set_prefix(from);
        }
        added.push(name);
    }
    (added, different)
}

/// The table of a server, with comments. `before` stands above them.
fn entry(planned: &Planned, before: &str) -> Table {
    let mut table = Table::new();
    for (key, value) in planned.keys() {
        table.insert(&key, Item::Value(toml(&value)));
    }
    let mut comment = format!("{before}\n# From {}: {}\n", planned.client, line(&planned.path.display().to_string()));
    for note in &planned.server.notes {
        comment.push_str(&format!("# {}.\n", line(note)));
    }
    for need in &planned.server.needs {
        let what = if need.what.is_empty() { String::new() } else { format!(" ({})", line(&need.what)) };
        comment.push_str(&format!("# It needs the environment variable {}{what}.\n", need.variable));
    }
    if !planned.missing.is_empty() {
        comment.push_str("# It is not set: set it, and remove 'enabled = false'.\n");
    }
    table.decor_mut().set_prefix(comment);
    table
}

/// A comment is one line.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, number) => number.unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(toml).collect::<Array>().into(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.as_str(), toml(value)));
            members.collect::<InlineTable>().into()
        }
        Value::Null => "".into(),
    }
}
