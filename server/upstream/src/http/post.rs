//! One message to an MCP server over streamable HTTP, and what its answer means.
//!
//! The only answer to a request is the one in the response, whatever status, media type or id that has. A caller never
//! waits for another.

use super::client::{Headers, TransportError};
use crate::incoming::{self, Incoming};
use codecall_base::offload;
use codecall_base::text::truncate;
use futures_util::StreamExt as _;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use serde_json::value::RawValue;
use sse_stream::SseStream;
use std::borrow::Cow;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// How much of a body that is no answer is quoted, in bytes.
const MAX_QUOTED_BYTES: usize = 300;

/// A message to be sent.
pub struct Post<'a> {
    pub uri: &'a str,
    pub message: &'a ClientJsonRpcMessage,
    pub session: Option<&'a str>,
    pub headers: &'a Headers,
    pub limits: StreamableHttpResponseLimits,
}

impl Post<'_> {
    /// Sends the message.
    ///
    /// # Errors
    /// The server cannot be reached, wants authorization, has no such session, or its response is no answer.
    pub async fn send(
        &self,
        client: &reqwest::Client,
        token: Option<String>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let mut request = client.post(self.uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some(session) = self.session {
            request = request.header(SESSION, session);
        }
        let body = serde_json::to_vec(self.message)?;
        let response = request.header(CONTENT_TYPE, JSON).body(body).send().await?;
        refusal(&response)?;
        let (status, session) = (response.status(), text_of(response.headers(), &SESSION));
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if self.session.is_some() => return Err(StreamableHttpError::SessionExpired),
            _ => {}
        }
        let media_type = media_type(response.headers());
        let JsonRpcMessage::Request(request) = self.message else {
            return if status.is_success() {
                Ok(StreamableHttpPostResponse::Accepted)
            } else {
                Err(failed(status, &response, ""))
            };
        };
        if status.is_success() && media_type.as_deref() == Some(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, self.limits.max_sse_event_size), session));
        }
        let rate = failed(status, &response, "");
        let body = match read(response, self.limits.max_json_response_size).await {
            Err(StreamableHttpError::ResponseBodyTooLarge { .. }) if !status.is_success() => return Err(rate),
            body => body?,
        };
        let stays_text = incoming::stays_text(&request.request);
        let answering = offload::run(body.len(), || answer(status, &body, &request.id, stays_text));
        let answer =
            answering.await.unwrap_or_else(|busy| Some(incoming::malformed(request.id.clone(), &busy.to_string())));
        if let Some(answer) = answer {
            return match self.is_without_session(&answer) {
                true => Err(StreamableHttpError::SessionExpired),
                false => Ok(StreamableHttpPostResponse::Json(answer, session)),
            };
        }
        let quoted = truncate(&String::from_utf8_lossy(&body), MAX_QUOTED_BYTES).to_owned();
        let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_)) && self.session.is_none();
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_discovery && status.is_client_error() && !is_refused {
            // A server that knows no discovery may refuse it before it reads the message.
            let error = ErrorData::invalid_request(format!("HTTP {status}: {quoted}"), None);
            return Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::error(error, Some(request.id.clone())),
                session,
            ));
        }
        if !status.is_success() {
            return Err(match rate {
                rate @ StreamableHttpError::HttpStatus(_) => rate,
                _ => StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {quoted}").into()),
            });
        }
        if media_type.as_deref() != Some(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(media_type));
        }
        let reason = if body.is_empty() { "it is empty" } else { "it is not a response of MCP, or nested too deep" };
        Ok(StreamableHttpPostResponse::Json(incoming::malformed(request.id.clone(), reason), session))
    }

    /// Whether a server says that it does not have the session, with another status than 404.
    fn is_without_session(&self, answer: &ServerJsonRpcMessage) -> bool {
        let (Some(_), JsonRpcMessage::Error(error)) = (self.session, answer) else { return false };
        let message = error.error.message.to_ascii_lowercase();
        let is_absent = [
            "not found",
            "no valid",
            "invalid",
            "expired",
            "unknown",
            "missing",
            "required",
            "terminated",
            "not exist",
        ];
        message.contains("not initialized")
            || message.contains("session") && is_absent.iter().any(|word| message.contains(word))
    }
}

/// Returns the answer to a call in the body of a response, with whatever status.
fn answer(status: StatusCode, body: &[u8], call: &RequestId, stays_text: bool) -> Option<ServerJsonRpcMessage> {
    // A refusal of a token may come from a proxy before the server.
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        return None;
    }
    // Version 2025-03-26 allows batches.
    if body.trim_ascii().first() == Some(&b'[') {
        let batch: Vec<&RawValue> = serde_json::from_slice(body).ok()?;
        return batch.iter().find_map(|part| answer(status, part.get().as_bytes(), call, stays_text));
    }
    match incoming::parse_answer(body, call, stays_text) {
        Incoming::Message(message) | Incoming::Mended(message) => match *message {
            JsonRpcMessage::Error(error) => Some(ServerJsonRpcMessage::error(error.error, Some(call.clone()))),
            JsonRpcMessage::Response(response) if response.id == *call => Some(JsonRpcMessage::Response(response)),
            JsonRpcMessage::Response(_) => Some(incoming::malformed(call.clone(), "it answers another request")),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        },
        Incoming::Malformed { reason, .. } if status.is_success() => Some(incoming::malformed(call.clone(), &reason)),
        Incoming::Malformed { .. } | Incoming::Ignored => None,
    }
}

/// Fails if a server wants authorization.
fn refusal(response: &Response) -> Result<(), TransportError> {
    let Some(header) = text_of(response.headers(), &WWW_AUTHENTICATE) else { return Ok(()) };
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(header))),
        StatusCode::FORBIDDEN => Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(header, None))),
        _ => Ok(()),
    }
}

/// Returns the error of a status.
fn failed(status: StatusCode, response: &Response, body: &str) -> TransportError {
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        return HttpStatusError::new(status.as_u16(), text_of(response.headers(), &RETRY_AFTER)).into();
    }
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {body}")))
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Returns the media type of a response without parameters; upper case has no meaning in it.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = text_of(headers, &CONTENT_TYPE)?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// Reads a body.
///
/// # Errors
/// It has more than `max_bytes` bytes, or the connection ends.
async fn read(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, TransportError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > max_bytes {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: max_bytes });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns the events of a response. An event of more than `max_bytes` bytes ends the stream.
fn events(response: Response, max_bytes: usize) -> super::client::Events {
    let mut length = 0;
    let mut last = 0;
    let bounded = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        for byte in chunk.iter().filter(|byte| **byte != b'\r') {
            // An empty line ends an event.
            length = if *byte == b'\n' && last == b'\n' { 0 } else { length + 1 };
            last = *byte;
            if length > max_bytes {
                return Err(std::io::Error::other(format!("an event has more than {max_bytes} bytes")));
            }
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bounded).boxed()
}
