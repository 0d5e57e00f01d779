//! Code as tool calls for clients that own their tools: nothing is kept between two requests.
//!
//! The work is in [`agentscript::stateless`]; here its calls and answers take the shapes of the
//! protocols: lists of tools as clients write them, histories of messages, tokens.

mod evaluate;
mod history;
mod id;
mod tools;

pub use evaluate::{Evaluate, Evaluation, StatelessConfig};
pub use history::{History, HistoryError};
pub use id::CodeId;
pub use tools::{ClientToolset, ToolsError};

#[cfg(test)]
mod tests;
