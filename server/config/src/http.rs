//! What is served over HTTP, and the model server behind it.

use super::read::within;
use super::secrets::Found;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Who may speak to the server over HTTP, and how much at once.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct HttpServerConfig {
    /// What clients send as `Authorization: Bearer …`; absent: nothing is asked for, which is refused on
    /// addresses that other machines reach.
    pub token: Option<String>,
    /// Longest body of a request, in bytes.
    pub max_body_bytes: usize,
    /// Connections at once. A further one takes the place of the one that waits for a request for the
    /// longest time; where all have a request under way, it is answered with 503.
    pub max_connections: usize,
    /// How long a connection may wait for all headers of a request, in milliseconds: from its beginning,
    /// and from the end of each answer.
    pub header_timeout_ms: u64,
    /// How long a client may read nothing of an answer, in milliseconds.
    pub write_timeout_ms: u64,
    /// Sessions of MCP clients at once. A further one takes the place of an idle one; where all are in use,
    /// it is answered with 503.
    pub max_sessions: usize,
    /// How long a session may be idle before it ends, in milliseconds.
    pub session_idle_ms: u64,
    /// Values of `Host` that are answered, without port; empty: those of loopback on a loopback address,
    /// all on others.
    pub allowed_hosts: Vec<String>,
    /// Values of `Origin` that are answered: the pages of browsers that may use the server. `*`: all.
    pub allowed_origins: Vec<String>,
}

impl Default for HttpServerConfig {
    fn default() -> Self {
        Self {
            token: None,
            max_body_bytes: 16 * 1024 * 1024,
            max_connections: 512,
            header_timeout_ms: 30_000,
            write_timeout_ms: 30_000,
            max_sessions: 1_000,
            session_idle_ms: 300_000,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
        }
    }
}

impl std::fmt::Debug for HttpServerConfig {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServerConfig").field("max_body_bytes", &self.max_body_bytes).finish_non_exhaustive()
    }
}

impl HttpServerConfig {
    pub(super) fn check(&self, secrets: &mut Found) -> Result<(), String> {
        within("http.maxBodyBytes", self.max_body_bytes, 1024, 1 << 30)?;
        within("http.maxConnections", self.max_connections, 1, 1_000_000)?;
        within("http.headerTimeoutMs", self.header_timeout_ms, 100, 3_600_000)?;
        within("http.writeTimeoutMs", self.write_timeout_ms, 100, 3_600_000)?;
        within("http.maxSessions", self.max_sessions, 1, 1_000_000)?;
        within("http.sessionIdleMs", self.session_idle_ms, 100, 7 * 86_400_000)?;
        if let Some(token) = &self.token {
            if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(format!(
                    "http.token: must have at least {SHORTEST_TOKEN} characters, all of them visible ASCII"
                ));
            }
            secrets.variable("TOKEN", token);
        }
        match self.allowed_origins.iter().find(|origin| *origin != "*" && !origin.contains("://")) {
            Some(_) => Err("http.allowedOrigins: an origin is written as 'https://app.example.com'".into()),
            None => Ok(()),
        }
    }
}

/// What can be guessed is no token.
const SHORTEST_TOKEN: usize = 16;

/// The model server that `/v1/chat/completions` puts code in front of.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ModelConfig {
    /// Where it is, up to what comes before `/chat/completions`; absent: there is none.
    pub url: Option<String>,
    /// Its key, sent as `Authorization: Bearer …`.
    pub key: Option<String>,
    /// More headers of every request.
    pub headers: BTreeMap<String, String>,
    /// How long it may say nothing, in milliseconds.
    pub timeout_ms: u64,
    /// How often the model may be asked within one request: code that failed, or that needed no tool,
    /// goes back to it. The last time it may not write code.
    pub max_turns: usize,
    /// Longest result of a code block that the model sees, in bytes.
    pub max_result_bytes: u64,
    /// Longest answer of the model, in bytes.
    pub max_answer_bytes: usize,
    /// Whether answers come with the messages of code blocks (`code`, `code_result`) unless a request
    /// says otherwise.
    pub code_messages: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            url: None,
            key: None,
            headers: BTreeMap::new(),
            timeout_ms: 300_000,
            max_turns: 10,
            max_result_bytes: 64 * 1024,
            max_answer_bytes: 16 * 1024 * 1024,
            code_messages: false,
        }
    }
}

impl std::fmt::Debug for ModelConfig {
    /// Without the address, the key and the headers, which may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelConfig").field("max_turns", &self.max_turns).finish_non_exhaustive()
    }
}

impl ModelConfig {
    pub(super) fn check(&self, secrets: &mut Found) -> Result<(), String> {
        within("model.maxTurns", self.max_turns, 1, 100)?;
        within("model.timeoutMs", self.timeout_ms, 1_000, 3_600_000)?;
        within("model.maxAnswerBytes", self.max_answer_bytes, 1024, 1 << 30)?;
        if let Some(url) = &self.url {
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err("model.url: must begin with http:// or https://".into());
            }
            secrets.address(url);
        }
        self.key.iter().for_each(|key| secrets.variable("KEY", key));
        self.headers.iter().for_each(|(name, value)| secrets.header(name, value));
        Ok(())
    }
}
