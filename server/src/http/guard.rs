//! Who may speak to the server: what every request has to show, whatever it asks for.

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

/// Names by which a machine calls itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// What requests have to show.
pub struct Guard {
    /// Digest of the token; digests are of one length, so comparing tells nothing of the token's.
    token: Option<[u8; 32]>,
    /// Empty: any.
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// The guard of a server at `address`.
    pub fn new(config: &HttpServerConfig, address: SocketAddr) -> Self {
        let hosts = match config.allowed_hosts.as_slice() {
            // Pages whose name is made to mean this machine send their own name (DNS rebinding).
            [] if address.ip().is_loopback() => LOOPBACK.map(str::to_owned).to_vec(),
            hosts => hosts.iter().map(|host| host.to_lowercase()).collect(),
        };
        let origins = config.allowed_origins.iter().map(|origin| origin.trim_end_matches('/').to_lowercase()).collect();
        Self { token: config.token.as_deref().map(digest), hosts, origins }
    }

    /// Why a request is not answered.
    fn refusal(&self, method: &Method, path: &str, headers: &HeaderMap) -> Option<HttpError> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if !self.hosts.is_empty() {
            let host = text(HOST).and_then(|host| host.parse::<Authority>().ok());
            let host = host.as_ref().map(|host| host.host().to_lowercase());
            if !host.is_some_and(|host| self.hosts.contains(&host)) {
                return Some(HttpError::HostNotAllowed);
            }
        }
        if headers.contains_key(ORIGIN) && !text(ORIGIN).is_some_and(|origin| self.knows(origin)) {
            return Some(HttpError::OriginNotAllowed);
        }
        if let Some(token) = &self.token
            && path != super::HEALTH
            && *method != Method::OPTIONS
        {
            let given = text(AUTHORIZATION).and_then(|value| value.split_once(' '));
            let given =
                given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
            if !given.is_some_and(|given| bool::from(digest(given).ct_eq(token))) {
                return Some(HttpError::Unauthorized);
            }
        }
        None
    }

    fn knows(&self, origin: &str) -> bool {
        let origin = origin.to_lowercase();
        self.origins.iter().any(|known| known == "*" || *known == origin)
    }

    /// What tells browsers that pages of the known origins may read the answers; absent: none may.
    pub fn cors(self: &Arc<Self>) -> Option<CorsLayer> {
        if self.origins.is_empty() {
            return None;
        }
        let guard = Arc::clone(self);
        let is_known = move |origin: &HeaderValue, _: &axum::http::request::Parts| {
            origin.to_str().is_ok_and(|origin| guard.knows(origin))
        };
        let layer = CorsLayer::new()
            .allow_origin(AllowOrigin::predicate(is_known))
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            .allow_headers(tower_http::cors::AllowHeaders::mirror_request())
            .expose_headers([axum::http::HeaderName::from_static("mcp-session-id")]);
        Some(layer)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Answer what may be answered.
pub async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.refusal(request.method(), request.uri().path(), request.headers()) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}
