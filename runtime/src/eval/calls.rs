//! The calls of a run that the host answers: those it has not been handed yet, and those without an answer.
//!
//! An answered call is dropped and only counted.

use crate::heap::frame::FunctionRef;
use crate::interface::host::{Call, CallId, CallKind};
use crate::value::Value;
use std::collections::VecDeque;

/// Room for calls that are made together.
const MANY: usize = 15;

/// The tool calls of a run.
#[derive(Default)]
pub struct Calls {
    made: u32,
    /// Calls that the host has not been handed yet: the latest ones, in order.
    queued: VecDeque<Call>,
    /// Calls by number, from the first one without an answer on. An answered call among them is `None`; at most half
    /// of them are.
    open: VecDeque<(u32, Option<Open>)>,
    answered: usize,
    /// Calls that the host was handed and that the script has cancelled since.
    cancelled: Vec<CallId>,
}

/// A tool call without an answer.
pub struct Open {
    /// The name of the tool, a string.
    pub tool: Value,
    /// The input, as JSON.
    pub input: Box<str>,
    /// The promise that the answer settles.
    pub promise: Value,
    /// How the answer is handed to the script.
    pub style: Style,
    /// Where the script makes it: function and offset.
    pub place: Option<(FunctionRef, u32)>,
}

/// How the answer to a call is handed to the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The result; a failure is an exception.
    Throws,
    /// `{success: true, data}` or `{success: false, error}`
    Success,
    /// `{ok: true, result}` or `{ok: false, error}`
    Ok,
    /// The result of a host function; a failure is an exception that names no tool.
    Function,
    /// A `Response`; a failure is a `TypeError` with a cause.
    Fetch,
}

impl Open {
    /// Bytes that it takes, the queued call included.
    pub fn cost(&self) -> usize {
        192 + self.input.len() * 2
    }
}

impl Calls {
    /// How many calls were made.
    pub fn made(&self) -> u64 {
        u64::from(self.made)
    }

    /// How many of them the host was handed.
    pub fn handed_out(&self) -> u64 {
        self.made() - self.queued.len() as u64
    }

    /// The latest call.
    pub fn last(&self) -> Option<CallId> {
        self.made.checked_sub(1).map(CallId)
    }

    /// Add a call.
    pub fn add(&mut self, tool: String, input: String, timeout_ms: u64, open: Open) {
        // A single call is often the only one; a second one is often followed by many.
        match self.queued.len() {
            0 if self.open.is_empty() => self.open.reserve_exact(1),
            1 => {
                self.queued.reserve(MANY);
                self.open.reserve(MANY);
            }
            _ => {}
        }
        let kind = match open.style {
            Style::Throws | Style::Success | Style::Ok => CallKind::Tool,
            Style::Function => CallKind::Function,
            Style::Fetch => CallKind::Fetch,
        };
        self.queued.push_back(Call { id: CallId(self.made), kind, tool, input, timeout_ms });
        self.open.push_back((self.made, Some(open)));
        self.made += 1;
    }

    /// Hand out queued calls, so that at most `most` are in flight.
    pub fn take(&mut self, most: u64) -> Vec<Call> {
        let under_way = self.open.len() - self.answered - self.queued.len();
        let room = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(under_way);
        if self.queued.len() <= room {
            return std::mem::take(&mut self.queued).into();
        }
        self.queued.drain(..room).collect()
    }

    /// The call that was added last, unless it has been answered.
    pub fn latest(&mut self) -> Option<&mut Open> {
        self.open.back_mut()?.1.as_mut()
    }

    /// Whether no call waits for an answer.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Take the call that an answer is for; `None` where it has been answered or the host was never handed it.
    pub fn answered(&mut self, id: CallId) -> Option<Open> {
        if self.queued.front().is_some_and(|first| id >= first.id) {
            return None;
        }
        self.close(id)
    }

    /// Take a call that the script has cancelled. The host is told so, or never handed it.
    pub fn cancel(&mut self, id: CallId) -> Option<Open> {
        match self.queued.iter().position(|call| call.id == id) {
            Some(at) => drop(self.queued.remove(at)),
            None => self.cancelled.push(id),
        }
        self.close(id)
    }

    /// Whether a call has no answer.
    pub fn is_open(&self, id: CallId) -> bool {
        self.open.binary_search_by_key(&id.0, |&(number, _)| number).is_ok_and(|index| self.open[index].1.is_some())
    }

    /// Take the calls that were cancelled while the host had them.
    pub fn take_cancelled(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.cancelled)
    }

    fn close(&mut self, id: CallId) -> Option<Open> {
        let index = self.open.binary_search_by_key(&id.0, |&(number, _)| number).ok()?;
        let call = self.open[index].1.take()?;
        self.answered += 1;
        while let Some((_, None)) = self.open.front() {
            self.open.pop_front();
            self.answered -= 1;
        }
        if self.answered * 2 > self.open.len() {
            self.open.retain(|(_, call)| call.is_some());
            self.answered = 0;
        }
        Some(call)
    }

    /// How many calls have no answer.
    pub fn unanswered(&self) -> usize {
        self.open.len() - self.answered
    }

    /// Take the first of those, with whether the host was handed them.
    pub fn take_unanswered(&mut self, most: usize) -> Vec<(CallId, Open, bool)> {
        let queued = self.queued.front().map(|first| first.id);
        self.answered = 0;
        let open = std::mem::take(&mut self.open).into_iter().filter_map(|(id, call)| Some((CallId(id), call?)));
        open.take(most).map(|(id, call)| (id, call, queued.is_none_or(|first| id < first))).collect()
    }

    /// Calls without an answer and their promises, in order; queued ones included.
    pub fn open(&self) -> Vec<(CallId, Value)> {
        let open = |(number, call): &(u32, Option<Open>)| Some((CallId(*number), call.as_ref()?.promise));
        self.open.iter().filter_map(open).collect()
    }

    /// The values that the collector has to mark.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.open.iter().filter_map(|(_, call)| call.as_ref()).flat_map(|call| [call.tool, call.promise])
    }
}
