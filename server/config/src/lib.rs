//! The configuration: one typed description, read from TOML or JSON with the same keys.
//!
//! Unknown keys are errors. No message holds a value of the file, as any of them may be a secret.
//!
//! It must not know what is made of it.

#![forbid(unsafe_code)]

mod chain;
mod expand;
mod http;
mod isolation;
pub mod policy;
mod read;
mod secrets;
mod stateless;
mod tools;

use agentscript::{Policy, Preset};
use codecall_base::error::Error;
use codecall_base::files;
use codecall_base::redact::Redactor;
use codecall_base::tool::ToolFilter;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use chain::{
    AuditConfig, CacheConfig, CacheRule, ChainConfig, CheckOutput, ConcurrencyLimit, PiiConfig, PiiKind, PiiPattern,
    RateLimit, Span,
};
pub use http::{HttpServerConfig, ModelConfig};
pub use isolation::{Any, ConfineConfig, Connect, IsolationConfig, IsolationMode};
pub use stateless::StatelessConfig;
pub use tools::{Expose, Mode, ToolMetadata, ToolPolicy};

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// The upstreams by app id; disabled ones are not in it.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Which tools exist, and under what names they are listed.
    pub tools: ToolPolicy,
    /// Limits and permissions of a run.
    pub policy: Policy,
    /// How many tools a search gives.
    pub top_k: usize,
    /// How tools are found.
    pub search: SearchConfig,
    /// How many tools one `describe` gives.
    pub max_definitions: usize,
    /// Who may call tools without a script.
    pub direct_calls: DirectCalls,
    /// Whether results come as `structuredContent` too.
    pub structured: bool,
    /// How many runs there may be, and what all of them may use.
    pub pool: Pool,
    /// Where scripts are evaluated.
    pub isolation: IsolationConfig,
    /// Where results that are too long for a model are kept.
    pub result_store: ResultStore,
    /// The meta-tool `code_execution`.
    pub code_execution: CodeExecution,
    /// What is served over HTTP, where it is asked for.
    pub http: HttpServerConfig,
    /// The model that code is written by.
    pub model: ModelConfig,
    /// Steps of runs whose clients own the tools.
    pub stateless: StatelessConfig,
    /// What is taken out of error messages.
    pub sanitization: Sanitization,
    /// What happens at every tool call.
    pub chain: ChainConfig,
    /// Finds the secrets among the values.
    pub secrets: Arc<Redactor>,
}

/// One upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// What it is.
    pub kind: UpstreamKind,
    /// Which of its tools exist, by their own names.
    pub tools: ToolFilter,
}

/// What an upstream is.
#[derive(Clone, Debug)]
pub enum UpstreamKind {
    /// A child process.
    Stdio(StdioConfig),
    /// A server over streamable HTTP.
    Http(HttpConfig),
}

impl UpstreamKind {
    /// How the two sides begin to speak.
    #[must_use]
    pub fn lifecycle(&self) -> Lifecycle {
        match self {
            Self::Stdio(config) => config.lifecycle,
            Self::Http(config) => config.lifecycle,
        }
    }

    /// How long it may take until its tools are known.
    #[must_use]
    pub fn start_timeout(&self) -> Duration {
        match self {
            Self::Stdio(config) => config.start_timeout,
            Self::Http(config) => config.start_timeout,
        }
    }
}

/// A server that speaks MCP over streamable HTTP.
#[derive(Clone)]
pub struct HttpConfig {
    /// Where it is.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// How the two sides begin to speak.
    pub lifecycle: Lifecycle,
    /// How long it may take until its tools are known.
    pub start_timeout: Duration,
    /// Longest message it may send.
    pub max_message_bytes: usize,
}

impl std::fmt::Debug for HttpConfig {
    /// Without the address and the headers, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpConfig").field("headers", &self.headers.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// A child process that speaks MCP.
#[derive(Clone)]
pub struct StdioConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, on top of what it inherits.
    pub env: BTreeMap<String, String>,
    /// Names of variables it inherits besides the harmless ones.
    pub inherit_env: Vec<String>,
    /// Where it runs.
    pub cwd: Option<PathBuf>,
    /// How the two sides begin to speak.
    pub lifecycle: Lifecycle,
    /// How long it may take until its tools are known.
    pub start_timeout: Duration,
    /// Longest message it may send.
    pub max_message_bytes: usize,
    /// What it may do; absent: what the server may.
    pub confine: Option<ConfineConfig>,
}

impl std::fmt::Debug for StdioConfig {
    /// Without arguments and values of the environment, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StdioConfig")
            .field("command", &self.command)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// `server/discover`, and `initialize` where that is not understood.
    #[default]
    Auto,
    /// `initialize` (protocols up to 2025-11-25).
    Initialize,
    /// `server/discover` (2026-07-28).
    Discover,
}

/// Who may call tools without a script.
#[derive(Clone, Debug)]
pub struct DirectCalls {
    /// Whether there is `invoke`.
    pub enabled: bool,
    /// The tools it may call; absent: all. `*` stands for any text.
    pub allowed_tools: Option<Vec<String>>,
    /// Of these, those that it may call.
    pub filter: ToolFilter,
}

/// How tools are found.
#[derive(Clone, PartialEq)]
pub struct SearchConfig {
    /// By what.
    pub strategy: Strategy,
    /// The folder of a sentence transformer (`config.json`, `tokenizer.json`, `model.safetensors`).
    pub model_dir: Option<PathBuf>,
    /// The file in which vectors of tools are kept from one start to the next; absent: only in memory.
    pub vector_cache: Option<PathBuf>,
    /// How alike (cosine, 0 to 1) a tool and a query must be to count as found by meaning.
    pub similarity_threshold: f64,
}

impl std::fmt::Debug for SearchConfig {
    /// Without folder and file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchConfig").field("strategy", &self.strategy).finish_non_exhaustive()
    }
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { strategy: Strategy::default(), model_dir: None, vector_cache: None, similarity_threshold: 0.2 }
    }
}

/// By what tools are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// By words.
    #[default]
    #[serde(alias = "tfidf")]
    Bm25,
    /// By meaning: vectors of a model. Needs the cargo feature `embeddings`.
    Embedding,
    /// By both.
    Hybrid,
}

/// How many runs there may be, and what is a run's whatever its policy says.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Threads that run scripts.
    pub threads: usize,
    /// Runs at the same time, those that wait for tools included.
    pub max_runs: usize,
    /// Runs that wait for their turn; one more is refused.
    pub max_queue: usize,
    /// How long a run waits for its turn.
    pub queue_timeout: Duration,
    /// How long a run may hold a thread at a time before it is given up (`WORKER_TIMEOUT`). No script
    /// comes near it: its own limits of time are looked at all the while.
    pub watchdog: Duration,
    /// Bytes that all runs may have in use together; the largest one ends (`WORKER_MEMORY_EXCEEDED`).
    pub max_memory_bytes: u64,
    /// Tool calls of one run that may be made and not answered (`TOO_MANY_PENDING_CALLS`).
    pub max_pending_calls: usize,
    /// Log messages and notifications of one run (`MESSAGE_FLOOD`).
    pub max_messages: u64,
    /// Longest single message in bytes: what a script sends to the client or to a tool, and what a tool
    /// answers (`MESSAGE_TOO_LARGE`).
    pub max_message_bytes: usize,
}

/// Where results that are longer than `maxResultBytes` are kept, to be read in pieces.
#[derive(Clone, Copy, Debug)]
pub struct ResultStore {
    /// Without it, such a run ends with `RESULT_TOO_LARGE`.
    pub enabled: bool,
    /// Bytes of all results that are kept; the oldest ones go first.
    pub max_bytes: usize,
    /// How many are kept.
    pub max_results: usize,
    /// Longest single result; a longer one is `RESULT_TOO_LARGE` still.
    pub max_result_bytes: usize,
    /// How long a result is kept after it was last read.
    pub expiry: Duration,
}

impl Default for ResultStore {
    fn default() -> Self {
        Self {
            enabled: true,
            max_bytes: 64 * 1024 * 1024,
            max_results: 100,
            max_result_bytes: 16 * 1024 * 1024,
            expiry: Duration::from_secs(600),
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(1, 4));
        Self {
            threads,
            max_runs: 32,
            max_queue: 256,
            queue_timeout: Duration::from_secs(30),
            watchdog: Duration::from_secs(30),
            max_memory_bytes: 1024 * 1024 * 1024,
            max_pending_calls: 1_000,
            max_messages: 1_000,
            max_message_bytes: 16 * 1024 * 1024,
        }
    }
}

/// The meta-tool `code_execution`: whether it is there, and what requests get that do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeExecution {
    /// Whether it is there.
    pub enabled: bool,
    /// How long a run may take, waits for tools included, in milliseconds: 1 to 600,000.
    pub timeout_ms: u64,
    /// How many tools a run may call; 0: no limit.
    pub max_tool_calls: u64,
    /// How many of its runs there may be at the same time: 1 to 100.
    pub pool_size: usize,
}

impl CodeExecution {
    /// How long a run may take at least and at most, in milliseconds.
    pub const TIMEOUTS: RangeInclusive<u64> = 1..=600_000;
}

impl Default for CodeExecution {
    fn default() -> Self {
        Self { enabled: false, timeout_ms: 120_000, max_tool_calls: 0, pool_size: 10 }
    }
}

/// What is taken out of error messages before a client sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sanitization {
    /// Stack traces of the host and of tools.
    pub remove_stack_traces: bool,
    /// Paths of the host.
    pub remove_file_paths: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            upstreams: BTreeMap::new(),
            tools: ToolPolicy::default(),
            policy: Policy::preset(Preset::default()),
            top_k: 8,
            search: SearchConfig::default(),
            max_definitions: 8,
            direct_calls: DirectCalls { enabled: true, allowed_tools: None, filter: ToolFilter::default() },
            structured: true,
            pool: Pool::default(),
            isolation: IsolationConfig::default(),
            result_store: ResultStore::default(),
            code_execution: CodeExecution::default(),
            http: HttpServerConfig::default(),
            model: ModelConfig::default(),
            stateless: StatelessConfig::default(),
            sanitization: Sanitization { remove_stack_traces: true, remove_file_paths: true },
            chain: ChainConfig::default(),
            secrets: Arc::default(),
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
    /// Read a file: JSON when its name ends in `.json` or its text begins with `{`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML or JSON, has unknown keys or wrong values.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = files::read_text(path, files::MAX_CONFIG_BYTES)
            .map_err(|source| Error::Io { path: path.display().to_string(), source })?;
        let json = path.extension().is_some_and(|extension| extension == "json") || text.trim_start().starts_with('{');
        let format = if json { Format::Json } else { Format::Toml };
        Self::parse(&text, format, &|name| std::env::var(name).ok())
            .map_err(|message| Error::Config(format!("{}: {message}", path.display())))
    }

    /// Whether anything is to be separated from the server, so that its status is worth telling.
    #[must_use]
    pub fn is_isolating(&self) -> bool {
        let is_confined =
            |kind: &UpstreamKind| matches!(kind, UpstreamKind::Stdio(StdioConfig { confine: Some(_), .. }));
        self.isolation.mode == IsolationMode::Process || self.upstreams.values().any(|up| is_confined(&up.kind))
    }

    /// Read a text. `environment` answers `${NAME}`.
    ///
    /// # Errors
    /// What is wrong, naming the key.
    pub fn parse(text: &str, format: Format, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        read::config(text, format, environment)
    }
}

#[cfg(test)]
mod tests;
