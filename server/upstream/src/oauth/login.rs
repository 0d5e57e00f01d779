//! Login: what a person takes part in, once. The browser returns to a port of this machine, or the person enters a code on
//! any device.

use super::endpoint::{ClientAuth, Grant, TokenError, printable};
use super::metadata::{AuthorizationServer, Discovered, discover};
use super::{Authorizer, Challenge, Tokens, now};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codecall_config::AuthKind;
use codecall_openapi::Request;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// How long a person may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// How long a browser may take to send its request, and the maximum size of that.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CALLBACK_BYTES: usize = 16 << 10;
/// The path that the browser returns to.
const CALLBACK: &str = "/callback";
/// The version of the stateless lifecycle.
const STATELESS: &str = "2026-07-28";
/// The scope of a refresh token.
const OFFLINE: &str = "offline_access";

/// How to log in.
#[derive(Clone, Debug, Default)]
pub struct Login {
    /// Whether the person enters a code on any device, rather than that a browser of this machine returns.
    pub device: bool,
    /// Scopes to ask for, in addition to those granted before.
    pub scopes: Vec<String>,
}

/// The prompt that a person sees.
pub trait Prompt: Send + Sync {
    /// The person opens this address in a browser of this machine.
    fn open(&self, address: &str);

    /// The person opens this address on any device, and enters the code.
    fn enter(&self, address: &str, code: &str);
}

impl Authorizer {
    /// Logs a person in.
    ///
    /// # Errors
    /// The server does not offer it, what it offers must not be used, or the person or the server refuses: the reason.
    pub async fn log_in(&self, login: &Login, prompt: &dyn Prompt) -> Result<(), String> {
        if self.config.kind == AuthKind::None {
            return Err("its configuration has 'auth.type = \"none\"'".into());
        }
        if self.has_own_credentials {
            return Err("its configuration has an 'Authorization' header, which is used in place of a login".into());
        }
        let challenge = self.ask().await?;
        if self.config.kind.is_unattended() {
            return self.as_client(None, challenge).await.map(drop);
        }
        let is_asked = challenge.is_some();
        let challenge = challenge.unwrap_or_default();
        let discovered = discover(self, &challenge).await.map_err(|reason| match is_asked {
            true => reason,
            false => format!("it does not ask for a login, and says nothing of one ({reason})"),
        })?;
        let mut scopes = self.wanted_scopes(&challenge, discovered.scopes.as_deref());
        scopes.extend(login.scopes.iter().cloned());
        if let Ok(Some(before)) = self.stored().await {
            self.check_issuer(Some(&before), &discovered.server)?;
            // Another authorization server has other scopes.
            if before.issuer == discovered.server.issuer {
                scopes.extend(before.scopes.union(&before.wanted).cloned());
            }
        }
        let supported = discovered.server.scopes_supported.as_deref().unwrap_or_default();
        if supported.iter().any(|scope| scope == OFFLINE) {
            scopes.insert(OFFLINE.to_owned());
        }
        let logging_in = async {
            if login.device {
                self.by_device(discovered, scopes, prompt).await
            } else {
                self.by_browser(discovered, scopes, prompt).await
            }
        };
        let tokens = tokio::time::timeout(LOGIN_TIMEOUT, logging_in).await;
        let tokens = tokens.map_err(|_| format!("nobody logged in within {} s", LOGIN_TIMEOUT.as_secs()))??;
        let guard = self.store.lock(self.key).await.map_err(|error| error.0)?;
        let stored = self.store_tokens(tokens).await;
        guard.release().await;
        stored.map(drop)
    }

    /// Sends the server requests without a token, as both lifecycles begin. Returns its challenge; `None`: it accepts them.
    async fn ask(&self) -> Result<Option<Challenge>, String> {
        let client = serde_json::json!({"name": "codecall", "version": env!("CARGO_PKG_VERSION")});
        let initialize = serde_json::json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client,
        });
        if let Some(challenge) = self.ask_by("initialize", &initialize, &[]).await? {
            return Ok(Some(challenge));
        }
        let list = serde_json::json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientInfo": client,
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        let headers = [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/list")];
        self.ask_by("tools/list", &list, &headers).await
    }

    async fn ask_by(
        &self,
        method: &str,
        params: &serde_json::Value,
        more: &[(&str, &str)],
    ) -> Result<Option<Challenge>, String> {
        let body = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![("accept".into(), "application/json, text/event-stream".into())];
        headers.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let request = Request {
            method: "POST",
            url: self.url.clone(),
            headers,
            body: Some(("application/json".into(), body.to_string().into_bytes())),
            credentials: Vec::new(),
        };
        let sent = tokio::time::timeout(super::endpoint::TIMEOUT, self.client.send(request, &HeaderMap::new())).await;
        let response = sent.map_err(|_| "it did not answer in time".to_owned())?.map_err(|refusal| match refusal {
            crate::openapi::client::Refusal::Unconnected(reason)
            | crate::openapi::client::Refusal::Unreachable(reason) => format!("it cannot be reached: {reason}"),
            crate::openapi::client::Refusal::NotAllowed(reason) => reason,
        })?;
        if response.status().as_u16() != 401 {
            return Ok(None);
        }
        let header = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        Ok(Some(header.map(Challenge::parse).unwrap_or_default()))
    }

    /// Returns the client to log in with, which is registered if there is none.
    async fn client_for(
        &self,
        server: &AuthorizationServer,
        redirect: Option<&str>,
        scopes: &str,
    ) -> Result<ClientAuth, String> {
        if let Some(client) = self.configured_client(server)? {
            return Ok(client);
        }
        match &server.registration_endpoint {
            Some(endpoint) => self.register(endpoint, redirect, server, scopes).await,
            None => Err(
                "the authorization server does not register clients; register CodeCall there, and set 'auth.clientId'"
                    .into(),
            ),
        }
    }

    async fn by_browser(
        &self,
        discovered: Discovered,
        scopes: BTreeSet<String>,
        prompt: &dyn Prompt,
    ) -> Result<Tokens, String> {
        let Discovered { server, resource, .. } = discovered;
        let endpoint = server.authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or("the authorization server has no page to log in; try --device")?;
        let mut address = self.check_address("an endpoint of the authorization server", endpoint)?;
        // Without PKCE, who sees the code could use it.
        let methods = server.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            return Err(
                "the authorization server does not say that it supports PKCE with S256, so a login is not safe".into(),
            );
        }
        let port = self.config.redirect_port.unwrap_or(0);
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.map_err(|error| format!("the port {port} for the browser cannot be used: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let redirect = format!("http://127.0.0.1:{port}{CALLBACK}");
        let scope = joined(&scopes);
        let client = self.client_for(&server, Some(&redirect), &scope).await?;
        let (verifier, state) = (random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        {
            let mut query = address.query_pairs_mut();
            query.append_pair("response_type", "code").append_pair("client_id", &client.id);
            query.append_pair("redirect_uri", &redirect).append_pair("state", &state);
            query.append_pair("code_challenge", &challenge).append_pair("code_challenge_method", "S256");
            query.append_pair("resource", &resource);
            if !scope.is_empty() {
                query.append_pair("scope", &scope);
            }
            // Without it there is no refresh token (OpenID Connect Core 1.0, section 11).
            if scopes.contains(OFFLINE) {
                query.append_pair("prompt", "consent");
            }
        }
        prompt.open(address.as_str());
        let code = self.wait_for_code(&listener, &state, &server).await?;
        let grant = Grant::Code { code: &code, verifier: &verifier, redirect: &redirect };
        let answer = self.request_token(&server.token_endpoint, &client, grant, &resource).await;
        let answer = answer.map_err(|error| error.to_string())?;
        Ok(answer.into_tokens(&server, client, resource, scopes))
    }

    /// Waits for the browser to return with a code of this login. Other requests are refused, and change nothing.
    async fn wait_for_code(
        &self,
        listener: &TcpListener,
        state: &str,
        server: &AuthorizationServer,
    ) -> Result<String, String> {
        loop {
            let (mut stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let reading = tokio::time::timeout(CALLBACK_TIMEOUT, read_target(&mut stream)).await;
            let Ok(Some(target)) = reading else { continue };
            let Ok(url) = Url::parse(&format!("http://127.0.0.1{target}")) else { continue };
            let value =
                |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            if url.path() != CALLBACK || value("state").as_deref() != Some(state) {
                let is_other = url.path() == CALLBACK;
                answer(&mut stream, if is_other { 400 } else { 404 }, "This is not the login that CodeCall waits for.")
                    .await;
                continue;
            }
            let result = match (value("code"), value("error"), value("iss")) {
                // RFC 9207: the answer of another server, whose code would go to this one.
                (_, _, Some(iss)) if iss != server.issuer => {
                    Err("the answer is that of another authorization server".to_owned())
                }
                (_, _, None) if server.authorization_response_iss_parameter_supported => {
                    Err("the answer does not say which authorization server it is of".to_owned())
                }
                (_, Some(error), _) => {
                    let description = value("error_description").map(|text| format!(" ({})", printable(&text)));
                    Err(format!("the login was refused: {}{}", printable(&error), description.unwrap_or_default()))
                }
                (Some(code), None, _) => Ok(code),
                (None, None, _) => Err("the answer of the authorization server has no code".to_owned()),
            };
            let text = match &result {
                Ok(_) => "You are logged in. You can close this page.",
                Err(_) => "The login has failed. CodeCall says why.",
            };
            answer(&mut stream, 200, text).await;
            return result;
        }
    }

    async fn by_device(
        &self,
        discovered: Discovered,
        scopes: BTreeSet<String>,
        prompt: &dyn Prompt,
    ) -> Result<Tokens, String> {
        let Discovered { server, resource, .. } = discovered;
        let endpoint = server.device_authorization_endpoint.as_deref();
        let endpoint = endpoint
            .ok_or("the authorization server does not offer codes for other devices; log in without --device")?;
        let scope = joined(&scopes);
        let client = self.client_for(&server, None, &scope).await?;
        let device = self.request_device(endpoint, &client, &scope, &resource).await;
        let device = device.map_err(|error| error.to_string())?;
        let address = device.verification_uri_complete.as_ref().unwrap_or(&device.verification_uri);
        self.check_address("the address to enter the code at", address)?;
        prompt.enter(address, &printable(&device.user_code));
        let mut interval = Duration::from_secs(device.interval.unwrap_or(5).clamp(1, 60));
        let expires_at = now().saturating_add(device.expires_in);
        loop {
            tokio::time::sleep(interval).await;
            let grant = Grant::Device { code: &device.device_code };
            match self.request_token(&server.token_endpoint, &client, grant, &resource).await {
                Ok(answer) => return Ok(answer.into_tokens(&server, client, resource, scopes)),
                Err(TokenError::Refused { code, .. }) if code == "authorization_pending" => {}
                Err(TokenError::Refused { code, .. }) if code == "slow_down" => interval += Duration::from_secs(5),
                Err(error) => return Err(error.to_string()),
            }
            if now() > expires_at {
                return Err("the code has expired".into());
            }
        }
    }
}

/// Returns scopes as requests have them.
pub fn joined(scopes: &BTreeSet<String>) -> String {
    scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Returns 256 random bits in base64.
pub fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| "the system has no source of random numbers".to_owned())?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Reads the target of a `GET` request.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_CALLBACK_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    (method == "GET" && target.starts_with('/')).then(|| target.to_owned())
}

async fn answer(stream: &mut TcpStream, status: u16, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>CodeCall</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\r\n",
        if status == 200 { "OK" } else { "Refused" },
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}
