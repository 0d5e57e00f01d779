//! Connections of clients: their maximum number, their timeouts, and the eviction of idle ones when others need the room.
//!
//! A connection is closed if the headers or the body of a request take too long, or if the client does not read a response.
//! If there are too many connections, a new one evicts the one that is idle for the longest time. If all have an active
//! request, a few more are accepted, each for one request: its head says who sends it. Health checks are answered then, and
//! others if their client has less than its share ([`seats`]).

mod body;
pub mod seats;

use super::error::HttpError;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse as _, Response};
use body::TimedBody;
use codecall_config::HttpServerConfig;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use seats::{ActiveRequest, Address, Seat, Seats};
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// Backoff when the system accepts no connection.
const MIN_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// How long a connection is idle before it is evicted, unless there is no other room: its client may just send a request.
const MIN_IDLE: Duration = Duration::from_millis(100);
/// Number of connections beyond the maximum, whose next head says whether they get its room. The system may not have so
/// many: at most this part of those that it has.
const MAX_EXTRA: usize = 64;
const EXTRA_PART: usize = 8;
/// How long a connection beyond the maximum may take to send the head of its request.
const EXTRA_HEADER_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum number of file descriptors that connections leave to the rest of the program.
#[cfg(unix)]
const RESERVED_DESCRIPTORS: u64 = 128;
/// The response to a connection when there are too many.
const FULL_RESPONSE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// All connections of a server.
pub struct Connections {
    max_connections: usize,
    /// Number of connections beyond that.
    max_extra: usize,
    header_timeout: Duration,
    body_timeout: Duration,
    write_timeout: Duration,
    seats: Arc<Seats>,
    /// Cancelled when connections end after their response.
    closing: CancellationToken,
}

impl Connections {
    /// Takes the limits of the configuration. The system's limit of file descriptors may lower the number of
    /// connections. When `closing` is cancelled, connections end after their response.
    pub fn new(config: &HttpServerConfig, closing: CancellationToken) -> Arc<Self> {
        let allowed = max_by_descriptors();
        let max_extra = allowed.map_or(MAX_EXTRA, |allowed| (allowed / EXTRA_PART).clamp(1, MAX_EXTRA));
        let max_connections = match allowed.map(|allowed| allowed.saturating_sub(max_extra).max(1)) {
            Some(allowed) if config.max_connections > allowed => {
                tracing::warn!(
                    "http.maxConnections is {}, but the system allows the process only {allowed}; raise its limit of \
                     open files",
                    config.max_connections
                );
                allowed
            }
            Some(_) | None => config.max_connections,
        };
        Arc::new(Self {
            max_connections,
            max_extra,
            header_timeout: config.header_timeout,
            body_timeout: config.body_timeout,
            write_timeout: config.write_timeout,
            seats: Arc::new(Seats::new(max_connections)),
            closing,
        })
    }

    /// Accepts connections until they close, then waits for the responses in progress.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, router: Router) {
        let graceful = GracefulShutdown::new();
        let mut backoff = MIN_BACKOFF;
        while let Some(accepted) = self.closing.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    backoff = MIN_BACKOFF;
                    // An event is sent at once, not when the client has acknowledged the one before.
                    let _ = stream.set_nodelay(true);
                    self.spawn(stream, peer, router.clone(), graceful.watcher());
                }
                // The client has disconnected already.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                // The system has no descriptors or no memory left, which connections free when they end.
                Err(error) => {
                    tracing::warn!("no connection can be accepted: {error}");
                    self.seats.evict_idle(MIN_IDLE);
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
        drop(listener);
        graceful.shutdown().await;
    }

    /// Makes room for one more connection. Returns whether it is one beyond the maximum; `None`: there is no room.
    fn make_room(&self) -> Option<bool> {
        let open = self.seats.open();
        if open < self.max_connections || self.seats.evict_idle(MIN_IDLE) {
            return Some(false);
        }
        (open < self.max_connections + self.max_extra || self.seats.evict_idle(Duration::ZERO)).then_some(true)
    }

    /// Serves a connection in a task of its own.
    fn spawn(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, router: Router, watcher: Watcher) {
        let Some(is_extra) = self.make_room() else {
            // A client that does not read this sees that the connection is closed.
            let _ = stream.try_write(FULL_RESPONSE);
            return;
        };
        let header_timeout = if is_extra { self.header_timeout.min(EXTRA_HEADER_TIMEOUT) } else { self.header_timeout };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_timeout));
        let builder = {
            let mut builder = http1::Builder::new();
            // One beyond the maximum has one request.
            builder.timer(TokioTimer::new()).header_read_timeout(header_timeout).keep_alive(!is_extra);
            builder
        };
        self.seats.add(Address::of(peer), |seat| {
            let served = builder.serve_connection(TokioIo::new(Box::pin(stream)), self.service(router, &seat));
            let served = watcher.watch(served);
            let task = tokio::spawn(async move {
                let _seat = seat.closed_when_dropped();
                if let Err(error) = served.await {
                    tracing::debug!("a connection has ended: {error}");
                }
            });
            task.abort_handle()
        });
    }

    /// Returns the service of a connection. A request is active until the body of its response is dropped.
    fn service(
        &self,
        router: Router,
        seat: &Seat,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + Send + use<> {
        let router = TowerToHyperService::new(router);
        let (seat, body_timeout) = (seat.clone(), self.body_timeout);
        service_fn(move |request: Request<Incoming>| {
            let active = ActiveRequest::new(&seat);
            let timed_out = Arc::new(AtomicBool::new(false));
            let limited = |body| TimedBody::new(body, body_timeout, seat.clone(), Arc::clone(&timed_out));
            let mut request = request.map(|body| Body::new(limited(body)));
            request.extensions_mut().insert(seat.clone());
            let response = router.call(request);
            async move {
                let mut response = response.await?;
                // Whatever was made of a body that has ended early.
                if timed_out.load(Ordering::Relaxed) {
                    response = HttpError::BodyTimeout.into_response();
                }
                Ok(response.map(|body| {
                    Body::new(body.map_frame(move |frame| {
                        let _ = &active;
                        frame
                    }))
                }))
            }
        })
    }
}

/// Returns the number of connections that the system has file descriptors for; `None` if it has no limit.
#[cfg(unix)]
fn max_by_descriptors() -> Option<usize> {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(allowed.saturating_sub(RESERVED_DESCRIPTORS).max(allowed / 2).max(1)).ok()
}

#[cfg(not(unix))]
fn max_by_descriptors() -> Option<usize> {
    None
}
