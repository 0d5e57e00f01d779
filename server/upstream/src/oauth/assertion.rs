//! Assertions that are exchanged for tokens: that of a workload as it is, that of a person by the identity provider of a company.

use super::Authorizer;
use super::endpoint::{ClientAuth, with_scope};
use super::login::joined;
use codecall_base::files;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Maximum length of an assertion, in bytes.
const MAX_BYTES: u64 = 64 << 10;
/// The assertion of an identity provider for an authorization server.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The answer of an identity provider. The name of the token is that of RFC 8693; it is no access token.
#[derive(Deserialize)]
struct Exchanged {
    access_token: String,
    issued_token_type: String,
}

impl Authorizer {
    /// Returns the assertion for an authorization server.
    ///
    /// # Errors
    /// It cannot be read, or the identity provider does not exchange it: the reason.
    pub(super) async fn exchanged_assertion(
        &self,
        issuer: &str,
        resource: &str,
        scopes: &BTreeSet<String>,
    ) -> Result<String, String> {
        let own = self.own_assertion()?;
        let Some(provider) = &self.config.identity_provider else { return Ok(own) };
        let scope = joined(scopes);
        let form = with_scope(
            vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
                ("requested_token_type", ID_JAG),
                ("audience", issuer),
                ("resource", resource),
                ("subject_token", &own),
                ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            ],
            &scope,
        );
        let client = ClientAuth {
            id: provider.client_id.clone(),
            secret: provider.client_secret.as_deref().map(str::to_owned),
            in_body: false,
            assertion_for: None,
        };
        let answer = self.post_form::<Exchanged>(&provider.token_endpoint, &client, &form).await;
        let answer =
            answer.map_err(|error| format!("the identity provider does not exchange the assertion: {error}"))?;
        if answer.issued_token_type != ID_JAG {
            return Err("the identity provider has issued another kind of token than an assertion".into());
        }
        self.redact_text(&answer.access_token);
        Ok(answer.access_token)
    }

    /// Returns the assertion of the configuration.
    fn own_assertion(&self) -> Result<String, String> {
        if let Some(assertion) = &self.config.assertion {
            return Ok(assertion.to_string());
        }
        let path = self.config.assertion_file.as_deref().ok_or("it has no assertion")?;
        let text = files::read_text(path, MAX_BYTES)
            .map_err(|error| format!("its 'assertionFile' cannot be read: {error}"))?;
        let text = text.trim().to_owned();
        self.redact_text(&text);
        Ok(text)
    }
}
