//! Requests to an authorization server: tokens, revocation, registration, device authorization.

use super::login::joined;
use super::metadata::AuthorizationServer;
use super::{Authorizer, Tokens, now};
use crate::openapi::client::{Client, Refusal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecall_base::text::truncate;
use codecall_openapi::Request;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use url::{Url, form_urlencoded};

/// How long an authorization server may take to answer.
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of an answer, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Maximum length of a text of a server in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 200;
/// The grant of an assertion (RFC 7523).
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// How long an assertion of a client is valid, in seconds.
const ASSERTION_SECONDS: u64 = 60;

/// A client, and how it says who it is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ClientAuth {
    pub id: String,
    pub secret: Option<String>,
    /// Whether the secret is sent in the body of requests, not in a header.
    pub in_body: bool,
    /// The issuer that assertions of the client are for, if it proves itself by those (RFC 7523).
    #[serde(default)]
    pub assertion_for: Option<String>,
}

/// For what a token is requested.
pub enum Grant<'a> {
    Code { code: &'a str, verifier: &'a str, redirect: &'a str },
    Refresh { token: &'a str },
    ClientCredentials { scopes: &'a BTreeSet<String> },
    JwtBearer { assertion: &'a str, scopes: &'a BTreeSet<String> },
    Device { code: &'a str },
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The authorization server says so.
    #[error("the authorization server refuses it: {code}{description}")]
    Refused { code: String, description: String },
    /// There is no answer that can be used.
    #[error("{0}")]
    Failed(String),
}

/// The answer of a token endpoint.
#[derive(Deserialize)]
pub struct TokenAnswer {
    access_token: String,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl TokenAnswer {
    /// Requires that the token can be sent.
    fn check(&self) -> Result<(), TokenError> {
        if !self.token_type.eq_ignore_ascii_case("bearer") {
            return Err(TokenError::Failed("the token is not a bearer token".into()));
        }
        if self.access_token.is_empty() || !self.access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Failed("the token cannot be sent in a header".into()));
        }
        Ok(())
    }

    /// Returns the access token, and when it expires, in seconds since 1970.
    pub fn into_access_token(self) -> (String, Option<u64>) {
        let expires_at = self.expires_at();
        (self.access_token, expires_at)
    }

    fn scopes(&self) -> Option<BTreeSet<String>> {
        self.scope.as_ref().map(|scope| scope.split_whitespace().map(str::to_owned).collect())
    }

    fn expires_at(&self) -> Option<u64> {
        // Some servers write it as a text.
        let seconds = match self.expires_in.as_ref()? {
            Value::Number(number) => number.as_f64()?.max(0.0) as u64,
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        Some(now().saturating_add(seconds))
    }

    /// Replaces tokens by the renewed ones. A server that gives no new refresh token keeps the old one valid.
    pub(super) fn apply(self, tokens: &mut Tokens) {
        tokens.expires_at = self.expires_at();
        if let Some(scopes) = self.scopes() {
            tokens.scopes = scopes;
        }
        tokens.access_token = self.access_token;
        tokens.refresh_token = self.refresh_token.or(tokens.refresh_token.take());
    }

    /// Returns the first tokens of a server. If it does not say which scopes they have, they have those asked for.
    pub(super) fn into_tokens(
        self,
        server: &AuthorizationServer,
        client: ClientAuth,
        resource: String,
        asked: BTreeSet<String>,
    ) -> Tokens {
        Tokens {
            resource,
            issuer: server.issuer.clone(),
            token_endpoint: server.token_endpoint.clone(),
            revocation_endpoint: server.revocation_endpoint.clone(),
            client,
            expires_at: self.expires_at(),
            scopes: self.scopes().unwrap_or(asked),
            access_token: self.access_token,
            refresh_token: self.refresh_token,
            wanted: BTreeSet::new(),
        }
    }
}

/// The answer of a device authorization endpoint.
#[derive(Deserialize)]
pub struct DeviceAnswer {
    pub device_code: String,
    pub user_code: String,
    pub verification_uri: String,
    pub verification_uri_complete: Option<String>,
    pub expires_in: u64,
    pub interval: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
    error_description: Option<String>,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl Authorizer {
    /// Requests a token for a resource.
    pub(super) async fn request_token(
        &self,
        endpoint: &str,
        client: &ClientAuth,
        grant: Grant<'_>,
        resource: &str,
    ) -> Result<TokenAnswer, TokenError> {
        let scopes;
        let mut form: Vec<(&str, &str)> = match grant {
            Grant::Code { code, verifier, redirect } => vec![
                ("grant_type", "authorization_code"),
                ("code", code),
                ("code_verifier", verifier),
                ("redirect_uri", redirect),
            ],
            Grant::Refresh { token } => vec![("grant_type", "refresh_token"), ("refresh_token", token)],
            Grant::ClientCredentials { scopes: wanted } => {
                scopes = joined(wanted);
                with_scope(vec![("grant_type", "client_credentials")], &scopes)
            }
            Grant::JwtBearer { assertion, scopes: wanted } => {
                scopes = joined(wanted);
                with_scope(vec![("grant_type", JWT_BEARER), ("assertion", assertion)], &scopes)
            }
            Grant::Device { code } => {
                vec![("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", code)]
            }
        };
        form.push(("resource", resource));
        let answer: TokenAnswer = self.post_form(endpoint, client, &form).await?;
        answer.check()?;
        Ok(answer)
    }

    /// Asks for a code that a person enters on another device.
    pub(super) async fn request_device(
        &self,
        endpoint: &str,
        client: &ClientAuth,
        scope: &str,
        resource: &str,
    ) -> Result<DeviceAnswer, TokenError> {
        let mut form = vec![("resource", resource)];
        if !scope.is_empty() {
            form.push(("scope", scope));
        }
        self.post_form(endpoint, client, &form).await
    }

    pub(super) async fn revoke(&self, endpoint: &str, client: &ClientAuth, token: &str) -> Result<(), TokenError> {
        let (status, _) = self.send_form(endpoint, client, &[("token", token)]).await.map_err(TokenError::Failed)?;
        if (200..300).contains(&status) { Ok(()) } else { Err(TokenError::Failed(format!("status {status}"))) }
    }

    /// Registers a client (RFC 7591).
    pub(super) async fn register(
        &self,
        endpoint: &str,
        redirect: Option<&str>,
        server: &AuthorizationServer,
        scope: &str,
    ) -> Result<ClientAuth, String> {
        let device = "urn:ietf:params:oauth:grant-type:device_code";
        let mut registration = json!({
            "client_name": "CodeCall",
            "application_type": "native",
            "token_endpoint_auth_method": "none",
            "grant_types": [if redirect.is_some() { "authorization_code" } else { device }, "refresh_token"],
            // Some servers want these even if there are none.
            "redirect_uris": redirect.as_slice(),
            "response_types": redirect.map(|_| "code").as_slice(),
        });
        if !scope.is_empty() {
            registration["scope"] = scope.into();
        }
        let body = ("application/json".to_owned(), registration.to_string().into_bytes());
        let refused = |reason: String| {
            format!(
                "the authorization server does not register CodeCall ({reason}); register a client there and set 'auth.clientId'"
            )
        };
        let (status, answer) = self.post(endpoint, body, None).await?;
        if !(200..300).contains(&status) {
            let error = serde_json::from_slice::<ErrorAnswer>(&answer).ok();
            return Err(refused(error.map_or_else(|| format!("status {status}"), |error| printable(&error.error))));
        }
        let registered: Registered =
            serde_json::from_slice(&answer).map_err(|_| refused("its answer is not a registration".into()))?;
        let method = registered.token_endpoint_auth_method.as_deref();
        let in_body = method.map_or_else(|| is_in_body(server), |method| method == "client_secret_post");
        let (id, secret) = (registered.client_id, registered.client_secret);
        Ok(ClientAuth { id, secret, in_body, assertion_for: None })
    }

    /// Returns the client of the configuration.
    pub(super) fn configured_client(&self, server: &AuthorizationServer) -> Result<Option<ClientAuth>, String> {
        let secret = self.config.client_secret.as_deref().map(str::to_owned);
        Ok(match (&self.config.client_id, &self.config.client_metadata_url) {
            (Some(id), _) => {
                let assertion_for = self.key_of_client.as_ref().map(|_| server.issuer.clone());
                Some(ClientAuth { id: id.clone(), secret, in_body: is_in_body(server), assertion_for })
            }
            (None, Some(url)) if server.client_id_metadata_document_supported => {
                Some(ClientAuth { id: url.clone(), secret: None, in_body: true, assertion_for: None })
            }
            (None, _) => None,
        })
    }

    pub(super) async fn post_form<T: serde::de::DeserializeOwned>(
        &self,
        endpoint: &str,
        client: &ClientAuth,
        form: &[(&str, &str)],
    ) -> Result<T, TokenError> {
        let url = self.check_endpoint(endpoint).map_err(TokenError::Failed)?;
        let assertion = self.assertion(client).map_err(TokenError::Failed)?;
        post_form(&self.client, url, client, &with_assertion(form, assertion.as_deref())).await
    }

    async fn send_form(
        &self,
        endpoint: &str,
        client: &ClientAuth,
        form: &[(&str, &str)],
    ) -> Result<(u16, Vec<u8>), String> {
        let assertion = self.assertion(client)?;
        let form = with_assertion(form, assertion.as_deref());
        send_form(&self.client, self.check_endpoint(endpoint)?, client, &form).await
    }

    /// Returns what proves that a request is one of the client, if it has a key (RFC 7523).
    fn assertion(&self, client: &ClientAuth) -> Result<Option<String>, String> {
        let Some(issuer) = &client.assertion_for else { return Ok(None) };
        let key = self.key_of_client.as_ref().ok_or("'clientPrivateKey' is missing")?;
        let issued = now();
        let claims = json!({
            "iss": client.id, "sub": client.id, "aud": issuer, "jti": super::login::random()?,
            "iat": issued, "exp": issued + ASSERTION_SECONDS,
        });
        key.sign(&json!({"typ": "JWT"}), &claims).map(Some)
    }

    async fn post(
        &self,
        endpoint: &str,
        body: (String, Vec<u8>),
        authorization: Option<String>,
    ) -> Result<(u16, Vec<u8>), String> {
        post(&self.client, self.check_endpoint(endpoint)?, body, authorization).await
    }

    fn check_endpoint(&self, endpoint: &str) -> Result<Url, String> {
        self.check_address("an endpoint of the authorization server", endpoint)
    }
}

/// Returns a form with a scope, if there is one.
pub fn with_scope<'a>(mut form: Vec<(&'a str, &'a str)>, scope: &'a str) -> Vec<(&'a str, &'a str)> {
    if !scope.is_empty() {
        form.push(("scope", scope));
    }
    form
}

/// Returns a form with the assertion of the client.
fn with_assertion<'a>(form: &[(&'a str, &'a str)], assertion: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut form = form.to_vec();
    if let Some(assertion) = assertion {
        form.push(("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
        form.push(("client_assertion", assertion));
    }
    form
}

/// Requests a token of a client for itself (RFC 6749, section 4.4), with more members of the form than its scopes.
pub async fn client_token(
    http: &Client,
    url: Url,
    client: &ClientAuth,
    scopes: &[String],
    more: &[(&str, &str)],
) -> Result<TokenAnswer, TokenError> {
    let scopes = scopes.join(" ");
    let mut form = vec![("grant_type", "client_credentials")];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    form.extend(more);
    let answer: TokenAnswer = post_form(http, url, client, &form).await?;
    answer.check()?;
    Ok(answer)
}

async fn post_form<T: serde::de::DeserializeOwned>(
    http: &Client,
    url: Url,
    client: &ClientAuth,
    form: &[(&str, &str)],
) -> Result<T, TokenError> {
    let (status, body) = send_form(http, url, client, form).await.map_err(TokenError::Failed)?;
    // Some servers answer errors with status 200.
    if let Ok(error) = serde_json::from_slice::<ErrorAnswer>(&body) {
        let description = error.error_description.map(|text| format!(" ({})", printable(&text))).unwrap_or_default();
        return Err(TokenError::Refused { code: printable(&error.error), description });
    }
    if !(200..300).contains(&status) {
        return Err(TokenError::Failed(format!("the authorization server answers with status {status}")));
    }
    serde_json::from_slice(&body)
        .map_err(|_| TokenError::Failed("the answer of the authorization server is not valid".into()))
}

async fn send_form(
    http: &Client,
    url: Url,
    client: &ClientAuth,
    form: &[(&str, &str)],
) -> Result<(u16, Vec<u8>), String> {
    let (body, authorization) = form_of(client, form);
    let body = ("application/x-www-form-urlencoded".to_owned(), body.into_bytes());
    post(http, url, body, authorization).await
}

async fn post(
    http: &Client,
    url: Url,
    body: (String, Vec<u8>),
    authorization: Option<String>,
) -> Result<(u16, Vec<u8>), String> {
    let credentials = authorization.map(|value| codecall_openapi::Credential::Header("authorization".into(), value));
    let request = Request {
        method: "POST",
        url,
        headers: vec![("accept".into(), "application/json".into())],
        body: Some(body),
        credentials: credentials.into_iter().collect(),
    };
    let sending = async {
        let response = http.send(request, &HeaderMap::new()).await.map_err(|refusal| match refusal {
            Refusal::Unconnected(reason) | Refusal::Unreachable(reason) => {
                format!("the authorization server cannot be reached: {reason}")
            }
            Refusal::NotAllowed(reason) => format!("the authorization server must not be asked: {reason}"),
        })?;
        let status = response.status().as_u16();
        let bytes = crate::openapi::response::bytes(response, MAX_BYTES).await.map_err(|error| error.to_string())?;
        Ok((status, bytes))
    };
    let sent = tokio::time::timeout(TIMEOUT, sending).await;
    sent.map_err(|_| "the authorization server did not answer in time".to_owned())?
}

/// Returns the body of a request of a client, and its header `Authorization`.
fn form_of(client: &ClientAuth, form: &[(&str, &str)]) -> (String, Option<String>) {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(form);
    let mut authorization = None;
    match &client.secret {
        Some(secret) if !client.in_body => {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encoded(&client.id), encoded(secret));
            authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
        }
        Some(secret) => {
            body.append_pair("client_id", &client.id).append_pair("client_secret", secret);
        }
        None => {
            body.append_pair("client_id", &client.id);
        }
    }
    (body.finish(), authorization)
}

/// Whether a server accepts a secret in the body only.
fn is_in_body(server: &AuthorizationServer) -> bool {
    let methods = server.token_endpoint_auth_methods_supported.as_deref();
    methods.is_some_and(|methods| {
        !methods.iter().any(|method| method == "client_secret_basic")
            && methods.iter().any(|method| method == "client_secret_post")
    })
}

/// Returns a text of a server for a message.
pub fn printable(text: &str) -> String {
    truncate(&codecall_base::hidden::visible(text), MAX_SHOWN_BYTES).replace(['\n', '\t'], " ")
}
