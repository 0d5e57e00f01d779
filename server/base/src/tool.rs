//! Definitions, names, filters and results of tools, and the directory in which scripts look them up.

mod approval;
mod description;
mod directory;
mod filter;
mod lookups;
mod name;
mod result;
mod spelling;

pub use agentscript::{ErrorCode, ToolError};
pub use approval::Approval;
pub use description::ToolDescription;
pub use directory::{DirectoryId, ToolDirectory};
pub use filter::{ToolFilter, ToolPattern, glob_matches, name_matches};
pub use lookups::{LookupRecorder, ToolLookups, similar_app_key};
pub use name::{MAX_NAME_BYTES, NameStyle, OWN_SOURCE, RESERVED_NAMES, is_reserved};
pub use result::{ToolResult, data_of_text};
use serde_json::{Map, Value};
pub use spelling::ToolNames;

/// A tool as its upstream describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolDefinition {
    /// The id of the app that it belongs to. If empty, the full name is the name alone.
    pub app: String,
    /// Its name in the upstream.
    pub name: String,
    /// A display name for people.
    pub title: Option<String>,
    /// A description of what it does.
    pub description: String,
    /// JSON schema of its input, which is an object.
    pub input_schema: Value,
    /// JSON schema of its result.
    pub output_schema: Option<Value>,
    /// Whether the schema of its result only informs: a result that does not match is logged, and not refused.
    pub output_is_advisory: bool,
    /// Annotations of MCP about its behaviour, such as `readOnlyHint`.
    pub annotations: Map<String, Value>,
    /// Tags that filters can match.
    pub tags: Vec<String>,
    /// Usage examples from the author of the tool.
    pub examples: Vec<Example>,
    /// The kind of its upstream, such as `mcp`.
    pub source: &'static str,
    /// What its upstream has sent of it and could not be read: a sentence each.
    pub oddities: Vec<String>,
    /// A digest of what its upstream has sent, if not all of that could be read.
    pub received: Option<String>,
    /// Whether it is listed next to the meta-tools; by default the mode decides. Only tools written in Rust can set it:
    /// an MCP server must not decide where its tools are visible.
    pub visible_in_list_tools: Option<bool>,
    /// Whether scripts can find, describe and call it; by default the mode decides.
    pub enabled_in_code_call: Option<bool>,
    /// When a person has to approve its calls; by default the configuration decides. Only tools of this server can set it.
    pub approval: Option<Approval>,
}

/// A usage example of a tool.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What the example shows.
    pub description: String,
    /// The script.
    pub code: String,
}

impl ToolDefinition {
    /// Returns the name that scripts and clients use: `app:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.app.is_empty() { self.name.clone() } else { format!("{}:{}", self.app, self.name) }
    }
}
