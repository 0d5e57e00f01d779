//! Changes the file of a client so that it starts CodeCall in place of the servers that were taken over, and undoes that.
//!
//! The file as it was is kept beside it. Comments and the order of keys are kept where the format has them.

use crate::find::{Found, MAX_BYTES};
use crate::read::{self, is_toml, json, split_mark, with_line_ends_of};
use codecall_base::files::{self, AtomicFile};
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use toml_edit::Item;

/// The name of our entry.
pub const NAME: &str = "codecall";
/// The end of the name of the backup.
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
    let (mark, text) = split_mark(text);
    let text = if is_toml(&found.path) {
        in_toml(&found.keys, text, taken, command)?
    } else {
        let replaced: HashSet<&str> = taken.iter().map(String::as_str).chain([NAME]).collect();
        in_json(&found.keys, text, &|name| replaced.contains(name), [(NAME, &entry(found.client.id, command))])?
    };
    Ok(format!("{mark}{text}"))
}

/// Returns JSON without some of its servers, and with others at their end.
fn in_json<'a>(
    keys: &[String],
    text: &str,
    is_replaced: &dyn Fn(&str) -> bool,
    added: impl IntoIterator<Item = (&'a str, &'a Value)>,
) -> Result<String, String> {
    let root = json(text)?;
    let servers = at(&root, keys).ok_or("its servers are not where they were")?;
    let rest = servers.without(is_replaced);
    // The tree moves all that follows what is removed from it, so it is written once and parsed again.
    servers.property.set_value(CstInputValue::String(String::new()));
    if let Some(value) = servers.property.value().and_then(|value| value.as_string_lit()) {
        value.set_raw_value(rest);
    }
    let root = json(&root.to_string())?;
    let servers = at(&root, keys).ok_or("its servers are not where they were")?;
    for (name, value) in added {
        match &servers.list {
            List::Table(table) => drop(table.append(name, input(value))),
            List::Array(array) => drop(array.append(input(value))),
        }
    }
    Ok(root.to_string())
}

/// The servers in a file.
struct Servers {
    property: CstObjectProp,
    list: List,
}

enum List {
    Table(CstObject),
    Array(CstArray),
}

fn at(root: &CstRootNode, keys: &[String]) -> Option<Servers> {
    let (last, before) = keys.split_last()?;
    let nested = before.iter().try_fold(root.object_value()?, |table, key| table.object_value(key));
    let of = |property: CstObjectProp| {
        let value = property.value()?;
        let list = value.as_object().map(List::Table).or_else(|| value.as_array().map(List::Array))?;
        Some(Servers { property, list })
    };
    let dotted = || root.object_value()?.get(&keys.join("."));
    nested.and_then(|table| table.get(last)).or_else(dotted).and_then(of)
}

impl Servers {
    /// Returns their text without some, as [`CstNode::remove`] would leave it. That takes time in proportion to all that
    /// follows, for each.
    fn without(&self, is_removed: &dyn Fn(&str) -> bool) -> String {
        let parts = match &self.list {
            List::Table(table) => table.children(),
            List::Array(array) => array.children(),
        };
        let name = |part: &CstNode| match &self.list {
            List::Table(_) => part.as_object_prop()?.decoded_name(),
            List::Array(_) => Some(part.to_serde_value()?["name"].as_str()?.to_owned()),
        };
        let mut kept: Vec<&CstNode> = Vec::new();
        let mut rest = parts.as_slice();
        while let [part, after @ ..] = rest {
            rest = after;
            if !name(part).is_some_and(|name| is_removed(&name)) {
                kept.push(part);
                continue;
            }
            while kept.pop_if(|before| before.is_trivia() && !before.is_newline()).is_some() {}
            let trivia = rest.iter().take_while(|part| part.is_trivia()).count();
            let is_last_in_line = if rest.get(trivia).is_some_and(CstNode::is_comma) {
                let (before, after) = rest.split_at(trivia + 1);
                rest = after;
                let next = rest.iter().find(|part| !part.is_whitespace() && !part.is_comment());
                !before.iter().any(CstNode::is_newline) && next.is_some_and(CstNode::is_newline)
            } else {
                if let Some(comma) = kept.iter().rposition(|before| before.is_comma()) {
                    kept.remove(comma);
                }
                true
            };
            if is_last_in_line {
                rest = after_line(rest);
            }
        }
        let inner = kept.get(1..kept.len().saturating_sub(1)).unwrap_or_default();
        if inner.iter().all(|part| part.is_whitespace() || part.is_newline()) {
            kept.retain(|part| part.is_token());
        }
        kept.into_iter().map(ToString::to_string).collect()
    }
}

/// Returns what follows the line, or the closing bracket and the space before it.
fn after_line(mut rest: &[CstNode]) -> &[CstNode] {
    while let [part, after @ ..] = rest {
        let is_before_bracket = part.is_whitespace() && after.first().is_some_and(|next| !next.is_trivia());
        if !part.is_trivia() || is_before_bracket {
            break;
        }
        rest = after;
        if part.is_newline() {
            break;
        }
    }
    rest
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
    let mut document = read::toml(text)?;
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
    Ok(with_line_ends_of(text, document.to_string()))
}

/// The outcome of an undo.
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
    let document = read::document(&place.path, text)?.value;
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
    let (mark, now) = split_mark(now);
    let text = if is_toml(&place.path) {
        let mut document = read::toml(now)?;
        let old = read::toml(split_mark(before).1)?;
        let key = place.keys.first().map(String::as_str).unwrap_or_default();
        let Some(servers) = document.get_mut(key).and_then(Item::as_table_like_mut) else {
            return Ok(format!("{mark}{now}"));
        };
        servers.remove(NAME);
        for (name, _) in &missing {
            if let Some(item) = old.get(key).and_then(|servers| servers.get(name)) {
                servers.insert(name, item.clone());
            }
        }
        with_line_ends_of(now, document.to_string())
    } else if at(&json(now)?, &place.keys).is_none() {
        now.to_owned()
    } else {
        let missing = missing.iter().map(|(name, entry)| (name.as_str(), entry));
        in_json(&place.keys, now, &|name| name == NAME, missing)?
    };
    Ok(format!("{mark}{text}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every subset of servers, between all kinds of separators.
    #[test]
    fn servers_are_removed_as_the_library_removes_them() {
        let separators = [
            ",",
            ", ",
            ",\n  ",
            " // end\n  ,\n  ",
            ", // end\n  // begin\n  ",
            ",\n\n  ",
            ", /* x */ ",
            "\n,\n",
            ",\r\n\t",
        ];
        let ends =
            [("", ""), (" ", " "), ("\n  ", "\n"), ("\n  // first\n  ", ", // last\n"), ("\n  ", ",\n  // after\n")];
        let mut count = 0;
        for first in separators {
            for second in separators {
                for (open, close) in ends {
                    for removed in 0..8_u32 {
                        check(&[first, second], (open, close), removed);
                        count += 1;
                    }
                }
            }
        }
        assert_eq!(count, 9 * 9 * 5 * 8);
    }

    fn check(separators: &[&str; 2], (open, close): (&str, &str), removed: u32) {
        let is_removed = |name: &str| name.parse::<u32>().is_ok_and(|number| removed & (1 << number) != 0);
        let [first, second] = separators;
        let table =
            format!("{{\"a\": {{{open}\"0\": {{\"x\": 1}}{first}\"1\": 2{second}\"2\": [3]{close}}}, \"b\": 4}}");
        let list = format!(
            "{{\"a\": [{open}{{\"name\": \"0\"}}{first}{{\"name\": \"1\"}}{second}{{\"name\": \"2\"}}{close}]}}"
        );
        for text in [table, list] {
            let keys = ["a".to_owned()];
            let expected = json(&text).expect("JSON");
            match at(&expected, &keys).expect("servers").list {
                List::Table(table) => {
                    let removed =
                        |property: &CstObjectProp| property.decoded_name().is_some_and(|name| is_removed(&name));
                    table.properties().into_iter().filter(removed).for_each(CstObjectProp::remove);
                }
                List::Array(array) => {
                    let name = |element: &CstNode| element.to_serde_value().unwrap_or_default()["name"].clone();
                    let removed = |element: &CstNode| name(element).as_str().is_some_and(is_removed);
                    array.elements().into_iter().filter(removed).for_each(CstNode::remove);
                }
            }
            let result = in_json(&keys, &text, &is_removed, []).expect("JSON");
            assert_eq!(result, expected.to_string(), "{removed:03b} of {text}");
        }
    }
}
