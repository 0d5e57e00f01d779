//! The messages between the server and a worker. On the pipe, each is four bytes of length, then the message in
//! postcard's format, which does not escape texts.

use crate::executor::StartInputs;
use agentscript::{CallId, Dialect, Event, Language, Message, OpenCall, Outcome, Policy, Progress};
use codecall_base::sandbox::Protections;
use codecall_base::tool::{DirectoryId, ToolDirectory, ToolLookups};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The version of both ends, which are the same program unless its file was replaced in between.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// From the server. A worker answers each request except `Directory` with one [`Response`].
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Keep a directory of tools, which is the next message, under this number.
    Directory(DirectoryId),
    /// Start a run. Answered with `Resumed` or `NotStarted`.
    Start(Box<Start>),
    /// Resume the run. Answered with `Resumed`.
    Resume(Vec<Event>),
    /// Answered with `OpenCalls`.
    OpenCalls,
}

/// From a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Response {
    /// The worker is confined, and waits for its first request.
    Ready { version: String, protections: Protections },
    /// How far the run has come.
    Resumed(Box<Resumed>),
    /// The calls without an answer.
    OpenCalls(Vec<OpenCall>),
    /// The outcome of a script that does not compile.
    NotStarted(Box<Outcome>),
    /// The interpreter has panicked, and the worker exits.
    Panicked(String),
}

/// The inputs of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    script: String,
    /// `None`: it is detected.
    language: Option<Language>,
    dialect: Dialect,
    policy: Policy,
    context: Option<String>,
    /// A directory that the worker keeps.
    pub directory: DirectoryId,
    record_lookups: bool,
    seed: u64,
    fixed_unix_ms: Option<f64>,
    is_virtual: bool,
    slice: Duration,
    events: Vec<Event>,
}

/// The state of a run after a slice.
#[derive(Debug, Serialize, Deserialize)]
pub struct Resumed {
    pub progress: Progress,
    pub messages: Vec<Message>,
    pub lookups: ToolLookups,
    pub memory_bytes: u64,
    pub unanswered_calls: u64,
    pub time_left: Duration,
    pub next_timer: Option<Duration>,
    /// The calls that the script has cancelled.
    pub cancelled: Vec<CallId>,
}

/// Returns a message as it is sent.
///
/// # Errors
/// It is longer than four bytes can say.
pub fn encode_frame(message: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut frame = postcard::to_extend(message, vec![0; 4]).map_err(|error| error.to_string())?;
    let length = encode_length(frame.len() - 4)?;
    frame[..4].copy_from_slice(&length);
    Ok(frame)
}

/// Returns the length of a message as it is sent.
///
/// # Errors
/// It is longer than four bytes can say.
pub fn encode_length(length: usize) -> Result<[u8; 4], String> {
    u32::try_from(length).map(u32::to_le_bytes).map_err(|_| "a message is too long".to_owned())
}

/// Returns the length of the message that follows.
pub fn decode_length(length: [u8; 4]) -> usize {
    usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX)
}

/// Decodes a message without its length.
///
/// # Errors
/// The bytes are not one message of this type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(format!("{} bytes follow a message", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

impl Start {
    /// Creates the message for a run. The watchdog and `stop` remain with the server.
    pub fn new(start: &StartInputs) -> Self {
        let StartInputs { script, language, dialect, policy, context, directory, record_lookups, .. } = start;
        let StartInputs { seed, fixed_unix_ms, is_virtual, slice, watchdog: _, stop: _, .. } = start;
        Self {
            script: script.to_string(),
            language: *language,
            dialect: *dialect,
            policy: policy.clone(),
            context: context.clone(),
            directory: directory.id(),
            record_lookups: *record_lookups,
            seed: *seed,
            fixed_unix_ms: *fixed_unix_ms,
            is_virtual: *is_virtual,
            slice: *slice,
            events: Vec::new(),
        }
    }

    /// Adds the events of the first slice.
    pub fn with_events(self, events: Vec<Event>) -> Self {
        Self { events, ..self }
    }

    /// Returns the inputs of the run, and its first events.
    pub fn into_inputs(self, directory: Arc<ToolDirectory>) -> (StartInputs, Vec<Event>) {
        let inputs = StartInputs {
            script: self.script.into(),
            language: self.language,
            dialect: self.dialect,
            policy: self.policy,
            context: self.context,
            directory,
            record_lookups: self.record_lookups,
            seed: self.seed,
            fixed_unix_ms: self.fixed_unix_ms,
            is_virtual: self.is_virtual,
            slice: self.slice,
            watchdog: Duration::MAX,
            stop: Arc::default(),
        };
        (inputs, self.events)
    }
}
