//! Checks docs/reference/language.md: its tables are generated from the code, and its samples compile.

use super::{check_generated, read};
use agentscript::{BuiltIn, CompileOptions, Dialect, Policy, Preset, builtins, compile};
use agentscript_lang::refused::{self, Refused};
use codecall_tests::corpus::load;
use std::path::Path;

const PAGE: &str = "docs/reference/language.md";

/// Formats text as code in a table.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|name| code(name)).collect::<Vec<_>>().join(" ")
}

fn builtin_table() -> String {
    let kind = |builtin: &BuiltIn| match (builtin.is_function, builtin.is_constructor) {
        (true, true) => "function, constructor",
        (true, false) => "function",
        (false, true) => "constructor",
        (false, false) => "namespace",
    };
    let (functions, types): (Vec<BuiltIn>, Vec<BuiltIn>) =
        builtins().into_iter().partition(|builtin| builtin.statics.is_empty() && builtin.methods.is_empty());
    let (constructors, functions): (Vec<BuiltIn>, Vec<BuiltIn>) =
        functions.into_iter().partition(|builtin| builtin.is_constructor);
    let mut rows: Vec<String> = types
        .iter()
        .chain(&constructors)
        .map(|builtin| {
            let (statics, methods) = (list(&builtin.statics), list(&builtin.methods));
            format!("| {} | {} | {statics} | {methods} |", code(builtin.name), kind(builtin))
        })
        .collect();
    rows.sort();
    let functions: Vec<&str> = functions.iter().map(|builtin| builtin.name).collect();
    format!(
        "| name | | static | on values |\n|---|---|---|---|\n{}\n\nFunctions: {}.",
        rows.join("\n"),
        list(&functions)
    )
}

fn refused_table() -> String {
    let mut hints: Vec<(String, Vec<&str>)> = Vec::new();
    let tables: [&[Refused]; 5] =
        [refused::SYNTAX, refused::GLOBALS, refused::PROPERTIES, refused::STATIC_PROPERTIES, refused::MEMBERS];
    for row in tables.into_iter().flatten() {
        let alternative = Dialect::Async.alternative(row.name).map(|alternative| format!("; {alternative}"));
        let hint = format!("{}{}", row.hint, alternative.unwrap_or_default());
        match hints.iter_mut().find(|(known, _)| *known == hint) {
            Some((_, names)) => names.push(row.name),
            None => hints.push((hint, vec![row.name])),
        }
    }
    let rows = hints.into_iter().map(|(hint, names)| format!("| {} | {} |", list(&names), hint.replace('|', "\\|")));
    format!("| refused | instead |\n|---|---|\n{}", rows.collect::<Vec<_>>().join("\n"))
}

fn differences() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut rows: Vec<String> = load(&root)
        .iter()
        .filter_map(|case| {
            let why = case.differs.as_deref()?;
            let file = case.file.strip_prefix(&root).unwrap_or(&case.file).display().to_string();
            let cell = |text: &str| text.replace('|', "\\|");
            Some(format!("| {} | {} | `tests/corpus/{file}` |", cell(&case.name), cell(why)))
        })
        .collect();
    rows.sort();
    format!("| what | why | case in |\n|---|---|---|\n{}", rows.join("\n"))
}

fn short() -> String {
    read("server/hub/src/meta/execute.md").lines().map(|line| format!("> {line}  ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_language_page_is_up_to_date() {
    let parts = [
        ("short", short()),
        ("builtins", builtin_table()),
        ("refused", refused_table()),
        ("differences", differences()),
    ];
    check_generated(PAGE, &parts);
}

/// Each sample of the table of syntax compiles.
#[test]
fn samples_of_syntax_compile() {
    let page = read(PAGE);
    let (_, section) = page.split_once("## Syntax").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("an end");
    let samples: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).map(|row| row.1).collect();
    assert!(samples.len() > 30, "{} samples", samples.len());
    for sample in samples.iter().skip(1) {
        let source = sample.trim_end_matches(" |").trim_matches('`').replace("\\|", "|");
        let options = CompileOptions::for_policy(&Policy::preset(Preset::Balanced));
        if let Err(error) = compile(&source, &options) {
            panic!("{source}\n{:?}", error.diagnostics);
        }
    }
}
