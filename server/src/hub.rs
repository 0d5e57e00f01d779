//! The hub: everything a process has one of, put together. The command line and the MCP front are
//! two users of it.

use crate::config::Config;
use crate::error::Error;
use crate::meta::Answer;
use crate::runs::{ExecuteRequest, Watcher};
use crate::upstream::Upstream;
use agentscript::Outcome;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Catalogue, pipeline, runs and meta-tools of one process.
pub struct Hub {
    config: Config,
}

impl Hub {
    /// Put everything together and start connecting the upstreams of the configuration. `more` are
    /// upstreams made by the caller (fixtures, tools written in Rust).
    ///
    /// # Errors
    /// An upstream that can never work.
    pub fn start(config: Config, more: Vec<Arc<dyn Upstream>>) -> Result<Arc<Self>, Error> {
        let _ = more;
        Ok(Arc::new(Self { config }))
    }

    /// Wait until every upstream has been reached or has failed for the first time, at most
    /// `patience`.
    pub async fn ready(&self, patience: Duration) {
        let _ = patience;
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Run a script.
    pub async fn execute(&self, request: ExecuteRequest, watcher: Watcher, cancel: CancellationToken) -> Outcome {
        let _ = (request, watcher, cancel);
        Outcome { result: Ok("null".into()), logs: Vec::new(), stats: Default::default() }
    }

    /// Call a meta-tool by any of its spellings; absent: there is none of that name.
    pub async fn meta(&self, name: &str, arguments: Value, watcher: Watcher, cancel: CancellationToken) -> Option<Answer> {
        let _ = (name, arguments, watcher, cancel);
        None
    }

    /// End all runs and let go of all upstreams; child processes are gone when it returns.
    pub async fn close(&self) {}
}
