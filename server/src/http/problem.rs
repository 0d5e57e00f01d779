//! Errors of the JSON endpoints, in the shape that clients of model servers know:
//! `{"error": {"message", "type", "code", "param"}}`.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use codecall_base::tool::MAX_NAME_BYTES;
use codecall_tools::pipeline::{LONGEST_MESSAGE, bounded};
use serde_json::{Value, json};

/// Why a request has no other answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status of the answer.
    pub status: StatusCode,
    /// What is wrong and what to do about it.
    pub message: String,
    /// For machines.
    pub code: Option<&'static str>,
    /// Which part of the request it is about.
    pub param: Option<String>,
    /// The words of somebody else, in the place of all that.
    pub told: Option<Box<Told>>,
}

/// An error in the words of whom it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The whole body.
    pub body: Option<Value>,
    /// When to try again, in seconds.
    pub retry_after: Option<HeaderValue>,
}

impl Problem {
    /// An error with this status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = bounded(message.into(), LONGEST_MESSAGE);
        Self { status, message, code: None, param: None, told: None }
    }

    /// A request that makes no sense.
    pub fn request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The same with a code.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The same in other words.
    #[must_use]
    pub fn told(self, told: Told) -> Self {
        Self { told: Some(Box::new(told)), ..self }
    }

    /// The same about a part of the request.
    #[must_use]
    pub fn about(self, param: impl Into<String>) -> Self {
        Self { param: Some(bounded(param.into(), MAX_NAME_BYTES)), ..self }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        if let Some(body) = self.told.as_ref().and_then(|told| told.body.as_ref()) {
            return body.clone();
        }
        let kind = match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        json!({"error": {"message": self.message, "type": kind, "code": self.code, "param": self.param}})
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.to_json())).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.told.and_then(|told| told.retry_after) {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}
