//! Checks the documentation against the code. `UPDATE=1` rewrites its generated parts.

#[path = "docs/configuration.rs"]
mod configuration;
#[path = "docs/language.rs"]
mod language;

use agentscript::{ErrorCode, LIMITS, Loops, Policy, Preset, Unit};
use codecall::http::HttpError;
use codecall_tests::limits::{Place, ROWS};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Formats a number for people: `64 Mi`, `3500`.
fn format_amount(value: u64, unit: Unit) -> String {
    const KI: u64 = 1024;
    match unit {
        Unit::Bytes if value > 0 && value.is_multiple_of(KI * KI) => format!("{} Mi", value / KI / KI),
        Unit::Bytes if value > 0 && value.is_multiple_of(KI) => format!("{} Ki", value / KI),
        Unit::Bytes | Unit::Milliseconds | Unit::Count => value.to_string(),
    }
}

/// Divides a description into what fits a cell of a table, in whole sentences, and the rest.
fn divide(text: &str) -> (&str, &str) {
    const MOST: usize = 160;
    let ends = text.match_indices(". ").map(|(at, _)| at + 1).chain([text.len()]);
    let end = ends.take_while(|end| text[..*end].chars().count() <= MOST).last();
    let end = end.or_else(|| text.find(". ").map(|at| at + 1)).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Returns a list of what does not fit the cells of a table.
fn rests(rests: &[(String, String)]) -> String {
    rests.iter().fold(String::new(), |list, (name, rest)| format!("{list}\n- {name}: {rest}"))
}

/// Returns the table of limits and permissions by preset.
fn presets_table() -> String {
    let mut table = "| key | flag |".to_owned();
    for preset in Preset::ALL {
        let default = if preset == Preset::default() { " (default)" } else { "" };
        write!(table, " {}{default} |", preset.as_str()).expect("a string can be written");
    }
    writeln!(table, " what |\n|---|---|{}---|", "---:|".repeat(Preset::ALL.len())).expect("a string can be written");
    let mut further = Vec::new();
    for limit in LIMITS {
        let cells = limit.presets.map(|value| format_amount(value, limit.unit)).join(" | ");
        let (name, flag) = (limit.name, limit.flag);
        let (doc, rest) = divide(limit.doc.trim());
        further.extend((!rest.is_empty()).then(|| (format!("`{name}`"), rest.to_owned())));
        let doc = doc.trim_end_matches('.');
        writeln!(table, "| `{name}` | `--{flag}` | {cells} | {doc} |").expect("a string can be written");
    }
    let policies = Preset::ALL.map(Policy::preset);
    let loops = policies.each_ref().map(|policy| match policy.loops {
        Loops::None => "none",
        Loops::Bounded => "bounded",
        Loops::All => "all",
    });
    let console = policies.each_ref().map(|policy| if policy.allow_console { "yes" } else { "no" });
    let (loops, console) = (loops.join(" | "), console.join(" | "));
    writeln!(table, "| `loops` | | {loops} | The loops that a script may contain |").expect("a string can be written");
    let timers = policies.each_ref().map(|policy| if policy.timers { "yes" } else { "no" }).join(" | ");
    writeln!(table, "| `timers` | | {timers} | Whether a script may set timers, and `sleep` |")
        .expect("a string can be written");
    writeln!(table, "| `allowConsole` | | {console} | Whether a script may use `console` |")
        .expect("a string can be written");
    table + &rests(&further)
}

/// Formats a number as the README does: `64 KiB`, `3.5 s`, `1,000`.
fn format_short(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{}B", format_amount(value, unit)),
        Unit::Milliseconds if value >= 120_000 && value.is_multiple_of(60_000) => format!("{} min", value / 60_000),
        Unit::Milliseconds => format!("{} s", value as f64 / 1000.0),
        Unit::Count => {
            let digits = value.to_string();
            let groups: Vec<&str> =
                digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
            groups.join(",")
        }
    }
}

/// Returns the README's table of the limits that matter most.
fn short_presets_table() -> String {
    const ROWS: [(&str, &str); 12] = [
        ("evaluation time of the script", "timeoutMs"),
        ("total duration", "maxDurationMs"),
        ("one tool call", "toolTimeoutMs"),
        ("loop iterations", "maxIterations"),
        ("steps", "maxSteps"),
        ("tool calls", "maxToolCalls"),
        ("concurrent tool calls", "maxConcurrency"),
        ("memory, live", "maxMemoryBytes"),
        ("call depth", "maxCallDepth"),
        ("script", "maxScriptBytes"),
        ("result", "maxResultBytes"),
        ("console", "maxConsoleBytes"),
    ];
    let heads = Preset::ALL.map(|preset| {
        let default = if preset == Preset::default() { " (default)" } else { "" };
        format!(" `{}`{default} |", preset.as_str())
    });
    let mut table = format!("| |{}\n|---|{}", heads.concat(), "---|".repeat(Preset::ALL.len()));
    for (label, name) in ROWS {
        let limit = LIMITS.iter().find(|limit| limit.name == name).expect("a limit");
        let cells = limit.presets.map(|value| match value {
            0 => "none".to_owned(),
            value => format_short(value, limit.unit),
        });
        write!(table, "\n| {label} | {} |", cells.join(" | ")).expect("a string can be written");
    }
    table
}

/// Compares the generated parts of a file, or rewrites them. A part is between lines with the comments `<!-- NAME` and
/// `<!-- /NAME -->`, or `# NAME` and `# /NAME` in Python, `// NAME` and `// /NAME` in TypeScript.
fn check_generated(path: &str, parts: &[(&str, String)]) {
    let text = read(path);
    let mut fresh = text.clone();
    let sign = match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("py") => "#",
        Some("ts") => "//",
        _ => "<!--",
    };
    for (name, part) in parts {
        let begin = fresh.find(&format!("{sign} {name}")).expect("a place for the part");
        let begin = begin + fresh[begin..].find('\n').expect("a line") + 1;
        let end = fresh.find(&format!("{sign} /{name}")).expect("an end of the part");
        let end = fresh[..end].rfind('\n').expect("a line") + 1;
        fresh.replace_range(begin..end, &format!("{part}\n"));
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root().join(path), &fresh).expect("the documentation can be written");
    } else {
        assert!(text == fresh, "{path} is out of date: UPDATE=1 cargo test -p codecall-tests --test docs");
    }
}

/// Returns a text for each limit, from its name and its documentation, on lines of their own.
fn for_each_limit(text: impl Fn(&str, &str) -> String) -> String {
    LIMITS.iter().map(|limit| text(limit.name, limit.doc.trim())).collect::<Vec<_>>().join("\n")
}

/// Returns a name in the case of Python: `max_steps` for `maxSteps`.
fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |text, letter| match letter.is_uppercase() {
        true => format!("{text}_{}", letter.to_lowercase()),
        false => format!("{text}{letter}"),
    })
}

/// Returns the table of limits and the places in which they are tested.
fn tested_table() -> String {
    let mut table =
        "| limit | plainly | after an await | in a callback | in a built-in | under `catch` and `finally` |".to_owned();
    write!(table, "\n|---|{}", ":-:|".repeat(Place::ALL.len())).expect("a string can be written");
    for limit in LIMITS {
        let is_tested = |place| ROWS.iter().any(|row| row.limit == limit.name && row.place == place);
        let cells = Place::ALL.map(|place| if is_tested(place) { "×" } else { "–" }).join(" | ");
        write!(table, "\n| `{}` | {cells} |", limit.name).expect("a string can be written");
    }
    table
}

/// Returns the table of error codes.
fn codes_table() -> String {
    let mut further = Vec::new();
    let rows: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|code| {
            let caught = if code.is_catchable() { "yes" } else { "no" };
            let doc = code.doc();
            let (doc, rest) = divide(&doc);
            further.extend((!rest.is_empty()).then(|| (format!("`{code}`"), rest.to_owned())));
            format!("| `{code}` | `{}` | {caught} | {doc} |", code.status().as_str())
        })
        .collect();
    let head = "| code | status | a script can catch it | what |\n|---|---|---|---|".to_owned();
    let table = std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n");
    if further.is_empty() { table } else { table + "\n" + &rests(&further) }
}

/// Returns the table of error codes of the HTTP endpoints.
fn http_codes_table() -> String {
    let rows = HttpError::documented().map(|(code, status, doc)| format!("| `{code}` | {} | {doc} |", status.as_u16()));
    let head = "| code | status | what |\n|---|---:|---|".to_owned();
    std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
}

#[test]
fn error_codes_are_documented() {
    check_generated("docs/reference/errors.md", &[("codes", codes_table()), ("http", http_codes_table())]);
}

#[test]
fn limits_are_documented() {
    check_generated("docs/reference/limits.md", &[("presets", presets_table()), ("tested", tested_table())]);
    check_generated("README.md", &[("presets", short_presets_table())]);
}

#[test]
fn limits_are_members_of_the_types_of_the_packages() {
    let python = for_each_limit(|name, doc| format!("    #: {doc}\n    {}: int", snake_case(name)));
    check_generated("runtime/python/python/agentscript/_api.py", &[("limits", python)]);
    let typescript = for_each_limit(|name, doc| format!("  /** {doc} */\n  {name}?: number;"));
    check_generated("runtime/node/ts/api.ts", &[("limits", typescript)]);
}

#[test]
fn the_consequence_of_every_limit_is_documented() {
    let text = read("docs/reference/limits.md");
    let (_, over) = text.split_once("## Over the limit").expect("a section");
    let over = over.split("\n## ").next().unwrap_or_default();
    let documented: Vec<&str> = over.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let expected: Vec<&str> = LIMITS.iter().map(|limit| limit.name).chain(["loops", "allowConsole"]).collect();
    assert_eq!(documented, expected);
}

/// Each module begins with a description of itself. Modules of tests are described by their names.
#[test]
fn every_module_has_documentation() {
    let mut folders: Vec<PathBuf> = ["lang", "runtime", "server"].map(|member| root().join(member)).into();
    let mut undocumented = Vec::new();
    let mut documented = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            let is_outside = ["target", "node_modules", ".venv"].iter().any(|name| path.ends_with(name));
            if entry.file_type().expect("a type").is_dir() {
                folders.extend((!is_outside).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && path.file_stem().is_none_or(|stem| stem != "tests")
            {
                let text = std::fs::read_to_string(&path).expect("a source");
                let is_documented = text.lines().take(5).any(|line| line.starts_with("//! "));
                documented += usize::from(is_documented);
                undocumented.extend((!is_documented).then_some(path));
            }
        }
    }
    assert_eq!(undocumented, Vec::<PathBuf>::new());
    assert!(documented > 500, "only {documented} modules");
}

/// Commands of the pages name packages of the workspace.
#[test]
fn commands_name_packages_that_exist() {
    let table: toml::Table = read("Cargo.toml").parse().expect("a manifest");
    let members = table["workspace"]["members"].as_array().expect("a list");
    let name = |member: &toml::Value| {
        let manifest: toml::Table = read(&format!("{}/Cargo.toml", member.as_str()?)).parse().ok()?;
        Some(manifest["package"]["name"].as_str()?.to_owned())
    };
    let packages: BTreeSet<String> = members.iter().filter_map(name).collect();
    let mut named = 0;
    let scripts = [
        ".ci/run".to_owned(),
        ".ci/fuzz".to_owned(),
        ".ci/nightly".to_owned(),
        ".github/workflows/change.yml".to_owned(),
        ".github/workflows/nightly.yml".to_owned(),
        ".github/workflows/release.yml".to_owned(),
    ];
    for page in pages().into_iter().chain(scripts) {
        let text = read(&page);
        for line in text.lines().filter(|line| line.contains("cargo ")) {
            let mut words = line.split([' ', '`']);
            while let Some(word) = words.next() {
                let package = if word == "-p" { words.next() } else { None };
                if let Some(package) = package.map(|package| package.trim_end_matches([',', ';', ')', '.'])) {
                    assert!(packages.contains(package), "{page}: there is no package '{package}': {line}");
                    named += 1;
                }
            }
        }
    }
    assert!(named > 20, "only {named} packages are named");
}

/// README, the page of the packages, what makes them and the release agree on names and platforms.
#[test]
fn packages_have_the_same_names_everywhere() {
    let maker = read("server/packaging/npm.py");
    let (_, platforms) = maker.split_once("PLATFORMS = (").expect("a list");
    let platforms: Vec<&str> = platforms.split(')').next().unwrap_or_default().split('"').skip(1).step_by(2).collect();
    let (workflow, page) = (read(".github/workflows/release.yml"), read("docs/operate/packages.md"));
    // The programs, and the wheel and the addon of the interpreter.
    for what in ["target: ", "image: "] {
        let built: BTreeSet<&str> = workflow
            .split("{ platform: ")
            .skip(1)
            .filter(|row| row.lines().next().is_some_and(|row| row.contains(what)))
            .filter_map(|row| row.split(',').next())
            .collect();
        assert_eq!(platforms.iter().copied().collect::<BTreeSet<_>>(), built, "{what}");
    }
    for platform in &platforms {
        assert!(page.contains(&format!("`@codecall/{platform}`")), "docs/operate/packages.md lacks {platform}");
        assert!(
            page.contains(&format!("`@codecall/agentscript-{platform}`")),
            "docs/operate/packages.md lacks the addon for {platform}"
        );
    }
    let (_, shipped) = workflow.split_once("  FEATURES: ").expect("the features of the program");
    let shipped = shipped.lines().next().unwrap_or_default();
    let manifest: toml::Table = read("server/Cargo.toml").parse().expect("a manifest");
    for feature in manifest["features"].as_table().expect("features").keys() {
        let is_shipped = shipped.split(',').any(|shipped| shipped == feature);
        let row = format!("| `{feature}` | {} | `--features {feature}` |", if is_shipped { "yes" } else { "no" });
        assert!(page.contains(&row), "docs/operate/packages.md lacks {row}");
    }
    assert!(
        page.contains(&format!("`cargo install codecall --features {shipped}`")),
        "docs/operate/packages.md: {shipped}"
    );
    let readme = read("README.md");
    for (command, file, text) in [
        ("uvx codecall ", "server/packaging/wheel.py", "(\"Name\", \"codecall\")"),
        ("npx codecall ", "server/packaging/npm.py", "common(project, \"codecall\""),
        (
            "cargo add codecall-agentscript --rename agentscript",
            "runtime/Cargo.toml",
            "name = \"codecall-agentscript\"\n",
        ),
    ] {
        assert!(
            readme.contains(command) && read(file).contains(text),
            "README says `{command}`, {file} must have {text}"
        );
    }
}

/// The performance page has a row for each script that is measured.
#[test]
fn the_performance_page_names_every_case() {
    let text = read("docs/reports/performance.md");
    for (folder, part) in [("benches/fresh", "fresh"), ("benches/kernels", "kernels")] {
        let (_, rows) = text.split_once(&format!("<!-- {part} -->\n")).expect("a place for the table");
        let (rows, _) = rows.split_once(&format!("<!-- /{part} -->")).expect("an end of the table");
        let documented: BTreeSet<String> = rows
            .lines()
            .skip(2)
            .filter_map(|row| Some(row.strip_prefix("| ")?.split(" |").next()?.to_owned()))
            .collect();
        let entries = std::fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("an entry"));
        let stems = entries.map(|entry| entry.path().file_stem().expect("a name").to_string_lossy().into_owned());
        let existing: BTreeSet<String> = stems.chain(["geometric mean".to_owned()]).collect();
        assert_eq!(
            documented, existing,
            "docs/reports/performance.md: cargo run --release -p codecall-benches -- --markdown"
        );
    }
}

/// The tests that the compatibility page refers to exist: `file#test`, or `file#title` for a case of the corpus.
#[test]
fn the_compatibility_page_names_tests_that_exist() {
    let text = read("docs/reference/compatibility.md");
    let mut named = 0;
    for row in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        // The last table lists what is not supported, without tests.
        let [_, _, proof] = cells.as_slice() else { continue };
        if proof.trim() == "proof" {
            continue;
        }
        let tests: Vec<(&str, &str)> =
            proof.split('`').skip(1).step_by(2).filter_map(|test| test.split_once('#')).collect();
        assert!(!tests.is_empty(), "no test proves: {row}");
        for (file, test) in tests {
            let file_text = read(file);
            let found = if file.ends_with(".txt") {
                file_text.lines().any(|line| line.strip_prefix("=== ") == Some(test))
            } else {
                file_text.contains(&format!("fn {test}("))
            };
            assert!(found, "docs/reference/compatibility.md names {file}#{test}, which does not exist");
            named += 1;
        }
    }
    assert!(named > 50, "only {named} tests are named");
}

/// Returns the paths of all pages.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned(), "SECURITY.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.ends_with(".md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Returns the anchors of the headings of a page, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let Some(heading) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#') && !is_code)
        else {
            continue;
        };
        let letters = heading.to_lowercase();
        let kept = letters.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    anchors
}

/// Links and paths in the pages refer to files and headings that exist.
#[test]
fn links_and_paths_of_the_pages_exist() {
    for page in pages() {
        let text = read(&page);
        let page = page.as_str();
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '\n']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if target.is_empty() { root().join(page) } else { root().join(folder).join(target) };
            assert!(target.exists(), "{page} links to {link}");
            if !anchor.is_empty() && target.extension().is_some_and(|extension| extension == "md") {
                let text = std::fs::read_to_string(&target).expect("a page");
                assert!(anchors(&text).contains(anchor), "{page} links to {link}, which is no heading");
            }
        }
        for path in text.split('`').skip(1).step_by(2) {
            let first = path.split('/').next().unwrap_or_default();
            let ours = ["lang", "runtime", "server", "tests", "benches", "docs", "examples"].contains(&first);
            let path = path.split('#').next().unwrap_or_default();
            let plain = path.contains('/') && !path.contains(['<', '*', '{', ' ', '…']);
            assert!(!(ours && plain) || root().join(path).exists(), "{page} names {path}");
        }
    }
}
