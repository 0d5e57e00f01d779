//! Removes host paths and host stacks from errors. Paths that the caller needs stay. It has sent them itself, also in a
//! longer form, or they are those of the configuration, such as folders of a server of files.
//!
//! Errors are truncated before ([`super::bound`]), so that they contain few paths. All of these are searched in one pass
//! over what the caller has sent.

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use codecall_base::tool::ToolError;
use codecall_config::Sanitization;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Maximum length of a path that is searched there, in bytes: no file system has longer ones.
const MAX_PATH_BYTES: usize = 4_096;
/// Maximum number of paths of one error that are searched in what the caller has sent. Further ones are removed.
const MAX_PATHS: usize = 200;

/// Maximum number of strings of what the caller has sent that are compared with paths.
const MAX_SENT: usize = 1_000;
/// Maximum length of a string that is compared with paths, in bytes.
const MAX_SENT_BYTES: usize = 1_024;
/// The length of a name that the caller has sent from which on the names of files below it stay, in bytes.
const MIN_FOLDER_BYTES: usize = 3;

/// Sanitizes errors.
#[derive(Clone)]
pub struct Sanitizer {
    what: Sanitization,
    /// Paths of the configuration, without a separator at the end.
    roots: Arc<[String]>,
}

impl Sanitizer {
    /// Creates a sanitizer. Paths at and below the `roots` stay.
    #[must_use]
    pub fn new(what: Sanitization, roots: impl IntoIterator<Item = String>) -> Self {
        let trimmed = |root: String| root.trim_end_matches(['/', '\\']).to_owned();
        let mut roots: Vec<String> = roots.into_iter().map(trimmed).filter(|root| !root.is_empty()).collect();
        roots.sort();
        roots.dedup();
        Self { what, roots: roots.into() }
    }

    /// Sanitizes an error. `sent` is what the caller has sent.
    #[must_use]
    pub fn error(&self, mut error: ToolError, sent: Option<&Value>) -> ToolError {
        let known = self.known(sent, [Some(error.message.as_str()), error.details.as_deref()].into_iter().flatten());
        error.message = self.text(&error.message, &known);
        if self.what.remove_file_paths {
            error.details = error.details.map(|details| self.without_paths(&details, &known));
        }
        error
    }

    /// Sanitizes all strings of a value.
    pub fn data(&self, value: &mut Value) {
        texts(value, &mut |string| *string = self.text(string, &HashMap::new()));
    }

    /// Sanitizes the texts of a result of MCP that says that its tool has failed.
    pub fn content(&self, result: &mut Value, sent: &Value) {
        let mut strings = Vec::new();
        for value in failed_texts(result) {
            texts(value, &mut |string| strings.push(string.clone()));
        }
        let known = self.known(Some(sent), strings.iter().map(String::as_str));
        for value in failed_texts(result) {
            texts(value, &mut |string| *string = self.text(string, &known));
        }
    }

    fn text(&self, text: &str, known: &Known) -> String {
        let text = if self.what.remove_stack_traces { without_stack(text) } else { text.to_owned() };
        if self.what.remove_file_paths { self.without_paths(&text, known) } else { text }
    }

    fn without_paths(&self, text: &str, known: &Known) -> String {
        let mut out = String::with_capacity(text.len());
        let rest = each_path_between(text, &mut |before, path| {
            out.push_str(before);
            out.push_str(match known.get(path) {
                Some(shown) => shown,
                None if self.is_configured(path) => path,
                None => "[path]",
            });
            true
        });
        out.push_str(rest);
        out
    }

    fn is_configured(&self, path: &str) -> bool {
        let path = path.replace("\\\\", "\\");
        self.roots.iter().any(|root| is_within(&path, root))
    }

    /// Returns the paths in texts that the caller knows from what it has sent.
    fn known<'a>(&self, sent: Option<&Value>, texts: impl Iterator<Item = &'a str>) -> Known {
        let (true, Some(sent)) = (self.what.remove_file_paths, sent) else { return Known::new() };
        let mut paths: Vec<String> = Vec::new();
        for text in texts {
            each_path(text, &mut |path| {
                // Inside JSON a backslash is doubled; both spellings are looked for.
                for path in [path.to_owned(), path.replace("\\\\", "\\")] {
                    if path.len() <= MAX_PATH_BYTES && !paths.contains(&path) && !self.is_configured(&path) {
                        paths.push(path);
                    }
                }
                paths.len() < MAX_PATHS
            });
        }
        if paths.is_empty() {
            return Known::new();
        }
        let mut known = sent_paths(&paths, sent);
        let mut names: Vec<&str> = Vec::new();
        search(sent, &mut |text| {
            if text.len() <= MAX_SENT_BYTES && !text.trim().is_empty() {
                names.push(text);
            }
            names.len() < MAX_SENT
        });
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        for path in paths {
            if !known.contains_key(&path)
                && let Some(shown) = names.iter().find_map(|name| as_sent(&path, name))
            {
                known.insert(path, shown);
            }
        }
        known
    }
}

/// Paths that the caller knows, and how they are shown.
type Known = HashMap<String, String>;

/// Whether a path is `root` or below it.
fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
}

/// Returns a path as the caller knows it, who has sent `name`: the path itself if it is below a folder that was sent, and
/// the relative path if that was sent.
fn as_sent(path: &str, name: &str) -> Option<String> {
    let name = name.trim_end_matches(['/', '\\']);
    if name.starts_with('/') || name.get(1..3) == Some(":\\") {
        // Neither the root of the file system nor one of its folders.
        let is_folder = name.split(['/', '\\']).filter(|part| !part.is_empty()).count() > 1;
        return (is_folder && is_within(path, name)).then(|| path.to_owned());
    }
    let relative = name.trim_start_matches("./").trim_start_matches("../");
    let at = path.find(relative).filter(|at| *at > 0 && !relative.is_empty())?;
    let (before, rest) = (&path[..at], &path[at + relative.len()..]);
    let is_whole = before.ends_with(['/', '\\']) && (rest.is_empty() || rest.starts_with(['/', '\\']));
    (is_whole && (rest.is_empty() || relative.len() >= MIN_FOLDER_BYTES)).then(|| format!("{name}{rest}"))
}

/// Returns the values of a failed result that are or contain texts for people.
fn failed_texts(result: &mut Value) -> Vec<&mut Value> {
    let Value::Object(members) = result else { return Vec::new() };
    let mut found = Vec::new();
    for (key, member) in members {
        match (key.as_str(), member) {
            ("content", Value::Array(blocks)) => {
                found.extend(blocks.iter_mut().filter_map(|block| block.get_mut("text")))
            }
            ("structuredContent", data) => found.push(data),
            _ => {}
        }
    }
    found
}

/// Changes all strings of a value. It may recurse, because JSON parsers limit the depth of values.
fn texts(value: &mut Value, change: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| texts(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the paths that occur in what the caller has sent.
fn sent_paths(paths: &[String], sent: &Value) -> Known {
    // An automaton of another kind takes long to be built.
    let finder = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(paths);
    let Ok(finder) = finder else { return Known::new() };
    let mut found = vec![false; paths.len()];
    let mut left = paths.len();
    search(sent, &mut |text| {
        for hit in finder.find_overlapping_iter(text) {
            let is_found = &mut found[hit.pattern().as_usize()];
            left -= usize::from(!*is_found);
            *is_found = true;
            if left == 0 {
                return false;
            }
        }
        true
    });
    let is_known = |path: &String| {
        let other = path.replace("\\\\", "\\");
        paths.iter().zip(&found).any(|(wanted, found)| *found && (wanted == path || *wanted == other))
    };
    paths.iter().filter(|path| is_known(path)).map(|path| (path.clone(), path.clone())).collect()
}

/// Passes all strings and keys of a value to `look`, until it returns false.
fn search<'a>(value: &'a Value, look: &mut dyn FnMut(&'a str) -> bool) -> bool {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().all(|item| search(item, look)),
        Value::Object(members) => members.iter().all(|(key, member)| look(key) && search(member, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
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

/// Passes each path in a text to `visit`, until it returns false.
fn each_path(text: &str, visit: &mut dyn FnMut(&str) -> bool) {
    each_path_between(text, &mut |_, path| visit(path));
}

/// Passes each path in a text, and the text before it, to `visit`, until it returns false. Returns the rest.
fn each_path_between<'a>(text: &'a str, visit: &mut dyn FnMut(&'a str, &'a str) -> bool) -> &'a str {
    let (mut rest, mut before) = (text, None);
    while let Some((start, length)) = path(rest, before) {
        let found = &rest[start..start + length];
        // The replacement of a path does not end with a letter.
        before = Some(']');
        let continues = visit(&rest[..start], found);
        rest = &rest[start + length..];
        if !continues {
            break;
        }
    }
    rest
}

/// Finds the first absolute path with at least two parts. Returns its position and its length.
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
        // The beginning decides, so that the time stays linear in the text.
        if unix && !is_of_host(codecall_base::text::truncate(tail, MAX_ROOT_BYTES)) {
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

/// Maximum length of the root folder of a path, in bytes.
const MAX_ROOT_BYTES: usize = 300;

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
        let roots = ["/srv/files/".to_owned(), "D:\\data".to_owned()];
        Sanitizer::new(all, roots).error(ToolError::new("X", text), Some(&sent)).message
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
    fn paths_that_the_caller_needs_stay() {
        for (text, sent, expected) in [
            ("allowed directories: /srv/files, /srv/filesystem", "", "allowed directories: /srv/files, [path]"),
            ("no /srv/files/a/b.txt, no D:\\data\\x.db", "", "no /srv/files/a/b.txt, no D:\\data\\x.db"),
            ("open '/home/me/notes/a.txt'", r#"{"path":"notes/a.txt"}"#, "open 'notes/a.txt'"),
            ("open '/home/me/notes/a.txt'", r#"{"path":"./notes/"}"#, "open './notes/a.txt'"),
            ("open '/home/me/a.txt'", r#"{"path":"../a.txt"}"#, "open '../a.txt'"),
            ("open '/home/me/a.txt'", r#"{"path":"me"}"#, "open '[path]'"),
            ("open '/home/me/xa.txt'", r#"{"path":"a.txt"}"#, "open '[path]'"),
            ("no /var/lib/x/y.txt", r#"{"path":"/var/lib/x/"}"#, "no /var/lib/x/y.txt"),
            ("no /var/lib/x/y.txt", r#"{"path":"/"}"#, "no [path]"),
            ("see a/b/c.txt and ../d", "", "see a/b/c.txt and ../d"),
        ] {
            assert_eq!(clean(text, sent), expected, "{sent}");
        }
    }

    #[test]
    fn many_paths_take_no_time() {
        let began = std::time::Instant::now();
        for (text, sent) in [
            (" /tmp/zz".repeat(20_000), format!(r#"{{"a": "{}"}}"#, "x".repeat(4_000_000))),
            (":/".repeat(100_000), "{}".into()),
            ("/tmp".repeat(1_000), format!(r#"{{"a": "{}"}}"#, "/tmp".repeat(500_000))),
            (
                (0..20_000).map(|at| format!(" /tmp/{at}")).collect(),
                format!(r#"{{"a": "{}"}}"#, "/tmp/".repeat(400_000)),
            ),
        ] {
            clean(&text, &sent);
        }
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[test]
    fn a_path_with_doubled_backslashes_is_known() {
        let mut error = ToolError::new("X", "in C:\\Users\\me\\x.txt and C:\\Users\\you\\y.txt");
        error.details = Some(r#"{"at":"C:\\Users\\me\\x.txt"}"#.into());
        let all = Sanitization { remove_stack_traces: true, remove_file_paths: true };
        let sent = serde_json::json!({"path": "C:\\Users\\me\\x.txt"});
        let cleaned = Sanitizer::new(all, []).error(error, Some(&sent));
        assert_eq!(cleaned.message, "in C:\\Users\\me\\x.txt and [path]");
        assert_eq!(cleaned.details.as_deref(), Some(r#"{"at":"C:\\Users\\me\\x.txt"}"#));
    }

    #[test]
    fn stacks() {
        let node = "Boom\n    at run (/srv/app/x.js:1:2)\n    at /srv/app/y.js:3:4\nmore";
        assert_eq!(clean(node, ""), "Boom\nmore");
        assert_eq!(clean("Meet me at noon", ""), "Meet me at noon");
        assert_eq!(clean("at least 3 (three)\nat 10:30", ""), "at least 3 (three)\nat 10:30");
    }
}
