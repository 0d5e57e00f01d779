//! The input of a tool: one object with the parameters by name, and the body as `body`.

use crate::body::Body;
use crate::document::{Context, Resolver};
use crate::limits::{MAX_INPUT_SCHEMA_BYTES, MAX_NOTE_BYTES};
use crate::parameter::{Described, Parameter, Place};
use crate::schema::{Converter, Detail, Direction};
use codecall_base::text::truncate;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The input of a tool, and what becomes of it.
pub struct Input {
    pub schema: Value,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
}

impl Input {
    /// Builds the input of an operation.
    ///
    /// # Errors
    /// The body cannot be sent.
    pub fn new<'a>(
        resolver: &Resolver<'a>,
        parameters: &[Described<'a>],
        body: Option<(Context<'a>, &'a Value)>,
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        for detail in [Detail::Full, Detail::Structure] {
            let mut converter = Converter::new(resolver, Direction::Input, detail, MAX_INPUT_SCHEMA_BYTES);
            let input = Self::build(resolver, &mut converter, parameters, body)?;
            if !converter.is_shortened() || detail == Detail::Structure {
                notes.extend(converter.problem());
                if converter.is_shortened() {
                    notes.push("its input schema is not complete, because it would be too long".into());
                }
                return Ok(input);
            }
        }
        unreachable!("the second detail returns")
    }

    fn build<'a>(
        resolver: &Resolver<'a>,
        converter: &mut Converter<'_, 'a>,
        parameters: &[Described<'a>],
        body: Option<(Context<'a>, &'a Value)>,
    ) -> Result<Self, String> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        if body.is_some() {
            counts.insert("body", 1);
        }
        for parameter in parameters {
            *counts.entry(parameter.name).or_default() += 1;
        }
        let mut properties = Map::new();
        let mut required: Vec<Value> = Vec::new();
        let mut used = Vec::new();
        for parameter in parameters {
            let mut key = parameter.name.to_owned();
            if counts.get(parameter.name).is_some_and(|count| *count > 1) {
                key = format!("{}_{key}", parameter.place.as_str());
            }
            while properties.contains_key(&key) {
                key.push('_');
            }
            properties.insert(key.clone(), parameter_schema(converter, parameter));
            if parameter.required {
                required.push(key.clone().into());
            }
            used.push(parameter.parameter(key));
        }
        let mut sent = None;
        if let Some((context, body)) = body {
            match Body::read(resolver, converter, context, body) {
                Ok(Some((body, schema, is_required))) => {
                    properties.insert("body".into(), schema);
                    if is_required {
                        required.push("body".into());
                    }
                    sent = Some(body);
                }
                Ok(None) => {}
                Err(reason) => return Err(reason),
            }
        }
        let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        let definitions = converter.definitions();
        if !definitions.is_empty() {
            schema["$defs"] = Value::Object(definitions);
        }
        Ok(Self { schema, parameters: used, body: sent })
    }
}

fn parameter_schema<'a>(converter: &mut Converter<'_, 'a>, parameter: &Described<'a>) -> Value {
    let schema = parameter.schema.map(|(context, schema)| converter.schema(context, schema));
    let mut schema = match schema {
        Some(Value::Object(members)) => members,
        Some(_) => Map::new(),
        // The description says nothing of its type.
        None if parameter.place == Place::Path => Map::from_iter([("type".to_owned(), "string".into())]),
        None => Map::new(),
    };
    if !parameter.description.is_empty() {
        // First, as a person would read it.
        schema.shift_remove("description");
        let text = truncate(parameter.description, MAX_NOTE_BYTES);
        schema.shift_insert(0, "description".into(), text.into());
    }
    if parameter.place == Place::Path {
        // What is empty would lead to another path.
        let least = match schema.get("type").and_then(Value::as_str) {
            Some("array") => Some("minItems"),
            Some("object") => Some("minProperties"),
            Some(_) | None => None,
        };
        if let Some(least) = least
            && schema.get(least).is_none_or(|count| *count == 0)
        {
            schema.insert(least.to_owned(), 1.into());
        }
    }
    if parameter.deprecated {
        schema.insert("deprecated".into(), true.into());
    }
    Value::Object(schema)
}
