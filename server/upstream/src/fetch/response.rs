//! A response of `fetch` as the answer to its call.

use super::{ErrorCode, ToolError, ToolResult};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecall_base::offload;
use codecall_config::FetchConfig;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use serde_json::{Map, Value, json};
use url::Url;

/// Reads a response as a whole.
///
/// # Errors
/// It is larger than it may be, compressed, or it ends early.
pub async fn read(
    response: Response,
    url: &Url,
    is_redirected: bool,
    is_head: bool,
    config: &FetchConfig,
) -> Result<ToolResult, ToolError> {
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers.len() > config.max_headers || bytes > config.max_header_bytes {
        return Err(limit(
            "the response has more headers than it may have ('fetch.maxHeaders', 'fetch.maxHeaderBytes')",
        ));
    }
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase());
    if encoding.is_some_and(|encoding| !encoding.is_empty() && encoding != b"identity") && !is_head {
        let message = "the response is compressed, although the request asks for one that is not";
        return Err(ToolError::new(ErrorCode::FetchFailed, message));
    }
    let body = body(response, config.max_response_bytes).await?;
    let mut url = url.clone();
    url.set_fragment(None);
    let answer = Map::from_iter([
        ("status".to_owned(), status.as_u16().into()),
        ("statusText".to_owned(), status.canonical_reason().unwrap_or_default().into()),
        ("url".to_owned(), url.as_str().into()),
        ("redirected".to_owned(), is_redirected.into()),
        ("headers".to_owned(), pairs(&headers)),
    ]);
    let has_none = is_head || matches!(status.as_u16(), 204 | 205 | 304);
    let answer = offload::run(body.len(), move || {
        let mut answer = answer;
        match String::from_utf8(body) {
            Ok(text) if text.is_empty() && has_none => {}
            Ok(text) => drop(answer.insert("body".into(), text.into())),
            Err(error) => drop(answer.insert("bodyBase64".into(), STANDARD.encode(error.as_bytes()).into())),
        }
        answer
    });
    Ok(ToolResult::Data(Value::Object(answer.await?)))
}

async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, ToolError> {
    let too_long = || limit(&format!("the body of the response has more than {most} bytes ('fetch.maxResponseBytes')"));
    if response.content_length().is_some_and(|length| usize::try_from(length).map_or(true, |length| length > most)) {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(bytes),
            Ok(Some(piece)) if bytes.len() + piece.len() > most => return Err(too_long()),
            Ok(Some(piece)) => bytes.extend_from_slice(&piece),
            Err(_) => {
                let message = "the connection ended before the end of the response";
                return Err(ToolError::new(ErrorCode::FetchFailed, message));
            }
        }
    }
}

/// The headers as pairs; the bytes of a value are its characters.
fn pairs(headers: &HeaderMap) -> Value {
    let text = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    headers.iter().map(|(name, value)| json!([name.as_str(), text(value.as_bytes())])).collect()
}

fn limit(message: &str) -> ToolError {
    ToolError::new(ErrorCode::FetchLimit, message)
}
