//! The checks and hooks of every tool call. These are top-level keys.

use super::{AuditConfig, CacheConfig, ConcurrencyLimit, PiiConfig, RateLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The checks and hooks of every tool call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ChainConfig {
    /// How often tools may be called.
    pub rate_limits: Vec<RateLimit>,
    /// How often a call of a script is made again after its tool has refused it. The tool must say that there were too
    /// many calls, and when to try again. Only tools with `readOnlyHint` or `idempotentHint` are, and only within the
    /// time of the run.
    #[schemars(range(min = 0, max = 100))]
    pub rate_limit_retries: u32,
    /// How many calls may be active at once.
    pub concurrency_limits: Vec<ConcurrencyLimit>,
    /// The treatment of a result that does not match the output schema of its tool.
    pub check_output: CheckOutput,
    /// Masking of personal data. It is on if the section exists.
    #[schemars(extend("x-default" = "off"))]
    pub pii: Option<PiiConfig>,
    /// The results of tools that are cached.
    pub cache: CacheConfig,
    /// Where all tool calls are recorded.
    #[schemars(extend("x-default" = "off"))]
    pub audit: Option<AuditConfig>,
}

impl Default for ChainConfig {
    fn default() -> Self {
        Self {
            rate_limits: Vec::new(),
            rate_limit_retries: 5,
            concurrency_limits: Vec::new(),
            check_output: CheckOutput::default(),
            pii: None,
            cache: CacheConfig::default(),
            audit: None,
        }
    }
}

impl ChainConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        self.audit.as_ref().map_or(Ok(()), AuditConfig::check)
    }
}

/// The treatment of a result that does not match the output schema of its tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutput {
    /// The call fails with `INVALID_OUTPUT`.
    #[default]
    Error,
    /// A warning is logged.
    Warn,
    /// The result is not checked.
    Off,
}
