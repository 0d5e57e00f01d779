//! `enable_code_execution` and the keys that begin with `code_execution_`. They are top-level keys, spelled
//! as in the configurations that this tool comes from.

use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::RangeInclusive;

/// The tool `code_execution`, and the options of requests that do not set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CodeExecution {
    /// Whether the tool `code_execution` exists, whose scripts call tools synchronously.
    #[serde(rename = "enable_code_execution")]
    pub enabled: bool,
    /// How long a run of `code_execution` may take, including waits for tools. A request can set another time.
    #[serde(rename = "code_execution_timeout_ms")]
    #[schemars(
        range(min = *Self::TIMEOUTS.start(), max = *Self::TIMEOUTS.end()),
        extend("x-type" = "milliseconds")
    )]
    pub timeout_ms: u64,
    /// How many tools a run of `code_execution` may call; 0 is no limit. A request can set another number.
    #[serde(rename = "code_execution_max_tool_calls")]
    pub max_tool_calls: u64,
    /// How many runs of `code_execution` may be active at the same time.
    #[serde(rename = "code_execution_pool_size")]
    #[schemars(range(min = 1, max = 100))]
    pub pool_size: usize,
}

impl CodeExecution {
    /// Shortest and longest time of a run, in milliseconds.
    pub const TIMEOUTS: RangeInclusive<u64> = 1..=600_000;
}

impl Default for CodeExecution {
    fn default() -> Self {
        Self { enabled: false, timeout_ms: 120_000, max_tool_calls: 0, pool_size: 10 }
    }
}
