//! `rateLimits`: how often tools may be called.

use super::duration::WithUnit;
use codecall_base::tool::ToolPattern;
use schemars::JsonSchema;
use serde::Deserialize;
use std::num::NonZeroU32;
use std::time::Duration;

/// At most `limit` calls of a tool in `window`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// The tools, each counted separately. `codecall:execute` and the like are the meta-tools.
    pub tool: ToolPattern,
    /// How many calls.
    pub limit: NonZeroU32,
    /// In what time, such as `"1m"`.
    #[serde(with = "WithUnit")]
    pub window: Duration,
}
