//! `front`: how tools are offered to a client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How tools are offered to clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("x-short" = "default"))]
pub struct FrontConfig {
    /// How tools are offered to clients that `clients` does not name.
    pub default: Front,
    /// How tools are offered to clients by the name that they give themselves: `clientInfo.name` of MCP.
    #[schemars(extend("x-name" = "CLIENT"))]
    pub clients: BTreeMap<String, Front>,
}

impl FrontConfig {
    /// Returns the front of a client.
    #[must_use]
    pub fn of_client(&self, name: Option<&str>) -> Front {
        name.and_then(|name| self.clients.get(name)).copied().unwrap_or(self.default)
    }
}

/// How tools are offered to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Front {
    /// The cheapest one: `direct` where listing the tools takes fewer tokens than `code`. Else `bridge` for hosts with a code mode of
    /// their own, else `code`.
    #[default]
    Auto,
    /// The meta-tools, with signatures of the tools behind them.
    Code,
    /// The tools as they are, with `codecall_execute` where it adds less than a tenth.
    Direct,
    /// The tools with the schemas of their results, and `codecall_search`, for hosts with a code mode of their own.
    Bridge,
}
