//! The meta-tools: what a client sees of everything. One file each.
//!
//! To add one, write a file with a type that implements [`MetaTool`] and name it in [`ALL`].

mod code_execution;
mod describe;
mod examples;
mod execute;
mod invoke;
mod search;
mod step;

use crate::hub::Hub;
use codecall_base::call::Caller;
use codecall_base::event::Watcher;
use codecall_base::offload::{self, weight};
use codecall_base::tool::{MAX_NAME_BYTES, NameStyle};
use codecall_config::Config;
use codecall_tools::typescript;
use codecall_upstream::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// Longest text of what is wrong with a request, in bytes.
const LONGEST_PROBLEM: usize = 2_048;
/// Most names in one list of a request.
const MOST_NAMES: usize = 2_000;

/// All meta-tools in the order of the list.
pub static ALL: [&dyn MetaTool; 6] = [
    &search::Search,
    &describe::Describe,
    &execute::Execute,
    &invoke::Invoke,
    &code_execution::CodeExecution,
    &step::Step,
];

/// A tool of the server itself.
pub trait MetaTool: Send + Sync {
    /// Its name without the prefix: `search`.
    fn id(&self) -> &'static str;
    /// The name that it is listed under, where that is not made from its id.
    fn own_name(&self) -> Option<&'static str> {
        None
    }
    /// Whether the configuration has it at all.
    fn is_enabled(&self, config: &Config) -> bool {
        let _ = config;
        true
    }
    /// A name for people.
    fn title(&self) -> &'static str;
    /// What it does, for a model.
    fn description(&self) -> &'static str;
    /// JSON schema of a request.
    fn input_schema(&self) -> Value;
    /// JSON schema of an answer.
    fn output_schema(&self) -> Value;
    /// MCP annotations: an object.
    fn annotations(&self) -> Value;
    /// Answer a request.
    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer>;
}

/// A request to a meta-tool.
pub struct Request<'a> {
    /// Everything there is.
    pub hub: &'a Hub,
    /// The arguments: an object.
    pub arguments: Value,
    /// Who is told what happens.
    pub watcher: Watcher,
    /// Fires when nobody wants the answer any more.
    pub cancel: CancellationToken,
}

/// What a meta-tool answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result as the contract shapes it: an object. A string where the request was refused: what
    /// to mend.
    pub value: Value,
    /// Whether it is a failure for the client.
    pub is_error: bool,
    /// More for machines: an object with `codecall/stats`.
    pub meta: Option<Value>,
}

impl Answer {
    fn ok(value: Value) -> Self {
        Self { value, is_error: false, meta: None }
    }

    /// A request that nobody waits for any more.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::refused("The request was cancelled".into())
    }

    /// A request that does not fit, or that comes too often: what to do about it.
    #[must_use]
    pub fn refused(text: String) -> Self {
        Self { value: Value::String(text), is_error: true, meta: None }
    }
}

/// The listed name of a meta-tool.
#[must_use]
pub fn spelled(tool: &dyn MetaTool, names: NameStyle) -> String {
    match tool.own_name() {
        Some(name) => name.to_owned(),
        None => format!("codecall{}{}", names.separator(), tool.id()),
    }
}

/// The meta-tool of that name: in any of the three spellings, or the one it has of its own.
#[must_use]
pub fn named(name: &str) -> Option<&'static dyn MetaTool> {
    if let Some(tool) = ALL.into_iter().find(|tool| tool.own_name() == Some(name)) {
        return Some(tool);
    }
    let id = name.strip_prefix("codecall")?.strip_prefix([':', '.', '_'])?;
    ALL.into_iter().find(|tool| tool.id() == id)
}

/// Call a meta-tool by any of its spellings; absent: there is none of that name.
pub async fn call(
    hub: &Hub,
    name: &str,
    arguments: Value,
    watcher: Watcher,
    cancel: CancellationToken,
) -> Option<Answer> {
    let tool = named(name)?;
    if !tool.is_enabled(hub.config()) {
        return None;
    }
    if cancel.run_until_cancelled(hub.begun()).await.is_none() {
        return Some(Answer::cancelled());
    }
    let pipeline = hub.pipeline();
    let mut answer = match pipeline.count_meta(tool.id()) {
        Ok(()) => tool.answer(Request { hub, arguments, watcher, cancel }).await,
        Err(error) => {
            let refused = Answer::refused(error.message.clone());
            let context = hub.context(Caller::Direct, None, cancel);
            pipeline.refused(&format!("codecall:{}", tool.id()), context, arguments, error);
            refused
        }
    };
    let weight = weight(&answer.value);
    let cleaned = offload::run(weight, || pipeline.secrets().redact_value(&mut answer.value)).await;
    Some(cleaned.map_or_else(|busy| Answer::refused(busy.to_string()), |()| answer))
}

/// Read the arguments of a request.
fn read<T: DeserializeOwned>(tool: &dyn MetaTool, arguments: Value) -> Result<T, Box<Answer>> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let problem = codecall_base::error::sanitize_serde_error(&error.inner().to_string(), &[]);
        Box::new(refusal(tool, &codecall_base::error::with_path(&error.path().to_string(), &problem)))
    })
}

/// A refusal that says what a request looks like.
fn refusal(tool: &dyn MetaTool, problem: &str) -> Answer {
    let schema = tool.input_schema();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members: Vec<String> = schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let kind = typescript::type_of(schema, schema);
            format!("{name}{}: {kind}", if required.contains(&name.as_str()) { "" } else { "?" })
        })
        .collect();
    let problem = codecall_base::text::truncate(problem, LONGEST_PROBLEM);
    Answer::refused(format!("Invalid arguments: {problem}. Expected {{ {} }}", members.join(", ")))
}

/// One text or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "wrong value, expected a list of strings")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// NameStyle of tools, apps or tags that somebody may have given to something.
///
/// # Errors
/// There are too many, or one is too long.
fn names(key: &str, names: Texts) -> Result<Vec<String>, String> {
    let names = names.into_vec();
    if names.len() > MOST_NAMES {
        return Err(format!("'{key}' has {} entries; give at most {MOST_NAMES}", names.len()));
    }
    match names.iter().find(|name| name.len() > MAX_NAME_BYTES) {
        Some(long) => Err(format!("'{key}' has an entry of {} bytes; names have at most {MAX_NAME_BYTES}", long.len())),
        None => Ok(names),
    }
}

/// An object, or the JSON text of one: models write both.
fn object(value: Value) -> Result<Map<String, Value>, &'static str> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        Value::String(text) => serde_json::from_str(&text).map_err(|_| "must be an object"),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => Err("must be an object"),
    }
}

fn strings(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

#[cfg(test)]
mod tests;
