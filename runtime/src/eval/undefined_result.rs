//! Why the result of a script is `undefined`, or was given before all was done, for the warnings of its outcome.
//!
//! It reads the text of the script, and no values.
//!
//! Bounded by texts of ours, and numbers

use crate::eval::vm::Vm;
use agentscript_lang::program::ResultSource;
use agentscript_lang::{Location, Span};

/// How much of a statement is read, in bytes.
const MAX_STATEMENT: usize = 4 << 10;

/// The warning about a result that is `undefined`.
pub fn undefined_result_text(vm: &Vm) -> String {
    let (span, what, fix) = match vm.realm.script.code.result {
        ResultSource::Nothing => {
            return "the result is undefined: the script has no `return` and ends with no expression; write `return value`".into();
        }
        ResultSource::Returns => {
            return "the result is undefined: none of its `return` statements gave a value".into();
        }
        ResultSource::Return(span) => (span, "the value of `return`", ""),
        ResultSource::Last(span) => (span, "the value of the last statement", "; write `return value`"),
        ResultSource::Entry(span) => (span, "the value that the function returns", "; write `return value` in it"),
    };
    let source = vm.realm.script.source();
    let Location { line, column } = Location::of(source, span.start);
    let fix = cause(source, span).unwrap_or(fix);
    brief!("line {line}, column {column}: the result is undefined, as is {what}{fix}")
}

/// The warning about a result that was given while calls were not answered, if `forEach` is the likely cause.
pub fn early_result_text(vm: &Vm) -> Option<String> {
    let source = vm.realm.script.source();
    let Location { line, column } = Location::of(source, source.find(FOR_EACH)? as u32 + 1);
    Some(brief!(
        "line {line}, column {column}: `forEach` awaits no callback, and the result was given before they ended; write `await Promise.all(list.map(async …))`"
    ))
}

/// Calls an async function for each item, and awaits none.
const FOR_EACH: &str = ".forEach(async";

/// A cause that the text of a statement shows.
fn cause(source: &str, span: Span) -> Option<&'static str> {
    let text = span.text(source);
    let end = (0..=text.len().min(MAX_STATEMENT)).rfind(|&end| text.is_char_boundary(end))?;
    let text = &text[..end];
    if text.contains(".forEach(") {
        return Some("; `forEach` gives undefined, `map` gives the values");
    }
    let (_, body) = text.split_once("=>")?;
    let has_block = body.trim_start().starts_with('{');
    (has_block && !body.contains("return")).then_some("; a callback in braces needs its own `return`")
}
