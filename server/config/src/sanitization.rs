//! `sanitization`: what is removed from error messages.

use schemars::JsonSchema;
use serde::Deserialize;

/// The parts of error messages that are removed before a client sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Sanitization {
    /// Remove stack traces of the host and of tools.
    pub remove_stack_traces: bool,
    /// Remove file paths of the host, except paths that the caller has sent and paths of the configuration.
    pub remove_file_paths: bool,
}

impl Default for Sanitization {
    fn default() -> Self {
        Self { remove_stack_traces: true, remove_file_paths: true }
    }
}
