//! Tools that answer from a file (`--mock-tools`): for scripts in tests.
//!
//! A call gets the first response whose input is the call's and that is not used up. Nothing is
//! guessed: a call that no response fits fails with `NO_MOCK_RESPONSE`.

use super::*;
use codecall_base::error::{Error, mended};
use codecall_base::files;
use codecall_base::tool::{ErrorCode, ToolResult};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The tools of one file.
pub struct Fixture {
    apps: Vec<Arc<App>>,
}

impl Fixture {
    /// Read a file.
    ///
    /// # Errors
    /// It cannot be read or is not a fixture; the text says where it is wrong.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let bytes = files::read(path, files::RECORDING).map_err(|source| Error::Io { path: name.clone(), source })?;
        Self::parse(&bytes).map_err(|problem| Error::Config(format!("{name}{problem}")))
    }

    /// From the text of a file. An error begins with its place: `:line:column: `.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let file: FixtureFile = serde_json::from_slice(text).map_err(|error| {
            let place = format!(" at line {} column {}", error.line(), error.column());
            let message = error.to_string();
            let message = mended(message.strip_suffix(&place).unwrap_or(&message));
            format!(":{}:{}: {message}", error.line(), error.column())
        })?;
        let mut apps: BTreeMap<String, Vec<Mock>> = BTreeMap::new();
        for tool in file.tools.0 {
            let mock = Mock::from(tool);
            apps.entry(mock.definition.app.clone()).or_default().push(mock);
        }
        let apps = apps.into_iter().map(|(name, tools)| Arc::new(App { name, tools })).collect();
        Ok(Self { apps })
    }

    /// Its apps, each with its tools.
    #[must_use]
    pub fn upstreams(&self) -> Vec<Arc<dyn Upstream>> {
        self.apps.iter().map(|app| -> Arc<dyn Upstream> { Arc::clone(app) as _ }).collect()
    }

    /// Begin anew: no response has been given yet.
    pub fn rewind(&self) {
        for response in self.apps.iter().flat_map(|app| &app.tools).flat_map(|tool| &tool.responses) {
            response.given.store(0, Ordering::Relaxed);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureFile {
    tools: Tools,
}

/// Tools with different names.
#[derive(Deserialize)]
#[serde(try_from = "Vec<ToolKeys>")]
struct Tools(Vec<ToolKeys>);

impl TryFrom<Vec<ToolKeys>> for Tools {
    type Error = String;

    fn try_from(tools: Vec<ToolKeys>) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        match tools.iter().find(|tool| !names.insert(&tool.name.0)) {
            Some(twice) => Err(format!("the tool '{}' is there twice", twice.name.0)),
            None => Ok(Self(tools)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ToolKeys {
    name: Name,
    #[serde(default)]
    description: String,
    input_schema: Option<Map<String, Value>>,
    output_schema: Option<Map<String, Value>>,
    responses: Vec<Response>,
    #[serde(default)]
    delay_ms: u64,
}

/// A name that a tool can have.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match name.split_once(':') {
            _ if name.is_empty() => Err("a tool needs a name".into()),
            Some((app, own)) if app.is_empty() || own.is_empty() => {
                Err(format!("'{name}' is not the name of a tool; write 'app:tool'"))
            }
            Some((app, _)) if app.eq_ignore_ascii_case("codecall") => {
                Err(format!("'{name}': tools of codecall itself cannot be mocked"))
            }
            _ => Ok(Self(name)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseKeys {
    input: Option<Map<String, Value>>,
    /// An output of null is one.
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
    error: Option<ErrorKeys>,
    times: Option<NonZeroU32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorKeys {
    message: String,
    code: Option<String>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What a tool answers.
#[derive(Deserialize)]
#[serde(try_from = "ResponseKeys")]
struct Response {
    /// Absent: to any input.
    input: Option<Map<String, Value>>,
    result: Result<Value, ToolError>,
    /// How often; absent: always.
    times: Option<NonZeroU32>,
    given: AtomicU32,
}

impl TryFrom<ResponseKeys> for Response {
    type Error = &'static str;

    fn try_from(ResponseKeys { input, output, error, times }: ResponseKeys) -> Result<Self, &'static str> {
        let result = match (output, error) {
            (Some(output), None) => Ok(output),
            (None, Some(ErrorKeys { message, code })) => {
                Err(ToolError::new(code.unwrap_or_else(|| ErrorCode::ToolExecutionError.into()), message))
            }
            (Some(_), Some(_)) => return Err("a response has either 'output' or 'error', not both"),
            (None, None) => return Err("a response needs 'output' or 'error'"),
        };
        Ok(Self { input, result, times, given: AtomicU32::new(0) })
    }
}

impl Response {
    fn fits(&self, input: &Map<String, Value>) -> bool {
        self.input.as_ref().is_none_or(|wanted| same_object(wanted, input))
    }

    /// Use it once, unless it is used up.
    fn take(&self) -> bool {
        let more = |given: u32| self.times.is_none_or(|times| given < times.get()).then(|| given.saturating_add(1));
        self.given.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// Whether two JSON values are the same to a script: the order of keys does not matter, 1.0 is 1.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => same_object(a, b),
        _ => a == b,
    }
}

fn same_object(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
}

/// One app of a fixture.
struct App {
    name: String,
    tools: Vec<Mock>,
}

/// One tool of a fixture.
struct Mock {
    definition: Arc<ToolDefinition>,
    responses: Vec<Response>,
    delay: Duration,
}

const SOURCE: &str = "mock";

impl From<ToolKeys> for Mock {
    fn from(tool: ToolKeys) -> Self {
        let (app, name) = tool.name.0.split_once(':').unwrap_or(("", &tool.name.0));
        let definition = ToolDefinition {
            app: app.into(),
            name: name.into(),
            description: tool.description,
            input_schema: tool.input_schema.map_or_else(|| json!({ "type": "object" }), Value::Object),
            output_schema: tool.output_schema.map(Value::Object),
            source: SOURCE,
            ..ToolDefinition::default()
        };
        Self {
            definition: Arc::new(definition),
            responses: tool.responses,
            delay: Duration::from_millis(tool.delay_ms),
        }
    }
}

impl Mock {
    /// Which response is given is decided when the call begins, so that `times` goes by the order of
    /// calls.
    async fn answer(&self, input: &Map<String, Value>) -> Result<Value, ToolError> {
        let result = match self.responses.iter().find(|response| response.fits(input) && response.take()) {
            Some(response) => response.result.clone(),
            None => Err(self.no_response(input)),
        };
        tokio::time::sleep(self.delay).await;
        result
    }

    fn no_response(&self, input: &Map<String, Value>) -> ToolError {
        let used_up = self.responses.iter().filter(|response| response.fits(input)).count();
        let name = self.definition.full_name();
        let why = match used_up {
            0 => "fits this input",
            _ => "that fits this input is left",
        };
        ToolError {
            details: Some(json!({ "input": input, "responses": self.responses.len(), "usedUp": used_up }).to_string()),
            ..ToolError::new(ErrorCode::NoMockResponse, format!("No mock response of '{name}' {why}"))
        }
    }
}

impl Upstream for App {
    fn app(&self) -> &str {
        &self.name
    }

    fn source(&self) -> &'static str {
        SOURCE
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|tool| Arc::clone(&tool.definition)).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            match self.tools.iter().find(|tool| tool.definition.name == call.tool.name) {
                Some(tool) => tool.answer(&call.input).await.map(ToolResult::Data),
                None => {
                    let message = format!("There is no tool '{}'", call.tool.full_name());
                    Err(ToolError::new(ErrorCode::ToolNotFound, message))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
