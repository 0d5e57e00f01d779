//! Runs the corpus through a package for another language, and compares each outcome with that of the interpreter itself:
//!
//! ```sh
//! cargo run -p codecall-tests --bin package-corpus -- python runtime/python/tests/corpus.py
//! ```
//!
//! The command reads a line of JSON for each case, and answers each with a line: the outcome, in the format of `codecall_execute`.

#![forbid(unsafe_code)]

use codecall_tests::corpus::{Case, Expected, load};
use codecall_tests::host;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// Most differences that are printed in full.
const MAX_SHOWN: usize = 20;
/// Native stack of the thread that runs the cases, in bytes, as the tests of the corpus have it.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    let run = || compare().map_err(|error| error.to_string());
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run);
    let outcome = thread.map(std::thread::JoinHandle::join);
    match outcome {
        Ok(Ok(Ok(0))) => ExitCode::SUCCESS,
        Ok(Ok(Ok(_))) => ExitCode::FAILURE,
        Ok(Ok(Err(error))) => {
            print(&format!("error: {error}"));
            ExitCode::FAILURE
        }
        Ok(Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}

/// Compares all cases. Returns how many differ.
fn compare() -> Result<usize, Box<dyn Error>> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let (program, arguments) = command.split_first().ok_or("name the command that runs the cases")?;
    let filter = std::env::var("CASE").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cases = load(&root.join("corpus"));
    cases.retain(|case| format!("{}: {}", case.file.display(), case.name).contains(&filter));
    cases.iter_mut().for_each(give_time);
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("the command has no input")?;
    let output = BufReader::new(child.stdout.take().ok_or("the command has no output")?);
    let lines: Vec<String> = cases.iter().map(line).collect::<Result<_, _>>()?;
    let writer = std::thread::spawn(move || lines.iter().try_for_each(|line| writeln!(input, "{line}")));
    let (mut answered, mut problems) = (0, 0);
    for (case, answer) in cases.iter().zip(output.lines()) {
        answered += 1;
        let (native, answer) = (parsed(&host::run(case, |_| ()).to_json())?, parsed(&answer?)?);
        let (native, answer) = (comparable(native), comparable(answer));
        if native != answer {
            problems += 1;
            if problems <= MAX_SHOWN {
                let file = case.file.strip_prefix(root).unwrap_or(&case.file).display();
                print(&format!("{file}: {}\n  native {native}\n package {answer}", case.name));
            }
        }
    }
    let status = child.wait()?;
    let written = writer.join().map_err(|_| "the writer failed")?;
    if answered < cases.len() || !status.success() {
        return Err(
            format!("the command ended after {answered} of {} cases: {status}, {written:?}", cases.len()).into()
        );
    }
    print(&format!("{} cases, {problems} problems", cases.len()));
    Ok(problems)
}

/// Only cases that test the limit of time have a short one, so that a busy machine causes no difference.
fn give_time(case: &mut Case) {
    if matches!(&case.expected, Expected::Status(status, _) if status.starts_with("timeout")) {
        return;
    }
    if let Value::Object(limits) = case.limits.get_or_insert_with(|| json!({})) {
        limits.entry("timeoutMs").or_insert_with(|| 300_000.into());
    }
}

/// A case as the command gets it.
fn line(case: &Case) -> Result<String, Box<dyn Error>> {
    let fixture = match &case.tools {
        Some(file) => serde_json::from_str(&std::fs::read_to_string(file)?)?,
        None => json!({"tools": []}),
    };
    let context: Option<Value> = case.context.as_deref().map(serde_json::from_str).transpose()?;
    let line = json!({
        "name": case.name,
        "script": case.script,
        "preset": case.preset.as_deref().unwrap_or("experimental"),
        "limits": case.limits.as_ref().unwrap_or(&json!({})),
        "language": case.language,
        "dialect": case.dialect.as_deref().unwrap_or("async"),
        "context": context,
        "tools": fixture["tools"],
        "allowed": case.allowed,
    });
    Ok(line.to_string())
}

/// A JSON text, in which lone surrogates, which have no UTF-8, may stand as the text of their escapes.
fn parsed(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&text.replace("\\ud", "\\\\ud")))
}

/// An outcome without what differs from run to run, and what only packages have.
fn comparable(mut outcome: Value) -> Value {
    if let Some(members) = outcome.as_object_mut() {
        members.remove("stats");
        members.remove("unanswered");
        members.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
        let is_late = members.get("status").is_some_and(|status| status == "timeout");
        if let Some(error) = members.get_mut("error").and_then(Value::as_object_mut) {
            error.remove("calls");
            error.remove("omittedCalls");
            // How far a script comes in its time differs too.
            if is_late {
                error.remove("location");
            }
            // The fixture of the tests suggests no tools.
            if let Some(Value::String(hint)) = error.get_mut("hint")
                && let Some(at) = hint.find(". Did you mean '")
            {
                hint.truncate(at);
            }
        }
    }
    plain(outcome)
}

/// Returns a value in which a number is what JavaScript makes of it, and the order of keys does not matter.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Number(number), Value::from),
        Value::Array(values) => values.into_iter().map(plain).collect(),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| (key, plain(value))).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

fn print(text: &str) {
    // Whoever reads it may have stopped.
    let _ = writeln!(std::io::stdout(), "{text}");
}
