//! `servers`: when MCP servers start and stop.

use super::duration::Milliseconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When MCP servers start and stop. A server whose tools are not known yet always starts with this one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ServersConfig {
    /// When a process starts whose tools are known from an earlier start.
    pub start: StartTime,
    /// How many processes start at a time. Servers that a request needs come first; one that takes more than five
    /// seconds lets the
    /// next one begin.
    #[schemars(range(min = 1, max = 1000), extend("x-default" = "number of processors"))]
    pub start_at_once: Option<usize>,
    /// After how long without a request a process is stopped; the next call starts it again. `0`: never. `idleStopMs`
    /// of an entry
    /// of `mcpServers` overrides it.
    #[serde(rename = "idleStopMs", with = "Milliseconds")]
    pub idle_stop: Duration,
}

/// When a process starts whose tools are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartTime {
    /// When a call needs it.
    #[default]
    Demand,
    /// With this server.
    Early,
}
