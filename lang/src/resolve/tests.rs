//! Tests of the resolver, through real source text.

use super::dump::dump;
use crate::{Failure, Loops, Options, PlainCall, Refusal, compile};

const BUILT_INS: &[&str] =
    &["Array", "Boolean", "Date", "JSON", "Map", "Math", "Number", "Object", "Promise", "String", "Symbol", "console"];

fn plain(call: PlainCall<'_>) -> bool {
    match call {
        PlainCall::Global(name) => name == "Number",
        PlainCall::Static(object, _) => matches!(object, "Math" | "String" | "Object"),
        PlainCall::Method(name) => matches!(name, "slice" | "push" | "toFixed"),
        PlainCall::New(name) => name == "Map",
    }
}

fn options<'a>() -> Options<'a> {
    Options {
        language: None,
        loops: Loops::All,
        max_bytes: 1 << 20,
        disabled: &[],
        globals: &|name| BUILT_INS.contains(&name),
        plain_call: &plain,
    }
}

fn dumped(source: &str) -> String {
    match compile(source, &options()) {
        Ok(program) => dump(&program),
        Err(failure) => format!("{failure:?}"),
    }
}

/// What is wrong with a script: each message with the text it is about.
fn wrong(source: &str, options: &Options<'_>) -> String {
    match compile(source, options) {
        Ok(_) => "nothing".to_owned(),
        Err(Failure { diagnostics }) => diagnostics
            .iter()
            .map(|diagnostic| format!("{} <{}>", diagnostic.message, diagnostic.span.text(source)))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

#[track_caller]
fn gives(source: &str, expected: &str) {
    assert_eq!(dumped(source), expected, "\n{source}");
}

#[track_caller]
fn refuses(source: &str, expected: &str) {
    assert_eq!(wrong(source, &options()), expected, "\n{source}");
}
