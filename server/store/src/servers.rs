//! Records of MCP servers from earlier connections: their tools, and how a connection begins. With it tools are
//! found before their servers have started.
//!
//! Records are as trustworthy as what the server itself says. They contain nothing of the configuration; a server is
//! identified by a digest.

use crate::database::Database;
use crate::records::Records;
use crate::{BoxFuture, Digest, StoreError};
use codecall_config::Lifecycle;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, PoisonError};

/// Maximum size of a record, in bytes. A larger one is not stored.
const MAX_RECORD_BYTES: usize = 32 << 20;

/// The record of a server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ServerRecord {
    /// How the last connection began: never [`Lifecycle::Auto`].
    pub lifecycle: Lifecycle,
    /// Its name for itself.
    pub title: Option<String>,
    /// Its tools, in the format of MCP.
    pub tools: Vec<Value>,
}

/// Records of servers, by a digest of what identifies a server.
pub trait ServerStore: Send + Sync {
    /// Returns the record of a server; `None` if there is none, or none that can be read.
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<ServerRecord>, StoreError>>;

    /// Stores the record of a server, and replaces an earlier one.
    fn put(&self, server: Digest, record: ServerRecord) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Records in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryServers(Mutex<HashMap<Digest, ServerRecord>>);

impl ServerStore for MemoryServers {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<ServerRecord>, StoreError>> {
        let record = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&server).cloned();
        Box::pin(ready(Ok(record)))
    }

    fn put(&self, server: Digest, record: ServerRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server, record);
        Box::pin(ready(Ok(())))
    }
}

/// Records in a database.
pub struct SqlServers(Records);

impl SqlServers {
    /// Creates the store of a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(Records { database, table: "known_servers", key: "server", max_bytes: MAX_RECORD_BYTES })
    }
}

impl ServerStore for SqlServers {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<ServerRecord>, StoreError>> {
        Box::pin(async move {
            let record = self.0.get::<ServerRecord>(server).await?;
            Ok(record.filter(|record| record.lifecycle != Lifecycle::Auto))
        })
    }

    fn put(&self, server: Digest, record: ServerRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.0.put(server, record).await })
    }
}
