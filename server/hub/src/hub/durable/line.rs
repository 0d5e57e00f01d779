//! The lines of a stored journal: the calls that begin a round, and the answers that end it.
//!
//! In the first format, lines name calls by their ids, and answers are events. Such lines are read too.

use agentscript::stateless::{Answer, JournalCall, Round};
use agentscript::{Call, ToolError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The format of new journals.
pub const FORMAT: u32 = 2;

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line<'a> {
    /// Calls that the script has made.
    Calls(Vec<JournalCall>),
    /// The end of the round, before the next calls.
    Answers {
        /// The answers, in the order in which the script has got them.
        answers: Cow<'a, [Answer]>,
        /// When the script has got them, in milliseconds since it began.
        ms: Option<u64>,
    },
}

/// A line in the first format.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum FirstLine {
    Calls(Vec<FirstCall>),
    Events(Vec<FirstEvent>),
}

/// Other members, as its time limit, follow from the script.
#[derive(Deserialize)]
struct FirstCall {
    id: u32,
    tool: String,
    input: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum FirstEvent {
    Answer { id: u32, result: String },
    Failure { id: u32, message: String, code: String, details: Option<String>, fatal: bool },
    Time(u64),
    Cancel,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyLine {
    First(FirstLine),
    Now(Line<'static>),
}

impl<'a> Line<'a> {
    /// The line of calls.
    pub fn calls(calls: &[Call]) -> Self {
        let call = |Call { tool, input, .. }: &Call| JournalCall { tool: tool.clone(), input: input.clone() };
        Self::Calls(calls.iter().map(call).collect())
    }

    /// The line of the answers of a round.
    pub fn answers(round: &'a Round) -> Self {
        Self::Answers { answers: Cow::Borrowed(&round.answers), ms: round.ms }
    }
}

/// Parses the lines of a journal; `None`: it is damaged.
pub fn rounds<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Vec<Round>> {
    let mut rounds: Vec<Round> = Vec::new();
    // The ids of calls in the first format, by number.
    let mut ids: Vec<Option<u32>> = Vec::new();
    let mut is_open = false;
    for line in lines {
        let line = serde_json::from_str(line).ok()?;
        if is_open == matches!(line, AnyLine::First(FirstLine::Calls(_)) | AnyLine::Now(Line::Calls(_))) {
            return None;
        }
        is_open = !is_open;
        let last = rounds.last_mut();
        match line {
            AnyLine::First(FirstLine::Calls(calls)) => {
                ids.extend(calls.iter().map(|call| Some(call.id)));
                let calls = calls.into_iter().map(|FirstCall { tool, input, .. }| JournalCall { tool, input });
                rounds.push(Round { calls: calls.collect(), ..Round::default() });
            }
            AnyLine::Now(Line::Calls(calls)) => {
                ids.extend(calls.iter().map(|_| None));
                rounds.push(Round { calls, ..Round::default() });
            }
            AnyLine::First(FirstLine::Events(events)) => {
                let number = |id: u32| u32::try_from(ids.iter().rposition(|known| *known == Some(id))?).ok();
                let last = last?;
                for event in events {
                    match event {
                        FirstEvent::Answer { id, result } => {
                            last.answers.push(Answer { call: number(id)?, result: Ok(result) });
                        }
                        FirstEvent::Failure { id, message, code, details, fatal } => {
                            let error = ToolError { message, code, details, fatal };
                            last.answers.push(Answer { call: number(id)?, result: Err(error) });
                        }
                        FirstEvent::Time(ms) => last.ms = Some(ms),
                        // The run was cancelled, and its process has died before it has ended.
                        FirstEvent::Cancel => {}
                    }
                }
            }
            AnyLine::Now(Line::Answers { answers, ms }) => {
                let last = last?;
                (last.answers, last.ms) = (answers.into_owned(), ms);
            }
        }
    }
    // A round without events is the last one.
    let has_events = |round: &Round| round.ms.is_some() || !round.answers.is_empty();
    let complete = rounds.len() - usize::from(is_open);
    rounds[..complete].iter().all(has_events).then_some(rounds)
}

/// Returns the last time that the script has seen, in milliseconds since its beginning.
pub fn last_time(rounds: &[Round]) -> u64 {
    rounds.iter().filter_map(|round| round.ms).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: [&str; 4] = [
        r#"{"calls":[{"id":0,"tool":"a:b","input":"{}","timeoutMs":5},{"id":2,"isFunction":true,"tool":"f","input":"[]","timeoutMs":5}]}"#,
        r#"{"events":[{"time":7},{"failure":{"id":2,"message":"no","code":"X","details":null,"fatal":true}}]}"#,
        r#"{"calls":[]}"#,
        r#"{"events":[{"time":9},"cancel",{"answer":{"id":0,"result":"1"}}]}"#,
    ];

    fn call(tool: &str, input: &str) -> JournalCall {
        JournalCall { tool: tool.into(), input: input.into() }
    }

    #[test]
    fn lines_of_the_first_format_are_read() {
        let fatal = ToolError { fatal: true, ..ToolError::new("X", "no") };
        let first = Round {
            calls: vec![call("a:b", "{}"), call("f", "[]")],
            answers: vec![Answer { call: 1, result: Err(fatal) }],
            ms: Some(7),
        };
        let second =
            Round { answers: vec![Answer { call: 0, result: Ok("1".into()) }], ms: Some(9), ..Round::default() };
        assert_eq!(rounds(FIRST.into_iter()), Some(vec![first.clone(), second.clone()]));
        assert_eq!(rounds(FIRST[..3].iter().copied()), Some(vec![first.clone(), Round::default()]));
        assert_eq!(last_time(&[first.clone(), second.clone()]), 9);
        // A journal goes on in the present format.
        let lines =
            [Line::Calls(first.calls.clone()), Line::answers(&first), Line::Calls(Vec::new()), Line::answers(&second)];
        let lines = lines.map(|line| serde_json::to_string(&line).expect("JSON"));
        assert_eq!(rounds(lines.iter().map(String::as_str)), Some(vec![first.clone(), second.clone()]));
        let mixed = FIRST[..2].iter().copied().chain(lines[2..].iter().map(String::as_str));
        assert_eq!(rounds(mixed), Some(vec![first, second]));
    }

    #[test]
    fn damaged_lines_are_refused() {
        for lines in [
            &[FIRST[1]][..],
            &[FIRST[0], FIRST[2]],
            &[FIRST[0], FIRST[1], FIRST[3]],
            &[FIRST[2], FIRST[3]],
            &[FIRST[0], r#"{"events":[]}"#],
            &[FIRST[0], "{"],
            &[r#"{"calls":[{"tool":"a"}]}"#],
        ] {
            assert_eq!(rounds(lines.iter().copied()), None, "{lines:?}");
        }
    }
}
