//! Changes the file of a client so that it starts CodeCall in place of the servers that were taken over, and undoes that.
//!
//! The file as it was is kept beside it. Comments and the order of keys are kept where the format has them.

use crate::find::{Found, MAX_BYTES};
use crate::read::{is_toml, json};
use codecall_base::files::{self, AtomicFile};
use jsonc_parser::cst::{CstInputValue, CstNode, CstRootNode};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item};

/// The name of our entry.
pub const NAME: &str = "codecall";
/// What the name of the backup ends with.
const BACKUP: &str = ".before-codecall";

/// Returns the path of the backup of a file.
#[must_use]
pub fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    name.into()
}

/// A place in a file where servers are, with the names of those that are in our configuration.
#[derive(Clone, Debug)]
pub struct Taken<'a> {
    /// The place.
    pub found: &'a Found,
    /// The names of the servers.
    pub names: Vec<String>,
}

/// Puts CodeCall in the place of servers of a file. `places` are all of them in the file, `command` starts CodeCall. Returns
/// whether the file was changed. Applied again, the backup has the servers that were added since.
///
/// # Errors
/// The file or its backup cannot be read or written.
pub fn apply(path: &Path, places: &[Taken<'_>], command: &[String]) -> Result<bool, String> {
    let text = read(path)?;
    let mut new = text.clone();
    for place in places.iter().filter(|place| !place.names.is_empty()) {
        new = changed(place.found, &new, &place.names, command)?;
    }
    if new == text {
        return Ok(false);
    }
    let backup = backup_of(path);
    let before = if backup.exists() {
        let all: Vec<Found> = places.iter().map(|place| place.found.clone()).collect();
        undone(&read(&backup)?, &text, &all)?.0
    } else {
        text
    };
    write(&backup, &before)?;
    write(path, &new)?;
    Ok(true)
}

/// Returns the text of a file with CodeCall in the place of servers.
///
/// # Errors
/// The text is not what its name says.
pub fn changed(found: &Found, text: &str, taken: &[String], command: &[String]) -> Result<String, String> {
    if is_toml(&found.path) {
        return in_toml(&found.keys, text, taken, command);
    }
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let root = json(text)?;
    let entry = entry(found.client.id, command);
    let Some(servers) = at(&root, &found.keys) else { return Err("its servers are not where they were".into()) };
    let replaced: HashSet<&str> = taken.iter().map(String::as_str).chain([NAME]).collect();
    match servers {
        Servers::Table(table) => {
            for property in table.properties() {
                let name = property.decoded_name().unwrap_or_default();
                if replaced.contains(name.as_str()) {
                    property.remove();
                }
            }
            table.append(NAME, input(&entry));
        }
        Servers::List(list) => {
            for element in list.elements() {
                let name = element.to_serde_value().and_then(|value| value["name"].as_str().map(str::to_owned));
                if name.is_some_and(|name| replaced.contains(name.as_str())) {
                    element.remove();
                }
            }
            list.append(input(&entry));
        }
    }
    Ok(format!("{mark}{root}"))
}

enum Servers {
    Table(jsonc_parser::cst::CstObject),
    List(jsonc_parser::cst::CstArray),
}

fn at(root: &CstRootNode, keys: &[String]) -> Option<Servers> {
    let of = |node: CstNode| match (node.as_object(), node.as_array()) {
        (Some(table), _) => Some(Servers::Table(table)),
        (None, list) => list.map(Servers::List),
    };
    let dotted = root.object_value()?.get(&keys.join(".")).and_then(|property| property.value());
    let (last, before) = keys.split_last()?;
    let nested = before.iter().try_fold(root.object_value()?, |table, key| table.object_value(key));
    of(nested.and_then(|table| table.get(last)?.value()).or(dotted)?)
}

/// Our entry, as the client writes its own.
fn entry(client: &str, command: &[String]) -> Value {
    let (program, arguments) = command.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    match client {
        "vscode" | "claude-code" => json!({ "type": "stdio", "command": program, "args": arguments }),
        "zed" => json!({ "source": "custom", "command": program, "args": arguments, "env": {} }),
        "mcpproxy" => {
            json!({ "name": NAME, "protocol": "stdio", "command": program, "args": arguments, "enabled": true })
        }
        _ => json!({ "command": program, "args": arguments }),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

fn in_toml(keys: &[String], text: &str, taken: &[String], command: &[String]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|_| "not valid TOML".to_owned())?;
    let key = keys.first().map(String::as_str).unwrap_or_default();
    let servers =
        document.get_mut(key).and_then(Item::as_table_like_mut).ok_or("its servers are not where they were")?;
    for name in taken {
        servers.remove(name);
    }
    let (program, arguments) = command.split_first().map_or(("", &[][..]), |(program, rest)| (program.as_str(), rest));
    let mut table = toml_edit::Table::new();
    table.insert("command", toml_edit::value(program));
    table.insert("args", toml_edit::value(arguments.iter().map(String::as_str).collect::<toml_edit::Array>()));
    servers.insert(NAME, Item::Table(table));
    Ok(document.to_string())
}

/// What became of an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The file has the bytes that it had.
    Restored,
    /// The file has changed since: the servers are back, and our entry is gone.
    Merged,
    /// There is no backup.
    Nothing,
}

/// Undoes [`apply`] for a file, and removes the backup. `places` are where in the file the client has servers.
///
/// # Errors
/// The file or its backup cannot be read or written.
pub fn undo(path: &Path, places: &[Found]) -> Result<Undone, String> {
    let backup = backup_of(path);
    let before = match files::read_text(&backup, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Undone::Nothing),
        Err(error) => return Err(format!("{}: {error}", backup.display())),
    };
    let (text, what) = undone(&before, &read(path)?, places)?;
    write(path, &text)?;
    std::fs::remove_file(&backup).map_err(|error| format!("{}: {error}", backup.display()))?;
    Ok(what)
}

/// Returns a text without what [`apply`] has changed; `before` is that of the backup.
fn undone(before: &str, now: &str, places: &[Found]) -> Result<(String, Undone), String> {
    if is_as_applied(before, now, places) {
        return Ok((before.to_owned(), Undone::Restored));
    }
    let merged = places.iter().try_fold(now.to_owned(), |now, place| put_back(place, before, &now))?;
    Ok((merged, Undone::Merged))
}

/// Whether a text is what [`apply`] has written.
fn is_as_applied(before: &str, now: &str, places: &[Found]) -> bool {
    let mut expected = before.to_owned();
    for place in places {
        let (Ok(old), Ok(new)) = (servers(place, before), servers(place, now)) else { return false };
        let Some(ours) = new.iter().find(|(name, _)| name == NAME).map(|(_, entry)| entry) else { continue };
        let words = std::iter::once(&ours["command"]).chain(ours["args"].as_array().into_iter().flatten());
        let command: Vec<String> = words.filter_map(Value::as_str).map(str::to_owned).collect();
        let is_gone = |name: &String| !new.iter().any(|(other, _)| other == name);
        let taken: Vec<String> = old.into_iter().map(|(name, _)| name).filter(is_gone).collect();
        match changed(place, &expected, &taken, &command) {
            Ok(text) => expected = text,
            Err(_) => return false,
        }
    }
    expected == now
}

/// The servers in a text, by name.
fn servers(place: &Found, text: &str) -> Result<Vec<(String, Value)>, String> {
    let document = crate::read::document(&place.path, text)?.value;
    let nested = place.keys.iter().try_fold(&document, |at, key| at.get(key));
    Ok(match nested.or_else(|| document.get(place.keys.join("."))) {
        Some(Value::Object(table)) => table.clone().into_iter().collect(),
        Some(Value::Array(items)) => {
            let named = |item: &Value| Some((item["name"].as_str()?.to_owned(), item.clone()));
            items.iter().filter_map(named).collect()
        }
        Some(_) | None => Vec::new(),
    })
}

/// Puts the servers of an earlier text back, and takes our entry out.
fn put_back(place: &Found, before: &str, now: &str) -> Result<String, String> {
    let (old, new) = (servers(place, before)?, servers(place, now)?);
    let missing = old.into_iter().filter(|(name, _)| name == NAME || !new.iter().any(|(other, _)| other == name));
    let missing: Vec<(String, Value)> = missing.collect();
    if is_toml(&place.path) {
        let mut document: DocumentMut = now.parse().map_err(|_| "not valid TOML".to_owned())?;
        let old: DocumentMut = before.parse().map_err(|_| "not valid TOML".to_owned())?;
        let key = place.keys.first().map(String::as_str).unwrap_or_default();
        let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) else { return Ok(now.to_owned()) };
        servers.remove(NAME);
        for (name, _) in &missing {
            if let Some(item) = old.get(key).and_then(|servers| servers.get(name)) {
                servers.insert(name, item.clone());
            }
        }
        return Ok(document.to_string());
    }
    let root = json(now.trim_start_matches('\u{feff}'))?;
    let Some(servers) = at(&root, &place.keys) else { return Ok(now.to_owned()) };
    match servers {
        Servers::Table(table) => {
            if let Some(ours) = table.get(NAME) {
                ours.remove();
            }
            for (name, entry) in &missing {
                table.append(name, input(entry));
            }
        }
        Servers::List(list) => {
            let is_ours = |element: &CstNode| element.to_serde_value().is_some_and(|value| value["name"] == NAME);
            list.elements().into_iter().filter(is_ours).for_each(CstNode::remove);
            for (_, entry) in &missing {
                list.append(input(entry));
            }
        }
    }
    Ok(root.to_string())
}

fn read(path: &Path) -> Result<String, String> {
    files::read_text(path, MAX_BYTES).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    // A file that is a link to another one, as those of people who keep their files in a repository, stays a link.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let permissions = std::fs::metadata(&target).map(|metadata| metadata.permissions());
    AtomicFile::create(&target)
        .and_then(|mut file| file.write(text.as_bytes()))
        // Who could read it before still can; a new file is its owner's.
        .and_then(|()| permissions.map_or(Ok(()), |permissions| std::fs::set_permissions(&target, permissions)))
        .map_err(|error| format!("{}: {error}", path.display()))
}
