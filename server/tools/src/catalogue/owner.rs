//! Whose a name is: names that begin with a configured app are that app's, also while it is down, so
//! that no upstream gets calls that are meant for another one by what it calls its tools.

use std::collections::HashSet;

/// The configured apps.
pub struct Owners(HashSet<String>);

impl Owners {
    /// Those of the configuration, whether they can be reached or not.
    pub fn new<'a>(apps: impl IntoIterator<Item = &'a String>) -> Self {
        Self(apps.into_iter().map(|app| folded(app)).collect())
    }

    /// Whether a tool of `app` may be called `name`: no app owns that name, or `app` does. Where two apps
    /// begin it, as `my` and `my_app` do with `my_app_list`, it is the longer one's.
    pub fn allow(&self, app: &str, name: &str) -> bool {
        let ends = name.char_indices().filter(|(_, c)| matches!(c, ':' | '.' | '_' | '/')).map(|(at, _)| at);
        let beginnings = ends.map(|end| folded(name[..end].trim_start()));
        let owner = beginnings.rev().find(|beginning| self.0.contains(beginning));
        owner.is_none_or(|owner| owner == folded(app))
    }
}

/// A name as models confuse it with others: in small letters, without a difference between separators.
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
