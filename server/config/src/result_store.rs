//! `resultStore`: where results that are too long for a model are stored.

use super::duration::Milliseconds;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Where results that are longer than `vm.maxInlineBytes` are stored, to be read in pieces.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ResultStore {
    /// `false`: results come whole, and a run whose result is longer than `vm.maxResultBytes` fails with `RESULT_TOO_LARGE`.
    pub enabled: bool,
    /// Whether results are stored in the database of `store`, else in memory. In the database they outlive the process,
    /// and all its servers have them. Default: `true` with `store.url`, which several servers share.
    #[schemars(extend("x-default" = "`true` with `store.url`"))]
    pub persistent: Option<bool>,
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
            persistent: None,
            max_bytes: 64 * 1024 * 1024,
            max_results: 100,
            max_result_bytes: 16 * 1024 * 1024,
            expiry: Duration::from_secs(600),
        }
    }
}
