//! `http`: who may use the server over HTTP, and how much at once.

use super::duration::Milliseconds;
use super::secrets::Secret;
use super::tokens::{HttpJwt, HttpToken};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// Clients of the server over HTTP, and how much they may use at once.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct HttpServerConfig {
    /// The token that clients send as `Authorization: Bearer …`, in visible ASCII characters. Without it the server
    /// listens on loopback addresses only. `/healthz` and `/readyz` need no token.
    // A shorter one can be guessed.
    #[schemars(length(min = 16))]
    pub token: Option<Secret>,
    /// More tokens, each of a client with its own tools and limits. A session or a stored result belongs to the client
    /// that has begun it.
    pub tokens: Vec<HttpToken>,
    /// Clients with tokens of an authorization server.
    #[schemars(extend("x-default" = "none"))]
    pub jwt: Option<HttpJwt>,
    /// The address of this server's `/mcp` as clients know it, such as `https://tools.example.com/mcp`. It is in the
    /// metadata for clients that look for the authorization server (`http.jwt`).
    pub resource: Option<String>,
    /// Longest body of a request in bytes (status 413).
    #[schemars(range(min = 1024, max = 1 << 30))]
    pub max_body_bytes: usize,
    /// Open connections, at most as many as the system's limit of open files allows. A further one
    /// replaces the one that has waited longest for a request. If all have an active request, the client or address
    /// that has most loses its oldest one to a client that has fewer. Others get status 503. Health
    /// checks (`/healthz`, `/readyz`) are always answered.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// How long a connection may take to send its first byte, and then all headers of a request. The time begins with
    /// that byte, and with the end of each answer.
    #[serde(rename = "headerTimeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 100, max = 3_600_000))]
    pub header_timeout: Duration,
    /// How long the body of a request may take in all (status 408).
    #[serde(rename = "bodyTimeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 100, max = 3_600_000))]
    pub body_timeout: Duration,
    /// How long a client may read nothing of an answer or an event stream before its connection is closed.
    #[serde(rename = "writeTimeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 100, max = 3_600_000))]
    pub write_timeout: Duration,
    /// Sessions of MCP clients. A further one replaces an idle one: first sessions without a use, then the least
    /// recently used one. Its client gets status 404 and starts again. If all have an open
    /// stream, it gets status 503 (`TOO_MANY_SESSIONS`).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_sessions: usize,
    /// How long a session may be idle before it ends.
    #[serde(rename = "sessionIdleMs", with = "Milliseconds")]
    #[schemars(range(min = 100, max = 7 * 86_400_000))]
    pub session_idle: Duration,
    /// Accepted values of `Host`, without port. Default: `localhost`, `127.0.0.1` and `[::1]` on a loopback
    /// address, any on other addresses.
    #[schemars(extend("x-default" = "by address"))]
    pub allowed_hosts: Vec<String>,
    /// Accepted values of `Origin`, such as `https://app.example.com`: the web pages that may use the
    /// server. `*` accepts all. Requests without `Origin` do not come from a web page and are accepted.
    pub allowed_origins: Vec<String>,
    /// Whether operators get a web page at `/ui/`: runs, tools, charts (docs/guide/page.md). The flag `--ui` sets it too.
    pub ui: bool,
    /// Whether the page can run scripts, call tools, cancel runs and restart servers.
    pub ui_runs: bool,
    /// Whether the page can change the files of script tools.
    pub ui_edit: bool,
}

impl Default for HttpServerConfig {
    fn default() -> Self {
        Self {
            token: None,
            tokens: Vec::new(),
            jwt: None,
            resource: None,
            max_body_bytes: 16 * 1024 * 1024,
            max_connections: 512,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            max_sessions: 1_000,
            session_idle: Duration::from_secs(300),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            ui: false,
            ui_runs: true,
            ui_edit: false,
        }
    }
}

impl HttpServerConfig {
    /// Whether requests need a token.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.token.is_some() || !self.tokens.is_empty() || self.jwt.is_some()
    }

    /// Whether somebody has the token of an operator.
    #[must_use]
    pub fn has_operators(&self) -> bool {
        self.token.is_some() || self.tokens.iter().any(|token| token.operator)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.token.as_deref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("http.token: must have visible ASCII characters only".into());
        }
        let mut names = BTreeSet::new();
        for (at, token) in self.tokens.iter().enumerate() {
            token.check(&format!("http.tokens[{at}]"))?;
            if !names.insert(&token.name) {
                return Err(format!("http.tokens[{at}].name: there is another token of this name"));
            }
        }
        if self.resource.as_ref().is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
            return Err("http.resource: must begin with https:// or http://".into());
        }
        if let Some(jwt) = &self.jwt {
            jwt.check("http.jwt", self.resource.as_deref())?;
        }
        match self.allowed_origins.iter().find(|origin| *origin != "*" && !origin.contains("://")) {
            Some(_) => Err("http.allowedOrigins: an origin is written as 'https://app.example.com'".into()),
            None => Ok(()),
        }
    }
}
