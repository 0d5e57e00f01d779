//! `serverCache`: what is remembered of MCP servers between starts.

use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The name of the environment variable that names the folder if the configuration does not. An empty value disables the
/// cache.
pub const CACHE_DIR_VARIABLE: &str = "CODECALL_CACHE_DIR";

/// What is remembered of MCP servers between starts: their tools and how they are connected to. With it tools are found
/// before their servers have started.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ServerCache {
    /// `false`: nothing is read or written. What tools say of themselves is then known once their servers have
    /// started.
    pub enabled: bool,
    /// Whether the shapes of results are learned from the answers of tools without an output schema: names of properties and
    /// types, no values. `codecall_describe` shows them.
    pub learn_results: bool,
    /// The folder. It contains no values of the configuration. Default: the value of the variable
    /// `CODECALL_CACHE_DIR`, where an empty one disables the cache, else `codecall` in the user's folder for
    /// caches.
    #[schemars(extend("x-default" = "user's cache"))]
    pub dir: Option<PathBuf>,
}

impl Default for ServerCache {
    fn default() -> Self {
        Self { enabled: true, learn_results: true, dir: None }
    }
}
