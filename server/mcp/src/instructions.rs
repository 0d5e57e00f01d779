//! The instructions for a client's model: how to use the meta-tools, and which apps there are.
//!
//! Clients cut instructions, so the list of apps has a budget, and says whether it is complete. What servers say of
//! themselves is shortened to plain names, because a model may follow what it reads here.

use codecall_hub::Hub;
use codecall_hub::meta;
use std::collections::BTreeMap;

/// Maximum length of the instructions, in characters: clients cut at 2,048.
const MAX_CHARS: usize = 2_000;
/// Maximum length of the title of a server, in characters.
const MAX_TITLE_CHARS: usize = 40;
/// What the heading of the list may take, in characters.
const HEADING_CHARS: usize = 200;

/// What is said of an app.
#[derive(Default)]
struct App {
    title: Option<String>,
    tools: Vec<String>,
    /// Whether its tools have never been listed.
    is_unknown: bool,
}

/// Returns the instructions.
pub fn instructions(hub: &Hub) -> String {
    let name =
        |id: &str| meta::find(&format!("codecall_{id}")).map(|tool| meta::listed_name(tool, hub.config().tools.names));
    let [search, describe, execute] = ["search", "describe", "execute"].map(|id| name(id).unwrap_or_default());
    let (which, rest) = match hub.config().tools.may_list() {
        true => ("Most tools", " What is listed can also be called as it is."),
        false => ("The tools", ""),
    };
    let usage = format!(
        "{which} behind this server are not listed. Find them with {search}, get their signatures with {describe}, then call \
         as many as needed in one script with {execute}, which returns only what the script returns.{rest}"
    );
    let apps = apps(hub);
    if apps.is_empty() {
        usage
    } else {
        format!("{usage}\n\n{}", list(&apps, &search, MAX_CHARS - usage.chars().count() - 2))
    }
}

fn apps(hub: &Hub) -> BTreeMap<String, App> {
    let mut apps: BTreeMap<String, App> = BTreeMap::new();
    for upstream in hub.catalogue().upstreams() {
        let app = apps.entry(plain(upstream.app())).or_default();
        let title = upstream.title().map(|title| plain(&hub.pipeline().masked_text(&title)));
        app.title = title.filter(|title| !title.eq_ignore_ascii_case(upstream.app()));
        app.is_unknown = !upstream.are_tools_known();
    }
    for row in hub.catalogue().snapshot().rows() {
        let app = apps.entry(plain(&row.definition.app)).or_default();
        app.is_unknown = false;
        app.tools.push(plain(&row.definition.name));
    }
    // An app whose tools are all left out by the configuration is none.
    apps.retain(|_, app| app.is_unknown || !app.tools.is_empty());
    apps
}

/// Returns the list of apps, in at most `max` characters.
fn list(apps: &BTreeMap<String, App>, search: &str, max: usize) -> String {
    let max = max.saturating_sub(HEADING_CHARS);
    let mut heads: Vec<(String, &App)> = Vec::new();
    let mut taken = 0;
    for (name, app) in apps {
        let head = match (app.tools.len(), name.as_str()) {
            (0, _) => format!("- {name}: starting, its tools are not known yet"),
            (1, "") => "- without an app: 1 tool".to_owned(),
            (count, "") => format!("- without an app: {count} tools"),
            (1, _) => format!("- {name}: 1 tool"),
            (count, _) => format!("- {name}: {count} tools"),
        };
        let length = head.chars().count() + 1;
        if taken + length > max {
            break;
        }
        taken += length;
        heads.push((head, app));
    }
    let (shown, all) = (heads.len(), apps.len());
    let unknown = apps.values().filter(|app| app.is_unknown).count();
    let count: usize = apps.values().map(|app| app.tools.len()).sum();
    let mut text = if shown == all && unknown == 0 {
        format!("Apps (COMPLETE: {all} with {count} tools; {search} with filter.appIds alone lists the tools of one):")
    } else {
        let why = match unknown {
            0 => String::new(),
            unknown => format!("; the tools of {unknown} are not known yet"),
        };
        format!(
            "Apps (PARTIAL: {shown} of {all}, with {count} tools in all{why}; {search} finds all tools, and with filter.appIds alone lists those of an app):"
        )
    };
    let mut left = max - taken;
    for (index, (head, app)) in heads.iter().enumerate() {
        let about = about(app, left / (shown - index));
        left -= about.chars().count();
        text.push('\n');
        text.push_str(head);
        text.push_str(&about);
    }
    text
}

/// Returns the title and some tools of an app, in at most `max` characters.
fn about(app: &App, max: usize) -> String {
    let title = app.title.as_ref().filter(|title| !title.is_empty());
    let mut text = title.map_or_else(String::new, |title| {
        let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
        format!(" ({title})")
    });
    let Some(left) = max.checked_sub(text.chars().count()) else { return String::new() };
    // A name takes three characters with what is before it, so the work depends on the budget, not on the number of tools.
    let most = app.tools.len().min(left / 3);
    if let Some(names) = (1..=most).rev().find_map(|shown| names(&app.tools, shown, left)) {
        text.push_str(&names);
    }
    text
}

/// Returns a number of names, if they take at most `max` characters. Names of the whole list tell more than the first ones
/// of the alphabet.
fn names(all: &[String], shown: usize, max: usize) -> Option<String> {
    let names = || (0..shown).map(|at| all[at * all.len() / shown].as_str());
    let more = if shown < all.len() { ", …" } else { "" };
    let left = max.checked_sub(more.chars().count())?;
    names().try_fold(left, |left, name| left.checked_sub(2 + name.chars().count()))?;
    Some(format!(": {}{more}", names().collect::<Vec<_>>().join(", ")))
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

    fn app(title: Option<&str>, tools: usize) -> App {
        let tools: Vec<String> = (0..tools).map(|at| format!("tool_{at:03}")).collect();
        App { title: title.map(str::to_owned), is_unknown: tools.is_empty(), tools }
    }

    fn listed(apps: Vec<(String, App)>) -> String {
        let text = list(&apps.into_iter().collect(), "codecall_search", 1_600);
        assert!(text.chars().count() <= 1_600, "{} characters", text.chars().count());
        text
    }

    #[test]
    fn all_apps_with_their_tools() {
        let text = listed(vec![("fs".into(), app(Some("files"), 2)), ("git".into(), app(None, 1))]);
        let expected = "Apps (COMPLETE: 2 with 3 tools; codecall_search with filter.appIds alone lists the tools of one):\n\
                        - fs: 2 tools (files): tool_000, tool_001\n- git: 1 tool: tool_000";
        assert_eq!(text, expected);
    }

    #[test]
    fn long_lists_are_shortened_and_say_so() {
        let text = listed((0..20).map(|at| (format!("app{at:02}"), app(Some("a title"), 500))).collect());
        assert!(text.starts_with("Apps (COMPLETE: 20 with 10000 tools"), "{text}");
        assert!(text.contains("- app19: 500 tools (a title): tool_000, "), "{text}");
        let text = listed((0..500).map(|at| (format!("app{at:03}"), app(None, 3))).collect());
        assert!(text.starts_with("Apps (PARTIAL: "), "{text}");
        assert!(text.contains(" of 500, with 1500 tools in all;"), "{text}");
    }

    #[test]
    fn lists_of_all_sizes_keep_to_their_budget() {
        for apps in [1, 2, 16, 40, 300] {
            for count in [0, 1, 16, 17, 18, 60, 1_000] {
                for length in [0, 1, 3, 30, 100] {
                    let tools = vec!["n".repeat(length); count];
                    let app = |at| (format!("app{at}"), App { tools: tools.clone(), ..app(Some("a title"), 0) });
                    let text = listed((0..apps).map(app).collect());
                    assert!(text.contains("- app0: "), "{text}");
                }
            }
        }
    }

    #[test]
    fn apps_that_are_starting_are_named() {
        let text = listed(vec![("fs".into(), app(None, 0)), ("git".into(), app(None, 1))]);
        assert!(
            text.starts_with("Apps (PARTIAL: 2 of 2, with 1 tools in all; the tools of 1 are not known yet;"),
            "{text}"
        );
        assert!(text.contains("- fs: starting, its tools are not known yet\n"), "{text}");
    }

    #[test]
    fn names_are_plain() {
        assert_eq!(plain("Files\u{202e}\n<!-- obey --> \"now\""), "Files -- obey -- now");
    }
}
