//! Metadata: which authorization server issues tokens for an MCP server (RFC 9728), and what it offers (RFC 8414, OpenID
//! Connect Discovery).
//!
//! All of it comes from others. Metadata that name a server must come from it, every address must have TLS, and a
//! private address must be named in the configuration.

use super::{Authorizer, Challenge};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

/// Maximum size of a document, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// The metadata of a protected resource.
#[derive(Debug, Deserialize)]
struct ProtectedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// The metadata of an authorization server.
#[derive(Clone, Debug, Deserialize)]
pub struct AuthorizationServer {
    pub issuer: String,
    #[serde(default)]
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub device_authorization_endpoint: Option<String>,
    pub scopes_supported: Option<Vec<String>>,
    pub code_challenge_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// The issuer of tokens for a server.
pub struct Discovered {
    pub server: AuthorizationServer,
    /// The resource that tokens are for.
    pub resource: String,
    /// The scopes that the server has.
    pub scopes: Option<Vec<String>>,
}

/// Finds out who issues tokens for a server.
///
/// # Errors
/// Nobody does, or what is found must not be used: the reason.
pub async fn discover(authorizer: &Authorizer, challenge: &Challenge) -> Result<Discovered, String> {
    let own = resource_of(&authorizer.url);
    let described = protected_resource(authorizer, challenge).await?;
    let (resource, issuer, scopes) = match described {
        Some(described) => {
            check_resource(&authorizer.url, &described.resource)?;
            let servers = &described.authorization_servers;
            let issuer = match &authorizer.config.issuer {
                Some(wanted) if servers.is_empty() || servers.iter().any(|server| is_same(server, wanted)) => wanted,
                Some(_) => return Err("it does not name the authorization server of 'auth.issuer'".into()),
                None => servers.first().ok_or("it names no authorization server; name it in 'auth.issuer'")?,
            };
            (described.resource.clone(), issuer.clone(), described.scopes_supported.clone())
        }
        // As servers of 2025-03-26 do it: they are authorization servers themselves.
        None => {
            let itself = authorizer.url.origin().ascii_serialization();
            (own, authorizer.config.issuer.clone().unwrap_or(itself), None)
        }
    };
    let server = authorization_server(authorizer, &issuer).await?;
    Ok(Discovered { server, resource, scopes })
}

/// Returns the authorization server that a server now names in place of `issuer`; `None`: it still names that one, or says
/// nothing that can be used.
pub async fn other_issuer(authorizer: &Authorizer, challenge: &Challenge, issuer: &str) -> Option<String> {
    if authorizer.config.issuer.is_some() {
        return None;
    }
    let described = protected_resource(authorizer, challenge).await.ok().flatten()?;
    check_resource(&authorizer.url, &described.resource).ok()?;
    let servers = described.authorization_servers;
    if servers.iter().any(|server| is_same(server, issuer)) { None } else { servers.into_iter().next() }
}

async fn protected_resource(
    authorizer: &Authorizer,
    challenge: &Challenge,
) -> Result<Option<ProtectedResource>, String> {
    if let Some(address) = &challenge.resource_metadata {
        let url = authorizer.check_address("the address of its metadata", address)?;
        let found = get(authorizer, url).await.map_err(|reason| format!("its metadata cannot be read: {reason}"))?;
        return Ok(Some(found));
    }
    let path = authorizer.url.path().trim_end_matches('/');
    for suffix in [path, ""] {
        let mut url = authorizer.url.clone();
        url.set_path(&format!("/.well-known/oauth-protected-resource{suffix}"));
        url.set_query(None);
        if let Ok(found) = get(authorizer, url).await {
            return Ok(Some(found));
        }
        if path.is_empty() {
            break;
        }
    }
    Ok(None)
}

/// Returns the identifier of a server: its address without query and fragment.
fn resource_of(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let text = url.to_string();
    if url.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

/// Whether metadata are those of the server: a token for another resource would be sent to it.
fn check_resource(own: &Url, resource: &str) -> Result<(), String> {
    let wrong = || "its metadata are those of another resource".to_owned();
    let named = Url::parse(resource).map_err(|_| wrong())?;
    let prefix = named.path().trim_end_matches('/');
    let rest = own.path().strip_prefix(prefix).ok_or_else(wrong)?;
    if named.origin() == own.origin() && (rest.is_empty() || rest.starts_with('/')) { Ok(()) } else { Err(wrong()) }
}

/// Whether two issuers are the same. An empty path may be written with or without a slash.
fn is_same(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}

async fn authorization_server(authorizer: &Authorizer, issuer: &str) -> Result<AuthorizationServer, String> {
    let url = authorizer.check_address("the authorization server", issuer)?;
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    let mut reason = String::new();
    for path in paths {
        let mut url = url.clone();
        url.set_path(&path);
        url.set_query(None);
        match get::<AuthorizationServer>(authorizer, url).await {
            Ok(server) => return checked(authorizer, issuer, server),
            Err(problem) if reason.is_empty() => reason = problem,
            Err(_) => {}
        }
    }
    Err(format!("the metadata of the authorization server cannot be read: {reason}"))
}

/// Refuses metadata that are not those of the issuer, and addresses that must not be used.
fn checked(authorizer: &Authorizer, issuer: &str, server: AuthorizationServer) -> Result<AuthorizationServer, String> {
    if !is_same(&server.issuer, issuer) {
        return Err("the metadata of the authorization server are those of another issuer".into());
    }
    let endpoints = [
        Some(&server.token_endpoint),
        server.authorization_endpoint.as_ref(),
        server.registration_endpoint.as_ref(),
        server.revocation_endpoint.as_ref(),
        server.device_authorization_endpoint.as_ref(),
    ];
    for endpoint in endpoints.into_iter().flatten() {
        authorizer.check_address("an endpoint of the authorization server", endpoint)?;
    }
    Ok(server)
}

async fn get<T: DeserializeOwned>(authorizer: &Authorizer, url: Url) -> Result<T, String> {
    let reading = authorizer.client.get(url, MAX_BYTES);
    let bytes = tokio::time::timeout(super::endpoint::TIMEOUT, reading).await;
    let bytes = bytes.map_err(|_| "it did not answer in time".to_owned())??;
    serde_json::from_slice(&bytes).map_err(|_| "it is not the metadata that was asked for".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_those_of_the_server() {
        let own = Url::parse("https://h.example/a/mcp?x=1").expect("an address");
        for resource in
            ["https://h.example/a/mcp", "https://h.example", "https://h.example/", "https://h.example:443/a"]
        {
            assert_eq!(check_resource(&own, resource), Ok(()), "{resource}");
        }
        for resource in [
            "https://h.example/a/m",
            "https://evil.example/a/mcp",
            "http://h.example/a/mcp",
            "https://h.example:8443",
            "x",
        ] {
            assert!(check_resource(&own, resource).is_err(), "{resource}");
        }
        assert_eq!(resource_of(&own), "https://h.example/a/mcp");
        assert_eq!(resource_of(&Url::parse("https://me:pw@h.example/").expect("an address")), "https://h.example");
    }
}
