//! Dry runs: the same engine and the same checks, and no tool is reached. A tool's result is an
//! example made from its output schema.

use super::Finished;
use crate::catalogue::Entry;
use crate::sample;
use serde_json::{Map, Value, json};

/// What a tool gives in a dry run, and whether that is known to look like its result. Where it is
/// not, an empty object stands for it.
pub fn result(entry: &Entry) -> (Value, bool) {
    let schema = entry.definition.output_schema.as_ref();
    let fits = |schema: &Value, value: &Value| {
        jsonschema::options().build(schema).is_ok_and(|validator| validator.is_valid(value))
    };
    let example = schema.and_then(|schema| sample::output(schema).filter(|value| fits(schema, value)));
    let known = example.is_some();
    (example.unwrap_or_else(|| Value::Object(Map::new())), known)
}

impl Finished {
    /// The outcome of a dry run as clients see it: what the script would call, as far as that is known
    /// without calling anything.
    #[must_use]
    pub fn rehearsed_json(&self) -> String {
        let (calls, omitted) = self.log.rehearsed();
        let unknown = calls.iter().any(|call| call["result"] == "unknown");
        let mut more = json!({"dryRun": true, "calls": calls});
        if omitted > 0 {
            more["omitted"] = omitted.into();
        }
        if unknown {
            more["note"] = json!(
                "Tools whose result is 'unknown' have no usable output schema: {} stood for it, and what the script \
                 does with it, calls included, may differ in a real run"
            );
        }
        let (json, more) = (self.outcome.to_json(), more.to_string());
        // Two objects, one after the other: numbers of the script stay as it has written them.
        format!("{},{}", json.strip_suffix('}').unwrap_or(&json), more.strip_prefix('{').unwrap_or(&more))
    }
}
