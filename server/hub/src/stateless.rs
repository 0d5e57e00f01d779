//! Stateless runs: scripts for clients that own their tools. The server keeps nothing between two requests.
//!
//! [`agentscript::stateless`] evaluates the steps. This module converts between them and the formats of the protocols:
//! lists of tools, histories of messages, tokens, files. [`Stateless`] takes steps for a server.

mod evaluate;
mod evaluation;
mod history;
mod id;
pub mod messages;
mod journal_file;
mod recorder;
mod replay;
mod service;
mod tools;

pub use evaluate::{Evaluate, Evaluator, LanguageName};
pub use evaluation::{ClientCall, Evaluation, Mismatch, PendingCalls, ScriptOutcome, StepResult};
pub use history::{History, HistoryError};
pub use id::CodeId;
pub use journal_file::{JournalFile, JournalTools, answer_line, call_line, compact};
pub use recorder::MemoryRecorder;
pub use replay::Replay;
pub use service::{Refusal, Stateless, StepAnswer};
pub use tools::{ClientToolset, ToolsError};

#[cfg(test)]
mod tests;
