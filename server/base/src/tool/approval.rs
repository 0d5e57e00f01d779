//! Whether a person has to approve calls of a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a person has to approve a call of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// Each call.
    Always,
    /// The first call of each client. The approval holds for all of its further calls, until the tool changes.
    Once,
    /// None.
    #[default]
    Never,
}
