//! `concurrencyLimits`: how many tool calls may be active at once.

use codecall_base::tool::ToolPattern;
use schemars::JsonSchema;
use serde::Deserialize;
use std::num::NonZeroU32;

/// At most `limit` active calls of all tools that match, together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyLimit {
    /// The tools.
    pub tool: ToolPattern,
    /// How many calls at once. Further ones wait, within the timeout of their call.
    pub limit: NonZeroU32,
}
