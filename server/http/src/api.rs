//! The JSON endpoints for stateless steps.

use super::error::{ErrorResponse, HttpError};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use codecall_base::call::with_client;
use codecall_base::{json, offload};
use codecall_hub::hub::{LiveHub, Status};
use codecall_hub::stateless::{ClientToolset, Evaluate, Refusal};
use http_body_util::LengthLimitError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Maximum memory of the values of a request beside its text, in bytes.
const MAX_PARSED_BYTES: usize = 64 << 20;

/// `POST /v1/evaluate`: takes one step of a run. The status is 200 if the step was taken, even if the run has failed.
pub async fn evaluate(State(hub): State<LiveHub>, body: Bytes) -> Result<Json<Value>, ErrorResponse> {
    check_values(&body)?;
    let request: Evaluate = read(&body).map_err(|problem| Refusal::Invalid(problem.message))?;
    let (cancel, _guard) = super::cancel_on_drop();
    let hub = hub.get();
    let answer = with_client("http".into(), hub.step(request, cancel)).await?;
    Ok(Json(answer.value))
}

/// `GET /v1/status`: returns how the server and its MCP servers are.
pub async fn status(State(hub): State<LiveHub>) -> Json<Status> {
    Json(hub.get().status())
}

/// `GET /readyz`: whether each MCP server has been connected or has failed, and the store can be used; status 503 if not. What is
/// wrong with the store, and with a server that does not work, is for operators.
pub async fn readiness(State(hub): State<LiveHub>) -> (StatusCode, String) {
    let hub = hub.get();
    match hub.store_status() {
        _ if hub.is_ready() => {
            let (failed, all) = hub.failed_upstreams();
            let failed = if failed == 0 { String::new() } else { format!(": {failed} of {all} servers do not work") };
            (StatusCode::OK, format!("ready{failed}\n"))
        }
        Some(store) if store.error.is_some() => (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be used\n".into()),
        Some(_) | None => (StatusCode::SERVICE_UNAVAILABLE, "starting\n".into()),
    }
}

/// `GET /metrics`: returns figures in the text format of Prometheus.
pub async fn metrics(State(hub): State<LiveHub>) -> ([(HeaderName, &'static str); 1], String) {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], hub.get().metrics())
}

/// The body of `/v1/tools/typescript`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolList {
    tools: Vec<Value>,
}

/// `POST /v1/tools/typescript`: returns the TypeScript declarations of tools, and the names of their functions.
pub async fn typescript(body: Bytes) -> Result<Json<Value>, ErrorResponse> {
    let ToolList { tools } = read(&body)?;
    let tools =
        ClientToolset::read(&tools).map_err(|error| ErrorResponse::invalid(error.to_string()).with_param("tools"))?;
    let functions =
        tools.tools().iter().map(|tool| json!({"tool": tool.name, "function": tools.names().function(&tool.name)}));
    let functions: Vec<Value> = functions.collect();
    Ok(Json(json!({"typescript": tools.declarations(), "functions": functions})))
}

/// Masks the secrets in a response of JSON, also in its error. The store may have what it returns since a time when they were
/// not known.
pub async fn without_secrets(State(hub): State<LiveHub>, response: Response) -> Response {
    let secrets = hub.get().secrets().redactor();
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes() == b"application/json");
    if secrets.is_empty() || !is_json {
        return response;
    }
    let (head, body) = response.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        return HttpError::Internal.into_response();
    };
    let text = String::from_utf8_lossy(&body);
    match offload::run(text.len(), || secrets.redact_json(&text)).await {
        Ok(Cow::Borrowed(_)) => Response::from_parts(head, body.into()),
        Ok(Cow::Owned(clean)) => Response::from_parts(head, clean.into()),
        Err(_) => HttpError::Internal.into_response(),
    }
}

/// Deserializes a body.
///
/// # Errors
/// It is not JSON of this shape; the response says where.
pub fn read<T: DeserializeOwned + Send>(body: &[u8]) -> Result<T, ErrorResponse> {
    offload::run_without_permit(body.len(), || {
        check_values(body)?;
        parse(body)
    })
}

/// Checks that the values of a body do not take too much memory.
///
/// # Errors
/// They do; the response says how much.
pub fn check_values(body: &[u8]) -> Result<(), ErrorResponse> {
    json::check_size(body, body.len() + MAX_PARSED_BYTES)
        .map_err(|too_large| HttpError::TooLarge(format!("The body is too large: {too_large}")).into())
}

/// Refuses a message of MCP whose values would take too much memory: rmcp parses what it gets. `most`: the longest body, in bytes.
pub async fn limit_values(State(most): State<usize>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let too_long = || HttpError::TooLarge(format!("The body is longer than {most} bytes ('http.maxBodyBytes')"));
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    match length {
        Some(length) if length <= offload::INLINE_LIMIT => return next.run(Request::from_parts(head, body)).await,
        // Nothing of it is read.
        Some(length) if length > most => return too_long().into_response(),
        Some(_) | None => {}
    }
    let body = match axum::body::to_bytes(body, most).await {
        Ok(body) => body,
        Err(error) if is_too_long(&error) => return too_long().into_response(),
        Err(_) => return ErrorResponse::invalid("The body did not arrive").into_response(),
    };
    let checked = offload::run_without_permit(body.len(), || check_values(&body));
    match checked {
        Ok(()) => next.run(Request::from_parts(head, body.into())).await,
        Err(too_large) => too_large.into_response(),
    }
}

fn is_too_long(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<LengthLimitError>())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ErrorResponse> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.inner();
        if inner.is_data() {
            // The path says where it is, so the line is omitted.
            let text = inner.to_string();
            let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
            let problem = codecall_base::error::sanitize_serde_error(text);
            return ErrorResponse::invalid(codecall_base::error::with_path(&path, &problem)).with_param(path);
        }
        let (line, column) = (inner.line(), inner.column());
        ErrorResponse::invalid(format!("The body is not valid JSON at line {line}, column {column}"))
    })?;
    deserializer.end().map_err(|error| {
        ErrorResponse::invalid(format!(
            "The body goes on after its JSON at line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    Ok(value)
}
