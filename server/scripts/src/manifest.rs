//! The manifest of a script tool, in a block of TOML at the beginning of the file or in a file beside it.
//!
//! Each field is a key. An unknown key is an error that names the nearest one.

use crate::Problem;
use agentscript::{Policy, Preset};
use codecall_base::error::sanitize_serde_error;
use codecall_base::tool::Approval;
use codecall_config::{HostRule, is_name, vm};
use codecall_upstream::fetch::RecordedResponse;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// How long a call of a tool may take, unless its manifest says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time limit of a call.
const MAX_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The manifest of a tool.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Manifest {
    /// A display name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose of the tool, for those who choose between tools. Required.
    pub description: String,
    /// JSON schema of the parameters, which are an object. A parameter with a `default` may be left out. Default: made from
    /// the type of the first parameter of `execute` in TypeScript, else any object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Map<String, Value>>,
    /// JSON schema of the data that the tool returns. Default: any data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Map<String, Value>>,
    /// Names of the secrets that `config` contains, of the workspace of the configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The hosts that `fetch` may reach. Without hosts the tool has no `fetch`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostRule>,
    /// Names or patterns of the tools that it may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How long a call may take, the tools that it calls included. `vm.toolTimeoutMs` applies too.
    #[serde(rename = "timeoutMs", serialize_with = "to_ms", deserialize_with = "from_ms")]
    pub timeout: Duration,
    /// Limits that are lower than those of `vm` of the configuration, by the same names.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub limits: Map<String, Value>,
    /// Examples, which are shown to those who call the tool, and run by `codecall tool test`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Tags that filters can match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When a person has to approve a call: `always`, `once` for each client, or `never`. Rules of the configuration come
    /// first. Default: as the annotations and the configuration say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// The effects of the tool on the world.
    pub annotations: Annotations,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            title: None,
            description: String::new(),
            parameters: None,
            result: None,
            secrets: Vec::new(),
            hosts: Vec::new(),
            tools: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            limits: Map::new(),
            examples: Vec::new(),
            tags: Vec::new(),
            approval: None,
            annotations: Annotations::default(),
        }
    }
}

/// The effects of a tool on the world: the annotations of MCP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Annotations {
    /// Whether it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// Whether it may delete or overwrite something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same parameters changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Whether it reaches something outside, such as the web.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A call of the tool, and what it returns.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Example {
    /// The purpose of the example.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The parameters.
    pub params: Map<String, Value>,
    /// Values of secrets for the test. Those that are left out are missing in `config`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// Recorded answers of the tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// Recorded responses to its requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<RecordedResponse>,
    /// The expected data.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// The expected error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The recorded answer of a tool.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Answer {
    /// The full name of the tool.
    pub tool: String,
    /// The input that it answers; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// The result.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AnswerError>,
    /// How often it can be used; `None`: any number of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<NonZeroU32>,
}

/// A recorded failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AnswerError {
    /// Its message.
    pub message: String,
    /// Its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Reads a value that is present. `null` is one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn to_ms<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn from_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = Duration::from_millis(u64::deserialize(deserializer)?);
    if duration.is_zero() || duration > MAX_TIMEOUT {
        let max = MAX_TIMEOUT.as_millis();
        return Err(D::Error::custom(format!("timeoutMs must be between 1 and {max} milliseconds")));
    }
    Ok(duration)
}

/// How a manifest is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestFormat {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

/// The block of TOML at the beginning of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    /// Its text.
    pub text: &'a str,
    /// The lines before it.
    pub lines_before: u32,
}

impl<'a> Placed<'a> {
    /// Finds the block `/*--- … ---*/`, before which only line comments may stand. `None`: there is none.
    ///
    /// # Errors
    /// The block does not end.
    pub fn find(source: &'a str) -> Result<Option<Self>, Problem> {
        let mut rest = source.trim_start_matches('\u{feff}').trim_start();
        while rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        }
        let Some(inner) = rest.strip_prefix("/*").map(|inner| inner.trim_start_matches([' ', '\t'])) else {
            return Ok(None);
        };
        let Some(inner) = inner.strip_prefix("---") else { return Ok(None) };
        let begin = source.len() - inner.len();
        let end = inner.find("*/").unwrap_or(inner.len());
        match inner[..end].trim_end_matches([' ', '\t']).strip_suffix("---") {
            Some(text) => Ok(Some(Self { text, lines_before: lines(&source[..begin]) })),
            None => Err(Problem::new("the manifest does not end")
                .with_hint("end it with a line '---*/'")
                .at(source, begin + end)),
        }
    }
}

fn lines(text: &str) -> u32 {
    u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX)
}

impl Manifest {
    /// Parses a text. `lines_before` are the lines of its file before it.
    ///
    /// # Errors
    /// It is not TOML or JSON, or a key is unknown or has a wrong value.
    pub fn parse(text: &str, format: ManifestFormat, lines_before: u32) -> Result<Self, Problem> {
        let (parsed, place) = match format {
            ManifestFormat::Toml => match toml::from_str::<Self>(text) {
                Ok(parsed) => (Ok(parsed), None),
                Err(error) => {
                    let at = error.span().map(|span| span.start);
                    (Err(error.message().to_owned()), at.map(|at| Problem::new("").at(text, at)))
                }
            },
            ManifestFormat::Json => match serde_json::from_str::<Self>(text) {
                Ok(parsed) => (Ok(parsed), None),
                Err(error) => {
                    let (line, column) = (error.line() as u32, error.column() as u32);
                    let message = error.to_string();
                    let message = message.strip_suffix(&format!(" at line {line} column {column}"));
                    let message = message.map_or_else(|| error.to_string(), str::to_owned);
                    let source_line = text.lines().nth(error.line().saturating_sub(1)).map(Box::from);
                    let (line, column) = (Some(line), Some(column));
                    (Err(message), Some(Problem { line, column, source_line, ..Problem::new("") }))
                }
            },
        };
        let manifest = parsed.map_err(|message| {
            let place = place.unwrap_or_else(|| Problem::new(""));
            let line = place.line.map(|line| line.saturating_add(lines_before));
            Problem { line, message: sanitize_serde_error(&message), ..place }
        })?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Problem> {
        let wrong = |message: String| Err(Problem::new(message));
        if self.description.trim().is_empty() {
            return wrong("the manifest needs 'description': what the tool does".into());
        }
        if let Some(name) = self.secrets.iter().find(|name| !is_name(name)) {
            return wrong(format!(
                "secrets: '{name}' is not the name of a secret: write letters, digits, '_', '-', '.'"
            ));
        }
        if self.tools.iter().any(|tool| tool.trim().is_empty()) {
            return wrong("tools: write names or patterns of tools, such as 'users:list' or 'users:*'".into());
        }
        if [&self.parameters, &self.result].into_iter().flatten().any(|schema| has_date(&Value::Object(schema.clone())))
        {
            return wrong("a schema contains a date of TOML; write it as a text in quotes".into());
        }
        self.policy(&Policy::preset(Preset::Experimental)).map_err(Problem::new)?;
        for (at, example) in self.examples.iter().enumerate() {
            let path = format!("examples[{at}]");
            if example.data.is_some() && example.error.is_some() {
                return wrong(format!("{path}: give 'data' or 'error', not both"));
            }
            if let Some(name) = example.secrets.keys().find(|name| !self.secrets.contains(name)) {
                return wrong(format!("{path}.secrets: '{name}' is not one of 'secrets' of the manifest"));
            }
            if let Some(answer) =
                example.answers.iter().find(|answer| answer.output.is_some() == answer.error.is_some())
            {
                return wrong(format!("{path}: the answer of '{}' needs either 'output' or 'error'", answer.tool));
            }
        }
        Ok(())
    }

    /// Returns the limits of the tool's runs, on top of those of the configuration.
    ///
    /// # Errors
    /// A limit does not exist or has a wrong value.
    pub fn policy(&self, base: &Policy) -> Result<Policy, String> {
        let mut policy = base.clone();
        policy.limits.max_duration_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        Ok(Policy { fetch: !self.hosts.is_empty(), ..vm::lowered(&policy, self.limits.clone())? })
    }
}

/// Whether a value of TOML contains a date, which serde represents as a table.
fn has_date(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("$__toml_private_datetime") || members.values().any(has_date),
        Value::Array(items) => items.iter().any(has_date),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml(text: &str) -> Result<Manifest, String> {
        Manifest::parse(text, ManifestFormat::Toml, 0).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_block_stands_before_all_code() {
        let found = |source| Placed::find(source).map_err(|problem| problem.to_string());
        assert_eq!(found("/*---\na = 1\n---*/\ncode"), Ok(Some(Placed { text: "\na = 1\n", lines_before: 0 })));
        assert_eq!(found("// x\n\n/* --- \na = 1\n--- */"), Ok(Some(Placed { text: " \na = 1\n", lines_before: 2 })));
        assert_eq!(found("code /*--- ---*/"), Ok(None));
        assert_eq!(found("/* a comment */"), Ok(None));
        assert_eq!(found("//"), Ok(None));
        assert_eq!(
            found("/*---\na = 1\n*/").map(drop),
            Err(":3:1: the manifest does not end; end it with a line '---*/'".into())
        );
    }

    #[test]
    fn errors_name_the_key_and_its_line() {
        for (text, expected) in [
            ("description = 'x'\ntag = ['a']", ":2:1: unknown key 'tag'; did you mean 'tags'?"),
            ("description = 'x'\ntimeoutMs = 0", ":2:13: timeoutMs must be between 1 and 3600000 milliseconds"),
            ("tags = []", ": the manifest needs 'description': what the tool does"),
            (
                "description = 'x'\nsecrets = ['a b']",
                ": secrets: 'a b' is not the name of a secret: write letters, digits, '_', '-', '.'",
            ),
            ("description = 'x'\n[limits]\nmaxStep = 3", ": limits: unknown key 'maxStep'; did you mean 'maxSteps'?"),
            (
                "description = 'x'\n[[examples]]\ndata = 1\nerror = 'x'",
                ": examples[0]: give 'data' or 'error', not both",
            ),
            (
                "description = 'x'\n[parameters]\ndefault = 2020-01-01",
                ": a schema contains a date of TOML; write it as a text in quotes",
            ),
            ("description = 3", ":1:15: wrong value, expected a string"),
        ] {
            assert_eq!(toml(text).map(drop), Err(expected.to_owned()), "{text}");
        }
        let json = "{\"description\": \"x\",\n \"hostss\": 1}";
        let problem = Manifest::parse(json, ManifestFormat::Json, 0).expect_err("an unknown key");
        assert!(problem.to_string().starts_with(":2:9: unknown key 'hostss'"), "{problem}");
        assert!(toml("description = ").expect_err("no TOML").starts_with(":1:15: "));
    }

    #[test]
    fn a_manifest_lowers_limits() {
        let manifest =
            toml("description = 'x'\ntimeoutMs = 5000\n[limits]\nmaxSteps = 10\nmaxToolCalls = 100000").expect("valid");
        let base = Policy::default();
        let policy = manifest.policy(&base).expect("a policy");
        assert_eq!((policy.limits.max_duration_ms, policy.limits.max_steps), (5_000, 10));
        assert_eq!(policy.limits.max_tool_calls, base.limits.max_tool_calls);
        assert_eq!(toml("description = 'x'").expect("valid").timeout, DEFAULT_TIMEOUT);
    }
}
