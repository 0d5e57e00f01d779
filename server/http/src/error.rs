//! The errors of the HTTP endpoints: one table with status, code and wording, and the response that carries one.
//!
//! The body has the shape that clients of model servers know: `{"error": {"message", "type", "code", "param"}}`.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES};
use codecall_hub::stateless::Refusal;
use codecall_tools::pipeline::{MAX_MESSAGE_BYTES, bounded};
use serde_json::{Value, json};
use std::fmt;

/// Defines [`HttpError`] from the rows of the table.
macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $name:ident $(($field:ident: $type:ty))? = $status:ident, $code:expr, $message:literal;)+) => {
        /// An error of an HTTP endpoint. Its display is the message.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum HttpError {
            $($(#[doc = $doc])+ $name $(($type))?,)+
        }

        impl HttpError {
            /// The status of the response.
            #[must_use]
            pub const fn status(&self) -> StatusCode {
                match self {
                    $(Self::$name { .. } => StatusCode::$status,)+
                }
            }

            /// The code for programs; `None` if the request or its path is wrong.
            #[must_use]
            pub const fn code(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name { .. } => $code,)+
                }
            }

            /// The rows that have a code, for documentation: code, status, and the meaning as one line of Markdown.
            pub fn documented() -> impl Iterator<Item = (&'static str, StatusCode, String)> {
                let rows: [(Option<&str>, StatusCode, &[&str]); _] = [$(($code, StatusCode::$status, &[$($doc),+]),)+];
                rows.into_iter().filter_map(|(code, status, doc)| {
                    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
                    Some((code?, status, lines.join(" ")))
                })
            }
        }

        impl fmt::Display for HttpError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name $(($field))? => write!(f, $message),)+
                }
            }
        }
    };
}

errors! {
    /// The request is invalid.
    InvalidRequest(problem: String) = BAD_REQUEST, None, "{problem}";
    /// The body is too long, or its values would take too much memory.
    TooLarge(problem: String) = PAYLOAD_TOO_LARGE, None, "{problem}";
    /// There is no endpoint at the path.
    NotFound = NOT_FOUND, None, "There is nothing at this path";
    /// The endpoint has no such method.
    MethodNotAllowed = METHOD_NOT_ALLOWED, None, "This path expects another method";
    /// The server has failed to create the response.
    Internal = INTERNAL_SERVER_ERROR, None, "The server failed to answer this request";
    /// The request has no token, or a wrong one.
    Unauthorized = UNAUTHORIZED, Some("UNAUTHORIZED"),
        "Send 'Authorization: Bearer …' with a token of this server ('http.token', 'http.tokens', 'http.jwt')";
    /// The token has none of the scopes of `http.jwt.scopes`.
    InsufficientScope = FORBIDDEN, Some("INSUFFICIENT_SCOPE"),
        "The token has none of the scopes of this server ('http.jwt.scopes')";
    /// The token is not one of an operator (`http.tokens`).
    OperatorOnly = FORBIDDEN, Some("OPERATOR_ONLY"),
        "This path is for operators: for 'http.token', and 'http.tokens' with 'operator = true'";
    /// The client sends more requests than its `rate` allows; `Retry-After` says when it may again.
    TooManyRequests(seconds: u64) = TOO_MANY_REQUESTS, Some("RATE_LIMIT"),
        "This client sends too many requests; try again in {seconds} s";
    /// The keys of the issuer of tokens (`http.jwt.jwks`) cannot be read.
    IssuerUnavailable = SERVICE_UNAVAILABLE, Some("ISSUER_UNAVAILABLE"),
        "The keys of the issuer of tokens cannot be read; try again later";
    /// The request has no `Host`, several, or one with a user name.
    InvalidHost = BAD_REQUEST, Some("INVALID_HOST"),
        "The request needs exactly one header 'Host', without a user name, and the same host as its address";
    /// The `Host` is not one of `http.allowedHosts`.
    HostNotAllowed = FORBIDDEN, Some("HOST_NOT_ALLOWED"),
        "The 'Host' of the request is not one of this server; add it to 'http.allowedHosts'";
    /// The `Origin` is not one of `http.allowedOrigins`.
    OriginNotAllowed = FORBIDDEN, Some("ORIGIN_NOT_ALLOWED"),
        "Pages of this 'Origin' may not use the server; add it to 'http.allowedOrigins'";
    /// The body of the request did not come within `http.bodyTimeoutMs`.
    BodyTimeout = REQUEST_TIMEOUT, Some("BODY_TIMEOUT"),
        "The body of the request did not come in time ('http.bodyTimeoutMs'); send it again, or in smaller parts";
    /// There are `http.maxConnections`, all have an active request, and this client or address has its share of them.
    TooManyConnections = SERVICE_UNAVAILABLE, Some("TOO_MANY_CONNECTIONS"),
        "All connections of this server are in use ('http.maxConnections'); try again soon";
    /// There are `http.maxSessions`, and all are in use.
    TooManySessions = SERVICE_UNAVAILABLE, Some("TOO_MANY_SESSIONS"),
        "All sessions of this server are in use; try again later, or without a session";
    /// The store cannot be asked for the session at the moment, and this replica of the server does not have it.
    SessionsUnavailable = SERVICE_UNAVAILABLE, Some("SESSIONS_UNAVAILABLE"),
        "The store of this server cannot be used at the moment, so the session is not known here; nothing was done; try again later";
    /// Runs are not durable (`durable.enabled`), or there is no store.
    NoDurableRuns = NOT_IMPLEMENTED, Some("NO_DURABLE_RUNS"),
        "Runs are not durable here: set 'durable.enabled', and do not disable the store";
    /// The `Idempotency-Key` was used for another run.
    KeyUsed = CONFLICT, Some("KEY_USED"), "The 'Idempotency-Key' was used for another run; use a new one";
    /// There are `durable.maxOpen` runs that have not ended.
    TooManyRuns = SERVICE_UNAVAILABLE, Some("TOO_MANY_RUNS"), "Too many runs are open ('durable.maxOpen'); try again later";
    /// The store cannot be used at the moment. Nothing was stored.
    StoreUnavailable = SERVICE_UNAVAILABLE, Some("STORE_UNAVAILABLE"),
        "The store of this server cannot be used at the moment, so the run is not stored; try again later";
    /// The engine that keeps the journals of runs cannot be used. The run is not submitted, or not cancelled.
    EngineUnavailable(problem: String) = SERVICE_UNAVAILABLE, Some("ENGINE_UNAVAILABLE"), "{problem}";
    /// A code block of the history does not make the calls in its messages.
    ReplayMismatch(problem: String) = BAD_REQUEST, Some(ErrorCode::ReplayMismatch.as_str()), "{problem}";
    /// The code in the history takes longer to replay than `maxDurationMs`.
    HistoryTooLong = BAD_REQUEST, Some("HISTORY_TOO_LONG"),
        "Replaying the code in 'messages' takes too long; drop what is oldest, or keep the messages of role 'code_result'";
    /// The history lacks the results of tool calls that the code waits for.
    CallsNotAnswered(calls: String) = BAD_REQUEST, Some("CALLS_NOT_ANSWERED"),
        "These tool calls must be answered by messages of role 'tool': {calls}";
    /// The configuration names no model server.
    NoModel = NOT_IMPLEMENTED, Some("NO_MODEL"),
        "There is no model behind this server; set 'model.url' (and 'model.key') in its configuration";
    /// The model server refuses `model.key`.
    ModelKeyRefused = BAD_GATEWAY, Some("MODEL_KEY_REFUSED"),
        "The model server refuses the key of this server ('model.key')";
    /// The model server responds with an error, whose status is passed on, or with an invalid response.
    ModelError(problem: String) = BAD_GATEWAY, Some("MODEL_ERROR"), "The model server {problem}";
    /// The model server does not answer within `model.timeoutMs`.
    ModelTimeout = GATEWAY_TIMEOUT, Some("MODEL_TIMEOUT"), "The model server cannot be reached: it takes too long";
    /// There is no connection to the model server.
    ModelUnreachable(problem: &'static str) = BAD_GATEWAY, Some("MODEL_UNREACHABLE"),
        "The model server cannot be reached: {problem}";
    /// The model has written code `model.maxTurns` times and has not answered.
    MaxTurnsExceeded(turns: usize) = BAD_GATEWAY, Some("MAX_TURNS_EXCEEDED"),
        "The model has written code {turns} times ('model.maxTurns') and does not answer";
}

/// The response to a request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    /// The status.
    pub status: StatusCode,
    /// The problem, and what to do about it.
    pub message: String,
    code: Option<&'static str>,
    /// The part of the request that is wrong.
    param: Option<String>,
    /// A body of another shape, in place of the one made from the fields above.
    body: Option<Box<Value>>,
    /// The `Retry-After` of the model server.
    retry_after: Option<HeaderValue>,
}

impl ErrorResponse {
    fn new(status: StatusCode, code: Option<&'static str>, message: String) -> Self {
        let message = bounded(message, MAX_MESSAGE_BYTES);
        Self { status, message, code, param: None, body: None, retry_after: None }
    }

    /// Creates the response to an invalid request.
    pub fn invalid(problem: impl Into<String>) -> Self {
        HttpError::InvalidRequest(problem.into()).into()
    }

    /// Sets the part of the request that is wrong.
    #[must_use]
    pub fn with_param(self, param: impl Into<String>) -> Self {
        Self { param: Some(bounded(param.into(), MAX_NAME_BYTES)), ..self }
    }

    /// Passes on the error of the model server: its status, the whole body, and when to try again.
    #[must_use]
    pub fn with_upstream(self, status: StatusCode, body: Option<Value>, retry_after: Option<HeaderValue>) -> Self {
        Self { status, body: body.map(Box::new), retry_after, ..self }
    }

    /// Returns the body.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if let Some(body) = &self.body {
            return Value::clone(body);
        }
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "server_error",
        };
        json!({"error": {"message": self.message, "type": kind, "code": self.code, "param": self.param}})
    }
}

impl From<HttpError> for ErrorResponse {
    fn from(error: HttpError) -> Self {
        Self::new(error.status(), error.code(), error.to_string())
    }
}

/// The response to a request for a step that was refused. Its body is that of `codecall_step`.
impl From<Refusal> for ErrorResponse {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Invalid(_) => StatusCode::BAD_REQUEST,
            Refusal::Unavailable(refused) => match refused.code {
                ErrorCode::WorkerCrashed | ErrorCode::WorkerStartupFailed => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            },
        };
        let body = Some(Box::new(refusal.to_json()));
        Self { body, ..Self::new(status, Some(refusal.code().as_str()), refusal.to_string()) }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        ErrorResponse::from(self).into_response()
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.to_json())).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}
