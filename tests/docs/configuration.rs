//! Checks docs/reference/configuration.md: the tables of keys and the JSON schema are generated from the structs of the configuration.

use super::{check_generated, divide, read, rests, root};
use agentscript::Limit;
use codecall::Config;
use codecall::config::reference::Key;
use codecall::config::{Format, schema};

const PAGE: &str = "docs/reference/configuration.md";
const SCHEMA: &str = "docs/codecall.schema.json";
const PART: &str = "keys of ";
const TOP_LEVEL: &str = "the top level";

/// Returns the sections that have a table on the page.
fn sections(page: &str) -> Vec<&str> {
    let marks = page.lines().filter_map(|line| line.strip_prefix("<!-- ")?.strip_prefix(PART)?.split_once(": "));
    marks.map(|(section, _)| section).collect()
}

/// Returns the keys of a section that are rows of its table.
fn rows(section: &str, sections: &[&str]) -> Vec<Key> {
    let key = if section == TOP_LEVEL { Key::root() } else { Key::find(section).expect(section) };
    let mut rows = key.rows(&|path| sections.contains(&path));
    // The limits have a page of their own.
    rows.retain(|row| row.path().strip_prefix("vm.").is_none_or(|name| Limit::named(name).is_none()));
    rows
}

fn table(section: &str, sections: &[&str]) -> String {
    let mut further = Vec::new();
    let rows = rows(section, sections).into_iter().map(|row| {
        let name =
            row.path().strip_prefix(section).unwrap_or(row.path()).trim_start_matches("[]").trim_start_matches('.');
        let apart = row.entry().unwrap_or_else(|| row.clone());
        let name = match sections.contains(&apart.path()) {
            true => format!("[`{name}`](#{})", apart.path().replace('.', "").to_lowercase()),
            false => format!("`{name}`"),
        };
        let text = row.text();
        let (text, rest) = divide(&text);
        further.extend((!rest.is_empty()).then(|| (name.clone(), rest.to_owned())));
        // The other names of a key stay beside it.
        let mut text = text.to_owned();
        let aliases: Vec<String> = row.aliases().map(|alias| format!("`{alias}`")).collect();
        if !aliases.is_empty() {
            text += &format!(" Other names: {}.", aliases.join(", "));
        }
        format!("| {name} | {} | {} | {} |", row.kind(), row.default(), text.replace('|', "\\|"))
    });
    let head = "| key | type | default | what |\n|---|---|---|---|".to_owned();
    let table = std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n");
    if further.is_empty() { table } else { table + "\n" + &rests(&further) }
}

#[test]
fn keys_are_documented() {
    let page = read(PAGE);
    let sections = sections(&page);
    let parts: Vec<(String, String)> =
        sections.iter().map(|section| (format!("{PART}{section}"), table(section, &sections))).collect();
    let parts: Vec<(&str, String)> = parts.iter().map(|(name, part)| (name.as_str(), part.clone())).collect();
    check_generated(PAGE, &parts);
}

/// Each key is in exactly one table.
#[test]
fn every_key_is_in_one_table() {
    let page = read(PAGE);
    let sections = sections(&page);
    let mut listed: Vec<String> =
        sections.iter().flat_map(|section| rows(section, &sections)).map(|row| row.path().to_owned()).collect();
    let mut all: Vec<String> = Key::root().rows(&|_| false).iter().map(|row| row.path().to_owned()).collect();
    all.retain(|path| path.strip_prefix("vm.").is_none_or(|name| Limit::named(name).is_none()));
    listed.sort();
    all.sort();
    assert_eq!(listed, all);
}

#[test]
fn the_schema_is_up_to_date() {
    let fresh = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(root().join(SCHEMA), &fresh).expect("the schema can be written");
    } else {
        assert!(read(SCHEMA) == fresh, "{SCHEMA} is out of date: UPDATE=1 cargo test -p codecall-tests --test docs");
    }
}

/// The TOML examples of all pages, and the JSON examples of the configuration page, are valid and fit the schema.
#[test]
fn examples_are_valid() {
    let schema = jsonschema::draft7::new(&schema()).expect("a schema");
    let mut examples = 0;
    for page in [
        "README.md",
        PAGE,
        "docs/reference/limits.md",
        "docs/guide/moving/frontmcp.md",
        "docs/guide/moving/mcpproxy.md",
        "docs/guide/openapi.md",
        "docs/reports/search.md",
        "docs/reference/stateless.md",
        "docs/reports/trust.md",
    ] {
        let text = read(page);
        for block in text.split("\n```").skip(1).step_by(2) {
            let Some((language, example)) = block.split_once('\n') else { continue };
            let value: serde_json::Value = match language {
                "toml" => toml::from_str(example).unwrap_or_else(|error| panic!("{page}: {error}")),
                "json" if page == PAGE => {
                    serde_json::from_str(example).unwrap_or_else(|error| panic!("{page}: {error}"))
                }
                _ => continue,
            };
            let given = |_: &str| Some("a value of the environment".to_owned());
            let read = Config::parse(&value.to_string(), Format::Json, &given);
            read.unwrap_or_else(|problem| panic!("{page}: {problem}\n{example}"));
            schema.validate(&value).unwrap_or_else(|problem| panic!("{page}: {problem}\n{example}"));
            examples += 1;
        }
    }
    assert!(examples > 3, "{examples} examples");
}
