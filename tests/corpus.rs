//! Every case of the corpus gives what its file says.

use codecall_tests::corpus::{Case, Expected, load};
use codecall_tests::host::run;
use serde_json::Value;
use std::path::Path;

fn escaped(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

/// What is wrong with the outcome of a case, if anything is.
fn problem(case: &Case, outcome: &agentscript::Outcome) -> Option<String> {
    let json = outcome.to_json();
    let logs: Vec<String> = outcome.logs.iter().map(|line| escaped(line)).collect();
    let seen: Value = match serde_json::from_str(&json) {
        Ok(value) => value,
        Err(_) => Value::Null,
    };
    let error = &seen["error"];
    let ends = match &case.expected {
        Expected::Nothing => return Some("the file expects nothing".into()),
        Expected::Result(expected) => (outcome.result.as_ref().ok() == Some(expected)).then_some(()),
        Expected::Error(expected) => {
            let text = match (error["name"].as_str(), error["message"].as_str()) {
                (Some(name), Some("")) => format!("{name}:"),
                (Some(name), Some(message)) => format!("{name}: {message}"),
                _ => String::new(),
            };
            let uncaught = format!("Uncaught {}", error["message"].as_str().unwrap_or_default());
            let fits = text == *expected
                || uncaught.replace("Uncaught Uncaught", "Uncaught") == *expected
                || expected.starts_with("Uncaught '")
                    && *expected == format!("Uncaught '{}'", error["message"].as_str().unwrap_or_default());
            (fits && error["code"] == "EXECUTION_ERROR").then_some(())
        }
        Expected::Status(first, fields) => {
            let status = format!("{} {}", seen["status"].as_str().unwrap_or(""), error["code"].as_str().unwrap_or(""));
            let holds = |(field, text): &(String, String)| {
                let found = match &error[field.as_str()] {
                    Value::String(found) => found.clone(),
                    found => found.to_string(),
                };
                found.contains(text.as_str())
            };
            (status.trim() == first && fields.iter().all(holds)).then_some(())
        }
    };
    if ends.is_none() {
        return Some(format!("expected {:?}\n     got {json}", case.expected));
    }
    (logs != case.logs).then(|| format!("logged {}\n expected {}", logs.join("\n  "), case.logs.join("\n  ")))
}

/// Run all cases but those of some folders, each with a run that is prepared.
fn check(prepare: fn(&mut agentscript::Run), without: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let filter = std::env::var("CASE").unwrap_or_default();
    let cases = load(&root);
    assert!(cases.len() > 1000, "the corpus has {} cases", cases.len());
    let mut failed = Vec::new();
    for case in &cases {
        let name = format!("{}: {}", case.file.strip_prefix(&root).unwrap_or(&case.file).display(), case.name);
        if !name.contains(&filter) || without.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        // A case that cannot run takes none of the others with it.
        let outcome = std::panic::catch_unwind(|| run(case, prepare));
        let problem = match outcome {
            Ok(outcome) => problem(case, &outcome),
            Err(_) => Some("panicked".into()),
        };
        if let Some(problem) = problem {
            failed.push(format!("{name}\n     {problem}"));
        }
    }
    assert!(failed.is_empty(), "{} of {} cases fail:\n\n{}", failed.len(), cases.len(), failed.join("\n\n"));
}

#[test]
fn corpus() {
    check(agentscript::Run::hide_frames, &[]);
}

/// Pauses at every step change nothing.
#[test]
fn corpus_with_pauses() {
    check(
        |run| {
            run.hide_frames();
            run.stress(1, false);
        },
        &["limits/"],
    );
}

/// Collections of garbage at every step change nothing. Each marks all frames: with ten thousand of them that
/// takes longer than a run may.
#[test]
fn corpus_with_collections() {
    check(
        |run| {
            run.hide_frames();
            run.stress(1, true);
        },
        &["limits/", "functions/functions.txt: endless recursion"],
    );
}
