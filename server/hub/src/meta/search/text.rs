//! The answer of a search as a model reads it: signatures that a script can use at once.

use super::super::Hub;
use codecall_base::call::client;
use codecall_tools::catalogue::{Entry, Snapshot};
use codecall_tools::signatures::{Level, line};
use codecall_tools::tokens::estimate;
use codecall_tools::typescript::signature;
use std::collections::{BTreeMap, HashSet};

/// Maximum length of an answer in tokens, as far as the tools that were found leave room for others of their apps.
const MAX_TOKENS: usize = 500;
/// Whole signatures are given of at most so many tools, in at most so many tokens.
const MAX_WHOLE: usize = 3;
const MAX_WHOLE_TOKENS: usize = 400;

/// The tools of an answer, best first, and what is said beside them.
pub struct Found<'a> {
    pub snapshot: &'a Snapshot,
    pub entries: Vec<&'a Entry>,
    /// The rest of a list: where it begins, and how many tools it has in all.
    pub next: Option<(usize, usize)>,
    /// Whether other tools of the apps are of use: this is no list.
    pub with_others: bool,
    pub warnings: &'a [String],
}

impl Found<'_> {
    /// Returns the text.
    pub fn to_text(&self, hub: &Hub) -> String {
        let names = self.listed_names(hub);
        // Hosts that are bridged have the schemas.
        let mut text = match self.whole(hub).filter(|_| names.is_none()) {
            Some(whole) => whole,
            None => self.lines(hub, names.as_ref(), &self.entries, Level::CappedSentence),
        };
        if self.with_others {
            let others = self.others(hub, names.as_ref(), MAX_TOKENS.saturating_sub(estimate(&text)));
            if !others.is_empty() {
                text.push_str(&format!("Other tools of these apps:\n{others}"));
            }
        }
        if let Some((next, all)) = self.next {
            text.push_str(&format!("There are {all} in all; go on with offset {next}.\n"));
        }
        for warning in self.warnings {
            text.push_str(&format!("{warning}\n"));
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The names that tools have in the list of a client with a code mode of its own, by full name; `None`: it calls them by scripts.
    fn listed_names(&self, hub: &Hub) -> Option<BTreeMap<&str, &str>> {
        let client = client();
        let name = client.as_deref().and_then(|client| client.rsplit_once(' ')).map(|(name, _)| name);
        let by_full_name =
            || self.snapshot.offered().after(None).map(|(name, entry)| (entry.name.as_str(), name)).collect();
        hub.is_bridged(name).then(by_full_name)
    }

    /// The whole signatures of a few tools.
    fn whole(&self, hub: &Hub) -> Option<String> {
        if self.entries.len() > MAX_WHOLE || !self.with_others {
            return None;
        }
        let seen = hub.pipeline().seen();
        let signatures = self.entries.iter().map(|entry| {
            let description = agentscript::declarations::first_sentence(&entry.definition.description, 200);
            let comment = if description.is_empty() { String::new() } else { format!("// {description}\n") };
            format!("{comment}{}\n", signature(&entry.definition, seen.of(&entry.definition).as_ref()))
        });
        let text: String = signatures.collect();
        (estimate(&text) <= MAX_WHOLE_TOKENS).then_some(text)
    }

    /// Lines by app, in the order in which the apps come first.
    fn lines(&self, hub: &Hub, names: Option<&BTreeMap<&str, &str>>, entries: &[&Entry], level: Level) -> String {
        let seen = hub.pipeline().seen();
        let mut apps: Vec<(&str, String)> = Vec::new();
        for entry in entries {
            let app = entry.definition.app.as_str();
            let written = match names.map(|names| names.get(entry.name.as_str())) {
                None => format!("- {}\n", line(entry, seen, level)),
                Some(Some(name)) => format!("- {name}{}\n", without_name(&line(entry, seen, level))),
                // It is not in the client's list, so the client cannot call it.
                Some(None) => continue,
            };
            match apps.iter_mut().find(|(other, _)| *other == app) {
                Some((_, lines)) => lines.push_str(&written),
                None => apps.push((app, written)),
            }
        }
        let with_heading = |(app, lines): (&str, String)| match (names.is_some(), app) {
            (true, _) => lines,
            (false, "") => format!("(no app):\n{lines}"),
            (false, app) => format!("{app}:\n{lines}"),
        };
        apps.into_iter().map(with_heading).collect()
    }

    /// Other tools of the apps of the first tools, in at most `left` tokens: a later request needs no search for them.
    fn others(&self, hub: &Hub, names: Option<&BTreeMap<&str, &str>>, left: usize) -> String {
        let found: HashSet<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let mut apps: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if !apps.contains(&entry.definition.app.as_str()) {
                apps.push(&entry.definition.app);
            }
        }
        let seen = hub.pipeline().seen();
        let mut left = left;
        let mut chosen = Vec::new();
        for app in apps {
            let rows = self.snapshot.rows().iter().map(|row| &**row);
            for entry in rows.filter(|row| row.definition.app == app && !found.contains(row.name.as_str())) {
                match left.checked_sub(estimate(&line(entry, seen, Level::Capped)) + 2) {
                    Some(rest) => left = rest,
                    None => return self.lines(hub, names, &chosen, Level::Capped),
                }
                chosen.push(entry);
            }
        }
        self.lines(hub, names, &chosen, Level::Capped)
    }
}

/// A line from its parameters on.
fn without_name(line: &str) -> &str {
    let end = if line.starts_with('"') { line.find("\"(").map(|at| at + 1) } else { line.find('(') };
    end.map_or("", |end| &line[end..])
}
