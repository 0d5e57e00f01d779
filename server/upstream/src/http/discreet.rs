//! An HTTP client whose errors do not tell the address, which may hold a secret: rmcp logs them. An answer
//! that cannot be understood fails its call, and not the connection.

use crate::incoming::{self, Incoming};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The client behind it.
#[derive(Clone)]
pub struct Discreet(pub reqwest::Client);

fn discreet(error: Failure) -> Failure {
    match error {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        other => other,
    }
}

/// How the transport's error begins where it has read an answer that it does not understand.
const UNPARSED: &str = "could not parse JSON response";

/// Events in which an answer that cannot be understood is an error of the call that it answers: of `call`,
/// where its own id cannot be seen.
fn understood(events: Events, call: Option<RequestId>) -> Events {
    let understood = move |event: Result<Sse, SseError>| {
        let mut event = event?;
        if let Some(data) = &event.data
            && let Incoming::Broken { id, why } = incoming::read(data.as_bytes())
            && let Some(id) = id.or_else(|| call.clone())
        {
            event.data = serde_json::to_string(&incoming::failure(id, &why)).ok();
        }
        Ok(event)
    };
    Box::pin(events.map(understood))
}

/// What the transport uses when it is given no limit of its own.
const LONGEST_EVENT: usize = 16 * 1024 * 1024;

impl StreamableHttpClient for Discreet {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, LONGEST_EVENT).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let call = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => None,
        };
        let sent = self.0.post_message_with_max_sse_event_size(uri, message, session, auth, headers, longest).await;
        match (sent, call) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), call) => {
                Ok(StreamableHttpPostResponse::Sse(understood(events, call), session))
            }
            (Err(StreamableHttpError::UnexpectedServerResponse(told)), Some(call)) if told.starts_with(UNPARSED) => {
                let failure = incoming::failure(call, "it is not an answer of MCP, or nested too deep");
                Ok(StreamableHttpPostResponse::Json(failure, None))
            }
            (Err(StreamableHttpError::ResponseBodyTooLarge { max_size }), Some(call)) => {
                let message = format!("The answer has more than {max_size} bytes, which is the most that is allowed");
                Ok(StreamableHttpPostResponse::Json(incoming::too_long(call, message), None))
            }
            (sent, _) => sent.map_err(discreet),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session, auth, headers).await.map_err(discreet)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, LONGEST_EVENT).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
        longest: usize,
    ) -> Result<Events, Failure> {
        let opened = self.0.get_stream_with_max_sse_event_size(uri, session, last_event, auth, headers, longest);
        opened.await.map(|events| understood(events, None)).map_err(discreet)
    }
}
