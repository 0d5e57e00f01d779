//! Mock tools with responses from a file (`--mock-tools`), for tests of scripts.
//!
//! A call gets the first response with an equal input that is not used up. If there is none, the call fails with
//! `NO_MOCK_RESPONSE`.

use super::*;
use codecall_base::error::{Error, sanitize_serde_error};
use codecall_base::files;
use codecall_base::tool::{ErrorCode, ToolResult};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The mock tools of one file.
pub struct Fixture {
    apps: Vec<Arc<App>>,
}

impl Fixture {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read or is not a fixture; the message names the line and column.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let bytes =
            files::read(path, files::MAX_RECORDING_BYTES).map_err(|source| Error::Io { path: name.clone(), source })?;
        Self::parse(&bytes).map_err(|problem| Error::Config(format!("{name}{problem}")))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// It is not a fixture. The message begins with its position: `:line:column: `.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let file: FixtureFile = serde_json::from_slice(text).map_err(|error| {
            let position = format!(" at line {} column {}", error.line(), error.column());
            let message = error.to_string();
            let message = sanitize_serde_error(message.strip_suffix(&position).unwrap_or(&message));
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

    /// Returns the apps of the file as upstreams.
    #[must_use]
    pub fn upstreams(&self) -> Vec<Arc<dyn Upstream>> {
        self.apps.iter().map(|app| -> Arc<dyn Upstream> { Arc::clone(app) as _ }).collect()
    }

    /// Makes all responses available again.
    pub fn reset(&self) {
        for response in self.apps.iter().flat_map(|app| &app.tools).flat_map(|tool| &tool.responses) {
            response.used.store(0, Ordering::Relaxed);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureFile {
    tools: Tools,
}

/// Tools with distinct names.
#[derive(Deserialize)]
#[serde(try_from = "Vec<ToolKeys>")]
struct Tools(Vec<ToolKeys>);

impl TryFrom<Vec<ToolKeys>> for Tools {
    type Error = String;

    fn try_from(tools: Vec<ToolKeys>) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        match tools.iter().find(|tool| !names.insert(&tool.name.0)) {
            Some(duplicate) => Err(format!("the tool '{}' is defined twice", duplicate.name.0)),
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

/// A valid name of a mock tool.
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
    /// `null` is a valid output, so it is distinguished from a missing one.
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

/// A response of a tool.
#[derive(Deserialize)]
#[serde(try_from = "ResponseKeys")]
struct Response {
    /// The input that it responds to; `None` for any input.
    input: Option<Map<String, Value>>,
    result: Result<Value, ToolError>,
    /// How often it can be used; `None` for any number of times.
    times: Option<NonZeroU32>,
    /// How often it was used.
    used: AtomicU32,
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
        Ok(Self { input, result, times, used: AtomicU32::new(0) })
    }
}

impl Response {
    fn matches(&self, input: &Map<String, Value>) -> bool {
        self.input.as_ref().is_none_or(|wanted| is_equal_object(wanted, input))
    }

    /// Uses it once. Returns whether it was available.
    fn take(&self) -> bool {
        let next = |used: u32| self.times.is_none_or(|times| used < times.get()).then(|| used.saturating_add(1));
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// Whether two JSON values are equal for a script: the order of keys does not matter, and 1.0 equals 1.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => is_equal_object(a, b),
        _ => a == b,
    }
}

fn is_equal_object(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| is_equal(value, other)))
}

/// An app of a fixture.
struct App {
    name: String,
    tools: Vec<Mock>,
}

/// A tool of a fixture.
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
    /// Returns the response to an input, for which its `times` counts.
    fn choose(&self, input: &Map<String, Value>) -> Result<&Response, Box<ToolError>> {
        let fitting = self.responses.iter().find(|response| response.matches(input) && response.take());
        fitting.ok_or_else(|| Box::new(self.no_response(input)))
    }

    fn no_response(&self, input: &Map<String, Value>) -> ToolError {
        let used_up = self.responses.iter().filter(|response| response.matches(input)).count();
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
        let Some(mock) = self.tools.iter().find(|tool| tool.definition.name == call.tool.name) else {
            let message = format!("There is no tool '{}'", call.tool.full_name());
            return Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::ToolNotFound, message))));
        };
        // Before the delay, so that `times` follows the order of the calls.
        let chosen = mock.choose(&call.input);
        Box::pin(async move {
            // A sleep of no time lasts until the next tick of the timer, a millisecond.
            if !mock.delay.is_zero() {
                tokio::time::sleep(mock.delay).await;
            }
            match chosen {
                Ok(response) => response.result.clone().map(ToolResult::Data),
                Err(error) => Err(*error),
            }
        })
    }
}

#[cfg(test)]
mod tests;
