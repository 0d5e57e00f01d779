//! `history`: which runs are recorded, and for how long.

use super::duration::WithUnit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The runs that are recorded in the store, and for how long. Secrets, and personal data if that is masked, are masked in
/// what is recorded. Embedders record nothing unless they say so.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("x-short" = "record"))]
pub struct HistoryConfig {
    /// The runs that are recorded: runs of scripts, and calls of tools without one.
    pub record: RecordedRuns,
    /// Whether answers of tools are recorded, so that a run can be looked at in full and replayed.
    pub answers: bool,
    /// Maximum size in bytes of each recorded value: parameters, results, inputs and outputs of calls. Longer ones are cut.
    #[schemars(range(min = 64, max = 16 << 20))]
    pub max_value_bytes: usize,
    /// Maximum size in bytes of the answers of one run that are recorded for its replay. A run with more cannot be replayed.
    #[schemars(range(min = 0, max = 64 << 20))]
    pub max_replay_bytes: usize,
    /// How long a run is kept.
    #[serde(with = "WithUnit")]
    pub max_age: Duration,
    /// How many runs are kept. The oldest ones are deleted first.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub max_runs: u64,
    /// Bytes of all runs that are kept, as they are stored.
    #[schemars(range(min = 1_000_000, max = 1_000_000_000_000_u64))]
    pub max_bytes: u64,
}

/// The runs that are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordedRuns {
    /// All.
    #[default]
    All,
    /// Failed runs.
    Failures,
    /// None.
    Off,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self {
            record: RecordedRuns::default(),
            answers: true,
            max_value_bytes: 16 * 1024,
            max_replay_bytes: 256 * 1024,
            max_age: Duration::from_secs(30 * 86_400),
            max_runs: 100_000,
            max_bytes: 512 * 1024 * 1024,
        }
    }
}
