//! Calls of tools by MCP without a session, which are answered outside of rmcp's service of their request.

use super::deferred;
use super::error::HttpError;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codecall_mcp::{ClientMessages, DetachedCall, Detachment};
use futures_util::{Stream, StreamExt as _, stream};
use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use std::num::NonZero;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How many calls are checked at once.
const CHECKS_PER_PROCESSOR: usize = 4;

/// Asks proxies not to collect events before they pass them on.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// The calls of a server.
#[derive(Clone)]
pub struct Calls {
    /// Ends all responses.
    cancel: CancellationToken,
    /// Those that are checked: rmcp has some tens of kilobytes for each.
    checks: Arc<Semaphore>,
}

impl Calls {
    /// Creates the calls of a server, whose responses `cancel` ends.
    pub fn new(cancel: CancellationToken) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { cancel, checks: Arc::new(Semaphore::new(CHECKS_PER_PROCESSOR * processors)) }
    }
}

/// Middleware: rmcp checks a call, and this answers it.
pub async fn answer(State(calls): State<Calls>, mut request: Request, next: Next) -> Response {
    let detachment = Detachment::default();
    request.extensions_mut().insert(detachment.clone());
    let is_call = is_call(request.headers());
    // Here and not in rmcp: a client that sends it slowly has no permit.
    let request = match with_body_read(request, is_call).await {
        Ok(request) => request,
        Err(rejection) => return rejection.into_response(),
    };
    if !is_call {
        let response = next.run(request).await;
        return match detachment.take() {
            Some(call) => deferred::later(Coming::begin(call, calls.cancel).respond()),
            None => response,
        };
    }
    let checked = Box::pin(async move {
        let _permit = calls.checks.acquire_owned().await;
        let response = next.run(request).await;
        // rmcp's response has its queues, and is kept only if it is sent.
        detachment.take().map(|call| Coming::begin(call, calls.cancel)).ok_or_else(|| Box::new(response))
    });
    deferred::later(async move {
        match checked.await {
            Ok(coming) => coming.respond().await,
            Err(response) => *response,
        }
    })
}

/// Whether a request is a call without a session, of which rmcp makes sure.
fn is_call(headers: &HeaderMap) -> bool {
    headers.get("mcp-method").is_some_and(|method| method == "tools/call") && !headers.contains_key("mcp-session-id")
}

/// Reads the body of a request. For one that `waits` it is copied: it may be a part of the buffer of the connection.
async fn with_body_read(request: Request, waits: bool) -> Result<Request, BytesRejection> {
    let (parts, body) = request.into_parts();
    let mut unread = Request::new(body);
    // A layer limits it.
    DefaultBodyLimit::disable().apply(&mut unread);
    let bytes = Bytes::from_request(unread, &()).await?;
    let bytes = if waits { Bytes::copy_from_slice(&bytes) } else { bytes };
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// The messages of a call that are not sent yet. The call is cancelled when they are dropped.
struct Coming {
    messages: ClientMessages,
    cancel: CancellationToken,
    _guard: DropGuard,
}

impl Coming {
    /// Begins a call, whose messages `cancel` ends.
    fn begin(call: DetachedCall, cancel: CancellationToken) -> Self {
        let request = CancellationToken::new();
        Self { messages: call.begin(request.clone()), cancel, _guard: request.drop_guard() }
    }

    /// Returns the response, whose status is that of the first message.
    #[expect(clippy::manual_async_fn, reason = "an async function has room for its parameters twice")]
    fn respond(mut self) -> impl Future<Output = Response> + Send {
        async move {
            let Some(first) = self.next().await else { return HttpError::Internal.into_response() };
            match status(&first) {
                StatusCode::OK => {
                    let events = Sse::new(events(first, self)).keep_alive(KeepAlive::default());
                    ([UNBUFFERED], events).into_response()
                }
                status => (status, Json(first)).into_response(),
            }
        }
    }

    async fn next(&mut self) -> Option<Box<ServerJsonRpcMessage>> {
        tokio::select! {
            message = self.messages.next() => message,
            () = self.cancel.cancelled() => None,
        }
    }
}

/// Returns the events of all messages, up to the answer.
fn events(
    first: Box<ServerJsonRpcMessage>,
    coming: Coming,
) -> impl Stream<Item = Result<Event, axum::Error>> + Send + 'static {
    stream::unfold((Some(first), Some(coming)), |(first, coming)| async move {
        let mut coming = coming?;
        let message = match first {
            Some(first) => first,
            None => coming.next().await?,
        };
        let rest = if is_answer(&message) { None } else { Some(coming) };
        Some((Event::default().json_data(message), (None, rest)))
    })
}

fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
}

/// Returns the status of a response that begins with this message, as MCP has it.
fn status(first: &ServerJsonRpcMessage) -> StatusCode {
    let ServerJsonRpcMessage::Error(error) = first else { return StatusCode::OK };
    match error.error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}
