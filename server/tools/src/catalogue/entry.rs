//! A tool that exists, with what is made of its definition once.

use crate::index::Document;
use crate::signatures::{Signature, Signed};
use codecall_base::schema::{self, CheckError, Schema, SchemaError};
use codecall_base::text::{path_in, truncate};
use codecall_base::tool::{Example, ToolDefinition, ToolDescription};
use codecall_upstream::Upstream;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// One tool that exists.
pub struct Entry {
    /// Its full name.
    pub name: String,
    /// The definition by its upstream.
    pub definition: Arc<ToolDefinition>,
    /// The upstream that answers its calls.
    pub upstream: Arc<dyn Upstream>,
    input: OnceLock<Compiled>,
    output: OnceLock<Compiled>,
    examples: OnceLock<Vec<Example>>,
    /// The description for scripts.
    pub(super) description: Arc<ToolDescription>,
    /// Its lines in lists of signatures.
    signature: Signature,
}

/// A schema as far as it can be used; absent: there is none, and nothing is checked.
type Compiled = Option<Result<Schema, SchemaError>>;

impl Entry {
    pub(super) fn new(definition: Arc<ToolDefinition>, upstream: Arc<dyn Upstream>) -> Self {
        let name = definition.full_name();
        let (input, output, examples, signature) = Default::default();
        let described = Arc::clone(&definition);
        let description = Arc::new(ToolDescription::new(move || Described::new(&described).to_json()));
        Self { name, definition, upstream, input, output, examples, description, signature }
    }

    /// The one tool of an upstream that is in no catalogue.
    pub(crate) fn outside(upstream: Arc<dyn Upstream>) -> Option<Self> {
        let definition = upstream.tools().into_iter().next()?;
        Some(Self::new(definition, upstream))
    }

    /// The compiled schema of its input; absent where the schema is not one.
    ///
    /// # Errors
    /// It is too complex to be checked.
    pub fn validator(&self) -> Option<Result<&Schema, &SchemaError>> {
        self.input.get_or_init(|| self.compiled(&self.definition.input_schema, "input")).as_ref().map(Result::as_ref)
    }

    /// The compiled schema of its result; absent where there is none.
    ///
    /// # Errors
    /// It is too complex to be checked.
    pub fn output_validator(&self) -> Option<Result<&Schema, &SchemaError>> {
        let compile = || self.compiled(self.definition.output_schema.as_ref()?, "output");
        self.output.get_or_init(compile).as_ref().map(Result::as_ref)
    }

    /// Whether an input fits its schema.
    ///
    /// # Errors
    /// It does not; the first reason.
    pub fn fits(&self, input: &Value) -> Result<(), String> {
        let reason = match self.validator() {
            None => return Ok(()),
            Some(Err(unusable)) => unusable.to_string(),
            Some(Ok(schema)) => match schema.check(input) {
                Ok(()) => return Ok(()),
                Err(CheckError::TooComplex) => SchemaError::TooComplex.to_string(),
                Err(CheckError::Errors(errors)) => {
                    let first = errors.first();
                    let place = first.map(|error| path_in(input, &error.instance_path().to_string()));
                    first.zip(place).map(|(error, place)| format!("{place} {error}")).unwrap_or_default()
                }
            },
        };
        Err(format!("the input of '{}' does not fit its schema: {}", self.name, truncate(&reason, 500)))
    }

    /// The examples of its author that are right, as `check` says, which is asked once for each.
    pub fn examples(&self, check: impl Fn(&Example) -> bool) -> &[Example] {
        self.examples
            .get_or_init(|| self.definition.examples.iter().filter(|example| check(example)).cloned().collect())
    }

    /// Estimates the tokens that it takes in a list of tools.
    #[must_use]
    pub fn listed_tokens(&self) -> usize {
        self.signature.listed_tokens(&self.definition)
    }

    fn compiled(&self, schema: &Value, of: &str) -> Compiled {
        match schema::compile(schema) {
            Ok(schema) => Some(Ok(schema)),
            Err(error @ SchemaError::Invalid(_)) => {
                tracing::warn!(tool = self.name, "the {of} schema: {error}; {of} is not checked");
                None
            }
            Err(error @ SchemaError::TooComplex) => {
                tracing::warn!(tool = self.name, "the {of} schema: {error}");
                Some(Err(error))
            }
        }
    }

    /// Returns the description for clients.
    #[must_use]
    pub fn described(&self) -> Value {
        serde_json::to_value(Described::new(&self.definition)).unwrap_or_default()
    }
}

/// The description of a tool for clients.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Described<'a> {
    name: String,
    app_id: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    output_schema: Option<&'a Value>,
    annotations: &'a Map<String, Value>,
}

impl<'a> Described<'a> {
    fn new(tool: &'a ToolDefinition) -> Self {
        Self {
            name: tool.full_name(),
            app_id: &tool.app,
            description: &tool.description,
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_ref(),
            annotations: &tool.annotations,
        }
    }

    fn to_json(&self) -> String {
        // This type has only string keys, so it always has JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Signed for Entry {
    fn tool(&self) -> &ToolDefinition {
        &self.definition
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }
}

impl Document for Arc<Entry> {
    fn tool(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn app_title(&self) -> Option<String> {
        self.upstream.title()
    }
}
