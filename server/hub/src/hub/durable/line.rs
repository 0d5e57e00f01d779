//! Entries of journals: the calls of a script, and what came before its next ones.

use agentscript::{Call, CallId, CallKind, Event, ToolError};
use codecall_runs::PastRound;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// An entry of a journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entry {
    /// Calls that the script has made.
    Calls(Vec<CallEntry>),
    /// Events before its next calls.
    Events(Vec<EventEntry>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallEntry {
    id: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_function: bool,
    tool: String,
    input: String,
    timeout_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventEntry {
    Answer { id: u32, result: String },
    Failure { id: u32, message: String, code: String, details: Option<String>, fatal: bool },
    Time(u64),
    Cancel,
}

impl From<&Call> for CallEntry {
    fn from(call: &Call) -> Self {
        let Call { id: CallId(id), kind, tool, input, timeout_ms } = call.clone();
        Self { id, is_function: kind == CallKind::Function, tool, input, timeout_ms }
    }
}

impl From<CallEntry> for Call {
    fn from(CallEntry { id, is_function, tool, input, timeout_ms }: CallEntry) -> Self {
        let kind = if is_function { CallKind::Function } else { CallKind::Tool };
        Self { id: CallId(id), kind, tool, input, timeout_ms }
    }
}

impl From<&Event> for EventEntry {
    fn from(event: &Event) -> Self {
        match event.clone() {
            Event::Settled { id: CallId(id), result: Ok(result) } => Self::Answer { id, result },
            Event::Settled { id: CallId(id), result: Err(ToolError { message, code, details, fatal }) } => {
                Self::Failure { id, message, code, details, fatal }
            }
            Event::Time(ms) => Self::Time(ms),
            Event::Cancel => Self::Cancel,
        }
    }
}

impl From<EventEntry> for Event {
    fn from(event: EventEntry) -> Self {
        match event {
            EventEntry::Answer { id, result } => Self::Settled { id: CallId(id), result: Ok(result) },
            EventEntry::Failure { id, message, code, details, fatal } => {
                Self::Settled { id: CallId(id), result: Err(ToolError { message, code, details, fatal }) }
            }
            EventEntry::Time(ms) => Self::Time(ms),
            EventEntry::Cancel => Self::Cancel,
        }
    }
}

/// Groups entries to rounds; `None`: they are not in order.
pub fn rounds(entries: Vec<Entry>) -> Option<VecDeque<PastRound>> {
    let mut rounds: VecDeque<PastRound> = VecDeque::new();
    for entry in entries {
        match entry {
            Entry::Calls(calls) => {
                if rounds.back().is_some_and(|round| round.events.is_none()) {
                    return None;
                }
                rounds.push_back(PastRound { calls: calls.into_iter().map(Into::into).collect(), events: None });
            }
            Entry::Events(events) => {
                let round = rounds.back_mut().filter(|round| round.events.is_none())?;
                round.events = Some(events.into_iter().map(Into::into).collect());
            }
        }
    }
    Some(rounds)
}

/// Returns the last time that the script has seen, in milliseconds since its beginning.
pub fn last_time(rounds: &VecDeque<PastRound>) -> u64 {
    let events = rounds.iter().filter_map(|round| round.events.as_ref()).flatten();
    events.filter_map(|event| if let Event::Time(ms) = event { Some(*ms) } else { None }).max().unwrap_or_default()
}
