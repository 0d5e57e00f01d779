//! Compares the outcome of a run with the expectation of a case.

use crate::corpus::{Case, Expected};
use agentscript::Outcome;
use serde_json::Value;

/// Returns how the outcome of a case differs from its expectation; `None` if it does not.
#[must_use]
pub fn problem(case: &Case, outcome: &Outcome) -> Option<String> {
    let json = outcome.to_json();
    if !ends_as(&case.expected, outcome, &json) {
        return Some(format!("expected {:?}\n     got {json}", case.expected));
    }
    let logs: Vec<String> = outcome.logs.iter().map(|line| escaped(line)).collect();
    (logs != case.logs).then(|| format!("logged {}\n expected {}", logs.join("\n  "), case.logs.join("\n  ")))
}

/// Returns a text as a JSON string.
///
/// # Panics
/// Never: every text is JSON.
#[must_use]
pub fn escaped(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

fn ends_as(expected: &Expected, outcome: &Outcome, json: &str) -> bool {
    let seen: Value = serde_json::from_str(json).unwrap_or(Value::Null);
    let error = &seen["error"];
    match expected {
        Expected::Nothing => false,
        Expected::Result(expected) => outcome.result.as_ref().ok() == Some(expected),
        Expected::Error(expected) => {
            let message = error["message"].as_str().unwrap_or_default();
            let text = error["name"].as_str().map(|name| format!("{name}: {message}"));
            let uncaught = format!("Uncaught {message}").replace("Uncaught Uncaught", "Uncaught");
            // Node shows a thrown string in quotes, with escapes.
            let quoted = expected.strip_prefix("Uncaught ").and_then(|text| {
                ['\'', '"', '`'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
            });
            let fits = text.is_some_and(|text| text.trim_end() == expected)
                || uncaught == *expected
                || quoted.is_some_and(|text| text == message || text.contains('\\'));
            fits && error["code"] == "EXECUTION_ERROR"
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
            status.trim() == first && fields.iter().all(holds)
        }
    }
}
