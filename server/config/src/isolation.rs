//! What separates what is not trusted from the server: worker processes for scripts, and walls around
//! MCP servers that are started here.

use super::read::{keys, within};
use codecall_base::sandbox::Strictness;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Where scripts are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationMode {
    /// On threads of the server.
    #[default]
    Thread,
    /// In processes of their own, which have confined themselves.
    Process,
}

/// Where scripts are evaluated, and how what evaluates them is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolationConfig {
    /// Where.
    pub mode: IsolationMode,
    /// What to do where a worker process cannot be confined.
    pub confine: Strictness,
    /// Worker processes that there are all the time, 1 to 256; there are more while there are more runs at once.
    pub workers: usize,
    /// Runs after which a worker process is replaced.
    pub max_runs_per_worker: u32,
    /// Bytes that a worker process may have besides what it begins with; absent: twice `maxMemoryBytes` of the
    /// run and 96 MiB, and room for addresses without memory behind them.
    pub max_memory_bytes: Option<u64>,
    /// The program that worker processes are of, for those who embed the server; absent: this one.
    pub program: Option<PathBuf>,
}

impl Default for IsolationConfig {
    fn default() -> Self {
        Self {
            mode: IsolationMode::default(),
            confine: Strictness::default(),
            workers: 2,
            max_runs_per_worker: 1_000,
            max_memory_bytes: None,
            program: None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct IsolationKeys {
    mode: IsolationMode,
    confine: Strictness,
    workers: Option<usize>,
    max_runs_per_worker: Option<u32>,
    max_memory_bytes: Option<u64>,
}

impl IsolationConfig {
    /// Read what is written: a mode, or a table. `threads` is how many scripts have their turn at a time.
    ///
    /// # Errors
    /// What is wrong, naming the key.
    pub(super) fn read(written: Option<Value>, threads: usize) -> Result<Self, String> {
        let table = match written {
            None => json!({}),
            Some(Value::String(mode)) => json!({ "mode": mode }),
            Some(table) => table,
        };
        let IsolationKeys { mode, confine, workers, max_runs_per_worker, max_memory_bytes } =
            keys(table, "isolation", &[])?;
        let most = max_runs_per_worker.unwrap_or(1_000);
        Ok(Self {
            mode,
            confine,
            workers: within("isolation.workers", workers.unwrap_or(threads), 1, 256)?,
            max_runs_per_worker: within("isolation.maxRunsPerWorker", most, 1, u32::MAX)?,
            max_memory_bytes,
            program: None,
        })
    }
}

/// What an MCP server that is started here may do, as it is configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ConfineConfig {
    /// What to do where it cannot be enforced.
    pub mode: Strictness,
    /// Files and folders that it may read, besides the programs and libraries of the system.
    pub read: Vec<PathBuf>,
    /// Files and folders in which it may read and write.
    pub write: Vec<PathBuf>,
    /// The network that it may use.
    pub connect: Connect,
    /// Bytes of data that each of its processes may have; absent: no limit.
    pub max_memory_bytes: Option<u64>,
}

/// What of the network may be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "'any' or a list of TCP ports")]
pub enum Connect {
    /// TCP connections to these ports, and UDP where 53 is among them.
    Ports(Vec<u16>),
    /// All of it.
    Any(Any),
}

/// The word for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// All.
    Any,
}

impl Default for Connect {
    /// No network.
    fn default() -> Self {
        Self::Ports(Vec::new())
    }
}
