//! Recorded runs: the file that `codecall run --record` writes and `codecall replay` plays.
//!
//! A recording is a journal for people to read: calls and answers are JSON as they were, not texts or
//! digests, one line each. It holds what the script has found out about tools, so that it is played
//! without any.

use super::LanguageName;
use agentscript::stateless::{Answer, ClientTools, Issued, Journal, Round, function_name};
use agentscript::{Language, ToolError, Tools};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The version of the format.
const VERSION: u32 = 1;

/// A run that was recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Recording {
    /// The version of the format: 1.
    pub version: u32,
    /// Names the run. Random numbers of the script follow from it.
    pub id: String,
    /// The time that the script sees, in milliseconds since 1970-01-01 UTC.
    pub started_at: i64,
    /// Digest of the script, its language and its context.
    pub script: String,
    /// The language; absent: found out.
    pub language: Option<LanguageName>,
    /// What the script sees as `codecallContext`.
    pub context: Option<Box<RawValue>>,
    /// What the script has found out about tools.
    #[serde(default)]
    pub tools: Directory,
    /// The rounds, in their order.
    pub rounds: Vec<RecordedRound>,
    /// How the run has ended, as its caller saw it; absent: it has not.
    pub outcome: Option<Box<RawValue>>,
}

/// Calls that were made together, and answers that came before the next ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedRound {
    /// The calls, in the order the script made them.
    pub calls: Vec<RecordedCall>,
    /// The answers, in the order they came.
    #[serde(default)]
    pub answers: Vec<RecordedAnswer>,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// Its number in the run, from 0.
    pub call: u32,
    /// The tool, as the script named it.
    pub tool: String,
    /// The input.
    pub input: Box<RawValue>,
}

/// The answer to a call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAnswer {
    /// Number of the call.
    pub call: u32,
    /// The result …
    pub result: Option<Box<RawValue>>,
    /// … or the error.
    pub error: Option<RecordedError>,
}

/// Why a call failed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedError {
    /// For the script.
    pub message: String,
    /// The code.
    pub code: String,
    /// Whatever else was known.
    pub details: Option<Box<RawValue>>,
    /// Whether it has ended the run.
    #[serde(default)]
    pub fatal: bool,
}

/// What a script has found out about tools. What it asked for in vain is not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Directory {
    /// Apps: `users` of `users.list`.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub apps: BTreeSet<String>,
    /// Tools by the names that scripts write: `users:list` by `users.list`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, String>,
    /// Tools that are functions by themselves: `web_search` by `webSearch`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, String>,
    /// The property that a plain value means, by tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub positional: BTreeMap<String, String>,
    /// What `getTool` gave, by the name that was asked for: JSON texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub described: BTreeMap<String, Json>,
    /// Names that were near to one that does not exist.
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
    /// Read a recording.
    ///
    /// # Errors
    /// What is wrong, with its place.
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

    /// The journal of the run.
    ///
    /// # Errors
    /// An answer is neither a result nor an error.
    pub fn journal(&self) -> Result<Journal, String> {
        let rounds = self.rounds.iter().enumerate().map(|(number, round)| {
            let calls = round.calls.iter().map(|call| Issued::new(&call.tool, call.input.get())).collect();
            let answers = round.answers.iter().map(|answer| {
                let problem =
                    || format!("round {number}: the answer to call {} needs 'result' or 'error'", answer.call);
                Ok(Answer { call: answer.call, result: answer.told().ok_or_else(problem)? })
            });
            Ok(Round { calls, answers: answers.collect::<Result<_, String>>()? })
        });
        Ok(Journal {
            id: self.id.clone(),
            unix_ms: self.started_at,
            script: self.script.clone(),
            rounds: rounds.collect::<Result<_, String>>()?,
        })
    }

    /// The language it was written in, where that was said.
    #[must_use]
    pub fn language(&self) -> Option<Language> {
        self.language.map(Into::into)
    }

    /// What the script saw as `codecallContext`: JSON text, as the digest knows it.
    #[must_use]
    pub fn context(&self) -> Option<String> {
        self.context.as_ref().map(|context| without_space(context.get()))
    }
}

impl RecordedAnswer {
    fn told(&self) -> Option<Result<String, ToolError>> {
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

/// A recording as it is written: one line for each call and each answer.
pub struct Written<'a> {
    /// The journal.
    pub journal: &'a Journal,
    /// The language, where it was said.
    pub language: Option<Language>,
    /// What the script saw as `codecallContext`: JSON text.
    pub context: Option<&'a str>,
    /// What it has found out about tools.
    pub tools: &'a Directory,
    /// How it has ended: JSON text.
    pub outcome: Option<&'a str>,
}

impl Written<'_> {
    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
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
        // Of this type, always written.
        let tools = serde_json::to_string(tools).unwrap_or_else(|_| "{}".into());
        let _ = write!(out, ",\n  \"tools\": {tools},\n  \"rounds\": [");
        let mut number = 0..;
        for (at, round) in journal.rounds.iter().enumerate() {
            let calls = round.calls.iter().zip(&mut number);
            let calls = calls.map(|(call, number)| call_line(number, &call.tool, &call.input)).collect::<Vec<_>>();
            let answers = round.answers.iter().map(answer_line).collect::<Vec<_>>();
            out.push_str(if at == 0 { "\n    {\n" } else { ",\n    {\n" });
            let _ = write!(out, "      \"calls\": {},\n      \"answers\": {}\n    }}", list(&calls), list(&answers));
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

/// A call as one line of JSON; `input` is JSON text.
#[must_use]
pub fn call_line(number: u32, tool: &str, input: &str) -> String {
    format!("{{\"call\": {number}, \"tool\": {}, \"input\": {input}}}", quoted(tool))
}

/// An answer as one line of JSON.
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

/// JSON without white space between its parts; what the parts are stays as it is written.
#[must_use]
pub fn without_space(json: &str) -> String {
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

impl Directory {
    /// The tools that a journal names, where nothing else is known of them: each is a function by its
    /// own name, and a member of its app.
    #[must_use]
    pub fn of_calls(journal: &Journal) -> Self {
        let mut directory = Self::default();
        for call in journal.rounds.iter().flat_map(|round| &round.calls) {
            if let Some((app, tool)) = call.tool.split_once(':') {
                directory.apps.insert(app.to_owned());
                directory.members.insert(format!("{app}.{tool}"), call.tool.clone());
            }
            let function = function_name(&call.tool);
            for name in function.into_iter().chain([call.tool.clone()]) {
                directory.functions.insert(name, call.tool.clone());
            }
        }
        directory
    }
}

impl Tools for Directory {
    fn describe(&self, name: &str) -> Option<String> {
        self.described.get(name).map(|told| told.0.get().to_owned())
    }

    fn is_app(&self, app: &str) -> bool {
        self.apps.contains(app)
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        self.members.get(&format!("{app}.{tool}")).cloned()
    }

    fn function(&self, name: &str) -> Option<String> {
        self.functions.get(name).cloned()
    }

    fn positional(&self, tool: &str) -> Option<String> {
        self.positional.get(tool).cloned()
    }

    fn similar(&self, name: &str) -> Vec<String> {
        self.similar.get(name).cloned().unwrap_or_default()
    }

    fn is_reserved(&self, name: &str) -> bool {
        codecall_base::tool::is_reserved(name)
    }
}

/// Every call has reached somebody before: there is nothing left to be refused.
impl ClientTools for Directory {}
