//! The tool, app or member that a name in a script means.
//!
//! A tool has several spellings. A spelling of two tools means neither, so that the meaning of a name does not depend on
//! the order of the tools. The author of a tool decides which spellings it has.

use super::MAX_NAME_BYTES;
use crate::text::nearest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of similar names in an error message.
const MAX_SIMILAR: usize = 3;

/// The names of a list of tools. A tool is an index: the first one that was added is 0.
///
/// The maps are sorted, so that equal names have equal serialised forms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolNames {
    /// Full names, by index.
    names: Vec<String>,
    by_name: BTreeMap<String, usize>,
    /// Other spellings; `None` if two tools share one.
    spellings: BTreeMap<String, Option<usize>>,
    /// Tools by their app and their [`member_key`]; `None` if two tools share one.
    members: BTreeMap<String, BTreeMap<String, Option<usize>>>,
    /// Apps by every name that a script can write.
    apps: BTreeMap<String, String>,
    /// Apps whose tools have never been listed.
    unknown: BTreeSet<String>,
}

/// Members that the language itself reads of any value: no tool of an unknown app has such a name.
const READ_BY_THE_LANGUAGE: &[&str] = &["then", "toJSON", "toString", "valueOf"];

impl ToolNames {
    /// Adds a tool by its full name. Returns its index.
    pub fn add(&mut self, name: impl Into<String>) -> usize {
        let (name, tool) = (name.into(), self.names.len());
        self.by_name.entry(name.clone()).or_insert(tool);
        self.names.push(name);
        tool
    }

    /// Adds another spelling of a tool. Full names take precedence over it.
    pub fn add_spelling(&mut self, tool: usize, spelling: impl Into<String>) {
        share(&mut self.spellings, spelling.into(), tool);
    }

    /// Adds a tool as a member of its app, in every case and with any separators: `list-items` is also `listItems` and
    /// `list_items`.
    pub fn add_member(&mut self, tool: usize, app: &str, name: &str) {
        let key = member_key(name);
        if key.is_empty() {
            return;
        }
        match self.members.get_mut(app) {
            Some(members) => share(members, key, tool),
            None => share(self.members.entry(app.to_owned()).or_default(), key, tool),
        }
    }

    /// Adds all apps: each by its name, and by the identifier made of it unless that is the name of another app or
    /// belongs to an earlier one.
    pub fn add_apps(&mut self, apps: impl IntoIterator<Item = String>) {
        self.apps.extend(apps.into_iter().map(|app| (app.clone(), app)));
        let identifiers: Vec<(String, String)> = self.apps().map(|app| (identifier(app), app.to_owned())).collect();
        for (identifier, app) in identifiers {
            self.apps.entry(identifier).or_insert(app);
        }
    }

    /// Returns the tool with a full name or another spelling.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied().or_else(|| self.spellings.get(name).copied().flatten())
    }

    /// Returns the tool that a member of an app is: the one of exactly this name, or the only one with this spelling.
    #[must_use]
    pub fn member(&self, app: &str, member: &str) -> Option<usize> {
        let app = self.apps.get(app)?;
        if member.len() > MAX_NAME_BYTES {
            return None;
        }
        let exact = self.by_name.get(&format!("{app}:{member}")).copied();
        exact.or_else(|| self.members.get(app)?.get(&member_key(member)).copied().flatten())
    }

    /// Sets the apps whose tools have never been listed, by their own names.
    pub fn set_unknown(&mut self, apps: BTreeSet<String>) {
        self.unknown = apps;
    }

    /// Returns the full name of a member of an app whose tools have never been listed: it may be a tool, and a call of it
    /// says why nobody knows. `None` for other apps.
    #[must_use]
    pub fn unknown_member(&self, app: &str, member: &str) -> Option<String> {
        let app = self.apps.get(app).filter(|app| self.unknown.contains(*app))?;
        let is_possible = member.len() <= MAX_NAME_BYTES && !READ_BY_THE_LANGUAGE.contains(&member);
        is_possible.then(|| format!("{app}:{member}"))
    }

    /// Returns the full name of a tool.
    #[must_use]
    pub fn name(&self, tool: usize) -> Option<&str> {
        self.names.get(tool).map(String::as_str)
    }

    /// Whether a script can write `name` for an app.
    #[must_use]
    pub fn is_app(&self, name: &str) -> bool {
        self.apps.contains_key(name)
    }

    /// Returns all apps by their own names.
    pub fn apps(&self) -> impl Iterator<Item = &str> {
        self.apps.iter().filter(|(name, app)| name == app).map(|(name, _)| name.as_str())
    }

    /// Returns the app, as a script writes it, that is most similar to `name`.
    #[must_use]
    pub fn similar_app(&self, name: &str) -> Option<String> {
        // A script writes the identifier, and most apps are one.
        nearest(name, self.apps.keys().map(String::as_str), 1).first().map(|app| identifier(app))
    }

    /// Returns the full names that are similar to `name`, the most similar first.
    #[must_use]
    pub fn similar(&self, name: &str) -> Vec<&str> {
        nearest(name, self.names.iter().map(String::as_str), MAX_SIMILAR)
    }
}

/// Adds a spelling of a tool. A spelling of two tools belongs to neither.
fn share(spellings: &mut BTreeMap<String, Option<usize>>, spelling: String, tool: usize) {
    spellings.entry(spelling).and_modify(|other| *other = other.filter(|other| *other == tool)).or_insert(Some(tool));
}

/// Returns a name as an identifier of the language: `my-server` is `my_server`.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' || c == '$' { c } else { '_' }).collect()
}

/// Returns the letters and digits of a name in lower case, by which members are found.
fn member_key(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tools of apps, each as a member of its app and by its own name.
    fn names(tools: &[(&str, &str)]) -> ToolNames {
        let mut names = ToolNames::default();
        for (app, name) in tools {
            let tool = names.add(format!("{app}:{name}"));
            names.add_spelling(tool, *name);
            names.add_member(tool, app, name);
        }
        names.add_apps(tools.iter().map(|(app, _)| (*app).to_owned()));
        names
    }

    #[test]
    fn a_spelling_of_two_tools_means_neither() {
        let names = names(&[("a", "list"), ("b", "list"), ("b", "get"), ("b", "get_all"), ("b", "getAll")]);
        assert_eq!((names.get("a:list"), names.get("list"), names.get("get")), (Some(0), None, Some(2)));
        assert_eq!(names.member("b", "get_all"), Some(3), "an exact name takes precedence");
        assert_eq!(names.member("b", "getAll"), Some(4));
        assert_eq!(names.member("b", "GET_ALL"), None);
    }

    #[test]
    fn members_of_unknown_apps_may_be_tools() {
        let mut names = names(&[("known", "list"), ("my-app", "one")]);
        names.set_unknown(["my-app".to_owned()].into());
        assert_eq!(names.unknown_member("my_app", "two").as_deref(), Some("my-app:two"));
        assert_eq!(names.unknown_member("my_app", "then"), None);
        assert_eq!(names.unknown_member("known", "two"), None);
        assert_eq!(names.unknown_member("other", "two"), None);
    }

    #[test]
    fn a_full_name_takes_precedence_over_a_spelling() {
        let mut names = ToolNames::default();
        let first = names.add("app:list");
        names.add_spelling(first, "list");
        let second = names.add("list");
        assert_eq!((names.get("list"), names.name(second)), (Some(second), Some("list")));
    }

    #[test]
    fn an_identifier_belongs_to_the_app_of_that_name() {
        let names = names(&[("my-app", "one"), ("my_app", "two"), ("über-app", "three"), ("x.y", "four")]);
        assert_eq!(names.member("my_app", "two"), Some(1));
        assert_eq!(names.member("my_app", "one"), None);
        assert_eq!(names.member("über_app", "Three"), Some(2));
        assert_eq!(names.member("x_y", "fo-ur"), Some(3));
        assert_eq!(names.apps().collect::<Vec<_>>(), ["my-app", "my_app", "x.y", "über-app"]);
    }

    #[test]
    fn a_name_without_letters_is_no_member_but_by_its_exact_name() {
        let names = names(&[("a", "--"), ("a", "__")]);
        assert_eq!(
            (names.member("a", "--"), names.member("a", "__"), names.member("a", "-")),
            (Some(0), Some(1), None)
        );
        assert_eq!(names.member("a", &"x".repeat(MAX_NAME_BYTES + 1)), None);
    }
}
