//! Output of a run for its host beside its result: lines of the log, and messages.

use crate::interface::host::Message;
use crate::value::atom::Atom;
use hashbrown::HashMap;
use std::time::Duration;

/// The log and the messages of a run.
#[derive(Default)]
pub struct Output {
    /// What the script logged.
    pub logs: Vec<String>,
    /// Bytes that the script has logged.
    pub log_bytes: usize,
    /// How often it did.
    pub log_calls: u64,
    /// The indentation and the counters of `console`.
    pub console: ConsoleState,
    /// Messages that the host has not taken yet.
    messages: Vec<Message>,
    /// What these cost.
    message_bytes: usize,
}

/// What `console` remembers between two calls.
#[derive(Debug, Default)]
pub struct ConsoleState {
    /// Columns that lines of open groups are indented by.
    pub indent: usize,
    /// The counters of `console.count`.
    pub counts: HashMap<Atom, u64>,
    /// The timers of `console.time`: when they began.
    pub timers: HashMap<Atom, Duration>,
}

impl Output {
    /// Add a message that takes so many bytes.
    pub fn send(&mut self, message: Message, bytes: usize) {
        self.message_bytes += bytes;
        self.messages.push(message);
    }

    /// The messages since the last call, and what they cost.
    pub fn take_messages(&mut self) -> (Vec<Message>, usize) {
        (std::mem::take(&mut self.messages), std::mem::take(&mut self.message_bytes))
    }
}
