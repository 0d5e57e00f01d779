//! Recorded responses of `fetch`, for examples of tools: no request is sent.

use super::request::Request;
use super::{ErrorCode, ToolError, ToolResult, without_query};
use reqwest::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use url::Url;

/// The response to requests of an address.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct RecordedResponse {
    /// The address of the request, with its query.
    pub url: String,
    /// The method of the request; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The status; `None`: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The body, as JSON, with its content type.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Why the request fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How often it can be used; `None`: any number of times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<NonZeroU32>,
}

/// Reads a value that is present. `null` is one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The recorded responses of a run.
pub struct Recorded(Vec<(RecordedResponse, AtomicU32)>);

impl Recorded {
    pub fn new(responses: Vec<RecordedResponse>) -> Self {
        Self(responses.into_iter().map(|response| (response, AtomicU32::new(0))).collect())
    }

    /// Answers a request that is allowed.
    ///
    /// # Errors
    /// The request is recorded to fail, or not recorded.
    pub fn answer(&self, request: &Request) -> Result<ToolResult, ToolError> {
        let mut url = request.url.clone();
        url.set_fragment(None);
        let fits = |(response, used): &&(RecordedResponse, AtomicU32)| {
            let is_method = |method: &String| method.eq_ignore_ascii_case(request.method.as_str());
            response.method.as_ref().is_none_or(is_method)
                && Url::parse(&response.url).is_ok_and(|recorded| recorded == url)
                // Counted last: only a response that is given is used up.
                && response.times.is_none_or(|times| used.fetch_add(1, Ordering::Relaxed) < times.get())
        };
        let Some((response, _)) = self.0.iter().find(fits) else {
            let message = format!(
                "there is no recorded response to {} {}; add one to 'responses' of the example",
                request.method,
                without_query(&url)
            );
            return Err(ToolError::new(ErrorCode::FetchFailed, message));
        };
        match &response.error {
            Some(error) => Err(ToolError::new(ErrorCode::FetchFailed, error.clone())),
            None => Ok(ToolResult::Data(response.to_answer(&url))),
        }
    }
}

impl RecordedResponse {
    fn to_answer(&self, url: &Url) -> Value {
        let status = StatusCode::from_u16(self.status.unwrap_or(200)).unwrap_or(StatusCode::OK);
        let mut headers: Vec<Value> = Vec::new();
        if self.json.is_some() && !self.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
            headers.push(json!(["content-type", "application/json"]));
        }
        headers.extend(self.headers.iter().map(|(name, value)| json!([name.to_ascii_lowercase(), value])));
        let body = self.json.as_ref().map(Value::to_string).or_else(|| self.body.clone());
        let mut answer = Map::from_iter([
            ("status".to_owned(), status.as_u16().into()),
            ("statusText".to_owned(), status.canonical_reason().unwrap_or_default().into()),
            ("url".to_owned(), url.as_str().into()),
            ("redirected".to_owned(), false.into()),
            ("headers".to_owned(), headers.into()),
        ]);
        answer.extend(body.map(|body| ("body".to_owned(), body.into())));
        Value::Object(answer)
    }
}
