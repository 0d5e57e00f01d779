//! What the program is made of: every crate that goes into `codecall`, and where `unsafe` is.
//!
//! `dependencies` prints the table of docs/dependencies.md; `--write` writes it there, `--check` fails when it is not
//! the one that is there. `--sbom` prints a bill of materials (CycloneDX 1.6, JSON). All of it is what
//! `cargo metadata` says for Linux on x86-64, with the features that are on by default, and what stands in the
//! sources of the crates; tests, benches and examples of theirs are not counted.
#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PAGE: &str = "docs/dependencies.md";
const BEGIN: &str = "<!-- unsafe";
const END: &str = "<!-- /unsafe -->";
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let crates = Crates::read()?;
    let mode = std::env::args().nth(1);
    match mode.as_deref() {
        None => println!("{}", crates.table()?),
        Some("--sbom") => println!("{}", serde_json::to_string_pretty(&crates.bill())?),
        Some("--write" | "--check") => {
            let page = root().join(PAGE);
            let text = std::fs::read_to_string(&page)?;
            let begin = text.find(BEGIN).ok_or("the page has no place for the table")?;
            let begin = begin + text[begin..].find('\n').ok_or("the page has no place for the table")? + 1;
            let end = text.find(END).ok_or("the page has no end of the table")?;
            let fresh = format!("{}{}\n{}", &text[..begin], crates.table()?, &text[end..]);
            if mode.as_deref() == Some("--write") {
                std::fs::write(page, fresh)?;
            } else if fresh != text {
                println!("{PAGE} is out of date: cargo run -p codecall-tests --bin dependencies -- --write");
                return Ok(ExitCode::FAILURE);
            }
        }
        Some(other) => return Err(format!("'{other}' is not known: --write, --check or --sbom").into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The crates of the program, by the id that cargo gives them.
struct Crates {
    packages: BTreeMap<String, Value>,
    /// What each depends on, among them.
    needs: BTreeMap<String, BTreeSet<String>>,
    program: String,
}

impl Crates {
    fn read() -> Result<Self, Box<dyn Error>> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let words = ["metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET];
        let output = Command::new(cargo).args(words).current_dir(root()).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut packages: BTreeMap<String, Value> =
            list(&metadata["packages"]).into_iter().map(|package| (text(&package, "id"), package)).collect();
        let nodes: BTreeMap<String, Value> =
            list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node, "id"), node)).collect();
        let program = packages.iter().find(|(_, package)| package["name"] == "codecall").map(|(id, _)| id.clone());
        let program = program.ok_or("there is no package 'codecall'")?;
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut open = vec![program.clone()];
        while let Some(id) = open.pop() {
            if needs.contains_key(&id) {
                continue;
            }
            // What only tests need does not go into the program.
            let is_used = |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            let used = nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default();
            let used: BTreeSet<String> =
                used.iter().filter(|dependency| is_used(dependency)).map(|used| text(used, "pkg")).collect();
            open.extend(used.iter().cloned());
            needs.insert(id, used);
        }
        packages.retain(|id, _| needs.contains_key(id));
        Ok(Self { packages, needs, program })
    }

    /// The crates of others by name and version.
    fn others(&self) -> impl Iterator<Item = (&String, &Value)> {
        let mut others: Vec<_> = self.packages.iter().filter(|(_, package)| !package["source"].is_null()).collect();
        others.sort_by_key(|(_, package)| (text(package, "name"), text(package, "version")));
        others.into_iter()
    }

    fn table(&self) -> Result<String, Box<dyn Error>> {
        let (mut rows, mut all, mut none, mut forbid, mut total) = (String::new(), 0, 0, 0, 0);
        for (id, package) in self.others() {
            let counted = Counted::of(package)?;
            all += 1;
            forbid += usize::from(counted.forbids);
            total += counted.uses;
            if counted.uses == 0 && counted.foreign == 0 {
                none += 1;
                continue;
            }
            let mut users: Vec<String> = self
                .needs
                .iter()
                .filter(|(_, needs)| needs.contains(id))
                .map(|(user, _)| text(&self.packages[user], "name"))
                .collect();
            users.sort();
            let more = users.len().saturating_sub(3);
            users.truncate(3);
            let users = users.join(", ") + &if more > 0 { format!(", {more} more") } else { String::new() };
            let foreign = if counted.foreign == 0 { String::new() } else { counted.foreign.to_string() };
            let (name, version) = (text(package, "name"), text(package, "version"));
            writeln!(rows, "| {name} | {version} | {} | {foreign} | {users} |", counted.uses)?;
        }
        Ok(format!(
            "{all} crates of others go into the program. {none} of them have no `unsafe` at all, {forbid} forbid it; the others have it \
             {total} times together. The libraries of this repository forbid it; the program calls two functions of glibc, in `server/src/allocator.rs`.\n\n\
             | crate | version | `unsafe` | files in C or assembly | used by |\n|---|---|---:|---:|---|\n{}",
            rows.trim_end()
        ))
    }

    /// The bill of materials.
    fn bill(&self) -> Value {
        let reference = |id: &str| {
            let package = &self.packages[id];
            format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version"))
        };
        let component = |id: &str| {
            let package = &self.packages[id];
            let kind = if id == self.program { "application" } else { "library" };
            let mut component = json!({
                "type": kind, "bom-ref": reference(id), "purl": reference(id),
                "name": package["name"], "version": package["version"],
            });
            if let Some(licence) = package["license"].as_str() {
                component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
            }
            component
        };
        let components: Vec<Value> =
            self.packages.keys().filter(|id| **id != self.program).map(|id| component(id)).collect();
        let dependencies: Vec<Value> = self
            .needs
            .iter()
            .map(|(id, needs)| json!({"ref": reference(id), "dependsOn": needs.iter().map(|need| reference(need)).collect::<Vec<_>>()}))
            .collect();
        json!({
            "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "metadata": {"component": component(&self.program)},
            "components": components, "dependencies": dependencies,
        })
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// What stands in the sources of a crate.
#[derive(Default)]
struct Counted {
    /// The word `unsafe`: blocks, functions, traits and their implementations.
    uses: usize,
    /// Files in other languages that are compiled into it.
    foreign: usize,
    forbids: bool,
}

impl Counted {
    fn of(package: &Value) -> Result<Self, Box<dyn Error>> {
        let manifest = PathBuf::from(text(package, "manifest_path"));
        let folder = manifest.parent().ok_or("a manifest in a folder")?;
        let mut counted = Self::default();
        let mut open = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    if !matches!(name.as_str(), "tests" | "benches" | "examples" | "fuzz" | "test" | "target") {
                        open.push(path);
                    }
                    continue;
                }
                match path.extension().and_then(|extension| extension.to_str()) {
                    Some("rs") => {
                        let source = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
                        let words = words(&source);
                        counted.uses += words.iter().filter(|word| **word == "unsafe").count();
                        // Under a condition too: the condition is that nobody has asked for `unsafe`.
                        counted.forbids |= words.windows(2).any(|pair| pair == ["forbid", "unsafe_code"]);
                    }
                    Some("c" | "S" | "asm" | "cc" | "cpp") => counted.foreign += 1,
                    Some(_) | None => {}
                }
            }
        }
        Ok(counted)
    }
}

/// The words of Rust source that stand outside comments and texts.
fn words(source: &str) -> Vec<&str> {
    let bytes = source.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest {
            [b'/', b'/', ..] => length_to(rest, b"\n"),
            [b'/', b'*', ..] => block_comment(rest),
            [b'r', b'"' | b'#', ..] if raw_text(rest) > 0 => raw_text(rest),
            [b'"', ..] => quoted(rest),
            // A quotation mark as a character; a lifetime has no end.
            [b'\'', b'\\', _, ..] => 3 + length_to(&rest[3..], b"'"),
            [b'\'', _, b'\'', ..] => 3,
            [byte, ..] if is_word(*byte) => {
                let length = rest.iter().take_while(|byte| is_word(**byte)).count();
                words.push(&source[at..at + length]);
                length
            }
            _ => 1,
        };
    }
    words
}

/// To the end of `end`, or of everything.
fn length_to(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|part| part == end).map_or(bytes.len(), |found| found + end.len())
}

/// Comments of this kind nest.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// How long `r#"…"#` is; 0: it is not one.
fn raw_text(bytes: &[u8]) -> usize {
    let hashes = bytes[1..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    2 + hashes + length_to(&bytes[2 + hashes..], &end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_outside_comments_and_texts() {
        let source = r##"//! unsafe
            /* unsafe /* unsafe */ unsafe */ #![forbid(unsafe_code)]
            fn f<'a>(x: &'a str) { let _ = ("unsafe", r#"unsafe " "#, '"', '\'', 'u'); unsafe { g("\"unsafe") } }
            unsafe impl Send for r#unsafe_name {}"##;
        let words = words(source);
        assert_eq!(words.iter().filter(|word| **word == "unsafe").count(), 2, "{words:?}");
        assert!(words.windows(2).any(|pair| pair == ["forbid", "unsafe_code"]));
    }
}
