//! Access control: the checks of `Host`, `Origin` and token that every request must pass.

use super::error::HttpError;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use codecall_config::HttpServerConfig;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// Names of the local machine.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The checks of a server.
pub struct Guard {
    /// Digest of the token. Digests have one length, so the time of a comparison does not reveal the token's length.
    token: Option<[u8; 32]>,
    /// Allowed hosts; empty: all.
    hosts: Vec<String>,
    /// Allowed origins; empty: none.
    origins: Vec<String>,
}

impl Guard {
    /// Creates the guard of a server at `address`.
    pub fn new(config: &HttpServerConfig, address: SocketAddr) -> Self {
        let hosts = match config.allowed_hosts.as_slice() {
            // DNS rebinding: a web page whose host name resolves to this machine sends that name.
            [] if address.ip().is_loopback() => LOOPBACK_HOSTS.map(str::to_owned).to_vec(),
            hosts => hosts.iter().map(|host| host.to_lowercase()).collect(),
        };
        let origins = config.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_lowercase()).collect();
        Self { token: config.token.as_deref().map(digest), hosts, origins }
    }

    /// Returns why a request is refused; `None` if it is allowed.
    fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<HttpError> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if !self.hosts.is_empty() {
            let host = text(HOST).and_then(|host| host.parse::<Authority>().ok());
            let host = host.as_ref().map(|host| host.host().to_lowercase());
            if !host.is_some_and(|host| self.hosts.contains(&host)) {
                return Some(HttpError::HostNotAllowed);
            }
        }
        if headers.contains_key(ORIGIN) && !text(ORIGIN).is_some_and(|origin| self.allows_origin(origin)) {
            return Some(HttpError::OriginNotAllowed);
        }
        if let Some(token) = &self.token
            && !super::OPEN_PATHS.contains(&path)
            && *method != Method::OPTIONS
        {
            let credentials = text(AUTHORIZATION).and_then(|value| value.split_once(' '));
            let bearer = credentials.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            if !bearer.is_some_and(|(_, bearer)| bool::from(digest(bearer.trim()).ct_eq(token))) {
                return Some(HttpError::Unauthorized);
            }
        }
        None
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_lowercase();
        self.origins.iter().any(|allowed| allowed == "*" || *allowed == origin)
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
            .expose_headers([axum::http::HeaderName::from_static("mcp-session-id")]);
        Some(layer)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Middleware: refuses requests that do not pass the checks.
pub async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.check(request.method(), request.uri().path(), request.headers()) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}
