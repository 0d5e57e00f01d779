//! Stores: data that outlives a request. Each concern is a trait in a file of its own, with its implementations. It must not
//! know who uses what is stored.

#![forbid(unsafe_code)]

mod answers;
mod rates;
mod results;
mod servers;
mod vectors;

pub use answers::{AnswerCache, MemoryAnswers};
use codecall_config::Config;
pub use futures_util::future::BoxFuture;
pub use rates::{MemoryRates, Quota, RateLimiter};
pub use results::{MemoryResults, ResultStore};
pub use servers::{FileServers, MemoryServers, ServerRecord, ServerStore};
use std::sync::Arc;
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
        }
    }

    /// Creates the stores of a configuration: in memory, except for what is known of MCP servers, unless `serverCache` is
    /// disabled, and for vectors if `search.vectorCache` names a file. A file that cannot be used is a warning in the log.
    #[must_use]
    pub fn configured(config: &Config) -> Self {
        let mut stores = Self::in_memory(config);
        // Without servers there is nothing to remember.
        if !config.upstreams.is_empty()
            && let Some(servers) = FileServers::configured(&config.server_cache)
        {
            stores.servers = Arc::new(servers);
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
