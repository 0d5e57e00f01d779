//! The app of script tools: an upstream whose calls are runs.

use crate::folder::{self, Loaded, Signature};
use crate::secrets::SecretSource;
use crate::stored::{self, Stored, StoredError};
use crate::{Problem, ScriptTool, ToolSource, run};
use agentscript::{Language, Policy};
use codecall_base::redact::SecretRegistry;
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use codecall_config::ScriptToolsConfig;
use codecall_runs::Runs;
use codecall_store::{StoredCode, StoredTool};
use codecall_upstream::{BoxFuture, BrokenTool, Upstream, UpstreamCall};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the folder is looked at. It is not watched: that also sees files that are replaced as a whole, on every file
/// system.
const LOOK: Duration = Duration::from_secs(1);

/// The script tools of a folder and of the store.
pub struct ScriptTools {
    app: String,
    folder: Option<PathBuf>,
    stored: Option<Stored>,
    policy: Policy,
    secrets: Arc<dyn SecretSource>,
    registry: Arc<SecretRegistry>,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    /// Whether the stored tools were read, or there are none to read.
    is_known: watch::Sender<bool>,
    closed: CancellationToken,
}

#[derive(Default)]
struct State {
    tools: BTreeMap<String, Loaded>,
    /// Why the folder cannot be read.
    unreadable: Option<String>,
    /// The messages that were logged, so that each is logged once.
    logged: BTreeSet<String>,
    /// The signature of the files that `tools` are made of.
    signature: Signature,
    /// The stored tools, and the stamp of their last change.
    stored: Vec<StoredTool>,
    stamp: Option<i64>,
    /// Whether `tools` are not made of `stored`.
    is_stale: bool,
    /// The executor of runs: the hub of this moment.
    runs: Weak<Runs>,
    /// Values that are redacted because a tool has had them.
    redacted: BTreeSet<String>,
}

impl ScriptTools {
    /// Loads the tools of the folder of a configuration; those of `stored` follow with [`Self::refresh`]. `policy` are the
    /// limits of scripts, `secrets` the source of secrets, whose values are added to `registry` before a tool gets them.
    #[must_use]
    pub fn load(
        config: &ScriptToolsConfig,
        stored: Option<Stored>,
        policy: Policy,
        secrets: Arc<dyn SecretSource>,
        registry: Arc<SecretRegistry>,
    ) -> Arc<Self> {
        let tools = Self {
            app: config.app.clone(),
            folder: config.folder.clone(),
            is_known: watch::Sender::new(stored.is_none()),
            stored,
            policy,
            secrets,
            registry,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            closed: CancellationToken::new(),
        };
        tools.look(None);
        Arc::new(tools)
    }

    /// Creates an app of one tool, without a folder.
    #[must_use]
    pub fn of_tool(
        tool: Arc<ScriptTool>,
        policy: Policy,
        secrets: Arc<dyn SecretSource>,
        registry: Arc<SecretRegistry>,
    ) -> Arc<Self> {
        let (app, name) = (tool.definition.app.clone(), tool.name().to_owned());
        let loaded = Loaded { tool: Some(tool), ..Loaded::new(&name, PathBuf::new()) };
        let state = State { tools: BTreeMap::from([(name, loaded)]), ..State::default() };
        Arc::new(Self {
            app,
            folder: None,
            stored: None,
            policy,
            secrets,
            registry,
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
            is_known: watch::Sender::new(true),
            closed: CancellationToken::new(),
        })
    }

    /// Follows the folder and the store until it is closed. This needs a tokio runtime.
    pub fn follow(self: &Arc<Self>) {
        let (tools, closed) = (Arc::downgrade(self), self.closed.clone());
        tokio::spawn(async move {
            let mut looks = tokio::time::interval(LOOK);
            looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut before: Option<Signature> = None;
            while closed.run_until_cancelled(looks.tick()).await.is_some() {
                let Some(tools) = tools.upgrade() else { return };
                tools.read_stored().await;
                before = tools.look_aside(before.take()).await;
                tools.is_known.send_if_modified(|is_known| !std::mem::replace(is_known, true));
            }
        });
    }

    /// Reads the folder and the store now.
    pub async fn refresh(self: &Arc<Self>) {
        self.read_stored().await;
        self.look_aside(None).await;
        self.is_known.send_if_modified(|is_known| !std::mem::replace(is_known, true));
    }

    /// Reads the stored tools if they have changed.
    async fn read_stored(&self) {
        let Some(stored) = &self.stored else { return };
        let reading = async {
            let stamp = stored.stamp().await?;
            if self.state().stamp == Some(stamp) {
                return Ok(());
            }
            let tools = stored.list().await?;
            let mut state = self.state();
            (state.stored, state.stamp, state.is_stale) = (tools, Some(stamp), true);
            Ok::<(), codecall_store::StoreError>(())
        };
        if let Err(error) = reading.await {
            let line = format!("stored tools cannot be read: {error}");
            if self.state().logged.insert(line.clone()) {
                tracing::warn!("{line}");
            }
        }
    }

    async fn look_aside(self: &Arc<Self>, before: Option<Signature>) -> Option<Signature> {
        let tools = Arc::clone(self);
        tokio::task::spawn_blocking(move || tools.look(before)).await.ok().flatten()
    }

    /// Loads the tools if they have changed, and have stopped changing: a file may be in the middle of being written.
    /// `before` is what the folder said the last time; `None`: it is loaded as it is. Returns what it says now.
    fn look(&self, before: Option<Signature>) -> Option<Signature> {
        let now = match self.folder.as_deref().map(folder::signature) {
            Some(Ok(now)) => Some(now),
            Some(Err(problem)) => {
                self.unreadable(problem);
                None
            }
            None => Some(Signature::default()),
        };
        let (is_known, previous, stored) = {
            let state = self.state();
            let is_same = now.as_ref().is_none_or(|now| state.signature == *now && state.unreadable.is_none());
            (is_same && !state.is_stale, state.tools.clone(), state.stored.clone())
        };
        let is_settled = before.is_none_or(|before| now.as_ref() == Some(&before));
        if is_known || !is_settled {
            return now;
        }
        let own = match (&self.folder, &now) {
            (Some(folder), Some(_)) => folder::load(folder, &self.app, &self.policy, &previous),
            (Some(_), None) => Ok(previous
                .iter()
                .filter(|(_, tool)| tool.version.is_none())
                .map(|(n, t)| (n.clone(), t.clone()))
                .collect()),
            (None, _) => Ok(BTreeMap::new()),
        };
        match own {
            Ok(mut tools) => {
                stored::add(&mut tools, &stored, &self.app, &self.policy, &previous);
                self.replace(tools, now.clone());
            }
            Err(problem) => self.unreadable(problem),
        }
        now
    }

    fn replace(&self, tools: BTreeMap<String, Loaded>, signature: Option<Signature>) {
        let mut state = self.state();
        let logged: BTreeSet<String> = tools.values().flat_map(Loaded::lines).collect();
        for line in logged.difference(&state.logged) {
            tracing::warn!("script tool {line}");
        }
        let definitions = |tools: &BTreeMap<String, Loaded>| -> Vec<Arc<ToolDefinition>> {
            tools.values().filter_map(|loaded| Some(Arc::clone(&loaded.tool.as_ref()?.definition))).collect()
        };
        let differs = definitions(&state.tools) != definitions(&tools);
        (state.tools, state.logged, state.is_stale) = (tools, logged, false);
        if let Some(signature) = signature {
            (state.signature, state.unreadable) = (signature, None);
        }
        drop(state);
        if differs {
            self.changed.send_modify(|version| *version += 1);
        }
    }

    fn unreadable(&self, problem: String) {
        let mut state = self.state();
        if state.unreadable.as_ref() != Some(&problem) {
            tracing::warn!("script tools: {problem}");
            state.unreadable = Some(problem);
        }
    }

    /// Executes calls by these runs from now on. They are not kept: who has made them keeps them.
    pub fn set_runs(&self, runs: &Arc<Runs>) {
        self.state().runs = Arc::downgrade(runs);
    }

    /// Returns all tools, also those whose files cannot be used.
    #[must_use]
    pub fn all(&self) -> Vec<Loaded> {
        self.state().tools.values().cloned().collect()
    }

    /// Returns a tool as it is now.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<ScriptTool>> {
        self.state().tools.get(name)?.tool.clone()
    }

    /// Returns the id of the app.
    #[must_use]
    pub fn app_id(&self) -> &str {
        &self.app
    }

    /// Returns the limits of scripts.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the stored tools; `None`: tools are not stored.
    #[must_use]
    pub fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Checks and stores a new version of a tool, which is used from now on. Returns its number.
    ///
    /// # Errors
    /// It is not valid, the folder has a tool of this name, or the store cannot be used.
    pub async fn put(self: &Arc<Self>, name: &str, code: &StoredCode, author: &str) -> Result<i64, StoredError> {
        self.check(name, code)?;
        let stored = self.stored.as_ref().ok_or_else(not_stored)?;
        // Before it is cut: without its end, a secret is not found.
        let version = stored.put(name, code, &self.registry.redactor().redact_text(author)).await?;
        self.refresh().await;
        Ok(version)
    }

    /// Checks a version of a tool that could be stored.
    ///
    /// # Errors
    /// It is not valid, the folder has a tool of this name, or no tools are stored.
    pub fn check(&self, name: &str, code: &StoredCode) -> Result<(), StoredError> {
        if self.stored.is_none() {
            return Err(not_stored());
        }
        if code.code.len() as u64 > folder::MAX_FILE_BYTES {
            let message = format!("it has more than {} bytes, which is the limit", folder::MAX_FILE_BYTES);
            return Err(StoredError::Invalid(vec![Problem::new(message)]));
        }
        let in_folder =
            self.all().into_iter().find(|tool| tool.version.is_none() && tool.name.eq_ignore_ascii_case(name));
        if let Some(other) = in_folder {
            let message = format!("there is a tool of this name already: {}", other.file.display());
            return Err(StoredError::Invalid(vec![Problem::new(message).with_hint("choose another name")]));
        }
        let language = if code.typescript { Language::TypeScript } else { Language::JavaScript };
        let source = ToolSource { name, code: &code.code, language, manifest: None };
        ScriptTool::check(&self.app, source, &self.policy).map(drop).map_err(StoredError::Invalid)
    }

    pub(crate) fn runs(&self) -> Option<Arc<Runs>> {
        self.state().runs.upgrade()
    }

    /// Returns the values of secrets, which are redacted from now on. Those that do not exist are left out.
    pub(crate) async fn secrets(&self, names: &[String]) -> Result<Map<String, Value>, ToolError> {
        let mut values = Map::new();
        for name in names {
            let failed = |why: &str| ToolError::new(ErrorCode::ToolExecutionError, format!("secret '{name}': {why}"));
            let Some(value) = self.secrets.get(name).await.map_err(|why| failed(&why))? else { continue };
            let is_new = !self.state().redacted.contains(value.trim());
            if is_new {
                self.registry.add(&value).map_err(|refused| failed(&refused.to_string()))?;
                self.state().redacted.insert(value.trim().to_owned());
            }
            values.insert(name.clone(), value.as_str().into());
        }
        Ok(values)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScriptTools {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

fn not_stored() -> StoredError {
    StoredError::Unknown("Tools are not stored: set 'scriptTools.stored'".into())
}

impl Upstream for ScriptTools {
    fn app(&self) -> &str {
        &self.app
    }

    fn source(&self) -> &'static str {
        "script"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.state().tools.values().filter_map(|loaded| Some(Arc::clone(&loaded.tool.as_ref()?.definition))).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            // The run keeps this version, also if its file changes meanwhile.
            let Some(tool) = self.get(&call.tool.name) else {
                let message = format!("Tool '{}' not found: its file is gone", call.tool.full_name());
                return Err(ToolError::new(ErrorCode::ToolNotFound, message));
            };
            run::call(self, &tool, call).await
        })
    }

    fn tools_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changed.subscribe())
    }

    fn unavailable_reason(&self) -> Option<String> {
        self.state().unreadable.clone()
    }

    fn broken_tools(&self) -> Vec<BrokenTool> {
        self.state().tools.values().filter_map(Loaded::broken).collect()
    }

    fn is_starting(&self) -> bool {
        !*self.is_known.borrow()
    }

    fn are_tools_known(&self) -> bool {
        *self.is_known.borrow()
    }

    fn tools_known(&self) -> BoxFuture<'_, ()> {
        let mut is_known = self.is_known.subscribe();
        Box::pin(async move {
            // The sender is `self`.
            let _ = is_known.wait_for(|is_known| *is_known).await;
        })
    }

    fn start_ended(&self) -> BoxFuture<'_, ()> {
        self.tools_known()
    }

    fn recalled(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            self.tools_known().await;
            false
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.cancel();
        Box::pin(std::future::ready(()))
    }
}
