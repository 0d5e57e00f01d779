//! The hub: the parts of a server process, put together. The command line, `mcp` and `http` use it.

mod active;
mod durable;
mod execute;
mod history;
mod live;
mod metrics;
mod offer;
mod principal;
mod readiness;
mod replicas;
mod resources;
mod skills;
mod start;
mod status;
mod store_watch;
mod tool_examples;

pub use active::ActiveRun;
pub(crate) use durable::PASSING;
pub use durable::{
    Durable, DurableEngine, EngineProblem, Found, NotResumed, OpenRun, Owner, Resumed, RunState, Start, Started,
    interpreter,
};
pub use history::{History, format_time, parse_time};
pub use live::{Changes, LiveHub};
pub use offer::{ClientKind, Offer};
pub use principal::Principal;
pub use replicas::{Incoming, NotAnswered, Replicas, Served};
pub use skills::{ListedSkill, SkillListing, UnreadSkill};
pub use start::{Extensions, load_script_tools};
pub use status::{BrokenStatus, Load, ServerStatus, Status};
pub use store_watch::StoreStatus;
pub use tool_examples::{ExampleResult, run_examples};

use crate::stateless::Stateless;
use codecall_base::client::Client;
use codecall_base::redact::SecretRegistry;
use codecall_config::Config;
use codecall_runs::{Executor, Runs};
use codecall_scripts::ScriptTools;
use codecall_skills::Folders;
use codecall_store::{Database, RateLimiter};
use codecall_tools::catalogue::{Catalogue, Snapshot};
use codecall_tools::pipeline::Pipeline;
use codecall_tools::results::Results;
use codecall_tools::search::Engine;
use codecall_upstream::mcp::LogLevel;
use codecall_upstream::{Upstream, UpstreamNotification};
use futures_util::future::join_all;
use offer::{Fronts, Signatures};
use start::HubServices;
use status::StartTimes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::{broadcast, watch};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Catalogue, search, pipeline and runs of a process.
pub struct Hub {
    config: Config,
    services: HubServices,
    /// The upstreams of the configuration, by app.
    configured: BTreeMap<String, Arc<dyn Upstream>>,
    /// The tools of the folder of the configuration.
    script_tools: Option<Arc<ScriptTools>>,
    /// The folders of skills of the configuration.
    skills: Arc<Folders>,
    catalogue: Arc<Catalogue>,
    search: Arc<Engine>,
    pipeline: Arc<Pipeline>,
    runs: Arc<Runs>,
    results: Results,
    /// Runs of `code_execution`, which have permits of their own.
    code_runs: Option<Runs>,
    stateless: Stateless,
    /// Sends the notifications of upstreams to clients, if resources and prompts are exposed.
    notifications: broadcast::Sender<UpstreamNotification>,
    /// The lowest level of log messages that a client has set.
    log_level: Arc<watch::Sender<Option<LogLevel>>>,
    /// The client of the process, if it has one only.
    only_client: Arc<Mutex<Option<Client>>>,
    /// Number of subscriptions to a resource, by its URI.
    subscribed: Arc<Mutex<BTreeMap<String, usize>>>,
    /// The restrictions of confined MCP servers, a line for each.
    confined: Vec<String>,
    /// The requests of MCP clients in progress.
    requests: TaskTracker,
    started: Instant,
    /// The upstreams that were starting when the hub was created.
    starting: Vec<Arc<dyn Upstream>>,
    /// When the first hub of the server was created.
    created: Instant,
    start_times: StartTimes,
    /// Whether a tool of a snapshot needs the approval of a person.
    needs_approval: Mutex<Option<(Weak<Snapshot>, bool)>>,
    /// The signatures that clients have got.
    signatures: Signatures,
    /// How tools were offered to clients.
    fronts: Fronts,
    /// The client whose hub it is; `None`: that of the server itself.
    principal: Option<Principal>,
    /// The hub that this one shares its parts with, which must not be closed before it.
    #[expect(dead_code, reason = "it is kept as long as this one")]
    base: Option<Arc<Self>>,
}

impl Hub {
    /// Lets all upstreams look whether what their tools are made of has changed.
    pub fn refresh(&self) {
        self.catalogue.upstreams().for_each(|upstream| upstream.refresh());
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the secrets that are redacted in everything that leaves the server. An embedder adds those that its
    /// upstreams and hooks learn of while the server runs; what leaves afterwards is redacted with them. A run keeps the
    /// descriptions of tools that it has begun with.
    #[must_use]
    pub fn secrets(&self) -> &Arc<SecretRegistry> {
        &self.config.secrets
    }

    /// Whether [`LiveHub::restart`] can start the upstream of an app again.
    #[must_use]
    pub fn can_restart(&self, app: &str) -> bool {
        self.configured.contains_key(app)
    }

    /// Returns the catalogue of tools.
    #[must_use]
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// Returns the search engine.
    #[must_use]
    pub fn search(&self) -> &Engine {
        &self.search
    }

    /// Returns the pipeline of tool calls.
    #[must_use]
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Counts a request of a client of the HTTP server.
    pub fn count_request(&self, client: &str, status: u16) {
        self.services.metrics.request(client, status);
    }

    /// Returns the limits of rates.
    pub fn rates(&self) -> &Arc<dyn RateLimiter> {
        &self.services.stores.rates
    }

    /// Returns the store of truncated results.
    #[must_use]
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Returns the service for steps of runs whose clients own the tools.
    #[must_use]
    pub fn stateless(&self) -> &Stateless {
        &self.stateless
    }

    /// Returns the tools of the folder that the configuration names; `None`: it names none.
    #[must_use]
    pub fn script_tools(&self) -> Option<&Arc<ScriptTools>> {
        self.script_tools.as_ref()
    }

    /// Returns what executes scripts, for upstreams whose tools are scripts.
    #[must_use]
    pub fn runs(&self) -> &Arc<Runs> {
        &self.runs
    }

    /// Resolves when the runs of this process have to end.
    pub async fn runs_end(&self) {
        self.runs.closed().await;
    }

    /// Whether a person has to approve calls of some tool.
    #[must_use]
    pub fn needs_approval(&self) -> bool {
        let snapshot = self.catalogue.snapshot();
        let mut known = self.needs_approval.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, needs)) = &*known
            && std::ptr::eq(of.as_ptr(), &raw const *snapshot)
        {
            return *needs;
        }
        let needs = snapshot.rows().iter().any(|entry| self.pipeline.needs_approval(&entry.definition));
        *known = Some((Arc::downgrade(&snapshot), needs));
        needs
    }

    /// Returns the client of the HTTP server that this hub belongs to; `None`: it belongs to the server itself.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns the runs that can outlive the process; `None`: there is no database.
    #[must_use]
    pub fn durable(&self) -> Option<&Arc<Durable>> {
        self.services.durable.as_ref()
    }

    /// Returns the recorder of runs; `None` if runs are not recorded.
    #[must_use]
    pub fn history(&self) -> Option<&Arc<History>> {
        self.services.history.as_ref()
    }

    /// Returns the database in which runs are recorded; `None` if there is none.
    #[must_use]
    pub fn database(&self) -> Option<&Database> {
        self.services.database.as_ref()
    }

    /// Describes how scripts and MCP servers are isolated, a line for each: what is enforced, not what is configured.
    #[must_use]
    pub fn isolation(&self) -> Vec<String> {
        std::iter::once(self.runs.isolation()).chain(self.confined.iter().cloned()).collect()
    }

    /// Returns what evaluates scripts.
    #[must_use]
    pub fn executor(&self) -> &dyn Executor {
        &**self.runs.executor()
    }

    /// Counts a request of an MCP client as in progress until the guard is dropped.
    pub fn begin_request(&self) -> TaskTrackerToken {
        self.requests.token()
    }

    /// Ends all runs with `POOL_DISPOSED`, and refuses new ones. Upstreams stay open.
    pub fn end_runs(&self) {
        self.runs.close();
        self.code_runs.iter().for_each(Runs::close);
        self.stateless.close();
    }

    /// Waits until the requests in progress are answered.
    pub async fn answered(&self) {
        self.requests.close();
        self.requests.wait().await;
    }

    /// Closes what none of `others` uses.
    async fn close_all_but(&self, others: &[Arc<Self>]) {
        if !others.iter().any(|other| Arc::ptr_eq(other.runs.executor(), self.runs.executor())) {
            self.end_runs();
        }
        self.pipeline.result_shapes().flush().await;
        let is_used = |upstream: &Arc<dyn Upstream>| {
            others.iter().any(|other| other.catalogue.upstreams().any(|used| Arc::ptr_eq(used, upstream)))
        };
        let unused = self.catalogue.upstreams().filter(|upstream| !is_used(upstream));
        join_all(unused.map(|upstream| upstream.close())).await;
    }

    /// Cancels all runs and closes all upstreams. Child processes have ended when it returns.
    pub async fn close(&self) {
        self.end_runs();
        self.catalogue.stored().await;
        self.pipeline.result_shapes().flush().await;
        join_all(self.catalogue.upstreams().map(|upstream| upstream.close())).await;
        if let Some(durable) = &self.services.durable {
            durable.close().await;
        }
        if let Some(replicas) = self.replicas() {
            replicas.leave().await;
        }
        if let Some(history) = &self.services.history {
            history.flush().await;
        }
        if let Some(telemetry) = &self.services.telemetry {
            telemetry.flush().await;
        }
    }
}
