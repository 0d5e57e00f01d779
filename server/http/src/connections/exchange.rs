//! The requests and responses of a connection.
//!
//! hyper has 16 KiB of buffers for each connection, also while its client waits for a response, which may take minutes. So a
//! connection is taken out of hyper when the response to its request comes later. When the response is there, hyper reads
//! the request again, in a short form, and sends the response.

use super::wire::Wire;
use super::{Connection, Connections};
use crate::deferred;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Method, Request, Uri, Version};
use axum::response::Response;
use futures_util::future::BoxFuture;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// What serves a connection.
pub struct Exchanges {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
    router: TowerToHyperService<Router>,
}

impl Exchanges {
    /// Creates what serves a connection by a router.
    pub fn new(connections: Arc<Connections>, connection: Arc<Connection>, router: Router) -> Self {
        Self { connections, connection, router: TowerToHyperService::new(router) }
    }

    /// Serves the connection until it ends.
    #[expect(clippy::manual_async_fn, reason = "an async function has room for its parameters twice")]
    pub fn serve(self, wire: Wire) -> impl Future<Output = ()> + Send {
        async move {
            // In boxes is what a connection does not have while its client waits.
            let Some(wire) = Box::pin(self.begun(wire)).await else { return };
            let mut next = (wire, None);
            while let Some(mut parked) = Box::pin(self.exchange(next)).await {
                let Some(response) = std::future::poll_fn(|context| parked.poll_response(context)).await else {
                    return;
                };
                next = parked.resumed(response);
            }
        }
    }

    /// Waits until something comes: hyper has buffers also for a connection on which nothing does.
    async fn begun(&self, wire: Wire) -> Option<Wire> {
        let begun = std::future::poll_fn(|context| wire.poll_readable(context));
        let begun = self.connections.closing.run_until_cancelled(begun);
        let begun = tokio::time::timeout(self.connections.header_timeout, begun).await;
        matches!(begun, Ok(Some(Ok(())))).then_some(wire)
    }

    /// Serves requests until the response to one comes later, or the connection ends. `resumed` is the response to the first
    /// request, if that is read again.
    async fn exchange(&self, (wire, resumed): (Wire, Option<Response>)) -> Option<Box<Parked>> {
        let Self { connections, connection, router } = self;
        let (resumed, parked) = (&Mutex::new(resumed), &Mutex::new(None));
        let service = service_fn(|request: Request<Incoming>| {
            let answering = match take(resumed) {
                Some(response) => Err(response),
                // In a box, because it has room for the request.
                None => Ok((
                    ActiveRequest::new(connections, connection),
                    short_form(&request),
                    Box::pin(router.call(detached(request).map(Body::new))),
                )),
            };
            async move {
                let (active, short, response) = match answering {
                    Ok(answering) => answering,
                    Err(response) => return Ok(response),
                };
                let response = match response.await {
                    Ok(response) => response.map(Body::new),
                    Err(never) => match never {},
                };
                let response = match (deferred::split(response), short) {
                    (Ok(response), _) => response,
                    (Err(coming), None) => coming.await,
                    (Err(response), Some(request)) => {
                        *parked.lock().unwrap_or_else(PoisonError::into_inner) = Some((response, active, request));
                        // The connection is taken out of hyper, which drops this.
                        return std::future::pending().await;
                    }
                };
                Ok::<_, Infallible>(tracked(response, active))
            }
        });
        let mut served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(connections.header_timeout)
            .serve_connection(TokioIo::new(wire), service);
        let mut closing = pin!(connections.closing.cancelled());
        let mut is_closing = false;
        let parked = std::future::poll_fn(|context| {
            loop {
                if let Poll::Ready(ended) = Pin::new(&mut served).poll(context) {
                    if let Err(error) = ended {
                        tracing::debug!("a connection has ended: {error}");
                    }
                    return Poll::Ready(None);
                }
                // What is not written yet, of the response before, is in hyper.
                if !connection.is_blocked.load(Ordering::Relaxed)
                    && let Some(parked) = take(parked)
                {
                    return Poll::Ready(Some(parked));
                }
                if is_closing || closing.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                is_closing = true;
                Pin::new(&mut served).graceful_shutdown();
            }
        });
        let parked = parked.await?;
        let parts = served.into_parts();
        let mut wire = parts.io.into_inner();
        wire.unread(&parts.read_buf);
        let (response, active, request) = parked;
        Some(Box::new(Parked { wire, response, active, request }))
    }
}

/// A request whose response comes later, and its connection.
struct Parked {
    wire: Wire,
    response: BoxFuture<'static, Response>,
    active: ActiveRequest,
    /// The short form of the request.
    request: String,
}

impl Parked {
    /// Waits for the response; `None` if the client closes the connection before.
    fn poll_response(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        match self.response.as_mut().poll(context) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            Poll::Pending => self.wire.poll_closed(context).map(|()| None),
        }
    }

    /// Returns the connection, of which the request can be read again, and the response to it.
    fn resumed(self, response: Response) -> (Wire, Option<Response>) {
        let Self { mut wire, active, request, .. } = self;
        wire.unread(request.as_bytes());
        (wire, Some(tracked(response, active)))
    }
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns what of a request decides on the form of its response; `None` if hyper still has to do something for the request.
fn short_form<B>(request: &Request<B>) -> Option<String> {
    let version = match request.version() {
        Version::HTTP_10 => "1.0",
        Version::HTTP_11 => "1.1",
        _ => return None,
    };
    if request.method() != Method::POST || request.headers().contains_key(EXPECT) {
        return None;
    }
    let mut short = format!("POST / HTTP/{version}\r\n");
    for value in request.headers().get_all(CONNECTION) {
        short += &format!("connection: {}\r\n", value.to_str().ok()?);
    }
    Some(short + "\r\n")
}

fn tracked(response: Response, active: ActiveRequest) -> Response {
    response.map(|body| Body::new(TrackedBody { body, _active: active }))
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
