//! From text to [`Config`]: the keys, as they are written.

use super::expand::expand;
use super::policy::Wanted;
use super::secrets::Found;
use super::*;
use codecall_base::tool::{NameStyle, ToolFilter, is_reserved};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::cell::RefCell;

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Root {
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    mcp_servers: Map<String, Value>,
    mode: Mode,
    include_tools: ToolFilter,
    tools: BTreeMap<String, ToolMetadata>,
    expose: Expose,
    vm: Map<String, Value>,
    top_k: Option<usize>,
    #[serde(alias = "embedding")]
    search: SearchKeys,
    max_definitions: Option<usize>,
    direct_calls: DirectCallsKeys,
    names: NameStyle,
    structured: Option<bool>,
    pool: PoolKeys,
    isolation: Option<Value>,
    result_store: ResultStoreKeys,
    // Written as in the configurations that this tool comes from.
    #[serde(rename = "enable_code_execution")]
    enable_code_execution: bool,
    #[serde(rename = "code_execution_timeout_ms")]
    code_execution_timeout_ms: Option<u64>,
    #[serde(rename = "code_execution_max_tool_calls")]
    code_execution_max_tool_calls: Option<u64>,
    #[serde(rename = "code_execution_pool_size")]
    code_execution_pool_size: Option<usize>,
    http: HttpServerConfig,
    model: ModelConfig,
    stateless: StatelessConfig,
    sanitization: SanitizationKeys,
    rate_limits: Vec<RateLimit>,
    concurrency_limits: Vec<ConcurrencyLimit>,
    check_output: CheckOutput,
    pii: Option<PiiConfig>,
    cache: CacheConfig,
    audit: Option<AuditConfig>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct SearchKeys {
    strategy: Strategy,
    model_dir: Option<PathBuf>,
    vector_cache: Option<PathBuf>,
    similarity_threshold: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct DirectCallsKeys {
    enabled: Option<bool>,
    allowed_tools: Option<Vec<String>>,
    filter: ToolFilter,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct PoolKeys {
    threads: Option<usize>,
    max_runs: Option<usize>,
    max_queue: Option<usize>,
    queue_timeout_ms: Option<u64>,
    watchdog_ms: Option<u64>,
    max_memory_bytes: Option<u64>,
    max_pending_calls: Option<usize>,
    max_messages: Option<u64>,
    max_message_bytes: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ResultStoreKeys {
    enabled: Option<bool>,
    max_bytes: Option<usize>,
    max_results: Option<usize>,
    max_result_bytes: Option<usize>,
    expiry_ms: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct SanitizationKeys {
    remove_stack_traces: Option<bool>,
    remove_file_paths: Option<bool>,
}

/// One entry of `mcpServers`. The last fields are written by clients for themselves and ignored.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ServerKeys {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    inherit_env: Vec<String>,
    cwd: Option<PathBuf>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    headers: BTreeMap<String, String>,
    enabled: Option<bool>,
    disabled: Option<bool>,
    #[serde(alias = "allowedTools", alias = "includeTools", alias = "enabled_tools")]
    enabled_tools: Option<Vec<String>>,
    #[serde(alias = "deniedTools", alias = "excludeTools", alias = "disabled_tools")]
    disabled_tools: Vec<String>,
    lifecycle: Lifecycle,
    start_timeout_ms: Option<u64>,
    max_message_bytes: Option<usize>,
    confine: Option<ConfineConfig>,
    #[serde(rename = "type", alias = "transport")]
    _type: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "autoApprove", alias = "alwaysAllow", alias = "trust", alias = "timeout", alias = "icon")]
    _client: Option<Value>,
}

pub fn config(text: &str, format: Format, environment: Environment<'_>) -> Result<Config, String> {
    let mut value = document(text, format)?;
    let secrets = RefCell::new(Found::default());
    let environment = |name: &str| {
        let value = environment(name)?;
        secrets.borrow_mut().variable(name, &value);
        Some(value)
    };
    let servers = value.as_object_mut().and_then(|root| root.remove("mcpServers"));
    expand(&mut value, "", &environment)?;
    if let (Some(servers), Some(root)) = (servers, value.as_object_mut()) {
        root.insert("mcpServers".into(), servers);
    }
    let root: Root = keys(value, "", &[])?;
    let defaults = Config::default();
    check_names(&root.tools)?;
    check_audit(root.audit.as_ref())?;
    root.http.check(&mut secrets.borrow_mut())?;
    root.model.check(&mut secrets.borrow_mut())?;
    root.stateless.check(&mut secrets.borrow_mut())?;
    let threads = within("pool.threads", root.pool.threads.unwrap_or(defaults.pool.threads), 1, 256)?;
    let mut config = Config {
        isolation: IsolationConfig::read(root.isolation, threads)?,
        tools: ToolPolicy {
            include: root.include_tools,
            mode: root.mode,
            metadata: root.tools,
            expose: root.expose,
            names: root.names,
        },
        policy: Wanted::read(root.vm, "vm")?.policy(),
        top_k: within("topK", root.top_k.unwrap_or(defaults.top_k), 1, 50)?,
        search: search(root.search)?,
        max_definitions: within("maxDefinitions", root.max_definitions.unwrap_or(defaults.max_definitions), 1, 100)?,
        direct_calls: DirectCalls {
            enabled: root.direct_calls.enabled.unwrap_or(true),
            allowed_tools: root.direct_calls.allowed_tools,
            filter: root.direct_calls.filter,
        },
        structured: root.structured.unwrap_or(true),
        pool: Pool {
            threads,
            max_runs: within("pool.maxRuns", root.pool.max_runs.unwrap_or(defaults.pool.max_runs), 1, 100_000)?,
            max_queue: root.pool.max_queue.unwrap_or(defaults.pool.max_queue),
            queue_timeout: root.pool.queue_timeout_ms.map_or(defaults.pool.queue_timeout, Duration::from_millis),
            watchdog: root.pool.watchdog_ms.map_or(defaults.pool.watchdog, Duration::from_millis),
            max_memory_bytes: root.pool.max_memory_bytes.unwrap_or(defaults.pool.max_memory_bytes),
            max_pending_calls: root.pool.max_pending_calls.unwrap_or(defaults.pool.max_pending_calls),
            max_messages: root.pool.max_messages.unwrap_or(defaults.pool.max_messages),
            max_message_bytes: root.pool.max_message_bytes.unwrap_or(defaults.pool.max_message_bytes),
        },
        result_store: ResultStore {
            enabled: root.result_store.enabled.unwrap_or(defaults.result_store.enabled),
            max_bytes: root.result_store.max_bytes.unwrap_or(defaults.result_store.max_bytes),
            max_results: root.result_store.max_results.unwrap_or(defaults.result_store.max_results),
            max_result_bytes: root.result_store.max_result_bytes.unwrap_or(defaults.result_store.max_result_bytes),
            expiry: root.result_store.expiry_ms.map_or(defaults.result_store.expiry, Duration::from_millis),
        },
        code_execution: CodeExecution {
            enabled: root.enable_code_execution,
            timeout_ms: within(
                "code_execution_timeout_ms",
                root.code_execution_timeout_ms.unwrap_or(defaults.code_execution.timeout_ms),
                *CodeExecution::TIMEOUTS.start(),
                *CodeExecution::TIMEOUTS.end(),
            )?,
            max_tool_calls: root.code_execution_max_tool_calls.unwrap_or(defaults.code_execution.max_tool_calls),
            pool_size: within(
                "code_execution_pool_size",
                root.code_execution_pool_size.unwrap_or(defaults.code_execution.pool_size),
                1,
                100,
            )?,
        },
        http: root.http,
        model: root.model,
        stateless: root.stateless,
        sanitization: Sanitization {
            remove_stack_traces: root.sanitization.remove_stack_traces.unwrap_or(true),
            remove_file_paths: root.sanitization.remove_file_paths.unwrap_or(true),
        },
        chain: ChainConfig {
            rate_limits: root.rate_limits,
            concurrency_limits: root.concurrency_limits,
            check_output: root.check_output,
            pii: root.pii,
            cache: root.cache,
            audit: root.audit,
        },
        upstreams: BTreeMap::new(),
        secrets: Arc::default(),
    };
    for (app, entry) in root.mcp_servers {
        if let Some(server) = server(&app, entry, &environment)? {
            server.kind.tell_secrets(&mut secrets.borrow_mut());
            config.upstreams.insert(app, server);
        }
    }
    config.secrets = Arc::new(Redactor::new(secrets.borrow().all()));
    Ok(config)
}

fn check_names(tools: &BTreeMap<String, ToolMetadata>) -> Result<(), String> {
    for (pattern, metadata) in tools {
        let app = metadata.app_id.as_deref().unwrap_or("-");
        check_app(&format!("tools.{pattern}.appId"), app)?;
    }
    Ok(())
}

fn check_audit(audit: Option<&AuditConfig>) -> Result<(), String> {
    match audit {
        Some(AuditConfig { file: None, stderr: false }) => {
            Err("audit: give 'file', or 'stderr = true', or both".into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether an app can have this name.
fn check_app(path: &str, app: &str) -> Result<(), String> {
    if app.is_empty() || app.contains(':') || app.trim() != app {
        return Err(format!("{path}: a name must not be empty nor hold ':' nor begin or end with a space"));
    }
    if app.eq_ignore_ascii_case("codecall") || is_reserved(app) {
        return Err(format!("{path}: this name is the server's own; choose another"));
    }
    Ok(())
}

impl UpstreamKind {
    fn tell_secrets(&self, found: &mut Found) {
        match self {
            Self::Stdio(config) => {
                config.env.iter().for_each(|(name, value)| found.variable(name, value));
                found.arguments(&config.args);
                for (name, value) in
                    config.inherit_env.iter().filter_map(|name| Some((name, std::env::var(name).ok()?)))
                {
                    found.variable(name, &value);
                }
            }
            Self::Http(config) => {
                config.headers.iter().for_each(|(name, value)| found.header(name, value));
                found.address(&config.url);
            }
        }
    }
}

fn search(keys: SearchKeys) -> Result<SearchConfig, String> {
    let defaults = SearchConfig::default();
    let least = keys.similarity_threshold.unwrap_or(defaults.similarity_threshold);
    // NaN is neither.
    if !(0.0..=1.0).contains(&least) {
        return Err("search.similarityThreshold: must be from 0 to 1".into());
    }
    if keys.strategy != Strategy::Bm25 && keys.model_dir.is_none() {
        return Err("search.modelDir: this strategy needs a folder with config.json, tokenizer.json and \
                    model.safetensors of a sentence transformer"
            .into());
    }
    Ok(SearchConfig {
        strategy: keys.strategy,
        model_dir: keys.model_dir,
        vector_cache: keys.vector_cache,
        similarity_threshold: least,
    })
}

fn document(text: &str, format: Format) -> Result<Value, String> {
    let value: Value = match format {
        // The texts of both parsers may quote the file, so only the place is told.
        Format::Json => serde_json::from_str(text)
            .map_err(|error| format!("not valid JSON at line {}, column {}", error.line(), error.column()))?,
        Format::Toml => toml::from_str(text).map_err(|error| {
            let before = error.span().map_or("", |span| &text[..span.start.min(text.len())]);
            format!("not valid TOML at line {}: {}", before.matches('\n').count() + 1, error.message())
        })?,
    };
    if value.is_object() { Ok(value) } else { Err("must be an object".into()) }
}

pub fn within<T: PartialOrd + std::fmt::Display>(key: &str, value: T, least: T, most: T) -> Result<T, String> {
    if value < least || value > most {
        return Err(format!("{key}: must be from {least} to {most}"));
    }
    Ok(value)
}

fn server(app: &str, mut entry: Value, environment: Environment<'_>) -> Result<Option<UpstreamConfig>, String> {
    let path = format!("mcpServers.{app}");
    check_app(&path, app)?;
    let is = |key: &str, wanted: bool| entry.get(key).and_then(Value::as_bool) == Some(wanted);
    if is("disabled", true) || is("enabled", false) {
        // A server that is switched off may refer to variables that are not set.
        let _: ServerKeys = keys(entry, &path, &[])?;
        return Ok(None);
    }
    expand(&mut entry, &path, environment)?;
    let keys: ServerKeys = keys(entry, &path, &[])?;
    let _ = (keys.enabled, keys.disabled);
    let start_timeout = Duration::from_millis(keys.start_timeout_ms.unwrap_or(30_000));
    let max_message_bytes = keys.max_message_bytes.unwrap_or(16 * 1024 * 1024).max(1024);
    let tools = ToolFilter::by_name(keys.enabled_tools, keys.disabled_tools);
    match (keys.command, keys.url) {
        (Some(command), None) => Ok(Some(UpstreamConfig {
            kind: UpstreamKind::Stdio(StdioConfig {
                command,
                args: keys.args,
                env: keys.env,
                inherit_env: keys.inherit_env,
                cwd: keys.cwd,
                lifecycle: keys.lifecycle,
                start_timeout,
                max_message_bytes,
                confine: keys.confine,
            }),
            tools,
        })),
        (None, Some(_)) if keys.confine.is_some() => {
            Err(format!("{path}.confine: only a server that is started with 'command' can be confined"))
        }
        (None, Some(url)) => {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("{path}.url: must begin with http:// or https://"));
            }
            Ok(Some(UpstreamConfig {
                kind: UpstreamKind::Http(HttpConfig {
                    url,
                    headers: keys.headers,
                    lifecycle: keys.lifecycle,
                    start_timeout,
                    max_message_bytes,
                }),
                tools,
            }))
        }
        (Some(_), Some(_)) => Err(format!("{path}: give either 'command' or 'url', not both")),
        (None, None) => Err(format!("{path}: 'command' or 'url' is missing")),
    }
}

/// Read a table. `more` are names that are valid there besides the fields.
pub fn keys<T: DeserializeOwned>(value: Value, path: &str, more: &[&str]) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let problem = codecall_base::error::sanitize_serde_error(&error.inner().to_string(), more);
        let mut inner = error.path().to_string();
        if problem.starts_with("unknown key") {
            inner.truncate(inner.rfind('.').unwrap_or(0));
        }
        let at = match inner.as_str() {
            "" | "." => path.to_owned(),
            inner if path.is_empty() => inner.to_owned(),
            inner => format!("{path}.{inner}"),
        };
        if at.is_empty() { problem } else { format!("{at}: {problem}") }
    })
}
