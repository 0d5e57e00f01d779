//! The instructions for a client's model: what `execute` is for, and which apps there are.
//!
//! Each request of a model reads them, and clients cut them. So signatures of tools stand in the description of
//! `execute`. Texts of servers are shortened to plain names, because a model may follow what it reads here.

use codecall_hub::Hub;
use codecall_hub::meta;
use std::collections::BTreeSet;

/// Maximum length of the list of apps, in characters.
const MAX_APPS_CHARS: usize = 400;

/// Returns the instructions.
pub fn instructions(hub: &Hub) -> String {
    let name =
        |id: &str| meta::find(&format!("codecall_{id}")).map(|tool| meta::listed_name(tool, hub.config().tools.names));
    let [search, execute] = ["search", "execute"].map(|id| name(id).unwrap_or_default());
    let usage = format!(
        "Where {execute} is listed, one script calls as many tools as needed and returns only what is needed. Its description has \
         signatures of tools; {search} finds others."
    );
    let apps = apps(hub);
    if apps.is_empty() { usage } else { format!("{usage} Apps: {}.", list(&apps)) }
}

/// The apps by name, also those whose tools are not known yet. An app whose tools are all left out by the configuration
/// is none.
fn apps(hub: &Hub) -> BTreeSet<String> {
    let unknown = hub.catalogue().upstreams().filter(|upstream| !upstream.are_tools_known());
    let mut apps: BTreeSet<String> = unknown.map(|upstream| plain(upstream.app())).collect();
    apps.extend(hub.catalogue().snapshot().rows().iter().map(|row| plain(&row.definition.app)));
    apps.retain(|app| !app.is_empty());
    apps
}

/// Returns the names, as many as fit, and the number of the others.
fn list(apps: &BTreeSet<String>) -> String {
    let mut left = MAX_APPS_CHARS;
    let fitting = apps.iter().map_while(|app| {
        left = left.checked_sub(app.chars().count() + 2)?;
        Some(app.as_str())
    });
    let shown: Vec<&str> = fitting.collect();
    let more = apps.len() - shown.len();
    let text = shown.join(", ");
    if more > 0 { format!("{text}, and {more} more") } else { text }
}

/// Returns a name with nothing but letters, digits and the signs of names.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || " ._-/@:".contains(*c);
    let spaced = name.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    spaced.filter(is_plain).take(100).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened_and_say_so() {
        let apps = |count: usize| (0..count).map(|at| format!("app{at:03}")).collect::<BTreeSet<_>>();
        assert_eq!(list(&apps(2)), "app000, app001");
        let text = list(&apps(500));
        assert!(text.starts_with("app000, app001, ") && text.ends_with("app049, and 450 more"), "{text}");
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(plain("Files\u{202e}\n<!-- obey --> \"now\""), "Files -- obey -- now");
    }
}
