//! `mcpServers`: MCP servers whose tools are offered. Entries have the keys of clients' own configurations.

use super::auth::AuthConfig;
use super::check::check;
use super::confine::ConfineConfig;
use super::duration::Milliseconds;
use super::env_file;
use super::expand::{Environment, expand};
use super::read::{read, take_keys};
use super::schema::{self, Ignored, properties};
use super::secrets::{FoundSecrets, Secret};
use super::server_entry::{EntryReader, ServerEntry, has_key, restrictions};
use super::tools::Quarantine;
use codecall_base::error::unknown_key;
use codecall_base::text::{nearest, truncate};
use codecall_base::tool::{ToolFilter, is_reserved};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// How long a child process may take to start: launchers such as `npx` and `uvx` install their packages first.
const STDIO_START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a server over HTTP, which is already running, may take to answer.
const HTTP_START_TIMEOUT: Duration = Duration::from_secs(30);

/// One MCP server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct UpstreamConfig {
    /// How it is reached, with the keys that only make sense there.
    #[serde(skip)]
    #[schemars(flatten, !skip)]
    pub kind: UpstreamKind,
    /// `false`: the server is not used.
    pub enabled: bool,
    /// `true`: the server is not used.
    pub disabled: bool,
    /// Names and patterns of its tools that exist.
    #[schemars(extend("x-default" = "all", "x-aliases" = ["allowedTools", "includeTools", "enabled_tools"]))]
    pub enabled_tools: Option<Vec<String>>,
    /// Names and patterns of its tools that do not exist.
    #[schemars(extend("x-aliases" = ["deniedTools", "excludeTools", "disabled_tools"]))]
    pub disabled_tools: Vec<String>,
    /// The tools of it that wait for approval.
    #[schemars(extend("x-default" = "`quarantine` of all"))]
    pub quarantine: Option<Quarantine>,
    /// How the connection begins.
    pub lifecycle: Lifecycle,
    /// How long it may take until its tools are known. Only a call that needs the server waits for it.
    #[serde(rename = "startTimeoutMs", with = "Milliseconds")]
    #[schemars(extend("x-default" = "`120000`, with `url` `30000`"))]
    pub start_timeout: Duration,
    /// Longest message in bytes that it may send.
    #[schemars(range(min = 1024))]
    pub max_message_bytes: usize,
    /// The entry as it is used, to see whether another configuration has the same.
    #[serde(skip)]
    #[schemars(skip)]
    pub entry: Entry,
    /// Ignored; clients write it.
    #[serde(skip, rename = "type")]
    #[schemars(!skip, extend("x-aliases" = ["transport"]))]
    pub transport: Ignored,
    /// Ignored; clients write it.
    #[serde(skip)]
    #[schemars(!skip)]
    pub description: Ignored,
    /// Ignored; clients write it.
    #[serde(skip)]
    #[schemars(!skip, extend("x-aliases" = ["alwaysAllow", "trust", "timeout", "icon"]))]
    pub auto_approve: Ignored,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            kind: UpstreamKind::default(),
            enabled: true,
            disabled: false,
            enabled_tools: None,
            disabled_tools: Vec::new(),
            quarantine: None,
            lifecycle: Lifecycle::default(),
            start_timeout: STDIO_START_TIMEOUT,
            max_message_bytes: 16 * 1024 * 1024,
            entry: Entry::default(),
            transport: Ignored,
            description: Ignored,
            auto_approve: Ignored,
        }
    }
}

impl UpstreamConfig {
    /// Returns the absolute paths that the server is started with.
    pub(super) fn paths(&self) -> Vec<String> {
        let UpstreamKind::Stdio(StdioConfig { command, args, env, cwd, .. }) = &self.kind else { return Vec::new() };
        let home = std::env::var("HOME").unwrap_or_default();
        let path = |text: &str| {
            // `--root=/folder` is the folder.
            let text = text.strip_prefix('-').and_then(|flag| flag.split_once('=')).map_or(text, |(_, value)| value);
            let text = match text.strip_prefix('~') {
                Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => format!("{home}{rest}"),
                Some(_) | None => text.to_owned(),
            };
            Path::new(&text).is_absolute().then_some(text)
        };
        let texts = std::iter::once(command.as_str()).chain(args.iter().map(|arg| &**arg));
        let texts = texts.chain(env.values().map(|value| &**value)).chain(cwd.as_deref().and_then(Path::to_str));
        texts.filter_map(path).collect()
    }
}

/// An entry of `mcpServers` with all values in their places. It is only compared; `Debug` does not show it.
#[derive(Clone, Default, PartialEq)]
pub struct Entry(Value);

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[entry]")
    }
}

/// How an MCP server is reached.
#[derive(Clone, Debug)]
pub enum UpstreamKind {
    /// A child process.
    Stdio(StdioConfig),
    /// A server over streamable HTTP.
    Http(HttpConfig),
}

impl Default for UpstreamKind {
    fn default() -> Self {
        Self::Stdio(StdioConfig::default())
    }
}

impl JsonSchema for UpstreamKind {
    fn schema_name() -> Cow<'static, str> {
        "UpstreamKind".into()
    }

    /// The keys of both kinds; which of them may stand together is checked when an entry is read.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Both {
            #[serde(flatten)]
            stdio: StdioConfig,
            #[serde(flatten)]
            http: HttpConfig,
        }
        Both::json_schema(generator)
    }
}

/// A child process that speaks MCP.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct StdioConfig {
    /// The program to start. Give either `command` or `url`.
    #[schemars(extend("x-default" = "none"))]
    pub command: String,
    /// Its arguments.
    #[schemars(extend("x-secret" = "arguments"))]
    pub args: Vec<Secret>,
    /// Its environment, in addition to what it inherits: folders, language, certificates, and nothing
    /// that usually holds a secret.
    #[schemars(extend("x-secret" = "variables"))]
    pub env: BTreeMap<String, Secret>,
    /// A file of more variables of its environment, a line `NAME=value` each. Those of `env` override them.
    #[schemars(extend("x-default" = "none"))]
    pub env_file: Option<PathBuf>,
    /// Names of additional variables that it inherits.
    #[schemars(extend("x-secret" = "inherited"))]
    pub inherit_env: Vec<String>,
    /// The folder that it runs in.
    #[schemars(extend("x-default" = "current folder"))]
    pub cwd: Option<PathBuf>,
    /// After how long without a request the process is stopped; the next call starts it again. `0`: never, for one that keeps
    /// something in memory, such as an open page.
    #[schemars(with = "Milliseconds", extend("x-default" = "`servers.idleStopMs`"))]
    pub idle_stop_ms: Option<u64>,
    /// The rights of the process. Without it: the same as the server.
    #[schemars(extend("x-default" = "none"))]
    pub confine: Option<ConfineConfig>,
}

/// A server that speaks MCP over streamable HTTP.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct HttpConfig {
    /// The address of a server that speaks streamable HTTP.
    #[schemars(extend("x-secret" = "address", "x-default" = "none", "x-aliases" = ["serverUrl", "httpUrl"]))]
    pub url: Secret,
    /// Headers of every request.
    #[schemars(extend("x-secret" = "headers"))]
    pub headers: BTreeMap<String, Secret>,
    /// How CodeCall is authorized, if the server wants OAuth.
    #[schemars(extend("x-default" = "as the server says"))]
    pub auth: Option<AuthConfig>,
}

/// How a connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// Stateless (protocol 2026-07-28), or with `initialize` if the server does not know that. The protocol of a server
    /// is remembered for its next start.
    #[default]
    Auto,
    /// With `initialize` (protocols up to 2025-11-25).
    Initialize,
    /// Stateless (protocol 2026-07-28).
    Discover,
}

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of_type::<UpstreamConfig>);
static STDIO: LazyLock<Vec<String>> = LazyLock::new(properties::<StdioConfig>);
static HTTP: LazyLock<Vec<String>> = LazyLock::new(properties::<HttpConfig>);

impl UpstreamConfig {
    /// Collects the secrets of an entry as it is written.
    pub(super) fn collect_secrets(mut entry: Value, found: &mut FoundSecrets) {
        // What is wrong with the entry is for those who read it.
        let _ = take_unknown(&mut entry, "");
        write_numbers(&mut entry);
        let _ = check(&mut entry, &SCHEMA, "", found);
    }

    /// Reads the entry of `app`.
    ///
    /// # Errors
    /// Its name, or a key that restricts the server, is wrong.
    pub(super) fn read(
        app: &str,
        mut entry: Value,
        environment: Environment<'_>,
        found: &RefCell<FoundSecrets>,
        warnings: &mut Vec<String>,
    ) -> Result<ServerEntry<Self>, String> {
        let path = format!("mcpServers.{app}");
        check_app(&path, app)?;
        let unknown = take_unknown(&mut entry, &path)?;
        Self::parts(restrictions(&entry, &SCHEMA, &RESTRICTING, &path, environment)?, &path)?;
        let has = |key: &str| has_key(&entry, &SCHEMA, key);
        if has("confine") && has("url") && !has("command") {
            return Err(format!("{path}.confine: only a server that is started with 'command' can be confined"));
        }
        let has_target = has("command") || has("url");
        write_numbers(&mut entry);
        let is = |key: &str, wanted: bool| entry.get(key).and_then(Value::as_bool) == Some(wanted);
        let is_disabled = is("disabled", true) || is("enabled", false);
        let reader = EntryReader { path: &path, schema: &SCHEMA, environment, found };
        let parse = |entry| Self::parts(entry, &path).map(drop);
        let usable = |entry| Self::usable(entry, &path, environment, found);
        let read = reader.read(entry, is_disabled, warnings, parse, usable);
        if let ServerEntry::Unusable(reason) = read {
            let misspelt = unknown.iter().map(|(_, problem)| problem.clone()).find(|_| !has_target);
            return Ok(ServerEntry::Unusable(misspelt.unwrap_or(reason)));
        }
        warnings.extend(unknown.iter().map(|(name, _)| format!("{path}: unknown key '{name}' is ignored")));
        Ok(read)
    }

    /// Reads an entry that is not disabled.
    fn usable(
        mut entry: Value,
        path: &str,
        environment: Environment<'_>,
        found: &RefCell<FoundSecrets>,
    ) -> Result<Self, String> {
        expand(&mut entry, path, environment)?;
        add_env_file(&mut entry, path)?;
        check(&mut entry, &SCHEMA, path, &mut found.borrow_mut())?;
        let has = |key: &str| entry.get(key).is_some();
        let (has_command, has_url, has_timeout) = (has("command"), has("url"), has("startTimeoutMs"));
        let used = Entry(entry.clone());
        let (stdio, http, mut rest) = Self::parts(entry, path)?;
        let kind = match (has_command, has_url) {
            (true, false) if http.auth.is_some() => {
                return Err(format!("{path}.auth: only a server with 'url' can be authorized"));
            }
            (true, false) => UpstreamKind::Stdio(stdio),
            (false, true) => {
                check_url(&format!("{path}.url"), &http.url)?;
                http.auth.as_ref().map_or(Ok(()), |auth| auth.check(&format!("{path}.auth")))?;
                if !has_timeout {
                    rest.start_timeout = HTTP_START_TIMEOUT;
                }
                UpstreamKind::Http(http)
            }
            (true, true) => return Err(format!("{path}: give either 'command' or 'url', not both")),
            (false, false) => return Err(format!("{path}: 'command' or 'url' is missing")),
        };
        Ok(Self { kind, entry: used, ..rest })
    }

    /// Returns after how long without a request its process is stopped; `None`: never. `of_all` is that of servers
    /// without their
    /// own.
    #[must_use]
    pub fn idle_stop(&self, of_all: Duration) -> Option<Duration> {
        let UpstreamKind::Stdio(stdio) = &self.kind else { return None };
        Some(stdio.idle_stop_ms.map_or(of_all, Duration::from_millis)).filter(|time| !time.is_zero())
    }

    fn parts(mut entry: Value, path: &str) -> Result<(StdioConfig, HttpConfig, Self), String> {
        Ok((take_keys(&mut entry, &STDIO, path)?, take_keys(&mut entry, &HTTP, path)?, read(entry, path)?))
    }

    /// The tools of it that exist, by their own names.
    #[must_use]
    pub fn tools(&self) -> ToolFilter {
        ToolFilter::by_name(self.enabled_tools.clone(), self.disabled_tools.clone())
    }
}

/// Keys that restrict a server. Misspelt, they would be missed silently.
const RESTRICTING: [&str; 6] = ["confine", "enabled", "disabled", "enabledTools", "disabledTools", "quarantine"];

/// Takes unknown keys out of an entry: clients have keys of their own. Returns their names, and an error for each.
fn take_unknown(entry: &mut Value, path: &str) -> Result<Vec<(String, String)>, String> {
    let Some(table) = entry.as_object_mut() else { return Ok(Vec::new()) };
    let known = super::server_entry::names(&SCHEMA);
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let unknown: Vec<String> = table.keys().filter(|name| !names.contains(&name.as_str())).cloned().collect();
    let mut taken = Vec::new();
    for name in unknown {
        table.shift_remove(&name);
        let problem = format!("{path}: {}", unknown_key(&name, &names));
        let near = nearest(&name, names.iter().copied(), 1).first().copied();
        let meant = known.iter().find(|(name, _)| Some(*name) == near).map(|(_, key)| *key);
        if meant.is_some_and(|key| RESTRICTING.contains(&key)) {
            return Err(problem);
        }
        taken.push((truncate(&name, 64).to_owned(), problem));
    }
    Ok(taken)
}

/// Clients also write numbers and truth values as variables and headers.
fn write_numbers(entry: &mut Value) {
    for key in ["env", "headers"] {
        for value in entry.get_mut(key).and_then(Value::as_object_mut).into_iter().flat_map(|table| table.values_mut())
        {
            if value.is_number() || value.is_boolean() {
                *value = value.to_string().into();
            }
        }
    }
}

/// Adds the variables of `envFile` to `env`.
fn add_env_file(entry: &mut Value, path: &str) -> Result<(), String> {
    let Some(file) = entry.get("envFile").and_then(Value::as_str) else { return Ok(()) };
    let variables = env_file::read(Path::new(file)).map_err(|problem| format!("{path}.envFile: {problem}"))?;
    let Some(table) = entry.as_object_mut() else { return Ok(()) };
    let env = table.entry("env").or_insert_with(|| Value::Object(Map::new()));
    for (name, value) in variables {
        if let Some(env) = env.as_object_mut() {
            env.entry(name).or_insert_with(|| value.into());
        }
    }
    Ok(())
}

/// Whether an app can have this name.
pub(super) fn check_app(path: &str, app: &str) -> Result<(), String> {
    if app.is_empty() || app.contains(':') || app.trim() != app {
        return Err(format!("{path}: a name must not be empty, contain ':', or begin or end with a space"));
    }
    if app.eq_ignore_ascii_case("codecall") || is_reserved(app) {
        return Err(format!("{path}: this name is the server's own; choose another"));
    }
    Ok(())
}

pub(super) fn check_url(path: &str, url: &str) -> Result<(), String> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(());
    }
    Err(format!("{path}: must begin with http:// or https://"))
}
