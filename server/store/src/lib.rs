//! Stores: data that outlives a request. Each concern is a trait in a file of its own, with its implementations. It must not
//! know who uses what is stored.

#![forbid(unsafe_code)]

mod answers;
mod approval_requests;
mod approvals;
mod credentials;
pub mod database;
mod journals;
mod rates;
mod results;
mod runs;
mod script_tools;
pub mod sealed;
mod servers;
mod shapes;
pub mod state;
pub mod transfer;
mod vault;
mod vectors;

pub use answers::{AnswerCache, MemoryAnswers};
pub use approval_requests::{ApprovalRequest, ApprovalRequests, ApprovalState, Decided, Decision, SqlApprovalRequests};
pub use approvals::{Approval, ApprovalStore, Approvals, FileApprovals, MemoryApprovals};
use codecall_config::Config;
pub use credentials::{CredentialStore, FileCredentials, MemoryCredentials, RecordVersion, RenewalGuard};
pub use database::Database;
pub use futures_util::future::BoxFuture;
pub use journals::{JournalProblem, JournalStore, JournaledRun, JournaledState, Lease, SqlJournals, Submitted};
pub use rates::{MemoryRates, Quota, RateLimiter};
pub use results::{MemoryResults, OwnedResults, ResultStore, SqlResults};
pub use runs::{
    ListedRun, RecordedRun, RunFigures, RunFilter, RunStore, RunSummary, RunTotals, SqlRuns, ended_ms, position,
};
pub use script_tools::{ScriptToolStore, SqlScriptTools, StoredCode, StoredTool, StoredVersion};
pub use servers::{FileServers, MemoryServers, ServerRecord, ServerStore};
pub use shapes::{FileShapes, MemoryShapes, SeenShape, ShapeStore, ToolShapes};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
pub use vault::{SecretEntry, SecretName, SecretStore, SqlSecrets, VaultError};
#[cfg(any(test, feature = "embeddings"))]
pub use vectors::sqlite::SqliteVectors;
pub use vectors::{Digest, MemoryVectors, Vector, VectorModel, VectorStore};

/// An operation of a store has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The store cannot be used: {0}")]
pub struct StoreError(pub String);

/// The stores of a process.
#[derive(Clone)]
pub struct Stores {
    /// Results that are too long for a model.
    pub results: Arc<dyn ResultStore>,
    /// Answers of tools that are given again to the same input.
    pub answers: Arc<dyn AnswerCache>,
    /// How often tools are called.
    pub rates: Arc<dyn RateLimiter>,
    /// Vectors of what tools say of themselves, for the search by meaning.
    pub vectors: Arc<dyn VectorStore>,
    /// What is known of MCP servers from earlier connections.
    pub servers: Arc<dyn ServerStore>,
    /// The shapes of results that were seen.
    pub shapes: Arc<dyn ShapeStore>,
    /// What people have approved of tools.
    pub approvals: Arc<dyn ApprovalStore>,
    /// Credentials that servers have issued.
    pub credentials: Arc<dyn CredentialStore>,
    /// Calls that wait for the decision of a person; `None`: there is no database, so only the client can be asked.
    pub approval_requests: Option<Arc<dyn ApprovalRequests>>,
}

impl Stores {
    /// Creates stores in memory, within the bounds of the configuration.
    #[must_use]
    pub fn in_memory(config: &Config) -> Self {
        Self {
            results: Arc::new(MemoryResults::new(config.result_store)),
            answers: Arc::new(MemoryAnswers::new(config.chain.cache.max_entries, config.chain.cache.max_bytes)),
            rates: Arc::new(MemoryRates::default()),
            vectors: Arc::new(MemoryVectors::new(MemoryVectors::DEFAULT_MAX_VECTORS)),
            servers: Arc::new(MemoryServers::default()),
            shapes: Arc::new(MemoryShapes::default()),
            approvals: Arc::new(MemoryApprovals::default()),
            credentials: Arc::new(MemoryCredentials::default()),
            approval_requests: None,
        }
    }

    /// Uses a database for what the configuration says so of.
    #[must_use]
    pub fn in_database(mut self, config: &Config, database: &Database) -> Self {
        // With Restate, results are made by a worker and read at a server.
        if config.result_store.persistent || (config.durable.enabled && config.durable.restate.is_some()) {
            self.results = Arc::new(SqlResults::new(database.clone(), config.result_store));
        }
        self.approval_requests = Some(Arc::new(SqlApprovalRequests(database.clone())));
        self
    }

    /// Creates the stores of a configuration: in memory, except for approvals and credentials, for what is known of servers and
    /// their results, unless `serverCache` is disabled, and for vectors if `search.vectorCache` names a file. A file that cannot
    /// be used is a warning in the log.
    #[must_use]
    pub fn configured(config: &Config) -> Self {
        let mut stores = Self::in_memory(config);
        // Without servers there is nothing to remember.
        if !config.upstreams.is_empty()
            && let Some(servers) = FileServers::configured(&config.server_cache)
        {
            stores.servers = Arc::new(servers);
        }
        if (!config.upstreams.is_empty() || !config.openapi.is_empty())
            && let Some(shapes) = FileShapes::configured(&config.server_cache)
        {
            stores.shapes = Arc::new(shapes);
        }
        if let Some(folder) = state::folder(config) {
            stores.approvals = Arc::new(FileApprovals::new(&folder));
            stores.credentials = Arc::new(FileCredentials::new(&folder));
        }
        #[cfg(feature = "embeddings")]
        if let Some(path) = &config.search.vector_cache
            && config.search.strategy != codecall_config::Strategy::Bm25
        {
            match SqliteVectors::open(path) {
                Ok(vectors) => return Self { vectors: Arc::new(vectors), ..stores },
                Err(error) => tracing::warn!("{}. Vectors are kept in memory only.", error.0),
            }
        }
        stores
    }
}

/// Returns the time in milliseconds since 1970.
#[must_use]
pub fn now_ms() -> i64 {
    now_us() / 1_000
}

/// Returns the time in microseconds since 1970.
#[must_use]
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
