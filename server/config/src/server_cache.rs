//! `serverCache`: what is remembered of MCP servers between starts.

use schemars::JsonSchema;
use serde::Deserialize;

/// Data of MCP servers that is remembered between starts, in the database of `store`: their tools and how they are
/// connected to.
/// With it tools are found before their servers have started.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ServerCache {
    /// `false`: it is in memory only. Descriptions of tools are then known once their servers have started.
    pub enabled: bool,
    /// Whether the shapes of results are learned from the answers of tools without an output schema: names of properties and
    /// types, no values. `codecall_describe` shows them.
    pub learn_results: bool,
}

impl Default for ServerCache {
    fn default() -> Self {
        Self { enabled: true, learn_results: true }
    }
}
