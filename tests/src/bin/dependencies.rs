//! Lists the dependencies of `codecall`, and their uses of `unsafe`.
//!
//! `dependencies` prints the table of docs/reports/dependencies.md; `--write` writes it there, `--check` fails if it is
//! out of date.
//! `--sbom` prints a bill of materials (CycloneDX 1.6, JSON). The data comes from `cargo metadata` for Linux on x86-64
//! with the default features. The sources of the crates count without their tests, benches and examples.
#![expect(clippy::print_stdout, reason = "it prints a table")]

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PAGE: &str = "docs/reports/dependencies.md";
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

/// The crates of the program, by their package ids.
struct Crates {
    packages: BTreeMap<String, Value>,
    /// The dependencies of each crate, by id.
    dependencies: BTreeMap<String, BTreeSet<String>>,
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
        let mut dependencies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut open = vec![program.clone()];
        while let Some(id) = open.pop() {
            if dependencies.contains_key(&id) {
                continue;
            }
            // Dependencies of tests are not part of the program.
            let is_used = |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            let used = nodes.get(&id).map(|node| list(&node["deps"])).unwrap_or_default();
            let used: BTreeSet<String> =
                used.iter().filter(|dependency| is_used(dependency)).map(|used| text(used, "pkg")).collect();
            open.extend(used.iter().cloned());
            dependencies.insert(id, used);
        }
        packages.retain(|id, _| dependencies.contains_key(id));
        Ok(Self { packages, dependencies, program })
    }

    /// Returns the third-party crates by name and version.
    fn others(&self) -> impl Iterator<Item = (&String, &Value)> {
        let mut others: Vec<_> = self.packages.iter().filter(|(_, package)| !package["source"].is_null()).collect();
        others.sort_by_key(|(_, package)| (text(package, "name"), text(package, "version")));
        others.into_iter()
    }

    fn table(&self) -> Result<String, Box<dyn Error>> {
        let (mut rows, mut all, mut none, mut forbid, mut total) = (String::new(), 0, 0, 0, 0);
        for (id, package) in self.others() {
            let counted = SourceCounts::count(package)?;
            all += 1;
            forbid += usize::from(counted.forbids);
            total += counted.uses;
            if counted.uses == 0 && counted.foreign == 0 {
                none += 1;
                continue;
            }
            let mut users: Vec<String> = self
                .dependencies
                .iter()
                .filter(|(_, dependencies)| dependencies.contains(id))
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
             {total} times together. The libraries of this repository forbid it; the program calls two functions of glibc, in `server/cli/src/allocator.rs`.\n\n\
             | crate | version | `unsafe` | files in C or assembly | used by |\n|---|---|---:|---:|---|\n{}",
            rows.trim_end()
        ))
    }

    /// Returns the bill of materials.
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
            .dependencies
            .iter()
            .map(|(id, dependencies)| json!({"ref": reference(id), "dependsOn": dependencies.iter().map(|id| reference(id)).collect::<Vec<_>>()}))
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

/// Counts from the sources of a crate.
#[derive(Default)]
struct SourceCounts {
    /// Number of the keyword `unsafe`: blocks, functions, traits and implementations.
    uses: usize,
    /// Number of source files in other languages.
    foreign: usize,
    forbids: bool,
}

impl SourceCounts {
    fn count(package: &Value) -> Result<Self, Box<dyn Error>> {
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
                        // Some crates forbid it under a condition: that no feature that needs it is enabled.
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

/// Returns the words of a Rust source outside comments and literals.
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
            [b'r', b'"' | b'#', ..] if raw_string(rest) > 0 => raw_string(rest),
            [b'"', ..] => quoted(rest),
            // A character literal. A lifetime has no closing quote.
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

/// Returns the length up to and including `end`, or the whole length.
fn length_to(bytes: &[u8], end: &[u8]) -> usize {
    bytes.windows(end.len()).position(|part| part == end).map_or(bytes.len(), |found| found + end.len())
}

/// Returns the length of a block comment, which may be nested.
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

/// Returns the length of a raw string `r#"…"#`; 0 if it is not one.
fn raw_string(bytes: &[u8]) -> usize {
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
