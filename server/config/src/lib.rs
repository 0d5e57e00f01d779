//! The configuration: typed, read from TOML or JSON with the same keys.
//!
//! Each section is one struct in a file of its own. Its fields define everything about a key: name, type, default, bounds,
//! whether it is a secret, and its documentation. `schema.rs` generates a JSON schema from them. Input is checked against
//! it (`check.rs`), and the reference page and `codecall config` are made from it (`reference.rs`).
//!
//! Unknown keys are errors; those of entries of `mcpServers` are warnings, as clients have keys of their own. No message contains a value of the file, as any of them may be a secret.
//!
//! It must not know how it is used.

#![forbid(unsafe_code)]

mod audit;
mod cache;
mod chain;
mod check;
mod code_execution;
mod concurrency_limits;
mod confine;
mod direct_calls;
mod duration;
pub mod effective;
mod env_file;
pub mod environment;
mod expand;
mod http;
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
mod search;
mod secrets;
mod server_cache;
mod stateless;
mod tools;
pub mod vm;

use agentscript::{Policy, Preset};
use codecall_base::error::Error;
use codecall_base::files;
use codecall_base::redact::SecretRegistry;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

pub use audit::AuditConfig;
pub use cache::{CacheConfig, CacheRule};
pub use chain::{ChainConfig, CheckOutput};
pub use code_execution::CodeExecution;
pub use concurrency_limits::ConcurrencyLimit;
pub use confine::{Any, ConfineConfig, Connect};
pub use direct_calls::DirectCalls;
pub use http::HttpServerConfig;
pub use isolation::{IsolationConfig, IsolationMode};
pub use mcp_servers::{HttpConfig, Lifecycle, StdioConfig, UpstreamConfig, UpstreamKind};
pub use model::ModelConfig;
pub use openapi::{OpenApiConfig, OperationFilter};
pub use pii::{PiiConfig, PiiKind, PiiPattern};
pub use pool::Pool;
pub use rate_limits::RateLimit;
pub use result_store::ResultStore;
pub use sanitization::Sanitization;
pub use schema::{Ignored, published as schema};
pub use search::{SearchConfig, Strategy};
pub use secrets::Secret;
pub use server_cache::{CACHE_DIR_VARIABLE, ServerCache};
pub use stateless::StatelessConfig;
pub use tools::{Expose, Mode, ToolMetadata, ToolPolicy};

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
    /// What is remembered of MCP servers between starts.
    pub server_cache: ServerCache,
    /// The HTTP services whose OpenAPI descriptions become tools, by the id of their app.
    #[serde(skip)]
    #[schemars(!skip)]
    pub openapi: BTreeMap<String, OpenApiConfig>,
    /// Which tools exist, and which are listed.
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
    /// Whether results also come as `structuredContent`. `false` is for clients that would show them twice.
    pub structured: bool,
    /// Limits and permissions of scripts.
    #[serde(skip, rename = "vm")]
    #[schemars(!skip, with = "vm::VmConfig")]
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
    /// How many scripts run at once, and what they share.
    pub pool: Pool,
    /// Where scripts are evaluated. A text is the short form of `isolation.mode`.
    pub isolation: IsolationConfig,
    /// Where results that are too long for a model are stored.
    pub result_store: ResultStore,
    /// The tool `code_execution`.
    #[serde(skip)]
    #[schemars(flatten, !skip)]
    pub code_execution: CodeExecution,
    /// Steps of runs whose clients own the tools.
    pub stateless: StatelessConfig,
    /// Who may use `codecall serve --http`, and how much at once.
    pub http: HttpServerConfig,
    /// The model server behind `/v1/chat/completions`.
    pub model: ModelConfig,
    /// What is removed from error messages.
    pub sanitization: Sanitization,
    /// What happens at every tool call.
    #[serde(skip)]
    #[schemars(flatten, !skip)]
    pub chain: ChainConfig,
    /// The secrets among the values. A server that is started with the configuration adds those that it learns of
    /// later; clones of the configuration share them.
    #[serde(skip)]
    pub secrets: Arc<SecretRegistry>,
    /// What is not as it should be, but does no harm: unknown keys of servers, unknown variables of the environment.
    #[serde(skip)]
    pub warnings: Vec<String>,
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
            server_cache: ServerCache::default(),
            openapi: BTreeMap::new(),
            tools: ToolPolicy::default(),
            search: SearchConfig::default(),
            top_k: 8,
            max_definitions: 8,
            direct_calls: DirectCalls::default(),
            structured: true,
            policy: Policy::default(),
            preset: Preset::default(),
            lenient_input: true,
            pool: Pool::default(),
            isolation: IsolationConfig::default(),
            result_store: ResultStore::default(),
            code_execution: CodeExecution::default(),
            stateless: StatelessConfig::default(),
            http: HttpServerConfig::default(),
            model: ModelConfig::default(),
            sanitization: Sanitization::default(),
            chain: ChainConfig::default(),
            secrets: Arc::default(),
            warnings: Vec::new(),
            sections: Sections::default(),
        }
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
    /// Reads a file: JSON if its name ends in `.json` or its text begins with `{`, otherwise TOML. Variables `CODECALL_…`
    /// of the environment override it.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML or JSON, has unknown keys or wrong values.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let (text, format) = Self::read_file(path)?;
        read::parse(&text, format, &environment::variables(), &|name| std::env::var(name).ok())
            .map_err(|message| Error::Config(format!("{}: {message}", path.display())))
    }

    /// Reads the variables `CODECALL_…` of the environment, without a file.
    ///
    /// # Errors
    /// One of them has a wrong value.
    pub fn from_environment() -> Result<Self, Error> {
        read::parse("", Format::Toml, &environment::variables(), &|name| std::env::var(name).ok())
            .map_err(Error::Config)
    }

    fn read_file(path: &Path) -> Result<(String, Format), Error> {
        let text = files::read_text(path, files::MAX_CONFIG_BYTES)
            .map_err(|source| Error::Io { path: path.display().to_string(), source })?;
        let json = path.extension().is_some_and(|extension| extension == "json") || text.trim_start().starts_with('{');
        Ok((text, if json { Format::Json } else { Format::Toml }))
    }

    /// Whether the configuration isolates scripts or MCP servers.
    #[must_use]
    pub fn is_isolating(&self) -> bool {
        let is_confined =
            |kind: &UpstreamKind| matches!(kind, UpstreamKind::Stdio(StdioConfig { confine: Some(_), .. }));
        self.isolation.mode == IsolationMode::Process || self.upstreams.values().any(|up| is_confined(&up.kind))
    }

    /// Parses a text. `environment` returns the values of `${NAME}`.
    ///
    /// # Errors
    /// What is wrong, naming the key.
    pub fn parse(text: &str, format: Format, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        read::parse(text, format, &[], environment)
    }
}

#[cfg(test)]
mod tests;
