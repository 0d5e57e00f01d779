//! Tokens of clients (`openapi.….oauth`). The first call that needs one gets it, all calls use it, and it is renewed
//! before it expires or when the service refuses it. They are in memory only: a client can always get another one.

use super::client::Client;
use crate::oauth::{ClientAuth, TokenError, client_token, is_valid};
use codecall_base::redact::SecretRegistry;
use codecall_config::{ClientAuthMethod, OAuthClientConfig};
use std::sync::Arc;
use url::Url;

/// The tokens of one client.
pub struct ClientTokens {
    config: OAuthClientConfig,
    secrets: Arc<SecretRegistry>,
    /// The token that was issued last. Who holds the lock gets another one; others wait for it.
    last: tokio::sync::Mutex<Option<Token>>,
}

struct Token {
    text: Arc<str>,
    /// Seconds since 1970; `None`: the server has not said when.
    expires_at: Option<u64>,
}

impl ClientTokens {
    pub fn new(config: &OAuthClientConfig, secrets: &Arc<SecretRegistry>) -> Self {
        Self { config: config.clone(), secrets: Arc::clone(secrets), last: tokio::sync::Mutex::default() }
    }

    /// Returns a token that is valid and not `refused`.
    pub async fn get(&self, http: &Client, refused: Option<&str>) -> Result<Arc<str>, TokenError> {
        let mut last = self.last.lock().await;
        if let Some(token) = &*last
            && is_valid(token.expires_at)
            && refused != Some(&*token.text)
        {
            return Ok(Arc::clone(&token.text));
        }
        let OAuthClientConfig { token_url, client_id, client_secret, scopes, audience, client_auth } = &self.config;
        let client = ClientAuth {
            id: client_id.clone(),
            secret: client_secret.as_deref().map(str::to_owned),
            in_body: *client_auth == ClientAuthMethod::Body,
            assertion_for: None,
        };
        let url = Url::parse(token_url).map_err(|_| TokenError::Failed("'tokenUrl' is not an address".into()))?;
        let more: Vec<(&str, &str)> = audience.iter().map(|audience| ("audience", audience.as_str())).collect();
        let (text, expires_at) = client_token(http, url, &client, scopes, &more).await?.into_access_token();
        if self.secrets.add(&text).is_err() {
            tracing::warn!("a token is too short to be redacted");
        }
        let text: Arc<str> = text.into();
        *last = Some(Token { text: Arc::clone(&text), expires_at });
        Ok(text)
    }
}
