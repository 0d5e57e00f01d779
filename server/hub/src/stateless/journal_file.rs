//! The file of a journal, which `codecall run --record` writes and `codecall replay` reads.
//!
//! It is a journal that people can read: each call and each answer is a line of plain JSON. It also contains
//! what the script has looked up about tools, so that a replay needs no tools.

use super::LanguageName;
use agentscript::stateless::{Answer, Journal, JournalCall, Round, function_name};
use agentscript::{Language, ToolError};
use codecall_base::tool::{ToolDirectory, ToolLookups};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The version of the format.
const VERSION: u32 = 1;

/// The journal of a run, with the rest of what a replay needs.
#[derive(Clone, Debug)]
pub struct JournalFile {
    /// The journal.
    pub journal: Journal,
    /// The language; `None` if it was detected.
    pub language: Option<Language>,
    /// The `codecallContext` of the script: compact JSON text, for which the digest of the journal was computed.
    pub context: Option<String>,
    /// The lookups of the script about tools.
    pub tools: JournalTools,
    /// The outcome of the run: JSON text; `None` if it has not ended.
    pub outcome: Option<String>,
}

/// The members of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct FileMembers {
    #[serde(rename = "version")]
    _version: u32,
    id: String,
    started_at: i64,
    script: String,
    language: Option<LanguageName>,
    context: Option<Box<RawValue>>,
    #[serde(default)]
    tools: JournalTools,
    rounds: Vec<RoundMembers>,
    outcome: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundMembers {
    calls: Vec<CallLine>,
    #[serde(default)]
    answers: Vec<AnswerLine>,
    /// Absent in older files.
    #[serde(default)]
    ms: Option<u64>,
}

/// A line with a call, whose input is plain JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    call: u32,
    tool: String,
    input: Box<RawValue>,
}

/// A line with an answer, whose result or details are plain JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerLine {
    call: u32,
    result: Option<Box<RawValue>>,
    error: Option<ErrorMembers>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorMembers {
    message: String,
    code: String,
    details: Option<Box<RawValue>>,
    #[serde(default)]
    fatal: bool,
}

/// The lookups of a script about tools. Lookups without a result are not recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JournalTools {
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

impl JournalFile {
    /// Parses a file.
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
            return Err(format!("'version' must be {VERSION}: this is no journal, or one of another version"));
        }
        let members: FileMembers = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut numbers = 0_u32..;
        let mut rounds = Vec::with_capacity(members.rounds.len());
        for (number, RoundMembers { calls, answers, ms }) in members.rounds.into_iter().enumerate() {
            let misplaced = calls.iter().zip(&mut numbers).find(|(call, number)| call.call != *number);
            if let Some((call, number)) = misplaced {
                return Err(format!("call {} stands where call {number} must be", call.call));
            }
            let calls = calls.into_iter().map(|line| JournalCall::new(&line.tool, line.input.get())).collect();
            let answer = |line: AnswerLine| {
                let problem = format!("round {number}: the answer to call {} needs 'result' or 'error'", line.call);
                line.into_answer().ok_or(problem)
            };
            let answers = answers.into_iter().map(answer).collect::<Result<_, String>>()?;
            rounds.push(Round { calls, answers, ms });
        }
        let FileMembers { id, started_at, script, language, context, tools, outcome, .. } = members;
        Ok(Self {
            journal: Journal { id, unix_ms: started_at, script, rounds },
            language: language.map(Into::into),
            context: context.map(|context| compact(context.get())),
            tools,
            outcome: outcome.map(|outcome| outcome.get().to_owned()),
        })
    }

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

impl AnswerLine {
    /// Returns the answer; `None` if it has neither a result nor an error, or both.
    fn into_answer(self) -> Option<Answer> {
        let result = match (self.result, self.error) {
            (Some(result), None) => Ok(result.get().to_owned()),
            (None, Some(ErrorMembers { message, code, details, fatal })) => {
                Err(ToolError { message, code, details: details.map(|details| details.get().to_owned()), fatal })
            }
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Answer { call: self.call, result })
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

impl JournalTools {
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

impl From<ToolLookups> for JournalTools {
    /// Leaves out descriptions that are no JSON.
    fn from(lookups: ToolLookups) -> Self {
        let ToolLookups { apps, members, functions, positional, descriptions, similar } = lookups;
        let json = |(name, text)| Some((name, Json(RawValue::from_string(text).ok()?)));
        let described = descriptions.into_iter().filter_map(json).collect();
        Self { apps, members, functions, positional, described, similar }
    }
}
