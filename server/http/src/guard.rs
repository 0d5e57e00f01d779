//! Access control: the checks of `Host`, `Origin` and token that every request must pass.

use super::clients::{Clients, Identity, METADATA_PATH};
use super::connections::seats::{Client, Seat};
use super::error::HttpError;
use super::page;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST, ORIGIN, RETRY_AFTER};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use codecall_config::HttpServerConfig;
use codecall_hub::LiveHub;
use std::net::SocketAddr;
use std::sync::Arc;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// Names of the local machine.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The key of whoever sends the token of the server itself.
const OWN_KEY: [u8; 32] = [0; 32];

/// The checks of a server.
pub struct Guard {
    clients: Clients,
    /// Allowed hosts; empty: all.
    hosts: Vec<String>,
    /// Allowed origins; empty: none.
    origins: Vec<String>,
    /// Whether there is a page, which checks logins itself.
    has_page: bool,
}

impl Guard {
    /// Creates the guard of a server at `address`.
    pub fn new(config: &HttpServerConfig, address: SocketAddr, clients: Clients) -> Self {
        let hosts = match config.allowed_hosts.as_slice() {
            // DNS rebinding: a web page whose host name resolves to this machine sends that name.
            [] if address.ip().is_loopback() => LOOPBACK_HOSTS.map(str::to_owned).to_vec(),
            hosts => hosts.iter().map(|host| host.to_lowercase()).collect(),
        };
        let origins = config.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_lowercase()).collect();
        Self { clients, hosts, origins, has_page: false }
    }

    /// Leaves the paths of the page to the page.
    pub fn with_page(self, has_page: bool) -> Self {
        Self { has_page, ..self }
    }

    /// Returns the hub of an operator; `None` if the token is not one of an operator.
    pub async fn operator(&self, token: &str, live: &LiveHub) -> Option<LiveHub> {
        match self.clients.identify(Some(token)).await {
            Ok(Identity::Server) => Some(live.clone()),
            Ok(Identity::Client(client)) => client.operated().cloned(),
            Err(_) => None,
        }
    }

    /// Whether a path is one of the page.
    fn is_of_page(&self, path: &str) -> bool {
        self.has_page && page::has_path(path)
    }

    /// Returns why the host of a request is refused; `None` if it is not.
    fn check_host(&self, request: &Request) -> Option<HttpError> {
        let (headers, uri) = (request.headers(), request.uri());
        let named = headers.contains_key(HOST);
        // HTTP/1.0 has requests without a host, such as those of health checks.
        if !named && request.version() == Version::HTTP_10 && uri.authority().is_none() && self.hosts.is_empty() {
            return None;
        }
        let Some(host) = text(headers, HOST).and_then(authority) else { return Some(HttpError::InvalidHost) };
        // A request to a proxy names the host twice: a difference makes one of them wrong.
        let is_same = |target: &Authority| target.as_str().eq_ignore_ascii_case(host.as_str());
        if !uri.authority().is_none_or(is_same) {
            return Some(HttpError::InvalidHost);
        }
        let is_allowed = self.hosts.is_empty() || self.hosts.contains(&host.host().to_lowercase());
        (!is_allowed).then_some(HttpError::HostNotAllowed)
    }

    /// Returns why a request is refused, whoever sends it; `None` if it is not.
    fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<HttpError> {
        let text = |name| text(headers, name);
        let is_allowed = |origin| self.allows_origin(origin) || self.is_own_origin(origin, text(HOST));
        if self.is_of_page(path) {
            return (!page::is_allowed(method, headers)).then_some(HttpError::OriginNotAllowed);
        }
        if headers.contains_key(ORIGIN) && !text(ORIGIN).is_some_and(is_allowed) {
            return Some(HttpError::OriginNotAllowed);
        }
        None
    }

    /// Whether a request needs a token.
    fn is_protected(&self, method: &Method, path: &str) -> bool {
        let is_open = super::OPEN_PATHS.contains(&path) || path.starts_with(METADATA_PATH) || self.is_of_page(path);
        self.clients.is_protected() && !is_open && *method != Method::OPTIONS
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_lowercase();
        self.origins.iter().any(|allowed| allowed == "*" || *allowed == origin)
    }

    /// Whether an origin is that of the server itself, by the name that the request has reached it with. Only names that are
    /// checked count: with DNS rebinding, the page and the server have the same name, too.
    fn is_own_origin(&self, origin: &str, host: Option<&str>) -> bool {
        let Some(host) = host.filter(|_| !self.hosts.is_empty()) else { return false };
        ["http://", "https://"].iter().any(|scheme| {
            origin.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
                && origin.get(scheme.len()..).is_some_and(|rest| rest.eq_ignore_ascii_case(host))
        })
    }

    /// Returns the CORS layer, which lets pages of the allowed origins read responses; `None` if none are allowed.
    pub fn cors(self: &Arc<Self>) -> Option<CorsLayer> {
        if self.origins.is_empty() {
            return None;
        }
        let guard = Arc::clone(self);
        let is_allowed = move |origin: &HeaderValue, _: &axum::http::request::Parts| {
            origin.to_str().is_ok_and(|origin| guard.allows_origin(origin))
        };
        let layer = CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(is_allowed))
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            .allow_headers(tower_http::cors::AllowHeaders::mirror_request())
            .expose_headers([HeaderName::from_static("mcp-session-id")]);
        Some(layer)
    }
}

/// Returns the only value of a header; `None` also if there are several, of which others may read another one.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none()).and_then(|value: &HeaderValue| value.to_str().ok())
}

/// Returns the authority of `Host`, which has no user name (RFC 9110, section 7.2). `None`: it is not valid.
fn authority(host: &str) -> Option<Authority> {
    host.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'))
}

/// Middleware: refuses a request whose host is ambiguous (status 400, RFC 9112, section 3.2) or not one of this server.
pub async fn check_host(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check_host(&request) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Middleware: refuses requests that do not pass the checks. Those of a client go to its own endpoints.
pub async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if let Some(error) = guard.check(request.method(), request.uri().path(), request.headers()) {
        return error.into_response();
    }
    let path = request.uri().path();
    if !guard.is_protected(request.method(), path) {
        // Health checks need no seat, and the page knows who has logged in.
        let is_free = super::OPEN_PATHS.contains(&path) || guard.is_of_page(path);
        return match if is_free { Ok(()) } else { seat(&request, None) } {
            Ok(()) => next.run(request).await,
            Err(full) => full,
        };
    }
    match guard.clients.identify(bearer(request.headers())).await {
        Ok(Identity::Server) => match seat(&request, Some(OWN_KEY)) {
            Ok(()) => next.run(request).await,
            Err(full) => full,
        },
        Ok(Identity::Client(client)) => match seat(&request, Some(client.key())) {
            Ok(()) => client.serve(request).await,
            Err(full) => full,
        },
        Err(refusal) => guard.clients.refuse(&refusal),
    }
}

/// Takes the seat of a request for its sender; `None`: nobody in particular.
///
/// # Errors
/// The response if there is none.
#[expect(clippy::result_large_err, reason = "the response is passed on as it is")]
pub fn seat(request: &Request, client: Client) -> Result<(), Response> {
    match request.extensions().get::<Seat>() {
        Some(seat) if !seat.take(client) => {
            let mut response = HttpError::TooManyConnections.into_response();
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            Err(response)
        }
        Some(_) | None => Ok(()),
    }
}
