//! Ownership of names: a name that begins with a configured app belongs to that app, also while the app is unavailable.
//! So no upstream gets calls for another one by the names of its tools.

use std::collections::HashSet;

/// The configured apps.
pub struct Owners(HashSet<String>);

impl Owners {
    /// Creates the owners from the configured apps, available or not.
    pub fn new<'a>(apps: impl IntoIterator<Item = &'a String>) -> Self {
        Self(apps.into_iter().map(|app| folded(app)).collect())
    }

    /// Whether a tool of `app` may have this name: no app owns it, or `app` does. If it begins with two apps, such as
    /// `my_app_list` with `my` and `my_app`, the longer one owns it.
    pub fn allow(&self, app: &str, name: &str) -> bool {
        let ends = name.char_indices().filter(|(_, c)| matches!(c, ':' | '.' | '_' | '/')).map(|(at, _)| at);
        let beginnings = ends.map(|end| folded(name[..end].trim_start()));
        let owner = beginnings.rev().find(|beginning| self.0.contains(beginning));
        owner.is_none_or(|owner| owner == folded(app))
    }
}

/// Normalizes a name: models confuse upper and lower case, and separators.
fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_app_owns_a_name() {
        let owners = Owners::new(&["crm", "my", "my-app"].map(str::to_owned));
        for (app, name, expected) in [
            ("crm", "crm:create", true),
            ("evil", "crm:create", false),
            ("evil", "CRM.create", false),
            ("evil", "crm_create", false),
            ("evil", " crm:create", false),
            ("evil", "crmcreate", true),
            ("evil", "create", true),
            ("evil", "x:crm:create", true),
            ("my", "my_app_list", false),
            ("my-app", "my_app_list", true),
            ("my", "my__app_list", true),
            ("my-app", "my_app__list", true),
            ("my", "my_other", true),
        ] {
            assert_eq!(owners.allow(app, name), expected, "{app} {name}");
        }
    }
}
