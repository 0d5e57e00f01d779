//! The hub: the parts of a server process, put together. The command line, `mcp` and `http` use it.

mod durable;
mod history;
mod live;
mod metrics;
mod principal;
mod replicas;
mod status;
mod tool_examples;

pub use durable::{
    Begun, CODE, Deployment, Durable, Engine as RestateClient, EngineProblem, NotResumed, OpenRun, Owner, PEOPLE,
    Resumed, SNAPSHOTS, Standing, Start, Started, interpreter,
};
pub use history::{History, format_time, parse_time};
pub use live::{Changes, LiveHub};
pub use principal::Principal;
pub use replicas::{Incoming, NotAnswered, Replicas, Served};
pub use status::{Load, ServerStatus, Status};
pub use tool_examples::{ExampleResult, run_examples};

use crate::otel::Telemetry;
use crate::stateless::{Evaluate, Refusal, Stateless, StepAnswer};
use agentscript::Dialect;
use codecall_base::call::{CallContext, Caller};
use codecall_base::client::Client;
use codecall_base::error::Error;
use codecall_base::event::{EventSink, RunEvent, RunId};
use codecall_base::redact::SecretRegistry;
use codecall_base::tool::{ErrorCode, ToolError, ToolFilter, ToolResult};
use codecall_config::{Config, Expose, StdioConfig, UpstreamConfig, UpstreamKind};
use codecall_runs::{ExecuteRequest, Executor, Finished, LogRuns, Refused, RunHook, Runs};
use codecall_scripts::{ScriptTools, Stored, StoredSecrets};
use codecall_store::{Database, RateLimiter, SqlRuns, SqlScriptTools, Stores};
use codecall_tools::catalogue::{Catalogue, Snapshot, Watch};
use codecall_tools::pipeline::{Hook, Pipeline, ToolCall};
use codecall_tools::results::Results;
use codecall_tools::search::Engine;
use codecall_upstream::fetch::Fetcher;
use codecall_upstream::mcp::LogLevel;
use codecall_upstream::openapi::OpenApi;
use codecall_upstream::{Upstream, UpstreamNotification, connect};
use futures_util::future::join_all;
use metrics::{CountCalls, CountRuns, Metrics};
use rmcp::ErrorData;
use rmcp::model;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use status::{StartTimes, time_start};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// How long after the start of the process requests that concern all upstreams wait for those whose tools are not known.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Codes of runs that did not begin.
const REFUSALS: [ErrorCode; 2] = [ErrorCode::QueueFull, ErrorCode::QueueTimeout];

/// Maximum number of queued notifications for clients. More drop the oldest.
const MAX_NOTIFICATIONS: usize = 1_000;

/// The extensions of an embedder. It adds secrets that it knows before the start to [`Config::secrets`], and later ones to
/// [`Hub::secrets`], which is the same registry.
#[derive(Default)]
pub struct Extensions {
    /// More upstreams: tools written in Rust ([`Inline`](codecall_upstream::inline::Inline)), fixtures.
    pub upstreams: Vec<Arc<dyn Upstream>>,
    /// Hooks around every tool call, between the masking of personal data and the cache.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Hooks around every run.
    pub run_hooks: Vec<Arc<dyn RunHook>>,
    /// The stores; `None`: those of the database, or in memory.
    pub stores: Option<Stores>,
    /// The database of what outlives the process: runs are recorded in it as `history` of the configuration says; `None`: runs
    /// are not recorded, and all else is in memory.
    pub database: Option<Database>,
    /// Whether MCP servers whose tools are known from an earlier start are only started when they are needed.
    pub start_lazily: bool,
    /// What sends the spans of this process; the hub sends the last ones when it is closed.
    pub telemetry: Option<Arc<Telemetry>>,
    /// What makes the requests of script tools; `None`: they are sent.
    pub fetcher: Option<Fetcher>,
}

/// The extensions that each hub of a server has.
#[derive(Clone)]
struct Kept {
    upstreams: Vec<Arc<dyn Upstream>>,
    hooks: Vec<Arc<dyn Hook>>,
    run_hooks: Vec<Arc<dyn RunHook>>,
    stores: Stores,
    /// Whether the stores are those of the configuration.
    has_own_stores: bool,
    history: Option<Arc<History>>,
    database: Option<Database>,
    /// Runs that can outlive the process; `None`: there is no database.
    durable: Option<Arc<Durable>>,
    /// The replicas of this server, once it has joined them.
    replicas: Arc<OnceLock<Arc<Replicas>>>,
    start_lazily: bool,
    metrics: Arc<Metrics>,
    telemetry: Option<Arc<Telemetry>>,
    fetcher: Option<Fetcher>,
}

/// Catalogue, search, pipeline and runs of a process.
pub struct Hub {
    config: Config,
    kept: Kept,
    /// The upstreams of the configuration, by app.
    configured: BTreeMap<String, Arc<dyn Upstream>>,
    /// The tools of the folder of the configuration.
    script_tools: Option<Arc<ScriptTools>>,
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
    /// The client whose hub it is; `None`: that of the server itself.
    principal: Option<Principal>,
    /// The hub that this one shares its parts with, which must not be closed before it.
    #[expect(dead_code, reason = "it is kept as long as this one")]
    base: Option<Arc<Self>>,
}

impl Hub {
    /// Creates a hub and begins to connect the upstreams of the configuration. `upstreams` are additional ones, such as
    /// fixtures and tools written in Rust. This needs a tokio runtime.
    ///
    /// # Errors
    /// The configuration of an upstream is unusable, the model for search cannot be loaded, or the audit file cannot be
    /// written.
    pub fn start(config: Config, upstreams: Vec<Arc<dyn Upstream>>) -> Result<Arc<Self>, Error> {
        Self::start_with(config, Extensions { upstreams, ..Extensions::default() })
    }

    /// Does the same as [`Hub::start`], with all extensions of an embedder.
    ///
    /// # Errors
    /// Those of [`Hub::start`].
    pub fn start_with(config: Config, extensions: Extensions) -> Result<Arc<Self>, Error> {
        let Extensions { upstreams, hooks, run_hooks, stores, database, start_lazily, telemetry, fetcher } = extensions;
        let has_own_stores = stores.is_none();
        let stores = stores.unwrap_or_else(|| {
            let stores = Stores::in_memory(&config);
            database.iter().fold(stores, |stores, database| stores.in_database(&config, database))
        });
        config.secrets.join_logs();
        let metrics = Metrics::new().map_err(|error| Error::Config(error.to_string()))?;
        let durable = database.as_ref().map(|database| Durable::new(database, &config.durable)).transpose();
        let durable = durable.map_err(|problem| Error::Config(problem.to_string()))?;
        let history =
            database.clone().and_then(|database| History::start(Arc::new(SqlRuns(database)), &config.history));
        let kept = Kept {
            upstreams,
            hooks,
            run_hooks,
            stores,
            has_own_stores,
            history,
            database,
            durable,
            replicas: Arc::default(),
            start_lazily,
            metrics,
            telemetry,
            fetcher,
        };
        Self::build(config, kept, None)
    }

    /// Creates the hub of another configuration, with all of this one that has not changed.
    fn successor(&self, mut config: Config) -> Result<Arc<Self>, Error> {
        let mut kept = self.kept.clone();
        if kept.has_own_stores && !config.sections.has_same(&self.config.sections, "cache") {
            kept.stores.answers = Stores::in_memory(&config).answers;
        }
        // What was a secret stays one.
        self.config.secrets.add_from(&config.secrets);
        config.secrets = Arc::clone(&self.config.secrets);
        config.isolation.program.clone_from(&self.config.isolation.program);
        Self::build(config, kept, Some(self))
    }

    fn build(config: Config, kept: Kept, previous: Option<&Self>) -> Result<Arc<Self>, Error> {
        let same =
            |section: &str| previous.filter(|previous| config.sections.has_same(&previous.config.sections, section));
        let search = match same("search") {
            Some(previous) => Arc::clone(&previous.search),
            None => Arc::new(Engine::open(&config.search, &kept.stores)?),
        };
        let mut upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)> =
            kept.upstreams.iter().map(|upstream| (Arc::clone(upstream), ToolFilter::default())).collect();
        let (mut confined, mut configured, mut is_new) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (app, upstream) in &config.upstreams {
            let running = previous.and_then(|previous| {
                let before = previous.config.upstreams.get(app)?;
                previous.configured.get(app).filter(|_| before.entry == upstream.entry)
            });
            confined.extend(confinement(app, upstream)?);
            let connected = match running {
                Some(running) => Arc::clone(running),
                None => {
                    is_new.push(app.clone());
                    connect(app, upstream, &config.secrets, &kept.stores, kept.start_lazily)?
                }
            };
            configured.insert(app.clone(), Arc::clone(&connected));
            upstreams.push((connected, upstream.tools()));
        }
        let same_services = same("openapi");
        for (app, service) in &config.openapi {
            let running = same_services.and_then(|previous| previous.configured.get(app));
            let connected = running.cloned().unwrap_or_else(|| {
                is_new.push(app.clone());
                OpenApi::start(app, service, &config.secrets)
            });
            configured.insert(app.clone(), Arc::clone(&connected));
            upstreams.push((connected, ToolFilter::default()));
        }
        let same_scripts = same("scriptTools").and_then(|_| same("vm"));
        let script_tools = config.script_tools.is_used().then(|| {
            same_scripts.and_then(|previous| previous.script_tools.clone()).unwrap_or_else(|| {
                is_new.push(config.script_tools.app.clone());
                start_script_tools(&config, kept.database.as_ref())
            })
        });
        let scripts = script_tools.iter().map(|tools| (Arc::clone(tools) as Arc<dyn Upstream>, ToolFilter::default()));
        upstreams.extend(scripts);
        let watch = change_watch(&config, &kept)?;
        let catalogue = Catalogue::watched(upstreams, config.tools.clone(), Arc::clone(&config.secrets), watch);
        let catalogue = Arc::new(catalogue);
        let starting = catalogue.upstreams().filter(|upstream| upstream.is_starting()).cloned().collect();
        catalogue.follow();
        kept.metrics.set_apps(catalogue.upstreams().map(|upstream| upstream.app().to_owned()));
        let start_times = previous.map(|previous| Arc::clone(&previous.start_times)).unwrap_or_default();
        if !kept.start_lazily {
            let is_started = |app: &str| previous.is_none() || is_new.iter().any(|new| new == app);
            for upstream in catalogue.upstreams().filter(|up| is_started(up.app())) {
                tokio::spawn(time_start(Arc::clone(upstream), Arc::clone(&start_times)));
            }
        }
        let mut hooks = kept.hooks.clone();
        hooks.push(Arc::new(CountCalls(Arc::clone(&kept.metrics))));
        hooks.extend(kept.history.iter().map(|history| Arc::clone(history) as Arc<dyn Hook>));
        let pipeline = Pipeline::configured(Arc::clone(&catalogue), &config, &kept.stores, hooks)?;
        let pipeline = Arc::new(match &kept.fetcher {
            Some(fetcher) => pipeline.with_fetcher(fetcher.clone()),
            None => pipeline,
        });
        if let Some(history) = &kept.history {
            history.set_pipeline(&pipeline);
        }
        let has_same_threads = ["pool", "isolation", "vm"].into_iter().all(|section| same(section).is_some());
        let runs = match previous.filter(|_| has_same_threads) {
            Some(previous) => previous.runs.with_tools(Arc::clone(&catalogue), Arc::clone(&pipeline)),
            None => {
                let mut run_hooks = kept.run_hooks.clone();
                run_hooks.extend(kept.history.iter().map(|history| Arc::clone(history) as Arc<dyn RunHook>));
                run_hooks.push(Arc::new(LogRuns));
                run_hooks.push(Arc::new(CountRuns(Arc::clone(&kept.metrics))));
                Runs::new(Arc::clone(&catalogue), Arc::clone(&pipeline), config.pool)
                    .with_hooks(run_hooks)
                    .with_isolation(&config.isolation, &config.policy)?
            }
        };
        let runs = Arc::new(runs);
        if let Some(tools) = &script_tools {
            tools.set_runs(&runs);
        }
        let code_runs = || match previous.and_then(|previous| previous.code_runs.as_ref()) {
            Some(running) if has_same_threads && same("code_execution_pool_size").is_some() => {
                running.with_tools(Arc::clone(&catalogue), Arc::clone(&pipeline))
            }
            Some(_) | None => runs.with_separate_permits(config.code_execution.pool_size),
        };
        let code_runs = config.code_execution.enabled.then(code_runs);
        let results = Results::new(Arc::clone(&kept.stores.results), config.result_store, Arc::clone(&config.secrets));
        let notifications = previous
            .map_or_else(|| broadcast::Sender::new(MAX_NOTIFICATIONS), |previous| previous.notifications.clone());
        if config.tools.expose == Expose::Direct {
            let was_exposed = previous.is_some_and(|previous| previous.config.tools.expose == Expose::Direct);
            for upstream in catalogue.upstreams() {
                let is_forwarded = was_exposed && !is_new.iter().any(|app| app == upstream.app());
                if let Some(resources) = upstream.resources_and_prompts().filter(|_| !is_forwarded) {
                    let forwarding =
                        forward_notifications(resources.notifications(), Arc::clone(&pipeline), notifications.clone());
                    tokio::spawn(forwarding);
                }
            }
        }
        let log_level = previous.map(|previous| Arc::clone(&previous.log_level)).unwrap_or_default();
        let only_client: Arc<Mutex<Option<Client>>> =
            previous.map(|previous| Arc::clone(&previous.only_client)).unwrap_or_default();
        let known = only_client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(client) = known {
            let new = catalogue.upstreams().filter(|upstream| is_new.iter().any(|app| app == upstream.app()));
            new.filter_map(|up| up.resources_and_prompts()).for_each(|up| up.set_only_client(client.clone()));
        }
        let subscribed = previous.map(|previous| Arc::clone(&previous.subscribed)).unwrap_or_default();
        let (stateless, started) = (Stateless::new(&config, Arc::clone(runs.executor())), Instant::now());
        Ok(Arc::new(Self {
            config,
            kept,
            configured,
            script_tools,
            catalogue,
            search,
            pipeline,
            runs,
            code_runs,
            stateless,
            requests: TaskTracker::new(),
            results,
            notifications,
            log_level,
            only_client,
            subscribed,
            confined,
            started,
            starting,
            created: previous.map_or(started, |previous| previous.created),
            start_times,
            needs_approval: Mutex::default(),
            principal: None,
            base: None,
        }))
    }

    /// Lets all upstreams look whether what their tools are made of has changed.
    pub fn refresh(&self) {
        self.catalogue.upstreams().for_each(|upstream| upstream.refresh());
    }

    /// Returns a receiver of the notifications of upstreams. There are none unless resources and prompts are exposed.
    #[must_use]
    pub fn notifications(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.notifications.subscribe()
    }

    /// Subscribes to changes of a resource. Each call needs a call of [`Hub::unsubscribe`].
    ///
    /// # Errors
    /// No upstream accepts the subscription.
    pub async fn subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        self.wait_for_connections().await;
        let add_one = |count: &mut usize| *count += 1;
        let subscribed = || self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if subscribed().get_mut(uri).map(add_one).is_some() {
            return Ok(());
        }
        self.subscribe_upstreams(uri, true).await?;
        *subscribed().entry(uri.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Cancels one subscription to a resource.
    pub async fn unsubscribe(&self, uri: &str) {
        let is_last = {
            let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
            match subscribed.get_mut(uri) {
                Some(count) if *count > 1 => {
                    *count -= 1;
                    false
                }
                Some(_) => subscribed.remove(uri).is_some(),
                None => false,
            }
        };
        if is_last {
            // If the upstream refuses, its notifications are not forwarded.
            let _ = self.subscribe_upstreams(uri, false).await;
        }
    }

    /// Subscribes or unsubscribes at all upstreams, because a URI does not name its upstream. One success is enough.
    async fn subscribe_upstreams(&self, uri: &str, wanted: bool) -> Result<(), ErrorData> {
        let offering = self.catalogue.upstreams().filter_map(|upstream| upstream.resources_and_prompts());
        let answers = join_all(offering.map(|upstream| upstream.set_subscribed(uri, wanted))).await;
        let mut refused = None;
        for answer in answers {
            match answer {
                Ok(()) => return Ok(()),
                Err(error) if error.code == model::ErrorCode::METHOD_NOT_FOUND => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let unsupported = || ErrorData::resource_not_found("No server supports subscriptions to this resource", None);
        let mut error = refused.unwrap_or_else(unsupported);
        error.message = self.pipeline.masked_text(&error.message).into();
        Err(error)
    }

    /// Sets the only client of this process, which servers with a session may ask for its roots at any time. Call it again
    /// when its roots have changed.
    pub fn set_only_client(&self, client: &Client) {
        *self.only_client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        let upstreams = self.catalogue.upstreams().filter_map(|up| up.resources_and_prompts());
        upstreams.for_each(|up| up.set_only_client(client.clone()));
    }

    /// Asks the servers with a session for log messages of this level and above. If clients want different levels, the lowest
    /// one counts; each client gets what it wants.
    pub fn set_log_level(&self, level: LogLevel) {
        let is_lower = self.log_level.send_if_modified(|lowest| {
            let is_lower = lowest.is_none_or(|lowest| (level as u8) < lowest as u8);
            if is_lower {
                *lowest = Some(level);
            }
            is_lower
        });
        if is_lower {
            self.catalogue.upstreams().filter_map(|up| up.resources_and_prompts()).for_each(|up| up.set_level(level));
        }
    }

    /// Starts all upstreams. Waits until every one has connected or failed for the first time, at most `timeout`.
    pub async fn ready(&self, timeout: Duration) {
        let settled = join_all(self.catalogue.upstreams().map(|upstream| upstream.first_attempt()));
        let _ = tokio::time::timeout(timeout, settled).await;
        self.catalogue.catch_up();
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
        self.kept.metrics.request(client, status);
    }

    /// Returns the limits of rates.
    pub fn rates(&self) -> &Arc<dyn RateLimiter> {
        &self.kept.stores.rates
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

    /// Takes a step of a run whose client owns the tools, and records it.
    ///
    /// # Errors
    /// The step was not taken.
    pub async fn step(&self, request: Evaluate, cancel: CancellationToken) -> Result<StepAnswer, Refusal> {
        let Some(history) = &self.kept.history else { return self.stateless.evaluate(request, cancel).await };
        let (script, context, began) =
            (request.code.clone(), request.context.clone().map(Value::Object), Instant::now());
        let answer = self.stateless.evaluate(request, cancel).await?;
        history.step(&script, context.as_ref(), &answer.value, answer.is_error, began.elapsed());
        Ok(answer)
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
        self.kept.durable.as_ref()
    }

    /// Returns the recorder of runs; `None` if runs are not recorded.
    #[must_use]
    pub fn history(&self) -> Option<&Arc<History>> {
        self.kept.history.as_ref()
    }

    /// Returns the database in which runs are recorded; `None` if there is none.
    #[must_use]
    pub fn database(&self) -> Option<&Database> {
        self.kept.database.as_ref()
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

    /// Runs a script. If it or its context mentions servers whose tools are not known, it begins once they are, or after the
    /// time limit of a tool call.
    // The request is in a box from the start: each future that it is moved through would hold it twice.
    pub fn execute(
        &self,
        request: ExecuteRequest,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> impl Future<Output = Finished> + Send + '_ {
        self.execute_request(Box::new(request), sink, cancel)
    }

    async fn execute_request(
        &self,
        mut request: Box<ExecuteRequest>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Finished {
        let texts = [&*request.script, request.context.as_deref().unwrap_or_default()];
        let known = cancel.run_until_cancelled(self.catalogue.wait_for_mentioned(&texts));
        let limit = Duration::from_millis(request.policy.limits.tool_timeout_ms);
        // The run of a cancelled request says so itself, and a call of an unknown tool says why it is not known.
        let _ = tokio::time::timeout(limit, known).await;
        if let Some(durable) = &self.kept.durable
            && request.journal.is_none()
            && self.needs_approval()
        {
            let id = request.id.get_or_insert_with(RunId::random).clone();
            request.journal = durable.journal(self, &id, &request).await;
        }
        let runs = match (request.dialect, &self.code_runs) {
            (Dialect::Sync, Some(runs)) => runs,
            (Dialect::Sync | Dialect::Async, _) => &*self.runs,
        };
        let permits =
            self.principal.as_ref().filter(|_| request.parent.is_none()).and_then(|principal| principal.runs.as_ref());
        let runs = match permits.map(|permits| Arc::clone(permits).try_acquire_owned()) {
            None => Ok((runs, None)),
            Some(Ok(permit)) => Ok((runs, Some(permit))),
            Some(Err(_)) => Err(runs),
        };
        let finished = match runs {
            Ok((runs, _permit)) => runs.execute(*request, self.redacting(sink), cancel).await,
            Err(runs) => {
                let message = "This client already runs as many scripts at once as it may; try again later";
                runs.refuse(Refused { code: ErrorCode::QueueFull, message: message.into() })
            }
        };
        if finished.has_waited
            && !finished.is_paused
            && let Some(durable) = &self.kept.durable
        {
            durable.withdraw(&finished.id).await;
        }
        if let Err(failure) = &finished.outcome.result
            && let Some(code) = REFUSALS.iter().find(|code| failure.code == code.as_str())
        {
            self.kept.metrics.refused(*code);
        }
        finished
    }

    /// Wraps an event sink so that messages of the script are redacted. Events of tool calls are redacted already.
    fn redacting(&self, sink: EventSink) -> EventSink {
        let sink = sink?;
        let secrets = Arc::clone(&self.config.secrets);
        Some(Arc::new(move |mut event| {
            if let RunEvent::Message(message) = &mut event {
                secrets.redactor().redact_message(message);
            }
            sink(event);
        }))
    }

    /// Calls a listed tool; `None` if there is none of that name. The result is that of the upstream, unchanged.
    pub async fn direct(
        &self,
        name: &str,
        input: Map<String, Value>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Option<Result<ToolResult, ToolError>> {
        self.direct_for(name, input, Client::default(), sink, cancel).await
    }

    /// Does the same for a client that the tool can ask.
    pub async fn direct_for(
        &self,
        name: &str,
        input: Map<String, Value>,
        client: Client,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Option<Result<ToolResult, ToolError>> {
        if self.catalogue.snapshot().listed().lookup(name).is_none()
            && cancel.run_until_cancelled(self.wait_for_tools()).await.is_none()
        {
            return Some(Err(ToolError::new(ErrorCode::ExecutionAborted, "The request was cancelled")));
        }
        // The pipeline checks again that the tool exists; this decides whether the name is one of a tool.
        self.catalogue.snapshot().listed().lookup(name)?;
        let call = ToolCall {
            tool: name.to_owned(),
            input,
            context: CallContext { client, ..self.context(Caller::Direct, sink, cancel) },
            allowed: None,
            apps: None,
        };
        Some(self.pipeline.call(call).await)
    }

    /// Returns the context of a call that no script makes.
    #[must_use]
    pub fn context(&self, caller: Caller, sink: EventSink, cancel: CancellationToken) -> CallContext {
        let timeout = Duration::from_millis(self.config.policy.limits.tool_timeout_ms);
        CallContext { caller, run: None, timeout, client: Client::default(), sink, cancel }
    }

    /// Waits until what earlier processes have stored of the tools of upstreams is read. Returns whether there was something.
    pub async fn recalled(&self) -> bool {
        let left = STARTUP_TIMEOUT.saturating_sub(self.started.elapsed());
        let recalled = join_all(self.starting.iter().map(|upstream| upstream.recalled()));
        let recalled = tokio::time::timeout(left, recalled).await.unwrap_or_default();
        self.catalogue.catch_up();
        recalled.contains(&true)
    }

    /// Waits until the tools of all upstreams are known, up to [`STARTUP_TIMEOUT`] after the start of the hub. Nobody waits
    /// for upstreams whose tools are known from an earlier start.
    pub async fn wait_for_tools(&self) {
        let left = STARTUP_TIMEOUT.saturating_sub(self.started.elapsed());
        if !left.is_zero() {
            let _ = tokio::time::timeout(left, self.catalogue.wait_for_all()).await;
            self.catalogue.catch_up();
        }
    }

    /// Waits until there are tools to search: nobody waits if some are known from an earlier start, whatever the others do.
    pub async fn wait_for_search(&self) {
        if !self.recalled().await {
            self.wait_for_tools().await;
        }
    }

    /// Waits for the connections of all upstreams, up to [`STARTUP_TIMEOUT`] after the start of the hub.
    pub async fn wait_for_connections(&self) {
        let left = STARTUP_TIMEOUT.saturating_sub(self.started.elapsed());
        if !left.is_zero() {
            self.ready(left).await;
        }
    }

    /// Waits until tools are known, at most for the time limit of a tool call.
    pub async fn wait_for_named(&self, names: &[String]) {
        let limit = Duration::from_millis(self.config.policy.limits.tool_timeout_ms);
        let known = join_all(names.iter().map(|name| self.catalogue.wait_for_tool(name)));
        let _ = tokio::time::timeout(limit, known).await;
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
        self.pipeline.seen().flush().await;
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
        self.pipeline.seen().flush().await;
        join_all(self.catalogue.upstreams().map(|upstream| upstream.close())).await;
        if let Some(durable) = &self.kept.durable {
            durable.close().await;
        }
        if let Some(replicas) = self.replicas() {
            replicas.leave().await;
        }
        if let Some(history) = &self.kept.history {
            history.flush().await;
        }
        if let Some(telemetry) = &self.kept.telemetry {
            telemetry.flush().await;
        }
    }
}

/// Loads the script tools of a configuration, and follows them.
fn start_script_tools(config: &Config, database: Option<&Database>) -> Arc<ScriptTools> {
    let tools = load_script_tools(config, database);
    tools.follow();
    tools
}

/// Loads the script tools of a configuration: those of its folder; those of the store when they are refreshed.
#[must_use]
pub fn load_script_tools(config: &Config, database: Option<&Database>) -> Arc<ScriptTools> {
    let scripts = &config.script_tools;
    let stored = database
        .filter(|_| scripts.stored)
        .map(|database| Stored::new(Arc::new(SqlScriptTools(database.clone())), scripts.workspace(&config.store)));
    if scripts.stored && stored.is_none() {
        tracing::warn!("scriptTools.stored: there is no store, so there are no stored tools");
    }
    let secrets = Arc::new(StoredSecrets::new(config, database.cloned()));
    ScriptTools::load(scripts, stored, config.policy.clone(), secrets, Arc::clone(&config.secrets))
}

/// Returns which tools wait for approval; `None`: none does.
fn change_watch(config: &Config, kept: &Kept) -> Result<Option<Watch>, Error> {
    let all = config.tools.quarantine;
    let servers = config.upstreams.iter().map(|(app, server)| {
        (app.clone(), (server.quarantine.unwrap_or(all), codecall_upstream::session::identity(app, server)))
    });
    let services = config.openapi.iter().map(|(app, service)| {
        let identity = Sha256::digest(format!("openapi\0{app}\0{}", &*service.spec));
        (app.clone(), (service.quarantine.unwrap_or(all), identity.into()))
    });
    let watch = Watch::new(Arc::clone(&kept.stores.approvals), servers.chain(services).collect());
    if watch.is_empty() {
        return Ok(None);
    }
    if kept.has_own_stores && kept.database.is_none() {
        let message = "quarantine: there is no store where approvals are kept; name one with 'store'";
        return Err(Error::Config(message.into()));
    }
    Ok(Some(watch))
}

/// Describes how an upstream is confined; `None` if it is not.
fn confinement(app: &str, upstream: &UpstreamConfig) -> Result<Option<String>, Error> {
    let UpstreamKind::Stdio(StdioConfig { command, confine: Some(confine), .. }) = &upstream.kind else {
        return Ok(None);
    };
    let protections = codecall_upstream::confine::check(confine, command)
        .map_err(|message| Error::Upstream { app: app.to_owned(), message })?;
    let line = format!("MCP server '{app}' is confined by: {}", protections.describe());
    if protections.files && protections.calls {
        tracing::info!("{line}");
    } else {
        tracing::warn!("{line}");
    }
    Ok(Some(line))
}

/// Forwards the notifications of an upstream, redacted, until it is closed.
async fn forward_notifications(
    mut receiver: broadcast::Receiver<UpstreamNotification>,
    pipeline: Arc<Pipeline>,
    sender: broadcast::Sender<UpstreamNotification>,
) {
    loop {
        match receiver.recv().await {
            Ok(UpstreamNotification::Log(mut message)) => {
                message.data = (*pipeline.masked(&Arc::new(message.data))).clone();
                message.logger = message.logger.map(|logger| pipeline.masked_text(&logger));
                let _ = sender.send(UpstreamNotification::Log(message));
            }
            Ok(notification) => drop(sender.send(notification)),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
