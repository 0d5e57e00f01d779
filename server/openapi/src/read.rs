//! Parses a document: JSON, or YAML with limits on what it expands to.

use crate::limits::{MAX_BYTES, MAX_DEPTH, MAX_YAML_BYTES, MAX_YAML_VALUES};
use serde_json::Value;

/// Native stack of the thread that reads YAML, in bytes.
const STACK_BYTES: usize = 32 << 20;

/// Parses a document. A text that begins with `{` is JSON, any other is YAML.
///
/// # Errors
/// The text is too long, or neither of both; the message has the position, and nothing of the text.
pub fn parse(text: &[u8]) -> Result<Value, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes, which is the limit"));
    }
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}');
    let value = if text.trim_start().starts_with(['{', '[']) { json(text) } else { yaml(text) }?;
    if value.is_object() { Ok(value) } else { Err("it is not an object".into()) }
}

/// Parses JSON. Some YAML begins with a brace too.
fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).or_else(|error| {
        let problem = format!("it is not valid JSON at line {}, column {}", error.line(), error.column());
        if error.to_string().starts_with("recursion limit") {
            return Err(format!("it is nested too deep at line {}", error.line()));
        }
        yaml(text).map_err(|_| problem)
    })
}

fn yaml(text: &str) -> Result<Value, String> {
    if text.len() > MAX_YAML_BYTES {
        return Err(format!("it has more than {MAX_YAML_BYTES} bytes, which is the limit for YAML"));
    }
    with_stack(|| read_yaml(text))?
}

fn read_yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 2 * MAX_YAML_VALUES,
            max_nodes: MAX_YAML_VALUES,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_YAML_VALUES,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| match error.location() {
        Some(at) => format!("it is not valid YAML, or too large, at line {}, column {}", at.line(), at.column()),
        None => "it is not valid YAML, or expands to too much".to_owned(),
    })
}

/// Runs work that recurses to [`MAX_DEPTH`] on a thread with a stack that is large enough.
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("yaml".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).map_err(|_| "there is no thread to read it")?;
        thread.join().map_err(|_| "it cannot be read as YAML".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_and_yaml_are_the_same() {
        let value = json!({"openapi": "3.0.0", "responses": {"200": {"a": [1, 2.5, true, null, "no", "2020-01-01"]}}});
        let text = "openapi: 3.0.0\nresponses:\n  200:\n    a: [1, 2.5, true, null, no, 2020-01-01]\n";
        assert_eq!(parse(text.as_bytes()), Ok(value.clone()));
        assert_eq!(parse(value.to_string().as_bytes()), Ok(value));
        let shared = "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n";
        assert_eq!(parse(shared.as_bytes()), Ok(json!({"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}})));
        assert_eq!(parse(b"{a: 1}"), Ok(json!({"a": 1})));
    }

    #[test]
    fn hostile_texts_are_refused() {
        let bomb: String = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
            let before = n - 1;
            text + &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{before}"); 10].join(", "))
        });
        let deep_yaml = (0..5_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>();
        let cases = [
            bomb,
            deep_yaml,
            format!("a: {}", "[".repeat(100_000)),
            format!("{{\"a\": {}", "[".repeat(100_000)),
            "- 1\n- 2\n".into(),
            "a: b: c".into(),
            "{\"a\": ".into(),
            String::new(),
        ];
        for case in cases {
            let error = parse(case.as_bytes()).expect_err(&case[..case.len().min(80)]);
            assert!(error.len() < 120, "{error}");
        }
    }
}
