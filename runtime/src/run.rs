//! A run: one execution of one script, as a state machine.

use crate::host::{Event, Inputs, Message, Progress};
use crate::limits::Policy;
use crate::outcome::{Outcome, Stats};
use crate::script::Script;
use std::sync::Arc;
use std::time::Duration;

/// One execution of one script. Plain data: it can be moved between threads, kept as long as its
/// tool calls take, and dropped at any time, which cancels it.
pub struct Run {
    script: Arc<Script>,
}

impl Run {
    pub(crate) fn new(script: Arc<Script>, inputs: Inputs, policy: &Policy) -> Self {
        let _ = (inputs, policy);
        Self { script }
    }

    /// Go on until nothing can go on without an event, or the slice is used up.
    ///
    /// Events are settled in their order. After [`Progress::Done`] it must not be called again.
    pub fn resume(&mut self, events: impl IntoIterator<Item = Event>) -> Progress {
        let _ = (events.into_iter().count(), &self.script);
        Progress::Done(Box::new(Outcome { result: Ok("null".into()), logs: Vec::new(), stats: Stats::default() }))
    }

    /// Messages that the script has sent since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        Vec::new()
    }

    /// When the run must have ended, by [`Clock::monotonic`](crate::Clock::monotonic): a host that
    /// waits for tools resumes it then, without events, and gets the outcome.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        Duration::MAX
    }
}
