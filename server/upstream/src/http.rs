//! MCP servers over streamable HTTP.

mod discreet;

use super::session::Shared;
use codecall_config::{HttpConfig, Lifecycle, Secret};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::HashMap;
use std::time::Duration;

/// How long a server may take to accept a connection. Answers have the timeouts of their calls.
const CONNECT: Duration = Duration::from_secs(10);

/// One connection, with messages of at most `longest` bytes. Gives why it is over.
pub async fn live(shared: &Shared, config: &HttpConfig, longest: usize, lifecycle: Lifecycle) -> String {
    // Where another part of the process has chosen one already, that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .user_agent(concat!("codecall/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirects())
        // Connections that are used again stall where a body was not read to its end.
        .pool_max_idle_per_host(0)
        .build();
    let client = match client {
        Ok(client) => client,
        Err(_) => return "no HTTP client can be made".into(),
    };
    let headers = match headers(config) {
        Ok(headers) => headers,
        Err(reason) => return reason,
    };
    let transport = StreamableHttpClientTransportConfig::with_uri(&*config.url)
        .custom_headers(headers)
        .max_sse_event_size(longest)
        .reinit_on_expired_session(true);
    let client = discreet::Discreet(client);
    shared.talk(StreamableHttpClientTransport::with_client(client, transport), lifecycle).await
}

/// Redirects are followed on the same server only: another one must not get the headers.
fn redirects() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        let keeps_method = matches!(attempt.status().as_u16(), 307 | 308);
        if same && keeps_method && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
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
