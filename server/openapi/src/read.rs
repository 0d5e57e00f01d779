//! Parses a document: JSON, or YAML with limits on what it expands to.

use crate::limits::{MAX_BYTES, MAX_YAML_BYTES};
use crate::{charset, yaml};
use serde_json::Value;

/// A document that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// Its value, which is an object.
    pub value: Value,
    /// The parts of it that are left out or mended.
    pub problems: Vec<String>,
}

/// Parses a document; `media_type` is its `Content-Type`, if it has one. A text that begins with `{` is JSON, any other is
/// YAML.
///
/// # Errors
/// The text is too long, or neither of both; the message has the position, and nothing of the text.
pub fn parse(text: &[u8], media_type: &str) -> Result<Parsed, String> {
    let is_too_long = || format!("it has more than {MAX_BYTES} bytes, which is the limit");
    if text.len() > MAX_BYTES {
        return Err(is_too_long());
    }
    let is_utf8 = std::str::from_utf8(text).is_ok();
    let text = charset::document(text, media_type).ok_or("its charset is unknown, and it is not UTF-8")?;
    if text.len() > MAX_BYTES {
        return Err(is_too_long());
    }
    let text = text.trim_start_matches('\u{feff}');
    let mut parsed = if text.trim_start().starts_with(['{', '[']) { json(text) } else { yaml(text) }?;
    if !is_utf8 && text.contains(char::REPLACEMENT_CHARACTER) {
        parsed.problems.push("it has characters that are not valid in its charset".into());
    }
    if parsed.value.is_object() { Ok(parsed) } else { Err("it is not an object".into()) }
}

/// Parses JSON. Some YAML begins with a brace too.
fn json(text: &str) -> Result<Parsed, String> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(Parsed { value, problems: Vec::new() }),
        Err(error) => error,
    };
    if error.to_string().starts_with("recursion limit") {
        return Err(format!("it is nested too deep at line {}", error.line()));
    }
    let problem = format!("it is not valid JSON at line {}, column {}", error.line(), error.column());
    match yaml(text) {
        Ok(mut parsed) => {
            parsed.problems.insert(0, format!("{problem}; it is read as YAML"));
            Ok(parsed)
        }
        Err(_) => Err(problem),
    }
}

fn yaml(text: &str) -> Result<Parsed, String> {
    if text.len() > MAX_YAML_BYTES {
        return Err(format!("it has more than {MAX_YAML_BYTES} bytes, which is the limit for YAML"));
    }
    match yaml::convert(text) {
        Ok((value, problems)) => Ok(Parsed { value, problems }),
        Err(yaml::Failure { line, column }) => {
            Err(format!("it is not valid YAML, or too large, at line {line}, column {column}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, String> {
        parse(text.as_bytes(), "").map(|parsed| parsed.value)
    }

    #[test]
    fn json_and_yaml_are_the_same() {
        let value = json!({"openapi": "3.0.0", "responses": {"200": {"a": [1, 2.5, true, null, "no", "2020-01-01"]}}});
        let text = "openapi: 3.0.0\nresponses:\n  200:\n    a: [1, 2.5, true, null, no, 2020-01-01]\n";
        assert_eq!(read(text), Ok(value.clone()));
        assert_eq!(read(&value.to_string()), Ok(value));
        let shared = "a: &x {b: 1}\nc: *x\nd:\n  <<: *x\n  e: 2\n";
        assert_eq!(read(shared), Ok(json!({"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}})));
        assert_eq!(read("{a: 1}"), Ok(json!({"a": 1})));
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
            let error = parse(case.as_bytes(), "").expect_err(&case[..case.len().min(80)]);
            assert!(error.len() < 120, "{error}");
        }
    }
}
