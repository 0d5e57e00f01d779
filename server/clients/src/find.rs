//! Finds the files of clients.

use crate::change::backup_of;
use crate::client::{CLIENTS, Client, File, Place, Platform, Scope};
use crate::mcpproxy;
use crate::read::{self, Document};
use codecall_base::files;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum size of a file of a client, in bytes. Claude Code has the history of its sessions in the same file.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// Where clients are looked for.
pub struct Environment<'a> {
    /// The operating system whose paths are used.
    pub platform: Platform,
    /// The user's home.
    pub home: PathBuf,
    /// The folder of the configurations of applications: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    pub config: PathBuf,
    /// The folder whose own files are read: `.mcp.json`, `.vscode/mcp.json`, ….
    pub folder: PathBuf,
    /// Values of environment variables.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
}

/// A file of a client with its servers.
#[derive(Clone, Debug)]
pub struct Found {
    /// The client.
    pub client: &'static Client,
    /// Whose file it is.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// Where in the file the servers are.
    pub keys: Vec<String>,
    /// The entries of its servers by name, as they are in the file. An error: why it cannot be read.
    pub servers: Result<Vec<(String, Value)>, String>,
    /// `inputs` of the file: values that the client asks for.
    pub inputs: Vec<Value>,
    /// The whole file, of a client that has settings beside its servers; else empty.
    pub settings: Map<String, Value>,
}

/// Finds the files of all clients. Files that do not exist are left out, and those without servers, unless they were
/// changed for CodeCall.
#[must_use]
pub fn find(environment: &Environment<'_>) -> Vec<Found> {
    let mut all = Vec::new();
    for client in CLIENTS {
        for file in client.files {
            let path = environment.path(client, file);
            let keys: Vec<String> = file.keys.iter().map(|key| environment.key(key)).collect();
            let document = match files::read_text(&path, MAX_BYTES) {
                Ok(text) => read::document(&path, &text),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => Err(error.to_string()),
            };
            let found = |servers, inputs, settings| Found {
                client,
                scope: file.scope,
                path: path.clone(),
                keys,
                servers,
                inputs,
                settings,
            };
            let found = match document {
                Ok(document) => {
                    let settings = match &document.value {
                        Value::Object(root) if client.id == mcpproxy::ID => root.clone(),
                        _ => Map::new(),
                    };
                    found(Ok(servers(&document, file, environment)), inputs(&document, file), settings)
                }
                Err(problem) => found(Err(problem), Vec::new(), Map::new()),
            };
            // In the home itself, the user's file is that of the folder too. A file that cannot be read is shown once.
            let is_known = |known: &Found| {
                same_file(&known.path, &found.path) && (known.servers.is_err() || known.keys == found.keys)
            };
            // One that was changed can be changed back.
            let is_changed = || backup_of(&found.path).exists();
            let is_empty = |servers: &Vec<_>| servers.is_empty() && found.settings.is_empty();
            if found.servers.as_ref().is_ok_and(|servers| is_empty(servers) && !is_changed())
                || all.iter().any(is_known)
            {
                continue;
            }
            all.push(found);
        }
    }
    all
}

/// Names of files that only a client has, with the client; others, such as `settings.json`, say nothing.
const NAMES: [(&str, &str); 4] = [
    ("claude_desktop_config.json", "Claude Desktop"),
    (".claude.json", "Claude Code"),
    (".mcp.json", "Claude Code"),
    ("mcp_config.json", "mcpproxy or Windsurf"),
];
/// Keys of mcpproxy that no other file has.
const OF_MCPPROXY: [&str; 6] =
    ["listen", "data_dir", "docker_isolation", "tools_limit", "tool_response_limit", "enable_tray"];

/// Returns the client that a file is of, although it is given as a configuration of ours: by its name, or by what only
/// that client writes.
#[must_use]
pub fn client_of(path: &Path) -> Option<&'static str> {
    let text = files::read_text(path, files::MAX_CONFIG_BYTES).ok()?;
    let root = read::document(path, &text).map(|document| document.value).unwrap_or_default();
    let has = |key: &str| root.get(key).is_some();
    if root["mcpServers"].is_array() || OF_MCPPROXY.iter().filter(|key| has(key)).count() > 1 {
        return Some("mcpproxy");
    }
    let name = path.file_name()?;
    if let Some((_, client)) = NAMES.iter().find(|(known, _)| name == *known) {
        return Some(client);
    }
    // `servers` and its like are no keys of ours.
    let is_foreign = |file: &File| file.keys.first().is_some_and(|key| *key != "mcpServers" && has(key));
    let is_ours = has("mcpServers") || has("openapi") || has("vm");
    CLIENTS.iter().find(|client| !is_ours && client.files.iter().any(is_foreign)).map(|client| client.name)
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl Environment<'_> {
    fn path(&self, client: &Client, file: &File) -> PathBuf {
        let of = |folder: &Path, path: &str| path.split('/').fold(folder.to_path_buf(), |path, part| path.join(part));
        let place = match self.platform {
            Platform::Linux => file.places[0],
            Platform::MacOs => file.places[1],
            Platform::Windows => file.places[2],
        };
        // Clients can be told where their folder is.
        let moved = match (client.id, place) {
            ("claude-code", Place::Home(_)) => Some("CLAUDE_CONFIG_DIR"),
            ("codex", _) => Some("CODEX_HOME"),
            _ => None,
        };
        let moved = moved.and_then(|name| (self.variables)(name)).filter(|folder| !folder.is_empty());
        match (moved, place) {
            (Some(folder), Place::Home(path)) => of(Path::new(&folder), path.rsplit('/').next().unwrap_or(path)),
            (_, Place::Home(path)) => of(&self.home, path),
            (_, Place::Config(path)) => of(&self.config, path),
            (_, Place::Folder(path)) => of(&self.folder, path),
        }
    }

    fn key(&self, key: &str) -> String {
        if key == "FOLDER" { self.folder.display().to_string() } else { key.to_owned() }
    }
}

fn servers(document: &Document, file: &File, environment: &Environment<'_>) -> Vec<(String, Value)> {
    let mut at = &document.value;
    for key in file.keys {
        let key = environment.key(key);
        // Settings may also be written with dots.
        let dotted = file.keys.join(".");
        let found = at.get(&key).or_else(|| document.value.get(&dotted));
        let Some(found) = found else { return Vec::new() };
        at = found;
    }
    match at {
        Value::Object(table) => table.clone().into_iter().collect(),
        Value::Array(items) => items.iter().filter_map(named).collect(),
        _ => Vec::new(),
    }
}

/// An item of a list of servers, which has its name in it.
fn named(item: &Value) -> Option<(String, Value)> {
    let mut entry: Map<String, Value> = item.as_object()?.clone();
    let name = entry.shift_remove("name")?;
    Some((name.as_str()?.to_owned(), Value::Object(entry)))
}

fn inputs(document: &Document, file: &File) -> Vec<Value> {
    let beside = file.keys.iter().rev().skip(1).rev().try_fold(&document.value, |at, key| at.get(*key));
    let inputs = beside.and_then(|at| at["inputs"].as_array());
    inputs.cloned().unwrap_or_default()
}
