//! The meta-tools: what a client sees of everything. One file each.
//!
//! To add one, write a file with a type that implements [`MetaTool`] and name it in [`ALL`].

mod code_execution;
mod describe;
mod examples;
mod execute;
mod invoke;
mod schema;
mod search;
mod step;

use crate::hub::Hub;
use codecall_base::call::Caller;
use codecall_base::event::Watcher;
use codecall_base::offload::{self, weight};
use codecall_base::tool::{LONGEST_NAME, Names, OWN_NAMES};
use codecall_config::Config;
use codecall_tools::typescript;
use codecall_upstream::BoxFuture;
use schemars::JsonSchema;
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
    /// Its name without the prefix: `search`. One in [`OWN_NAMES`] is listed without a prefix.
    fn id(&self) -> &'static str;
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

/// Returns the name under which a meta-tool is listed.
#[must_use]
pub fn listed_name(tool: &dyn MetaTool, names: Names) -> String {
    match tool.id() {
        id if OWN_NAMES.contains(&id) => id.to_owned(),
        id => format!("codecall{}{id}", names.separator()),
    }
}

/// Returns the meta-tool of a name, with any of the three prefixes or the unprefixed name of [`OWN_NAMES`].
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn MetaTool> {
    let unprefixed = || name.strip_prefix("codecall")?.strip_prefix([':', '.', '_']);
    let id = if OWN_NAMES.contains(&name) { name } else { unprefixed()? };
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
    let tool = find(name)?;
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
    let cleaned = offload::run(weight, || pipeline.secrets().value(&mut answer.value)).await;
    Some(cleaned.map_or_else(|busy| Answer::refused(busy.to_string()), |()| answer))
}

/// Read the arguments of a request.
fn read<T: DeserializeOwned>(tool: &dyn MetaTool, arguments: Value) -> Result<T, Box<Answer>> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let problem = codecall_base::error::mended(&error.inner().to_string(), &[]);
        Box::new(refusal(tool, &codecall_base::error::placed(&error.path().to_string(), &problem)))
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
    let problem = codecall_base::text::cut(problem, LONGEST_PROBLEM);
    Answer::refused(format!("Invalid arguments: {problem}. Expected {{ {} }}", members.join(", ")))
}

/// A list of strings, or one string: models write both.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "wrong value, expected a list of strings")]
#[schemars(with = "Vec<String>")]
enum StringOrList {
    One(String),
    Many(Vec<String>),
}

impl StringOrList {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// An object, or the JSON text of one: models write both.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "Map<String, Value>")]
struct ObjectOrText(Value);

impl ObjectOrText {
    /// The object; empty where it is left out.
    fn into_optional_map(this: Option<Self>) -> Result<Map<String, Value>, &'static str> {
        this.map_or_else(|| Ok(Map::new()), Self::into_map)
    }

    fn into_map(self) -> Result<Map<String, Value>, &'static str> {
        match self.0 {
            Value::Object(members) => Ok(members),
            Value::String(text) => serde_json::from_str(&text).map_err(|_| "must be an object"),
            Value::Null | Value::Array(_) | Value::Bool(_) | Value::Number(_) => Err("must be an object"),
        }
    }

    fn weight(&self) -> usize {
        weight(&self.0)
    }
}

/// Names of tools, apps or tags that somebody may have given to something.
///
/// # Errors
/// There are too many, or one is too long.
fn names(key: &str, names: StringOrList) -> Result<Vec<String>, String> {
    let names = names.into_vec();
    if names.len() > MOST_NAMES {
        return Err(format!("'{key}' has {} entries; give at most {MOST_NAMES}", names.len()));
    }
    match names.iter().find(|name| name.len() > LONGEST_NAME) {
        Some(long) => Err(format!("'{key}' has an entry of {} bytes; names have at most {LONGEST_NAME}", long.len())),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests;
