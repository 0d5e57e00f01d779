//! `resultStore`: where results that are too long for a model are stored.

use super::duration::Milliseconds;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Where results that are longer than `vm.maxResultBytes` are stored, to be read in pieces.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ResultStore {
    /// `false`: a run whose result is too long fails with `RESULT_TOO_LARGE`.
    pub enabled: bool,
    /// Bytes of all stored results. The least recently read ones are dropped first.
    pub max_bytes: usize,
    /// How many results are stored.
    pub max_results: usize,
    /// Longest single result in bytes. A longer one fails with `RESULT_TOO_LARGE`.
    pub max_result_bytes: usize,
    /// How long a result is stored after it was last read.
    #[serde(rename = "expiryMs", with = "Milliseconds")]
    pub expiry: Duration,
}

impl Default for ResultStore {
    fn default() -> Self {
        Self {
            enabled: true,
            max_bytes: 64 * 1024 * 1024,
            max_results: 100,
            max_result_bytes: 16 * 1024 * 1024,
            expiry: Duration::from_secs(600),
        }
    }
}
