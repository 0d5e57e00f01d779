//! `http.tokens` and `http.jwt`: several clients, each with its own tools and limits.

use super::duration::WithUnit;
use super::front::Front;
use super::secrets::Secret;
use super::vm;
use agentscript::Policy;
use codecall_base::tool::ToolFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// A token of a client. Give either `token` or `sha256`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct HttpToken {
    /// The name of the client in logs, records and figures.
    #[schemars(extend("x-default" = "required"))]
    pub name: String,
    /// The token, in visible ASCII characters.
    #[schemars(length(min = 16))]
    pub token: Option<Secret>,
    /// The SHA-256 digest of the token in hexadecimal digits, so that the token is not in the file.
    pub sha256: Option<String>,
    /// The tools that it may use. Others do not exist for it.
    pub tools: ToolFilter,
    /// How tools are offered to it.
    #[schemars(extend("x-default" = "by `front`"))]
    pub front: Option<Front>,
    /// How many requests it may send.
    pub rate: Option<RequestRate>,
    /// How many scripts it may have begun at once, including waiting ones.
    #[schemars(range(min = 1), extend("x-default" = "its share of `pool`"))]
    pub max_runs: Option<u32>,
    /// Limits of its scripts, which are keys of `vm`. Higher values than there have no effect.
    pub limits: Map<String, Value>,
    /// Whether it may read `/v1/status` and `/metrics`.
    pub operator: bool,
}

/// At most `limit` requests in `window`.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestRate {
    /// How many requests.
    pub limit: NonZeroU32,
    /// In what time, such as `"1m"`.
    #[serde(with = "WithUnit")]
    pub window: Duration,
}

/// Clients with tokens (JWT) that an authorization server has issued for this server. Each subject is a client.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct HttpJwt {
    /// The issuer: the value of `iss`.
    #[schemars(extend("x-default" = "required"))]
    pub issuer: String,
    /// Where the keys of the issuer are (JWKS): an address or a file. They are read again when a token names a key that
    /// is not among them.
    #[schemars(extend("x-default" = "required"))]
    pub jwks: String,
    /// Accepted values of `aud`.
    #[schemars(extend("x-default" = "`http.resource`"))]
    pub audience: Vec<String>,
    /// Accepted algorithms of signatures.
    #[schemars(extend("x-default" = "all of these"))]
    pub algorithms: Vec<JwtAlgorithm>,
    /// The tools that a token with a scope may use, by scope. A token with none of these scopes is refused. Without
    /// scopes every token may use all tools.
    #[schemars(extend("x-name" = "SCOPE", "x-default" = "none"))]
    pub scopes: BTreeMap<String, ToolFilter>,
    /// How many requests each subject may send.
    pub rate: Option<RequestRate>,
    /// How many scripts each subject may run at once.
    #[schemars(range(min = 1), extend("x-default" = "its share of `pool`"))]
    pub max_runs: Option<u32>,
    /// Limits of scripts, which are keys of `vm`. Higher values than there have no effect.
    pub limits: Map<String, Value>,
}

/// An algorithm of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum JwtAlgorithm {
    /// RSA (PKCS #1 v1.5) with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl HttpToken {
    pub(super) fn check(&self, path: &str) -> Result<(), String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(is_name) {
            return Err(format!("{path}.name: must be 1 to 64 letters, digits, '.', '_', '-' or '@'"));
        }
        match (&self.token, &self.sha256) {
            (Some(token), None) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(format!("{path}.token: must have visible ASCII characters only"));
            }
            (Some(_), None) => {}
            (None, Some(digest)) if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) => {}
            (None, Some(_)) => return Err(format!("{path}.sha256: must be 64 hexadecimal digits")),
            (Some(_), Some(_)) | (None, None) => return Err(format!("{path}: give either 'token' or 'sha256'")),
        }
        check_limits(path, &self.limits)
    }
}

impl HttpJwt {
    pub(super) fn check(&self, path: &str, resource: Option<&str>) -> Result<(), String> {
        for (key, value) in [("issuer", &self.issuer), ("jwks", &self.jwks)] {
            if value.is_empty() {
                return Err(format!("{path}.{key}: is missing"));
            }
        }
        let is_loopback = |address: &str| {
            let authority = address.split(['/', '?', '#']).next().unwrap_or_default();
            // What stands before an `@` is no host.
            let host = authority.split(':').next().unwrap_or_default();
            !authority.contains('@') && matches!(host, "127.0.0.1" | "localhost")
        };
        if self.jwks.strip_prefix("http://").is_some_and(|address| !is_loopback(address)) {
            return Err(format!("{path}.jwks: keys must be read with TLS: https://"));
        }
        if resource.is_none() {
            return Err(format!("{path}: needs 'http.resource', the address of this server as clients know it"));
        }
        check_limits(path, &self.limits)
    }
}

fn check_limits(path: &str, limits: &Map<String, Value>) -> Result<(), String> {
    let lowered = vm::lowered(&Policy::default(), limits.clone());
    lowered.map(drop).map_err(|problem| format!("{path}.{problem}"))
}
