//! Validates values against the JSON schemas of tools, in bounded time, and says what to write instead.
//!
//! A schema is untrusted: with a few references it can require 2^44 evaluations of a subschema. So the number of
//! evaluations is computed first (`cost`), and a check that would need too many is refused. Patterns are matched in
//! linear time; patterns that need more are removed from the schema, with a warning. It must not know calls, nor which
//! thread it
//! runs on.

#![forbid(unsafe_code)]

mod cost;
mod keywords;
mod mismatch;
mod nulls;
mod references;
pub mod text;

use cost::{Graph, TooComplex};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
pub use mismatch::{Mismatch, mismatch};
pub use nulls::without_nulls;
use serde_json::Value;

/// Maximum size of a schema, in JSON values.
const MAX_SCHEMA_VALUES: usize = 100_000;
/// Maximum size of a schema that may be compiled on any thread, in JSON values.
const MAX_SMALL_VALUES: usize = 500;
/// Maximum cost of a check: one unit is about one evaluation of a subschema.
const MAX_COST: u64 = 20_000_000;
/// Maximum cost of a check that collects its errors, which take memory.
const MAX_COST_WITH_ERRORS: u64 = 300_000;
/// Maximum cost of a check that may run on any thread.
const MAX_QUICK_COST: u64 = 20_000;
/// Native stack of the thread that compiles a schema, in bytes: compilation recurses along nested references.
#[cfg(not(target_family = "wasm"))]
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Maximum sizes of a compiled pattern in bytes, with the cost of matching one byte. A larger pattern is removed.
const PATTERN_SIZES: [(usize, u64); 3] = [(8 << 10, 2), (64 << 10, 16), (512 << 10, 128)];

/// Maximum length of all patterns of a schema, in bytes; the patterns above it are removed. Compiling a pattern takes up
/// to 200 bytes of memory and a microsecond for each of its bytes before its size is known.
const MAX_PATTERN_BYTES: usize = 128 << 10;

/// A compiled schema.
pub struct Schema {
    validator: Validator,
    graph: Graph,
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not a valid JSON schema.
    #[error("it is not valid: {0}")]
    Invalid(String),
    /// It is too large, or its references lead to too many evaluations.
    #[error("it is too complex to be checked")]
    TooComplex,
}

/// Why a value is not accepted.
pub enum CheckError<'a> {
    /// The value is invalid. The list is empty if collecting the errors would take too much memory.
    Errors(Vec<jsonschema::ValidationError<'a>>),
    /// The check would take too long.
    TooComplex,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

impl Schema {
    /// Whether compiling a schema is quick enough for any thread.
    #[must_use]
    pub fn is_small(schema: &Value) -> bool {
        let mut values = MAX_SMALL_VALUES;
        is_at_most(schema, &mut values)
    }

    /// Compiles a schema. This may take about a second, unless it is [small](Self::is_small).
    ///
    /// # Errors
    /// The schema is invalid or too complex.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let mut values = MAX_SCHEMA_VALUES;
        if !is_at_most(schema, &mut values) {
            return Err(SchemaError::TooComplex);
        }
        let mut schema = schema.clone();
        let mut patterns = Patterns::default();
        patterns.prune(&mut schema);
        for pattern in &patterns.removed {
            let pattern = text::truncate(pattern, 200);
            tracing::warn!(
                pattern,
                "a pattern of a schema needs more than linear time, or too much memory; it is not checked"
            );
        }
        for reference in references::prune(&mut schema) {
            let reference = text::truncate(&reference, 200);
            tracing::warn!(reference, "a reference of a schema leads nowhere; that part is not checked");
        }
        let graph = Graph::new(&schema, &patterns.weights).map_err(|TooComplex| SchemaError::TooComplex)?;
        let build = || {
            let options = jsonschema::options().with_pattern_options(pattern_options(PATTERN_SIZES[2].0));
            options
                .build(&schema)
                .map_err(|error| SchemaError::Invalid(text::truncate(&error.to_string(), 300).to_owned()))
        };
        let validator = if graph.is_flat() { build()? } else { with_stack(build)? };
        Ok(Self { validator, graph })
    }

    /// Whether checking a value is quick enough for any thread.
    #[must_use]
    pub fn is_quick(&self, value: &Value) -> bool {
        self.graph.quick(value, MAX_QUICK_COST).is_some()
    }

    /// Checks a value. This may take about a second, unless it is [quick](Self::is_quick).
    ///
    /// # Errors
    /// The value is invalid, or the check would take too long.
    pub fn check<'a>(&'a self, value: &'a Value) -> Result<(), CheckError<'a>> {
        if self.is_quick(value) {
            return self.validate(value, true);
        }
        let cost = self.graph.cost(value, MAX_COST).map_err(|TooComplex| CheckError::TooComplex)?;
        self.validate(value, cost <= MAX_COST_WITH_ERRORS)
    }

    /// Whether a value is valid.
    #[must_use]
    pub fn fits(&self, value: &Value) -> bool {
        self.check(value).is_ok()
    }

    fn validate<'a>(&'a self, value: &'a Value, with_errors: bool) -> Result<(), CheckError<'a>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        Err(CheckError::Errors(if with_errors { self.validator.iter_errors(value).collect() } else { Vec::new() }))
    }
}

/// Whether a value contains at most `remaining` values. Each one decreases `remaining`.
fn is_at_most(value: &Value, remaining: &mut usize) -> bool {
    let Some(less) = remaining.checked_sub(1) else { return false };
    *remaining = less;
    match value {
        Value::Array(items) => items.iter().all(|item| is_at_most(item, remaining)),
        Value::Object(members) => members.values().all(|member| is_at_most(member, remaining)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Runs work that recurses on a thread with a large stack. WebAssembly has no threads; the depth of a graph is limited.
#[cfg(target_family = "wasm")]
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    work()
}

/// Runs work that recurses on a thread with a large stack.
#[cfg(not(target_family = "wasm"))]
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("schema".into()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => std::panic::panic_any(format!("no thread for a schema: {error}")),
        }
    })
}

/// Compiles a pattern. Returns `None` if it is invalid or cannot be matched in linear time.
#[must_use]
pub fn compile_pattern(pattern: &str) -> Option<Validator> {
    let schema = serde_json::json!({"pattern": pattern});
    jsonschema::options().with_pattern_options(pattern_options(PATTERN_SIZES[1].0)).build(&schema).ok()
}

fn pattern_options(size: usize) -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(size)
}

/// The patterns of a schema.
#[derive(Default)]
struct Patterns {
    /// The cost of matching one byte, by pattern.
    weights: std::collections::HashMap<String, u64>,
    /// Length of the patterns that were compiled, in bytes.
    bytes: usize,
    removed: Vec<String>,
}

impl Patterns {
    /// Removes the patterns that cannot be matched in linear time from a schema, and the keywords that depend on them.
    fn prune(&mut self, schema: &mut Value) {
        let Value::Object(members) = schema else { return };
        if let Some(Value::String(pattern)) = members.get("pattern")
            && !self.is_linear(&pattern.clone())
        {
            members.shift_remove("pattern");
        }
        if let Some(Value::Object(patterns)) = members.get("patternProperties") {
            let names: Vec<String> = patterns.keys().cloned().collect();
            if !names.iter().all(|name| self.is_linear(name)) {
                for key in ["patternProperties", "additionalProperties", "unevaluatedProperties"] {
                    members.shift_remove(key);
                }
            }
        }
        references::each_subschema(members, &mut |schema| self.prune(schema));
    }

    fn is_linear(&mut self, pattern: &str) -> bool {
        if self.weights.contains_key(pattern) {
            return true;
        }
        self.bytes = self.bytes.saturating_add(pattern.len());
        if self.bytes > MAX_PATTERN_BYTES {
            self.removed.push(pattern.to_owned());
            return false;
        }
        let schema = serde_json::json!({"pattern": pattern});
        let fits =
            |size: usize| jsonschema::options().with_pattern_options(pattern_options(size)).build(&schema).is_ok();
        match PATTERN_SIZES.iter().find(|(size, _)| fits(*size)) {
            Some((_, weight)) => {
                self.weights.insert(pattern.to_owned(), *weight);
                true
            }
            None => {
                self.removed.push(pattern.to_owned());
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
