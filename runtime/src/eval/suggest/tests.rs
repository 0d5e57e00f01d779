use super::Notation;
use crate::interface::dialect::Dialect;
use crate::interface::host::Inputs;
use crate::interface::limits::{Policy, Preset};
use crate::interface::outcome::{Failure, Outcome};
use crate::test_host::Users;
use crate::{CompileOptions, Linker, Progress, compile};
use agentscript_lang::{Language, refused};
use std::collections::BTreeSet;
use std::sync::Arc;

const USERS: Users = Users {
    tools: &["list"],
    describes: Some(r#"{"name":"users:list","inputSchema":{"required":["id","name"],"properties":{"limit":{}}}}"#),
};

fn run(script: &str, dialect: Dialect, language: Language) -> Result<String, Box<Failure>> {
    let policy = Policy::preset(Preset::Balanced);
    let linker = Linker::new(dialect);
    let options = CompileOptions { language: Some(language), linker, ..CompileOptions::for_policy(&policy) };
    let script = match compile(script, &options) {
        Ok(script) => script,
        Err(error) => return Err(error.failure),
    };
    let inputs = Inputs { tools: Arc::new(USERS), ..Inputs::default() };
    match script.start(inputs, &policy).resume([]) {
        Progress::Done(outcome) => {
            let Outcome { result, .. } = *outcome;
            result
        }
        Progress::Calls(_) | Progress::Yielded => Ok(String::new()),
    }
}

/// Every name that the tables have a row for: the texts in them that are identifiers.
fn names() -> BTreeSet<&'static str> {
    let is_name = |text: &&str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|first| first.is_alphabetic() || "_$".contains(first))
            && chars.all(|c| c.is_alphanumeric() || "_$".contains(c))
    };
    let of_table = include_str!("table.rs").split('"').skip(1).step_by(2).filter(is_name);
    let refused = [refused::GLOBALS, refused::PROPERTIES].into_iter().flatten().map(|row| row.name);
    of_table.chain(refused).collect()
}

/// What scripts of the other dialect find and those of this one do not.
fn absent(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Async => &["call_tool", "`input`", "`input."],
        Dialect::Sync => &["callTool", "codecallContext", "parallel(", "getTool", "mcpLog", "mcpNotify", "users.list"],
    }
}

/// Names that only the other dialect has are suggested by spelling too: `calltool`, `codecalContext`.
const MISSPELT: &[&str] = &["calltool", "call_tol", "codecalContext", "inputt", "paralel", "gettool", "mcplog"];

#[test]
fn hints_name_what_the_dialect_has() {
    let mut wrong = Vec::new();
    let names: Vec<&str> = names().into_iter().chain(MISSPELT.iter().copied()).collect();
    assert!(names.len() > 200, "{}", names.len());
    for &dialect in Dialect::ALL {
        for language in [Language::JavaScript, Language::TypeScript] {
            for name in &names {
                let uses = [
                    format!("return {name}"),
                    format!("return {name}.x"),
                    format!("return {name}(1)"),
                    format!("return new {name}(1)"),
                    format!("return [1].{name}()"),
                    format!("return 'a'.{name}()"),
                    format!("return ({{}}).{name}()"),
                    format!("return Promise.{name}([])"),
                    format!("return Object.{name}({{}})"),
                    format!("return users.{name}({{}})"),
                ];
                for script in uses {
                    let Err(failure) = run(&script, dialect, language) else { continue };
                    let hint = failure.hint.clone().unwrap_or_default();
                    let issues: String = failure
                        .issues
                        .iter()
                        .map(|issue| issue.diagnostic.hint.clone().unwrap_or_default().into_owned())
                        .collect();
                    // The script's own text is quoted: it may name anything.
                    let message = failure.message.replace(name, "");
                    let hint = format!("{hint} {issues}").replace(name, "");
                    if absent(dialect).iter().any(|other| hint.contains(other) || message.contains(other)) {
                        wrong.push(format!("{dialect:?} {language:?} `{script}`: {message}; {hint}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_tool_that_an_app_does_not_have_is_undefined() {
    let run = |script| run(script, Dialect::Async, Language::JavaScript);
    let types = "return [typeof users.nope, typeof users.list, typeof users, users.nope?.({}) ?? null]";
    assert_eq!(run(types).ok().as_deref(), Some(r#"["undefined","function","object",null]"#));
    let failure = run("return users.nope({})").expect_err("it is undefined");
    assert_eq!(failure.message, "users.nope is not a function");
    assert_eq!(failure.hint.as_deref(), Some("there is no tool 'users:nope'. Did you mean 'users:list'?"));
}

#[test]
fn what_the_policy_switches_off_is_not_recommended() {
    let hint_under = |source: &str, policy: &Policy| {
        let script = compile(source, &CompileOptions::for_policy(policy)).expect("it compiles");
        let Progress::Done(outcome) = script.start(Inputs::default(), policy).resume([]) else { panic!("it waits") };
        outcome.result.expect_err("it fails").hint
    };
    let all = Policy::default();
    let few = Policy { timers: false, disabled_globals: vec!["structuredClone".into()], ..Policy::default() };
    assert_eq!(hint_under("sleeep(5)", &all).as_deref(), Some("did you mean `sleep`?"));
    assert_eq!(hint_under("sleeep(5)", &few), None);
    assert_eq!(hint_under("structuredClon({})", &all).as_deref(), Some("did you mean `structuredClone`?"));
    assert_eq!(hint_under("structuredClon({})", &few), None);
}

#[test]
fn mistakes_with_tools_and_their_results_have_hints() {
    for (script, hint) in [
        ("const users = []; return users.list({})", "`users` is a variable of this script"),
        ("return users_list({})", "write `users.list(…)`"),
        ("return mcp__users__list({})", "write `users.list(…)`"),
        ("return JSON.parse({ a: 1 })", "the value is data already"),
        ("return JSON.parse([{ a: 1 }, { a: 2 }])", "the value is data already"),
        ("const r = { a: 1 }; return r.content[0].text", "without `.content`"),
        ("const r = { a: 1 }; return r.structuredContent.items", "without `.structuredContent`"),
        ("const r = '{\"a\": [1]}'; return r.map((x) => x)", "read it with `JSON.parse(text)`"),
        ("const r = \"[{'a': None}]\"; return r.map((x) => x)", "Python's notation"),
        ("const r = JSON.stringify(JSON.stringify({ a: 1 })); return r.map((x) => x)", "JSON within JSON"),
        ("const n = 1; n = 2; return n", "declare the variable with `let`"),
        ("return await callTool(users.list, {})", "write `await callTool('app:tool', input)`"),
        ("return await callTool('users', 'list', {})", "app and tool are one name: `callTool('users:…', input)`"),
        ("return await users.list(1)", "name the arguments: `callTool('users:list', { id: …, name: … })`"),
        ("return await codecall_search({ query: 'users' })", "search for tools before the script"),
        ("return await codecall.search({ query: 'users' })", "search for tools before the script"),
    ] {
        let failure = run(script, Dialect::Async, Language::JavaScript).expect_err(script);
        let given = failure.hint.clone().unwrap_or_default();
        assert!(given.contains(hint), "{script}: {given}");
    }
    for script in ["const r = {}; return r.x[0]", "return JSON.parse('{')", "return 'plain'.nope()"] {
        let failure = run(script, Dialect::Async, Language::JavaScript).expect_err(script);
        assert!(!failure.hint.as_deref().unwrap_or_default().contains("data"), "{script}: {:?}", failure.hint);
    }
}

/// The line that a hint recommends reads the text.
#[test]
fn the_line_for_pythons_notation_reads_it() {
    let hint = Notation::Python.hint();
    let (_, line) = hint.split_once('`').expect("a line");
    let script = format!("const text = \"[{{'a': None, 'b': [True, False]}}]\"; return {}", line.trim_end_matches('`'));
    let result = run(&script, Dialect::Async, Language::JavaScript).map_err(|failure| failure.message.clone());
    assert_eq!(result.as_deref(), Ok(r#"[{"a":null,"b":[true,false]}]"#));
}
