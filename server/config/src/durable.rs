//! `durable`: runs that outlive the server that has begun them.

use super::duration::{Milliseconds, WithUnit};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// The runs that go on after the end of their server: with another one on the same store, or after its restart. They
/// need a store.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct DurableConfig {
    /// Whether the scripts of clients are journaled from their beginning: each call before it is made, each answer before the
    /// script sees it. Runs that wait for a person are durable without this, from their first wait on.
    pub enabled: bool,
    /// How long a server holds a run without renewing, in milliseconds. Other servers take over the runs of one that has
    /// died after this time. A server renews three times as often. Read when the server starts.
    #[serde(with = "Milliseconds", rename = "leaseMs")]
    #[schemars(range(min = 500, max = 3_600_000))]
    pub lease: Duration,
    /// Maximum size of the journal of a run, in bytes. A run with a longer one fails. Read when the server starts.
    #[schemars(range(min = 65_536, max = 256 << 20))]
    pub max_journal_bytes: usize,
    /// How many runs may be open at once, with those in wait. `POST /v1/runs` refuses further ones.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_open: u64,
    /// How long the outcome of a run is kept for its client.
    #[serde(with = "WithUnit")]
    pub keep: Duration,
    /// The ingress of a Restate server, as `http://127.0.0.1:8080`: it keeps the journals, and `codecall worker`
    /// evaluates the runs.
    /// Server and worker need the feature `restate`. Nobody else may reach the ingress. Read when the server starts.
    #[schemars(extend("x-default" = "none: runs are journaled in the store"))]
    pub restate: Option<String>,
    /// The administration of that server, which says why a run does not go on.
    #[schemars(extend("x-default" = "port 9070 of the same machine"))]
    pub restate_admin: Option<String>,
}

impl DurableConfig {
    /// Whether an engine keeps the journals of durable runs in place of the store.
    #[must_use]
    pub const fn has_engine(&self) -> bool {
        self.enabled && self.restate.is_some()
    }
}

impl Default for DurableConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            lease: Duration::from_secs(15),
            max_journal_bytes: 16 << 20,
            max_open: 10_000,
            keep: Duration::from_secs(7 * 86_400),
            restate: None,
            restate_admin: None,
        }
    }
}
