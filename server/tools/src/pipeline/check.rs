//! Validates inputs and results against the schemas of their tool.

use crate::catalogue::Entry;
use codecall_base::offload::{INLINE_LIMIT, weight};
use codecall_base::schema::{CheckError, Schema, SchemaError};
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_config::CheckOutput;
use serde_json::{Value, json};

/// Maximum number of validation errors that are reported; a model repairs one after the other.
const MAX_ERRORS: usize = 5;
/// Maximum length of the path of an error, in bytes: names of members can be of any length.
const MAX_PATH_BYTES: usize = 200;

/// Estimates the work of a validation, in bytes of JSON. One that may take long counts as large data.
pub fn work(schema: Option<Result<&Schema, &SchemaError>>, value: &Value) -> usize {
    let is_quick = schema.is_none_or(|schema| schema.is_ok_and(|schema| schema.is_quick(value)));
    if is_quick { weight(value) } else { INLINE_LIMIT + 1 }
}

/// Validates an input.
pub fn input(entry: &Entry, input: &Value) -> Result<(), ToolError> {
    match entry.validator() {
        None => Ok(()),
        Some(Ok(schema)) => fits(schema, &entry.name, input),
        Some(Err(unusable)) => Err(unchecked(ErrorCode::InvalidInput, &entry.name, "input", unusable)),
    }
}

/// Validates an input against the schema of the tool of that name.
pub fn fits(schema: &Schema, tool: &str, input: &Value) -> Result<(), ToolError> {
    match issues(schema, input, "input") {
        Ok(()) => Ok(()),
        Err(Some(issues)) => Err(issues.error(ErrorCode::InvalidInput, &format!("Invalid input for tool '{tool}'"))),
        Err(None) => Err(unchecked(ErrorCode::InvalidInput, tool, "input", &SchemaError::TooComplex)),
    }
}

fn unchecked(code: ErrorCode, tool: &str, of: &str, why: &SchemaError) -> ToolError {
    ToolError::new(code, format!("The {of} of tool '{tool}' cannot be checked against its schema: {why}"))
}

/// Validates the data of a result.
pub fn output(entry: &Entry, result: ToolResult, mode: CheckOutput) -> Result<ToolResult, ToolError> {
    let (false, Some(schema)) = (mode == CheckOutput::Off, entry.output_validator()) else { return Ok(result) };
    let Some(data) = result.data() else { return Ok(result) };
    let problem = match schema.map(|schema| issues(schema, &data, "result")) {
        Ok(Ok(())) => {
            drop(data);
            return Ok(result);
        }
        Ok(Err(Some(issues))) => {
            let what = format!("Tool '{}' was called, and its result does not fit its output schema", entry.name);
            issues.error(ErrorCode::InvalidOutput, &what)
        }
        Ok(Err(None)) => unchecked(ErrorCode::InvalidOutput, &entry.name, "result", &SchemaError::TooComplex),
        Err(unusable) => unchecked(ErrorCode::InvalidOutput, &entry.name, "result", unusable),
    };
    if mode == CheckOutput::Warn {
        tracing::warn!(tool = entry.name, "{}", problem.message);
        drop(data);
        return Ok(result);
    }
    Err(problem)
}

struct Issues {
    lines: String,
    list: Vec<Value>,
}

impl Issues {
    fn error(self, code: ErrorCode, what: &str) -> ToolError {
        let mut error = ToolError::new(code, format!("{what}:{}", self.lines));
        error.details = Some(json!({"issues": self.list}).to_string());
        error
    }
}

/// Validates a value. `Err(None)`: it would take too long.
fn issues(schema: &Schema, value: &Value, whole: &str) -> Result<(), Option<Issues>> {
    let errors = match schema.check(value) {
        Ok(()) => return Ok(()),
        Err(CheckError::TooComplex) => return Err(None),
        Err(CheckError::Errors(errors)) => errors,
    };
    let mut issues = Issues { lines: String::new(), list: Vec::new() };
    for error in errors.iter().take(MAX_ERRORS) {
        let path = truncate(&error.instance_path().to_string(), MAX_PATH_BYTES).to_owned();
        let place = if path.is_empty() { whole } else { path.trim_start_matches('/') };
        let message = truncate(&error.to_string(), 300).to_owned();
        issues.lines.push_str(&format!("\n  {place}: {message}"));
        issues.list.push(json!({"path": path, "message": message}));
    }
    let more = errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        issues.lines.push_str(&format!("\n  and {more} more"));
    }
    if errors.is_empty() {
        issues.lines.push_str(&format!("\n  {whole}: it does not fit, and is too large to say where"));
    }
    Err(Some(issues))
}
