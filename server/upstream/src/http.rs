//! MCP servers over streamable HTTP.

mod client;

use super::session::Shared;
use codecall_config::{HttpConfig, Lifecycle, Secret};
use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::HashMap;
use std::time::Duration;

/// How long a server may take to accept a connection. Responses have the timeouts of their calls.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 4;

/// Runs one connection, with messages of at most `max_bytes`, until it ends. Returns the reason.
pub async fn run(shared: &Shared, config: &HttpConfig, max_bytes: usize, lifecycle: Lifecycle) -> String {
    // If the process has installed a provider already, that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .user_agent(concat!("codecall/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect_policy())
        // A pooled connection stalls if the body of an earlier response was not read to its end.
        .pool_max_idle_per_host(0)
        .build();
    let client = match client {
        Ok(client) => client,
        Err(_) => return "the HTTP client cannot be created".into(),
    };
    let headers = match headers(config) {
        Ok(headers) => headers,
        Err(reason) => return reason,
    };
    let transport = StreamableHttpClientTransportConfig::with_uri(&*config.url)
        .custom_headers(headers)
        .max_sse_event_size(max_bytes)
        .reinit_on_expired_session(true);
    let client = client::HttpClient(client);
    shared.run_session(StreamableHttpClientTransport::with_client(client, transport), lifecycle).await
}

/// Follows redirects to the same origin only: another server must not get the headers.
fn redirect_policy() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let same_origin = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if same_origin && keeps_method && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

fn headers(config: &HttpConfig) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, value): (&String, &Secret)| {
        let header =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("the name of header '{name}' is not valid"))?;
        let mut value =
            HeaderValue::try_from(&**value).map_err(|_| format!("the value of header '{name}' is not valid"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    config.headers.iter().map(header).collect()
}
