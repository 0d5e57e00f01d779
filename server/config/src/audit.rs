//! `audit`: where tool calls are recorded.

use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Where tool calls are recorded, one line of JSON each.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// A file to append to: a regular file of the user that runs the server, no link, pipe or device. If
    /// it does not exist, it is created for its owner only.
    pub file: Option<PathBuf>,
    /// Whether records are written to standard error.
    pub stderr: bool,
}

impl AuditConfig {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.file.is_none() && !self.stderr {
            return Err("audit: give 'file', or 'stderr = true', or both".into());
        }
        Ok(())
    }
}
