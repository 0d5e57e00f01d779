//! The configuration: typed, read from TOML or JSON with the same keys.
//!
//! Each section is one struct in a file of its own. Its fields define everything about a key: name, type, default, bounds,
//! whether it is a secret, and its documentation. `schema.rs` generates a JSON schema from them. Input is checked against
//! it (`check.rs`), and the reference page and `codecall config` are made from it (`reference.rs`).
//!
//! Unknown keys are errors; those of entries of `mcpServers` are warnings, as clients have keys of their own. No
//! message contains a value of the file, as any of them may be a secret.
//!
//! It must not know how it is used.

#![forbid(unsafe_code)]

mod approval;
mod audit;
mod auth;
mod cache;
mod chain;
mod check;
mod code_execution;
mod concurrency_limits;
mod confine;
mod direct_calls;
mod durable;
mod duration;
pub mod effective;
mod env_file;
pub mod environment;
mod expand;
mod fetch;
mod front;
mod history;
mod http;
mod interaction;
mod isolation;
pub mod locate;
mod mcp_servers;
mod model;
mod openapi;
mod pii;
mod pool;
mod rate_limits;
mod read;
pub mod reference;
mod result_store;
mod sanitization;
mod schema;
mod script_tools;
mod search;
mod secrets;
mod server_cache;
mod server_entry;
mod servers;
mod stateless;
mod store;
mod structured;
mod tokens;
mod tools;
pub mod vm;

use agentscript::{Policy, Preset};
use codecall_base::error::Error;
use codecall_base::files;
use codecall_base::redact::SecretRegistry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use approval::{ApprovalConfig, ApprovalRule, DecidedBy};
pub use audit::AuditConfig;
pub use auth::{AuthConfig, AuthKind, MASTER_KEY_VARIABLE};
pub use cache::{CacheConfig, CacheRule};
pub use chain::{ChainConfig, CheckOutput};
pub use code_execution::CodeExecution;
pub use concurrency_limits::ConcurrencyLimit;
pub use confine::{Any, ConfineConfig, Connect};
pub use direct_calls::DirectCalls;
pub use durable::DurableConfig;
pub use expand::is_name;
pub use fetch::{FetchConfig, HostRule, is_forbidden_method};
pub use front::{Front, FrontConfig};
pub use history::{HistoryConfig, RecordedRuns};
pub use http::HttpServerConfig;
pub use interaction::InteractionConfig;
pub use isolation::{IsolationConfig, IsolationMode};
pub use mcp_servers::{HttpConfig, Lifecycle, StdioConfig, UpstreamConfig, UpstreamKind};
pub use model::ModelConfig;
pub use openapi::{ClientAuthMethod, OAuthClientConfig, OpenApiConfig, OperationFilter, names_host};
pub use pii::{PiiConfig, PiiKind, PiiPattern};
pub use pool::Pool;
pub use rate_limits::RateLimit;
pub use result_store::ResultStore;
pub use sanitization::Sanitization;
pub use schema::{Ignored, published as schema};
pub use script_tools::ScriptToolsConfig;
pub use search::{SearchConfig, Strategy};
pub use secrets::Secret;
pub use server_cache::ServerCache;
pub use server_entry::UnusableServer;
pub use servers::{ServersConfig, StartTime};
pub use stateless::StatelessConfig;
pub use store::{DEFAULT_WORKSPACE, MASTER_KEY_FILE_VARIABLE, STORE_VARIABLE, StoreConfig};
pub use structured::Structured;
pub use tokens::{HttpJwt, HttpToken, JwtAlgorithm, RequestRate};
pub use tools::{Expose, MetaToolId, Mode, Quarantine, ToolExample, ToolMetadata, ToolPolicy, ToolSettings};

/// The configuration of CodeCall.
// `Deserialize` reads the keys that are not skipped here; `read.rs` reads the others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Config {
    /// Ignored; editors use it.
    #[serde(skip, rename = "$schema")]
    #[schemars(!skip)]
    pub schema: Ignored,
    /// The MCP servers whose tools are offered, by the id of their app. Disabled ones are left out.
    #[serde(skip, rename = "mcpServers")]
    #[schemars(!skip)]
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// The servers of `mcpServers` and `openapi` whose entries cannot be used, by the id of their app.
    #[serde(skip)]
    #[schemars(skip)]
    pub unusable: BTreeMap<String, UnusableServer>,
    /// When MCP servers start and stop.
    pub servers: ServersConfig,
    /// Data of MCP servers that is remembered between starts.
    pub server_cache: ServerCache,
    /// The folder of what must last: the file of the store, and that of the master key. Default: `codecall` in the
    /// user's folder
    /// for the state of programs.
    #[schemars(extend("x-default" = "user's state"))]
    pub state_dir: Option<PathBuf>,
    /// The HTTP services whose OpenAPI descriptions become tools, by the id of their app.
    #[serde(skip)]
    #[schemars(!skip)]
    pub openapi: BTreeMap<String, OpenApiConfig>,
    /// A folder of script tools. A text is the short form of `scriptTools.folder`.
    pub script_tools: ScriptToolsConfig,
    /// Folders of skills, which clients with the extension for skills of MCP (SEP-2640) are offered beside those of script
    /// tools and MCP servers. `[]` offers only the latter. Default: skills are offered with `expose = "direct"`.
    #[schemars(extend("x-default" = "off"))]
    pub skills: Option<Vec<PathBuf>>,
    /// The tools that exist, and those in the list.
    #[serde(skip)]
    #[schemars(flatten, !skip)]
    pub tools: ToolPolicy,
    /// How tools are found.
    #[schemars(extend("x-aliases" = ["embedding"]))]
    pub search: SearchConfig,
    /// How many tools a search gives.
    #[schemars(range(min = 1, max = 50))]
    pub top_k: usize,
    /// How many tools one `codecall_describe` gives.
    #[schemars(range(min = 1, max = 100))]
    pub max_definitions: usize,
    /// Tool calls without a script.
    pub direct_calls: DirectCalls,
    /// The form of answers. `"auto"` sends each once: as `structuredContent` to clients that read it, and as text to
    /// others. `true` sends both to all, `false` only text.
    #[schemars(extend("x-default" = "`\"auto\"`"))]
    pub structured: Structured,
    /// Limits and permissions of scripts.
    #[serde(skip, rename = "vm")]
    #[schemars(!skip, with = "vm::VmConfig", skip_serializing_if = "vm::has_own_defaults")]
    pub policy: Policy,
    /// The preset that the policy started from: `vm.preset`.
    #[serde(skip)]
    #[schemars(skip)]
    pub preset: Preset,
    /// Whether `null` for an optional property that cannot be `null` is left out of the input of a tool:
    /// `vm.lenientInput`.
    #[serde(skip)]
    #[schemars(skip)]
    pub lenient_input: bool,
    /// The longest result, in bytes, that a client gets at once while the result store keeps the rest: `vm.maxInlineBytes`.
    /// `None`: it depends on the client ([`Config::inline_bytes`]).
    #[serde(skip)]
    #[schemars(skip)]
    pub max_inline_bytes: Option<u64>,
    /// How many scripts run at once, and what they share.
    pub pool: Pool,
    /// Where scripts are evaluated. A text is the short form of `isolation.mode`.
    pub isolation: IsolationConfig,
    /// Where results that are too long for a model are stored.
    pub result_store: ResultStore,
    /// The limits of `fetch` in script tools.
    pub fetch: FetchConfig,
    /// Questions that tools may ask the client that has the run.
    pub interaction: InteractionConfig,
    /// The calls of tools that a person has to approve.
    pub approval: ApprovalConfig,
    /// The runs that outlive the server that has begun them.
    pub durable: DurableConfig,
    /// The tool `code_execution`.
    #[serde(skip)]
    #[schemars(flatten, !skip)]
    pub code_execution: CodeExecution,
    /// Steps of runs whose clients own the tools.
    pub stateless: StatelessConfig,
    /// Clients of `codecall serve --http`, and how much they may use at once.
    pub http: HttpServerConfig,
    /// The model server behind `/v1/chat/completions`.
    pub model: ModelConfig,
    /// The parts of error messages that are removed.
    pub sanitization: Sanitization,
    /// The database of what outlives a process. A text is the short form of `store.path`.
    pub store: StoreConfig,
    /// The runs that are recorded. A text is the short form of `history.record`.
    pub history: HistoryConfig,
    /// The checks and hooks of every tool call.
    #[serde(skip)]
    #[schemars(flatten, !skip)]
    pub chain: ChainConfig,
    /// The secrets among the values. A server that is started with the configuration adds secrets that it learns of
    /// later; clones of the configuration share them.
    #[serde(skip)]
    pub secrets: Arc<SecretRegistry>,
    /// Mistakes that do no harm: unknown keys of servers, unknown variables of the environment.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// A digest of the document and of all variables of the environment that it uses: two configurations with the same
    /// digest are the same.
    #[serde(skip)]
    pub digest: String,
    /// The keys of the top level, to see which of them another configuration has too.
    #[serde(skip)]
    pub sections: Sections,
}

/// The keys of the top level with their values, apart from `mcpServers`. They are only compared; `Debug` does not show them.
#[derive(Clone, Default)]
pub struct Sections(Map<String, Value>);

impl Sections {
    /// Whether a section is the same in both.
    #[must_use]
    pub fn has_same(&self, other: &Self, name: &str) -> bool {
        self.0.get(name) == other.0.get(name)
    }

    /// Returns the names of the sections that are not the same.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.into_iter().filter(|name| !self.has_same(other, name)).cloned().collect()
    }
}

impl std::fmt::Debug for Sections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[sections]")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schema: Ignored,
            upstreams: BTreeMap::new(),
            unusable: BTreeMap::new(),
            servers: ServersConfig::default(),
            server_cache: ServerCache::default(),
            state_dir: None,
            openapi: BTreeMap::new(),
            script_tools: ScriptToolsConfig::default(),
            skills: None,
            tools: ToolPolicy::default(),
            search: SearchConfig::default(),
            top_k: 8,
            max_definitions: 8,
            direct_calls: DirectCalls::default(),
            structured: Structured::default(),
            policy: Policy::default(),
            preset: Preset::default(),
            lenient_input: true,
            max_inline_bytes: None,
            pool: Pool::default(),
            isolation: IsolationConfig::default(),
            result_store: ResultStore::default(),
            fetch: FetchConfig::default(),
            interaction: InteractionConfig::default(),
            approval: ApprovalConfig::default(),
            durable: DurableConfig::default(),
            code_execution: CodeExecution::default(),
            stateless: StatelessConfig::default(),
            http: HttpServerConfig::default(),
            model: ModelConfig::default(),
            sanitization: Sanitization::default(),
            store: StoreConfig::default(),
            history: HistoryConfig::default(),
            chain: ChainConfig::default(),
            secrets: Arc::default(),
            warnings: Vec::new(),
            digest: String::new(),
            sections: Sections::default(),
        }
    }
}

/// Returns the value of a stored secret, given a configuration that says where it is stored, and its name as `NAME` or
/// `WORKSPACE/NAME`. Returns `None` if there is none of that name, and an error if it cannot be read.
pub type StoredSecrets<'a> = &'a dyn Fn(&Config, &str) -> Result<Option<String>, String>;

/// Reads a text with the variables of the environment that are keys, and a lookup of variables and stored secrets.
fn with_lookup<T>(
    text: &str,
    format: Format,
    secret: StoredSecrets<'_>,
    read: impl FnOnce(&[(String, String)], expand::Environment<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let variables = environment::variables();
    let variable = |name: &str| std::env::var(name).ok();
    let store = OnceCell::new();
    let failed: RefCell<Option<String>> = RefCell::default();
    let lookup = |name: &str| {
        let Some(name) = name.strip_prefix(expand::SECRET_PREFIX) else { return variable(name) };
        let store = store.get_or_init(|| read::store_keys(text, format, &variables, &variable));
        let found = store.as_ref().map_err(Clone::clone).and_then(|store| secret(store, name));
        found.unwrap_or_else(|why| {
            failed.borrow_mut().get_or_insert(format!("the secret {name} cannot be read: {why}"));
            None
        })
    };
    let result = read(&variables, &lookup);
    match failed.take() {
        Some(why) => Err(why),
        None => result,
    }
}

/// How a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl Config {
    /// Whether clients are offered skills.
    #[must_use]
    pub fn offers_skills(&self) -> bool {
        self.skills.is_some() || self.tools.exposes_all()
    }

    /// Reads a file as JSON with comments and trailing commas, or as TOML. It is JSON if its name ends in `.json` or
    /// `.jsonc` or its text begins with `{` or a comment of JSON. Variables `CODECALL_…` of the environment override
    /// it.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML or JSON, has unknown keys or wrong values.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Self::load_with(Some(path), &|_, _| Ok(None))
    }

    /// Reads a file, or without one the variables of the environment. `secret` looks up stored secrets.
    ///
    /// # Errors
    /// The errors of [`Config::load`], and those of `secret`.
    pub fn load_with(path: Option<&Path>, secret: StoredSecrets<'_>) -> Result<Self, Error> {
        let (text, format) = match path {
            Some(path) => Self::read_file(path)?,
            None => (String::new(), Format::Toml),
        };
        let parsed =
            with_lookup(&text, format, secret, |variables, lookup| read::parse(&text, format, variables, lookup));
        parsed.map_err(|message| match path {
            Some(path) => Error::Config(format!("{}: {message}", path.display())),
            None => Error::Config(message),
        })
    }

    /// Reads the variables `CODECALL_…` of the environment, without a file.
    ///
    /// # Errors
    /// One of them has a wrong value.
    pub fn from_environment() -> Result<Self, Error> {
        Self::load_with(None, &|_, _| Ok(None))
    }

    /// Returns the paths that MCP servers are configured with: arguments, variables and working directories, as they are
    /// written and without links.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.upstreams.values().flat_map(UpstreamConfig::paths).collect();
        let resolved: Vec<String> =
            paths.iter().filter_map(|path| Some(std::fs::canonicalize(path).ok()?.to_str()?.to_owned())).collect();
        paths.extend(resolved);
        paths
    }

    fn read_file(path: &Path) -> Result<(String, Format), Error> {
        let text = files::read_text(path, files::MAX_CONFIG_BYTES)
            .map_err(|source| Error::Io { path: path.display().to_string(), source })?;
        // TOML begins with neither.
        let begins_as_json = text.trim_start_matches(read::BYTE_ORDER_MARK).trim_start().starts_with(['{', '/']);
        let json = path.extension().is_some_and(|extension| extension == "json" || extension == "jsonc");
        Ok((text, if json || begins_as_json { Format::Json } else { Format::Toml }))
    }

    /// Whether `mcpServers` or `openapi` has an app, usable or not.
    #[must_use]
    pub fn has_server(&self, app: &str) -> bool {
        self.upstreams.contains_key(app) || self.openapi.contains_key(app) || self.unusable.contains_key(app)
    }

    /// Whether the configuration isolates scripts or MCP servers.
    #[must_use]
    pub fn is_isolating(&self) -> bool {
        let is_confined =
            |kind: &UpstreamKind| matches!(kind, UpstreamKind::Stdio(StdioConfig { confine: Some(_), .. }));
        self.isolation.mode == IsolationMode::Process || self.upstreams.values().any(|up| is_confined(&up.kind))
    }

    /// Returns the secrets in a text, those of disabled servers included. References to variables are none.
    ///
    /// # Errors
    /// The text is not what `format` says.
    pub fn secrets_of(text: &str, format: Format) -> Result<SecretRegistry, String> {
        read::secrets(text, format)
    }

    /// Parses a text. `environment` returns the values of `${NAME}`.
    ///
    /// # Errors
    /// The mistake, with the name of the key.
    pub fn parse(text: &str, format: Format, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        read::parse(text, format, &[], environment)
    }
}

#[cfg(test)]
mod tests;
