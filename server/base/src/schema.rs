//! JSON schemas of tools as what checks values, with a bound on the time that this takes.
//!
//! A schema is somebody else's program: a few references make it look at a value 2^44 times. So how
//! often schemas would be looked at is counted first (`cost`), and what is too much is not checked but
//! refused. Patterns are matched in linear time; those that need more are left out, which is said.

mod cost;
mod parts;

use crate::offload;
use cost::{Graph, TooComplex};
use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

/// Largest schema, in values.
const MOST_VALUES: usize = 100_000;
/// How often schemas may be looked at in one check.
const MOST_LOOKS: u64 = 20_000_000;
/// The same where the errors are wanted, each of which takes memory.
const MOST_LOOKS_FOR_ERRORS: u64 = 300_000;
/// Looks that are few enough for any thread.
const FEW_LOOKS: u64 = 20_000;
/// Native stack of the thread that compiles a schema, which recurses as its references nest.
const STACK: usize = 64 * 1024 * 1024;
/// Compiled bytes of a pattern, and what a match of one byte costs then, from good to bad. A pattern that
/// needs more is left out.
const PATTERN_SIZES: [(usize, u64); 3] = [(8 << 10, 2), (64 << 10, 16), (512 << 10, 128)];

/// Bytes of all patterns of a schema that are looked at: before its size is known, a pattern takes 200 times its bytes
/// and a microsecond for each. Those that are too much are left out too.
const MOST_PATTERNS: usize = 128 << 10;

/// A compiled schema.
pub struct Schema {
    validator: Validator,
    graph: Graph,
}

/// Why a schema checks nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no schema.
    #[error("it is not valid: {0}")]
    Invalid(String),
    /// It is too large, or its parts hold each other too often.
    #[error("it is too complex to be checked")]
    TooComplex,
}

/// Why a value is not what its schema asks for.
pub enum Misfit<'a> {
    /// It does not fit, for these reasons; empty: there are too many to be looked for.
    Errors(Vec<jsonschema::ValidationError<'a>>),
    /// To check it would take too long.
    TooComplex,
}

impl Schema {
    /// Compile a schema.
    ///
    /// # Errors
    /// It is none, or too complex.
    pub fn new(schema: &Value) -> Result<Self, Unusable> {
        let mut values = MOST_VALUES;
        if !is_at_most(schema, &mut values) {
            return Err(Unusable::TooComplex);
        }
        let few = MOST_VALUES - values < 500;
        offload::now(if few { 0 } else { offload::SMALL + 1 }, || Self::compiled(schema))
    }

    fn compiled(schema: &Value) -> Result<Self, Unusable> {
        let mut schema = schema.clone();
        let mut patterns = Patterns::default();
        patterns.prune(&mut schema);
        for pattern in &patterns.left_out {
            let pattern = crate::text::cut(pattern, 200);
            tracing::warn!(pattern, "a pattern of a schema needs more than linear time; it is not checked");
        }
        let graph = Graph::new(&schema, &patterns.weights).map_err(|TooComplex| Unusable::TooComplex)?;
        let build = || {
            let options = jsonschema::options().with_pattern_options(pattern_options(PATTERN_SIZES[2].0));
            options
                .build(&schema)
                .map_err(|error| Unusable::Invalid(crate::text::cut(&error.to_string(), 300).to_owned()))
        };
        let validator = if graph.is_flat() { build()? } else { with_stack(build)? };
        Ok(Self { validator, graph })
    }

    /// Whether a check of a value is short.
    #[must_use]
    pub fn is_quick(&self, value: &Value) -> bool {
        self.graph.quick(value, FEW_LOOKS).is_some()
    }

    /// Check a value. It may take about a second, unless it is [quick](Self::is_quick).
    ///
    /// # Errors
    /// It does not fit, or that cannot be found out in time.
    pub fn check<'a>(&'a self, value: &'a Value) -> Result<(), Misfit<'a>> {
        if self.is_quick(value) {
            return self.decide(value, true);
        }
        let cost = self.graph.cost(value, MOST_LOOKS).map_err(|TooComplex| Misfit::TooComplex)?;
        self.decide(value, cost <= MOST_LOOKS_FOR_ERRORS)
    }

    /// Whether a value fits.
    #[must_use]
    pub fn fits(&self, value: &Value) -> bool {
        self.check(value).is_ok()
    }

    fn decide<'a>(&'a self, value: &'a Value, with_errors: bool) -> Result<(), Misfit<'a>> {
        if self.validator.is_valid(value) {
            return Ok(());
        }
        Err(Misfit::Errors(if with_errors { self.validator.iter_errors(value).collect() } else { Vec::new() }))
    }
}

/// Whether a value holds no more values than are `left`, which are counted down.
fn is_at_most(value: &Value, left: &mut usize) -> bool {
    let Some(less) = left.checked_sub(1) else { return false };
    *left = less;
    match value {
        Value::Array(items) => items.iter().all(|item| is_at_most(item, left)),
        Value::Object(members) => members.values().all(|member| is_at_most(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Do work that recurses on a thread with room for it.
fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("schema".into()).stack_size(STACK);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => std::panic::panic_any(format!("no thread for a schema: {error}")),
        }
    })
}

/// What tells whether a text fits a pattern; absent: it is none, or it is not matched in linear time.
#[must_use]
pub fn pattern(pattern: &str) -> Option<Validator> {
    let schema = serde_json::json!({"pattern": pattern});
    jsonschema::options().with_pattern_options(pattern_options(PATTERN_SIZES[1].0)).build(&schema).ok()
}

fn pattern_options(size: usize) -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(size)
}

/// The patterns of a schema.
#[derive(Default)]
struct Patterns {
    /// What a match of one byte costs.
    weights: std::collections::HashMap<String, u64>,
    /// Bytes of those that were looked at.
    bytes: usize,
    left_out: Vec<String>,
}

impl Patterns {
    /// Take out of a schema what is not matched in linear time, and what depends on it.
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
        self.prune_parts(members);
    }

    fn prune_parts(&mut self, members: &mut Map<String, Value>) {
        for (key, part) in members.iter_mut() {
            match (parts::kind(key), part) {
                (Some(parts::Kind::Map), Value::Object(schemas)) => {
                    schemas.values_mut().for_each(|schema| self.prune(schema));
                }
                (Some(parts::Kind::Schema | parts::Kind::List), Value::Array(schemas)) => {
                    schemas.iter_mut().for_each(|schema| self.prune(schema));
                }
                (Some(parts::Kind::Schema), schema) => self.prune(schema),
                // References lead to places that are named as anybody likes.
                (None, Value::Object(schemas)) if !parts::is_data(key) => {
                    schemas.values_mut().for_each(|schema| self.prune(schema));
                }
                (Some(_) | None, _) => {}
            }
        }
    }

    fn is_linear(&mut self, pattern: &str) -> bool {
        if self.weights.contains_key(pattern) {
            return true;
        }
        self.bytes = self.bytes.saturating_add(pattern.len());
        if self.bytes > MOST_PATTERNS {
            self.left_out.push(pattern.to_owned());
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
                self.left_out.push(pattern.to_owned());
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
