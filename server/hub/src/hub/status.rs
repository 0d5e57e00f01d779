//! How a server is: its MCP servers and other upstreams, and its runs.

use super::{Hub, StoreStatus};
use codecall_base::tool::ToolError;
use futures_util::FutureExt as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a server is at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// Whether each upstream has been connected or has failed, and the store can be used.
    pub ready: bool,
    /// The store; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreStatus>,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// All upstreams.
    pub servers: Vec<ServerStatus>,
    /// How tools are offered to clients, by the name that they give themselves: `code`, `direct` or `bridge`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fronts: BTreeMap<String, Vec<String>>,
    /// Scripts that run.
    pub runs: Load,
    /// Where scripts are evaluated, and how MCP servers are confined.
    pub isolation: Vec<String>,
}

/// How an upstream is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// The id of its app; empty: its tools have none.
    pub app: String,
    /// Its kind: `mcp`, `openapi`, `inline`, ….
    pub source: String,
    /// `starting`, `up`, `idle` (a call starts it) or `failed`.
    pub state: String,
    /// How many of its tools scripts can call.
    pub tools: usize,
    /// How many of its tools wait for approval.
    #[serde(default)]
    pub pending: usize,
    /// How long it took to start, in milliseconds; `None`: it is starting.
    pub start_ms: Option<u64>,
    /// Why its tools are unavailable.
    pub error: Option<String>,
    /// The last lines of stderr of its process, which has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_output: Vec<String>,
    /// Oddities of its tools: parts that are left out or mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<String>,
    /// Its tools that cannot be used as they are now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<BrokenStatus>,
}

/// A tool that cannot be used as it is now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrokenStatus {
    /// Its name, without the app.
    pub name: String,
    /// The name of its file.
    pub file: String,
    /// Why, with the place in the file.
    pub error: String,
    /// Whether its last good version stays in use.
    pub has_good_version: bool,
}

/// The load of a pool of scripts.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Load {
    /// Scripts that run.
    pub active: usize,
    /// Scripts that have begun, and wait for tools, timers or people.
    #[serde(default)]
    pub waiting: usize,
    /// Scripts that could begin at once.
    pub available: usize,
    /// Scripts that wait to begin.
    pub queued: usize,
}

/// How long upstreams took to start, by app.
pub type StartTimes = Arc<Mutex<BTreeMap<String, Duration>>>;

impl Hub {
    /// Returns how the server is.
    #[must_use]
    pub fn status(&self) -> Status {
        self.catalogue.catch_up();
        let snapshot = self.catalogue.snapshot();
        let times = self.start_times.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let clean = |reason: String| self.pipeline.masked_error(ToolError::new("", reason)).message;
        let servers: Vec<ServerStatus> = self
            .catalogue
            .upstreams()
            .map(|upstream| {
                let is_starting = upstream.start_ended().now_or_never().is_none();
                let error = upstream.unavailable_reason().map(clean);
                let state = match &error {
                    _ if is_starting => "starting",
                    Some(_) => "failed",
                    None if upstream.is_idle() => "idle",
                    None => "up",
                };
                let broken = upstream.broken_tools().into_iter().map(|tool| BrokenStatus {
                    error: clean(tool.reason),
                    name: tool.name,
                    file: tool.file,
                    has_good_version: tool.has_good_version,
                });
                let own = snapshot.rows().iter().filter(|entry| Arc::ptr_eq(&entry.upstream, upstream));
                let start_ms =
                    times.get(upstream.app()).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                ServerStatus {
                    app: upstream.app().to_owned(),
                    source: upstream.source().to_owned(),
                    state: state.to_owned(),
                    tools: own.count(),
                    pending: snapshot.pending().iter().filter(|tool| tool.app() == upstream.app()).count(),
                    start_ms: start_ms.filter(|_| !is_starting),
                    error,
                    last_output: upstream.last_output().into_iter().map(clean).collect(),
                    oddities: upstream.oddities().into_iter().map(clean).collect(),
                    broken: broken.collect(),
                }
            })
            .collect();
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ready: self.is_store_usable() && servers.iter().all(|server| server.state != "starting"),
            store: self.store_status(),
            uptime_seconds: self.created.elapsed().as_secs(),
            servers,
            fronts: self.fronts(),
            runs: self.loads().next().map(|(_, load)| load).unwrap_or_default(),
            isolation: self.isolation(),
        }
    }

    /// Whether each upstream has been connected or has failed, and the store can be used.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_store_usable() && self.are_upstreams_started()
    }

    /// Whether each upstream has been connected or has failed.
    #[must_use]
    pub fn are_upstreams_started(&self) -> bool {
        self.catalogue.upstreams().all(|upstream| upstream.start_ended().now_or_never().is_some())
    }

    /// Returns how many upstreams do not work, and how many there are.
    #[must_use]
    pub fn failed_upstreams(&self) -> (usize, usize) {
        let failed = self.catalogue.upstreams().filter(|upstream| upstream.unavailable_reason().is_some());
        (failed.count(), self.catalogue.upstreams().count())
    }

    /// Returns the load of each pool of scripts, by name.
    pub fn loads(&self) -> impl Iterator<Item = (&'static str, Load)> {
        let load = |runs: &codecall_runs::Runs| {
            let codecall_runs::Load { active, waiting, available, queued } = runs.load();
            Load { active, waiting, available, queued }
        };
        let execute = ("execute", load(&self.runs));
        std::iter::once(execute).chain(self.code_runs.as_ref().map(|runs| ("code_execution", load(runs))))
    }

    /// Returns how many scripts can have begun at once.
    #[must_use]
    pub fn max_begun_runs(&self) -> usize {
        self.runs.max_begun()
    }

    /// Returns the memory of all running scripts in bytes.
    #[must_use]
    pub fn script_bytes(&self) -> u64 {
        self.runs.memory_bytes()
    }

    /// Returns the figures of the server in the text format of Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.services.metrics.text(self)
    }
}

/// Records how long an upstream takes to start.
pub async fn time_start(upstream: Arc<dyn codecall_upstream::Upstream>, times: StartTimes) {
    times.lock().unwrap_or_else(PoisonError::into_inner).remove(upstream.app());
    // Only then it is known whether it waits for its turn.
    upstream.recalled().await;
    upstream.start_begun().await;
    let began = Instant::now();
    upstream.start_ended().await;
    times.lock().unwrap_or_else(PoisonError::into_inner).insert(upstream.app().to_owned(), began.elapsed());
}
