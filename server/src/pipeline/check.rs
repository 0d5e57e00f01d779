//! Inputs and results against the schemas of their tool.

use crate::catalogue::Entry;
use crate::config::CheckOutput;
use crate::upstream::ToolError;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Errors of a value that does not fit are cut off here; a model mends one after the other.
const MOST_ERRORS: usize = 5;

/// Whether an input fits.
pub fn input(entry: &Entry, input: &Map<String, Value>) -> Result<(), ToolError> {
    let Some(validator) = entry.validator() else { return Ok(()) };
    fits(validator, &entry.name, &Value::Object(input.clone()))
}

/// Whether an input fits the schema of the tool of that name.
pub fn fits(validator: &Validator, tool: &str, input: &Value) -> Result<(), ToolError> {
    issues(validator, input, "input")
        .map_err(|issues| issues.error("INVALID_INPUT", &format!("Invalid input for tool '{tool}'")))
}

/// Whether a result fits. Of a `whole` one, the structured part is meant.
pub fn output(entry: &Entry, result: Value, whole: bool, mode: CheckOutput) -> Result<Value, ToolError> {
    let data = match whole {
        true if result["isError"] == true => None,
        true => result.get("structuredContent"),
        false => Some(&result),
    };
    let (false, Some(data), Some(validator)) = (mode == CheckOutput::Off, data, entry.output_validator()) else {
        return Ok(result);
    };
    match issues(validator, data, "result") {
        Ok(()) => Ok(result),
        Err(issues) if mode == CheckOutput::Warn => {
            tracing::warn!(tool = entry.name, "its result does not fit its output schema:{}", issues.lines);
            Ok(result)
        }
        Err(issues) => {
            let what = format!("Tool '{}' was called, and its result does not fit its output schema", entry.name);
            Err(issues.error("INVALID_OUTPUT", &what))
        }
    }
}

struct Issues {
    lines: String,
    list: Vec<Value>,
}

impl Issues {
    fn error(self, code: &str, what: &str) -> ToolError {
        let mut error = ToolError::new(code, format!("{what}:{}", self.lines));
        error.details = Some(json!({"issues": self.list}).to_string());
        error
    }
}

fn issues(validator: &Validator, value: &Value, whole: &str) -> Result<(), Issues> {
    let mut issues = Issues { lines: String::new(), list: Vec::new() };
    let mut errors = validator.iter_errors(value);
    for error in errors.by_ref().take(MOST_ERRORS) {
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { whole } else { path.trim_start_matches('/') };
        let message = crate::index::cut(&error.to_string(), 300).to_owned();
        issues.lines.push_str(&format!("\n  {place}: {message}"));
        issues.list.push(json!({"path": path, "message": message}));
    }
    if issues.list.is_empty() {
        return Ok(());
    }
    let more = errors.count();
    if more > 0 {
        issues.lines.push_str(&format!("\n  and {more} more"));
    }
    Err(issues)
}
