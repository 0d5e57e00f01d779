//! The HTTP client of the transport.
//!
//! Its errors do not contain the URL, which may hold a secret: rmcp logs them. A malformed response fails its call, but
//! not the connection.

use super::post::Post;
use crate::incoming::{self, Incoming};
use crate::oauth::{Authorizer, Challenge};
use codecall_base::offload;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_util::sync::CancellationToken;

pub type Headers = HashMap<HeaderName, HeaderValue>;
pub type TransportError = StreamableHttpError<reqwest::Error>;
pub type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A `reqwest` client for the streamable HTTP transport.
#[derive(Clone)]
pub struct HttpClient {
    pub client: reqwest::Client,
    /// Cancelled when the server is gone: whoever waits for a response would wait in vain.
    pub lost: CancellationToken,
    /// How many streams in a row could not be opened.
    pub failed_streams: Arc<AtomicU32>,
    /// Has the tokens of the server.
    pub authorizer: Arc<Authorizer>,
}

/// A token cannot be had. The authorizer knows the reason.
fn no_token(reason: String) -> TransportError {
    StreamableHttpError::UnexpectedServerResponse(reason.into())
}

/// Returns the challenge of a request that was refused before it was dispatched; `None`: it was not.
fn challenge<T>(sent: &Result<T, TransportError>) -> Option<Challenge> {
    match sent {
        Err(StreamableHttpError::AuthRequired(error)) => Some(Challenge::parse(&error.www_authenticate_header)),
        Err(StreamableHttpError::InsufficientScope(error)) => {
            Some(Challenge::parse(&error.www_authenticate_header)).filter(|challenge| challenge.is_insufficient)
        }
        // Without a challenge, as some servers answer.
        Err(StreamableHttpError::UnexpectedServerResponse(text)) if text.starts_with("HTTP 401") => {
            Some(Challenge::default())
        }
        Err(StreamableHttpError::Client(error)) if error.status() == Some(reqwest::StatusCode::UNAUTHORIZED) => {
            Some(Challenge::default())
        }
        Ok(_) | Err(_) => None,
    }
}

impl HttpClient {
    /// Sends a request with the token of the moment. If the server refuses that, which it does before it looks at the
    /// request, the request is sent once more with another one.
    async fn authorized<T, F>(&self, send: impl Fn(Option<String>) -> F) -> Result<T, TransportError>
    where
        F: Future<Output = Result<T, TransportError>>,
    {
        let token = self.authorizer.token().await.map_err(no_token)?;
        let sent = send(token.clone()).await;
        let Some(challenge) = challenge(&sent) else {
            if sent.is_ok() {
                self.authorizer.accepted();
            }
            return sent;
        };
        let token = self.authorizer.refused(token.as_deref(), challenge).await.map_err(no_token)?;
        let sent = send(Some(token.clone())).await;
        match self::challenge(&sent) {
            Some(challenge) => Err(no_token(self.authorizer.refused_again(challenge))),
            None => sent,
        }
    }

    /// Notes whether a stream could be opened. Only one that broke off, or that of a session, is opened, so there was a
    /// server: it is gone if it accepts no connection, or refuses again and again, as one that was restarted does.
    fn note_stream<T>(&self, opened: &Result<T, TransportError>) {
        match opened {
            Ok(_) => self.failed_streams.store(0, Ordering::Relaxed),
            Err(StreamableHttpError::Client(error)) if error.is_connect() => self.lost.cancel(),
            Err(StreamableHttpError::ServerDoesNotSupportSse) => {}
            Err(_) => {
                if self.failed_streams.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_FAILED_STREAMS {
                    self.lost.cancel();
                }
            }
        }
    }
}

/// After how many streams in a row that could not be opened a server is given up.
const MAX_FAILED_STREAMS: u32 = 4;

fn without_url(error: TransportError) -> TransportError {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

/// Leaves the answer to `call` in a stream of events, and what belongs to it. Other events keep their ids, which a
/// stream is resumed with.
fn readable_events(events: Events, call: Option<Call>) -> Events {
    let call = Arc::new(call);
    let replace = move |event: Result<Sse, SseError>| {
        let call = Arc::clone(&call);
        async move {
            let mut event = event?;
            if let Some(data) = event.data.take() {
                let read = offload::run(data.len(), || readable_data(data, call.as_ref().as_ref()));
                event.data = match (read.await, call.as_ref()) {
                    (Ok(data), _) => data,
                    (Err(busy), Some(Call { id, .. })) => {
                        serde_json::to_string(&incoming::malformed(id.clone(), &busy.to_string())).ok()
                    }
                    (Err(_), None) => None,
                };
            }
            Ok(event)
        }
    };
    Box::pin(events.then(replace))
}

/// A request that is to be answered.
struct Call {
    id: RequestId,
    /// Whether its result does.
    stays_text: bool,
}

/// Returns the data of an event as the library reads them; `None`: they are nothing for it.
fn readable_data(data: String, call: Option<&Call>) -> Option<String> {
    let parsed = match call {
        Some(Call { id, stays_text }) => incoming::parse_answer(data.as_bytes(), id, *stays_text),
        None => incoming::parse(data.as_bytes(), |_| false),
    };
    let id = call.map(|call| &call.id);
    let is_foreign = |message: &ServerJsonRpcMessage| {
        id.is_some() && incoming::answered(message).is_some_and(|answered| Some(&answered) != id)
    };
    match parsed {
        Incoming::Message(message) | Incoming::Mended(message) if is_foreign(&message) => None,
        Incoming::Message(_) => Some(data),
        Incoming::Mended(message) => serde_json::to_string(&message).ok(),
        Incoming::Malformed { id: found, reason } => {
            let answer = found.or_else(|| id.cloned()).map(|id| incoming::malformed(id, &reason));
            answer.and_then(|answer| serde_json::to_string(&answer).ok())
        }
        Incoming::Ignored => None,
    }
}

/// The transport's own default for the maximum size of an event.
const DEFAULT_MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, auth, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let call = match &message {
            JsonRpcMessage::Request(request) => {
                Some(Call { id: request.id.clone(), stays_text: incoming::stays_text(&request.request) })
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        };
        let post = Post { uri: &uri, message: &message, session: session.as_deref(), headers: &headers, limits };
        let sent = self.authorized(|token| post.send(&self.client, token.or_else(|| auth.clone()))).await;
        match (sent, call) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), call) => {
                Ok(StreamableHttpPostResponse::Sse(readable_events(events, call), session))
            }
            (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), Some(call)) => {
                let message = format!("The response has more than {max_size} bytes; at most {max_size} are allowed");
                Ok(StreamableHttpPostResponse::Json(incoming::too_large(call.id, message), None))
            }
            (sent, _) => sent.map_err(without_url),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), TransportError> {
        let send = |token: Option<String>| {
            let (uri, session, headers) = (uri.clone(), session.clone(), headers.clone());
            self.client.delete_session(uri, session, token.or_else(|| auth.clone()), headers)
        };
        self.authorized(send).await.map_err(without_url)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, TransportError> {
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, DEFAULT_MAX_EVENT_BYTES).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
        max_bytes: usize,
    ) -> Result<Events, TransportError> {
        let send = |token: Option<String>| {
            let (uri, session, last_event) = (uri.clone(), session.clone(), last_event.clone());
            let (auth, headers) = (token.or_else(|| auth.clone()), headers.clone());
            self.client.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, max_bytes)
        };
        let opened = self.authorized(send).await;
        self.note_stream(&opened);
        opened.map(|events| readable_events(events, None)).map_err(without_url)
    }
}
