//! Any text is parsed or refused, and what is parsed is printed as it was meant.

#![no_main]

use agentscript_lang::{Language, Loops, Options, ast, compile, parse};
use codecall_tests::print::print;
use libfuzzer_sys::fuzz_target;

/// The tree as text, without places.
fn tree(script: &ast::Script<'_>) -> String {
    let text = format!("{script:?}");
    let mut parts = text.split("Span {");
    let mut out = parts.next().unwrap_or("").to_owned();
    out.extend(parts.filter_map(|part| part.split_once('}')).map(|(_, rest)| rest));
    out
}

fn parse_in(source: &str, language: Language) {
    let arena = ast::Arena::new();
    let script = match parse::parse(&arena, source, language) {
        Ok(script) => script,
        Err(error) => {
            let _ = error.render("script", source).to_string();
            return;
        }
    };
    let printed = print(&script);
    match parse::parse(&arena, &printed, Language::JavaScript) {
        Ok(again) => {
            assert_eq!(tree(&script), tree(&again), "printed as {printed}");
            assert_eq!(printed, print(&again));
        }
        // Parentheses are a level of the tree: what is near to the limit may go over it.
        Err(error) => assert!(error.message.contains("too deeply"), "{}\nof {printed}", error.message),
    }
}

fuzz_target!(|data: &[u8]| {
    let source = String::from_utf8_lossy(data);
    for language in [Language::JavaScript, Language::TypeScript] {
        parse_in(&source, language);
        let options = Options {
            language: Some(language),
            loops: Loops::All,
            max_bytes: 1 << 20,
            disabled: &[],
            missing: &[],
            fence_tags: &[],
            calls_result: source.len() % 3 == 0,
            apps: &|name| name == "fetch",
            provided: &|_| false,
            own_tool: &|_, _| None,
            alternative: &|_| None,
            globals: &|name| matches!(name, "Math" | "JSON" | "Object" | "console"),
            plain_call: &|_, _| source.len() % 2 == 0,
        };
        if let Err(failure) = compile(&ast::Arena::new(), &source, &options) {
            assert!(!failure.diagnostics.is_empty());
            for diagnostic in failure.diagnostics {
                let _ = diagnostic.render("script", &source).to_string();
            }
        }
    }
});
