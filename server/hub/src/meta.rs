//! The meta-tools: the tools of the server itself, one file each.
//!
//! To add one, write a file with a type that implements [`MetaTool`], and add the type to [`ALL`].

mod code_execution;
mod describe;
mod examples;
mod execute;
mod invoke;
mod lenient;
mod outline;
mod run_script;
mod save_script;
mod schema;
mod search;
mod step;
pub mod submit;
mod waiting;

pub use code_execution::policy as code_execution_policy;

use crate::hub::{Hub, Offer};
use codecall_base::call::Caller;
use codecall_base::client::Client;
use codecall_base::event::EventSink;
use codecall_base::offload::{self, weight};
use codecall_base::redact::Redactor;
use codecall_base::tool::{MAX_NAME_BYTES, NameStyle, RESERVED_NAMES, ToolError};
use codecall_config::Config;
use codecall_tools::signatures::SignatureList;
use codecall_tools::typescript;
use codecall_upstream::BoxFuture;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;
use tokio_util::sync::CancellationToken;
pub use waiting::{ended as kept_answer, kept, kept_failure, resume_runs, until_ended};

/// Maximum length of the description of an invalid request, in bytes.
const MAX_PROBLEM_BYTES: usize = 2_048;
/// Maximum number of names in a list of a request.
const MAX_NAMES: usize = 2_000;

/// All meta-tools, in the order in which they are listed.
pub static ALL: [&dyn MetaTool; 8] = [
    &search::Search,
    &describe::Describe,
    &execute::Execute,
    &invoke::Invoke,
    &save_script::SaveScript,
    &run_script::RunScript,
    &code_execution::CodeExecution,
    &step::Step,
];

/// A tool of the server itself.
pub trait MetaTool: Send + Sync {
    /// Its name without the prefix: `search`. One in [`RESERVED_NAMES`] is listed without a prefix.
    fn id(&self) -> &'static str;
    /// Whether the configuration enables it.
    fn is_enabled(&self, config: &Config) -> bool {
        let _ = config;
        true
    }
    /// Returns a display name for people.
    fn title(&self) -> &'static str;
    /// Returns the description for a model.
    fn description(&self) -> &'static str;
    /// Returns the JSON schema of the arguments.
    fn input_schema(&self) -> Value;
    /// The arguments that the list of tools has: those that models need; `filter.appIds` is one member of an object. The others are
    /// accepted too. `None`: all.
    fn listed_arguments(&self) -> Option<&'static [&'static str]> {
        None
    }
    /// Returns the JSON schema of an answer.
    fn output_schema(&self) -> Value;
    /// Returns the MCP annotations.
    fn annotations(&self) -> ToolAnnotations;
    /// Answers a request.
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer>;
}

/// How a caller gets a long result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A first piece that is short enough for a model, and a handle with which it reads on.
    ToModel,
    /// The first piece, and a handle with which it reads on.
    InPieces,
    /// At once: it cannot read on.
    AtOnce,
}

/// A request to a meta-tool.
pub struct Request<'a> {
    /// The hub of the process.
    pub hub: &'a Hub,
    /// The arguments: an object.
    pub arguments: Value,
    /// The client that tools can ask.
    pub client: Client,
    /// How a long result comes.
    pub delivery: Delivery,
    /// Receives the events of the run or call.
    pub sink: EventSink,
    /// Cancelled when the client no longer waits for the answer.
    pub cancel: CancellationToken,
}

/// The answer of a meta-tool.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result, or why there is none.
    pub content: AnswerContent,
    /// The content for a model, in fewer tokens than its JSON; `None`: its JSON.
    pub text: Option<String>,
    /// The `isError` of the result.
    pub is_error: bool,
    /// The `_meta` of the result, with `codecall/stats`.
    pub meta: Option<Map<String, Value>>,
}

/// The content of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerContent {
    /// An object of the output schema.
    Structured(Value),
    /// The reason why the request was refused, and what to change.
    Refusal(String),
}

impl Answer {
    /// Creates an answer with an object of the output schema.
    fn structured(value: Value, is_error: bool) -> Self {
        Self { content: AnswerContent::Structured(value), text: None, is_error, meta: None }
    }

    fn ok(value: Value) -> Self {
        Self::structured(value, false)
    }

    /// Returns the answer to a cancelled request.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::refused("The request was cancelled".into())
    }

    /// Returns an answer whose text for a model is not the JSON of its object.
    fn with_text(value: Value, text: String) -> Self {
        Self { text: Some(text), ..Self::ok(value) }
    }

    /// Returns the answer to a request that is invalid or exceeds a limit. `text` says what to do.
    #[must_use]
    pub fn refused(text: String) -> Self {
        Self { content: AnswerContent::Refusal(text), text: None, is_error: true, meta: None }
    }

    /// Returns the answer to a request that a check of the pipeline refuses: its code and message as text, code and details
    /// in `_meta`, as for the tools of upstreams.
    fn refused_with(error: &ToolError) -> Self {
        let details: Option<Value> = error.details.as_deref().and_then(|details| serde_json::from_str(details).ok());
        let mut text = format!("{}: {}", error.code, error.message);
        if let Some(wait) = details.as_ref().and_then(|details| details.get("retryAfterMs")) {
            text.push_str(&format!(" (retryAfterMs: {wait})"));
        }
        let mut data = json!({"code": error.code});
        if let Some(details) = details {
            data["details"] = details;
        }
        let meta = Map::from_iter([("codecall/error".to_owned(), data)]);
        Self::refused(text).with_meta(meta)
    }

    /// Adds the `_meta` of the result.
    fn with_meta(self, meta: Map<String, Value>) -> Self {
        Self { meta: Some(meta), ..self }
    }
}

impl AnswerContent {
    /// Returns the object, or the reason as a string.
    #[must_use]
    pub fn into_value(self) -> Value {
        match self {
            Self::Structured(value) => value,
            Self::Refusal(text) => text.into(),
        }
    }

    /// Returns about how many bytes the content has.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Structured(value) => weight(value),
            Self::Refusal(text) => text.len(),
        }
    }

    fn redact(&mut self, secrets: &Redactor) {
        match self {
            Self::Structured(value) => secrets.redact_value(value),
            Self::Refusal(text) => secrets.redact_string(text),
        }
    }
}

/// Returns the name under which a meta-tool is listed.
#[must_use]
pub fn listed_name(tool: &dyn MetaTool, names: NameStyle) -> String {
    match tool.id() {
        id if RESERVED_NAMES.contains(&id) => id.to_owned(),
        id => format!("codecall{}{id}", names.separator()),
    }
}

/// Returns the meta-tools that an offer lists, in their order.
pub fn listed<'a>(config: &'a Config, offer: &'a Offer) -> impl Iterator<Item = &'static dyn MetaTool> + 'a {
    let is_listed = |tool: &&dyn MetaTool| {
        tool.is_enabled(config) && offer.lists(tool.id()) && config.tools.settings.lists(tool.id())
    };
    ALL.into_iter().filter(is_listed)
}

/// Returns the JSON schema of the arguments as the list of tools has it.
#[must_use]
pub fn listed_schema(tool: &dyn MetaTool) -> Value {
    let mut schema = input_schema(tool).clone();
    let (Some(names), Some(members)) = (tool.listed_arguments(), schema.as_object_mut()) else { return schema };
    members.shift_remove("additionalProperties");
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        keep_listed(properties, names);
        properties.values_mut().for_each(without_words);
    }
    schema
}

/// Keeps the properties of these names; `filter.appIds` keeps one member of `filter`.
fn keep_listed(properties: &mut Map<String, Value>, names: &[&str]) {
    let is_kept = |name: &str| names.iter().any(|kept| kept.split('.').next() == Some(name));
    properties.retain(|name, _| is_kept(name));
    for (name, member) in names.iter().filter_map(|name| name.split_once('.')) {
        if let Some(members) = properties.get_mut(name).and_then(|schema| schema["properties"].as_object_mut()) {
            keep_listed(members, &[member]);
        }
    }
}

/// Removes descriptions and bounds.
fn without_words(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "items" | "enum"));
    members.get_mut("items").into_iter().for_each(without_words);
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(|properties| properties.values_mut()).for_each(without_words);
}

/// Returns what a model reads of a meta-tool in a list.
#[must_use]
pub fn listed_json(tool: &dyn MetaTool) -> Value {
    let name = listed_name(tool, NameStyle::Underscore);
    json!({"name": name, "description": tool.description(), "input_schema": listed_schema(tool)})
}

/// Returns the length of the description of `execute` without signatures, in characters.
#[must_use]
pub fn execute_description_chars() -> usize {
    execute::Execute.description().chars().count() + execute::MAX_HEADING_CHARS
}

/// Returns the description of `execute` with signatures of tools.
#[must_use]
pub fn execute_description(signatures: &SignatureList) -> String {
    execute::with_signatures(signatures)
}

/// Returns the meta-tool of a name, with any of the three prefixes or the unprefixed name of [`RESERVED_NAMES`].
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn MetaTool> {
    let unprefixed = || name.strip_prefix("codecall")?.strip_prefix([':', '.', '_']);
    let id = if RESERVED_NAMES.contains(&name) { name } else { unprefixed()? };
    ALL.into_iter().find(|tool| tool.id() == id)
}

/// Adds the key of a request to its arguments, if it begins a run that can be found again.
#[must_use]
pub fn with_key(hub: &Hub, name: &str, mut arguments: Map<String, Value>, key: Option<&str>) -> Map<String, Value> {
    let is_dry_run = arguments.get("dryRun").is_some_and(|dry| dry == true);
    let begins_run = !is_dry_run && arguments.get("script").is_some_and(|script| !script.is_null());
    if let Some(key) = key
        && begins_run
        && find(name).is_some_and(|tool| tool.id() == "execute")
        && hub.config().durable.enabled
    {
        arguments.entry("idempotencyKey").or_insert_with(|| key.into());
    }
    arguments
}

/// Calls a meta-tool by any of its names; `None` if there is no enabled one of that name.
pub async fn call(
    hub: &Hub,
    name: &str,
    arguments: Value,
    sink: EventSink,
    cancel: CancellationToken,
) -> Option<Answer> {
    let client = Client::default();
    call_with(name, Request { hub, arguments, client, delivery: Delivery::InPieces, sink, cancel }).await
}

/// Does the same for a client of MCP, which tools can ask, and whose answers a model reads.
pub fn call_for<'a>(
    hub: &'a Hub,
    name: &str,
    arguments: Value,
    client: Client,
    sink: EventSink,
    cancel: CancellationToken,
) -> BoxFuture<'a, Option<Answer>> {
    call_with(name, Request { hub, arguments, client, delivery: Delivery::ToModel, sink, cancel })
}

/// Does the same for a command, which gets a long result whole.
pub async fn call_for_command(hub: &Hub, name: &str, arguments: Value, cancel: CancellationToken) -> Option<Answer> {
    let client = Client::default();
    call_with(name, Request { hub, arguments, client, delivery: Delivery::AtOnce, sink: None, cancel }).await
}

fn call_with<'a>(name: &str, request: Request<'a>) -> BoxFuture<'a, Option<Answer>> {
    let hub = request.hub;
    let Some(tool) = find(name).filter(|tool| tool.is_enabled(hub.config())) else {
        return Box::pin(std::future::ready(None));
    };
    Box::pin(async move {
        let answer = begin(tool, request).await.await;
        Some(Box::pin(redacted(hub, answer)).await)
    })
}

/// Asks the pipeline, and begins to answer.
async fn begin<'a>(tool: &'static dyn MetaTool, request: Request<'a>) -> BoxFuture<'a, Answer> {
    let pipeline = request.hub.pipeline();
    match pipeline.before_meta(tool.id()).await {
        Ok(()) => tool.answer(request),
        Err(error) => {
            let refused = Answer::refused_with(&error);
            let context = request.hub.context(Caller::Direct, None, request.cancel);
            pipeline.refused(&format!("codecall:{}", tool.id()), context, request.arguments, error);
            Box::pin(std::future::ready(refused))
        }
    }
}

/// Redacts the secrets in an answer.
async fn redacted(hub: &Hub, mut answer: Answer) -> Answer {
    let text_bytes = answer.text.as_ref().map_or(0, String::len);
    let weight = answer.content.weight() + text_bytes + answer.meta.as_ref().map_or(0, offload::weight_of);
    let redact = || {
        let redactor = hub.secrets().redactor();
        answer.content.redact(&redactor);
        answer.text.iter_mut().for_each(|text| redactor.redact_string(text));
        // Its calls were logged without the secrets of that time.
        answer.meta.iter_mut().for_each(|meta| redactor.redact_members(meta));
    };
    match offload::run(weight, redact).await {
        Ok(()) => answer,
        Err(busy) => Answer::refused(busy.to_string()),
    }
}

/// Returns the input schema of a meta-tool, which is made once.
fn input_schema(tool: &dyn MetaTool) -> &'static Value {
    static SCHEMAS: LazyLock<HashMap<&'static str, Value>> =
        LazyLock::new(|| ALL.iter().map(|tool| (tool.id(), tool.input_schema())).collect());
    SCHEMAS.get(tool.id()).unwrap_or(&Value::Null)
}

/// Deserializes the arguments of a request.
fn parse<T: DeserializeOwned>(tool: &dyn MetaTool, arguments: Value) -> Result<T, InvalidArguments> {
    let arguments = lenient::converted(arguments, input_schema(tool));
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let problem = codecall_base::error::sanitize_serde_error(&error.inner().to_string());
        InvalidArguments::new(tool, &codecall_base::error::with_path(&error.path().to_string(), &problem))
    })
}

/// The problem with the arguments of a request, and the arguments that are expected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct InvalidArguments(String);

impl InvalidArguments {
    fn new(tool: &dyn MetaTool, problem: &str) -> Self {
        let schema = tool.input_schema();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let members: Vec<String> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, schema)| {
                let kind = typescript::type_of(schema, schema);
                format!("{name}{}: {kind}", if required.contains(&name.as_str()) { "" } else { "?" })
            })
            .collect();
        let problem = codecall_base::text::truncate(problem, MAX_PROBLEM_BYTES);
        Self(format!("Invalid arguments: {problem}. Expected {{ {} }}", members.join(", ")))
    }
}

impl From<InvalidArguments> for Answer {
    fn from(InvalidArguments(text): InvalidArguments) -> Self {
        Self::refused(text)
    }
}

/// An object. Another value is refused by the name of its argument.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "Map<String, Value>")]
struct Members(Value);

impl Members {
    /// The object; empty where it is left out.
    fn into_optional_map(this: Option<Self>) -> Result<Map<String, Value>, &'static str> {
        this.map_or_else(|| Ok(Map::new()), Self::into_map)
    }

    fn into_map(self) -> Result<Map<String, Value>, &'static str> {
        match self.0 {
            Value::Object(members) => Ok(members),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
                Err("must be an object")
            }
        }
    }

    fn weight(&self) -> usize {
        weight(&self.0)
    }
}

/// Returns the names of tools, apps or tags in the argument `key`.
///
/// # Errors
/// There are too many, or one is too long.
fn parse_names(key: &str, names: Vec<String>) -> Result<Vec<String>, String> {
    if names.len() > MAX_NAMES {
        return Err(format!("'{key}' has {} entries; give at most {MAX_NAMES}", names.len()));
    }
    match names.iter().position(|name| name.len() > MAX_NAME_BYTES) {
        Some(at) => Err(format!("'{key}[{at}]' has {} bytes; names have at most {MAX_NAME_BYTES}", names[at].len())),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests;
