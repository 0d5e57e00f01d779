//! `openapi`: HTTP services whose OpenAPI descriptions become tools.

use super::check::check;
use super::duration::Milliseconds;
use super::expand::{Environment, expand};
use super::mcp_servers::{check_app, check_url};
use super::read::read;
use super::secrets::{FoundSecrets, Secret};
use super::server_entry::{EntryReader, ServerEntry, restrictions};
use super::tools::Quarantine;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;
use url::Url;

/// One HTTP service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct OpenApiConfig {
    /// The description (OpenAPI 3.0 or 3.1, JSON or YAML): a file, or an address that begins with `https://` or
    /// `http://`. It is read at the start, and again when it has changed.
    #[schemars(extend("x-secret" = "address", "x-default" = "required"))]
    pub spec: Secret,
    /// `false`: the service is not used.
    pub enabled: bool,
    /// The address to which the paths of operations are appended. With `auth` or `headers` it is required if the
    /// description comes from another server than the one that it names.
    #[schemars(extend("x-secret" = "address", "x-default" = "first server of the description"))]
    pub base_url: Option<Secret>,
    /// Values of variables in the addresses of servers, by name.
    #[schemars(extend("x-default" = "those of the description"))]
    pub variables: BTreeMap<String, String>,
    /// Secrets of security schemes, by the names that the description gives them: a key, a token, or
    /// `user:password` for HTTP basic.
    #[schemars(extend("x-secret" = "credentials"))]
    pub auth: BTreeMap<String, Secret>,
    /// Clients of security schemes, by the names that the description gives them. CodeCall gets tokens with the grant
    /// `client_credentials` (RFC 6749, section 4.4) and renews them.
    pub oauth: BTreeMap<String, OAuthClientConfig>,
    /// Headers of every request.
    #[schemars(extend("x-secret" = "headers"))]
    pub headers: BTreeMap<String, Secret>,
    /// Only operations that match all lists are tools.
    pub include: OperationFilter,
    /// Operations that match any list are no tools.
    pub exclude: OperationFilter,
    /// The tools of it that wait for approval.
    #[schemars(extend("x-default" = "`quarantine` of all"))]
    pub quarantine: Option<Quarantine>,
    /// Whether operations with other methods than `GET` and `HEAD` are tools.
    pub allow_writes: bool,
    /// Whether deprecated operations are tools.
    pub include_deprecated: bool,
    /// Hosts (`localhost`, `10.0.0.5:8080`) that may have private, loopback or link-local addresses. All other hosts
    /// must have public ones.
    pub allow_private: Vec<String>,
    /// How long a call may take. `vm.toolTimeoutMs` applies too.
    #[serde(rename = "timeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout: Duration,
    /// How long it may take to read the description.
    #[serde(rename = "startTimeoutMs", with = "Milliseconds")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub start_timeout: Duration,
    /// How often an address is asked whether the description has changed; `0`: only on `SIGHUP`. Files are looked at every
    /// second.
    #[serde(rename = "refreshMs", with = "Milliseconds")]
    pub refresh: Duration,
    /// Longest response in bytes (`MESSAGE_TOO_LARGE`).
    #[schemars(range(min = 1024, max = 1 << 30))]
    pub max_response_bytes: usize,
}

impl Default for OpenApiConfig {
    fn default() -> Self {
        Self {
            spec: Secret::default(),
            enabled: true,
            base_url: None,
            variables: BTreeMap::new(),
            auth: BTreeMap::new(),
            oauth: BTreeMap::new(),
            headers: BTreeMap::new(),
            include: OperationFilter::default(),
            exclude: OperationFilter::default(),
            quarantine: None,
            allow_writes: false,
            include_deprecated: false,
            allow_private: Vec::new(),
            timeout: Duration::from_secs(30),
            start_timeout: Duration::from_secs(30),
            refresh: Duration::from_secs(600),
            max_response_bytes: 16 * 1024 * 1024,
        }
    }
}

/// A client that gets tokens for itself.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct OAuthClientConfig {
    /// The token endpoint: an address that begins with `https://`, or with `http://` if `allowPrivate` names its host.
    #[schemars(extend("x-default" = "required"))]
    pub token_url: String,
    /// The id of the client.
    #[schemars(extend("x-default" = "required"))]
    pub client_id: String,
    /// The secret of the client.
    #[schemars(extend("x-default" = "required"))]
    pub client_secret: Option<Secret>,
    /// The scopes to ask for.
    pub scopes: Vec<String>,
    /// The audience to ask for, which some servers require.
    pub audience: Option<String>,
    /// How the client authenticates at the token endpoint.
    pub client_auth: ClientAuthMethod,
}

/// How a client authenticates (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthMethod {
    /// By the header `Authorization: Basic …`.
    #[default]
    Header,
    /// In the body of the request.
    Body,
}

/// Whether a list of hosts names that of an address, with or without its port. Case is ignored.
#[must_use]
pub fn names_host(named: &[String], url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
    named.iter().any(|named| named.eq_ignore_ascii_case(host) || named.eq_ignore_ascii_case(&with_port))
}

/// Selects operations of a description. In each text `*` stands for any text, and case is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct OperationFilter {
    /// Patterns of tags.
    pub tags: Vec<String>,
    /// Methods, such as `get`.
    pub methods: Vec<String>,
    /// Patterns of paths, such as `/users/*`.
    pub paths: Vec<String>,
    /// Patterns of operation ids.
    pub operation_ids: Vec<String>,
}

impl OAuthClientConfig {
    fn check(&self, path: &str, named: &[String]) -> Result<(), String> {
        if self.client_id.is_empty() || self.client_secret.is_none() {
            return Err(format!("{path}: 'clientId' and 'clientSecret' are required"));
        }
        check_url(&format!("{path}.tokenUrl"), &self.token_url)?;
        let url = Url::parse(&self.token_url).map_err(|_| format!("{path}.tokenUrl: is not an address"))?;
        if url.scheme() != "https" && !names_host(named, &url) {
            return Err(format!("{path}.tokenUrl: must begin with https://, or 'allowPrivate' must name its host"));
        }
        if self.scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
            return Err(format!("{path}.scopes: a scope has no spaces"));
        }
        Ok(())
    }
}

static SCHEMA: LazyLock<Value> = LazyLock::new(super::schema::of_type::<OpenApiConfig>);

/// Keys that restrict a service.
const RESTRICTING: [&str; 6] = ["enabled", "include", "exclude", "quarantine", "allowWrites", "allowPrivate"];

impl OpenApiConfig {
    /// Reads the entry of `app`.
    ///
    /// # Errors
    /// Its name, or a key that restricts the service, is wrong.
    pub(super) fn read(
        app: &str,
        entry: Value,
        environment: Environment<'_>,
        found: &RefCell<FoundSecrets>,
        warnings: &mut Vec<String>,
    ) -> Result<ServerEntry<Self>, String> {
        let path = format!("openapi.{app}");
        check_app(&path, app)?;
        let restricted: Self = read(restrictions(&entry, &SCHEMA, &RESTRICTING, &path, environment)?, &path)?;
        restricted.check_hosts(&path)?;
        let reader = EntryReader { path: &path, schema: &SCHEMA, environment, found };
        let parse = |entry| read::<Self>(entry, &path).map(drop);
        let usable = |entry| Self::usable(entry, &path, environment, found);
        Ok(reader.read(entry, !restricted.enabled, warnings, parse, usable))
    }

    /// Reads an entry that is not disabled.
    fn usable(
        mut entry: Value,
        path: &str,
        environment: Environment<'_>,
        found: &RefCell<FoundSecrets>,
    ) -> Result<Self, String> {
        expand(&mut entry, path, environment)?;
        check(&mut entry, &SCHEMA, path, &mut found.borrow_mut())?;
        let config: Self = read(entry, path)?;
        config.check(path)?;
        Ok(config)
    }

    fn check(&self, path: &str) -> Result<(), String> {
        if self.spec.is_empty() {
            return Err(format!("{path}: 'spec' is missing"));
        }
        if self.spec.contains("://") {
            check_url(&format!("{path}.spec"), &self.spec)?;
        }
        if let Some(base) = &self.base_url {
            check_url(&format!("{path}.baseUrl"), base)?;
        }
        for (scheme, client) in &self.oauth {
            let path = format!("{path}.oauth.{scheme}");
            client.check(&path, &self.allow_private)?;
            if self.auth.contains_key(scheme) {
                return Err(format!("{path}: 'auth' has a secret of this scheme too; keep one of them"));
            }
        }
        Ok(())
    }

    fn check_hosts(&self, path: &str) -> Result<(), String> {
        if self.allow_private.iter().any(|host| host.is_empty() || host.contains(['/', '*', ' '])) {
            return Err(format!("{path}.allowPrivate: write a host, such as 'localhost' or '10.0.0.5:8080'"));
        }
        Ok(())
    }

    /// Whether the description is at an address, and not in a file.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.spec.contains("://")
    }
}
