//! What a tool is, for all who speak of one: its definition, its names, and patterns of names.

mod filter;
mod names;
mod result;

pub use agentscript::{ErrorCode, ToolError};
pub use filter::names;
pub use filter::{ToolFilter, ToolPattern, matches};
pub use names::{LONGEST_NAME, Names, OWN_NAMES, is_reserved};
pub use result::ToolResult;
use serde_json::{Map, Value};

/// A tool, as its upstream describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolDefinition {
    /// The app it belongs to. Empty: its name alone is its full name.
    pub app: String,
    /// Its name in the upstream.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: String,
    /// JSON schema of its input: an object.
    pub input_schema: Value,
    /// JSON schema of its result.
    pub output_schema: Option<Value>,
    /// Hints about its behaviour (`readOnlyHint`, …): an object.
    pub annotations: Map<String, Value>,
    /// For filters.
    pub tags: Vec<String>,
    /// How it is used, by whoever wrote it.
    pub examples: Vec<Example>,
    /// Kind of the upstream.
    pub source: &'static str,
    /// Whether it is in the list of tools beside the meta-tools; absent: as the mode says. For tools
    /// written in Rust: what a server says of itself decides nothing.
    pub visible_in_list_tools: Option<bool>,
    /// Whether it is indexed: found, described and called from scripts; absent: as the mode says.
    pub enabled_in_code_call: Option<bool>,
}

/// How a tool is used.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What it shows.
    pub description: String,
    /// A script.
    pub code: String,
}

impl ToolDefinition {
    /// The name that scripts and clients use: `app:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.app.is_empty() { self.name.clone() } else { format!("{}:{}", self.app, self.name) }
    }
}
