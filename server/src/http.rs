//! The server over HTTP: MCP (`/mcp`), stateless steps (`/v1/evaluate`, `/v1/tools/typescript`) and chat
//! completions in front of a model server (`/v1/chat/completions`, `/v1/models`).
//!
//! Nothing of a conversation is kept here between two requests, but for the sessions of MCP clients that
//! speak a protocol with sessions. TLS is left to a proxy in front.

mod api;
mod chat;
mod connections;
mod error;
mod guard;
mod sessions;

use crate::front::Front;
use crate::hub::Hub;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any_service, get, post};
use chat::Chat;
use codecall_base::error::Error;
use codecall_config::HttpServerConfig;
use connections::Connections;
pub use error::HttpError;
use guard::Guard;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use sessions::Sessions;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

/// Whether the server is there; asks for no token.
const HEALTH: &str = "/healthz";
/// How long a client may stop in the middle of a body.
const BODY_PAUSE: Duration = Duration::from_secs(30);
/// How long answers may take that are on their way when the server ends.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// A server that has its address and answers as soon as it is told to.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Take an address: `127.0.0.1:8931`, `localhost:8931`, or a port alone, which is that of loopback. Port
    /// 0 is any free one.
    ///
    /// # Errors
    /// It is not an address, it is taken, or other machines reach it and no token is configured.
    pub async fn bind(address: &str, config: &HttpServerConfig) -> Result<Self, Error> {
        let wanted = match address.trim_start_matches(':').parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            Err(_) => address.to_owned(),
        };
        let fault = |source| Error::Io { path: format!("--http {address}"), source };
        let listener = TcpListener::bind(&wanted).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        if !address.ip().is_loopback() && config.token.is_none() {
            return Err(Error::Config(format!(
                "--http {wanted}: other machines reach this address; set 'http.token' in the configuration, or use 127.0.0.1"
            )));
        }
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answer until `cancel` fires, and then what is on its way for a moment.
    ///
    /// # Errors
    /// The model server of the configuration cannot be used at all.
    pub async fn serve(self, hub: Arc<Hub>, cancel: CancellationToken) -> Result<(), Error> {
        let router = router(&hub, self.address, &cancel)?;
        let serving = Connections::new(&hub.config().http).serve(self.listener, router, cancel.clone());
        let ended = async {
            cancel.cancelled().await;
            tokio::time::sleep(GRACE_PERIOD).await;
        };
        tokio::select! {
            () = serving => {}
            () = ended => {}
        }
        Ok(())
    }
}

/// What a request that nobody waits for any more cancels: with the guard, everything is dropped.
fn while_wanted() -> (CancellationToken, DropGuard) {
    let cancel = CancellationToken::new();
    (cancel.clone(), cancel.drop_guard())
}

pub(crate) fn router(hub: &Arc<Hub>, address: SocketAddr, cancel: &CancellationToken) -> Result<Router, Error> {
    let config = &hub.config().http;
    let front = Front::new(Arc::clone(hub));
    // Hosts, origins and bodies are looked at below, for all paths.
    let mcp = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(config.max_body_bytes)
        .with_cancellation_token(cancel.child_token());
    let sessions = Sessions::new(config.max_sessions, Duration::from_millis(config.session_idle_ms));
    let mcp = StreamableHttpService::new(move || Ok(front.session()), Arc::new(sessions), mcp);
    let chat = Arc::new(Chat::new(hub)?);
    let guard = Arc::new(Guard::new(config, address));
    let router = Router::new()
        .route("/mcp", any_service(mcp).layer(axum::middleware::from_fn(sessions::explained)))
        .route("/v1/evaluate", post(api::evaluate))
        .route("/v1/tools/typescript", post(api::typescript))
        .with_state(Arc::clone(hub))
        .route("/v1/chat/completions", post(chat::completions))
        .route("/v1/models", get(chat::models))
        .with_state(chat)
        .route(HEALTH, get(|| async { "ok\n" }))
        .fallback(|| async { HttpError::NotFound })
        .method_not_allowed_fallback(|| async { HttpError::MethodNotAllowed })
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(config.max_body_bytes))
        .layer(RequestBodyTimeoutLayer::new(BODY_PAUSE))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&guard), guard::check));
    Ok(match guard.cors() {
        Some(cors) => router.layer(cors),
        None => router,
    })
}
