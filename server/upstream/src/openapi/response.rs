//! Converts responses to results: JSON to data, text to text, all else to bytes in base64 with their media type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecall_base::json as text;
use codecall_base::offload;
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, LongResult, ToolDefinition, ToolError, ToolResult};
use codecall_openapi::charset;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER, SET_COOKIE};
use reqwest::{Response, StatusCode};
use serde_json::{Map, Value, json};

/// Maximum size of the body of an error, in bytes.
const MAX_ERROR_BYTES: usize = 256 << 10;
/// Maximum length of a text in the details of an error, in bytes.
const MAX_DETAIL_BYTES: usize = 16 << 10;
/// Maximum length of the message that a service gives, in bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// Why the body of a response was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is too long.
    #[error("the response has more than {0} bytes, which is the limit")]
    TooLarge(usize),
    /// The connection has ended.
    #[error("the connection ended before the end of the response")]
    Interrupted,
}

/// Reads the body of a response.
pub async fn bytes(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, BodyError> {
    let max = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    if response.content_length().is_some_and(|length| length > max) {
        return Err(BodyError::TooLarge(max_bytes));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|_| BodyError::Interrupted)? {
        if bytes.len() + piece.len() > max_bytes {
            return Err(BodyError::TooLarge(max_bytes));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Returns `Content-Type`; empty if there is none.
pub fn media_type(headers: &HeaderMap) -> String {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Converts the response to a call.
pub async fn read(
    response: Response,
    max_bytes: usize,
    is_head: bool,
    tool: &ToolDefinition,
) -> Result<ToolResult, ToolError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let is_failure = !status.is_success();
    let body = match bytes(response, if is_failure { max_bytes.min(MAX_ERROR_BYTES) } else { max_bytes }).await {
        Ok(body) => body,
        // The status says more than a body that nobody can read.
        Err(_) if is_failure => Vec::new(),
        Err(error @ BodyError::TooLarge(_)) => {
            return Err(ToolError::new(ErrorCode::MessageTooLarge, error.to_string()));
        }
        Err(error @ BodyError::Interrupted) => return Err(ToolError::new(super::UNAVAILABLE, error.to_string())),
    };
    if is_head && !is_failure {
        return Ok(ToolResult::Data(json!({"status": status.as_u16(), "headers": shown_headers(&headers)})));
    }
    let media_type = media_type(&headers);
    let size = body.len();
    let content = offload::run(size, move || Content::new(body, &media_type)).await?;
    if is_failure {
        return Err(failure(status, &headers, content));
    }
    Ok(content.into_result(tool))
}

/// The content of a response.
enum Content {
    Nothing,
    Json(Value),
    Long(LongResult),
    Text(String),
    Bytes(Vec<u8>, String),
}

impl Content {
    fn new(body: Vec<u8>, media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if body.is_empty() {
            return Self::Nothing;
        }
        let is_json = essence == "application/json" || essence == "text/json" || essence.ends_with("+json");
        if (is_json || essence.is_empty())
            && let Some(text) = charset::json(&body, media_type)
        {
            match LongResult::of_data(text.into_owned()) {
                Ok(long) => return Self::Long(long),
                Err(text) => {
                    if let Ok(value) = serde_json::from_str(&text) {
                        return Self::Json(value);
                    }
                }
            }
        }
        if is_json || is_text(&essence) {
            match charset::decode(&body, media_type) {
                Some(text) => return Self::Text(text.into_owned()),
                // The charset is unknown: the caller gets its name, and all bytes.
                None => return Self::Bytes(body, media_type.to_owned()),
            }
        }
        match (essence.as_str(), String::from_utf8(body)) {
            ("", Ok(text)) => Self::Text(text),
            ("", Err(error)) => Self::Bytes(error.into_bytes(), "application/octet-stream".into()),
            (_, Ok(text)) => Self::Bytes(text.into_bytes(), essence),
            (_, Err(error)) => Self::Bytes(error.into_bytes(), essence),
        }
    }

    fn into_result(self, tool: &ToolDefinition) -> ToolResult {
        match self {
            Self::Nothing => ToolResult::Data(Value::Null),
            Self::Json(value) => ToolResult::Data(value),
            Self::Long(long) => ToolResult::Long(long),
            Self::Text(text) => ToolResult::Data(text.into()),
            Self::Bytes(bytes, media_type) => {
                let data = STANDARD.encode(&bytes);
                let block = match media_type.split('/').next() {
                    Some(kind @ ("image" | "audio")) => json!({"type": kind, "data": data, "mimeType": media_type}),
                    Some(_) | None => {
                        let uri = format!("openapi://{}/{}", tool.app, tool.name);
                        json!({"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "blob": data}})
                    }
                };
                ToolResult::Mcp(json!({"content": [block], "isError": false}))
            }
        }
    }
}

fn is_text(essence: &str) -> bool {
    const TEXTS: [&str; 12] = [
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/javascript",
        "application/ecmascript",
        "application/graphql",
        "application/sql",
        "application/x-ndjson",
        "application/jsonl",
        "application/x-www-form-urlencoded",
        "application/pgp-signature",
    ];
    essence.starts_with("text/")
        || essence.ends_with("+xml") && !essence.starts_with("image/")
        || essence.ends_with("+yaml")
        || TEXTS.contains(&essence)
}

/// Converts a response that is not a success. Redirects that were followed do not come here.
fn failure(status: StatusCode, headers: &HeaderMap, content: Content) -> ToolError {
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let mut details = Map::from_iter([("status".to_owned(), Value::from(status.as_u16()))]);
    if let Some(after) = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()) {
        details.insert("retryAfter".into(), truncate(after, 100).into());
    }
    let body = match content {
        Content::Nothing => None,
        Content::Json(value) => Some(value),
        Content::Long(long) => text::read(long.text()).ok(),
        Content::Text(text) => Some(truncate(&text, MAX_DETAIL_BYTES).into()),
        Content::Bytes(bytes, media_type) => Some(format!("{} bytes of {media_type}", bytes.len()).into()),
    };
    let said = body.as_ref().and_then(message).map(|text| format!(": {}", truncate(text.trim(), MAX_MESSAGE_BYTES)));
    details.extend(body.map(|body| ("body".to_owned(), body)));
    let mut error = ToolError::new(
        ErrorCode::ToolExecutionError,
        format!("HTTP {}{reason}{}", status.as_u16(), said.unwrap_or_default()),
    );
    error.details = Some(Value::Object(details).to_string());
    error
}

/// Returns the message in the body of an error, in one of the common forms.
fn message(body: &Value) -> Option<&str> {
    let short = |text: &'_ str| !text.trim().is_empty() && !text.trim_start().starts_with('<');
    match body {
        Value::String(text) => Some(text.as_str()).filter(|text| short(text) && text.len() <= MAX_MESSAGE_BYTES),
        Value::Object(members) => {
            let keys = ["message", "error_description", "detail", "error", "title", "errors", "msg", "reason"];
            keys.iter().filter_map(|key| members.get(*key)).find_map(message)
        }
        Value::Array(items) => items.first().and_then(message),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The headers of a response, without cookies.
fn shown_headers(headers: &HeaderMap) -> Value {
    let shown = headers.iter().filter(|(name, _)| *name != SET_COOKIE);
    let shown = shown.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.into())));
    Value::Object(shown.collect())
}
