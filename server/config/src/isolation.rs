//! `isolation`: where scripts are evaluated.

use codecall_base::sandbox::Strictness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where scripts are evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("x-short" = "mode"))]
pub struct IsolationConfig {
    /// Where scripts are evaluated. Not every system has worker processes: Windows does not.
    pub mode: IsolationMode,
    /// The consequence if this system cannot confine a worker process.
    pub confine: Strictness,
    /// Worker processes that are always there. More are started while more scripts run at once, and end some
    /// seconds after.
    #[schemars(range(min = 1, max = 256), extend("x-default" = "`pool.threads`"))]
    pub workers: Option<usize>,
    /// Scripts after which a worker process is replaced. It is also replaced when it has grown by 64 MiB.
    #[schemars(range(min = 1, max = u32::MAX))]
    pub max_runs_per_worker: u32,
    /// Bytes that a worker process may allocate after its start. Default: the sum of three parts. Runs take twice
    /// `vm.maxMemoryBytes` and 96 MiB. Addresses of large lists take four times `vm.maxMemoryBytes`, at most 4 GiB, and
    /// no memory. Descriptions of tools take 128 MiB, or six times their size if that is more.
    #[schemars(extend("x-default" = "by `vm.maxMemoryBytes`"))]
    pub max_memory_bytes: Option<u64>,
    /// The program of worker processes, for those who embed the server; absent: this one.
    #[serde(skip)]
    pub program: Option<PathBuf>,
}

impl Default for IsolationConfig {
    fn default() -> Self {
        Self {
            mode: IsolationMode::default(),
            confine: Strictness::default(),
            workers: None,
            max_runs_per_worker: 1_000,
            max_memory_bytes: None,
            program: None,
        }
    }
}

/// Where scripts are evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IsolationMode {
    /// On threads of the server.
    #[default]
    Thread,
    /// Each in a confined process of its own, which can only compute.
    Process,
}
