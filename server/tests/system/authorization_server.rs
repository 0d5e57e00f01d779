//! An authorization server: metadata, registration, login, tokens, codes for devices, revocation. Its answers can be changed.

use crate::upstream_server::{Check, UpstreamServer, tool};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

type Fields = BTreeMap<String, String>;

/// A running server, and the MCP server that it issues tokens for.
#[derive(Clone)]
pub struct AuthorizationServer {
    pub address: SocketAddr,
    state: Arc<Mutex<Issued>>,
}

/// The tokens that were issued, and the claims of the server.
#[derive(Default)]
pub struct Issued {
    /// Replaces members of the metadata; null removes one.
    pub metadata: Value,
    /// Replaces members of the metadata of the MCP server.
    pub resource_metadata: Value,
    /// The `iss` in the answer to a login; `None`: the issuer.
    pub iss: Option<String>,
    /// Access tokens that the MCP server accepts, with their scopes.
    pub valid: BTreeMap<String, String>,
    /// Refresh tokens that can be used once.
    pub refresh: BTreeSet<String>,
    /// Seconds that access tokens last; 0: they are not said to expire.
    pub expires_in: u64,
    /// The scope without which the MCP server refuses calls.
    pub needed_scope: Option<String>,
    /// Whether the MCP server says what it wants.
    pub has_no_challenge: bool,
    /// All requests for tokens.
    pub token_requests: Vec<Fields>,
    /// Addresses of requests that must not be made.
    pub device_polls: u32,
    pub revoked: Vec<String>,
    /// How many clients have registered.
    pub registrations: u32,
    /// By code: the challenge of PKCE and the query of the login.
    codes: BTreeMap<String, Fields>,
    count: u32,
}

impl AuthorizationServer {
    /// Starts both servers.
    pub async fn start() -> (Self, UpstreamServer) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = Self { address, state: Arc::default() };
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/device", post(device))
            .route("/revoke", post(revoke))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let (for_check, for_metadata) = (server.clone(), server.clone());
        let described = move |headers: HeaderMap| {
            let server = for_metadata.clone();
            async move { Json(server.resource_metadata(&headers)) }
        };
        let routes = Router::new().route("/.well-known/oauth-protected-resource/mcp", get(described));
        let tools = vec![tool("open", "Open the box"), tool("shut", "Shut the box")];
        let upstream = UpstreamServer::start_with(tools, routes, move |address| for_check.check(address)).await;
        (server, upstream)
    }

    pub fn issued(&self) -> MutexGuard<'_, Issued> {
        self.state.lock().expect("not poisoned")
    }

    pub fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    fn resource_metadata(&self, headers: &HeaderMap) -> Value {
        let host = headers["host"].to_str().expect("a host");
        let said = json!({
            "resource": format!("http://{host}/mcp"), "authorization_servers": [self.issuer()], "scopes_supported": ["box"],
        });
        changed(said, &self.issued().resource_metadata)
    }

    /// Accepts requests with a valid token.
    fn check(self, address: SocketAddr) -> Check {
        let metadata = format!("resource_metadata=\"http://{address}/.well-known/oauth-protected-resource/mcp\"");
        Arc::new(move |headers, message| {
            let issued = self.issued();
            let token = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
            let refusal = |status: StatusCode, challenge: String| {
                Some((status, [("www-authenticate", challenge)]).into_response())
            };
            let Some(scopes) = token.and_then(|token| issued.valid.get(token)) else {
                return match issued.has_no_challenge {
                    true => Some(StatusCode::UNAUTHORIZED.into_response()),
                    false => refusal(StatusCode::UNAUTHORIZED, format!("Bearer {metadata}, scope=\"box\"")),
                };
            };
            let needed = issued.needed_scope.as_ref().filter(|_| message["method"] == "tools/call")?;
            if scopes.split(' ').any(|scope| scope == needed) {
                return None;
            }
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\", {metadata}");
            refusal(StatusCode::FORBIDDEN, challenge)
        })
    }
}

/// Parses a form.
fn fields(form: &str) -> Fields {
    let url = reqwest::Url::parse(&format!("http://form/?{form}")).expect("an address");
    url.query_pairs().into_owned().collect()
}

fn changed(mut said: Value, changes: &Value) -> Value {
    for (key, value) in changes.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(said.as_object_mut().expect("an object").remove(key)),
            value => said[key] = value.clone(),
        }
    }
    said
}

async fn metadata(State(server): State<AuthorizationServer>) -> Json<Value> {
    let at = |path: &str| format!("{}{path}", server.issuer());
    let said = json!({
        "issuer": server.issuer(),
        "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
        "registration_endpoint": at("/register"), "revocation_endpoint": at("/revoke"),
        "device_authorization_endpoint": at("/device"),
        "code_challenge_methods_supported": ["S256"], "scopes_supported": ["box", "admin", "offline_access"],
        "authorization_response_iss_parameter_supported": true,
    });
    Json(changed(said, &server.issued().metadata))
}

async fn register(State(server): State<AuthorizationServer>, Json(client): Json<Value>) -> Response {
    server.issued().registrations += 1;
    assert_eq!(client["token_endpoint_auth_method"], "none");
    let redirects = client["redirect_uris"].as_array().expect("a list, perhaps an empty one").clone();
    assert!(redirects.iter().all(|uri| uri.as_str().is_some_and(|uri| uri.starts_with("http://127.0.0.1:"))));
    (StatusCode::CREATED, Json(json!({"client_id": "registered-client"}))).into_response()
}

async fn authorize(State(server): State<AuthorizationServer>, RawQuery(query): RawQuery) -> Redirect {
    let query = fields(&query.unwrap_or_default());
    let mut issued = server.issued();
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    issued.count += 1;
    let code = format!("code-{}", issued.count);
    let iss = issued.iss.clone().unwrap_or_else(|| server.issuer());
    let back = format!("{}?code={code}&state={}&iss={iss}", query["redirect_uri"], query["state"]);
    issued.codes.insert(code, query);
    Redirect::to(&back)
}

fn refused(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response()
}

async fn token(State(server): State<AuthorizationServer>, headers: HeaderMap, body: String) -> Response {
    let fields = fields(&body);
    let mut issued = server.issued();
    issued.token_requests.push(fields.clone());
    assert!(fields["resource"].ends_with("/mcp"), "{fields:?}");
    let scope = match fields["grant_type"].as_str() {
        "authorization_code" => {
            let Some(query) = issued.codes.remove(&fields["code"]) else { return refused("invalid_grant") };
            let digest = Sha256::digest(fields["code_verifier"].as_bytes());
            let alphabet = base64::engine::general_purpose::URL_SAFE_NO_PAD;
            let is_right = query["code_challenge"] == base64::Engine::encode(&alphabet, digest)
                && query["redirect_uri"] == fields["redirect_uri"]
                && query["resource"] == fields["resource"]
                && query["client_id"] == fields["client_id"];
            if !is_right {
                return refused("invalid_grant");
            }
            let scope = query.get("scope").cloned().unwrap_or_default();
            // As OpenID Connect wants it.
            let agreed = query.get("prompt").is_some_and(|prompt| prompt == "consent");
            if agreed { scope } else { scope.replace("offline_access", "").trim().to_owned() }
        }
        "refresh_token" => {
            if !issued.refresh.remove(&fields["refresh_token"]) {
                return refused("invalid_grant");
            }
            "box offline_access".to_owned()
        }
        "client_credentials" => {
            let expected = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "robot:robot%2Fsecret");
            if headers.get("authorization").is_none_or(|value| value != &format!("Basic {expected}")) {
                return refused("invalid_client");
            }
            fields.get("scope").cloned().unwrap_or_default()
        }
        "urn:ietf:params:oauth:grant-type:device_code" => {
            issued.device_polls += 1;
            match issued.device_polls {
                1 => return refused("authorization_pending"),
                _ => "box".to_owned(),
            }
        }
        other => panic!("an unknown grant: {other}"),
    };
    issued.count += 1;
    let count = issued.count;
    let (access, refresh) = (format!("access-token-number-{count}"), format!("refresh-token-number-{count}"));
    issued.valid.insert(access.clone(), scope.clone());
    let mut answer = json!({"access_token": access, "token_type": "Bearer", "scope": scope});
    if scope.contains("offline_access") {
        issued.refresh.insert(refresh.clone());
        answer["refresh_token"] = refresh.into();
    }
    if issued.expires_in > 0 {
        answer["expires_in"] = issued.expires_in.into();
    }
    Json(answer).into_response()
}

async fn device(State(server): State<AuthorizationServer>) -> Json<Value> {
    Json(json!({
        "device_code": "device-code-0123456789", "user_code": "WDJB-MJHT", "expires_in": 60, "interval": 1,
        "verification_uri": format!("{}/enter", server.issuer()),
    }))
}

async fn revoke(State(server): State<AuthorizationServer>, body: String) -> StatusCode {
    let fields = fields(&body);
    server.issued().revoked.push(fields["token"].clone());
    StatusCode::OK
}
