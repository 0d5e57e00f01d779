//! `confine` of an MCP server: what a child process may do.

use codecall_base::sandbox::Strictness;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The rights of an MCP server that is started here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ConfineConfig {
    /// The consequence if this system cannot confine it.
    pub mode: Strictness,
    /// Files and folders that it may read, and programs that it may start, besides those of the system. A
    /// path that does not exist is an error of this server only.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may read and write.
    pub write: Vec<PathBuf>,
    /// TCP ports that it may connect to, on any host. 53 also allows UDP, to resolve host names. `"any"`
    /// allows the whole network.
    pub connect: Connect,
    /// Bytes of data that each of its processes may have.
    #[schemars(extend("x-default" = "no limit"))]
    pub max_memory_bytes: Option<u64>,
}

/// The part of the network that may be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "'any' or a list of TCP ports")]
pub enum Connect {
    /// TCP connections to these ports, and UDP if 53 is among them.
    Ports(Vec<u16>),
    /// All of it.
    Any(Any),
}

impl Default for Connect {
    /// No network.
    fn default() -> Self {
        Self::Ports(Vec::new())
    }
}

/// The word for the whole network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Any {
    /// The whole network.
    Any,
}
