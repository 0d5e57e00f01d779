//! The outcome of a run, and its JSON for clients.

use crate::interface::error_code::ErrorCode;
use crate::interface::host::CallId;
use crate::text::quote::quote;
use agentscript_lang::{Code, Diagnostic, Location, Refusal};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Most bytes of the `message` and the `hint` of a failure, and of each frame list; longer texts are cut, with a note.
pub const MAX_MESSAGE_BYTES: usize = 8 << 10;
/// Most bytes of the `code`, the `name` and the `toolName` of a failure.
pub const MAX_NAME_BYTES: usize = 256;
/// Most bytes of the `toolInput` of a failure. Of a longer one the beginning of its JSON text is there, as a string.
pub const MAX_TOOL_INPUT_BYTES: usize = 2 << 10;
/// Most bytes of the `details` of a failure. Longer ones become a string with a note.
pub const MAX_DETAILS_BYTES: usize = 64 << 10;
/// Most bytes of the note of a cut.
const SAID: usize = 64;
/// Bytes of the end of a text that are kept where its middle is cut.
const TAIL: usize = 96;

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The result as JSON text, or what went wrong.
    pub result: Result<String, Box<Failure>>,
    /// What the author of the script should know, bounded in number and length: first promises that are used as if they were
    /// their results, each with the place of the missing `await`; then what of the result its JSON text does not hold.
    pub warnings: Vec<String>,
    /// Whether the result is `undefined`, whose text is `null`.
    pub is_undefined: bool,
    /// What the script logged, in order.
    pub logs: Vec<String>,
    /// What the run used.
    pub stats: Stats,
    /// Tool calls that had no answer when the run ended, in the order of the calls; no more than
    /// [`MAX_UNANSWERED`] of them.
    pub unanswered: Vec<Unanswered>,
    /// Whether it awaited a promise that nothing can settle.
    pub deadlocked: bool,
}

/// Most unanswered calls that an outcome lists.
pub const MAX_UNANSWERED: usize = 100;

/// A call that had no answer when its run ended: it had lost a `race`, or the run ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unanswered {
    /// Its number.
    pub id: CallId,
    /// The tool, as the script names it.
    pub tool: String,
    /// The input: JSON text of an object.
    pub input: String,
    /// Whether the host was handed it; else nothing has happened.
    pub started: bool,
    /// Whether the script awaited it. It did not where nobody held its promise, or where it had lost a `race`, an `any`
    /// or a rejected `all`.
    pub awaited: bool,
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// From start to end, in milliseconds.
    pub duration_ms: f64,
    /// The script's own time, in milliseconds.
    pub script_ms: f64,
    /// Steps.
    pub steps: u64,
    /// Loop bodies entered.
    pub iterations: u64,
    /// Tool calls made.
    pub tool_calls: u64,
    /// Most memory that was in use, in bytes.
    pub peak_memory_bytes: u64,
}

/// The discriminant of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// The script gave a result.
    Ok,
    /// The text is not AgentScript.
    SyntaxError,
    /// The script uses what it may not.
    IllegalAccess,
    /// The script failed.
    RuntimeError,
    /// A tool failed, and the script did not catch it.
    ToolError,
    /// The run took too long.
    Timeout,
}

impl Status {
    /// The status as clients see it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::SyntaxError => "syntax_error",
            Self::IllegalAccess => "illegal_access",
            Self::RuntimeError => "runtime_error",
            Self::ToolError => "tool_error",
            Self::Timeout => "timeout",
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Which kind of failure.
    pub status: Status,
    /// Stable code.
    pub code: String,
    /// For a reader who can repair the script.
    pub message: String,
    /// For `illegal_access`: what kind of thing was refused.
    pub refusal: Option<Refusal>,
    /// For `runtime_error`: name of the error.
    pub name: Option<String>,
    /// What to write instead, if that is known and not in `message`.
    pub hint: Option<String>,
    /// Frames of the script, as V8 prints them.
    pub stack: Option<String>,
    /// Where.
    pub location: Option<Location>,
    /// For `tool_error`: which tool.
    pub tool_name: Option<String>,
    /// For `tool_error`: JSON text of its input.
    pub tool_input: Option<String>,
    /// For `tool_error`: JSON text of what else is known.
    pub details: Option<String>,
    /// For scripts that were not compiled: everything that is wrong with them.
    pub issues: Vec<Issue>,
    /// Whether it is a rejection that nobody has handled, or the exception of a callback; not one of the main function.
    pub unhandled: bool,
    /// How many tool calls the host was handed; a server counts those that have reached a tool.
    pub tool_calls: u64,
}

/// One of several things that are wrong with a script.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Issue {
    /// The diagnostic.
    pub diagnostic: Diagnostic,
    /// Where.
    pub location: Location,
}

impl Failure {
    /// A failure with nothing but the essentials; `code` and `message` are cut at [`MAX_NAME_BYTES`] and [`MAX_MESSAGE_BYTES`].
    pub fn new(status: Status, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            code: cut(code.into(), MAX_NAME_BYTES),
            message: cut(message.into(), MAX_MESSAGE_BYTES),
            refusal: None,
            name: None,
            hint: None,
            stack: None,
            location: None,
            tool_name: None,
            tool_input: None,
            details: None,
            issues: Vec::new(),
            unhandled: false,
            tool_calls: 0,
        }
    }

    /// A failure with a code of the table, which has its status.
    pub fn from_code(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::new(code.status(), code, message)
    }

    /// Cut each text at its bound: [`MAX_MESSAGE_BYTES`], [`MAX_NAME_BYTES`], [`MAX_TOOL_INPUT_BYTES`], [`MAX_DETAILS_BYTES`]. For hosts
    /// that make or change a failure; those of runs are cut already.
    pub fn cut(&mut self) {
        let shorten = |text: &mut String, most: usize| *text = cut(std::mem::take(text), most);
        shorten(&mut self.code, MAX_NAME_BYTES);
        shorten(&mut self.message, MAX_MESSAGE_BYTES);
        let names = [&mut self.name, &mut self.tool_name];
        names.into_iter().flatten().for_each(|name| shorten(name, MAX_NAME_BYTES));
        [&mut self.stack, &mut self.hint].into_iter().flatten().for_each(|text| shorten(text, MAX_MESSAGE_BYTES));
        for (text, most) in [(&mut self.tool_input, MAX_TOOL_INPUT_BYTES), (&mut self.details, MAX_DETAILS_BYTES)] {
            if let Some(json) = text.take_if(|json| json.len() > most) {
                *text = Some(cut_json(&json, most));
            }
        }
    }

    /// The failure of a script that was not compiled.
    #[must_use]
    pub fn from_diagnostics(source: &str, diagnostics: Vec<Diagnostic>) -> Self {
        let issues: Vec<Issue> = diagnostics
            .into_iter()
            .map(|diagnostic| Issue { location: diagnostic.location(source), diagnostic })
            .collect();
        let Some(first) = issues.first() else {
            return Self::new(Status::SyntaxError, Code::SyntaxError.as_str(), "the script is not valid");
        };
        let status = match first.diagnostic.code {
            Code::SyntaxError | Code::ScriptTooLarge => Status::SyntaxError,
            Code::ValidationError | Code::LoopNotAllowed | Code::SelfReferenceBlocked => Status::IllegalAccess,
        };
        Self {
            refusal: first.diagnostic.refusal,
            location: Some(first.location),
            ..Self::new(status, first.diagnostic.code.as_str(), described(&first.diagnostic))
        }
        .with_issues(issues)
    }

    fn with_issues(mut self, issues: Vec<Issue>) -> Self {
        self.issues = issues;
        self
    }
}

/// The message of a diagnostic with its hint, as one text.
fn described(diagnostic: &Diagnostic) -> String {
    let mut text = cut_text(&diagnostic.message, MAX_MESSAGE_BYTES / 2);
    if let Some(hint) = &diagnostic.hint {
        text.push_str(": ");
        text.push_str(&cut_text(hint, MAX_MESSAGE_BYTES / 4));
    }
    text
}

/// A text of no more than `most` bytes, or its beginning and end with its length: `beginning… (120000000 bytes, cut)
/// …end`.
pub(crate) fn cut(text: String, most: usize) -> String {
    // A cut text is a few bytes longer, because of the note.
    if text.len() <= most + SAID { text } else { cut_text(&text, most) }
}

/// The same for a borrowed text.
pub(crate) fn cut_text(text: &str, most: usize) -> String {
    if text.len() <= most { text.to_owned() } else { cut_bytes(text.as_bytes(), most) }
}

/// WTF-8 as a text of no more than `most` bytes; of a longer one only the beginning and the end are read.
pub(crate) fn cut_message_bytes(text: &[u8], most: usize) -> String {
    if text.len() <= most { crate::text::wtf8::lossy(text).into_owned() } else { cut_bytes(text, most) }
}

/// The beginning and the end of a longer text in WTF-8, because the end is often what matters. No character is cut in its
/// middle.
pub(crate) fn cut_bytes(text: &[u8], most: usize) -> String {
    let is_boundary = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let start = (0..=most - TAIL).rev().find(is_boundary).unwrap_or(0);
    let end = (text.len() - TAIL..=text.len()).find(is_boundary).unwrap_or(text.len());
    let (start, end) = (crate::text::wtf8::lossy(&text[..start]), crate::text::wtf8::lossy(&text[end..]));
    format!("{start}… ({} bytes, cut) …{end}", text.len())
}

/// JSON text of no more than `most` bytes, or its beginning as a JSON string.
pub(crate) fn cut_json(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    // Quoting can double the length of the beginning.
    quote(&cut_text(text, most / 2), &mut out);
    out
}

impl Outcome {
    /// The outcome of a script that was not compiled.
    #[must_use]
    pub fn not_compiled(failure: Box<Failure>) -> Self {
        Self {
            result: Err(failure),
            warnings: Vec::new(),
            is_undefined: false,
            logs: Vec::new(),
            stats: Stats::default(),
            unanswered: Vec::new(),
            deadlocked: false,
        }
    }

    /// The status of the outcome.
    #[must_use]
    pub fn status(&self) -> Status {
        self.result.as_ref().map_or_else(|failure| failure.status, |_| Status::Ok)
    }

    /// The outcome as clients see it: one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.to_json_with("")
    }

    /// The same with further members from the host, which follow the result, or the members of the error: JSON text
    /// without braces.
    #[must_use]
    pub fn to_json_with(&self, members: &str) -> String {
        let comma = if members.is_empty() { "" } else { "," };
        let mut out = String::new();
        let _ = write!(out, "{{\"status\":\"{}\"", self.status().as_str());
        match &self.result {
            Ok(result) => {
                let _ = write!(out, ",\"result\":{result}{comma}{members}");
            }
            Err(failure) => {
                let error = failure.to_json();
                let error = error.strip_suffix('}').unwrap_or(&error);
                let _ = write!(out, ",\"error\":{error}{comma}{members}}}");
            }
        }
        for (name, lines) in [("warnings", &self.warnings), ("logs", &self.logs)] {
            if lines.is_empty() {
                continue;
            }
            let _ = write!(out, ",\"{name}\":[");
            for (index, line) in lines.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                quote(line, &mut out);
            }
            out.push(']');
        }
        out.push('}');
        out
    }
}

impl Failure {
    /// The `error` object that clients see: one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut object = Object::new();
        object.text("code", &self.code);
        match self.status {
            Status::RuntimeError => object.text("source", "script"),
            Status::ToolError => object.text("source", "tool"),
            Status::Ok | Status::SyntaxError | Status::IllegalAccess | Status::Timeout => {}
        }
        if let Some(refusal) = self.refusal {
            object.text("kind", refusal.as_str());
        }
        object.optional("toolName", self.tool_name.as_deref());
        object.json("toolInput", self.tool_input.as_deref());
        object.text("message", &self.message);
        object.optional("hint", self.hint.as_deref());
        object.optional("name", self.name.as_deref());
        object.optional("stack", self.stack.as_deref());
        object.json("details", self.details.as_deref());
        if let Some(location) = self.location {
            object.json("location", Some(&location_json(location)));
        }
        if self.unhandled {
            object.json("unhandled", Some("true"));
        }
        if !self.issues.is_empty() && self.status == Status::IllegalAccess {
            let issues: Vec<String> = self.issues.iter().map(Issue::to_json).collect();
            object.json("issues", Some(&format!("[{}]", issues.join(","))));
        }
        object.json("toolCalls", Some(&self.tool_calls.to_string()));
        object.finish()
    }
}

impl Issue {
    fn to_json(&self) -> String {
        let mut object = Object::new();
        object.text("code", self.diagnostic.code.as_str());
        object.optional("kind", self.diagnostic.refusal.map(Refusal::as_str));
        object.text("message", &cut_text(&self.diagnostic.message, MAX_NAME_BYTES * 4));
        object.optional("hint", self.diagnostic.hint.as_deref());
        object.json("location", Some(&location_json(self.location)));
        object.finish()
    }
}

impl Stats {
    /// The statistics as clients see them: one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!(
            "{{\"durationMs\":{:.3},\"scriptMs\":{:.3},\"steps\":{},\"iterations\":{},\"toolCalls\":{},\"peakMemoryBytes\":{}}}",
            self.duration_ms, self.script_ms, self.steps, self.iterations, self.tool_calls, self.peak_memory_bytes
        )
    }
}

fn location_json(Location { line, column }: Location) -> String {
    format!("{{\"line\":{line},\"column\":{column}}}")
}

/// A JSON object under construction.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self(String::from("{"))
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(key, &mut self.0);
        self.0.push(':');
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        quote(value, &mut self.0);
    }

    fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    fn json(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.key(key);
            self.0.push_str(value);
        }
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut_in_its_middle() {
        for before in 0..4 {
            for letter in ["÷", "漢", "🌍"] {
                let text = "p".repeat(before) + &letter.repeat(MAX_MESSAGE_BYTES) + &"q".repeat(before);
                let cut = cut(text.clone(), MAX_MESSAGE_BYTES);
                let (start, end) = cut.split_once(&format!("… ({} bytes, cut) …", text.len())).expect("the mark");
                assert!(
                    text.starts_with(start) && text.ends_with(end) && !start.is_empty() && !end.is_empty(),
                    "{cut}"
                );
            }
        }
    }
}
