//! Converts schemas of OpenAPI to JSON Schema 2020-12.
//!
//! The target of a reference becomes a definition in `$defs`; nothing is repeated. Only keywords with values of the
//! right type are taken over, so that the result is always valid. Where a description is usually wrong, the result
//! accepts more: `oneOf` becomes `anyOf`, since alternatives of descriptions rarely exclude each other.
//!
//! The size is limited. Definitions are converted nearest first; above the limit they accept any value.

use crate::document::{Context, Resolver};
use crate::limits::MAX_NOTE_BYTES;
use codecall_base::offload::weight;
use codecall_base::text::truncate;
use serde_json::{Map, Number, Value, json};
use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum size of an example or a default value, in bytes.
const MAX_EXAMPLE_BYTES: usize = 1_000;
/// Schemas of types.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// The direction of the values of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Properties that only appear in responses are left out.
    Input,
    /// Properties that only appear in requests are left out.
    Output,
}

/// How much of a schema is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    Full,
    /// Neither texts nor conditions; these are what can be left out without refusing a valid value.
    Structure,
}

/// Converts the schemas of one tool.
pub struct Converter<'r, 'a> {
    resolver: &'r Resolver<'a>,
    direction: Direction,
    detail: Detail,
    max_bytes: usize,
    /// Size of what was converted, roughly as JSON.
    bytes: usize,
    is_shortened: bool,
    /// Names of definitions by the addresses of their schemas.
    names: HashMap<*const Value, String>,
    taken: HashSet<String>,
    /// Definitions that are not converted yet.
    pending: VecDeque<(String, Context<'a>, &'a Value)>,
    problem: Option<String>,
}

impl<'r, 'a> Converter<'r, 'a> {
    pub fn new(resolver: &'r Resolver<'a>, direction: Direction, detail: Detail, max_bytes: usize) -> Self {
        Self {
            resolver,
            direction,
            detail,
            max_bytes,
            bytes: 0,
            is_shortened: false,
            names: HashMap::new(),
            taken: HashSet::new(),
            pending: VecDeque::new(),
            problem: None,
        }
    }

    /// Whether some schemas were replaced by ones that accept any value.
    pub fn is_shortened(&self) -> bool {
        self.is_shortened
    }

    /// Returns the first reference that could not be resolved, or type that is unknown. In its place any value is accepted.
    pub fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Converts the definitions that the schemas refer to; these are the `$defs` of the whole.
    pub fn definitions(&mut self) -> Map<String, Value> {
        let mut definitions = Map::new();
        while let Some((name, context, schema)) = self.pending.pop_front() {
            let schema = self.schema(context, schema);
            definitions.insert(name, schema);
        }
        definitions
    }

    /// Converts a schema. It may recurse: a parser has limited the depth of the text, and references are not followed.
    pub fn schema(&mut self, context: Context<'a>, schema: &'a Value) -> Value {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(accepts) => return Value::Bool(*accepts),
            _ => return json!({}),
        };
        if !self.charge(4) || !self.resolver.work(1 + members.len()) {
            self.is_shortened = true;
            return json!({});
        }
        let context = context.of_schema(schema);
        let mut out = Map::new();
        // Names of properties that the other direction has.
        let mut absent: HashSet<&str> = HashSet::new();
        let mut is_open = false;
        for (key, value) in members {
            if let Some(converted) = self.keyword(context, key, value, &mut absent, &mut is_open) {
                let name = match key.as_str() {
                    "oneOf" if out.contains_key("anyOf") || members.contains_key("anyOf") => "allOf",
                    "oneOf" => "anyOf",
                    "example" => "examples",
                    "$dynamicRef" => "$ref",
                    "items" if value.is_array() => "prefixItems",
                    key => key,
                };
                self.bytes += name.len() + 4;
                match (name, out.get_mut(name)) {
                    // `anyOf` and `oneOf` in one schema: both hold.
                    ("allOf", Some(Value::Array(all))) if key == "oneOf" => all.push(json!({ "anyOf": converted })),
                    ("allOf", _) if key == "oneOf" => drop(out.insert("allOf".into(), json!([{ "anyOf": converted }]))),
                    ("allOf", Some(Value::Array(all))) => {
                        all.extend(converted.as_array().into_iter().flatten().cloned())
                    }
                    (name, None) => drop(out.insert(name.to_owned(), converted)),
                    // `examples` has precedence over `example`.
                    (_, Some(_)) => {}
                }
            }
        }
        if !absent.is_empty()
            && let Some(Value::Array(required)) = out.get_mut("required")
        {
            required.retain(|name| !absent.contains(name.as_str().unwrap_or_default()));
        }
        if is_open {
            out.shift_remove("additionalProperties");
        }
        exclusive_bounds(members, &mut out);
        fit_values(&mut out);
        match members.get("nullable") {
            Some(Value::Bool(true)) => nullable(out),
            Some(_) | None => Value::Object(out),
        }
    }

    /// Converts the value of a keyword; `None` if it is left out.
    fn keyword(
        &mut self,
        context: Context<'a>,
        key: &str,
        value: &'a Value,
        absent: &mut HashSet<&'a str>,
        is_open: &mut bool,
    ) -> Option<Value> {
        let is_full = self.detail == Detail::Full;
        match key {
            "$ref" | "$dynamicRef" => self.reference(context, value.as_str()?),
            "type" => {
                let types = types(value);
                if types.is_none() {
                    let problem = format!("the type {} is unknown", truncate(&value.to_string(), 60));
                    self.problem.get_or_insert(problem);
                }
                types
            }
            "properties" | "patternProperties" => Some(self.properties(context, value, absent, is_open)),
            "dependentSchemas" if is_full => Some(self.properties(context, value, &mut HashSet::new(), is_open)),
            "required" => self.charge(weight(value)).then(|| names(value))?,
            "dependentRequired" if is_full && self.charge(weight(value)) => {
                let lists = value.as_object()?.iter().filter_map(|(name, list)| Some((name.clone(), names(list)?)));
                Some(Value::Object(lists.collect()))
            }
            "enum" => {
                let values = value.as_array().filter(|values| !values.is_empty())?;
                self.charge(weight(value)).then(|| Value::Array(values.clone()))
            }
            "const" => self.charge(weight(value)).then(|| value.clone()),
            "default" => self.data(value, MAX_EXAMPLE_BYTES),
            "example" if is_full => Some(json!([self.data(value, MAX_EXAMPLE_BYTES)?])),
            "examples" if is_full => {
                let first = value.as_array()?.first()?;
                Some(json!([self.data(first, MAX_EXAMPLE_BYTES)?]))
            }
            "description" if is_full => {
                let text = truncate(value.as_str()?.trim(), MAX_NOTE_BYTES);
                (!text.is_empty() && self.charge(text.len())).then(|| text.into())
            }
            "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
                let text = value.as_str()?;
                self.charge(text.len()).then(|| text.into())
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => number(value),
            "multipleOf" => number(value).filter(|number| number.as_f64().is_some_and(|number| number > 0.0)),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => count(value),
            "minContains" | "maxContains" if is_full => count(value),
            "uniqueItems" | "deprecated" => value.is_boolean().then(|| value.clone()),
            "items" | "prefixItems" if value.is_array() => self.list(context, value),
            "items" | "additionalProperties" => self.subschema(context, value),
            "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "unevaluatedItems"
            | "unevaluatedProperties"
                if is_full =>
            {
                self.subschema(context, value)
            }
            "allOf" | "anyOf" | "oneOf" => self.list(context, value),
            _ => None,
        }
    }

    /// Counts what is converted. Returns `false` if it would be too long; then it is left out.
    fn charge(&mut self, bytes: usize) -> bool {
        let fits = self.bytes.saturating_add(bytes) <= self.max_bytes;
        if fits {
            self.bytes += bytes;
        } else {
            self.is_shortened = true;
        }
        fits
    }

    /// Returns a value of a service as it is, unless it is too long.
    fn data(&mut self, value: &Value, max_bytes: usize) -> Option<Value> {
        let bytes = weight(value);
        if bytes > max_bytes || self.bytes + bytes > self.max_bytes {
            return None;
        }
        self.bytes += bytes;
        Some(value.clone())
    }

    fn subschema(&mut self, context: Context<'a>, value: &'a Value) -> Option<Value> {
        (value.is_object() || value.is_boolean()).then(|| self.schema(context, value))
    }

    /// Converts a list of schemas; `None` if some would be missing.
    fn list(&mut self, context: Context<'a>, value: &'a Value) -> Option<Value> {
        let mut list = Vec::new();
        for schema in value.as_array()? {
            if !self.charge(2) {
                return None;
            }
            list.extend(self.subschema(context, schema));
        }
        (!list.is_empty()).then_some(Value::Array(list))
    }

    /// Converts properties. If some are left out because of the size, `is_open` becomes true.
    fn properties(
        &mut self,
        context: Context<'a>,
        value: &'a Value,
        absent: &mut HashSet<&'a str>,
        is_open: &mut bool,
    ) -> Value {
        let mut out = Map::new();
        for (name, schema) in value.as_object().into_iter().flatten() {
            if !self.resolver.work(1) || !self.charge(name.len() + 4) {
                self.is_shortened = true;
                *is_open = true;
                break;
            }
            if self.is_absent(context, schema) {
                absent.insert(name);
            } else if schema.is_object() || schema.is_boolean() {
                let schema = self.schema(context, schema);
                out.insert(name.clone(), schema);
            }
        }
        Value::Object(out)
    }

    /// Whether a property only appears in the other direction.
    fn is_absent(&self, context: Context<'a>, schema: &'a Value) -> bool {
        let key = match self.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        };
        schema[key] == true || self.resolver.follow(context, schema).is_ok_and(|(_, schema)| schema[key] == true)
    }

    /// Returns a reference to a definition. What cannot be resolved accepts any value.
    fn reference(&mut self, context: Context<'a>, reference: &str) -> Option<Value> {
        let (context, target) = match self.resolver.resolve(context, reference) {
            Ok(found) => found,
            Err(problem) => {
                self.problem.get_or_insert(problem);
                return None;
            }
        };
        let address = std::ptr::from_ref(target);
        if let Some(name) = self.names.get(&address) {
            self.bytes += name.len() + 10;
            return Some(format!("#/$defs/{name}").into());
        }
        let last = reference.rsplit(['/', '#']).next().unwrap_or_default();
        let plain: String = last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect();
        let plain = if plain.is_empty() { "Schema".to_owned() } else { plain };
        let mut name = plain.clone();
        let mut number = self.taken.len();
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{plain}{number}");
        }
        self.bytes += 2 * name.len() + 20;
        let path = format!("#/$defs/{name}");
        self.names.insert(address, name.clone());
        self.pending.push_back((name, context, target));
        Some(path.into())
    }
}

/// Returns the type that a description means by a name, also by one of other languages.
pub fn known_type(name: &str) -> Option<&'static str> {
    let name = name.trim().to_ascii_lowercase();
    let name = match name.as_str() {
        "int" | "long" | "int32" | "int64" => "integer",
        "float" | "double" | "decimal" => "number",
        "bool" => "boolean",
        "file" | "date" | "datetime" | "date-time" | "uuid" | "binary" | "text" => "string",
        name => name,
    };
    TYPES.iter().find(|known| **known == name).copied()
}

/// Returns the valid types of `type`.
fn types(value: &Value) -> Option<Value> {
    match value {
        Value::String(name) => known_type(name).map(Value::from),
        Value::Array(names) => {
            let mut types: Vec<&str> = Vec::new();
            for name in names {
                let name = known_type(name.as_str()?)?;
                if !types.contains(&name) {
                    types.push(name);
                }
            }
            match types.as_slice() {
                [] => None,
                [only] => Some((*only).into()),
                _ => Some(types.into()),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns a list of distinct names.
fn names(value: &Value) -> Option<Value> {
    let mut seen = HashSet::new();
    let names = value.as_array()?.iter().filter_map(Value::as_str);
    Some(names.filter(|name| seen.insert(*name)).map(Value::from).collect())
}

fn number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => text.trim().parse::<Number>().ok().map(Value::Number),
        _ => None,
    }
}

fn count(value: &Value) -> Option<Value> {
    let number = number(value)?;
    let whole = number.as_u64().or_else(|| {
        let number = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64)
    });
    whole.map(Value::from)
}

/// In OpenAPI 3.0 `exclusiveMinimum: true` says how `minimum` is meant.
fn exclusive_bounds(members: &Map<String, Value>, out: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(exclusive) == Some(&Value::Bool(true))
            && let Some(bound) = out.shift_remove(bound)
        {
            out.insert(exclusive.to_owned(), bound);
        }
    }
}

/// Makes the values of a schema fit its type: authors write `1` for the string, and `"1"` for the number.
fn fit_values(out: &mut Map<String, Value>) {
    let mut kinds = match out.get("type") {
        Some(Value::String(kind)) => vec![kind.clone()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return,
    };
    kinds.retain(|kind| kind != "null");
    let [kind] = kinds.as_slice() else { return };
    for key in ["enum", "examples"] {
        if let Some(Value::Array(values)) = out.get_mut(key) {
            values.iter_mut().for_each(|value| fit(value, kind));
        }
    }
    for key in ["const", "default"] {
        if let Some(value) = out.get_mut(key) {
            fit(value, kind);
        }
    }
}

fn fit(value: &mut Value, kind: &str) {
    let fitting = match (kind, &*value) {
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        ("integer" | "number", Value::String(text)) => text.trim().parse::<Number>().ok().map(Value::Number),
        ("boolean", Value::String(text)) if text == "true" || text == "false" => Some((text == "true").into()),
        _ => None,
    };
    if let Some(fitting) = fitting {
        *value = fitting;
    }
}

/// Also accepts `null`.
fn nullable(mut out: Map<String, Value>) -> Value {
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    match out.get_mut("type") {
        Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => names.push("null".into()),
        Some(kind @ Value::String(_)) if kind != "null" => *kind = json!([kind.clone(), "null"]),
        Some(_) | None => {}
    }
    if !["$ref", "allOf", "anyOf", "not"].iter().any(|key| out.contains_key(*key)) {
        return Value::Object(out);
    }
    let description = out.shift_remove("description");
    let mut either = Map::from_iter(description.map(|text| ("description".to_owned(), text)));
    either.insert("anyOf".into(), json!([out, { "type": "null" }]));
    Value::Object(either)
}
