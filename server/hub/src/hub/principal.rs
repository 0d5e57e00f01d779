//! The hub of a client of the HTTP server: the tools, limits and stored results of one token.

use super::Hub;
use super::offer::{Fronts, Signatures};
use agentscript::Policy;
use codecall_base::error::Error;
use codecall_base::tool::ToolFilter;
use codecall_config::{Config, DecidedBy, Front, FrontConfig, vm};
use codecall_runs::ClientKey;
use codecall_store::OwnedResults;
use codecall_tools::catalogue::Catalogue;
use codecall_tools::pipeline::ClientIdentity;
use codecall_tools::results::Results;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A client, as the configuration or a token describes it.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Its name in logs, records and figures.
    pub name: Arc<str>,
    /// Its key in the store: what it has begun belongs to it. No other client has the same.
    pub owner: Arc<str>,
    /// The name that an earlier version has used for the key, if no other client can have had the same.
    pub former_owner: Option<Arc<str>>,
    /// The scopes of its token that the configuration knows; `None`: its tokens have none. What it has begun with more of them
    /// cannot be read with fewer.
    pub scopes: Option<BTreeSet<String>>,
    /// Whether it is an operator.
    pub is_operator: bool,
    /// Filters, one of which must select a tool; `None`: it may use all tools.
    pub allowed: Option<Vec<ToolFilter>>,
    /// How tools are offered to it; `None`: as the configuration says.
    pub front: Option<Front>,
    /// Limits of its scripts, which are lower than those of the configuration.
    pub limits: Map<String, Value>,
    /// How many scripts it may run at once; `None`: as many as the pool allows.
    pub runs: Option<Arc<Semaphore>>,
    /// The key that makes handles of its results its own.
    pub key: [u8; 32],
}

impl Principal {
    /// Returns a text that differs if the client may use other tools.
    pub(super) fn permissions(&self) -> String {
        let digest = Sha256::digest(format!("{:?}", self.allowed).as_bytes());
        digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Whether it is the owner of what belongs to this key, or has belonged to this name.
    pub(super) fn owns(&self, owner: &str) -> bool {
        *self.owner == *owner || self.former_owner.as_deref() == Some(owner)
    }

    /// Whether its person may approve its calls.
    fn decides(&self, config: &Config) -> bool {
        match config.approval.decided_by {
            Some(DecidedBy::Client) => true,
            Some(DecidedBy::Operator) => false,
            None => self.is_operator || !config.http.has_operators(),
        }
    }

    fn policy(&self, policy: &Policy) -> Result<Policy, Error> {
        vm::lowered(policy, self.limits.clone()).map_err(Error::Config)
    }
}

impl Hub {
    /// Whether it is the hub of this client, which may use the same tools as when it had these permissions.
    #[must_use]
    pub fn is_of(&self, owner: Option<&str>, permissions: Option<&str>) -> bool {
        match &self.principal {
            Some(own) => owner.is_some_and(|owner| own.owns(owner)) && permissions == Some(own.permissions().as_str()),
            None => owner.is_none(),
        }
    }

    /// Creates the hub of a client. It shares everything with this one but the tools that exist, the limits of scripts and
    /// the handles of results.
    ///
    /// # Errors
    /// The limits of the client are not valid.
    pub fn for_principal(self: &Arc<Self>, principal: &Principal) -> Result<Arc<Self>, Error> {
        let mut config = self.config.clone();
        config.policy = principal.policy(&config.policy)?;
        config.tools.allowed.clone_from(&principal.allowed);
        if let Some(front) = principal.front {
            config.tools.front = FrontConfig { default: front, ..FrontConfig::default() };
        }
        let upstreams = self.catalogue.filtered_upstreams();
        let watch = super::start::change_watch(&config, &self.services)?;
        let catalogue = Catalogue::watched(upstreams, config.tools.clone(), Arc::clone(&config.secrets), watch);
        let catalogue = Arc::new(catalogue);
        catalogue.follow();
        let identity = ClientIdentity {
            name: Arc::clone(&principal.name),
            owner: Arc::clone(&principal.owner),
            decides: principal.decides(&self.config),
        };
        let pipeline = Arc::new(self.pipeline.for_client(Arc::clone(&catalogue), identity));
        // Tokens of a subject share its places, whatever their scopes are.
        let client = ClientKey(Sha256::digest(principal.owner.as_bytes()).into());
        let with_tools = |runs: &codecall_runs::Runs| {
            runs.with_tools(Arc::clone(&catalogue), Arc::clone(&pipeline)).of_client(client)
        };
        let results = Arc::new(OwnedResults::new(Arc::clone(&self.services.stores.results), principal.key));
        Ok(Arc::new(Self {
            runs: Arc::new(with_tools(&self.runs)),
            code_runs: self.code_runs.as_ref().map(with_tools),
            results: Results::new(results, config.result_store, Arc::clone(&config.secrets)),
            stateless: self.stateless.for_client(&config, ClientKey(principal.key)),
            services: self.services.clone(),
            configured: self.configured.clone(),
            script_tools: self.script_tools.clone(),
            skills: Arc::clone(&self.skills),
            catalogue,
            search: Arc::clone(&self.search),
            pipeline,
            notifications: self.notifications.clone(),
            starting: self.starting.clone(),
            only_client: Arc::clone(&self.only_client),
            log_level: Arc::clone(&self.log_level),
            subscribed: Arc::clone(&self.subscribed),
            confined: self.confined.clone(),
            requests: self.requests.clone(),
            started: self.started,
            created: self.created,
            start_times: Arc::clone(&self.start_times),
            needs_approval: std::sync::Mutex::default(),
            signatures: Signatures::default(),
            fronts: Fronts::default(),
            principal: Some(principal.clone()),
            base: Some(Arc::clone(self)),
            config,
        }))
    }
}
