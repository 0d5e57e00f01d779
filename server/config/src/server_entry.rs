//! Entries of servers: one that cannot be used switches off its own server only.
//!
//! Keys that restrict a server are no part of that: a configuration with a wrong one is refused as a whole.

use super::check::check;
use super::expand::{Environment, expand, expand_known};
use super::schema::{aliases, keys};
use super::secrets::FoundSecrets;
use serde_json::{Map, Value};
use std::cell::RefCell;

/// An entry of a server.
pub enum ServerEntry<T> {
    /// It can be used.
    Usable(T),
    /// It says that the server is not used.
    Disabled,
    /// It cannot be used, for this reason.
    Unusable(String),
}

/// A server whose entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableServer {
    /// Its kind: `mcp` or `openapi`.
    pub source: &'static str,
    /// Why it cannot be used: the key, and what is wrong with it.
    pub reason: String,
}

/// Returns the names of keys of entries, also the other names, each with the key's own name.
pub fn names(schema: &Value) -> Vec<(&str, &str)> {
    let names = |(key, schema)| std::iter::once(key).chain(aliases(schema)).map(move |name| (name, key));
    keys(schema).into_iter().flatten().map(|(key, schema)| (key.as_str(), schema)).flat_map(names).collect()
}

/// Whether an entry has a key, by any of its names.
pub fn has_key(entry: &Value, schema: &Value, key: &str) -> bool {
    names(schema).iter().any(|(name, of)| *of == key && entry.get(name).is_some_and(|value| !value.is_null()))
}

/// Returns the `wanted` keys of an entry, by any of their names, with all values in their places.
///
/// # Errors
/// The mistake in one of them, with the name of the key.
pub fn restrictions(
    entry: &Value,
    schema: &Value,
    wanted: &[&str],
    path: &str,
    environment: Environment<'_>,
) -> Result<Value, String> {
    let is_wanted = |name: &str| names(schema).iter().any(|(known, key)| *known == name && wanted.contains(key));
    let members = entry.as_object().into_iter().flatten().filter(|(name, _)| is_wanted(name));
    let members: Map<String, Value> = members.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut restrictions = Value::Object(members);
    expand(&mut restrictions, path, environment)?;
    check(&mut restrictions, schema, path, &mut FoundSecrets::default())?;
    Ok(restrictions)
}

/// Where an entry is, and what it is read with.
pub struct EntryReader<'a> {
    pub path: &'a str,
    pub schema: &'a Value,
    pub environment: Environment<'a>,
    pub found: &'a RefCell<FoundSecrets>,
}

impl EntryReader<'_> {
    /// Reads an entry whose restrictions are right. One that is disabled is only checked, by `parse`. It may refer to
    /// variables that are not set, and its mistakes are warnings.
    pub fn read<T>(
        &self,
        mut entry: Value,
        is_disabled: bool,
        warnings: &mut Vec<String>,
        parse: impl FnOnce(Value) -> Result<(), String>,
        usable: impl FnOnce(Value) -> Result<T, String>,
    ) -> ServerEntry<T> {
        if is_disabled {
            let checked = check(&mut entry, self.schema, self.path, &mut FoundSecrets::default());
            warnings.extend(checked.and_then(|()| parse(entry)).err());
            return ServerEntry::Disabled;
        }
        match usable(entry.clone()) {
            Ok(server) => ServerEntry::Usable(server),
            Err(reason) => {
                self.collect_secrets(entry);
                ServerEntry::Unusable(reason)
            }
        }
    }

    /// Collects the secrets of an entry that cannot be used: a script may read the file of the configuration.
    fn collect_secrets(&self, mut entry: Value) {
        expand_known(&mut entry, self.environment);
        // What is wrong with it is known.
        let _ = check(&mut entry, self.schema, self.path, &mut self.found.borrow_mut());
    }
}
