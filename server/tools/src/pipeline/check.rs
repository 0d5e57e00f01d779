//! Validates inputs and results against the schemas of their tool.

use crate::catalogue::Entry;
use crate::typescript;
use codecall_base::offload::{INLINE_LIMIT, weight};
use codecall_base::schema::{Mismatch, Schema, SchemaError, mismatch};
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_config::CheckOutput;
use serde_json::{Value, json};

/// Maximum length of the signature in an error, in bytes.
const MAX_SIGNATURE_BYTES: usize = 2_000;

/// Estimates the work of a validation, in bytes of JSON. One that may take long counts as large data.
pub fn work(schema: Option<Result<&Schema, &SchemaError>>, value: &Value) -> usize {
    let is_quick = schema.is_none_or(|schema| schema.is_ok_and(|schema| schema.is_quick(value)));
    if is_quick { weight(value) } else { INLINE_LIMIT + 1 }
}

/// Does the same for a result. A long one is not read if there is no schema.
pub fn result_work(schema: Option<Result<&Schema, &SchemaError>>, result: &ToolResult) -> usize {
    match (schema, result) {
        (None, _) => 0,
        (_, ToolResult::Long(long)) => long.text().len(),
        (schema, ToolResult::Data(value) | ToolResult::Mcp(value)) => work(schema, value),
    }
}

/// Validates an input.
pub fn input(entry: &Entry, input: &Value) -> Result<(), ToolError> {
    match entry.validator() {
        None => Ok(()),
        Some(Ok(schema)) => fits(schema, &entry.definition.input_schema, &entry.name, input)
            .map_err(|error| with_signature(error, entry)),
        Some(Err(unusable)) => Err(unchecked(ErrorCode::InvalidInput, &entry.name, "input", unusable)),
    }
}

/// Adds the signature of a tool to an error: a model may have seen it abbreviated.
fn with_signature(mut error: ToolError, entry: &Entry) -> ToolError {
    let details: Option<Value> = error.details.as_deref().and_then(|details| serde_json::from_str(details).ok());
    let mut details = details.unwrap_or_else(|| json!({}));
    let signature = typescript::signature(&entry.definition, None);
    details["signature"] = truncate(&signature, MAX_SIGNATURE_BYTES).into();
    error.details = Some(details.to_string());
    error
}

/// Validates an input against the schema of the tool of that name; `definition` is the text of the schema.
pub fn fits(schema: &Schema, definition: &Value, tool: &str, input: &Value) -> Result<(), ToolError> {
    match mismatch(schema, definition, input, "input") {
        Ok(()) => Ok(()),
        Err(Some(found)) => Err(error(ErrorCode::InvalidInput, &format!("Invalid input for tool '{tool}'"), found)),
        Err(None) => Err(unchecked(ErrorCode::InvalidInput, tool, "input", &SchemaError::TooComplex)),
    }
}

fn error(code: ErrorCode, what: &str, found: Mismatch) -> ToolError {
    let mut error = ToolError::new(code, found.message(what));
    error.details = Some(found.details().to_string());
    error
}

fn unchecked(code: ErrorCode, tool: &str, of: &str, why: &SchemaError) -> ToolError {
    ToolError::new(code, format!("The {of} of tool '{tool}' cannot be checked against its schema: {why}"))
}

/// Validates the data of a result.
pub fn output(entry: &Entry, result: ToolResult, mode: CheckOutput) -> Result<ToolResult, ToolError> {
    let (false, Some(schema)) = (mode == CheckOutput::Off, entry.output_validator()) else { return Ok(result) };
    let Some(data) = result.data() else { return unread(entry, result) };
    let definition = entry.definition.output_schema.as_ref().unwrap_or(&Value::Null);
    let problem = match schema.map(|schema| mismatch(schema, definition, &data, "result")) {
        Ok(Ok(())) => {
            drop(data);
            return Ok(result);
        }
        Ok(Err(Some(found))) => {
            let what = format!("Tool '{}' was called, and its result does not fit its output schema", entry.name);
            error(ErrorCode::InvalidOutput, &what, found)
        }
        Ok(Err(None)) => unchecked(ErrorCode::InvalidOutput, &entry.name, "result", &SchemaError::TooComplex),
        Err(unusable) => unchecked(ErrorCode::InvalidOutput, &entry.name, "result", unusable),
    };
    if mode == CheckOutput::Warn || entry.definition.output_is_advisory {
        tracing::warn!(tool = entry.name, "{}", problem.message);
        drop(data);
        return Ok(result);
    }
    Err(problem)
}

/// Passes a result without data: its tool has failed, or its values take too much memory.
fn unread(entry: &Entry, result: ToolResult) -> Result<ToolResult, ToolError> {
    match result {
        ToolResult::Long(_) => Err(too_large(&entry.name)),
        ToolResult::Data(_) | ToolResult::Mcp(_) => Ok(result),
    }
}

/// The error of a long result that somebody has to look into.
pub fn too_large(tool: &str) -> ToolError {
    let message = format!("The result of tool '{tool}' has too many values to be looked into; ask the tool for less");
    ToolError::new(ErrorCode::MessageTooLarge, message)
}
