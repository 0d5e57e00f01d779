//! How a hub is put together: of a configuration, the extensions of an embedder, and what has not changed of the hub before.

use super::active::ActiveRuns;
use super::metrics::{CountCalls, CountRuns, Metrics};
use super::offer::{Fronts, Signatures};
use super::resources::forward_notifications;
use super::status::time_start;
use super::store_watch::StoreWatch;
use super::{Durable, DurableEngine, History, Hub, Replicas};
use crate::otel::Telemetry;
use crate::stateless::Stateless;
use codecall_base::client::Client;
use codecall_base::error::Error;
use codecall_base::tool::ToolFilter;
use codecall_config::{Config, StartTime, StdioConfig, UpstreamConfig, UpstreamKind};
use codecall_runs::{LogRuns, RunHook, Runs};
use codecall_scripts::{ScriptTools, Stored, StoredSecrets};
use codecall_store::{Database, NO_STORE, SqlRuns, SqlScriptTools, Stores};
use codecall_tools::catalogue::{Catalogue, Watch};
use codecall_tools::pipeline::{Hook, Pipeline};
use codecall_tools::results::Results;
use codecall_tools::search::Engine;
use codecall_upstream::fetch::Fetcher;
use codecall_upstream::openapi::OpenApi;
use codecall_upstream::unusable::Unusable;
use codecall_upstream::{Start, StartQueue, Upstream, connect};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::broadcast;
use tokio_util::task::TaskTracker;

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
    /// The engine that keeps the journals of durable runs. `None`: a configuration that names an engine is refused.
    pub engine: Option<Arc<dyn DurableEngine>>,
    /// Whether MCP servers whose tools are known from an earlier start are only started when they are needed.
    pub start_lazily: bool,
    /// The sender of the spans of this process; the hub sends the last ones when it is closed.
    pub telemetry: Option<Arc<Telemetry>>,
    /// The fetcher that makes the requests of script tools; `None`: they are sent.
    pub fetcher: Option<Fetcher>,
}

/// The extensions that each hub of a server has.
#[derive(Clone)]
pub(super) struct HubServices {
    pub(super) upstreams: Vec<Arc<dyn Upstream>>,
    pub(super) hooks: Vec<Arc<dyn Hook>>,
    pub(super) run_hooks: Vec<Arc<dyn RunHook>>,
    pub(super) stores: Stores,
    /// Whether the stores are those of the configuration.
    pub(super) has_own_stores: bool,
    pub(super) history: Option<Arc<History>>,
    pub(super) database: Option<Database>,
    pub(super) store_watch: Arc<StoreWatch>,
    /// Runs that can outlive the process; `None`: there is no database.
    pub(super) durable: Option<Arc<Durable>>,
    /// The replicas of this server, once it has joined them.
    pub(super) replicas: Arc<OnceLock<Arc<Replicas>>>,
    pub(super) start_lazily: bool,
    /// Where MCP servers wait for their turn to start.
    pub(super) start_queue: Arc<StartQueue>,
    pub(super) active: Arc<ActiveRuns>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) telemetry: Option<Arc<Telemetry>>,
    pub(super) fetcher: Option<Fetcher>,
}

impl Hub {
    /// Creates a hub and begins to connect the upstreams of the configuration. `upstreams` are additional ones, such as
    /// fixtures and tools written in Rust. This needs a tokio runtime.
    ///
    /// # Errors
    /// The configuration of an upstream is unusable, the model for search cannot be loaded, the audit file cannot be
    /// written, or `durable` names an engine.
    pub fn start(config: Config, upstreams: Vec<Arc<dyn Upstream>>) -> Result<Arc<Self>, Error> {
        Self::start_with(config, Extensions { upstreams, ..Extensions::default() })
    }

    /// Does the same as [`Hub::start`], with all extensions of an embedder.
    ///
    /// # Errors
    /// The errors of [`Hub::start`]; `durable` may name the engine of the extensions.
    pub fn start_with(config: Config, extensions: Extensions) -> Result<Arc<Self>, Error> {
        let Extensions { upstreams, hooks, run_hooks, stores, database, engine, start_lazily, telemetry, fetcher } =
            extensions;
        let has_own_stores = stores.is_none();
        let stores = stores.unwrap_or_else(|| Stores::of(&config, database.as_ref()));
        config.secrets.join_logs();
        let metrics = Metrics::new().map_err(|error| Error::Config(error.to_string()))?;
        let durable = database.as_ref().map(|database| Durable::new(database, &config.durable, engine)).transpose();
        let durable = durable.map_err(|problem| Error::Config(problem.to_string()))?;
        let history =
            database.clone().and_then(|database| History::start(Arc::new(SqlRuns(database)), &config.history));
        let services = HubServices {
            upstreams,
            hooks,
            run_hooks,
            stores,
            has_own_stores,
            history,
            database,
            store_watch: Arc::default(),
            durable,
            replicas: Arc::default(),
            start_lazily,
            start_queue: Arc::default(),
            active: Arc::default(),
            metrics,
            telemetry,
            fetcher,
        };
        Self::build(config, services, None, None)
    }

    /// Creates the hub of another configuration, with all of this one that has not changed.
    pub(super) fn successor(&self, mut config: Config) -> Result<Arc<Self>, Error> {
        let mut services = self.services.clone();
        if services.has_own_stores && !config.sections.has_same(&self.config.sections, "cache") {
            services.stores.answers = Stores::of(&config, services.database.as_ref()).answers;
        }
        // What was a secret stays one.
        self.config.secrets.add_from(&config.secrets);
        config.secrets = Arc::clone(&self.config.secrets);
        config.isolation.program.clone_from(&self.config.isolation.program);
        Self::build(config, services, Some(self), None)
    }

    /// Creates the hub of the same configuration, with all of this one but the upstream of an app, which starts again.
    pub(super) fn with_restarted(&self, app: &str) -> Result<Arc<Self>, Error> {
        Self::build(self.config.clone(), self.services.clone(), Some(self), Some(app))
    }

    fn build(
        config: Config,
        services: HubServices,
        previous: Option<&Self>,
        restarted: Option<&str>,
    ) -> Result<Arc<Self>, Error> {
        if config.durable.enabled && services.database.is_none() {
            return Err(Error::Config(NO_STORE.into()));
        }
        let same = |section: &str| unchanged(&config, previous, section);
        let search = match same("search") {
            Some(previous) => Arc::clone(&previous.search),
            None => Arc::new(Engine::open(&config.search, &services.stores)?),
        };
        let skills = match same("skills") {
            Some(previous) => Arc::clone(&previous.skills),
            None => {
                let folders = config.skills.iter().flatten().map(std::path::PathBuf::as_path);
                Arc::new(codecall_skills::Folders::open(folders).map_err(Error::Config)?)
            }
        };
        services.start_queue.set_places(config.servers.start_at_once);
        let Connected { upstreams, configured, confined, script_tools, is_new } =
            Connected::of(&config, &services, previous, restarted)?;
        let watch = change_watch(&config, &services)?;
        let catalogue = Catalogue::watched(upstreams, config.tools.clone(), Arc::clone(&config.secrets), watch);
        let catalogue = Arc::new(catalogue);
        let starting = catalogue.upstreams().filter(|upstream| upstream.is_starting()).cloned().collect();
        catalogue.follow();
        services.metrics.set_apps(catalogue.upstreams().map(|upstream| upstream.app().to_owned()));
        let start_times = previous.map(|previous| Arc::clone(&previous.start_times)).unwrap_or_default();
        if !services.start_lazily {
            for upstream in catalogue.upstreams().filter(|up| previous.is_none() || is_new.contains(up.app())) {
                tokio::spawn(time_start(Arc::clone(upstream), Arc::clone(&start_times)));
            }
        }
        let pipeline = pipeline(&config, &services, &catalogue)?;
        let (runs, code_runs) = runs(&config, &services, previous, &catalogue, &pipeline)?;
        if let Some(tools) = &script_tools {
            tools.set_runs(&runs);
        }
        let results =
            Results::new(Arc::clone(&services.stores.results), config.result_store, Arc::clone(&config.secrets));
        let notifications = previous
            .map_or_else(|| broadcast::Sender::new(MAX_NOTIFICATIONS), |previous| previous.notifications.clone());
        if config.tools.exposes_all() {
            let was_exposed = previous.is_some_and(|previous| previous.config.tools.exposes_all());
            for upstream in catalogue.upstreams().filter(|up| !was_exposed || is_new.contains(up.app())) {
                if let Some(resources) = upstream.resources_and_prompts() {
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
            let new = catalogue.upstreams().filter(|upstream| is_new.contains(upstream.app()));
            new.filter_map(|up| up.resources_and_prompts()).for_each(|up| up.set_only_client(client.clone()));
        }
        let subscribed = previous.map(|previous| Arc::clone(&previous.subscribed)).unwrap_or_default();
        let (stateless, started) = (Stateless::new(&config, Arc::clone(runs.executor())), Instant::now());
        Ok(Arc::new(Self {
            config,
            services,
            configured,
            script_tools,
            skills,
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
            signatures: Signatures::default(),
            fronts: Fronts::default(),
            principal: None,
            base: None,
        }))
    }
}

/// Returns the hub before, if a section of its configuration is that of the new one.
fn unchanged<'a>(config: &Config, previous: Option<&'a Hub>, section: &str) -> Option<&'a Hub> {
    previous.filter(|previous| config.sections.has_same(&previous.config.sections, section))
}

/// The upstreams of a hub.
#[derive(Default)]
struct Connected {
    upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)>,
    /// The upstreams of the configuration, by app.
    configured: BTreeMap<String, Arc<dyn Upstream>>,
    /// The restrictions of confined MCP servers, a line for each.
    confined: Vec<String>,
    script_tools: Option<Arc<ScriptTools>>,
    /// The apps that the hub before had not, or had with another configuration.
    is_new: BTreeSet<String>,
}

impl Connected {
    /// Begins to connect the upstreams of a configuration. Those of the hub before that have not changed go on, but the
    /// restarted one.
    fn of(
        config: &Config,
        services: &HubServices,
        previous: Option<&Hub>,
        restarted: Option<&str>,
    ) -> Result<Self, Error> {
        let goes_on = |app: &String| restarted != Some(app.as_str());
        let mut this = Self::default();
        this.upstreams.extend(services.upstreams.iter().map(|upstream| (Arc::clone(upstream), ToolFilter::default())));
        for (app, upstream) in &config.upstreams {
            let running = previous.and_then(|previous| {
                let before = previous.config.upstreams.get(app)?;
                previous.configured.get(app).filter(|_| before.entry == upstream.entry && goes_on(app))
            });
            this.confined.extend(confinement(app, upstream)?);
            // A server over HTTP starts no process.
            let is_process = matches!(upstream.kind, UpstreamKind::Stdio(_));
            let start = Start {
                secrets: &config.secrets,
                stores: &services.stores,
                queue: &services.start_queue,
                is_lazy: goes_on(app)
                    && (services.start_lazily || (is_process && config.servers.start == StartTime::Demand)),
                idle_stop: upstream.idle_stop(config.servers.idle_stop),
            };
            let connect = || connect(app, upstream, &start);
            this.add(app, running, upstream.tools(), connect)?;
        }
        for (app, server) in &config.unusable {
            let same = previous.filter(|previous| previous.config.unusable.get(app) == Some(server));
            let running = same.and_then(|previous| previous.configured.get(app));
            this.add(app, running, ToolFilter::default(), || Ok(Unusable::start(app, server)))?;
        }
        let same_services = unchanged(config, previous, "openapi");
        for (app, service) in &config.openapi {
            let is_same = |previous: &&Hub| previous.config.openapi.contains_key(app);
            let running = same_services
                .filter(is_same)
                .and_then(|previous| previous.configured.get(app))
                .filter(|_| goes_on(app));
            let connect = || Ok(OpenApi::start(app, service, &config.secrets));
            this.add(app, running, ToolFilter::default(), connect)?;
        }
        if config.script_tools.is_used() {
            let same =
                unchanged(config, previous, "scriptTools").filter(|_| unchanged(config, previous, "vm").is_some());
            let tools = same.and_then(|previous| previous.script_tools.clone()).unwrap_or_else(|| {
                this.is_new.insert(config.script_tools.app.clone());
                start_script_tools(config, services.database.as_ref())
            });
            this.upstreams.push((Arc::clone(&tools) as Arc<dyn Upstream>, ToolFilter::default()));
            this.script_tools = Some(tools);
        }
        Ok(this)
    }

    /// Adds an upstream of the configuration: the one that is running, or a new one.
    fn add(
        &mut self,
        app: &str,
        running: Option<&Arc<dyn Upstream>>,
        tools: ToolFilter,
        connect: impl FnOnce() -> Result<Arc<dyn Upstream>, Error>,
    ) -> Result<(), Error> {
        let upstream = match running {
            Some(running) => Arc::clone(running),
            None => {
                self.is_new.insert(app.to_owned());
                connect()?
            }
        };
        self.configured.insert(app.to_owned(), Arc::clone(&upstream));
        self.upstreams.push((upstream, tools));
        Ok(())
    }
}

/// Creates the pipeline of a hub, with the hooks of its embedder, its metrics and its history.
fn pipeline(config: &Config, services: &HubServices, catalogue: &Arc<Catalogue>) -> Result<Arc<Pipeline>, Error> {
    let mut hooks = services.hooks.clone();
    hooks.push(Arc::new(CountCalls(Arc::clone(&services.metrics))));
    hooks.extend(services.history.iter().map(|history| Arc::clone(history) as Arc<dyn Hook>));
    let pipeline = Pipeline::configured(Arc::clone(catalogue), config, &services.stores, hooks)?;
    let pipeline = Arc::new(match &services.fetcher {
        Some(fetcher) => pipeline.with_fetcher(fetcher.clone()),
        None => pipeline,
    });
    if let Some(history) = &services.history {
        history.set_pipeline(&pipeline);
    }
    Ok(pipeline)
}

/// Creates the runs of a hub, and those of `code_execution` if it is enabled. They have the threads of the hub before, unless
/// what is configured of these has changed.
fn runs(
    config: &Config,
    services: &HubServices,
    previous: Option<&Hub>,
    catalogue: &Arc<Catalogue>,
    pipeline: &Arc<Pipeline>,
) -> Result<(Arc<Runs>, Option<Runs>), Error> {
    let same = |section: &str| unchanged(config, previous, section).is_some();
    let same_threads = previous.filter(|_| ["pool", "isolation", "vm"].into_iter().all(same));
    let runs = match same_threads {
        Some(previous) => previous.runs.with_tools(Arc::clone(catalogue), Arc::clone(pipeline)),
        None => {
            let mut hooks = services.run_hooks.clone();
            hooks.extend(services.history.iter().map(|history| Arc::clone(history) as Arc<dyn RunHook>));
            hooks.push(Arc::new(LogRuns));
            hooks.push(Arc::new(CountRuns(Arc::clone(&services.metrics))));
            Runs::new(Arc::clone(catalogue), Arc::clone(pipeline), config.pool)
                .with_hooks(hooks)
                .with_isolation(&config.isolation, &config.policy)?
        }
    };
    let code_runs = || match same_threads.and_then(|previous| previous.code_runs.as_ref()) {
        Some(running) if same("code_execution_pool_size") => {
            running.with_tools(Arc::clone(catalogue), Arc::clone(pipeline))
        }
        Some(_) | None => runs.with_separate_permits(config.code_execution.pool_size),
    };
    let code_runs = config.code_execution.enabled.then(code_runs);
    Ok((Arc::new(runs), code_runs))
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
pub(super) fn change_watch(config: &Config, services: &HubServices) -> Result<Option<Watch>, Error> {
    let all = config.tools.quarantine;
    let servers = config.upstreams.iter().map(|(app, server)| {
        (app.clone(), (server.quarantine.unwrap_or(all), codecall_upstream::session::identity(app, server)))
    });
    let openapi = config.openapi.iter().map(|(app, service)| {
        let identity = Sha256::digest(format!("openapi\0{app}\0{}", &*service.spec));
        (app.clone(), (service.quarantine.unwrap_or(all), identity.into()))
    });
    let watch = Watch::new(Arc::clone(&services.stores.approvals), servers.chain(openapi).collect());
    if watch.is_empty() {
        return Ok(None);
    }
    if services.has_own_stores && services.database.is_none() {
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
