//! Steps of runs whose clients own the tools.

use super::read::within;
use super::secrets::Found;
use serde::Deserialize;

/// What can be guessed is no key.
const SHORTEST_KEY: usize = 16;

/// What the server decides of stateless runs.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct StatelessConfig {
    /// Whether there is the meta-tool `codecall_step`.
    pub enabled: bool,
    /// Signs tokens, 16 characters or more; absent: they are not signed, which is safe, as a changed
    /// journal can harm its own run only.
    pub key: Option<String>,
    /// Most rounds of one run.
    pub max_rounds: usize,
    /// Most bytes of inputs and answers in one run.
    pub max_journal_bytes: usize,
}

impl Default for StatelessConfig {
    fn default() -> Self {
        Self { enabled: false, key: None, max_rounds: 1_000, max_journal_bytes: 8 * 1024 * 1024 }
    }
}

impl std::fmt::Debug for StatelessConfig {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StatelessConfig")
            .field("enabled", &self.enabled)
            .field("max_rounds", &self.max_rounds)
            .finish_non_exhaustive()
    }
}

impl StatelessConfig {
    pub(super) fn check(&self, secrets: &mut Found) -> Result<(), String> {
        within("stateless.maxRounds", self.max_rounds, 1, 1_000_000)?;
        within("stateless.maxJournalBytes", self.max_journal_bytes, 1024, 1 << 30)?;
        if let Some(key) = &self.key {
            if key.chars().count() < SHORTEST_KEY {
                return Err(format!("stateless.key: must have at least {SHORTEST_KEY} characters"));
            }
            secrets.variable("KEY", key);
        }
        Ok(())
    }
}
