//! The settings of mcpproxy beside its servers: each becomes a key of ours, or is named.
//!
//! A setting that limits something must not get lost unnoticed: what it limits is not switched on then.

use serde_json::{Map, Value, json};

/// The settings of a file, in our keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The settings that are taken over.
    pub taken: Vec<Setting>,
    /// The settings that are not: the key of the file, and why.
    pub left: Vec<(String, String)>,
}

/// A setting that is taken over.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key in the file of the client.
    pub from: String,
    /// Our key, with the names of its tables.
    pub key: &'static [&'static str],
    /// Our value.
    pub value: Value,
}

impl Setting {
    /// Our key as it is written: `vm.toolTimeoutMs`.
    #[must_use]
    pub fn path(&self) -> String {
        self.key.join(".")
    }

    /// Whether the value must not be shown.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.key == ["http", "token"]
    }
}

/// The keys of a client that has settings beside its servers.
pub const ID: &str = "mcpproxy";
/// Keys that are handled with the servers.
const OF_SERVERS: [&str; 5] =
    ["mcpServers", "docker_isolation", "environment", "init_timeout", "server_concurrency_defaults"];
/// How long a token is at least (`http.token`).
const MIN_TOKEN_BYTES: usize = 16;

/// Converts the settings of a file.
#[must_use]
pub fn settings(root: &Map<String, Value>) -> Settings {
    let mut settings = Settings::default();
    let given = |key: &str| root.get(key).filter(|value| !value.is_null());
    // 0 is the default of mcpproxy.
    let limits = [
        ("code_execution_timeout_ms", &["code_execution_timeout_ms"][..], 1, 600_000),
        ("code_execution_max_tool_calls", &["code_execution_max_tool_calls"][..], 0, u64::MAX),
        ("code_execution_pool_size", &["code_execution_pool_size"][..], 1, 100),
        ("code_execution_max_parallel", &["vm", "maxConcurrency"][..], 1, u64::from(u32::MAX)),
    ];
    for (from, key, least, most) in limits {
        if let Some(value) = given(from).filter(|value| least == 0 || **value != 0) {
            settings.number(from, key, value, least, most);
        }
    }
    if let Some(value) = given("enable_code_execution") {
        let lost = settings.left.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ");
        match value {
            Value::Bool(true) if !lost.is_empty() => {
                settings.leave("enable_code_execution", &format!("it stays off, because {lost} is not taken over"));
            }
            Value::Bool(_) => settings.take("enable_code_execution", &["enable_code_execution"], value.clone()),
            _ => settings.leave("enable_code_execution", "it is neither true nor false"),
        }
    }
    match (given("top_k"), given("tools_limit")) {
        (Some(top), limit) => {
            settings.number("top_k", &["topK"], top, 1, 50);
            if limit.is_some() {
                settings.leave("tools_limit", "'top_k' is taken over as 'topK'");
            }
        }
        (None, Some(limit)) => settings.number("tools_limit", &["topK"], limit, 1, 50),
        (None, None) => {}
    }
    if let Some(value) = given("tool_response_limit") {
        settings.number("tool_response_limit", &["vm", "maxInlineBytes"], value, 1000, u64::from(u32::MAX));
    }
    if let Some(value) = given("call_tool_timeout") {
        match milliseconds(value).filter(|ms| *ms > 0) {
            Some(ms) => settings.take("call_tool_timeout", &["vm", "toolTimeoutMs"], ms.into()),
            None => settings.leave("call_tool_timeout", "it is no duration above zero, such as \"2m\""),
        }
    }
    if let Some(value) = given("quarantine_enabled") {
        match value {
            Value::Bool(_) => settings.take("quarantine_enabled", &["quarantine"], value.clone()),
            _ => settings.leave("quarantine_enabled", "it is neither true nor false"),
        }
    }
    settings.token(given("api_key"), given("require_mcp_auth"));
    settings.output_validation(given("output_validation"));
    if let Some(listen) = given("listen") {
        let address = listen.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
        let how = address.map_or_else(|| "ADDRESS".to_owned(), str::to_owned);
        settings.leave("listen", &format!("give it on the command line: 'codecall serve --http {how}'"));
    }
    let is_done = |settings: &Settings, key: &str| {
        OF_SERVERS.contains(&key)
            || settings.taken.iter().any(|setting| setting.from == key)
            || settings.left.iter().any(|(left, _)| left == key)
    };
    for (key, value) in root {
        let is_default = limits.iter().any(|(from, ..)| from == key) && *value == 0;
        if !is_done(&settings, key) && !value.is_null() && !is_default && key != "max_concurrent_requests" {
            settings.leave(key, reason(key));
        }
    }
    settings
}

/// Returns why a setting has no key here.
fn reason(key: &str) -> &'static str {
    match key {
        "read_only_mode" | "disable_management" | "allow_server_add" | "allow_server_remove" => {
            "agents cannot change the configuration of CodeCall"
        }
        "tls" => "CodeCall speaks HTTP; a proxy in front of it has the certificate",
        "logging" => "give it on the command line: '--log-level', '--log-format'",
        "sensitive_data_detection" | "output_sanitisation" => "see 'pii' for the masking of personal data",
        "telemetry" => "CodeCall sends none",
        _ => "CodeCall has no such setting",
    }
}

impl Settings {
    pub(crate) fn take(&mut self, from: &str, key: &'static [&'static str], value: Value) {
        self.taken.push(Setting { from: from.to_owned(), key, value });
    }

    pub(crate) fn leave(&mut self, key: &str, reason: &str) {
        self.left.push((key.to_owned(), reason.to_owned()));
    }

    fn number(&mut self, from: &str, key: &'static [&'static str], value: &Value, least: u64, most: u64) {
        match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => self.take(from, key, number.into()),
            None if most == u64::MAX => self.leave(from, &format!("it is no whole number from {least}")),
            None => self.leave(from, &format!("it is no whole number from {least} to {most}")),
        }
    }

    /// The token of clients. There it may be for the web page only; here it is for all requests.
    fn token(&mut self, key: Option<&Value>, is_required: Option<&Value>) {
        match key.and_then(Value::as_str) {
            Some("") | None => {
                if key.is_some_and(|key| *key != "") {
                    self.leave("api_key", "it is no text");
                }
                if is_required.is_some_and(|is_required| *is_required != false) {
                    self.leave("require_mcp_auth", "there is no 'api_key'; set 'http.token'");
                }
            }
            Some(token) if token.len() >= MIN_TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                // `${` would be a reference to a variable.
                self.take("api_key", &["http", "token"], token.replace("${", "$${").into());
                match is_required {
                    Some(is_required) if *is_required != true => {
                        self.leave("require_mcp_auth", "with 'http.token' all requests need the token");
                    }
                    Some(_) => self.take("require_mcp_auth", &[], Value::Null),
                    None => {}
                }
            }
            Some(_) => {
                let least = format!("'http.token' has at least {MIN_TOKEN_BYTES} visible ASCII characters");
                self.leave("api_key", &least);
                if is_required.is_some() {
                    self.leave("require_mcp_auth", "'api_key' is not taken over; set 'http.token'");
                }
            }
        }
    }

    fn output_validation(&mut self, validation: Option<&Value>) {
        let Some(validation) = validation else { return };
        let checked = match validation["mode"].as_str() {
            Some("strict") => "error",
            Some("warn") => "warn",
            Some("off") => "off",
            _ => return self.leave("output_validation", "its 'mode' is not strict, warn or off"),
        };
        self.take("output_validation.mode", &["checkOutput"], checked.into());
        let others = validation.as_object().into_iter().flatten().map(|(key, _)| key).filter(|key| *key != "mode");
        let others: Vec<&str> = others.map(String::as_str).collect();
        match others.is_empty() {
            true => self.taken.push(Setting { from: "output_validation".into(), key: &[], value: Value::Null }),
            false => {
                self.leave("output_validation", &format!("only its mode is taken over, not {}", others.join(", ")))
            }
        }
    }

    /// Adds limits on calls at once: of all servers together, and of single ones by name.
    pub(crate) fn limit_calls(&mut self, root: &Map<String, Value>, servers: &[(String, u64)]) {
        let mut limits = Vec::new();
        match root.get("max_concurrent_requests").map(Value::as_u64) {
            // 0 is no limit.
            None | Some(Some(0)) => {}
            Some(Some(limit)) if u32::try_from(limit).is_ok() => limits.push(json!({ "tool": "*", "limit": limit })),
            Some(_) => self.leave("max_concurrent_requests", "it is no whole number"),
        }
        limits.extend(servers.iter().map(|(name, limit)| json!({ "tool": format!("{name}:*"), "limit": limit })));
        if !limits.is_empty() {
            self.take("max_concurrent_requests", &["concurrencyLimits"], limits.into());
        }
    }
}

/// Why a server is isolated, which CodeCall cannot do; `None`: it is not.
#[must_use]
pub fn isolation(root: &Map<String, Value>, entry: &Map<String, Value>) -> Option<&'static str> {
    const OWN: &str = "mcpproxy starts it in isolation ('isolation')";
    const ALL: &str = "mcpproxy starts it in Docker or a sandbox ('docker_isolation')";
    let command = entry.get("command").and_then(Value::as_str)?;
    let own = ["isolation", "docker_isolation", "docker"].iter().find_map(|key| entry.get(*key));
    match own.map(is_isolating) {
        Some(Some(true)) => Some(OWN),
        Some(Some(false)) => None,
        // A server that is Docker itself is started as it is.
        _ if command.rsplit(['/', '\\']).next() == Some("docker") => None,
        _ => root.get("docker_isolation").and_then(is_isolating).filter(|is| *is).map(|_| ALL),
    }
}

/// Whether a section isolates; `None`: it does not say. What cannot be understood isolates.
fn is_isolating(section: &Value) -> Option<bool> {
    match section {
        Value::Null => None,
        Value::Bool(is) => Some(*is),
        Value::Object(members) => match (members.get("mode"), members.get("enabled")) {
            (Some(Value::String(mode)), _) if mode == "none" => Some(false),
            (Some(Value::String(mode)), enabled) if mode.is_empty() => enabled.map(|enabled| *enabled != false),
            (Some(Value::Null) | None, enabled) => {
                enabled.filter(|enabled| !enabled.is_null()).map(|enabled| *enabled != false)
            }
            (Some(_), _) => Some(true),
        },
        Value::Number(_) | Value::String(_) | Value::Array(_) => Some(true),
    }
}

/// Returns whether changes of a server's tools wait for approval; `None`: it does not say.
#[must_use]
pub fn quarantine(entry: &Map<String, Value>) -> Option<bool> {
    let is = |key: &str| entry.get(key).and_then(Value::as_bool);
    match entry.get("trust_mode").and_then(Value::as_str) {
        Some("auto") => return Some(false),
        Some("") | None => {}
        Some(_) => return Some(true),
    }
    match (is("auto_approve_tool_changes"), is("skip_quarantine")) {
        (Some(auto), _) => Some(!auto),
        (None, Some(true)) => Some(false),
        (None, _) => None,
    }
}

/// Reads a duration as Go writes it, such as `2m0s`, in whole milliseconds.
#[must_use]
pub fn milliseconds(value: &Value) -> Option<u64> {
    let mut rest = value.as_str()?.trim();
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let after = &rest[end..];
        let unit = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        sum += number
            * match &after[..unit] {
                "ns" => 1e-6,
                "us" | "µs" | "μs" => 1e-3,
                "ms" => 1.0,
                "s" => 1e3,
                "m" => 6e4,
                "h" => 3.6e6,
                _ => return None,
            };
        rest = &after[unit..];
    }
    format!("{:.0}", sum.ceil()).parse().ok().filter(|ms| *ms < 1_000_000_000_000)
}
