//! MCP servers over streamable HTTP.

mod client;
mod post;

use super::mcp;
use super::negotiate::{Negotiated, Plan, SECOND_REQUEST_AFTER, negotiate};
use super::ordered::Ordered;
use super::session::Shared;
use crate::oauth::Authorizer;
use codecall_config::{HttpConfig, Secret};
use futures_util::future::{Either, select};
use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a server may take to accept a connection. Responses have the timeouts of their calls.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a stream of events that broke off is resumed, and the first pause, which doubles.
const MAX_RESUMES: usize = 4;
const RESUME_AFTER: Duration = Duration::from_millis(200);
/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 4;

/// Runs one connection, with messages of at most `max_bytes`, until it ends. Returns the reason.
pub async fn run(shared: &Shared, config: &HttpConfig, max_bytes: usize, plan: Plan) -> String {
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
    let authorizer = match shared.authorizer() {
        Some(Ok(authorizer)) => Arc::clone(authorizer),
        Some(Err(reason)) => return reason.clone(),
        None => return "it is not a server over HTTP".into(),
    };
    let lost = CancellationToken::new();
    let mut resumes = ExponentialBackoff::default();
    (resumes.max_times, resumes.base_duration) = (Some(MAX_RESUMES), RESUME_AFTER);
    let mut transport = StreamableHttpClientTransportConfig::with_uri(&*config.url)
        .custom_headers(headers)
        .max_sse_event_size(max_bytes)
        .max_json_response_size(max_bytes)
        .reinit_on_expired_session(true);
    transport.retry_config = Arc::new(resumes);
    let plain = client.clone();
    let failed_streams = Arc::default();
    let client = client::HttpClient { client, lost: lost.clone(), failed_streams, authorizer: Arc::clone(&authorizer) };
    let open = || {
        let transport = StreamableHttpClientTransport::with_client(client.clone(), transport.clone());
        Ordered::new(transport, Arc::clone(&shared.notifications))
    };
    let reason = shared.run_session(negotiate_over_http(open, plan, &authorizer), lost).await;
    if reason == mcp::EXITED {
        return "it closed the connection before it responded".into();
    }
    if let Some(login) = authorizer.login_needed() {
        return login;
    }
    if is_refusal_of_method(&reason) && speaks_old_sse(&plain, config).await {
        return "it speaks only HTTP+SSE of the protocol 2024-11-05, which is not supported. Use its address for streamable HTTP, if it has one (often '/mcp' in place of '/sse'). Or start a bridge as 'command', such as 'npx -y mcp-remote URL --transport sse-only'".into();
    }
    reason
}

/// Whether a server does not take requests as streamable HTTP has them.
fn is_refusal_of_method(reason: &str) -> bool {
    ["404", "405", "400"].iter().any(|status| reason.contains(status))
}

/// Whether a server speaks the transport that streamable HTTP has replaced: its stream begins with the event `endpoint`.
async fn speaks_old_sse(client: &reqwest::Client, config: &HttpConfig) -> bool {
    let looking = async {
        let request = client.get(&*config.url).header(reqwest::header::ACCEPT, "text/event-stream");
        let mut response = request.headers(headers(config).ok()?.into_iter().collect()).send().await.ok()?;
        let is_stream =
            response.headers().get(reqwest::header::CONTENT_TYPE)?.as_bytes().starts_with(b"text/event-stream");
        let mut begin = Vec::new();
        while is_stream && response.status().is_success() && begin.len() < 4096 {
            begin.extend(response.chunk().await.ok()??);
            if begin.windows(15).any(|part| part == b"event: endpoint")
                || begin.windows(14).any(|part| part == b"event:endpoint")
            {
                return Some(());
            }
        }
        None
    };
    tokio::time::timeout(CONNECT_TIMEOUT, looking).await.ok().flatten().is_some()
}

/// Negotiates with a connection for each request: a request that hangs blocks its connection.
async fn negotiate_over_http<T>(
    open: impl Fn() -> T,
    plan: Plan,
    authorizer: &Authorizer,
) -> Result<Negotiated<T>, String>
where
    T: Transport<RoleClient> + 'static,
{
    let mut first = pin!(negotiate(open(), Plan::Only(plan.first())));
    let Some(second) = plan.second() else { return first.await };
    let early = match plan.is_impatient() {
        true => tokio::time::timeout(SECOND_REQUEST_AFTER, &mut first).await.ok(),
        false => Some((&mut first).await),
    };
    match early {
        Some(Ok(negotiated)) => Ok(negotiated),
        // Whatever it refuses: servers refuse requests that they do not know in many ways.
        Some(Err(_)) => {
            // Some servers ask for a login only where they know the request.
            let login = authorizer.login_needed();
            let negotiated = negotiate(open(), Plan::Only(second)).await;
            match login {
                Some(login) if negotiated.is_err() => Err(authorizer.still_needs(login)),
                Some(_) | None => negotiated,
            }
        }
        None => match select(first, pin!(negotiate(open(), Plan::Only(second)))).await {
            Either::Left((Ok(negotiated), _)) | Either::Right((Ok(negotiated), _)) => Ok(negotiated),
            Either::Left((Err(_), other)) => other.await,
            Either::Right((Err(reason), other)) => other.await.map_err(|_| reason),
        },
    }
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
