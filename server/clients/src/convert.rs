//! Converts the entry of a client to one of our configuration.

use crate::Platform;
use crate::client::Scope as Whose;
use crate::find::{Environment, Found};
use crate::launch;
use crate::mcpproxy;
use crate::variables::{Scope, translate};
use serde_json::{Map, Value};
use std::path::Path;

/// A server in our own keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its keys: `command`, `args`, `env`, `url`, ….
    pub keys: Map<String, Value>,
    /// Variables that must be set, because it has no value without them.
    pub needs: Vec<Need>,
    /// Differences from how the client starts it.
    pub notes: Vec<String>,
    /// How many of its tools may be called at once.
    pub limit: Option<u64>,
}

/// A variable of the environment that a server needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its name.
    pub variable: String,
    /// A description, as the client asks for it.
    pub what: String,
}

/// The fate of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Conversion {
    /// A server.
    Server(Server),
    /// Nothing: why.
    Skip(String),
}

/// Keys of clients that change nothing here.
const IGNORED: &[&str] = &[
    "type",
    "transport",
    "protocol",
    "source",
    "name",
    "description",
    "version",
    "gallery",
    "icon",
    "autoApprove",
    "alwaysAllow",
    "trust",
    "timeout",
    "created",
    "updated",
    "required",
    "settings",
    "dev",
    "instructions",
    "default_tools_approval_mode",
    "supports_parallel_tool_calls",
    "tools",
    "quarantined",
    "enabled",
    "disabled",
    "remote",
    "envFile",
    "env_vars",
    "bearer_token_env_var",
    "env_http_headers",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "working_dir",
];
/// Keys of mcpproxy that are handled apart, or that need no counterpart.
const OF_MCPPROXY: &[&str] = &[
    "isolation",
    "docker_isolation",
    "docker",
    "oauth",
    "skip_quarantine",
    "auto_approve_tool_changes",
    "trust_mode",
    "reconnect_on_use",
    "init_timeout",
    "max_concurrent_requests",
    "source_registry_id",
    "source_registry_provenance",
];
/// Keys that are ours, with their other names.
const SAME: [(&str, &[&str]); 8] = [
    ("command", &["command"]),
    ("args", &["args"]),
    ("env", &["env"]),
    ("cwd", &["cwd", "working_dir"]),
    ("url", &["url", "serverUrl", "httpUrl"]),
    ("headers", &["headers", "http_headers"]),
    ("enabledTools", &["enabledTools", "enabled_tools", "allowedTools", "includeTools"]),
    ("disabledTools", &["disabledTools", "disabled_tools", "excludeTools"]),
];

/// Converts an entry of a file.
#[must_use]
pub fn convert(found: &Found, entry: &Value, environment: &Environment<'_>) -> Conversion {
    let Some(table) = entry.as_object() else { return Conversion::Skip("it is not a table".into()) };
    match Converter::new(found, environment).convert(flat(table)) {
        Ok(server) => Conversion::Server(server),
        Err(reason) => Conversion::Skip(reason),
    }
}

/// Zed also writes the command as a table.
fn flat(table: &Map<String, Value>) -> Map<String, Value> {
    let mut table = table.clone();
    if let Some(Value::Object(command)) = table.get("command").cloned() {
        table.shift_remove("command");
        for (key, value) in command {
            let key = if key == "path" { "command".to_owned() } else { key };
            table.entry(key).or_insert(value);
        }
    }
    table.retain(|_, value| !value.is_null());
    table
}

struct Converter<'a> {
    found: &'a Found,
    environment: &'a Environment<'a>,
    needs: Vec<Need>,
    notes: Vec<String>,
}

impl<'a> Converter<'a> {
    fn new(found: &'a Found, environment: &'a Environment<'a>) -> Self {
        Self { found, environment, needs: Vec::new(), notes: Vec::new() }
    }

    fn convert(mut self, table: Map<String, Value>) -> Result<Server, String> {
        let is_mcpproxy = self.found.client.id == mcpproxy::ID;
        check_kind(&table, is_mcpproxy)?;
        let mut keys = Map::new();
        for (key, names) in SAME {
            if let Some(value) = names.iter().find_map(|name| table.get(*name)) {
                let value = self.value(key, value)?;
                if value != Value::Object(Map::new()) && value != Value::Array(Vec::new()) {
                    keys.insert(key.to_owned(), value);
                }
            }
        }
        if keys.contains_key("command") == keys.contains_key("url") {
            let is_extension =
                table.get("source").is_some_and(|source| source == "extension") || table.contains_key("settings");
            return Err(if is_extension {
                "it is an extension of the client".into()
            } else {
                "it has neither a command nor an address, or both".into()
            });
        }
        self.environment_of_codex(&table, &mut keys)?;
        self.timeouts(&table, &mut keys);
        self.folders(&table, &mut keys)?;
        let is = |key: &str, wanted: bool| table.get(key) == Some(&Value::Bool(wanted));
        if is("disabled", true) || is("enabled", false) {
            keys.insert("enabled".into(), false.into());
        } else if is("quarantined", true) {
            self.notes.push("the client has it in quarantine".into());
            keys.insert("enabled".into(), false.into());
        }
        let limit = if is_mcpproxy { self.of_mcpproxy(&table, &mut keys)? } else { None };
        let is_known = |name: &str| {
            IGNORED.contains(&name)
                || SAME.iter().any(|(_, names)| names.contains(&name))
                || is_mcpproxy && OF_MCPPROXY.contains(&name)
        };
        let unknown: Vec<&str> = table.keys().map(String::as_str).filter(|name| !is_known(name)).collect();
        if !unknown.is_empty() {
            self.notes.push(format!("not taken over: {}", unknown.join(", ")));
        }
        Ok(Server { keys, needs: self.needs, notes: self.notes, limit })
    }

    /// A value with its references translated. Numbers among texts become texts.
    fn value(&mut self, key: &str, value: &Value) -> Result<Value, String> {
        let wrong = || format!("its '{key}' has the wrong type");
        match (key, value) {
            ("command" | "cwd" | "url", Value::String(text)) => self.text(text).map(Value::String),
            ("args", Value::Array(items)) => {
                items.iter().map(|item| self.text(&plain(item).ok_or_else(wrong)?).map(Value::String)).collect()
            }
            ("env" | "headers", Value::Object(entries)) => {
                let mut translated = Map::new();
                for (name, value) in entries {
                    // `null` removes a variable; children inherit none that usually holds a secret.
                    if !value.is_null() {
                        translated.insert(name.clone(), self.text(&plain(value).ok_or_else(wrong)?)?.into());
                    }
                }
                Ok(Value::Object(translated))
            }
            ("enabledTools" | "disabledTools", Value::Array(items)) if items.iter().all(Value::is_string) => {
                Ok(value.clone())
            }
            _ => Err(wrong()),
        }
    }

    fn text(&mut self, text: &str) -> Result<String, String> {
        let (found, environment) = (self.found, self.environment);
        let input = |id: &str| input(&found.inputs, id);
        let scope = Scope {
            spelling: found.client.variables,
            folder: &environment.folder,
            home: &environment.home,
            separator: if environment.platform == Platform::Windows { '\\' } else { '/' },
            input: &|id| {
                let (variable, default, _) = input(id);
                (variable, default)
            },
        };
        let translated = translate(text, &scope)
            .map_err(|reference| format!("it refers to {reference}, which only the client has"))?;
        if translated.uses_folder && found.scope == Whose::User {
            self.note(format!("the open folder is {}", environment.folder.display()));
        }
        for variable in translated.needs {
            let asked = found.inputs.iter().find_map(|input| {
                let id = input["id"].as_str()?;
                (variable_name(id) == variable).then(|| input["description"].as_str().unwrap_or(id).to_owned())
            });
            self.need(variable, asked.unwrap_or_default());
        }
        Ok(translated.text)
    }

    fn need(&mut self, variable: String, what: String) {
        if !self.needs.iter().any(|need| need.variable == variable) {
            self.needs.push(Need { variable, what });
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Variables that Codex passes on or sends as headers.
    fn environment_of_codex(
        &mut self,
        table: &Map<String, Value>,
        keys: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if let Some(Value::Array(names)) = table.get("env_vars") {
            let name = |item: &Value| item.as_str().or_else(|| item["name"].as_str()).map(Value::from);
            let names: Vec<Value> = names.iter().filter_map(name).collect();
            keys.insert("inheritEnv".into(), names.into());
        }
        let mut headers = Vec::new();
        if let Some(Value::String(name)) = table.get("bearer_token_env_var") {
            headers.push(("Authorization".to_owned(), name.clone(), "Bearer "));
        }
        for (header, name) in table.get("env_http_headers").and_then(Value::as_object).into_iter().flatten() {
            headers.push((
                header.clone(),
                name.as_str().ok_or("its 'env_http_headers' has the wrong type")?.to_owned(),
                "",
            ));
        }
        for (header, variable, before) in headers {
            let all = keys.entry("headers").or_insert_with(|| Value::Object(Map::new()));
            all[header] = format!("{before}${{{variable}}}").into();
            self.need(variable, String::new());
        }
        Ok(())
    }

    /// Converts the settings of mcpproxy for a server, in its entry or for all. Returns how many of its tools may be called at once.
    fn of_mcpproxy(
        &mut self,
        table: &Map<String, Value>,
        keys: &mut Map<String, Value>,
    ) -> Result<Option<u64>, String> {
        let root = &self.found.settings;
        let mut lost = Vec::new();
        if let Some(why) = mcpproxy::isolation(root, table) {
            lost.push(format!("{why}, which CodeCall does not; 'confine' limits what a process may do"));
        }
        if let Some(quarantine) = mcpproxy::quarantine(table) {
            keys.insert("quarantine".into(), quarantine.into());
        }
        if let Some(timeout) = table.get("init_timeout").or_else(|| root.get("init_timeout")) {
            match mcpproxy::milliseconds(timeout) {
                Some(0) => {}
                Some(ms) => drop(keys.insert("startTimeoutMs".into(), ms.into())),
                None => self.note("not taken over: init_timeout, which is no duration".into()),
            }
        }
        let defaults = root.get("server_concurrency_defaults");
        let limit = table.get("max_concurrent_requests");
        let limit = limit.or_else(|| defaults?.get("max_concurrent_requests"));
        let number = limit.and_then(Value::as_u64).filter(|limit| u32::try_from(*limit).is_ok());
        if limit.is_some() && number.is_none() {
            lost.push("its 'max_concurrent_requests' is no whole number".to_owned());
        }
        if keys.contains_key("command") {
            self.environment_of_mcpproxy(keys)?;
        } else if let Some(oauth) = table.get("oauth") {
            let (auth, others) = authorization(oauth)?;
            if !auth.is_empty() {
                keys.insert("auth".into(), auth.into());
            }
            if !others.is_empty() {
                lost.push(format!("these keys of 'oauth' are not taken over: {}", others.join(", ")));
            }
        }
        if !lost.is_empty() {
            keys.insert("enabled".into(), false.into());
            lost.into_iter().for_each(|lost| self.note(format!("it is disabled: {lost}")));
        }
        Ok(number.filter(|limit| *limit > 0))
    }

    /// Variables of all servers.
    fn environment_of_mcpproxy(&mut self, keys: &mut Map<String, Value>) -> Result<(), String> {
        let Some(environment) = self.found.settings.get("environment") else { return Ok(()) };
        if let Some(custom) = environment.get("custom_vars").filter(|custom| !custom.is_null()) {
            let custom = self.value("env", custom)?;
            let own = keys.entry("env").or_insert_with(|| Value::Object(Map::new()));
            if let (Value::Object(custom), Some(own)) = (custom, own.as_object_mut()) {
                for (name, value) in custom {
                    own.entry(name).or_insert(value);
                }
            }
            if own_is_empty(keys.get("env")) {
                keys.shift_remove("env");
            }
        }
        let is_name =
            |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let names = environment.get("allowed_system_vars").and_then(Value::as_array).into_iter().flatten();
        let names: Vec<Value> = names.filter_map(Value::as_str).filter(is_name).map(Value::from).collect();
        if !names.is_empty() {
            keys.insert("inheritEnv".into(), names.into());
        }
        Ok(())
    }

    fn timeouts(&mut self, table: &Map<String, Value>, keys: &mut Map<String, Value>) {
        let seconds = table.get("startup_timeout_sec").and_then(Value::as_f64).map(|seconds| seconds * 1000.0);
        let start = seconds.or_else(|| table.get("startup_timeout_ms").and_then(Value::as_f64));
        if let Some(start) = start.filter(|start| *start >= 1.0 && *start < 1e12) {
            keys.insert("startTimeoutMs".into(), format!("{start:.0}").parse::<u64>().unwrap_or_default().into());
        }
        if table.contains_key("tool_timeout_sec") {
            self.note("the time of a call is 'vm.toolTimeoutMs', for all servers".into());
        }
    }

    /// Makes paths absolute that are relative to the folder: we may be started elsewhere.
    fn folders(&mut self, table: &Map<String, Value>, keys: &mut Map<String, Value>) -> Result<(), String> {
        let folder = &self.environment.folder;
        let absolute = |path: &str| {
            let is_absolute = Path::new(path).is_absolute() || path.starts_with("${") || path.starts_with('~');
            if is_absolute { path.to_owned() } else { folder.join(path).display().to_string() }
        };
        if let Some(Value::String(file)) = table.get("envFile") {
            let file = self.text(file)?;
            keys.insert("envFile".into(), absolute(&file).into());
        }
        if !keys.contains_key("command") {
            return Ok(());
        }
        let of_folder = self.found.scope == Whose::Folder;
        match keys.get("cwd").and_then(Value::as_str) {
            Some(cwd) if of_folder => drop(keys.insert("cwd".into(), absolute(cwd).into())),
            None if of_folder => drop(keys.insert("cwd".into(), folder.display().to_string().into())),
            Some(_) | None => {}
        }
        Ok(())
    }
}

fn own_is_empty(env: Option<&Value>) -> bool {
    env.and_then(Value::as_object).is_some_and(Map::is_empty)
}

/// Converts the `oauth` of mcpproxy to our `auth`. Also returns the keys that have no counterpart.
fn authorization(oauth: &Value) -> Result<(Map<String, Value>, Vec<String>), String> {
    let Some(oauth) = oauth.as_object() else { return Err("its 'oauth' has the wrong type".into()) };
    let (mut auth, mut others) = (Map::new(), Vec::new());
    for (key, value) in oauth {
        let is_empty =
            matches!(value, Value::Null | Value::Bool(_)) || *value == "" || *value == Value::Array(Vec::new());
        let port = value.as_str().and_then(|address| {
            let rest =
                address.strip_prefix("http://127.0.0.1:").or_else(|| address.strip_prefix("http://localhost:"))?;
            rest.split('/').next()?.parse::<u16>().ok().filter(|port| *port > 0)
        });
        match (key.as_str(), value, port) {
            // PKCE is always used.
            ("pkce_enabled", _, _) => {}
            _ if is_empty || *value == Value::Object(Map::new()) => {}
            ("client_id", Value::String(id), _) if !id.contains("${") => {
                auth.insert("clientId".into(), id.clone().into());
            }
            ("client_secret", Value::String(secret), _) if !secret.contains("${") => {
                auth.insert("clientSecret".into(), secret.clone().into());
            }
            ("scopes", Value::Array(scopes), _) if scopes.iter().all(Value::is_string) => {
                auth.insert("scopes".into(), value.clone());
            }
            ("redirect_uri", _, Some(port)) => drop(auth.insert("redirectPort".into(), port.into())),
            _ => others.push(key.clone()),
        }
    }
    Ok((auth, others))
}

/// Refuses what cannot be reached, or not without what only the client has.
fn check_kind(table: &Map<String, Value>, is_mcpproxy: bool) -> Result<(), String> {
    let kind = ["type", "transport", "protocol"].iter().find_map(|key| table.get(*key).and_then(Value::as_str));
    match kind {
        Some("sse") => return Err("it speaks HTTP with SSE (protocol 2024-11-05), which is not supported".into()),
        Some("ws" | "websocket") => return Err("it speaks over WebSocket, which is not supported".into()),
        Some(_) | None => {}
    }
    let has = |key: &str| table.get(key).is_some_and(|value| *value != Value::Object(Map::new()) && *value != false);
    if !is_mcpproxy && table.contains_key("url") && ["oauth", "auth"].iter().any(|key| has(key)) {
        return Err("it signs in with OAuth, which is not supported".into());
    }
    if has("headersHelper") {
        return Err("a program of the client makes its headers".into());
    }
    let command = table.get("command").and_then(Value::as_str).unwrap_or_default();
    let arguments = table.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if launch::is_codecall(command, arguments) {
        return Err("it is CodeCall itself".into());
    }
    Ok(())
}

/// A text, or a number or truth value as a text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The variable that stands for an input of VS Code: its name, its default, its description.
fn input(inputs: &[Value], id: &str) -> (String, Option<String>, String) {
    let asked = inputs.iter().find(|input| input["id"] == id);
    let text = |key: &str| asked.and_then(|input| input[key].as_str()).map(str::to_owned);
    let default = text("default").filter(|default| !default.contains('}'));
    (variable_name(id), default, text("description").unwrap_or_else(|| id.to_owned()))
}

/// `github-token` becomes `GITHUB_TOKEN`.
fn variable_name(id: &str) -> String {
    let mut name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}
