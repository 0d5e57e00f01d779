//! `fetch` of script tools: HTTP requests to the hosts that the manifest of a tool names, and to nothing else.
//!
//! Names are resolved here, and only addresses that pass are connected to. So a name that resolves to
//! something else a moment later changes nothing. Redirects are followed here, each under the same rules. Proxies of
//! the
//! environment are not used: they would resolve names themselves.

mod recorded;
mod request;
mod response;

use crate::{BoxFuture, Upstream, UpstreamCall};
use codecall_base::address::{Reach, reach};
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use codecall_config::{FetchConfig, HostRule};
use recorded::Recorded;
pub use recorded::RecordedResponse;
use request::{Redirect, Request};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::LOCATION;
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::error::Error as _;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::{Host, Url};

/// The name of the calls.
pub const NAME: &str = "fetch";
/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an address is printed in messages, in bytes.
const SHOWN_BYTES: usize = 200;
/// How many rules messages name.
const SHOWN_RULES: usize = 8;

/// Resolves the name of a host to its addresses.
pub type Lookup = dyn Fn(String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> + Send + Sync;

/// Makes the requests of all runs of a process.
#[derive(Clone)]
pub struct Fetcher(Arc<Shared>);

struct Shared {
    config: FetchConfig,
    lookup: Arc<Lookup>,
    /// The responses, if no request is sent.
    recorded: Option<Recorded>,
    /// For names that have public addresses.
    public: OnceLock<Option<reqwest::Client>>,
    /// For names that may have private ones.
    private: OnceLock<Option<reqwest::Client>>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fetcher").field(&self.0.config).finish()
    }
}

impl Fetcher {
    /// Creates it; connections are made when they are needed.
    #[must_use]
    pub fn new(config: FetchConfig) -> Self {
        Self::with_lookup(config, Arc::new(|name| Box::pin(system_lookup(name))))
    }

    /// Does the same with another resolver of names, for tests. What it gives is checked as the system's answers are.
    #[must_use]
    pub fn with_lookup(config: FetchConfig, lookup: Arc<Lookup>) -> Self {
        Self(Arc::new(Shared { config, lookup, recorded: None, public: OnceLock::new(), private: OnceLock::new() }))
    }

    /// Creates one that sends no request: allowed ones get these responses, and fail if there is none for them.
    #[must_use]
    pub fn recorded(config: FetchConfig, responses: Vec<RecordedResponse>) -> Self {
        let lookup: Arc<Lookup> = Arc::new(|_| Box::pin(std::future::ready(Ok(Vec::new()))));
        let recorded = Some(Recorded::new(responses));
        Self(Arc::new(Shared { config, lookup, recorded, public: OnceLock::new(), private: OnceLock::new() }))
    }

    /// Returns `fetch` of one run, which may reach what `rules` say.
    #[must_use]
    pub fn for_run(&self, rules: Arc<[HostRule]>) -> Arc<dyn Upstream> {
        Arc::new(RunFetch { fetcher: self.clone(), rules, requests: AtomicU32::new(0) })
    }

    /// Returns the client for names, or for those that may have private addresses.
    fn client(&self, may_be_private: bool) -> Result<&reqwest::Client, ToolError> {
        let slot = if may_be_private { &self.0.private } else { &self.0.public };
        let build = || {
            // If the process has installed a provider already, that one is used.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let resolver = Guarded { lookup: Arc::clone(&self.0.lookup), may_be_private };
            reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .dns_resolver(Arc::new(resolver))
                .build()
                .ok()
        };
        let failed = || ToolError::new(ErrorCode::FetchFailed, "the HTTP client cannot be created");
        slot.get_or_init(build).as_ref().ok_or_else(failed)
    }
}

async fn system_lookup(name: String) -> std::io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

/// A name has no address that may be connected to.
#[derive(Debug, thiserror::Error)]
#[error("the name resolves to an address that fetch must not reach")]
struct RefusedAddress;

/// Resolves names to addresses that may be connected to.
struct Guarded {
    lookup: Arc<Lookup>,
    may_be_private: bool,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (answer, may_be_private) = ((self.lookup)(name.as_str().to_owned()), self.may_be_private);
        Box::pin(async move {
            let found = answer.await?;
            let is_allowed = |address: &IpAddr| match reach(*address) {
                Reach::Public => true,
                Reach::Private => may_be_private,
                Reach::Special => false,
            };
            let allowed: Vec<SocketAddr> =
                found.iter().copied().filter(is_allowed).map(|address| (address, 0).into()).collect();
            if allowed.is_empty() && !found.is_empty() {
                return Err(RefusedAddress.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// `fetch` of one run.
struct RunFetch {
    fetcher: Fetcher,
    rules: Arc<[HostRule]>,
    /// How many requests the run has made.
    requests: AtomicU32,
}

impl Upstream for RunFetch {
    fn app(&self) -> &str {
        ""
    }

    fn source(&self) -> &'static str {
        "fetch"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        vec![Arc::new(definition())]
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let limit = self.fetcher.0.config.timeout;
            match tokio::time::timeout(limit, self.fetch(call)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let message = format!("fetch took longer than {} ms ('fetch.timeoutMs')", limit.as_millis());
                    Err(ToolError::new(ErrorCode::ToolTimeout, message))
                }
            }
        })
    }
}

/// Returns the definition of `fetch`, as hooks and records see it.
#[must_use]
pub fn definition() -> ToolDefinition {
    ToolDefinition {
        name: NAME.into(),
        description: "An HTTP request of a script tool".into(),
        input_schema: json!({"type": "object"}),
        source: "fetch",
        ..ToolDefinition::default()
    }
}

impl RunFetch {
    async fn fetch(&self, call: UpstreamCall) -> Result<ToolResult, ToolError> {
        let config = &self.fetcher.0.config;
        if !config.enabled {
            return Err(not_allowed("fetch is switched off ('fetch.enabled')"));
        }
        let mut request = Request::parse(call.input, config)?;
        let (mut redirects, first) = (0, request.url.clone());
        loop {
            self.count()?;
            let rule = self.rule(&request)?;
            if let Some(recorded) = &self.fetcher.0.recorded {
                return recorded.answer(&request);
            }
            let client = self.client(rule, &request.url)?;
            let response = request.send(client).await.map_err(|error| failure(&error, &request.url))?;
            let Some(next) = redirect(&response, &request)? else {
                let is_head = request.method == Method::HEAD;
                return response::read(response, &request.url, request.url != first, is_head, config).await;
            };
            redirects += 1;
            if redirects > config.max_redirects {
                let message = format!("it was redirected more than {} times", config.max_redirects);
                return Err(ToolError::new(ErrorCode::FetchLimit, message));
            }
            request.follow(next, response.status());
        }
    }

    fn count(&self) -> Result<(), ToolError> {
        let most = self.fetcher.0.config.max_requests;
        if self.requests.fetch_add(1, Ordering::Relaxed) < most {
            return Ok(());
        }
        let message = format!("the run has made {most} requests, which is as many as it may ('fetch.maxRequests')");
        Err(ToolError::new(ErrorCode::FetchLimit, message))
    }

    /// Returns the rule that allows a request.
    fn rule(&self, request: &Request) -> Result<&HostRule, ToolError> {
        let method = request.method.as_str();
        if let Some(rule) = self.rules.iter().find(|rule| rule.allows(&request.url, method)) {
            return Ok(rule);
        }
        let shown = without_query(&request.url);
        let of_origin: Vec<&HostRule> = self.rules.iter().filter(|rule| rule.matches_origin(&request.url)).collect();
        Err(not_allowed(&match of_origin.as_slice() {
            [] => {
                let mut names: Vec<String> = self.rules.iter().take(SHOWN_RULES).map(ToString::to_string).collect();
                if self.rules.len() > SHOWN_RULES {
                    names.push("…".into());
                }
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("{shown} is not among the hosts of this tool ({known}); name it under 'hosts' in its manifest")
            }
            rules if !rules.iter().any(|rule| rule.methods().iter().any(|allowed| allowed == method)) => {
                format!("{method} {shown} is not allowed; name the method under 'hosts' in the manifest of the tool")
            }
            _ => format!("the path of {shown} is not one that 'hosts' in the manifest of the tool allows"),
        }))
    }

    /// Returns the client for an address. If the address names no name but an address of the network, it is checked
    /// here, as nothing is resolved.
    fn client(&self, rule: &HostRule, url: &Url) -> Result<&reqwest::Client, ToolError> {
        let may_be_private = rule.is_private() && self.fetcher.0.config.allow_private;
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if let Some(address) = literal {
            let is_named = rule.address() == Some(address) && self.fetcher.0.config.allow_private;
            let is_allowed = match reach(address) {
                Reach::Public => true,
                Reach::Private => is_named || may_be_private,
                Reach::Special => is_named,
            };
            if !is_allowed {
                return Err(refused_address(url));
            }
        }
        self.fetcher.client(may_be_private)
    }
}

/// Where a response redirects to, if it is to be followed.
fn redirect(response: &reqwest::Response, request: &Request) -> Result<Option<Url>, ToolError> {
    let status = response.status();
    let is_redirect = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    if !is_redirect || request.redirect == Redirect::Manual {
        return Ok(None);
    }
    if request.redirect == Redirect::Error {
        return Err(ToolError::new(ErrorCode::FetchFailed, "unexpected redirect"));
    }
    let Some(location) = response.headers().get(LOCATION) else { return Ok(None) };
    let next = location.to_str().ok().and_then(|location| request.url.join(location).ok());
    let Some(mut next) = next else {
        return Err(ToolError::new(ErrorCode::FetchFailed, "it was redirected to something that is no address"));
    };
    if !matches!(next.scheme(), "http" | "https") || !next.username().is_empty() || next.password().is_some() {
        return Err(not_allowed("it was redirected to an address that is not a plain one of HTTP"));
    }
    if request.url.scheme() == "https" && next.scheme() == "http" {
        return Err(not_allowed("it was redirected to an address that is not encrypted"));
    }
    if next.fragment().is_none() {
        next.set_fragment(request.url.fragment());
    }
    Ok(Some(next))
}

fn not_allowed(message: &str) -> ToolError {
    ToolError::new(ErrorCode::FetchNotAllowed, message)
}

fn refused_address(url: &Url) -> ToolError {
    let message = format!(
        "{} has a private or special address. If the tool is meant to reach it, say 'private = true' at this host in its manifest, or name the address",
        without_query(url)
    );
    ToolError::new(ErrorCode::FetchAddressRefused, message)
}

/// An address without its query, which often has secrets, and not too long.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    truncate(url.as_str(), SHOWN_BYTES).to_owned()
}

/// Converts an error of the client. Its own text contains the address.
fn failure(error: &reqwest::Error, url: &Url) -> ToolError {
    let mut source = error.source();
    let mut last = None;
    while let Some(error) = source {
        if error.downcast_ref::<RefusedAddress>().is_some() {
            return refused_address(url);
        }
        last = Some(error.to_string());
        source = error.source();
    }
    let reason = last.map(|reason| format!(" ({})", truncate(&reason, SHOWN_BYTES))).unwrap_or_default();
    let what = if error.is_timeout() {
        "did not accept the connection in time".to_owned()
    } else if error.is_connect() {
        format!("cannot be reached{reason}")
    } else {
        format!("ended the connection before there was a response{reason}")
    };
    ToolError::new(ErrorCode::FetchFailed, format!("{} {what}", url.host_str().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
