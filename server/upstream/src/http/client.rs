//! The HTTP client of the transport.
//!
//! Its errors do not contain the URL, which may hold a secret: rmcp logs them. A malformed response fails its call, but
//! not the connection.

use crate::incoming::{self, Incoming};
use crate::oauth::{Authorizer, Challenge};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio_util::sync::CancellationToken;

type Headers = HashMap<HeaderName, HeaderValue>;
type TransportError = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

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

/// The prefix of the transport's error about a response that it cannot parse.
const PARSE_ERROR: &str = "could not parse JSON response";

/// Replaces each malformed response by an error response. If its id cannot be found, `call` gets the error.
fn replace_malformed(events: Events, call: Option<RequestId>) -> Events {
    let replace = move |event: Result<Sse, SseError>| {
        let mut event = event?;
        let Some(data) = &event.data else { return Ok(event) };
        match incoming::parse(data.as_bytes()) {
            Incoming::Malformed { id, reason } => {
                if let Some(id) = id.or_else(|| call.clone()) {
                    event.data = serde_json::to_string(&incoming::malformed(id, &reason)).ok();
                }
            }
            // The library reads the text again, and would lose what was added.
            Incoming::Message(message) if is_tool_list(&message) => event.data = serde_json::to_string(&message).ok(),
            Incoming::Message(_) | Incoming::Ignored => {}
        }
        Ok(event)
    };
    Box::pin(events.map(replace))
}

fn is_tool_list(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Response(response) if matches!(response.result, ServerResult::ListToolsResult(_)))
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
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, DEFAULT_MAX_EVENT_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        max_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let call = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        };
        let send = |token: Option<String>| {
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session.clone(), headers.clone());
            let auth = token.or_else(|| auth.clone());
            self.client.post_message_with_max_sse_event_size(uri, message, session, auth, headers, max_bytes)
        };
        let sent = self.authorized(send).await;
        match (sent, call) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), call) => {
                Ok(StreamableHttpPostResponse::Sse(replace_malformed(events, call), session))
            }
            (Err(StreamableHttpError::UnexpectedServerResponse(error)), Some(call))
                if error.starts_with(PARSE_ERROR) =>
            {
                let error = incoming::malformed(call, "it is not a response of MCP, or nested too deep");
                Ok(StreamableHttpPostResponse::Json(error, None))
            }
            (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), Some(call)) => {
                let message = format!("The response has more than {max_size} bytes; at most {max_size} are allowed");
                Ok(StreamableHttpPostResponse::Json(incoming::too_large(call, message), None))
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
        opened.map(|events| replace_malformed(events, None)).map_err(without_url)
    }
}
