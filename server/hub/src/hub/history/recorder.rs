//! The journal of a run for its history.

use crate::stateless::Recorder;
use agentscript::{Call, CallId, Event};
use codecall_base::text::truncate;
use codecall_base::tool::{ToolError, ToolLookups};
use codecall_config::HistoryConfig;
use codecall_runs::{JournalError, RunJournal, RunStart, StartInputs};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The journal of a run for its history: the answers of tools, and what is needed to replay it. It is unlike that of
/// `codecall run --record` in the clock, which it leaves as it is: a replay has the time of each answer, and stands still
/// between them.
#[derive(Debug)]
pub struct Tape {
    pub recorder: Arc<Recorder>,
    max_value_bytes: usize,
    max_bytes: usize,
    /// Bytes of inputs and answers so far.
    bytes: AtomicUsize,
    /// Bytes of results so far.
    pub answer_bytes: AtomicUsize,
    /// The beginnings of answers, as JSON text.
    outputs: Mutex<HashMap<CallId, String>>,
}

/// Maximum number of calls whose answers are shown.
const MAX_OUTPUTS: usize = 100;

impl Tape {
    pub fn new(start: &RunStart, config: &HistoryConfig) -> Self {
        Self {
            recorder: Recorder::new(&start.script, start.language, start.context.as_deref()),
            max_value_bytes: config.max_value_bytes,
            max_bytes: config.max_replay_bytes,
            bytes: AtomicUsize::new(0),
            answer_bytes: AtomicUsize::new(0),
            outputs: Mutex::default(),
        }
    }

    /// Counts bytes. Returns whether the recording is complete.
    fn add(&self, bytes: usize) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.max_bytes
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn is_complete(&self) -> bool {
        self.bytes() <= self.max_bytes
    }

    pub fn output(&self, call: CallId) -> Option<String> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned()
    }
}

impl RunJournal for Tape {
    fn start(&self, start: StartInputs) -> StartInputs {
        StartInputs { fixed_unix_ms: start.fixed_unix_ms, ..self.recorder.start(start) }
    }

    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        let bytes = lookups.descriptions.values().map(String::len).sum();
        match self.add(bytes) {
            true => self.recorder.append_lookups(lookups),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        match self.add(calls.iter().map(|call| call.tool.len() + call.input.len()).sum()) {
            true => self.recorder.append_calls(calls),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn append_answers<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Result<(), JournalError>> {
        let (mut bytes, mut answered) = (0, 0);
        for event in events {
            match event {
                Event::Settled { id, result: Ok(result) } => {
                    bytes += result.len();
                    answered += result.len();
                    let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
                    if outputs.len() < MAX_OUTPUTS {
                        let is_long = result.len() > self.max_value_bytes;
                        let cut = || format!("{}…", truncate(result, self.max_value_bytes));
                        outputs.insert(*id, if is_long { cut() } else { result.clone() });
                    }
                }
                Event::Settled { result: Err(ToolError { message, details, .. }), .. } => {
                    bytes += message.len() + details.as_ref().map_or(0, String::len);
                }
                Event::Time(_) | Event::Cancel => {}
            }
        }
        self.answer_bytes.fetch_add(answered, Ordering::Relaxed);
        match self.add(bytes) {
            true => self.recorder.append_answers(events),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }
}
