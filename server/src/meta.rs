//! The meta-tools: what a client sees of everything. One file each.

use serde_json::Value;

/// What a meta-tool answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The result as the contract shapes it.
    pub value: Value,
    /// Whether it is a failure for the client.
    pub is_error: bool,
    /// More for machines: `codecall/stats`.
    pub meta: Option<Value>,
}
