//! The lookups of a script about tools, and a recorder of them.

use super::ToolDirectory;
use agentscript::Tools;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lookups and their answers. Lookups without an answer are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLookups {
    /// Apps: `users` of `users.list`.
    pub apps: BTreeSet<Box<str>>,
    /// Tools by their names as members of apps: `users:list` by `users.list`.
    pub members: BTreeMap<Box<str>, Box<str>>,
    /// Tools by their names as functions: `web_search` by `webSearch`.
    pub functions: BTreeMap<Box<str>, Box<str>>,
    /// The property that a plain argument is assigned to, by tool.
    pub positional: BTreeMap<Box<str>, Box<str>>,
    /// JSON text of what `getTool` returns, by the requested name.
    pub descriptions: BTreeMap<String, String>,
    /// Similar names, by a name that does not exist. The [key](similar_app_key) of an app ends with a dot.
    pub similar: BTreeMap<String, Vec<String>>,
}

impl ToolLookups {
    /// Whether nothing was looked up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { apps, members, functions, positional, descriptions, similar } = self;
        apps.is_empty()
            && members.is_empty()
            && functions.is_empty()
            && positional.is_empty()
            && descriptions.is_empty()
            && similar.is_empty()
    }

    /// Adds the lookups of `other`.
    pub fn append(&mut self, other: Self) {
        let Self { apps, members, functions, positional, descriptions, similar } = other;
        self.apps.extend(apps);
        self.members.extend(members);
        self.functions.extend(functions);
        self.positional.extend(positional);
        self.descriptions.extend(descriptions);
        self.similar.extend(similar);
    }
}

/// Returns the key of an app that does not exist, among the similar names.
pub fn similar_app_key(app: &str) -> String {
    format!("{app}.")
}

/// A directory that records what is looked up in it.
#[derive(Debug)]
pub struct LookupRecorder {
    directory: Arc<ToolDirectory>,
    lookups: Mutex<ToolLookups>,
}

impl LookupRecorder {
    /// Creates a recorder without lookups.
    #[must_use]
    pub fn new(directory: Arc<ToolDirectory>) -> Self {
        Self { directory, lookups: Mutex::default() }
    }

    /// Takes the lookups since the last call.
    #[must_use]
    pub fn take(&self) -> ToolLookups {
        std::mem::take(&mut *self.lookups())
    }

    fn lookups(&self) -> MutexGuard<'_, ToolLookups> {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tools for LookupRecorder {
    fn describe(&self, name: &str) -> Option<String> {
        let description = self.directory.describe(name)?;
        self.lookups().descriptions.insert(name.to_owned(), description.clone());
        Some(description)
    }

    fn is_app(&self, app: &str) -> bool {
        let is_app = self.directory.is_app(app);
        if is_app {
            self.lookups().apps.insert(app.into());
        }
        is_app
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        let name = self.directory.member(app, tool)?;
        self.lookups().members.insert(format!("{app}.{tool}").into(), name.as_str().into());
        Some(name)
    }

    fn function(&self, name: &str) -> Option<String> {
        let tool = self.directory.function(name)?;
        self.lookups().functions.insert(name.into(), tool.as_str().into());
        Some(tool)
    }

    fn positional(&self, tool: &str) -> Option<String> {
        let property = self.directory.positional(tool)?;
        self.lookups().positional.insert(tool.into(), property.as_str().into());
        Some(property)
    }

    fn similar(&self, name: &str) -> Vec<String> {
        let similar = self.directory.similar(name);
        if !similar.is_empty() {
            self.lookups().similar.insert(name.to_owned(), similar.clone());
        }
        similar
    }

    fn similar_app(&self, name: &str) -> Option<String> {
        let app = self.directory.similar_app(name)?;
        self.lookups().similar.insert(similar_app_key(name), vec![app.clone()]);
        Some(app)
    }

    fn reserved_apps(&self) -> Vec<String> {
        self.directory.reserved_apps()
    }
}
