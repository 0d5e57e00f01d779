//! Connections of clients: how many there are, and how long one may say nothing.
//!
//! A connection waits for a request for a bounded time, from its beginning and after each answer, until all
//! headers are there; and for a client that reads no answer no longer either. When there are as many as
//! allowed, a new one takes the place of the one that waits for the longest time. One with a request under
//! way keeps its place; where all have one, a new connection is told to come back.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::Request;
use codecall_config::HttpServerConfig;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

/// First and longest pause when the system accepts no connection.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How many of its file descriptors the program leaves to everything else, at least.
#[cfg(unix)]
const RESERVED: u64 = 128;
/// What a connection hears that has no place.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// All connections of a server.
pub struct Connections {
    /// How many there may be.
    most: usize,
    header_timeout: Duration,
    write_timeout: Duration,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
    next: AtomicU64,
    began: Instant,
}

/// One of them.
#[derive(Default)]
struct Connection {
    /// Requests without a whole answer.
    under_way: AtomicUsize,
    /// Since when there is none, in milliseconds since the server began.
    idle_since: AtomicU64,
    /// Its place is taken.
    ended: CancellationToken,
}

impl Connections {
    /// As the configuration says, and as many as the system has descriptors for.
    pub fn new(config: &HttpServerConfig) -> Arc<Self> {
        let most = match descriptors() {
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
            most,
            header_timeout: config.header_timeout,
            write_timeout: config.write_timeout,
            open: Mutex::default(),
            next: AtomicU64::new(0),
            began: Instant::now(),
        })
    }

    /// Accept connections until `cancel` fires, and let answers end that are on their way.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, router: Router, cancel: CancellationToken) {
        let graceful = GracefulShutdown::new();
        let mut pause = FIRST_PAUSE;
        while let Some(accepted) = cancel.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => {
                    pause = FIRST_PAUSE;
                    self.begin(stream, &router, &graceful);
                }
                // The client has gone already.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                // No descriptors or no memory: both come back when connections end.
                Err(error) => {
                    tracing::warn!("no connection can be accepted: {error}");
                    self.end_idle();
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        drop(listener);
        graceful.shutdown().await;
    }

    fn begin(self: &Arc<Self>, stream: TcpStream, router: &Router, graceful: &GracefulShutdown) {
        if self.lock().len() >= self.most && !self.end_idle() {
            // Whoever does not read this hears that the connection is closed.
            let _ = stream.try_write(FULL);
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
            let under_way = UnderWay::begin(&connections, &served);
            let answered = router.call(request.map(Body::new));
            async move {
                answered.await.map(|response| response.map(|body| Body::new(Held { body, _under_way: under_way })))
            }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        let served = graceful.watch(served);
        let connections = Arc::clone(self);
        tokio::spawn(async move {
            if let Some(Err(error)) = connection.ended.run_until_cancelled(served).await {
                tracing::debug!("a connection has ended: {error}");
            }
            connections.lock().remove(&number);
        });
    }

    /// End the connection that waits for the longest time. Gives whether there is one.
    fn end_idle(&self) -> bool {
        let mut open = self.lock();
        let idle = open.iter().filter(|(_, connection)| connection.under_way.load(Ordering::Relaxed) == 0);
        let longest = idle.min_by_key(|(_, connection)| connection.idle_since.load(Ordering::Relaxed));
        let Some(number) = longest.map(|(number, _)| *number) else { return false };
        if let Some(connection) = open.remove(&number) {
            connection.ended.cancel();
        }
        true
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many connections the system has descriptors for.
#[cfg(unix)]
fn descriptors() -> Option<usize> {
    let allowed = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(allowed.saturating_sub(RESERVED).max(allowed / 2).max(1)).ok()
}

#[cfg(not(unix))]
fn descriptors() -> Option<usize> {
    None
}

/// A request without a whole answer, until it is dropped.
struct UnderWay(Arc<Connections>, Arc<Connection>);

impl UnderWay {
    fn begin(connections: &Arc<Connections>, connection: &Arc<Connection>) -> Self {
        connection.under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connections), Arc::clone(connection))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.1.idle_since.store(self.0.now(), Ordering::Relaxed);
        self.1.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer, which is under way until it is dropped.
struct Held {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for Held {
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
