//! The server over HTTP: MCP (`/mcp`), stateless steps (`/v1/evaluate`, `/v1/tools/typescript`) and chat
//! completions in front of a model server (`/v1/chat/completions`, `/v1/models`). For those who operate it: `/healthz`,
//! `/readyz`, `/v1/status`, `/metrics`, and the page at `/ui/`.
//!
//! The server keeps no state between two requests, except for the sessions of MCP clients that use the protocol with
//! sessions. It does not speak TLS; use a reverse proxy. This crate does not know the command line.

#![forbid(unsafe_code)]

mod api;
mod approvals;
mod chat;
mod clients;
mod connections;
mod error;
mod guard;
mod jwt;
mod page;
mod runs;
mod scripts;
mod sessions;
mod trace;

use axum::extract::DefaultBodyLimit;
use axum::routing::{any_service, get, post};
use axum::{Json, Router};
use chat::Chat;
use clients::Clients;
use codecall_base::error::Error;
use codecall_config::HttpServerConfig;
use codecall_hub::LiveHub;
use codecall_mcp::Handler;
use connections::Connections;
pub use error::HttpError;
use guard::Guard;
use page::Page;
use rmcp::transport::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use sessions::Sessions;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

/// Path of the health check.
const HEALTH_PATH: &str = "/healthz";
/// Path of the readiness check.
const READY_PATH: &str = "/readyz";
/// Paths that need no token: they only say whether the server works.
const OPEN_PATHS: [&str; 2] = [HEALTH_PATH, READY_PATH];
/// How long a client may pause while it sends a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the last answers of sessions may take to be written.
const WRITE_PERIOD: Duration = Duration::from_millis(100);
/// How long responses in progress may take after the shutdown begins.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// A server that is bound to its address, and serves requests when [`HttpServer::serve`] is called.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    page: Option<Arc<Page>>,
}

impl HttpServer {
    /// Binds to an address such as `127.0.0.1:8931` or `localhost:8931`. A port alone means that of the loopback
    /// address; port 0 lets the system choose a free one.
    ///
    /// # Errors
    /// The address is invalid or in use, or other machines can reach it and no token is configured.
    pub async fn bind(address: &str, config: &HttpServerConfig) -> Result<Self, Error> {
        let wanted = match address.trim_start_matches(':').parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            Err(_) => address.to_owned(),
        };
        let fault = |source| Error::Io { path: format!("--http {address}"), source };
        let listener = TcpListener::bind(&wanted).await.map_err(fault)?;
        let address = listener.local_addr().map_err(fault)?;
        if !address.ip().is_loopback() && !config.is_protected() {
            return Err(Error::Config(format!(
                "--http {wanted}: other machines reach this address; set 'http.token' in the configuration, or use 127.0.0.1"
            )));
        }
        Ok(Self { listener, address, page: None })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the page for operators too. Returns a receiver of the address to open, which has a token that is valid once; it
    /// changes when the token was used.
    ///
    /// # Errors
    /// The system has no source of random numbers.
    pub fn with_page(&mut self, hub: &LiveHub) -> Result<watch::Receiver<String>, Error> {
        let unavailable = |_| Error::Config("the system has no source of random numbers".into());
        let page = Page::new(hub, self.address).map_err(unavailable)?;
        let links = page.links();
        self.page = Some(Arc::new(page));
        Ok(links)
    }

    /// Serves requests until `cancel` is cancelled, then ends all runs with `POOL_DISPOSED` and finishes those in progress for up to [`GRACE_PERIOD`].
    ///
    /// # Errors
    /// The configuration of the model server is unusable.
    pub async fn serve(self, hub: impl Into<LiveHub>, cancel: CancellationToken) -> Result<(), Error> {
        let hub: LiveHub = hub.into();
        // The instructions of the first session name the tools that are known.
        hub.get().recalled().await;
        let sessions = CancellationToken::new();
        let router = router(&hub, self.address, self.page, &sessions)?;
        let serving = Connections::new(&hub.get().config().http, cancel.clone()).serve(self.listener, router);
        let ended = async {
            cancel.cancelled().await;
            // Running scripts end, and their requests are answered before the sessions end.
            hub.end_runs();
            let _ = tokio::time::timeout(GRACE_PERIOD, hub.answered()).await;
            tokio::time::sleep(WRITE_PERIOD).await;
            sessions.cancel();
            tokio::time::sleep(GRACE_PERIOD).await;
        };
        tokio::select! {
            () = serving => {}
            () = ended => {}
        }
        Ok(())
    }
}

/// Creates a client of another server, without proxies of the environment.
///
/// # Errors
/// The client cannot be created.
pub fn client(timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    // It fails if there is a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(timeout).no_proxy().redirect(reqwest::redirect::Policy::none()).build()
}

/// Returns a token that is cancelled when the guard is dropped: when the client no longer waits for the response.
fn cancel_on_drop() -> (CancellationToken, DropGuard) {
    let cancel = CancellationToken::new();
    (cancel.clone(), cancel.drop_guard())
}

/// Returns the router of a server.
///
/// # Errors
/// The configuration of the model server is unusable.
pub fn router(
    live: &LiveHub,
    address: SocketAddr,
    page: Option<Arc<Page>>,
    cancel: &CancellationToken,
) -> Result<Router, Error> {
    let hub = live.get();
    let config = &hub.config().http;
    let cancel = cancel.clone();
    let of_client = Box::new({
        let cancel = cancel.clone();
        move |live: &LiveHub| endpoints(live, &cancel)
    });
    let clients = Clients::new(config, live, of_client)?;
    let guard = Arc::new(Guard::new(config, address, clients).with_page(page.is_some()));
    let mut router = endpoints(live, &cancel)?;
    if let Some((paths, metadata)) = clients::metadata(config) {
        for path in paths {
            let metadata = metadata.clone();
            router = router.route(&path, get(|| async { Json(metadata) }));
        }
    }
    if let Some(page) = page {
        let page = page::router(page, Arc::clone(&guard));
        router = router.merge(page.layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT)));
    }
    let router = router.layer(axum::middleware::from_fn_with_state(Arc::clone(&guard), guard::check));
    let router = match guard.cors() {
        Some(cors) => router.layer(cors),
        None => router,
    };
    // Before a preflight request is answered.
    Ok(router.layer(axum::middleware::from_fn_with_state(guard, guard::check_host)))
}

/// Creates the endpoints of a hub.
fn endpoints(live: &LiveHub, cancel: &CancellationToken) -> Result<Router, Error> {
    let hub = live.get();
    let config = &hub.config().http;
    let handler = Handler::new(live.clone());
    // The layers below check hosts, origins and bodies for all paths.
    let mut mcp = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(config.max_body_bytes)
        .with_cancellation_token(cancel.child_token());
    let mut sessions = Sessions::new(config.max_sessions, config.session_idle);
    if let Some(replicas) = hub.replicas() {
        sessions = sessions.shared_by(replicas, hub.scope(), config.session_idle);
    }
    mcp.session_store = sessions.store();
    let mcp = StreamableHttpService::new(move || Ok(handler.for_session()), Arc::new(sessions), mcp);
    let chat = Arc::new(Chat::new(live)?);
    let masked = Router::new()
        .route("/v1/tools/typescript", post(api::typescript))
        .route("/v1/status", get(api::status))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{id}", get(approvals::show).post(approvals::decide))
        .merge(scripts::router())
        .merge(runs::router())
        .layer(axum::middleware::map_response_with_state(live.clone(), api::without_secrets));
    Ok(Router::new()
        .route("/v1/evaluate", post(api::evaluate))
        .route("/metrics", get(api::metrics))
        .route(READY_PATH, get(api::readiness))
        .merge(masked)
        .with_state(live.clone())
        .route("/v1/chat/completions", post(chat::completions))
        .route("/v1/models", get(chat::models))
        .with_state(chat)
        .route(HEALTH_PATH, get(|| async { "ok\n" }))
        .fallback(|| async { HttpError::NotFound })
        .method_not_allowed_fallback(|| async { HttpError::MethodNotAllowed })
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(config.max_body_bytes))
        .route(
            "/mcp",
            any_service(mcp)
                .layer(axum::middleware::from_fn(sessions::explain_refusal))
                .layer(axum::middleware::from_fn_with_state(config.max_body_bytes, api::limit_values)),
        )
        .layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT))
        .layer(axum::middleware::from_fn(trace::in_span)))
}
