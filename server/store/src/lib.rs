//! Stores: data that outlives a request. Each concern is a trait in a file of its own, with its implementations. It must not
//! know who uses what is stored.

#![forbid(unsafe_code)]

mod answers;
mod approval_requests;
mod approvals;
mod credentials;
pub mod database;
mod journals;
mod key_source;
mod keyring;
mod master_key;
mod rates;
mod replicas;
mod records;
mod results;
mod row_quota;
pub mod rotation;
mod run_results;
mod runs;
mod script_tools;
pub mod sealed;
mod servers;
mod sessions;
mod shapes;
pub mod state;
mod tasks;
pub mod transfer;
pub mod upkeep;
mod vault;
mod vectors;

pub use answers::{AnswerCache, MemoryAnswers, SqlAnswers};
pub use approval_requests::{
    ApprovalRequest, ApprovalRequests, ApprovalState, Decided, Decision, PAGE_BYTES, SqlApprovalRequests, long_members,
    pages,
};
pub use approvals::{Approval, ApprovalStore, Approvals, MemoryApprovals, SqlApprovals};
use codecall_config::Config;
pub use credentials::{CredentialStore, MemoryCredentials, RecordVersion, RenewalGuard, SqlCredentials};
pub use database::Database;
pub use futures_util::future::BoxFuture;
pub use journals::{
    Hold, JournalProblem, JournalStore, JournaledRun, JournaledState, Lease, Spent, SqlJournals, Submitted,
};
pub use master_key::{CachedKeys, MasterKeys};
pub use rates::{MemoryRates, Quota, RateLimiter, SqlRates};
pub use replicas::{ReplicaMessage, ReplicaProblem, SqlReplicas};
pub use results::{MemoryResults, OwnedResults, ResultStore, SqlResults};
pub use row_quota::RowQuota;
pub use run_results::{RunResults, SqlRunResults};
pub use runs::{
    ListedRun, RUN_KINDS, RUN_STATUSES, RecordedRun, RunFigures, RunFilter, RunStore, RunSummary, RunTotals, SqlRuns,
    ended_ms, position,
};
pub use script_tools::{ScriptToolStore, SqlScriptTools, StoredCode, StoredTool, StoredVersion};
pub use servers::{MemoryServers, ServerRecord, ServerStore, SqlServers};
pub use sessions::{SqlSessions, StoredSession};
pub use shapes::{MemoryShapes, SeenShape, ShapeStore, SqlShapes, ToolShapes};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
pub use tasks::{SqlTasks, StoredTask};
pub use vault::{SecretEntry, SecretName, SecretStore, SqlSecrets, VaultError};
pub use vectors::{Digest, MemoryVectors, SqlVectors, Vector, VectorModel, VectorStore};

/// An operation of a store has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The store cannot be used: {0}")]
pub struct StoreError(pub String);

/// Why a configuration with durable runs is refused that has no store, and what to do.
pub const NO_STORE: &str = "durable.enabled: there is no store that could keep the journals of runs: CODECALL_STORE is set and empty, or \
     the user has no folder for the state of programs; name a file with 'store.path', or a database with 'store.url'";

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
    /// Records of MCP servers from earlier connections.
    pub servers: Arc<dyn ServerStore>,
    /// The shapes of results that were seen.
    pub shapes: Arc<dyn ShapeStore>,
    /// Approvals of tools by people.
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

    /// Creates the stores of a configuration: in a database where there is one.
    #[must_use]
    pub fn of(config: &Config, database: Option<&Database>) -> Self {
        let stores = Self::in_memory(config);
        match database {
            Some(database) => stores.in_database(config, database),
            None => stores,
        }
    }

    /// Uses a database: for approvals and credentials, for vectors, for what is known of servers and their results unless
    /// `serverCache` is disabled, and for long results and answers if `resultStore` and `cache` say so.
    fn in_database(mut self, config: &Config, database: &Database) -> Self {
        // With an engine, a worker makes results and a server reads them.
        if config.durable.has_engine() || config.result_store.persistent.unwrap_or(database.is_shared()) {
            self.results = Arc::new(SqlResults::new(database.clone(), config.result_store));
        }
        if config.chain.cache.persistent.unwrap_or(database.is_shared()) {
            self.answers = Arc::new(SqlAnswers::new(database.clone(), config));
        }
        if database.is_shared() {
            self.rates = Arc::new(SqlRates::new(database.clone()));
        }
        if config.server_cache.enabled {
            self.servers = Arc::new(SqlServers::new(database.clone()));
            self.shapes = Arc::new(SqlShapes::new(database.clone()));
        }
        self.vectors = Arc::new(SqlVectors::new(database.clone()));
        self.approvals = Arc::new(SqlApprovals::new(database.clone(), config));
        self.credentials = Arc::new(SqlCredentials::new(database.clone(), config));
        self.approval_requests = Some(Arc::new(SqlApprovalRequests(database.clone())));
        self
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
