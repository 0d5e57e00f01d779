//! `mcpServers.….auth`: how CodeCall is authorized towards an MCP server over HTTP.

use super::secrets::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The name of the environment variable of the key that credentials are encrypted with: 32 bytes in base64.
pub const MASTER_KEY_VARIABLE: &str = "CODECALL_MASTER_KEY";

/// How CodeCall is authorized towards a server. A server that wants OAuth says so itself; the keys are for the rest.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct AuthConfig {
    /// The owner of the access.
    #[serde(rename = "type")]
    pub kind: AuthKind,
    /// The scopes to ask for.
    #[schemars(extend("x-default" = "the scopes that the server asks for"))]
    pub scopes: Vec<String>,
    /// The id of the client that was registered for CodeCall. Without it CodeCall registers itself where the
    /// authorization server allows that.
    pub client_id: Option<String>,
    /// The secret of that client.
    pub client_secret: Option<Secret>,
    /// In place of a secret: the private key of that client in PEM (PKCS #8; P-256, Ed25519 or RSA). It signs assertions
    /// (`private_key_jwt`).
    pub client_private_key: Option<Secret>,
    /// The `https` address of a client id metadata document, which is the id of the client where the authorization server
    /// accepts such documents. The document must allow the redirect to `http://127.0.0.1:PORT/callback`.
    pub client_metadata_url: Option<String>,
    /// The assertion of `jwt_bearer`.
    pub assertion: Option<Secret>,
    /// In place of `assertion`: a file that has it, read for each token. The platform of a workload writes it anew.
    pub assertion_file: Option<PathBuf>,
    /// The identity provider of a company, where the assertion is its ID token. It exchanges that for an assertion for the
    /// authorization server (RFC 8693, ID-JAG).
    #[schemars(extend("x-default" = "none"))]
    pub identity_provider: Option<IdentityProvider>,
    /// The port of this machine to which the browser returns. Default: any free one.
    #[schemars(range(min = 1, max = 65535), extend("x-default" = "any"))]
    pub redirect_port: Option<u16>,
    /// The issuer to use, where the server names several or none.
    #[schemars(extend("x-default" = "first that the server names"))]
    pub issuer: Option<String>,
    /// Hosts (`login.internal`, `10.0.0.5:8080`) of authorization servers that may have private addresses, and be reached
    /// without TLS.
    pub allow_private: Vec<String>,
}

/// The identity provider of a company.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct IdentityProvider {
    /// The address of its token endpoint.
    pub token_endpoint: String,
    /// The id of the client that was registered there for CodeCall.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: Option<Secret>,
}

/// The owner of the access to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuthKind {
    /// That of a person, who logs in with `codecall auth login`.
    #[default]
    Oauth,
    /// That of the client itself, by its id, and its secret or private key.
    ClientCredentials,
    /// That of a workload, or of a person by the identity provider of a company. An assertion (JWT) is exchanged for a token
    /// (RFC 7523).
    JwtBearer,
    /// There is none: the server is used without tokens.
    None,
}

impl AuthKind {
    /// Whether tokens are issued without a person who logs in.
    #[must_use]
    pub fn is_unattended(self) -> bool {
        matches!(self, Self::ClientCredentials | Self::JwtBearer)
    }
}

impl AuthConfig {
    pub(super) fn check(&self, path: &str) -> Result<(), String> {
        let has_proof = self.client_secret.is_some() || self.client_private_key.is_some();
        if self.kind == AuthKind::ClientCredentials && (self.client_id.is_none() || !has_proof) {
            return Err(format!(
                "{path}: 'client_credentials' needs 'clientId', and 'clientSecret' or 'clientPrivateKey'"
            ));
        }
        if self.client_secret.is_some() && self.client_private_key.is_some() {
            return Err(format!("{path}: give either 'clientSecret' or 'clientPrivateKey', not both"));
        }
        let assertions = usize::from(self.assertion.is_some()) + usize::from(self.assertion_file.is_some());
        if self.kind == AuthKind::JwtBearer && (self.client_id.is_none() || assertions != 1) {
            return Err(format!("{path}: 'jwt_bearer' needs 'clientId', and either 'assertion' or 'assertionFile'"));
        }
        if self.kind != AuthKind::JwtBearer && (assertions > 0 || self.identity_provider.is_some()) {
            return Err(format!("{path}: an assertion and 'identityProvider' are for 'type = \"jwt_bearer\"'"));
        }
        if let Some(provider) = &self.identity_provider {
            super::mcp_servers::check_url(&format!("{path}.identityProvider.tokenEndpoint"), &provider.token_endpoint)?;
            if provider.client_id.is_empty() {
                return Err(format!("{path}.identityProvider: 'clientId' is missing"));
            }
        }
        if self.client_metadata_url.as_ref().is_some_and(|url| !url.starts_with("https://")) {
            return Err(format!("{path}.clientMetadataUrl: must begin with https://"));
        }
        if self.scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
            return Err(format!("{path}.scopes: a scope has no spaces"));
        }
        Ok(())
    }
}
