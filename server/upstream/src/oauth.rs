//! OAuth 2.1 towards MCP servers over HTTP, as the specification of MCP has it.
//!
//! An [`Authorizer`] has the tokens of one server. It gives them to requests, renews them, and knows when a person must
//! log in, for which no request waits. `metadata` finds the authorization server (RFC 9728, RFC 8414), `endpoint`
//! speaks with
//! it, `login` is what a person takes part in.

mod assertion;
mod challenge;
mod endpoint;
mod login;
mod signature;
mod metadata;

use crate::openapi::client::Client;
pub use challenge::Challenge;
use codecall_base::redact::SecretRegistry;
use codecall_config::{AuthConfig, AuthKind, HttpConfig, names_host};
use codecall_store::{CredentialStore, Digest, RecordVersion};
use endpoint::Grant;
pub use endpoint::{ClientAuth, TokenError, client_token};
pub use login::{Login, Prompt};
use metadata::{AuthorizationServer, Discovered};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use signature::SigningKey;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use url::Url;

/// Tokens are renewed this long before they expire, in seconds.
const EARLY: u64 = 30;
/// How often it is looked at whether another process has logged in.
const LOOK: Duration = Duration::from_secs(1);

/// The tokens that a server has issued, and the data to renew them.
#[derive(Clone, Deserialize, Serialize)]
struct Tokens {
    /// The resource for which the token is.
    resource: String,
    issuer: String,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    client: ClientAuth,
    access_token: String,
    refresh_token: Option<String>,
    /// Seconds since 1970; `None`: the server has not said when.
    expires_at: Option<u64>,
    /// The scopes that were granted.
    scopes: BTreeSet<String>,
    /// The scopes that the last refused request needs. The next login, which is another process, asks for them too.
    #[serde(default)]
    wanted: BTreeSet<String>,
}

impl Tokens {
    /// Whether the access token can be used for some time.
    fn is_valid(&self) -> bool {
        is_valid(self.expires_at)
    }
}

/// The state of the credentials of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialState {
    /// There are none.
    None,
    /// There are tokens.
    Tokens {
        /// The issuer.
        issuer: String,
        /// Their scopes.
        scopes: Vec<String>,
        /// In how many seconds the access token expires; `None`: unknown.
        expires_in: Option<u64>,
        /// Whether it is renewed without a person.
        is_renewable: bool,
    },
}

/// The tokens of a server.
pub struct Authorizer {
    app: String,
    config: AuthConfig,
    url: Url,
    /// Whether the configuration has a header with credentials of its own.
    has_own_credentials: bool,
    store: Arc<dyn CredentialStore>,
    key: Digest,
    secrets: Arc<SecretRegistry>,
    client: Client,
    /// The key of the configured client, which signs its assertions.
    key_of_client: Option<SigningKey>,
    state: Mutex<State>,
    /// Held by whoever renews tokens: others wait for it, and use what it has got.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    tokens: Option<Arc<Tokens>>,
    /// The version of the stored tokens that were read last.
    read: Option<RecordVersion>,
    /// When it was last seen that they are those of the store.
    looked: Option<Instant>,
    /// The challenge of the server that is not met yet.
    wanted: Option<Challenge>,
    /// Why a person must log in.
    login: Option<String>,
}

impl Authorizer {
    /// Creates the authorizer of a server.
    ///
    /// # Errors
    /// The address of the server is none.
    pub fn new(
        app: &str,
        config: &HttpConfig,
        store: Arc<dyn CredentialStore>,
        secrets: Arc<SecretRegistry>,
    ) -> Result<Self, String> {
        let url = Url::parse(&config.url).map_err(|_| "its 'url' is not an address".to_owned())?;
        let auth = config.auth.clone().unwrap_or_default();
        let mut named = auth.allow_private.clone();
        named.extend(url.host_str().map(str::to_owned));
        let has_own_credentials = config.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        let key = Sha256::digest(format!("oauth\0{app}\0{url}")).into();
        let key_of_client = auth.client_private_key.as_deref().map(SigningKey::from_pem).transpose()?;
        Ok(Self {
            app: app.to_owned(),
            config: auth,
            url,
            has_own_credentials,
            store,
            key,
            secrets,
            client: Client::new(&named)?,
            key_of_client,
            state: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether tokens are used at all.
    fn is_used(&self) -> bool {
        self.config.kind != AuthKind::None && !self.has_own_credentials
    }

    /// Returns the token for a request; `None`: there is none, and the server may not want any.
    ///
    /// # Errors
    /// A person must log in, or tokens cannot be renewed: the reason.
    pub async fn token(&self) -> Result<Option<String>, String> {
        if !self.is_used() {
            return Ok(None);
        }
        match self.recent().await? {
            None => Ok(None),
            Some(tokens) if tokens.is_valid() => Ok(Some(tokens.access_token.clone())),
            Some(tokens) => self.renewed(&tokens.access_token, None).await.map(Some),
        }
    }

    /// Returns another token after the server has refused the one that a request had.
    ///
    /// # Errors
    /// A person must log in, or tokens cannot be renewed: the reason.
    pub async fn refused(&self, used: Option<&str>, challenge: Challenge) -> Result<String, String> {
        if self.has_own_credentials {
            return Err(format!("it refuses the credentials in 'headers'{}", challenge.explained()));
        }
        if self.config.kind == AuthKind::None {
            return Err("it wants authorization, which the configuration disables".into());
        }
        self.state().wanted = Some(challenge.clone());
        self.renewed(used.unwrap_or_default(), Some(challenge)).await
    }

    /// Returns why a request is not sent a third time: the server has refused a token that was just issued.
    pub fn refused_again(&self, challenge: Challenge) -> String {
        let explained = challenge.explained();
        self.state().wanted = Some(challenge);
        match self.config.kind {
            AuthKind::ClientCredentials | AuthKind::JwtBearer => {
                format!("it refuses the token of the client{explained}")
            }
            AuthKind::Oauth | AuthKind::None => self.needs_login(&format!("it refuses the token{explained}")),
        }
    }

    /// Returns why a person must log in; `None`: nobody must.
    pub fn login_needed(&self) -> Option<String> {
        self.state().login.clone()
    }

    /// Remembers why a person must log in, although the server has accepted another request.
    pub fn still_needs(&self, login: String) -> String {
        self.state().login = Some(login.clone());
        login
    }

    /// Forgets why a person had to log in: the server accepts what it gets.
    pub fn accepted(&self) {
        self.state().login = None;
    }

    /// Waits until another process has logged in or out.
    pub async fn changed(&self) {
        let mut before = None;
        loop {
            // While the store cannot be used, nothing has changed.
            if let Ok(version) = self.store.version(self.key).await
                && before.replace(version).is_some_and(|before| before != version)
            {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns the tokens for a request, as they were at most [`LOOK`] ago: whoever uses one that was renewed meanwhile is
    /// refused, and then reads them anew.
    async fn recent(&self) -> Result<Option<Arc<Tokens>>, String> {
        {
            let state = self.state();
            if state.read.is_some() && state.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
                return Ok(state.tokens.clone());
            }
        }
        self.stored().await
    }

    /// Reads the tokens, if they have changed since they were last read.
    async fn stored(&self) -> Result<Option<Arc<Tokens>>, String> {
        let looked = Instant::now();
        let version = self.store.version(self.key).await.map_err(|error| error.0)?;
        {
            let mut state = self.state();
            if state.read == Some(version) {
                state.looked = Some(looked);
                return Ok(state.tokens.clone());
            }
        }
        let record = self.store.get(self.key).await.map_err(|error| error.0)?;
        let tokens = match record {
            None => None,
            Some(record) => {
                let tokens: Tokens = serde_json::from_slice(&record)
                    .map_err(|_| "its stored tokens are of another version; log in again".to_owned())?;
                self.redact(&tokens);
                Some(Arc::new(tokens))
            }
        };
        let mut state = self.state();
        (state.tokens, state.read, state.looked) = (tokens.clone(), Some(version), Some(looked));
        Ok(tokens)
    }

    /// Makes a token a secret that is redacted everywhere.
    fn redact_text(&self, secret: &str) {
        if self.secrets.add(secret).is_err() {
            tracing::warn!(app = self.app, "a token is too short to be redacted");
        }
    }

    /// Makes tokens secrets that are redacted everywhere.
    fn redact(&self, tokens: &Tokens) {
        let secrets = [Some(&tokens.access_token), tokens.refresh_token.as_ref(), tokens.client.secret.as_ref()];
        for secret in secrets.into_iter().flatten() {
            self.redact_text(secret);
        }
    }

    async fn store_tokens(&self, tokens: Tokens) -> Result<Arc<Tokens>, String> {
        self.redact(&tokens);
        let record = serde_json::to_vec(&tokens).map_err(|_| "its tokens cannot be stored".to_owned())?;
        let stored = self.store.put(self.key, record).await;
        let tokens = Arc::new(tokens);
        let version = self.store.version(self.key).await;
        let mut state = self.state();
        state.tokens = Some(Arc::clone(&tokens));
        // If they are not in the store, they are used all the same, by this process.
        state.read = Some(version.unwrap_or_default());
        state.login = None;
        drop(state);
        stored.map_err(|error| error.0)?;
        Ok(tokens)
    }

    fn needs_login(&self, why: &str) -> String {
        let scopes = match &self.state().wanted {
            Some(Challenge { scope: Some(scope), is_insufficient: true, .. }) => format!(" (for the scopes '{scope}')"),
            Some(_) | None => String::new(),
        };
        let why = if why.is_empty() { String::new() } else { format!("; {why}") };
        let reason = format!("needs login: codecall auth login {}{scopes}{why}", self.app);
        self.state().login = Some(reason.clone());
        reason
    }

    /// Renews the token `used`, unless somebody else has done so meanwhile. One request at a time renews.
    async fn renewed(&self, used: &str, challenge: Option<Challenge>) -> Result<String, String> {
        let _alone = self.renewing.lock().await;
        let guard = self.store.lock(self.key).await.map_err(|error| error.0)?;
        let renewed = self.renewed_alone(used, challenge).await;
        guard.release().await;
        renewed
    }

    /// Does the same while nobody else does.
    async fn renewed_alone(&self, used: &str, challenge: Option<Challenge>) -> Result<String, String> {
        let tokens = self.stored().await?;
        if let Some(tokens) = &tokens
            && tokens.access_token != used
            && tokens.is_valid()
        {
            return Ok(tokens.access_token.clone());
        }
        let is_insufficient = challenge.as_ref().is_some_and(|challenge| challenge.is_insufficient);
        if self.config.kind.is_unattended() {
            return self.as_client(tokens, challenge).await;
        }
        let Some(tokens) = tokens else { return Err(self.needs_login("")) };
        if let Some(challenge) = challenge.as_ref().filter(|_| is_insufficient) {
            let wanted = challenge.scopes().collect();
            if tokens.wanted != wanted
                && let Err(error) = self.store_tokens(Tokens { wanted, ..Tokens::clone(&tokens) }).await
            {
                tracing::warn!(app = self.app, "the next login does not know the scopes to ask for: {error}");
            }
            return Err(self.needs_login(""));
        }
        // The new authorization server must get neither the refresh token nor the client of the old one.
        if let Some(challenge) = &challenge
            && let Some(issuer) = metadata::other_issuer(self, challenge, &tokens.issuer).await
        {
            let (issuer, before) = (endpoint::printable(&issuer), endpoint::printable(&tokens.issuer));
            return Err(self.needs_login(&format!("its authorization server is now {issuer}, and not {before}")));
        }
        let Some(refresh) = tokens.refresh_token.clone() else {
            return Err(self.needs_login("the token has expired"));
        };
        let grant = Grant::Refresh { token: &refresh };
        match self.request_token(&tokens.token_endpoint, &tokens.client, grant, &tokens.resource).await {
            Ok(answer) => {
                let mut next = Tokens::clone(&tokens);
                answer.apply(&mut next);
                Ok(self.store_tokens(next).await?.access_token.clone())
            }
            Err(TokenError::Refused { code, .. }) if matches!(code.as_str(), "invalid_grant" | "invalid_client") => {
                Err(self.needs_login(&format!("the authorization server does not renew the token ({code})")))
            }
            Err(error) => Err(format!("its token cannot be renewed: {error}")),
        }
    }

    /// Gets a token of the client itself.
    async fn as_client(&self, before: Option<Arc<Tokens>>, challenge: Option<Challenge>) -> Result<String, String> {
        let challenge = challenge.or_else(|| self.state().wanted.clone()).unwrap_or_default();
        let mut scopes = before.as_ref().map(|before| before.scopes.clone()).unwrap_or_default();
        let wanted = self.wanted_scopes(&challenge, None);
        if challenge.is_insufficient && before.is_some() && wanted.is_subset(&scopes) {
            return Err(format!("it refuses the token of the client{}", challenge.explained()));
        }
        scopes.extend(wanted);
        let Discovered { server, resource, .. } = metadata::discover(self, &challenge).await?;
        self.check_issuer(before.as_deref(), &server)?;
        let client = self.configured_client(&server)?.ok_or("'clientId' is missing")?;
        let assertion = match self.config.kind {
            AuthKind::JwtBearer => Some(self.exchanged_assertion(&server.issuer, &resource, &scopes).await?),
            AuthKind::ClientCredentials | AuthKind::Oauth | AuthKind::None => None,
        };
        let grant = match &assertion {
            Some(assertion) => Grant::JwtBearer { assertion, scopes: &scopes },
            None => Grant::ClientCredentials { scopes: &scopes },
        };
        let answer = self.request_token(&server.token_endpoint, &client, grant, &resource).await;
        let answer = answer.map_err(|error| format!("there is no token for the client: {error}"))?;
        let tokens = answer.into_tokens(&server, client, resource, scopes);
        Ok(self.store_tokens(tokens).await?.access_token.clone())
    }

    /// Refuses to send the secret of a configured client to another authorization server than before: the MCP server alone
    /// says which one that is.
    fn check_issuer(&self, before: Option<&Tokens>, server: &AuthorizationServer) -> Result<(), String> {
        let has_secret = self.config.kind.is_unattended()
            || self.config.client_secret.is_some()
            || self.config.client_private_key.is_some();
        match before {
            Some(before) if has_secret && self.config.issuer.is_none() && before.issuer != server.issuer => {
                let (issuer, before) = (endpoint::printable(&server.issuer), endpoint::printable(&before.issuer));
                Err(format!(
                    "its authorization server is now {issuer}; the client of the configuration is one of {before}. If the change is right, run 'codecall auth logout {}', or set 'auth.issuer'",
                    self.app
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the scopes to ask for: those of the configuration and the challenge, else those that the server has.
    fn wanted_scopes(&self, challenge: &Challenge, resource: Option<&[String]>) -> BTreeSet<String> {
        let mut scopes: BTreeSet<String> = self.config.scopes.iter().cloned().collect();
        scopes.extend(challenge.scopes());
        if scopes.is_empty() {
            scopes.extend(resource.into_iter().flatten().cloned());
        }
        scopes
    }

    /// Returns what is known of the tokens.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn credentials(&self) -> Result<CredentialState, String> {
        Ok(match self.stored().await? {
            None => CredentialState::None,
            Some(tokens) => CredentialState::Tokens {
                issuer: tokens.issuer.clone(),
                scopes: tokens.scopes.iter().cloned().collect(),
                expires_in: tokens.expires_at.map(|at| at.saturating_sub(now())),
                is_renewable: tokens.refresh_token.is_some() || self.config.kind.is_unattended(),
            },
        })
    }

    /// Revokes the tokens where the server offers that, and removes them. Returns whether there were any.
    ///
    /// # Errors
    /// They cannot be removed.
    pub async fn log_out(&self) -> Result<bool, String> {
        // Tokens that cannot be read are removed all the same.
        if let Ok(Some(tokens)) = self.stored().await
            && let Some(endpoint) = &tokens.revocation_endpoint
        {
            let token = tokens.refresh_token.as_ref().unwrap_or(&tokens.access_token);
            if let Err(error) = self.revoke(endpoint, &tokens.client, token).await {
                tracing::warn!(app = self.app, "the token is removed, but not revoked: {error}");
            }
        }
        let removed = self.store.remove(self.key).await.map_err(|error| error.0)?;
        *self.state() = State::default();
        Ok(removed)
    }

    /// Whether requests go to this address: with TLS, or without it to the host of the server itself, if that is used
    /// without TLS, and to those of `allowPrivate`.
    fn check_address(&self, what: &str, address: &str) -> Result<Url, String> {
        let url = Url::parse(address).map_err(|_| format!("{what} is not an address"))?;
        let is_own = self.url.scheme() == "http" && self.url.host_str() == url.host_str();
        let is_named = names_host(&self.config.allow_private, &url);
        match url.scheme() {
            "https" => Ok(url),
            "http" if is_own || is_named => Ok(url),
            _ => Err(format!("{what} has no TLS (https); its host may be named in 'auth.allowPrivate'")),
        }
    }
}

/// Whether a token that expires then, in seconds since 1970, can be used for some time.
pub fn is_valid(expires_at: Option<u64>) -> bool {
    expires_at.is_none_or(|at| now() + EARLY < at)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}
