//! The HTTP client: connects to public addresses only, except for hosts that the configuration names, and follows
//! redirects under the same rule.
//!
//! Names are resolved here, and only addresses that pass are connected to. So a name that resolves to
//! something else a moment later changes nothing. Proxies of the environment are not used: they would resolve names
//! themselves.

use codecall_base::address::is_public;
use codecall_base::telemetry;
use codecall_config::names_host;
use codecall_openapi::{Credential, Request};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{
    CONTENT_TYPE, COOKIE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION,
};
use reqwest::{Method, Response, StatusCode};
use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 4;

/// A client that connects to public addresses.
pub struct Client {
    /// For hosts that are not named.
    public: reqwest::Client,
    /// For hosts that may have any address.
    any: reqwest::Client,
    /// Hosts that may have any address, with or without a port.
    named: Vec<String>,
}

/// The validators with which a request asks whether a response has changed (RFC 9110, section 8.8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    etag: Option<String>,
    last_modified: Option<String>,
}

/// The text at an address.
#[derive(Debug, Default)]
pub struct Answer {
    pub bytes: Vec<u8>,
    /// Its `Content-Type`; empty if there is none.
    pub media_type: String,
    pub validators: Validators,
}

/// Why there is no response.
#[derive(Debug)]
pub enum Refusal {
    /// There is no connection to the server, so nothing was sent.
    Unconnected(String),
    /// The server cannot be reached.
    Unreachable(String),
    /// The request must not be sent.
    NotAllowed(String),
}

/// A host has no public address.
#[derive(Debug, thiserror::Error)]
#[error("its address is private; a host with such an address must be named in 'allowPrivate'")]
struct PrivateAddress;

/// Resolves names to public addresses.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = addresses.collect();
            let public: Vec<SocketAddr> = addresses.iter().copied().filter(|at| is_public(at.ip())).collect();
            if public.is_empty() && !addresses.is_empty() {
                return Err(PrivateAddress.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

impl Client {
    /// Creates a client. `named` are hosts that may have any address.
    pub fn new(named: &[String]) -> Result<Self, String> {
        // If the process has installed a provider already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            reqwest::Client::builder()
                .user_agent(concat!("codecall/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
        };
        let build = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|_| "the HTTP client cannot be created".to_owned())
        };
        Ok(Self {
            public: build(builder().dns_resolver(Arc::new(PublicOnly)))?,
            any: build(builder())?,
            named: named.to_vec(),
        })
    }

    /// Gets the text at an address.
    pub async fn get(&self, url: Url, max_bytes: usize) -> Result<Vec<u8>, String> {
        let answer = self.get_if_changed(url, &Validators::default(), max_bytes).await?;
        Ok(answer.unwrap_or_default().bytes)
    }

    /// Gets the text at an address. `None`: these `validators` say that it has not changed.
    pub async fn get_if_changed(
        &self,
        url: Url,
        validators: &Validators,
        max_bytes: usize,
    ) -> Result<Option<Answer>, String> {
        let own = [(IF_NONE_MATCH, &validators.etag), (IF_MODIFIED_SINCE, &validators.last_modified)];
        let headers = own.into_iter().filter_map(|(name, value)| Some((name.to_string(), value.clone()?))).collect();
        let request = Request { method: "GET", url, headers, body: None, credentials: Vec::new() };
        let response = self.send(request, &HeaderMap::new()).await.map_err(|refusal| match refusal {
            Refusal::Unconnected(reason) | Refusal::Unreachable(reason) => format!("it cannot be reached: {reason}"),
            Refusal::NotAllowed(reason) => reason,
        })?;
        if response.status() == StatusCode::NOT_MODIFIED && *validators != Validators::default() {
            return Ok(None);
        }
        if !response.status().is_success() {
            return Err(format!("its server answers with status {}", response.status().as_u16()));
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let validators = Validators { etag: header(ETAG), last_modified: header(LAST_MODIFIED) };
        let media_type = super::response::media_type(response.headers());
        let bytes = super::response::bytes(response, max_bytes).await.map_err(|error| error.to_string())?;
        Ok(Some(Answer { bytes, media_type, validators }))
    }

    /// Sends a request, with `headers` of the configuration, and follows its redirects. Another server gets neither
    /// these headers nor credentials.
    pub async fn send(&self, request: Request, headers: &HeaderMap) -> Result<Response, Refusal> {
        let Request { method, mut url, headers: given, body, credentials } = request;
        let not_allowed = |reason: &str| Refusal::NotAllowed(reason.to_owned());
        let mut method = Method::from_bytes(method.as_bytes()).map_err(|_| not_allowed("the method is not valid"))?;
        let origin = url.origin();
        let mut body = body;
        let mut common = HeaderMap::new();
        for (name, value) in given {
            let name = HeaderName::try_from(name).map_err(|_| not_allowed("the name of a header is not valid"))?;
            let value = HeaderValue::try_from(value).map_err(|_| not_allowed("the value of a header is not valid"))?;
            common.append(name, value);
        }
        trace_headers(&mut common);
        for _ in 0..=MAX_REDIRECTS {
            let is_same = url.origin() == origin;
            let mut sent = if is_same { common.clone() } else { accept_only(&common) };
            let mut address = url.clone();
            if is_same {
                for (name, value) in headers {
                    sent.insert(name.clone(), value.clone());
                }
                add_credentials(&credentials, &mut sent, &mut address)?;
            }
            if let Some((media_type, _)) = &body {
                let value =
                    HeaderValue::try_from(media_type).map_err(|_| not_allowed("the media type is not valid"))?;
                sent.insert(CONTENT_TYPE, value);
            }
            let mut request = self.client_for(&address)?.request(method.clone(), address).headers(sent);
            if let Some((_, bytes)) = &body {
                request = request.body(bytes.clone());
            } else if !matches!(method, Method::GET | Method::HEAD) {
                // Servers expect a length.
                request = request.body(Vec::new());
            }
            let response = request.send().await.map_err(refusal)?;
            let status = response.status();
            if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
                return Ok(response);
            }
            let Some(location) = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()) else {
                return Ok(response);
            };
            let next = url.join(location).map_err(|_| not_allowed("it redirects to something that is no address"))?;
            if next.scheme() != "https" && next.scheme() != url.scheme() {
                return Err(not_allowed("it redirects to an address that is not encrypted"));
            }
            let is_safe = matches!(method, Method::GET | Method::HEAD);
            match status {
                StatusCode::SEE_OTHER if !is_safe => {
                    method = Method::GET;
                    body = None;
                }
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
                    if !is_safe && next.origin() == origin => {}
                _ if is_safe => {}
                _ => return Err(not_allowed("it redirects a request that must not be sent to another address")),
            }
            url = next;
        }
        Err(Refusal::NotAllowed(format!("it redirects more than {MAX_REDIRECTS} times")))
    }

    /// Returns the client for an address.
    fn client_for(&self, url: &Url) -> Result<&reqwest::Client, Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::NotAllowed("its address is not one of HTTP".into()));
        }
        if names_host(&self.named, url) {
            return Ok(&self.any);
        }
        let literal = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        match literal {
            Some(address) if !is_public(address) => Err(Refusal::NotAllowed(PrivateAddress.to_string())),
            Some(_) | None => Ok(&self.public),
        }
    }
}

fn accept_only(headers: &HeaderMap) -> HeaderMap {
    let accept = headers.get(reqwest::header::ACCEPT).cloned();
    accept.into_iter().map(|value| (reqwest::header::ACCEPT, value)).collect()
}

fn add_credentials(credentials: &[Credential], headers: &mut HeaderMap, url: &mut Url) -> Result<(), Refusal> {
    let invalid = || Refusal::NotAllowed("a secret of 'auth' cannot be sent in a header".into());
    let sensitive = |text: String| {
        let mut value = HeaderValue::try_from(text).map_err(|_| invalid())?;
        value.set_sensitive(true);
        Ok::<_, Refusal>(value)
    };
    for credential in credentials {
        match credential {
            Credential::Header(name, secret) => {
                let name = HeaderName::try_from(name).map_err(|_| invalid())?;
                headers.insert(name, sensitive(secret.clone())?);
            }
            Credential::Query(name, secret) => {
                let pair = format!("{name}={secret}");
                let query = url.query().map_or_else(|| pair.clone(), |query| format!("{query}&{pair}"));
                url.set_query(Some(&query));
            }
            Credential::Cookie(name, secret) => {
                let before = headers.get(COOKIE).and_then(|value| value.to_str().ok()).map(|text| format!("{text}; "));
                let cookie = format!("{}{name}={secret}", before.unwrap_or_default());
                headers.insert(COOKIE, sensitive(cookie)?);
            }
        }
    }
    Ok(())
}

/// Converts an error of the client. The address may contain a secret, so it is not in the message.
fn refusal(error: reqwest::Error) -> Refusal {
    let mut source = error.source();
    let mut last = None;
    while let Some(error) = source {
        if error.downcast_ref::<PrivateAddress>().is_some() {
            return Refusal::NotAllowed(PrivateAddress.to_string());
        }
        last = Some(error.to_string());
        source = error.source();
    }
    let what = if error.is_timeout() {
        "it did not accept the connection in time".to_owned()
    } else if error.is_connect() {
        let reason = last.as_deref().map(|reason| codecall_base::text::truncate(reason, 200));
        format!("there is no connection{}", reason.map(|reason| format!(" ({reason})")).unwrap_or_default())
    } else {
        "the connection ended before there was a response".to_owned()
    };
    if error.is_connect() { Refusal::Unconnected(what) } else { Refusal::Unreachable(what) }
}

/// Adds the trace context of the current task.
fn trace_headers(headers: &mut HeaderMap) {
    let Some(trace) = telemetry::current() else { return };
    let members = [("traceparent", Some(trace.parent())), ("tracestate", trace.state.as_deref().map(str::to_owned))];
    for (name, value) in members {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
}
