//! The tools that are listed beside the meta-tools, by their listed names.

use super::Entry;
use super::owner::Owners;
use super::policy::Policy;
use codecall_base::tool::ToolDefinition;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// Listed tools in the order of their names.
#[derive(Default)]
pub struct Listed {
    rows: BTreeMap<String, Arc<Entry>>,
    /// Other spellings of listed names, as scripts and the other settings of `names` write them;
    /// `None` where two tools share one.
    spellings: HashMap<String, Option<String>>,
    /// Tools whose names in the list are those of others too.
    unnamed: Vec<String>,
}

impl Listed {
    /// Assigns a name to each tool. A name that two tools want is given to neither, because the result must not depend on
    /// their order. Neither is a name that belongs to another app.
    #[must_use]
    pub fn new(policy: &Policy<'_>, owners: &Owners, entries: impl Iterator<Item = Arc<Entry>>) -> Self {
        let entries: Vec<(Vec<String>, Arc<Entry>)> =
            entries.map(|entry| (policy.listed_names(&entry.definition), entry)).collect();
        let mut wanted: HashMap<&str, usize> = HashMap::new();
        for name in entries.iter().flat_map(|(names, _)| names) {
            *wanted.entry(name).or_default() += 1;
        }
        let mut listed = Self::default();
        for (names, entry) in &entries {
            let app = &entry.definition.app;
            let is_own = |name: &&String| wanted.get(name.as_str()) == Some(&1) && owners.allow(app, name);
            let Some(name) = names.iter().find(is_own) else {
                listed.unnamed.push(entry.name.clone());
                continue;
            };
            listed.spell(owners, &entry.definition, name);
            listed.rows.insert(name.clone(), Arc::clone(entry));
        }
        listed
    }

    fn spell(&mut self, owners: &Owners, tool: &ToolDefinition, name: &str) {
        if tool.app.is_empty() {
            return;
        }
        let spellings = [":", ".", "_", "__"].map(|separator| format!("{}{separator}{}", tool.app, tool.name));
        for spelling in spellings {
            let is_own = owners.allow(&tool.app, &spelling);
            let own = || is_own.then(|| name.to_owned());
            // A name of two tools belongs to neither, also where only one of them may have it.
            self.spellings.entry(spelling).and_modify(|other| *other = None).or_insert_with(own);
        }
    }

    /// Returns their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the full names of tools that are not listed, because the names that they want are those of others too.
    pub fn unnamed(&self) -> impl Iterator<Item = &str> {
        self.unnamed.iter().map(String::as_str)
    }

    /// Whether both have the same tools under the same names.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.rows.len() == other.rows.len()
            && self
                .after(None)
                .zip(other.after(None))
                .all(|((name, entry), (other_name, other))| name == other_name && Arc::ptr_eq(entry, other))
    }

    /// Returns the tools after a name, sorted by name; `None`: all.
    pub fn after(&self, name: Option<&str>) -> impl Iterator<Item = (&str, &Arc<Entry>)> {
        let start = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.rows.range::<str, _>((start, Bound::Unbounded)).map(|(name, entry)| (name.as_str(), entry))
    }

    /// Returns a tool by its listed name, or by another spelling of it.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<&Arc<Entry>> {
        self.rows.get(name).or_else(|| self.rows.get(self.spellings.get(name)?.as_deref()?))
    }
}
