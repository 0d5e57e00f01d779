//! The answer of a search as a model reads it: signatures that a script can use at once.

use super::super::Hub;
use codecall_base::call::client;
use codecall_tools::catalogue::{Entry, Snapshot};
use codecall_tools::signatures::{Level, line};
use codecall_tools::tokens::estimate;
use codecall_tools::typescript::signature;
use std::collections::{BTreeMap, HashSet};

/// Maximum length of an answer in tokens, apart from its first tools.
const MAX_TOKENS: usize = 480;
/// So many tools are always in an answer.
const MIN_TOOLS: usize = 3;
/// Whole signatures are given of at most so many tools, in at most so many tokens.
const MAX_WHOLE: usize = 3;
const MAX_WHOLE_TOKENS: usize = 400;

/// Names of tools in the list of a client, by full name.
type Names<'a> = BTreeMap<&'a str, &'a str>;

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
            None => self.found(hub, names.as_ref()),
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
    fn listed_names(&self, hub: &Hub) -> Option<Names<'_>> {
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
        let seen = hub.pipeline().result_shapes();
        let signatures = self.entries.iter().map(|entry| {
            let description = agentscript::declarations::first_sentence(&entry.definition.description, 200);
            let comment = if description.is_empty() { String::new() } else { format!("// {description}\n") };
            format!("{comment}{}\n", signature(&entry.definition, seen.of(&entry.definition).as_ref()))
        });
        let text: String = signatures.collect();
        (estimate(&text) <= MAX_WHOLE_TOKENS).then_some(text)
    }

    /// The lines of the tools that were found. A line that leaves something out becomes whole where there is room, and the last tools go
    /// where there is none.
    fn found(&self, hub: &Hub, names: Option<&Names<'_>>) -> String {
        let seen = hub.pipeline().result_shapes();
        let mut left = if self.with_others { MAX_TOKENS } else { usize::MAX };
        let mut written: Vec<(&Entry, String)> = Vec::new();
        for entry in &self.entries {
            let short = line(*entry, seen, Level::CappedSentence);
            match left.checked_sub(estimate(&short) + 2) {
                None if written.len() >= MIN_TOOLS => break,
                rest => left = rest.unwrap_or(0),
            }
            written.push((entry, short));
        }
        for (entry, short) in written.iter_mut().filter(|(_, short)| short.contains('…')) {
            let whole = line(*entry, seen, Level::Sentence);
            if let Some(rest) = (left + estimate(short)).checked_sub(estimate(&whole)) {
                left = rest;
                *short = whole;
            }
        }
        by_app(names, written.into_iter())
    }

    /// Other tools of the apps of the first tools, in at most `left` tokens: a later request needs no search for them.
    fn others(&self, hub: &Hub, names: Option<&Names<'_>>, left: usize) -> String {
        let found: HashSet<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        let mut apps: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if !apps.contains(&entry.definition.app.as_str()) {
                apps.push(&entry.definition.app);
            }
        }
        let seen = hub.pipeline().result_shapes();
        let mut left = left;
        let mut chosen = Vec::new();
        let rows = self.snapshot.rows().iter().map(|row| &**row);
        let rows: Vec<&Entry> = rows.filter(|row| !found.contains(row.name.as_str())).collect();
        for entry in apps.iter().flat_map(|app| rows.iter().filter(move |row| row.definition.app == *app)) {
            let line = line(*entry, seen, Level::Capped);
            match left.checked_sub(estimate(&line) + 2) {
                Some(rest) => left = rest,
                None => break,
            }
            chosen.push((*entry, line));
        }
        by_app(names, chosen.into_iter())
    }
}

/// Joins lines by app, in the order in which the apps come first. A client with names has no apps, and cannot call tools without a name.
fn by_app<'a>(names: Option<&Names<'_>>, lines: impl Iterator<Item = (&'a Entry, String)>) -> String {
    let mut apps: Vec<(&str, String)> = Vec::new();
    for (entry, line) in lines {
        let app = entry.definition.app.as_str();
        let written = match names.map(|names| names.get(entry.name.as_str())) {
            None => format!("{line}\n"),
            Some(Some(name)) => format!("{name}{}\n", without_name(&line)),
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

/// A line from its parameters on.
fn without_name(line: &str) -> &str {
    let end = if line.starts_with('"') { line.find("\"(").map(|at| at + 1) } else { line.find('(') };
    end.map_or("", |end| &line[end..])
}
