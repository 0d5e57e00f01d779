//! Recordings: the files that `codecall run --record` writes and `codecall replay` reads.
//!
//! A recording is a journal that people can read: each call and each answer is a line of plain JSON. It also contains
//! what the script has looked up about tools, so that a replay needs no tools.

use super::LanguageName;
use agentscript::stateless::{Answer, Issued, Journal, Round, function_name};
use agentscript::{Language, ToolError};
use codecall_base::tool::{ToolDirectory, ToolLookups};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The version of the format.
const VERSION: u32 = 1;

/// A recorded run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Recording {
    /// The version of the format: 1.
    pub version: u32,
    /// The id of the run. The random numbers of the script are derived from it.
    pub id: String,
    /// The time that the script sees, in milliseconds since 1970-01-01 UTC.
    pub started_at: i64,
    /// Digest of the script, its language and its context.
    pub script: String,
    /// The language; `None` if it was detected.
    pub language: Option<LanguageName>,
    /// The `codecallContext` of the script.
    pub context: Option<Box<RawValue>>,
    /// The lookups of the script about tools.
    #[serde(default)]
    pub tools: RecordedTools,
    /// The rounds, in order.
    pub rounds: Vec<RecordedRound>,
    /// The outcome of the run; `None` if it has not ended.
    pub outcome: Option<Box<RawValue>>,
}

/// Calls that were made together, and the answers that came before the next calls.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRound {
    /// The calls, in the order in which the script made them.
    pub calls: Vec<RecordedCall>,
    /// The answers, in the order in which they came.
    #[serde(default)]
    pub answers: Vec<RecordedAnswer>,
    /// When the answers came, in milliseconds since the run began; absent in older recordings.
    #[serde(default)]
    pub ms: Option<u64>,
}

/// A recorded tool call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// The number of the call in the run, from 0.
    pub call: u32,
    /// The name of the tool that the script used.
    pub tool: String,
    /// The input.
    pub input: Box<RawValue>,
}

/// The answer to a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAnswer {
    /// The number of the call.
    pub call: u32,
    /// The result; `None` if the call has failed.
    pub result: Option<Box<RawValue>>,
    /// The error of a call that has failed.
    pub error: Option<RecordedError>,
}

/// The error of a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedError {
    /// The message.
    pub message: String,
    /// The code.
    pub code: String,
    /// Details of the tool.
    pub details: Option<Box<RawValue>>,
    /// Whether the error has ended the run.
    #[serde(default)]
    pub fatal: bool,
}

/// The lookups of a script about tools. Lookups without a result are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedTools {
    /// Apps that were used as objects: `users` of `users.list`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub apps: BTreeSet<Box<str>>,
    /// Tools by their names as members: `users:list` by `users.list`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<Box<str>, Box<str>>,
    /// Tools by their names as global functions: `web_search` by `webSearch`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<Box<str>, Box<str>>,
    /// The property that a plain argument is assigned to, by tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub positional: BTreeMap<Box<str>, Box<str>>,
    /// Results of `getTool`, by the requested name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub described: BTreeMap<String, Json>,
    /// Similar names, by a name that does not exist.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub similar: BTreeMap<String, Vec<String>>,
}

/// JSON as it was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(pub Box<RawValue>);

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Recording {
    /// Parses a recording.
    ///
    /// # Errors
    /// The problem and its place.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            version: Option<u32>,
        }
        let versioned: Version = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if versioned.version != Some(VERSION) {
            return Err(format!("'version' must be {VERSION}: this is no recording, or one of another version"));
        }
        let recording: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let calls = recording.rounds.iter().flat_map(|round| &round.calls);
        match calls.zip(0..).find(|(call, number)| call.call != *number) {
            Some((call, number)) => Err(format!("call {} stands where call {number} must be", call.call)),
            None => Ok(recording),
        }
    }

    /// Returns the journal of the run.
    ///
    /// # Errors
    /// An answer has neither a result nor an error, or both.
    pub fn journal(&self) -> Result<Journal, String> {
        let rounds = self.rounds.iter().enumerate().map(|(number, round)| {
            let calls = round.calls.iter().map(|call| Issued::new(&call.tool, call.input.get())).collect();
            let answers = round.answers.iter().map(|answer| {
                let problem =
                    || format!("round {number}: the answer to call {} needs 'result' or 'error'", answer.call);
                Ok(Answer { call: answer.call, result: answer.to_result().ok_or_else(problem)? })
            });
            Ok(Round { calls, answers: answers.collect::<Result<_, String>>()?, ms: round.ms })
        });
        Ok(Journal {
            id: self.id.clone(),
            unix_ms: self.started_at,
            script: self.script.clone(),
            rounds: rounds.collect::<Result<_, String>>()?,
        })
    }

    /// Returns the language; `None` if it was detected.
    #[must_use]
    pub fn language(&self) -> Option<Language> {
        self.language.map(Into::into)
    }

    /// Returns `codecallContext` as compact JSON, for which the digest was computed.
    #[must_use]
    pub fn context(&self) -> Option<String> {
        self.context.as_ref().map(|context| compact(context.get()))
    }
}

impl RecordedAnswer {
    /// Returns the result or error; `None` if there is neither, or both.
    fn to_result(&self) -> Option<Result<String, ToolError>> {
        match (&self.result, &self.error) {
            (Some(result), None) => Some(Ok(result.get().to_owned())),
            (None, Some(error)) => Some(Err(ToolError {
                message: error.message.clone(),
                code: error.code.clone(),
                details: error.details.as_ref().map(|details| details.get().to_owned()),
                fatal: error.fatal,
            })),
            (Some(_), Some(_)) | (None, None) => None,
        }
    }
}

/// Writes a recording with one line for each call and each answer.
pub struct RecordingWriter<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// The language; `None` if it was detected.
    pub language: Option<Language>,
    /// The `codecallContext` of the script: JSON text.
    pub context: Option<&'a str>,
    /// The lookups of the script about tools.
    pub tools: &'a RecordedTools,
    /// The outcome: JSON text.
    pub outcome: Option<&'a str>,
}

impl RecordingWriter<'_> {
    /// Returns the text of the file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self { journal, language, context, tools, outcome } = self;
        let mut out = String::new();
        let _ = write!(out, "{{\n  \"version\": {VERSION},\n  \"id\": {}", quoted(&journal.id));
        let _ = write!(out, ",\n  \"startedAt\": {},\n  \"script\": {}", journal.unix_ms, quoted(&journal.script));
        if let Some(language) = language {
            let name = serde_json::to_string(&LanguageName::from(*language)).unwrap_or_default();
            let _ = write!(out, ",\n  \"language\": {name}");
        }
        if let Some(context) = context {
            let _ = write!(out, ",\n  \"context\": {context}");
        }
        // Serializing this type never fails.
        let tools = serde_json::to_string(tools).unwrap_or_else(|_| "{}".into());
        let _ = write!(out, ",\n  \"tools\": {tools},\n  \"rounds\": [");
        let mut number = 0..;
        for (at, round) in journal.rounds.iter().enumerate() {
            let calls = round.calls.iter().zip(&mut number);
            let calls = calls.map(|(call, number)| call_line(number, &call.tool, &call.input)).collect::<Vec<_>>();
            let answers = round.answers.iter().map(answer_line).collect::<Vec<_>>();
            out.push_str(if at == 0 { "\n    {\n" } else { ",\n    {\n" });
            let ms = round.ms.map_or_else(String::new, |ms| format!(",\n      \"ms\": {ms}"));
            let _ =
                write!(out, "      \"calls\": {},\n      \"answers\": {}{ms}\n    }}", list(&calls), list(&answers));
        }
        out.push_str(if journal.rounds.is_empty() { "]" } else { "\n  ]" });
        if let Some(outcome) = outcome {
            let _ = write!(out, ",\n  \"outcome\": {outcome}");
        }
        out.push_str("\n}\n");
        out
    }
}

fn list(lines: &[String]) -> String {
    match lines {
        [] => "[]".into(),
        lines => format!("[\n        {}\n      ]", lines.join(",\n        ")),
    }
}

/// Formats a call as one line of JSON. `input` is JSON text.
#[must_use]
pub fn call_line(number: u32, tool: &str, input: &str) -> String {
    format!("{{\"call\": {number}, \"tool\": {}, \"input\": {input}}}", quoted(tool))
}

/// Formats an answer as one line of JSON.
#[must_use]
pub fn answer_line(answer: &Answer) -> String {
    let call = answer.call;
    match &answer.result {
        Ok(result) => format!("{{\"call\": {call}, \"result\": {result}}}"),
        Err(ToolError { message, code, details, fatal }) => {
            let mut error = format!("\"message\": {}, \"code\": {}", quoted(message), quoted(code));
            if let Some(details) = details {
                let _ = write!(error, ", \"details\": {details}");
            }
            if *fatal {
                error.push_str(", \"fatal\": true");
            }
            format!("{{\"call\": {call}, \"error\": {{{error}}}}}")
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Removes white space between the tokens of JSON text. The tokens stay as they are written.
#[must_use]
pub fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_text, mut escaped) = (false, false);
    for c in json.chars() {
        if in_text {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_text = c == '"';
        }
        out.push(c);
    }
    out
}

impl RecordedTools {
    /// Returns the tools that a journal calls, if nothing else is known of them: each as a function of its name, and
    /// as a member of its app.
    #[must_use]
    pub fn from_calls(journal: &Journal) -> Self {
        let mut tools = Self::default();
        tools.add_members(journal);
        for call in journal.rounds.iter().flat_map(|round| &round.calls) {
            let function = function_name(&call.tool);
            for name in function.into_iter().chain([call.tool.clone()]) {
                tools.functions.insert(name.into(), call.tool.as_str().into());
            }
        }
        tools
    }

    /// Adds the tools that a journal has called with success as members of their apps, for a script that was edited.
    pub(super) fn add_members(&mut self, journal: &Journal) {
        let answers = journal.rounds.iter().flat_map(|round| &round.answers);
        let failed: BTreeSet<u32> = answers.filter(|answer| answer.result.is_err()).map(|answer| answer.call).collect();
        let calls = journal.rounds.iter().flat_map(|round| &round.calls);
        for (_, call) in (0..).zip(calls).filter(|(number, _)| !failed.contains(number)) {
            let Some((app, tool)) = call.tool.split_once([':', '.']) else { continue };
            self.apps.insert(app.into());
            self.members.entry(format!("{app}.{tool}").into()).or_insert_with(|| call.tool.as_str().into());
        }
    }

    /// Returns the directory of a replay, which knows nothing else. A description is found by each spelling of its tool.
    #[must_use]
    pub fn into_directory(self) -> ToolDirectory {
        /// The name in a description.
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }

        let Self { apps, members, functions, positional, described, similar } = self;
        let mut descriptions: BTreeMap<String, String> = BTreeMap::new();
        for (name, Json(text)) in described {
            let full: Option<String> = serde_json::from_str(text.get()).ok().map(|Named { name }| name);
            let split = full.as_deref().and_then(|name| name.split_once(':'));
            if let Some((app, tool)) = split {
                for separator in [':', '.', '_'] {
                    let spelling = format!("{app}{separator}{tool}");
                    descriptions.entry(spelling).or_insert_with(|| text.get().to_owned());
                }
            }
            descriptions.insert(name, text.get().to_owned());
        }
        let lookups = ToolLookups { apps, members, functions, positional, descriptions, similar };
        ToolDirectory::from_lookups(lookups).with_meta_tools()
    }
}

impl From<ToolLookups> for RecordedTools {
    /// Leaves out descriptions that are no JSON.
    fn from(lookups: ToolLookups) -> Self {
        let ToolLookups { apps, members, functions, positional, descriptions, similar } = lookups;
        let json = |(name, text)| Some((name, Json(RawValue::from_string(text).ok()?)));
        let described = descriptions.into_iter().filter_map(json).collect();
        Self { apps, members, functions, positional, described, similar }
    }
}
