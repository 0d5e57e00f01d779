//! The journal of a run for its history.

use crate::stateless::MemoryRecorder;
use agentscript::stateless::{Answer, Round};
use agentscript::{Call, CallId};
use codecall_base::text::truncate;
use codecall_base::tool::{ToolError, ToolLookups};
use codecall_config::HistoryConfig;
use codecall_runs::{JournalError, Recorder, RunStart, StartInputs};
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The journal of a run for its history: the answers of tools, and what is needed to replay it. It is unlike that of
/// `codecall run --record` in the clock, which it leaves as it is: a replay has the time of each answer, and stands still
/// between them.
#[derive(Debug)]
pub struct HistoryRecorder {
    pub memory: Arc<MemoryRecorder>,
    max_value_bytes: usize,
    max_bytes: usize,
    /// Bytes of inputs and answers so far.
    bytes: AtomicUsize,
    /// Bytes of results so far.
    pub answer_bytes: AtomicUsize,
    outputs: Mutex<Outputs>,
}

/// The answers that the history shows.
#[derive(Debug, Default)]
struct Outputs {
    /// The calls by number.
    calls: Vec<CallId>,
    /// The beginnings of answers, as JSON text.
    texts: HashMap<CallId, String>,
}

/// Maximum number of calls whose answers are shown.
const MAX_OUTPUTS: usize = 100;

impl HistoryRecorder {
    pub fn new(start: &RunStart, config: &HistoryConfig) -> Self {
        Self {
            memory: MemoryRecorder::new(&start.script, start.language, start.context.as_deref()),
            max_value_bytes: config.max_value_bytes,
            max_bytes: config.max_replay_bytes,
            bytes: AtomicUsize::new(0),
            answer_bytes: AtomicUsize::new(0),
            outputs: Mutex::default(),
        }
    }

    /// Counts bytes. Returns whether the journal is complete.
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
        self.outputs().texts.get(&call).cloned()
    }

    fn outputs(&self) -> MutexGuard<'_, Outputs> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for HistoryRecorder {
    fn start(&self, start: StartInputs) -> StartInputs {
        StartInputs { fixed_unix_ms: start.fixed_unix_ms, ..self.memory.start(start) }
    }

    fn append_lookups(&self, lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        let bytes = lookups.descriptions.values().map(String::len).sum();
        match self.add(bytes) {
            true => self.memory.append_lookups(lookups),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.outputs().calls.extend(calls.iter().map(|call| call.id));
        match self.add(calls.iter().map(|call| call.tool.len() + call.input.len()).sum()) {
            true => self.memory.append_calls(calls),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn append_answers<'a>(&'a self, round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>> {
        let (mut bytes, mut answered) = (0, 0);
        let mut outputs = self.outputs();
        for Answer { call, result } in &round.answers {
            match result {
                Ok(result) => {
                    bytes += result.len();
                    answered += result.len();
                    if let Some(&call) = outputs.calls.get(*call as usize)
                        && outputs.texts.len() < MAX_OUTPUTS
                    {
                        let is_long = result.len() > self.max_value_bytes;
                        let cut = || format!("{}…", truncate(result, self.max_value_bytes));
                        outputs.texts.insert(call, if is_long { cut() } else { result.clone() });
                    }
                }
                Err(ToolError { message, details, .. }) => {
                    bytes += message.len() + details.as_ref().map_or(0, String::len);
                }
            }
        }
        drop(outputs);
        self.answer_bytes.fetch_add(answered, Ordering::Relaxed);
        match self.add(bytes) {
            true => self.memory.append_answers(round),
            false => Box::pin(std::future::ready(Ok(()))),
        }
    }
}
