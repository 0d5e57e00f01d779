//! Requests to run a script.

use crate::{Recorder, RunStart};
use agentscript::{Dialect, Language, Policy};
use codecall_base::call::{self, RunScope};
use codecall_base::client::Client;
use codecall_base::event::RunId;
use codecall_config::HostRule;
use std::sync::Arc;
use std::time::SystemTime;

/// A request to run a script.
#[derive(Clone, Debug)]
pub struct ExecuteRequest {
    /// The script.
    pub script: Arc<str>,
    /// The language; `None`: it is detected.
    pub language: Option<Language>,
    /// The `codecallContext` of the script: JSON text of an object.
    pub context: Option<String>,
    /// The functions of the host that the script sees.
    pub dialect: Dialect,
    /// The only tools that the script may call, by any spelling or as patterns; `None`: all.
    pub allowed_tools: Option<Vec<String>>,
    /// The only apps whose tools the script may call; `None`: all. A call of another one ends the run.
    pub allowed_apps: Option<Vec<String>>,
    /// Limits and permissions.
    pub policy: Policy,
    /// Seed of random numbers; `None`: a random one.
    pub seed: Option<u64>,
    /// Whether to call no tool. Results are samples generated from output schemas.
    pub dry_run: bool,
    /// The hosts that `fetch` of the script may reach; `None`: the script has no `fetch`.
    pub fetch: Option<Arc<[HostRule]>>,
    /// Records the run for replay; `None`: it is not recorded.
    pub journal: Option<Arc<dyn Recorder>>,
    /// The run that this one is nested in, from the context of its tool call; `None`: a client requests it.
    pub parent: Option<RunScope>,
    /// The client that tools can ask.
    pub client: Client,
    /// The longest result that the client gets, in bytes, if the policy has a higher limit because the rest is stored; `None`:
    /// that of the policy.
    pub max_client_bytes: Option<u64>,
    /// The id of the run; `None`: a random one.
    pub id: Option<RunId>,
    /// The full name of the tool whose code the script is; `None`: a client has sent it.
    pub tool: Option<Arc<str>>,
}

impl ExecuteRequest {
    /// Creates a request with default options.
    #[must_use]
    pub fn new(script: impl Into<Arc<str>>, policy: Policy) -> Self {
        Self {
            script: script.into(),
            language: None,
            context: None,
            dialect: Dialect::default(),
            allowed_tools: None,
            allowed_apps: None,
            policy,
            seed: None,
            dry_run: false,
            fetch: None,
            journal: None,
            parent: None,
            client: Client::default(),
            max_client_bytes: None,
            id: None,
            tool: None,
        }
    }

    pub(crate) fn to_start(&self, scope: &RunScope) -> RunStart {
        RunStart {
            id: scope.id.clone(),
            parent: self.parent.as_ref().map(|parent| parent.id.clone()),
            depth: scope.depth,
            script: Arc::clone(&self.script),
            language: self.language,
            context: self.context.as_deref().map(Into::into),
            dialect: self.dialect,
            client: call::client(),
            tool: self.tool.clone(),
            is_dry_run: self.dry_run,
            at: SystemTime::now(),
        }
    }
}
