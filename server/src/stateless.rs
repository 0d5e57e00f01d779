//! Code as tool calls for clients that own their tools: nothing is kept between two requests.
//!
//! The work is in [`agentscript::stateless`]; here its calls and answers take the shapes of the
//! protocols: lists of tools as clients write them, histories of messages, tokens. [`Stateless`] takes
//! steps for a server.

mod evaluate;
mod history;
mod id;
mod recorder;
mod recording;
mod service;
mod tools;

pub use evaluate::{Evaluate, Evaluation, Evaluator, LanguageName};
pub use history::{History, HistoryError};
pub use id::CodeId;
pub use recorder::Recorder;
pub use recording::{Directory, Recording, answer_line, call_line, without_space};
pub use service::{Refusal, Stateless};
pub use tools::{ClientToolset, ToolsError};

#[cfg(test)]
mod tests;
