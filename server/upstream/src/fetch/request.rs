//! A request of `fetch`: read from the input of its call, sent, and changed by redirects.

use super::{ErrorCode, ToolError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecall_config::{FetchConfig, is_forbidden_method};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

/// Headers that are ours to set, or that would make the connection something else.
const FORBIDDEN: [HeaderName; 11] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::VIA,
];
/// Headers that another origin gets, too: they hold no secrets.
const PUBLIC: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::RANGE,
    header::USER_AGENT,
];

/// The handling of a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redirect {
    /// It is followed.
    #[default]
    Follow,
    /// It fails the request.
    Error,
    /// It is the response.
    Manual,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// The address.
    pub url: Url,
    /// The method.
    pub method: Method,
    /// The handling of redirects.
    pub redirect: Redirect,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

/// The input of a call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    url: String,
    method: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    body_base64: Option<String>,
    #[serde(default)]
    redirect: Redirect,
}

impl Request {
    /// Reads the input of a call.
    ///
    /// # Errors
    /// It is no request, or a larger one than may be sent.
    pub fn parse(input: Map<String, Value>, config: &FetchConfig) -> Result<Self, ToolError> {
        let invalid = |what: &str| ToolError::new(ErrorCode::InvalidInput, format!("the request is not valid: {what}"));
        let input: Input = serde_json::from_value(Value::Object(input)).map_err(|error| invalid(&error.to_string()))?;
        let url = Url::parse(&input.url).map_err(|_| invalid("its address is none"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("its address is not a plain one of HTTP"));
        }
        let method = Method::from_bytes(input.method.as_bytes()).map_err(|_| invalid("its method is none"))?;
        if is_forbidden_method(method.as_str()) {
            return Err(invalid("its method is not available"));
        }
        let body = match (input.body, input.body_base64) {
            (Some(text), _) => Some(text.into_bytes()),
            (None, Some(encoded)) => Some(STANDARD.decode(encoded).map_err(|_| invalid("its body is not base64"))?),
            (None, None) => None,
        };
        let limit = |what: String| Err(ToolError::new(ErrorCode::FetchLimit, what));
        if let Some(body) = body.as_ref().filter(|body| body.len() > config.max_request_bytes) {
            let (length, most) = (body.len(), config.max_request_bytes);
            return limit(format!(
                "the body of the request has {length} bytes, and may have {most} ('fetch.maxRequestBytes')"
            ));
        }
        let bytes: usize = input.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if input.headers.len() > config.max_headers || bytes > config.max_header_bytes {
            return limit(
                "the request has more headers than it may have ('fetch.maxHeaders', 'fetch.maxHeaderBytes')".into(),
            );
        }
        let mut headers = HeaderMap::new();
        for (name, value) in input.headers {
            let name = HeaderName::try_from(name).map_err(|_| invalid("the name of a header is none"))?;
            // The characters of a value are bytes.
            let value: Vec<u8> = value.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect();
            let mut value = HeaderValue::try_from(value).map_err(|_| invalid("the value of a header is none"))?;
            value.set_sensitive(!PUBLIC.contains(&name));
            if !FORBIDDEN.contains(&name) {
                headers.append(name, value);
            }
        }
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let agent = HeaderValue::from_static(concat!("codecall/", env!("CARGO_PKG_VERSION")));
        headers.entry(header::USER_AGENT).or_insert(agent);
        // What is not compressed cannot grow.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Self { url, method, redirect: input.redirect, headers, body })
    }

    /// Sends it.
    pub async fn send(&self, client: &reqwest::Client) -> Result<Response, reqwest::Error> {
        let mut request = client.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        } else if matches!(self.method, Method::POST | Method::PUT) {
            // Servers expect a length.
            request = request.body(Vec::new());
        }
        request.send().await
    }

    /// Makes it the request that follows a redirect. Another origin gets no header that may hold a secret.
    pub fn follow(&mut self, next: Url, status: StatusCode) {
        let becomes_get = match status {
            StatusCode::SEE_OTHER => !matches!(self.method, Method::GET | Method::HEAD),
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = None;
            for name in
                [header::CONTENT_TYPE, header::CONTENT_LANGUAGE, header::CONTENT_ENCODING, header::CONTENT_LOCATION]
            {
                self.headers.remove(name);
            }
        }
        if next.origin() != self.url.origin() {
            let kept =
                self.headers.iter().filter(|(name, _)| PUBLIC.contains(name) || *name == header::ACCEPT_ENCODING);
            self.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        self.url = next;
    }
}
