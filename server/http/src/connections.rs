//! Connections of clients: their maximum number, their timeouts, and the eviction of idle ones.
//!
//! A connection is closed if the headers of a request take too long, from its beginning or after a response, or if the
//! client does not read a response. If there are too many connections, a new one evicts the one that is idle for the
//! longest time. A connection with an active request is never evicted; if all have one, the new connection gets 503.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use codecall_config::HttpServerConfig;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// Backoff when the system accepts no connection.
const MIN_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// How long a connection is idle that is evicted because the system has no descriptors: its client may just send a request.
const MIN_IDLE: Duration = Duration::from_millis(100);
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
    open: Mutex<HashMap<u64, (Arc<Connection>, AbortHandle)>>,
    next: AtomicU64,
    started: Instant,
    /// Cancelled when connections end after their response.
    closing: CancellationToken,
}

/// One connection.
#[derive(Default)]
struct Connection {
    /// Number of requests whose response is not complete.
    active_requests: AtomicUsize,
    /// When the last active request ended, in milliseconds since the server started.
    idle_since: AtomicU64,
}

impl Connections {
    /// Takes the limits of the configuration. The system's limit of file descriptors may lower the number of
    /// connections. When `closing` is cancelled, connections end after their response.
    pub fn new(config: &HttpServerConfig, closing: CancellationToken) -> Arc<Self> {
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
            closing,
        })
    }

    /// Accepts connections until they close, then waits for the responses in progress.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, router: Router) {
        let graceful = GracefulShutdown::new();
        let mut backoff = MIN_BACKOFF;
        while let Some(accepted) = self.closing.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => {
                    backoff = MIN_BACKOFF;
                    // An event is sent at once, not when the client has acknowledged the one before.
                    let _ = stream.set_nodelay(true);
                    self.spawn(stream, router.clone(), graceful.watcher());
                }
                // The client has disconnected already.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                // The system has no descriptors or no memory left, which connections free when they end.
                Err(error) => {
                    tracing::warn!("no connection can be accepted: {error}");
                    self.evict_idle(MIN_IDLE);
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
        drop(listener);
        graceful.shutdown().await;
    }

    /// Serves a connection in a task of its own.
    fn spawn(self: &Arc<Self>, stream: TcpStream, router: Router, watcher: Watcher) {
        if self.lock().len() >= self.max_connections && !self.evict_idle(Duration::ZERO) {
            // A client that does not read this sees that the connection is closed.
            let _ = stream.try_write(FULL_RESPONSE);
            return;
        }
        let connection = Arc::new(Connection::default());
        connection.idle_since.store(self.now(), Ordering::Relaxed);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let open = Open { connections: Arc::clone(self), number };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.write_timeout));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(Box::pin(stream)), self.service(router, &connection));
        let served = watcher.watch(served);
        // It is added before the task can end.
        let mut all = self.lock();
        let task = tokio::spawn(async move {
            let _open = open;
            if let Err(error) = served.await {
                tracing::debug!("a connection has ended: {error}");
            }
        });
        all.insert(number, (connection, task.abort_handle()));
    }

    /// Returns the service of a connection. A request is active until the body of its response is dropped.
    fn service(
        self: &Arc<Self>,
        router: Router,
        connection: &Arc<Connection>,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + Send + use<> {
        let router = TowerToHyperService::new(router);
        let (connections, connection) = (Arc::clone(self), Arc::clone(connection));
        service_fn(move |request: Request<Incoming>| {
            let active = ActiveRequest::new(&connections, &connection);
            let response = router.call(request.map(Body::new));
            async move {
                let response = response.await?;
                Ok(response.map(|body| {
                    Body::new(body.map_frame(move |frame| {
                        let _ = &active;
                        frame
                    }))
                }))
            }
        })
    }

    /// Evicts the connection that is idle for the longest time, if that is at least `min_idle`. Returns whether there was one.
    fn evict_idle(&self, min_idle: Duration) -> bool {
        let now = self.now();
        let mut open = self.lock();
        let idle = open.iter().filter(|(_, (connection, _))| connection.active_requests.load(Ordering::Relaxed) == 0);
        let idle = idle.map(|(number, (connection, _))| (connection.idle_since.load(Ordering::Relaxed), *number));
        let Some((since, number)) = idle.min() else { return false };
        if u128::from(now.saturating_sub(since)) < min_idle.as_millis() {
            return false;
        }
        if let Some((_, task)) = open.remove(&number) {
            task.abort();
        }
        true
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (Arc<Connection>, AbortHandle)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection among the open ones, until it is dropped.
struct Open {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.lock().remove(&self.number);
    }
}

/// Counts a request as active until it is dropped.
struct ActiveRequest {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
}

impl ActiveRequest {
    fn new(connections: &Arc<Connections>, connection: &Arc<Connection>) -> Self {
        connection.active_requests.fetch_add(1, Ordering::Relaxed);
        Self { connections: Arc::clone(connections), connection: Arc::clone(connection) }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.connection.idle_since.store(self.connections.now(), Ordering::Relaxed);
        self.connection.active_requests.fetch_sub(1, Ordering::Relaxed);
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
