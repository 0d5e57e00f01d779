//! Validates inputs and results against the schemas of their tool.

use crate::catalogue::Entry;
use crate::typescript;
use codecall_base::error::path_in;
use codecall_base::offload::{INLINE_LIMIT, weight};
use codecall_base::schema::{CheckError, Schema, SchemaError, ValidationErrorKind};
use codecall_base::text::{nearest, truncate};
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use codecall_config::CheckOutput;
use serde_json::{Map, Value, json};

/// Maximum number of validation errors that are reported; a model repairs one after the other.
const MAX_ERRORS: usize = 5;
/// Maximum length of the path of an error, in bytes: names of members can be of any length.
const MAX_PATH_BYTES: usize = 200;
/// Maximum length of what an error suggests, in bytes.
const MAX_HINT_BYTES: usize = 600;
/// Maximum length of the signature in an error, in bytes.
const MAX_SIGNATURE_BYTES: usize = 2_000;
/// Maximum number of properties that an error lists.
const MAX_NAMES: usize = 12;

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
    match issues(schema, definition, input, "input") {
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
    let Some(data) = result.data() else { return unread(entry, result) };
    let definition = entry.definition.output_schema.as_ref().unwrap_or(&Value::Null);
    let problem = match schema.map(|schema| issues(schema, definition, &data, "result")) {
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

/// What to write instead: the nearest property to one that the schema does not know, or the expected type of one that is
/// missing, with the property that was probably meant.
fn hint(kind: &ValidationErrorKind, path: &str, value: &Value, definition: &Value) -> Option<String> {
    let properties = parent(definition, path)?.get("properties")?.as_object()?;
    let unknown = |value: &Value| -> Vec<String> {
        let names = value.as_object().into_iter().flat_map(Map::keys);
        names.filter(|name| !properties.contains_key(*name)).cloned().collect()
    };
    let suggested = match kind {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let known = || properties.keys().map(String::as_str);
            let near = unexpected.iter().take(MAX_ERRORS).filter_map(|name| nearest(name, known(), 1).first().copied());
            let near: Vec<String> = near.map(|name| format!("'{name}'")).collect();
            if near.is_empty() {
                let known: Vec<String> = known().take(MAX_NAMES).map(|name| format!("'{name}'")).collect();
                format!("; known are {}", known.join(", "))
            } else {
                format!("; did you mean {}?", near.join(", "))
            }
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str()?;
            let expected = properties.get(name).map(|schema| typescript::type_of(schema, definition));
            let expected =
                expected.map_or_else(String::new, |kind| format!("; expected {name}: {}", truncate(&kind, 200)));
            let given = unknown(value);
            let near = nearest(name, given.iter().map(String::as_str), 1);
            near.first().map_or(expected.clone(), |given| {
                format!("{expected}, instead of '{}'", truncate(given, MAX_PATH_BYTES))
            })
        }
        _ => return None,
    };
    Some(truncate(&suggested, MAX_HINT_BYTES).to_owned())
}

/// The schema that contains the keyword at a path.
fn parent<'a>(definition: &'a Value, path: &str) -> Option<&'a Value> {
    let mut schema = definition;
    let (path, _) = path.rsplit_once('/')?;
    for token in path.split('/').skip(1) {
        schema = schema
            .get(token.replace("~1", "/").replace("~0", "~"))
            .or_else(|| schema.as_array()?.get(token.parse::<usize>().ok()?))?;
        if token == "$ref" {
            schema = definition.pointer(schema.as_str()?.strip_prefix('#')?)?;
        }
    }
    Some(schema)
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
fn issues(schema: &Schema, definition: &Value, value: &Value, whole: &str) -> Result<(), Option<Issues>> {
    let errors = match schema.check(value) {
        Ok(()) => return Ok(()),
        Err(CheckError::TooComplex) => return Err(None),
        Err(CheckError::Errors(errors)) => errors,
    };
    let mut issues = Issues { lines: String::new(), list: Vec::new() };
    for error in errors.iter().take(MAX_ERRORS) {
        let pointer = error.instance_path().to_string();
        let place = path_in(value, &pointer);
        let place = if place.is_empty() { whole } else { truncate(&place, MAX_PATH_BYTES) };
        let path = truncate(&pointer, MAX_PATH_BYTES);
        let mut message = truncate(&error.to_string(), 300).to_owned();
        if let Some(hint) = hint(error.kind(), error.schema_path().as_str(), error.instance(), definition) {
            message.push_str(&hint);
        }
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
