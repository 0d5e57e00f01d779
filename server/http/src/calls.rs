//! Calls of tools by MCP without a session, which are answered outside of rmcp's service of their request.

use super::deferred;
use super::error::HttpError;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codecall_mcp::{ClientMessages, DetachedCall, Detachment};
use futures_util::{Stream, stream};
use rmcp::model::{ErrorCode, ServerJsonRpcMessage};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Asks proxies not to collect events before they pass them on.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// Middleware: rmcp checks a call, and this answers it. `cancel` ends all responses.
pub async fn answer(State(cancel): State<CancellationToken>, mut request: Request, next: Next) -> Response {
    let detachment = Detachment::default();
    request.extensions_mut().insert(detachment.clone());
    let response = next.run(request).await;
    match detachment.take() {
        Some(call) => deferred::later(respond(call, cancel)),
        None => response,
    }
}

/// Begins a call and returns its response, whose status is that of the first message. The call is cancelled when the response is
/// dropped.
// Not an async function, which would keep the call.
fn respond(call: DetachedCall, cancel: CancellationToken) -> impl Future<Output = Response> + Send + 'static {
    let request = CancellationToken::new();
    let mut coming = Coming { messages: call.begin(request.clone()), cancel, _guard: request.drop_guard() };
    async move {
        let Some(first) = coming.next().await else { return HttpError::Internal.into_response() };
        match status(&first) {
            StatusCode::OK => {
                let events = Sse::new(events(first, coming)).keep_alive(KeepAlive::default());
                ([UNBUFFERED], events).into_response()
            }
            status => (status, Json(first)).into_response(),
        }
    }
}

/// The messages that are not sent yet.
struct Coming {
    messages: ClientMessages,
    cancel: CancellationToken,
    _guard: DropGuard,
}

impl Coming {
    async fn next(&mut self) -> Option<Box<ServerJsonRpcMessage>> {
        tokio::select! {
            message = self.messages.recv() => message,
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
