//! Definitions, names, filters and results of tools, and the directory in which scripts look them up.

mod approval;
mod description;
mod directory;
mod filter;
mod lookups;
mod name;
mod result;
mod spelling;

use crate::text::truncate;
pub use agentscript::{ErrorCode, ToolError};
pub use approval::Approval;
pub use description::ToolDescription;
pub use directory::{DirectoryId, ToolDirectory};
pub use filter::{ToolFilter, ToolPattern, glob_matches, name_matches};
pub use lookups::{LookupRecorder, ToolLookups, similar_app_key};
pub use name::{MAX_NAME_BYTES, NameStyle, OWN_SOURCE, RESERVED_NAMES, is_reserved};
pub use result::{LongResult, ToolResult, data_of_text};
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
    /// Icons for people, as MCP has them.
    pub icons: Vec<Value>,
    /// The `_meta` of its server, without the members that are for CodeCall.
    pub meta: Map<String, Value>,
    /// How its server wants it to be called, as MCP has it: `{"taskSupport": "optional"}`.
    pub execution: Option<Value>,
    /// Tags that filters can match.
    pub tags: Vec<String>,
    /// Usage examples from the author of the tool.
    pub examples: Vec<Example>,
    /// The kind of its upstream, such as `mcp`.
    pub source: &'static str,
    /// The parts of its entry that could not be read: a sentence each.
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
    /// The purpose of the example.
    pub description: String,
    /// The script.
    pub code: String,
}

/// Maximum length of the result in an example of a call, in bytes of JSON.
const MAX_EXAMPLE_OUTPUT_BYTES: usize = 300;

impl Example {
    /// Creates the example of one call of the tool with this full name, with the result that it gives, if that is known.
    #[must_use]
    pub fn of_call(tool: &str, description: &str, input: &Map<String, Value>, output: Option<&Value>) -> Self {
        let name = tool.replace('\\', "\\\\").replace('\'', "\\'");
        let input = Value::Object(input.clone());
        let gives = output.map_or_else(String::new, |output| {
            // In a comment these would end the line.
            let text = output.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
            let cut = truncate(&text, MAX_EXAMPLE_OUTPUT_BYTES);
            format!(" // gives {cut}{}", if cut.len() < text.len() { "…" } else { "" })
        });
        let description = match description.trim() {
            "" => format!("Call {tool}"),
            description => description.to_owned(),
        };
        Self { description, code: format!("return await callTool('{name}', {input});{gives}") }
    }
}

impl ToolDefinition {
    /// Returns the name that scripts and clients use: `app:name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.app.is_empty() { self.name.clone() } else { format!("{}:{}", self.app, self.name) }
    }
}
