//! The parts of a value that do not fit its schema, worded for a model that mends it.

use crate::text::{nearest, path_in, truncate};
use crate::{CheckError, Schema, ValidationErrorKind};
use agentscript::declarations::type_of;
use serde_json::{Map, Value, json};

/// Maximum number of validation errors that are reported; a model repairs one after the other.
const MAX_ERRORS: usize = 5;
/// Maximum length of the path of an error, in bytes: names of members can be of any length.
const MAX_PATH_BYTES: usize = 200;
/// Maximum length of what an error suggests, in bytes.
const MAX_HINT_BYTES: usize = 600;
/// Maximum number of properties that an error lists.
const MAX_NAMES: usize = 12;

/// The parts that do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    lines: String,
    list: Vec<Value>,
}

impl Mismatch {
    /// A message that begins with `what`, with a line for each of the first errors.
    #[must_use]
    pub fn message(&self, what: &str) -> String {
        format!("{what}:{}", self.lines)
    }

    /// The same for programs: `{"issues": [{"path", "message"}]}`.
    #[must_use]
    pub fn details(self) -> Value {
        json!({"issues": self.list})
    }
}

/// Validates a value, which messages call `whole`; `definition` is the text of the schema.
///
/// # Errors
/// The value does not fit. `Err(None)`: the check would take too long.
pub fn mismatch(schema: &Schema, definition: &Value, value: &Value, whole: &str) -> Result<(), Option<Mismatch>> {
    let errors = match schema.check(value) {
        Ok(()) => return Ok(()),
        Err(CheckError::TooComplex) => return Err(None),
        Err(CheckError::Errors(errors)) => errors,
    };
    let mut found = Mismatch { lines: String::new(), list: Vec::new() };
    for error in errors.iter().take(MAX_ERRORS) {
        let pointer = error.instance_path().to_string();
        let place = path_in(value, &pointer);
        let place = if place.is_empty() { whole } else { truncate(&place, MAX_PATH_BYTES) };
        let path = truncate(&pointer, MAX_PATH_BYTES);
        let mut message = truncate(&error.to_string(), 300).to_owned();
        if let Some(hint) = hint(error.kind(), error.schema_path().as_str(), error.instance(), definition) {
            message.push_str(&hint);
        }
        found.lines.push_str(&format!("\n  {place}: {message}"));
        found.list.push(json!({"path": path, "message": message}));
    }
    let more = errors.len().saturating_sub(MAX_ERRORS);
    if more > 0 {
        found.lines.push_str(&format!("\n  and {more} more"));
    }
    if errors.is_empty() {
        found.lines.push_str(&format!("\n  {whole}: it does not fit, and is too large to say where"));
    }
    Err(Some(found))
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
            let expected = properties.get(name).map(|schema| type_of(schema, definition));
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
