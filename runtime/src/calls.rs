//! The tool calls of a run: those the host has not been told of yet, and those without an answer.
//!
//! Of a call that is answered nothing is kept but that it was made.

use crate::host::{Call, CallId};
use crate::value::Value;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// The tool calls of a run.
#[derive(Default)]
pub struct Calls {
    made: u32,
    /// Calls that the host has not been told of yet: the last ones, in order.
    queued: VecDeque<Call>,
    /// Calls without an answer, by number.
    open: HashMap<u32, Open>,
}

/// A tool call without an answer.
pub struct Open {
    /// The name of the tool, a string.
    pub tool: Value,
    /// The input, as JSON.
    pub input: Box<str>,
    /// What the answer settles.
    pub promise: Value,
    /// What the answer comes to.
    pub style: Style,
}

/// What the answer to a tool call is for the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The result; a failure is an exception.
    Throws,
    /// `{success: true, data}` or `{success: false, error}`
    Success,
    /// `{ok: true, result}` or `{ok: false, error}`
    Ok,
}

impl Open {
    /// Bytes that it takes, with what waits in the queue.
    pub fn cost(&self) -> usize {
        192 + self.input.len() * 2
    }
}

/// A tool call that has failed, for the outcome of the run.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The name of the tool.
    pub tool: String,
    /// The input, as JSON.
    pub input: Box<str>,
}

impl Calls {
    /// How many calls were made.
    pub fn made(&self) -> u64 {
        u64::from(self.made)
    }

    /// Note a call.
    pub fn add(&mut self, tool: String, input: String, timeout_ms: u64, open: Open) {
        self.queued.push_back(Call { id: CallId(self.made), tool, input, timeout_ms });
        self.open.insert(self.made, open);
        self.made += 1;
    }

    /// The calls that the host gets now, so that at most `most` are under way.
    pub fn take(&mut self, most: u64) -> Vec<Call> {
        let under_way = self.open.len() - self.queued.len();
        let room = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(under_way);
        if self.queued.len() <= room {
            return std::mem::take(&mut self.queued).into();
        }
        self.queued.drain(..room).collect()
    }

    /// Whether no answer can come.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// A call has its answer; `None` where it had one before or the host was never told of it.
    pub fn answered(&mut self, id: CallId) -> Option<Open> {
        if self.queued.front().is_some_and(|first| id >= first.id) {
            return None;
        }
        self.open.remove(&id.0)
    }

    /// Calls without an answer with what the answer settles, in their order; also those that the host was
    /// not told of.
    pub fn open(&self) -> Vec<(CallId, Value)> {
        let mut open: Vec<_> = self.open.iter().map(|(&number, call)| (CallId(number), call.promise)).collect();
        open.sort_unstable_by_key(|&(id, _)| id);
        open
    }

    /// Append the values that are needed.
    pub fn trace(&self, roots: &mut Vec<Value>) {
        roots.extend(self.open.values().flat_map(|call| [call.tool, call.promise]));
    }
}
