//! What the tools of the shop are made of: one row a tool, its schemas taken from the types of its
//! function.

use agentscript::ToolError;
use codecall_base::tool::{Example, ToolDefinition};
use rusqlite::Connection;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What a tool does, from JSON to JSON.
type Work = Box<dyn Fn(&Connection, Value) -> Result<Value, Failure> + Send + Sync>;

/// One tool of the shop.
pub(super) struct DemoTool {
    pub(super) run: Work,
    /// How long it waits before it works.
    pub(super) duration: Duration,
    name: &'static str,
    description: &'static str,
    tags: &'static [&'static str],
    hints: Hints,
    examples: Vec<Example>,
    input_schema: Value,
    output_schema: Value,
}

/// What a call does to the shop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hints {
    /// Nothing.
    Reads,
    /// It adds; twice adds twice.
    Adds,
    /// It sets a value; twice is once.
    Sets,
    /// It takes something away for good.
    Destroys,
}

/// A row of the table of tools.
pub(super) fn tool<I, O>(
    name: &'static str,
    hints: Hints,
    tags: &'static [&'static str],
    description: &'static str,
    run: fn(&Connection, I) -> Result<O, Failure>,
) -> DemoTool
where
    I: DeserializeOwned + JsonSchema + 'static,
    O: Serialize + JsonSchema + 'static,
{
    let run = move |db: &Connection, input| {
        let input = serde_json::from_value(input).map_err(|error| fail("INVALID_INPUT", error.to_string()))?;
        let output = run(db, input)?;
        serde_json::to_value(output).map_err(|error| fail("INTERNAL_ERROR", error.to_string()))
    };
    DemoTool {
        run: Box::new(run),
        duration: Duration::ZERO,
        name,
        description,
        tags,
        hints,
        examples: Vec::new(),
        input_schema: input_schema::<I>(),
        output_schema: output_schema::<O>(),
    }
}

impl DemoTool {
    /// The same with a usage example.
    pub(super) fn example(mut self, description: &str, code: &str) -> Self {
        self.examples.push(Example { description: description.into(), code: code.into() });
        self
    }

    /// The same, taking its time.
    pub(super) fn takes(mut self, milliseconds: u64) -> Self {
        self.duration = Duration::from_millis(milliseconds);
        self
    }

    /// The tool as the catalogue sees it.
    pub(super) fn definition(&self, app: &str, source: &'static str) -> ToolDefinition {
        ToolDefinition {
            app: app.into(),
            name: self.name.into(),
            title: None,
            description: self.description.into(),
            input_schema: self.input_schema.clone(),
            output_schema: Some(self.output_schema.clone()),
            annotations: self.hints.annotations(),
            tags: self.tags.iter().map(|&tag| tag.into()).collect(),
            examples: self.examples.clone(),
            source,
            ..ToolDefinition::default()
        }
    }
}

impl Hints {
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

/// How a tool of the shop fails.
#[derive(Debug)]
pub(super) struct Failure(pub(super) ToolError);

/// A failure with a code for scripts and a message for people and models.
pub(super) fn fail(code: &str, message: impl Into<String>) -> Failure {
    Failure(ToolError::new(code, message))
}

/// There is no `kind` of that id.
pub(super) fn not_found(kind: &str, id: &str) -> Failure {
    fail("NOT_FOUND", format!("There is no {kind} '{id}'")).with(json!({ "id": id }))
}

impl Failure {
    /// The same with what else is known.
    pub(super) fn with(mut self, details: Value) -> Self {
        self.0.details = Some(details.to_string());
        self
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        fail("DATABASE_ERROR", error.to_string())
    }
}

/// One row that may be missing.
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

fn input_schema<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>(SchemaSettings::draft2020_12().for_deserialize());
    without_null(&mut schema);
    schema
}

fn output_schema<T: JsonSchema>() -> Value {
    schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.shift_remove("title");
    }
    without_widths(&mut schema);
    schema
}

/// How wide a number is in Rust says nothing to a client.
fn without_widths(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, value| key != "format" || !value.as_str().is_some_and(|format| format.contains("int")));
            object.values_mut().for_each(without_widths);
        }
        Value::Array(items) => items.iter_mut().for_each(without_widths),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An optional input is left out, not null.
fn without_null(schema: &mut Value) {
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
            object.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An enumeration that is a word in JSON and in SQL.
macro_rules! words {
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
pub(super) use words;

/// Default size of a page.
pub(super) fn twenty() -> u32 {
    20
}
