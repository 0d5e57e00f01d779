//! Checks the layers of the server: a module only imports from lower layers, so there are no cycles. The compiler enforces
//! this between crates, this test also within them. The layers are a table in docs/architecture.md. A module of `lang` only
//! imports from modules that are declared above it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/architecture.md";
/// A crate of the server.
struct Crate {
    folder: &'static str,
    /// The first part of its paths in code.
    name: &'static str,
    /// The module of the table that stands for the whole crate; `None` if its modules are in the table.
    module: Option<&'static str>,
    /// Modules of the crate that are separate entries of the table.
    beside: &'static [&'static str],
}

const CRATES: [Crate; 16] = [
    Crate { folder: "server/base/src", name: "codecall_base", module: None, beside: &[] },
    Crate { folder: "server/config/src", name: "codecall_config", module: Some("config"), beside: &[] },
    Crate { folder: "server/store/src", name: "codecall_store", module: Some("store"), beside: &[] },
    Crate { folder: "server/openapi/src", name: "codecall_openapi", module: Some("openapi"), beside: &[] },
    Crate { folder: "server/upstream/src", name: "codecall_upstream", module: Some("upstream"), beside: &["confine"] },
    Crate { folder: "server/tools/src", name: "codecall_tools", module: None, beside: &[] },
    Crate { folder: "server/runs/src", name: "codecall_runs", module: Some("runs"), beside: &[] },
    Crate { folder: "server/scripts/src", name: "codecall_scripts", module: Some("scripts"), beside: &[] },
    Crate { folder: "server/skills/src", name: "codecall_skills", module: Some("skills"), beside: &[] },
    Crate { folder: "server/clients/src", name: "codecall_clients", module: Some("clients"), beside: &[] },
    Crate { folder: "server/hub/src", name: "codecall_hub", module: None, beside: &[] },
    Crate { folder: "server/mcp/src", name: "codecall_mcp", module: Some("mcp"), beside: &[] },
    Crate { folder: "server/http/src", name: "codecall_http", module: Some("http"), beside: &[] },
    Crate { folder: "server/restate/src", name: "codecall_restate", module: Some("restate"), beside: &[] },
    Crate { folder: "server/cli/src", name: "codecall_cli", module: Some("cli"), beside: &[] },
    Crate { folder: "server/src", name: "codecall", module: None, beside: &[] },
];
/// Items that `lib.rs` exports, with their modules.
const EXPORTED: [(&str, &str); 3] = [("Config", "config"), ("Error", "error"), ("Hub", "hub")];

impl Crate {
    /// Returns the module of the table for the first part of a path in the crate; `None` if it is not a module.
    fn module_of(&self, head: &str) -> Option<String> {
        match self.module {
            Some(module) if !self.beside.contains(&head) => Some(module.to_owned()),
            _ => head.starts_with(|c: char| c.is_lowercase()).then(|| head.to_owned()),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page() -> String {
    std::fs::read_to_string(root().join(PAGE)).expect("the page is there")
}

/// Returns the range of a part of the page: between the lines `<!-- name` and `<!-- /name -->`.
fn part(page: &str, name: &str) -> std::ops::Range<usize> {
    let begin = page.find(&format!("<!-- {name}")).unwrap_or_else(|| panic!("{PAGE} has no '{name}'"));
    let begin = begin + page[begin..].find('\n').expect("a line ends") + 1;
    let end = page.find(&format!("<!-- /{name} -->")).unwrap_or_else(|| panic!("{PAGE} has no end of '{name}'"));
    begin..end
}

/// Returns the layer of each module in the table of the page, from 0 at the bottom. A row is a crate; `›` separates its layers,
/// the highest first.
fn layers(page: &str) -> BTreeMap<&str, usize> {
    let mut layers = BTreeMap::new();
    let rows = page[part(page, "layers")].lines().filter(|line| line.starts_with("| `"));
    let cells = rows.rev().flat_map(|row| row.split('|').nth(2).unwrap_or_default().rsplit('›'));
    for (layer, cell) in cells.enumerate() {
        for module in cell.split('`').skip(1).step_by(2) {
            assert!(layers.insert(module, layer).is_none(), "'{module}' stands in two layers");
        }
    }
    layers
}

/// Returns all source files in `folder` and its subfolders, except for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let is_of_tests = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_of_tests {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_of_tests {
            found.push(path);
        }
    }
}

/// Removes comments, and the tests at the end of a source text.
fn code(text: &str) -> String {
    let text = text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code);
    text.lines().map(|line| line.split_once("//").map_or(line, |(code, _)| code)).collect::<Vec<_>>().join("\n")
}

/// Returns the first names of all paths that begin with `prefix`, also those in a group (`prefix{a, b::c}`).
fn heads(code: &str, prefix: &str) -> BTreeSet<String> {
    let name = |text: &str| {
        let letters = text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_');
        letters.collect::<String>()
    };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        // The prefix may be the end of another name.
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 0_u32;
        let mut is_head = true;
        for (at, letter) in group.char_indices() {
            match letter {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => is_head = true,
                letter if is_head && !letter.is_whitespace() => {
                    found.insert(name(&group[at..]));
                    is_head = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the other modules that each top-level module imports, found by the paths in its code.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for own in &CRATES {
        let folder = root().join(own.folder);
        let mut paths = Vec::new();
        sources(&folder, &mut paths);
        assert!(paths.len() > 2, "{} sources in {}", paths.len(), own.folder);
        for path in paths {
            let inside = path.strip_prefix(&folder).expect("a path of the folder");
            let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
            let first = first.strip_suffix(".rs").unwrap_or(&first);
            if first == "lib" && own.module.is_none() {
                continue;
            }
            let module = own.module_of(first).expect("a module");
            let code = code(&std::fs::read_to_string(&path).expect("a source"));
            let all = imports.entry(module.clone()).or_default();
            // The last crate is in front of all others, which cannot import it.
            let imported = if own.name == "codecall" { &CRATES[..] } else { &CRATES[..CRATES.len() - 1] };
            for other in imported {
                let prefix = if other.name == own.name { "crate" } else { other.name };
                for head in heads(&code, &format!("{prefix}::")) {
                    let exported = EXPORTED.iter().find(|(name, _)| *name == head && other.module.is_none());
                    let imported = exported.map_or_else(|| other.module_of(&head), |(_, of)| Some((*of).to_owned()));
                    all.extend(imported.filter(|other| *other != module));
                }
            }
        }
    }
    imports
}

#[test]
fn modules_only_import_from_lower_layers() {
    let page = page();
    let layers = layers(&page);
    let layer = |module: &str| *layers.get(module).unwrap_or_else(|| panic!("'{module}' stands in no layer of {PAGE}"));
    let imports = imports();
    let mut upwards = Vec::new();
    for (module, others) in &imports {
        upwards.extend(
            others.iter().filter(|other| layer(other) >= layer(module)).map(|other| format!("{module} -> {other}")),
        );
    }
    assert_eq!(upwards, [""; 0], "imports of the same layer or a higher one");
    let gone: Vec<&&str> = layers.keys().filter(|module| !imports.contains_key(**module)).collect();
    assert_eq!(gone, [&""; 0], "layers of {PAGE} without sources");
}

/// The engine is optional: its crate can be left out, and another one can take its place.
#[test]
fn only_its_own_crate_knows_the_engine() {
    let mut naming = Vec::new();
    for own in CRATES.iter().filter(|own| !["restate", "config", "cli"].map(Some).contains(&own.module)) {
        let mut paths = Vec::new();
        sources(&root().join(own.folder), &mut paths);
        let names =
            |path: &PathBuf| std::fs::read_to_string(path).expect("a source").to_lowercase().contains("restate");
        naming.extend(paths.into_iter().filter(names));
    }
    assert_eq!(naming, Vec::<PathBuf>::new());
}

/// Returns imports of modules in `folder` from modules that `front` declares further down. Their paths begin with
/// `prefix`.
fn downward_imports(front: &str, folder: &str, prefix: &str) -> Vec<String> {
    let (front, folder) = (root().join(front), root().join(folder));
    let read = |path: &Path| code(&std::fs::read_to_string(path).expect("a source"));
    let text = read(&front);
    let declared: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    assert!(declared.len() > 5, "{declared:?}");
    let exporter = |name: &str| {
        text.lines().find_map(|line| {
            let module = line.strip_prefix("pub use ")?.split("::").next()?;
            heads(line, &format!("{module}::")).contains(name).then(|| module.to_owned())
        })
    };
    let position = |module: &str| declared.iter().position(|name| *name == module);
    let mut paths = vec![folder.join("grammar.lalrpop")];
    paths.retain(|path| path.exists());
    sources(&folder, &mut paths);
    let mut found = Vec::new();
    for path in paths {
        let inside = path.strip_prefix(&folder).expect("a path of the folder");
        let first = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
        let module = match first.split_once('.') {
            Some(("grammar", _)) => "parse",
            Some((name, _)) => name,
            None => &first,
        };
        let Some(own) = position(module) else { continue };
        for head in heads(&read(&path), prefix) {
            let other = exporter(&head).unwrap_or(head);
            if position(&other).is_some_and(|other| other > own) {
                found.push(format!("{module} -> {other}"));
            }
        }
    }
    found
}

#[test]
fn modules_of_the_language_only_import_from_modules_above_them() {
    assert_eq!(downward_imports("lang/src/lib.rs", "lang/src", "crate::"), [""; 0]);
    assert_eq!(downward_imports("lang/src/resolve.rs", "lang/src/resolve", "super::"), [""; 0]);
}

#[test]
fn modules_of_the_interpreter_only_import_from_modules_above_them() {
    assert_eq!(downward_imports("runtime/src/lib.rs", "runtime/src", "crate::"), [""; 0]);
}

/// The compiler allows a method that a higher floor adds, and its calls from below; an import would be refused.
#[test]
fn only_the_evaluator_adds_methods_to_a_run() {
    let mut paths = Vec::new();
    sources(&root().join("runtime/src"), &mut paths);
    let adds = |text: &str| text.lines().any(|line| line.starts_with("impl") && line.ends_with(" Vm {"));
    let (below, above): (Vec<_>, Vec<_>) = paths
        .into_iter()
        .filter(|path| adds(&code(&std::fs::read_to_string(path).expect("a source"))))
        .partition(|path| path.starts_with(root().join("runtime/src/eval")));
    assert_eq!(above, [""; 0].map(PathBuf::from));
    assert!(!below.is_empty(), "the methods of `Vm` are somewhere else");
}

#[test]
fn paths_are_found_in_code() {
    let text = "use crate::{a::{b, c}, d};\nuse crate::e::f; // crate::g\nlet x = crate::h::i(not_crate::j);\n#[cfg(test)]\nmod tests {\n    use crate::k;\n}\n";
    assert_eq!(heads(&code(text), "crate::").into_iter().collect::<Vec<_>>(), ["a", "d", "e", "h"]);
}
