//! Defines the tools of the shop: one row for each tool. Its schemas are derived from the types of its function.

use agentscript::ToolError;
use codecall_base::tool::{ErrorCode, Example, ToolDefinition};
use rusqlite::Connection;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The function of a tool, from JSON to JSON.
type Function = Box<dyn Fn(&Connection, Value) -> Result<Value, Failure> + Send + Sync>;

/// A tool of the shop.
pub(super) struct DemoTool {
    pub(super) run: Function,
    /// How long a call waits before the function runs.
    pub(super) delay: Duration,
    name: &'static str,
    description: &'static str,
    tags: &'static [&'static str],
    effect: Effect,
    examples: Vec<Example>,
    input_schema: Value,
    output_schema: Value,
}

/// What a call does to the data of the shop, for the tool's annotations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only reads.
    Reads,
    /// It adds something; a second call adds it again.
    Adds,
    /// It sets a value; a second call changes nothing.
    Sets,
    /// It removes something for good.
    Destroys,
}

/// Creates a tool.
pub(super) fn tool<I, O>(
    name: &'static str,
    effect: Effect,
    tags: &'static [&'static str],
    description: &'static str,
    run: fn(&Connection, I) -> Result<O, Failure>,
) -> DemoTool
where
    I: DeserializeOwned + JsonSchema + 'static,
    O: Serialize + JsonSchema + 'static,
{
    let run = move |db: &Connection, input| {
        let input = serde_json::from_value(input).map_err(|error| fail(ErrorCode::InvalidInput, error.to_string()))?;
        let output = run(db, input)?;
        serde_json::to_value(output).map_err(|error| fail("INTERNAL_ERROR", error.to_string()))
    };
    DemoTool {
        run: Box::new(run),
        delay: Duration::ZERO,
        name,
        description,
        tags,
        effect,
        examples: Vec::new(),
        input_schema: input_schema(SchemaGenerator::root_schema_for::<I>),
        output_schema: output_schema(SchemaGenerator::root_schema_for::<O>),
    }
}

impl DemoTool {
    /// Adds a usage example.
    pub(super) fn with_example(mut self, description: &str, code: &str) -> Self {
        self.examples.push(Example { description: description.into(), code: code.into() });
        self
    }

    /// Delays each call.
    pub(super) fn with_delay(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    /// Returns the definition for the catalogue.
    pub(super) fn definition(&self, app: &str, source: &'static str) -> ToolDefinition {
        ToolDefinition {
            app: app.into(),
            name: self.name.into(),
            title: None,
            description: self.description.into(),
            input_schema: self.input_schema.clone(),
            output_schema: Some(self.output_schema.clone()),
            annotations: self.effect.annotations(),
            tags: self.tags.iter().map(|&tag| tag.into()).collect(),
            examples: self.examples.clone(),
            source,
            ..ToolDefinition::default()
        }
    }
}

impl Effect {
    fn annotations(self) -> Map<String, Value> {
        [
            ("readOnlyHint", self == Self::Reads),
            ("destructiveHint", self == Self::Destroys),
            ("idempotentHint", matches!(self, Self::Reads | Self::Sets)),
            ("openWorldHint", false),
        ]
        .into_iter()
        .map(|(hint, value)| (hint.into(), value.into()))
        .collect()
    }
}

/// An error of a tool of the shop.
#[derive(Debug)]
pub(super) struct Failure(pub(super) ToolError);

/// Creates a failure with a code for scripts and a message for people and models.
pub(super) fn fail(code: impl Into<String>, message: impl Into<String>) -> Failure {
    Failure(ToolError::new(code, message))
}

/// Creates the failure for an unknown id of a `kind` of record.
pub(super) fn not_found(kind: &str, id: &str) -> Failure {
    fail("NOT_FOUND", format!("There is no {kind} '{id}'")).with_details(json!({ "id": id }))
}

impl Failure {
    /// Adds details.
    pub(super) fn with_details(mut self, details: Value) -> Self {
        self.0.details = Some(details.to_string());
        self
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        fail("DATABASE_ERROR", error.to_string())
    }
}

/// Converts the result of a query for one row.
pub(super) trait OrNotFound<T> {
    fn or_not_found(self, kind: &str, id: &str) -> Result<T, Failure>;
}

impl<T> OrNotFound<T> for rusqlite::Result<T> {
    fn or_not_found(self, kind: &str, id: &str) -> Result<T, Failure> {
        self.map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => not_found(kind, id),
            other => other.into(),
        })
    }
}

/// Makes the schema of a type. It is a pointer, so that what becomes of the schema is compiled once, not for each type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

fn input_schema(of: SchemaOf) -> Value {
    let mut schema = schema(SchemaSettings::draft2020_12().for_deserialize(), of);
    remove_null(&mut schema);
    schema
}

fn output_schema(of: SchemaOf) -> Value {
    schema(SchemaSettings::draft2020_12().for_serialize(), of)
}

fn schema(settings: SchemaSettings, of: SchemaOf) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = of(&mut settings.into_generator()).to_value();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("title");
    }
    remove_integer_formats(&mut schema);
    schema
}

/// Removes formats such as `int64`: the width of a Rust integer is of no use to a client.
fn remove_integer_formats(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, value| key != "format" || !value.as_str().is_some_and(|format| format.contains("int")));
            object.values_mut().for_each(remove_integer_formats);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_integer_formats),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes `null` from the types of optional inputs: they are left out instead.
fn remove_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|word| word != "null");
                if let [one] = types.as_slice() {
                    object["type"] = one.clone();
                }
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            object.retain(|key, value| key != "default" || !value.is_null());
            object.values_mut().for_each(remove_null);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Defines an enum that is a string in JSON and in SQL.
macro_rules! string_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $vis enum $name { $(#[serde(rename = $word)] $variant),+ }

        impl $name {
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                Ok(self.as_str().into())
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(value: rusqlite::types::ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
                match value.as_str()? {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(rusqlite::types::FromSqlError::InvalidType),
                }
            }
        }
    };
}
pub(super) use string_enum;

/// Returns the default size of a page.
pub(super) fn default_limit() -> u32 {
    20
}
