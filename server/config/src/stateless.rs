//! `stateless`: steps of runs whose clients own the tools.

use super::secrets::Secret;
use schemars::JsonSchema;
use serde::Deserialize;

/// Steps of runs whose clients own the tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct StatelessConfig {
    /// Whether the tool `codecall_step` exists.
    pub enabled: bool,
    /// Signs the tokens of journals. All processes that answer one client need the same key. Without one
    /// tokens are not signed, which is safe: a changed journal can harm its own run only.
    // A shorter one can be guessed.
    #[schemars(length(min = 16))]
    pub key: Option<Secret>,
    /// How often one run may wait for its client (`MAX_ROUNDS_EXCEEDED`).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_rounds: usize,
    /// Bytes of all inputs and answers of one run (`JOURNAL_TOO_LARGE`).
    #[schemars(range(min = 1024, max = 1 << 30))]
    pub max_journal_bytes: usize,
}

impl Default for StatelessConfig {
    fn default() -> Self {
        Self { enabled: false, key: None, max_rounds: 1_000, max_journal_bytes: 8 * 1024 * 1024 }
    }
}
