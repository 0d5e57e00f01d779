//! The journal of a run: the record of its calls and answers, wherever it is kept.

use super::canonical::canonical;
use super::{Divergence, StepOptions};
use crate::interface::host::ToolError;
use agentscript_lang::Language;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;

/// Longest input that a message quotes.
const QUOTED: usize = 200;

/// The record of a run so far. Plain data: it can be written as JSON, sent as a token
/// ([`Journal::token`]) or be made from a history of messages ([`Journal::new`] and [`Journal::rounds`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Journal {
    /// Names the run. Random numbers of the script follow from it.
    pub id: String,
    /// The time that the script sees at its beginning, in milliseconds since 1970-01-01 UTC.
    pub unix_ms: i64,
    /// Digest of the script, its language and its context.
    pub script: String,
    /// The rounds, in their order.
    #[serde(default)]
    pub rounds: Vec<Round>,
}

/// Calls that came out of a step, and answers that came in before the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The calls, in the order the script made them. They are numbered through all rounds.
    pub calls: Vec<JournalCall>,
    /// The answers, in the order they came; also to calls of earlier rounds.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// In the journal of a run in real time: when the answers came, in milliseconds since the run began. Absent where
    /// time is virtual: it stands still, and jumps to the next timer when the script waits for nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// A call, as a replay compares it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalCall {
    /// The tool, as the script names it.
    pub tool: String,
    /// The input: JSON text, best in canonical form, or its digest, which begins with `#`.
    pub input: String,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AnswerFields", into = "AnswerFields")]
pub struct Answer {
    /// Number of the call.
    pub call: u32,
    /// JSON text, or why there is none.
    pub result: Result<String, ToolError>,
}

/// The members of an answer: either a result or an error.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerFields {
    call: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
}

impl TryFrom<AnswerFields> for Answer {
    type Error = &'static str;

    fn try_from(AnswerFields { call, result, error }: AnswerFields) -> Result<Self, Self::Error> {
        match (result, error) {
            (Some(result), None) => Ok(Self { call, result: Ok(result) }),
            (None, Some(error)) => Ok(Self { call, result: Err(error) }),
            (Some(_), Some(_)) | (None, None) => Err("an answer has either a result or an error"),
        }
    }
}

impl From<Answer> for AnswerFields {
    fn from(Answer { call, result }: Answer) -> Self {
        let (result, error) = result.map_or_else(|error| (None, Some(error)), |result| (Some(result), None));
        Self { call, result, error }
    }
}

/// Why an answer cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// There is no call of that number.
    Unknown(u32),
    /// It has an answer already.
    Answered(u32),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(call) => write!(f, "there is no call {call}"),
            Self::Answered(call) => write!(f, "call {call} has an answer already"),
        }
    }
}

impl std::error::Error for AnswerError {}

impl Journal {
    /// The journal of a run that has not begun. `unix_ms` is the time that the script will see, in
    /// milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn new(id: impl Into<String>, unix_ms: i64, script: &str, options: &StepOptions<'_>) -> Self {
        Self { id: id.into(), unix_ms, script: digest_of(script, options), rounds: Vec::new() }
    }

    /// Add the answer to a call: JSON text, or an error.
    ///
    /// # Errors
    /// There is no such call, or it has an answer.
    pub fn answer(&mut self, call: u32, result: Result<String, ToolError>) -> Result<(), AnswerError> {
        if call as usize >= self.rounds.iter().map(|round| round.calls.len()).sum() {
            return Err(AnswerError::Unknown(call));
        }
        if self.rounds.iter().flat_map(|round| &round.answers).any(|answer| answer.call == call) {
            return Err(AnswerError::Answered(call));
        }
        match self.rounds.last_mut() {
            Some(round) => round.answers.push(Answer { call, result }),
            None => return Err(AnswerError::Unknown(call)),
        }
        Ok(())
    }

    /// Whether it is one of a run in real time, whose timers fired when the rounds say.
    pub(super) fn is_timed(&self) -> bool {
        self.rounds.iter().any(|round| round.ms.is_some())
    }

    /// Whether it was begun with this script.
    pub(super) fn matches(&self, script: &str, options: &StepOptions<'_>) -> bool {
        self.script == digest_of(script, options)
    }

    /// Seed of the random numbers of the run, as [`Inputs::seed`](crate::Inputs::seed) takes it.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let digest = Sha256::new().chain_update("seed\0").chain_update(&self.id).finalize();
        digest.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
    }

    /// Bytes of all inputs and answers together.
    pub(super) fn bytes(&self) -> usize {
        let calls = self.rounds.iter().flat_map(|round| &round.calls).map(|call| call.tool.len() + call.input.len());
        let answers = self.rounds.iter().flat_map(|round| &round.answers).map(|answer| match &answer.result {
            Ok(text) => text.len(),
            Err(error) => error.message.len() + error.code.len() + error.details.as_ref().map_or(0, String::len),
        });
        calls.sum::<usize>() + answers.sum::<usize>()
    }

    /// Replace inputs by digests, which are shorter and suffice for [`step`](super::step).
    #[must_use]
    pub fn compact(mut self) -> Self {
        for call in self.rounds.iter_mut().flat_map(|round| &mut round.calls) {
            if let Some(digest) = digest_of_input(&call.input)
                && digest.len() < call.input.len()
            {
                call.input = digest;
            }
        }
        self
    }

    /// Make a journal from a history of messages. Inputs that are not JSON are an error here; everything else is
    /// checked by the next step.
    ///
    /// # Errors
    /// An input is not JSON, or a call is answered that was not made before.
    pub fn with_rounds(mut self, rounds: Vec<Round>) -> Result<Self, Divergence> {
        let mut made = 0;
        for (number, round) in rounds.into_iter().enumerate() {
            let problem = |call, message| Divergence { round: Some(number), call: Some(call), message };
            let mut calls = Vec::with_capacity(round.calls.len());
            for (at, call) in round.calls.into_iter().enumerate() {
                let input = canonical(&call.input).map_err(|error| {
                    problem(made + at as u32, format!("the input of '{}' is not JSON: {error}", call.tool))
                })?;
                calls.push(JournalCall { tool: call.tool, input });
            }
            made += calls.len() as u32;
            self.rounds.push(Round { calls, answers: Vec::new(), ms: round.ms });
            for answer in round.answers {
                let call = answer.call;
                self.answer(call, answer.result).map_err(|error| problem(call, error.to_string()))?;
            }
        }
        Ok(self)
    }
}

impl JournalCall {
    /// A call with its input, JSON text.
    #[must_use]
    pub fn new(tool: &str, input: &str) -> Self {
        // What a script sends is JSON; nested too deeply to be parsed, it is compared verbatim.
        Self { tool: tool.to_owned(), input: canonical(input).unwrap_or_else(|_| input.to_owned()) }
    }

    /// Whether it is this call.
    pub(super) fn matches(&self, tool: &str, input: &str) -> bool {
        is_same_tool(&self.tool, tool) && (self.input == input || self.is_same_input(&Self::new(tool, input).input))
    }

    /// Whether an input in canonical form is that of the call.
    fn is_same_input(&self, input: &str) -> bool {
        match self.input.starts_with('#') {
            true => digest_of_input(input).as_ref() == Some(&self.input),
            false => self.input == input || canonical(&self.input).is_ok_and(|own| own == input),
        }
    }
}

/// Whether two names are spellings of one tool: `app:tool`, `app.tool`, `app_tool`, or the name in the characters that every
/// client accepts. A client may have to write the names of its tools in another way than a script.
fn is_same_tool(one: &str, other: &str) -> bool {
    let common = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let is_fitted = |name: &str, fitted: &str| name.chars().map(common).eq(fitted.chars());
    let is_separator = |byte: u8| matches!(byte, b':' | b'.' | b'_');
    let mut differences = one.bytes().zip(other.bytes()).filter(|(one, other)| one != other);
    let differs_once = one.len() == other.len()
        && match (differences.next(), differences.next()) {
            (None, _) => true,
            (Some((one, other)), None) => is_separator(one) && is_separator(other),
            // `a:b_c` and `a_b:c` are tools of two apps.
            (Some(_), Some(_)) => false,
        };
    differs_once || is_fitted(one, other) || is_fitted(other, one)
}

impl fmt::Display for JournalCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.input.floor_char_boundary(QUOTED);
        let more = if cut < self.input.len() { "…" } else { "" };
        write!(f, "'{}' with {}{more}", self.tool, &self.input[..cut])
    }
}

/// The digest of an input that is not one already.
fn digest_of_input(input: &str) -> Option<String> {
    (!input.starts_with('#')).then(|| format!("#{}", hex(&Sha256::digest(input))))
}

/// The digest of the script, its language and its context.
fn digest_of(script: &str, options: &StepOptions<'_>) -> String {
    let language = match options.language {
        None => "",
        Some(Language::JavaScript) => "javascript",
        Some(Language::TypeScript) => "typescript",
    };
    let mut digest = Sha256::new();
    for part in [language, options.context.as_deref().unwrap_or_default(), script] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

/// The first half of a digest: 128 bits as text.
fn hex(digest: &[u8]) -> String {
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
