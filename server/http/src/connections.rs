//! Connections of clients: their maximum number, their timeouts, and the eviction of idle ones.
//!
//! A connection is closed if the headers of a request take too long, from its beginning or after a response, or if the
//! client does not read a response. If there are too many connections, a new one evicts the one that is idle for the
//! longest time. A connection with an active request is never evicted; if all have one, the new connection gets 503.

use super::deferred;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, Request, Uri};
use codecall_config::HttpServerConfig;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// Backoff when the system accepts no connection.
const MIN_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// Minimum number of file descriptors that connections leave to the rest of the program.
#[cfg(unix)]
const RESERVED_DESCRIPTORS: u64 = 128;
/// The response to a connection when there are too many.
const FULL_RESPONSE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// All connections of a server.
pub struct Connections {
    max_connections: usize,
    header_timeout: Duration,
    write_timeout: Duration,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    started: Instant,
}

/// One connection.
#[derive(Default)]
struct Connection {
    /// Number of requests whose response is not complete.
    active_requests: AtomicUsize,
    /// When the last active request ended, in milliseconds since the server started.
    idle_since: AtomicU64,
    /// Cancelled when the connection is evicted.
    evicted: CancellationToken,
}

impl Connections {
    /// Takes the limits of the configuration. The system's limit of file descriptors may lower the number of
    /// connections.
    pub fn new(config: &HttpServerConfig) -> Arc<Self> {
        let max_connections = match max_by_descriptors() {
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
            header_timeout: config.header_timeout,
            write_timeout: config.write_timeout,
            open: Mutex::default(),
            next: AtomicU64::new(0),
            started: Instant::now(),
        })
    }

    /// Accepts connections until `cancel` is cancelled, then waits for the responses in progress.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, router: Router, cancel: CancellationToken) {
        let graceful = GracefulShutdown::new();
        let mut backoff = MIN_BACKOFF;
        while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => {
                    backoff = MIN_BACKOFF;
                    // An event is sent at once, not when the client has acknowledged the one before.
                    let _ = stream.set_nodelay(true);
                    self.spawn(stream, &router, &graceful);
                }
                // The client has disconnected already.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                // The system has no descriptors or no memory left, which connections free when they end.
                Err(error) => {
                    tracing::warn!("no connection can be accepted: {error}");
                    self.evict_idle();
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
        drop(listener);
        graceful.shutdown().await;
    }

    /// Serves a connection in a task of its own.
    fn spawn(self: &Arc<Self>, stream: TcpStream, router: &Router, graceful: &GracefulShutdown) {
        if self.lock().len() >= self.max_connections && !self.evict_idle() {
            // A client that does not read this sees that the connection is closed.
            let _ = stream.try_write(FULL_RESPONSE);
            return;
        }
        let connection = Arc::new(Connection::default());
        connection.idle_since.store(self.now(), Ordering::Relaxed);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, Arc::clone(&connection));
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_timeout));
        let (connections, served) = (Arc::clone(self), Arc::clone(&connection));
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let active = ActiveRequest::new(&connections, &served);
            let response = router.call(detached(request).map(Body::new));
            // In a box, because it has room for the request.
            let response = Box::pin(response);
            async move {
                let response = match response.await {
                    Ok(response) => deferred::resolved(response.map(Body::new)).await,
                    Err(never) => match never {},
                };
                Ok::<_, Infallible>(response.map(|body| Body::new(TrackedBody { body, _active: active })))
            }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        // In a box: the task would hold it twice.
        let served = Box::pin(graceful.watch(served));
        let connections = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(Err(error)) = connection.evicted.run_until_cancelled(served).await {
                tracing::debug!("a connection has ended: {error}");
            }
            connections.lock().remove(&number);
        });
    }

    /// Evicts the connection that is idle for the longest time. Returns whether there was one.
    fn evict_idle(&self) -> bool {
        let mut open = self.lock();
        let idle = open.iter().filter(|(_, connection)| connection.active_requests.load(Ordering::Relaxed) == 0);
        let longest = idle.min_by_key(|(_, connection)| connection.idle_since.load(Ordering::Relaxed));
        let Some(number) = longest.map(|(number, _)| *number) else { return false };
        if let Some(connection) = open.remove(&number) {
            connection.evicted.cancel();
        }
        true
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies the address and the values of the headers: they are parts of the buffer of the connection, of some kilobytes, which
/// would be kept as long as somebody has one of them.
fn detached<B>(mut request: Request<B>) -> Request<B> {
    for value in request.headers_mut().values_mut() {
        if let Ok(own) = HeaderValue::from_bytes(value.as_bytes()) {
            *value = own;
        }
    }
    if let Ok(own) = Uri::try_from(request.uri().to_string()) {
        *request.uri_mut() = own;
    }
    request
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

/// Counts a request as active until it is dropped.
struct ActiveRequest(Arc<Connections>, Arc<Connection>);

impl ActiveRequest {
    fn new(connections: &Arc<Connections>, connection: &Arc<Connection>) -> Self {
        connection.active_requests.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connections), Arc::clone(connection))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.1.idle_since.store(self.0.now(), Ordering::Relaxed);
        self.1.active_requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response, whose request is active until the body is dropped.
struct TrackedBody {
    body: Body,
    _active: ActiveRequest,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
