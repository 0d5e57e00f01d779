//! The clients of the server: who has sent a request, and the endpoints for each of them.
//!
//! A client has endpoints of its own, with a hub, sessions and handles of its own. Nothing of it can be used with the
//! token of another one. Shared parts are below them: connections to MCP servers, threads, permits.

use super::error::HttpError;
use super::jwt::{Issuer, Refused, Subject};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse as _, Response};
use codecall_base::error::Error;
use codecall_base::hidden::visible;
use codecall_base::text::truncate;
use codecall_config::{HttpJwt, HttpServerConfig, RequestRate};
use codecall_hub::hub::{LiveHub, Principal};
use codecall_store::Quota;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use lru::LruCache;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

/// Paths that only operators may read.
const OPERATOR_PATHS: [&str; 4] = ["/v1/approvals", "/v1/status", "/metrics", super::scripts::PATH];
/// How many subjects of an issuer are kept. More end the sessions of those that were not seen for the longest time.
const MAX_SUBJECTS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
/// Maximum length of the name of a subject, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// Where the metadata for clients are.
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Creates the endpoints of a hub.
type Endpoints = Box<dyn Fn(&LiveHub) -> Result<Router, Error> + Send + Sync>;

/// All clients.
pub struct Clients {
    /// The digest of the token of the server itself. Digests have one length, so the time of a comparison does not reveal
    /// that of the token.
    own: Option<[u8; 32]>,
    tokens: Vec<([u8; 32], Arc<Endpoint>)>,
    issuer: Option<Subjects>,
    challenge: Challenge,
}

/// The sender of a request.
pub enum Identity {
    /// Somebody who may do everything.
    Server,
    /// A client.
    Client(Arc<Endpoint>),
}

/// The endpoints of a client.
pub struct Endpoint {
    principal: Principal,
    /// Its name in figures, of which there is a fixed number.
    label: Arc<str>,
    hub: LiveHub,
    router: Router,
    rate: Option<Quota>,
    is_operator: bool,
}

/// Clients with tokens of an issuer.
struct Subjects {
    issuer: Issuer,
    config: HttpJwt,
    live: LiveHub,
    endpoints: Endpoints,
    secret: [u8; 32],
    known: Mutex<LruCache<String, Arc<Endpoint>>>,
}

/// The challenge for a client without a token.
#[derive(Clone, Default)]
struct Challenge {
    /// The address of the metadata, if there are any.
    metadata: Option<String>,
    /// All scopes.
    scope: String,
}

/// Why a request is refused.
pub enum Refusal {
    /// It has no token.
    NoToken,
    /// It has a wrong one: the reason.
    Invalid(String),
    /// The token has none of the scopes.
    NoScope,
    /// It cannot be decided.
    NoKeys,
    /// The server has failed.
    Failed,
}

impl Clients {
    /// Creates the clients of a configuration.
    ///
    /// # Errors
    /// A client cannot be created.
    pub fn new(config: &HttpServerConfig, live: &LiveHub, endpoints: Endpoints) -> Result<Self, Error> {
        let mut secret = [0; 32];
        let unavailable = |_| Error::Config("the system has no source of random numbers".into());
        match live.get().replicas() {
            // What a client has stored is its own at all replicas.
            Some(replicas) => secret = *replicas.secret(),
            None => SystemRandom::new().fill(&mut secret).map_err(unavailable)?,
        }
        let mut tokens = Vec::new();
        for token in &config.tokens {
            let expected = match (&token.token, &token.sha256) {
                (Some(token), _) => digest(token),
                (None, hex) => from_hex(hex.as_deref().unwrap_or_default())
                    .ok_or_else(|| Error::Config("http.tokens: 'sha256' is not a digest".into()))?,
            };
            let principal = Principal {
                name: token.name.as_str().into(),
                // No subject of an issuer has it, because of the colon there.
                owner: token.name.as_str().into(),
                former_owner: None,
                scopes: None,
                is_operator: token.operator,
                allowed: Some(vec![token.tools.clone()]),
                front: token.front,
                limits: token.limits.clone(),
                runs: permits(token.max_runs),
                key: key(&secret, "token", &token.name),
            };
            let label = Arc::clone(&principal.name);
            let endpoint = Endpoint::new(live, &endpoints, principal, label, token.rate, token.operator)?;
            tokens.push((expected, Arc::new(endpoint)));
        }
        let mut challenge = Challenge::default();
        let issuer = match (&config.jwt, &config.resource) {
            (Some(jwt), Some(resource)) => {
                challenge.metadata = metadata_address(resource);
                challenge.scope = jwt.scopes.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
                let known = Mutex::new(LruCache::new(MAX_SUBJECTS));
                let issuer = Issuer::new(jwt, resource)?;
                Some(Subjects { issuer, config: jwt.clone(), live: live.clone(), endpoints, secret, known })
            }
            (Some(_) | None, _) => None,
        };
        Ok(Self { own: config.token.as_deref().map(digest), tokens, issuer, challenge })
    }

    /// Whether requests need a token.
    pub fn is_protected(&self) -> bool {
        self.own.is_some() || !self.tokens.is_empty() || self.issuer.is_some()
    }

    /// Returns who has sent a request with a token.
    ///
    /// # Errors
    /// Nobody who may.
    pub async fn identify(&self, bearer: Option<&str>) -> Result<Identity, Refusal> {
        let bearer = bearer.ok_or(Refusal::NoToken)?;
        let sent = digest(bearer);
        let is_own = self.own.as_ref().is_some_and(|own| bool::from(own.ct_eq(&sent)));
        // All are compared, whichever it is.
        let mut found = None;
        for (expected, endpoint) in &self.tokens {
            if bool::from(expected.ct_eq(&sent)) {
                found = Some(endpoint);
            }
        }
        match (is_own, found, &self.issuer) {
            (true, _, _) => Ok(Identity::Server),
            (false, Some(endpoint), _) => Ok(Identity::Client(Arc::clone(endpoint))),
            (false, None, Some(subjects)) => subjects.identify(bearer).await.map(Identity::Client),
            (false, None, None) => Err(Refusal::Invalid("it is not one of this server".into())),
        }
    }

    /// Returns the response to a request that is refused.
    pub fn refuse(&self, refusal: &Refusal) -> Response {
        let error = match refusal {
            Refusal::NoToken | Refusal::Invalid(_) => HttpError::Unauthorized,
            Refusal::NoScope => HttpError::InsufficientScope,
            Refusal::NoKeys => HttpError::IssuerUnavailable,
            Refusal::Failed => HttpError::Internal,
        };
        let mut response = error.into_response();
        let Some(metadata) = &self.challenge.metadata else { return response };
        let mut challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        match refusal {
            Refusal::NoToken => {}
            Refusal::Invalid(reason) => {
                challenge.push_str(&format!(", error=\"invalid_token\", error_description=\"{reason}\""));
            }
            Refusal::NoScope => challenge.push_str(", error=\"insufficient_scope\""),
            Refusal::NoKeys | Refusal::Failed => return response,
        }
        if !self.challenge.scope.is_empty() {
            challenge.push_str(&format!(", scope=\"{}\"", self.challenge.scope));
        }
        if let Ok(value) = HeaderValue::try_from(challenge) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        response
    }
}

impl Subjects {
    async fn identify(&self, token: &str) -> Result<Arc<Endpoint>, Refusal> {
        let subject = self.issuer.check(token).await.map_err(|refused| match refused {
            Refused::Invalid(reason) => Refusal::Invalid(reason.to_owned()),
            Refused::NoKeys => Refusal::NoKeys,
        })?;
        let granted: Vec<&String> = self.config.scopes.keys().filter(|scope| subject.scopes.contains(*scope)).collect();
        if granted.is_empty() && !self.config.scopes.is_empty() {
            return Err(Refusal::NoScope);
        }
        let owner = owner(&self.config.issuer, &subject);
        let id = serde_json::to_string(&(&owner, &granted)).unwrap_or_default();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(endpoint) = known.get(&id) {
            return Ok(Arc::clone(endpoint));
        }
        let filters = granted.iter().filter_map(|scope| self.config.scopes.get(*scope).cloned()).collect();
        let principal = Principal {
            name: format!("jwt:{}", truncate(&visible(&subject.name), MAX_NAME_BYTES)).into(),
            former_owner: former_owner(&subject.name),
            scopes: (!self.config.scopes.is_empty()).then(|| granted.iter().map(|scope| (*scope).clone()).collect()),
            is_operator: false,
            allowed: (!self.config.scopes.is_empty()).then_some(filters),
            front: None,
            limits: self.config.limits.clone(),
            // Tokens of a subject share them, whatever their scopes are.
            runs: known
                .iter()
                .find(|(_, other)| *other.principal.owner == *owner)
                .map_or_else(|| permits(self.config.max_runs), |(_, other)| other.principal.runs.clone()),
            owner: owner.into(),
            // Of the subject with these scopes: a token with fewer of them cannot read what one with more has stored.
            key: key(&self.secret, "jwt", &id),
        };
        let endpoint = Endpoint::new(&self.live, &self.endpoints, principal, "jwt".into(), self.config.rate, false);
        let endpoint = Arc::new(endpoint.map_err(|error| {
            tracing::error!("http.jwt: {error}");
            Refusal::Failed
        })?);
        known.put(id, Arc::clone(&endpoint));
        Ok(endpoint)
    }
}

impl Endpoint {
    fn new(
        live: &LiveHub,
        endpoints: &Endpoints,
        principal: Principal,
        label: Arc<str>,
        rate: Option<RequestRate>,
        is_operator: bool,
    ) -> Result<Self, Error> {
        let hub = live.for_principal(principal.clone())?;
        let router = endpoints(&hub)?;
        let rate = rate.map(|rate| Quota { limit: rate.limit, window: rate.window });
        Ok(Self { principal, label, hub, router, rate, is_operator })
    }

    /// Returns what no other client has.
    pub fn key(&self) -> [u8; 32] {
        self.principal.key
    }

    /// Returns the hub of the client if it is an operator.
    pub fn operated(&self) -> Option<&LiveHub> {
        self.is_operator.then_some(&self.hub)
    }

    /// Answers a request of the client.
    pub async fn serve(&self, request: Request) -> Response {
        let response = self.answer(request).await;
        self.hub.get().count_request(&self.label, response.status().as_u16());
        response
    }

    async fn answer(&self, mut request: Request) -> Response {
        if !self.is_operator && is_for_operators(request.uri().path()) {
            return HttpError::OperatorOnly.into_response();
        }
        if let Some(rate) = self.rate {
            let hub = self.hub.get();
            match hub.rates().take(&format!("http client {}", self.principal.owner), rate).await {
                Ok(None) => {}
                Ok(Some(wait)) => {
                    let seconds = wait.as_secs() + 1;
                    let mut response = HttpError::TooManyRequests(seconds).into_response();
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
                    return response;
                }
                Err(error) => {
                    tracing::error!("the rate of requests cannot be limited: {error}");
                    return HttpError::Internal.into_response();
                }
            }
        }
        // The router of the server has left the parts of the path there, which that of the client finds itself.
        request.extensions_mut().clear();
        match TowerToHyperService::new(self.router.clone()).call(request).await {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        }
    }
}

/// Returns the key of a subject: what it has begun is its own, however long its name is. No token of the configuration has
/// a name with a colon.
fn owner(issuer: &str, subject: &Subject) -> String {
    let mut digest = Sha256::new();
    for part in [issuer, &subject.name, subject.client.as_deref().unwrap_or_default()] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().iter().fold("subject:".to_owned(), |key, byte| key + &format!("{byte:02x}"))
}

/// Returns the name by which earlier versions knew a subject; `None`: other subjects may have had the same, because it was cut.
fn former_owner(subject: &str) -> Option<Arc<str>> {
    // A name was cut before a character of up to four bytes.
    let is_whole = subject.len() <= MAX_NAME_BYTES - 4 && visible(subject) == subject;
    is_whole.then(|| format!("jwt:{subject}").into())
}

/// Whether a path, or one above it, is for operators only.
fn is_for_operators(path: &str) -> bool {
    let is_in = |own: &str| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    OPERATOR_PATHS.into_iter().any(is_in)
}

/// Returns the metadata of this server (RFC 9728) and the paths where they are; `None`: there are none.
pub fn metadata(config: &HttpServerConfig) -> Option<(Vec<String>, Value)> {
    let (jwt, resource) = (config.jwt.as_ref()?, config.resource.as_ref()?);
    let url = reqwest::Url::parse(resource).ok()?;
    let mut paths = vec![METADATA_PATH.to_owned()];
    if url.path() != "/" {
        paths.push(format!("{METADATA_PATH}{}", url.path().trim_end_matches('/')));
    }
    let mut metadata = json!({
        "resource": resource,
        "authorization_servers": [jwt.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "CodeCall",
    });
    if !jwt.scopes.is_empty() {
        metadata["scopes_supported"] = jwt.scopes.keys().cloned().collect::<Vec<_>>().into();
    }
    Some((paths, metadata))
}

/// Returns where the metadata of a resource are.
fn metadata_address(resource: &str) -> Option<String> {
    let url = reqwest::Url::parse(resource).ok()?;
    let path = if url.path() == "/" { "" } else { url.path().trim_end_matches('/') };
    Some(format!("{}{METADATA_PATH}{path}", url.origin().ascii_serialization()))
}

fn permits(most: Option<u32>) -> Option<Arc<Semaphore>> {
    let most = usize::try_from(most?).unwrap_or(Semaphore::MAX_PERMITS);
    Some(Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))))
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |at: usize| u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(digit).collect();
    bytes?.try_into().ok()
}

fn key(secret: &[u8; 32], kind: &str, name: &str) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(secret);
    digest.update(kind);
    digest.update([0]);
    digest.update(name);
    digest.finalize().into()
}
