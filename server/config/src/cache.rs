//! `cache`: results of tools that are used again.

use super::duration::WithUnit;
use codecall_base::tool::ToolPattern;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// The results of tools that are cached and given again for the same input.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct CacheConfig {
    /// The tools whose results are cached. The first rule that matches a tool decides.
    pub rules: Vec<CacheRule>,
    /// Whether results are stored in the database of `store`, encrypted, else in memory. In the database they outlive
    /// the process, and all its servers have them. Default: `true` with `store.url`, which several servers share.
    #[schemars(extend("x-default" = "`true` with `store.url`"))]
    pub persistent: Option<bool>,
    /// How many results at most. The least recently used ones are dropped first, in a database the oldest ones.
    pub max_entries: usize,
    /// How many bytes of JSON at most, all results together.
    pub max_bytes: usize,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { rules: Vec::new(), persistent: None, max_entries: 1_000, max_bytes: 16 * 1024 * 1024 }
    }
}

/// Results of these tools are cached for `ttl`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheRule {
    /// The tools.
    pub tool: ToolPattern,
    /// How long their results are valid, such as `"30s"`.
    #[serde(with = "WithUnit")]
    pub ttl: Duration,
}
