//! The hub: everything a process has one of, put together. The command line and the MCP front are
//! two users of it.

use crate::stateless::Stateless;
use agentscript::Dialect;
use codecall_base::call::{CallContext, Caller};
use codecall_base::error::Error;
use codecall_base::event::{RunEvent, Watcher};
use codecall_base::tool::{ErrorCode, ToolError, ToolFilter, ToolResult};
use codecall_config::{Config, Expose, StdioConfig, UpstreamConfig, UpstreamKind};
use codecall_runs::{ExecuteRequest, Finished, Runs};
use codecall_tools::catalogue::Catalogue;
use codecall_tools::pipeline::{Hook, Pipeline, ToolCall};
use codecall_tools::results::Results;
use codecall_tools::search::Engine;
use codecall_upstream::{Upstream, UpstreamNotification, connect};
use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::model;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How long after the start requests wait for upstreams that are still starting.
const PATIENCE: Duration = Duration::from_secs(10);

/// News on their way to clients that do not read; older ones are dropped.
const MOST_NEWS: usize = 1_000;

/// Catalogue, pipeline, runs and meta-tools of one process.
pub struct Hub {
    config: Config,
    catalogue: Arc<Catalogue>,
    search: Engine,
    pipeline: Arc<Pipeline>,
    runs: Runs,
    results: Results,
    /// Runs of `code_execution`, which have places of their own.
    code_runs: Option<Runs>,
    stateless: Stateless,
    /// What upstreams say on their own, where their resources and prompts are passed through.
    news: broadcast::Sender<UpstreamNotification>,
    /// How many clients want to hear of a resource, by its address.
    subscribed: Mutex<BTreeMap<String, usize>>,
    /// What holds for the MCP servers that are started here, a line for each.
    confined: Vec<String>,
    started: Instant,
}

impl Hub {
    /// Put everything together and start connecting the upstreams of the configuration. `more` are
    /// upstreams made by the caller (fixtures, tools written in Rust). Needs a tokio runtime.
    ///
    /// # Errors
    /// An upstream that can never work, a model that cannot be used, an audit file that cannot be written.
    pub fn start(config: Config, more: Vec<Arc<dyn Upstream>>) -> Result<Arc<Self>, Error> {
        Self::start_with(config, more, Vec::new())
    }

    /// The same, with `hooks` around every tool call.
    ///
    /// # Errors
    /// An upstream that can never work, a model that cannot be used, an audit file that cannot be written.
    pub fn start_with(
        config: Config,
        more: Vec<Arc<dyn Upstream>>,
        hooks: Vec<Arc<dyn Hook>>,
    ) -> Result<Arc<Self>, Error> {
        config.secrets.install_for_logs();
        let search = Engine::open(&config.search)?;
        let mut upstreams: Vec<(Arc<dyn Upstream>, ToolFilter)> =
            more.into_iter().map(|upstream| (upstream, ToolFilter::default())).collect();
        let mut confined = Vec::new();
        for (app, upstream) in &config.upstreams {
            confined.extend(confinement(app, upstream)?);
            upstreams.push((connect(app, upstream)?, upstream.tools.clone()));
        }
        let catalogue = Arc::new(Catalogue::new(upstreams, config.tools.clone(), Arc::clone(&config.secrets)));
        catalogue.follow();
        let pipeline = Arc::new(Pipeline::configured(Arc::clone(&catalogue), &config, hooks)?);
        let runs = Runs::new(Arc::clone(&catalogue), Arc::clone(&pipeline), config.pool);
        let runs = runs.isolated(&config.isolation, &config.policy)?;
        let code_runs = config.code_execution.enabled.then(|| runs.beside(config.code_execution.pool_size));
        let results = Results::new(config.result_store);
        let news = broadcast::Sender::new(MOST_NEWS);
        if config.tools.expose == Expose::Direct {
            for upstream in catalogue.upstreams() {
                if let Some(offers) = upstream.resources_and_prompts() {
                    tokio::spawn(pass_on(offers.notifications(), Arc::clone(&pipeline), news.clone()));
                }
            }
        }
        let (stateless, subscribed, started) =
            (Stateless::new(&config, Arc::clone(runs.scripts())), Mutex::default(), Instant::now());
        Ok(Arc::new(Self {
            config,
            catalogue,
            search,
            pipeline,
            runs,
            code_runs,
            stateless,
            results,
            news,
            subscribed,
            confined,
            started,
        }))
    }

    /// What upstreams say without being asked, from now on. Nothing, unless their resources and prompts
    /// are passed through.
    #[must_use]
    pub fn news(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.news.subscribe()
    }

    /// Hear of changes of a resource; each time it is wanted, it has to be given up once.
    ///
    /// # Errors
    /// No upstream tells them.
    pub async fn subscribe(&self, uri: &str) -> Result<(), ErrorData> {
        let known = |times: &mut usize| *times += 1;
        let subscribed = || self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if subscribed().get_mut(uri).map(known).is_some() {
            return Ok(());
        }
        self.ask_for_changes(uri, true).await?;
        *subscribed().entry(uri.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Hear no more of it.
    pub async fn unsubscribe(&self, uri: &str) {
        let is_last = {
            let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
            match subscribed.get_mut(uri) {
                Some(times) if *times > 1 => {
                    *times -= 1;
                    false
                }
                Some(_) => subscribed.remove(uri).is_some(),
                None => false,
            }
        };
        if is_last {
            // An upstream that does not let go is heard and not passed on.
            let _ = self.ask_for_changes(uri, false).await;
        }
    }

    /// An address does not say whose it is: all upstreams are asked, and one that agrees is enough.
    async fn ask_for_changes(&self, uri: &str, wanted: bool) -> Result<(), ErrorData> {
        let offering = self.catalogue.upstreams().filter_map(|upstream| upstream.resources_and_prompts());
        let answers = join_all(offering.map(|offers| offers.set_subscribed(uri, wanted))).await;
        let mut refused = None;
        for answer in answers {
            match answer {
                Ok(()) => return Ok(()),
                Err(error) if error.code == model::ErrorCode::METHOD_NOT_FOUND => {}
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let nobody = || ErrorData::resource_not_found("No server tells changes of this resource", None);
        let mut error = refused.unwrap_or_else(nobody);
        error.message = self.pipeline.shown_text(&error.message).into();
        Err(error)
    }

    /// Wait until every upstream has been reached or has failed for the first time, at most
    /// `patience`.
    pub async fn ready(&self, patience: Duration) {
        let settled = join_all(self.catalogue.upstreams().map(|upstream| upstream.first_attempt()));
        let _ = tokio::time::timeout(patience, settled).await;
        self.catalogue.catch_up();
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tools.
    #[must_use]
    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    /// What finds tools.
    #[must_use]
    pub fn search(&self) -> &Engine {
        &self.search
    }

    /// The chain of every tool call.
    #[must_use]
    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// The results that are kept for clients.
    #[must_use]
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Steps of runs whose clients own the tools.
    #[must_use]
    pub fn stateless(&self) -> &Stateless {
        &self.stateless
    }

    /// What separates scripts and MCP servers from this process, a line for each: as it holds, not as it
    /// is wanted.
    #[must_use]
    pub fn isolation(&self) -> Vec<String> {
        std::iter::once(self.runs.isolation()).chain(self.confined.iter().cloned()).collect()
    }

    /// Run a script.
    pub async fn execute(&self, request: ExecuteRequest, watcher: Watcher, cancel: CancellationToken) -> Finished {
        let runs = match (request.dialect, &self.code_runs) {
            (Dialect::Sync, Some(runs)) => runs,
            (Dialect::Sync | Dialect::Async, _) => &self.runs,
        };
        runs.execute(request, self.discreet(watcher), cancel).await
    }

    /// Who watches a run, without secrets in what its script says. What is told of tool calls is clean.
    fn discreet(&self, watcher: Watcher) -> Watcher {
        let watcher = watcher?;
        let secrets = Arc::clone(&self.config.secrets);
        Some(Arc::new(move |mut event| {
            if let RunEvent::Message(message) = &mut event {
                secrets.redact_message(message);
            }
            watcher(event);
        }))
    }

    /// Call a tool that is visible beside the meta-tools; absent: there is none of that name. The result
    /// is as the tool gave it.
    pub async fn direct(
        &self,
        name: &str,
        input: Map<String, Value>,
        watcher: Watcher,
        cancel: CancellationToken,
    ) -> Option<Result<ToolResult, ToolError>> {
        if cancel.run_until_cancelled(self.begun()).await.is_none() {
            return Some(Err(ToolError::new(ErrorCode::ExecutionAborted, "The request was cancelled")));
        }
        // Whether it is there is asked again by the pipeline; here it decides who answers.
        self.catalogue.snapshot().listed().lookup(name)?;
        let call = ToolCall {
            tool: name.to_owned(),
            input,
            context: self.context(Caller::Direct, watcher, cancel),
            allowed: None,
            apps: None,
        };
        Some(self.pipeline.call(call).await)
    }

    /// The context of a call that no script makes.
    #[must_use]
    pub fn context(&self, caller: Caller, watcher: Watcher, cancel: CancellationToken) -> CallContext {
        let timeout = Duration::from_millis(self.config.policy.limits.tool_timeout_ms);
        CallContext { caller, run: None, timeout, watcher, cancel }
    }

    /// Wait for upstreams that are still starting, soon after the start of the process.
    pub async fn begun(&self) {
        let left = PATIENCE.saturating_sub(self.started.elapsed());
        if !left.is_zero() {
            self.ready(left).await;
        }
    }

    /// End all runs and let go of all upstreams; child processes are gone when it returns.
    pub async fn close(&self) {
        self.runs.close();
        self.code_runs.iter().for_each(Runs::close);
        self.stateless.close();
        join_all(self.catalogue.upstreams().map(|upstream| upstream.close())).await;
    }
}

/// How an upstream is confined, for the status; nothing where that was not asked for.
fn confinement(app: &str, upstream: &UpstreamConfig) -> Result<Option<String>, Error> {
    let UpstreamKind::Stdio(StdioConfig { command, confine: Some(confine), .. }) = &upstream.kind else {
        return Ok(None);
    };
    let walls = codecall_upstream::confine::check(confine, command)
        .map_err(|message| Error::Upstream { app: app.to_owned(), message })?;
    let line = format!("MCP server '{app}' is confined by: {}", walls.describe());
    if walls.files && walls.calls {
        tracing::info!("{line}");
    } else {
        tracing::warn!("{line}");
    }
    Ok(Some(line))
}

/// Pass on what an upstream says, without secrets, for as long as it is there.
async fn pass_on(
    mut said: broadcast::Receiver<UpstreamNotification>,
    pipeline: Arc<Pipeline>,
    news: broadcast::Sender<UpstreamNotification>,
) {
    loop {
        match said.recv().await {
            Ok(UpstreamNotification::Log(mut told)) => {
                told.data = (*pipeline.shown(&Arc::new(told.data))).clone();
                told.logger = told.logger.map(|logger| pipeline.shown_text(&logger));
                let _ = news.send(UpstreamNotification::Log(told));
            }
            Ok(told) => drop(news.send(told)),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}
