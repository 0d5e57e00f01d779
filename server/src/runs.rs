//! Driving runs.

use agentscript::{Language, Message, Policy};
use std::sync::Arc;

/// One script to run.
#[derive(Clone, Debug)]
pub struct ExecuteRequest {
    /// The script.
    pub script: String,
    /// Its language; absent: found out.
    pub language: Option<Language>,
    /// JSON text of an object: `codecallContext`.
    pub context: Option<String>,
    /// The only tools it may call; absent: all.
    pub allowed_tools: Option<Vec<String>>,
    /// Limits and permissions.
    pub policy: Policy,
    /// Seed of random numbers; absent: a fresh one.
    pub seed: Option<u64>,
}

/// Something that happens in a run.
#[derive(Clone, Debug)]
pub enum Happening {
    /// The script has said something.
    Message(Message),
    /// A tool call begins.
    CallStarted {
        /// The tool.
        tool: String,
        /// Number of the call in its run.
        call: u32,
    },
    /// A tool call has ended.
    CallEnded {
        /// The tool.
        tool: String,
        /// Number of the call in its run.
        call: u32,
        /// Whether it failed.
        failed: bool,
    },
}

/// Who is told what happens in a run, as it happens.
pub type Watcher = Option<Arc<dyn Fn(Happening) + Send + Sync>>;
