//! Errors without host paths and host stacks. A path that the caller itself has sent stays: it
//! tells nothing new, and file tools cannot be used without it.

use crate::config::Sanitization;
use crate::upstream::ToolError;
use serde_json::Value;
use std::sync::LazyLock;

/// Clean `error`; `sent` is what the caller has sent.
pub fn error(mut error: ToolError, what: Sanitization, sent: Option<&Value>) -> ToolError {
    let sent = sent.map(Value::to_string);
    error.message = text(&error.message, what, sent.as_deref());
    if what.remove_file_paths {
        error.details = error.details.map(|details| without_paths(&details, sent.as_deref()));
    }
    error
}

/// Clean all texts of some data.
pub fn data(value: &mut Value, what: Sanitization) {
    texts(value, &|told| *told = text(told, what, None));
}

/// Clean the texts of a whole result of MCP that says that its tool has failed.
pub fn content(result: &mut Value, what: Sanitization, sent: &Value) {
    let sent = sent.to_string();
    let blocks = result.get_mut("content").and_then(Value::as_array_mut);
    for block in blocks.into_iter().flatten() {
        if let Some(Value::String(told)) = block.get_mut("text") {
            *told = text(told, what, Some(&sent));
        }
    }
    if let Some(structured) = result.get_mut("structuredContent") {
        texts(structured, &|told| *told = text(told, what, Some(&sent)));
    }
}

/// Do something to all texts of a value, which nests as deeply as readers of JSON follow.
fn texts(value: &mut Value, change: &dyn Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| texts(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn text(text: &str, what: Sanitization, sent: Option<&str>) -> String {
    let text = if what.remove_stack_traces { without_stack(text) } else { text.to_owned() };
    if what.remove_file_paths { without_paths(&text, sent) } else { text }
}

fn without_stack(text: &str) -> String {
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        let node = line.strip_prefix("at ").is_some_and(|rest| {
            let mut parts = rest.trim_end_matches(')').rsplit(':');
            parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number) && parts.next().is_some()
        });
        let python = line.starts_with("File \"") && line.contains(", line ")
            || line.starts_with("Traceback (most recent call last)");
        node || python
    };
    if !text.lines().any(|line| is_frame(&line)) {
        return text.to_owned();
    }
    text.lines().filter(|line| !is_frame(line)).collect::<Vec<_>>().join("\n")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn without_paths(text: &str, sent: Option<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, length)) = path(rest, out.chars().next_back()) {
        let found = &rest[start..start + length];
        out.push_str(&rest[..start]);
        // Inside JSON a backslash is doubled; both spellings are compared.
        let known = sent.is_some_and(|sent| sent.contains(found) || sent.contains(&found.replace('\\', "\\\\")));
        out.push_str(if known { found } else { "[path]" });
        rest = &rest[start + length..];
    }
    out.push_str(rest);
    out
}

/// Where the first absolute path with at least two parts is in `text`, and how long it is.
fn path(text: &str, before: Option<char>) -> Option<(usize, usize)> {
    let mut previous = before;
    for (at, c) in text.char_indices() {
        let boundary = previous.is_none_or(|p| {
            p.is_whitespace() || "'\"`([{<=,;".contains(p) || p == ':' && !text[at..].starts_with("//")
        });
        previous = Some(c);
        if !boundary {
            continue;
        }
        let tail = &text[at..];
        let windows =
            tail.len() > 3 && c.is_ascii_alphabetic() && tail.as_bytes()[1] == b':' && tail.as_bytes()[2] == b'\\';
        let unix = c == '/' && !tail.starts_with("//");
        if !windows && !unix {
            continue;
        }
        let end = tail.char_indices().find(|&(i, c)| i > 2 && !is_path_char(c)).map_or(tail.len(), |(i, _)| i);
        let found = tail[..end].trim_end_matches(['.', ':', ',']);
        if windows || is_of_host(found) {
            return Some((at, found.len()));
        }
    }
    None
}

/// Folders at the root of a host. Routes of an API (`/repos/x`) look like paths and must be readable.
const ROOTS: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "app",
    "bin",
    "boot",
    "build",
    "code",
    "data",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    "workspace",
    "workspaces",
];

fn is_of_host(path: &str) -> bool {
    static OWN: LazyLock<Option<String>> = LazyLock::new(|| {
        let folder = std::env::current_dir().ok()?;
        folder.components().nth(1).map(|first| first.as_os_str().to_string_lossy().into_owned())
    });
    let mut parts = path[1..].split('/');
    let root = parts.next().unwrap_or_default();
    parts.next().is_some_and(|second| !second.is_empty()) && (ROOTS.contains(&root) || OWN.as_deref() == Some(root))
}

fn is_path_char(c: char) -> bool {
    c.is_alphanumeric() || "/\\._-+@~%:#$".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str, sent: &str) -> String {
        let all = Sanitization { remove_stack_traces: true, remove_file_paths: true };
        let sent = serde_json::from_str(sent).unwrap_or_default();
        error(ToolError::new("X", text), all, Some(&sent)).message
    }

    #[test]
    fn paths() {
        for (text, expected) in [
            ("cannot open '/home/me/key.pem'", "cannot open '[path]'"),
            ("ENOENT: /var/lib/x/y.db.", "ENOENT: [path]."),
            ("in C:\\Users\\me\\x.txt now", "in [path] now"),
            ("see https://example.com/a/b/c and a/b/c", "see https://example.com/a/b/c and a/b/c"),
            ("either/or, 1/2, /", "either/or, 1/2, /"),
            ("use /help or GET /repos/me/x", "use /help or GET /repos/me/x"),
            ("/tmp/asked/for.txt is not there", "/tmp/asked/for.txt is not there"),
        ] {
            assert_eq!(clean(text, r#"{"path":"/tmp/asked/for.txt"}"#), expected);
        }
    }

    #[test]
    fn stacks() {
        let node = "Boom\n    at run (/srv/app/x.js:1:2)\n    at /srv/app/y.js:3:4\nmore";
        assert_eq!(clean(node, ""), "Boom\nmore");
        assert_eq!(clean("Meet me at noon", ""), "Meet me at noon");
        assert_eq!(clean("at least 3 (three)\nat 10:30", ""), "at least 3 (three)\nat 10:30");
    }
}
