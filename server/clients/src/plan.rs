//! The servers of all files together: which are the same, what they are called, which are left out.

use crate::convert::{Conversion, Server, convert};
use crate::find::{Environment, Found};
use crate::mcpproxy::{self, Setting};
use codecall_base::tool::is_reserved;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::PathBuf;

/// The entries that are taken over from the files that were found.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The servers, by the names that they get.
    pub servers: Vec<Planned>,
    /// The entries that are left out.
    pub skipped: Vec<Skipped>,
    /// Servers that several files have.
    pub duplicates: Vec<Duplicate>,
    /// Settings beside the servers.
    pub settings: Vec<PlannedSetting>,
    /// Settings that are not taken over.
    pub left: Vec<Left>,
    /// The names of the servers in lower case, and the number that a further one of that name may have.
    names: HashMap<String, u32>,
    /// The servers by their names in their files and what starts them.
    known: HashMap<(String, String), usize>,
}

/// A setting that is taken over.
#[derive(Clone, Debug)]
pub struct PlannedSetting {
    /// The setting.
    pub setting: Setting,
    /// The client.
    pub client: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// A setting that is not taken over.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its key in the file.
    pub key: String,
    /// The client.
    pub client: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// A server that is taken over.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its name here.
    pub name: String,
    /// Its name in the file.
    pub original: String,
    /// Its keys.
    pub server: Server,
    /// The client it comes from.
    pub client: &'static str,
    /// The file it comes from.
    pub path: PathBuf,
    /// Where in the file it is.
    pub place: Vec<String>,
    /// Variables that it needs and that are not set. It is written as disabled.
    pub missing: Vec<String>,
}

impl Planned {
    /// Its keys as they are written: a server that needs more is disabled.
    #[must_use]
    pub fn keys(&self) -> Map<String, Value> {
        let mut keys = self.server.keys.clone();
        if !self.missing.is_empty() {
            keys.insert("enabled".into(), false.into());
        }
        keys
    }
}

/// A server that is left out.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Its name in the file.
    pub name: String,
    /// The client.
    pub client: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// A server that another file has too.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// Its name in this file.
    pub name: String,
    /// The client.
    pub client: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Where in the file it is.
    pub place: Vec<String>,
    /// The name of the server that is the same.
    pub same: String,
}

/// Plans what to take over.
#[must_use]
pub fn plan(found: &[Found], environment: &Environment<'_>) -> Plan {
    let mut plan = Plan::default();
    for file in found {
        let (client, path) = (file.client.name, &file.path);
        let servers = match &file.servers {
            Ok(servers) => servers,
            Err(problem) => {
                let reason = format!("the file cannot be read: {problem}");
                plan.skipped.push(Skipped { name: String::new(), client, path: path.clone(), reason });
                continue;
            }
        };
        for (name, entry) in servers {
            match convert(file, entry, environment) {
                Conversion::Skip(reason) => {
                    plan.skipped.push(Skipped { name: name.clone(), client, path: path.clone(), reason });
                }
                Conversion::Server(server) => plan.add(name, server, file, environment),
            }
        }
        plan.add_settings(file);
    }
    plan
}

impl Plan {
    /// Returns the names of servers at a place of a file that are taken over under a name for which `is_there` is true.
    #[must_use]
    pub fn taken(&self, found: &Found, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let is_here = |path: &PathBuf, place: &Vec<String>| *path == found.path && *place == found.keys;
        let planned = self.servers.iter().filter(|planned| is_here(&planned.path, &planned.place));
        let planned = planned.filter(|planned| is_there(&planned.name)).map(|planned| &planned.original);
        let same = self.duplicates.iter().filter(|same| is_here(&same.path, &same.place));
        let same = same.filter(|same| is_there(&same.same)).map(|same| &same.name);
        planned.chain(same).cloned().collect()
    }

    fn add_settings(&mut self, file: &Found) {
        if file.settings.is_empty() {
            return;
        }
        let (client, path) = (file.client.name, &file.path);
        let mut settings = mcpproxy::settings(&file.settings);
        let of_file = self.servers.iter().filter(|planned| planned.path == *path);
        let limits = of_file.filter_map(|planned| Some((planned.name.clone(), planned.server.limit?)));
        settings.limit_calls(&file.settings, &limits.collect::<Vec<_>>());
        for setting in settings.taken.into_iter().filter(|setting| !setting.key.is_empty()) {
            self.settings.push(PlannedSetting { setting, client, path: path.clone() });
        }
        for (key, reason) in settings.left {
            self.left.push(Left { key, client, path: path.clone(), reason });
        }
    }

    fn add(&mut self, original: &str, server: Server, file: &Found, environment: &Environment<'_>) {
        let (client, path, place) = (file.client.name, file.path.clone(), file.keys.clone());
        let identity = (original.to_owned(), what_starts(&server));
        if let Some(same) = self.known.get(&identity) {
            let same = self.servers[*same].name.clone();
            return self.duplicates.push(Duplicate { name: original.to_owned(), client, path, place, same });
        }
        self.known.insert(identity, self.servers.len());
        let is_set = |name: &str| (environment.variables)(name).is_some_and(|value| !value.is_empty());
        let is_off = server.keys.get("enabled").is_some_and(|enabled| enabled == false);
        let needs = server.needs.iter().map(|need| need.variable.clone());
        let missing = needs.filter(|variable| !is_off && !is_set(variable)).collect();
        let name = self.free(&valid(original));
        self.servers.push(Planned { name, original: original.to_owned(), server, client, path, place, missing });
    }

    /// A name that no other server has: `github`, `github-2`.
    fn free(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = self.names.get(&wanted.to_ascii_lowercase()).copied().unwrap_or(2);
        while self.names.contains_key(&name.to_ascii_lowercase()) {
            name = format!("{wanted}-{number}");
            number += 1;
        }
        self.names.insert(wanted.to_ascii_lowercase(), number);
        self.names.entry(name.to_ascii_lowercase()).or_insert(2);
        name
    }
}

/// Keys that decide whether two entries are the same server.
pub(crate) const STARTING: [&str; 7] = ["command", "args", "env", "envFile", "cwd", "url", "headers"];

/// Returns what starts a server, as JSON.
fn what_starts(server: &Server) -> String {
    let keys: Vec<Option<&Value>> = STARTING.iter().map(|key| server.keys.get(*key)).collect();
    json!(keys).to_string()
}

/// A name that an app can have.
fn valid(name: &str) -> String {
    let name = name.trim().replace(':', "-");
    let name = if name.is_empty() { "server".to_owned() } else { name };
    if name.eq_ignore_ascii_case("codecall") || is_reserved(&name) { format!("{name}-server") } else { name }
}
