//! The client of the model server, which speaks chat completions.

use super::conversation::RUN_CODE;
use super::delta::DeltaRedactor;
use crate::error::{ErrorResponse, HttpError};
use axum::Json;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codecall_base::error::Error;
use codecall_base::redact::SecretRegistry;
use codecall_base::telemetry::{Span, SpanKind};
use codecall_config::ModelConfig;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value, json};
use sse_stream::SseStream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The content type of server-sent events.
const EVENT_STREAM: &str = "text/event-stream";
/// The data of the event that ends a stream.
pub const DONE: &str = "[DONE]";

/// A client of a model server.
pub struct ModelServer {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    max_answer_bytes: usize,
    secrets: Arc<SecretRegistry>,
}

/// The response of a model.
#[derive(Clone, Debug, Default)]
pub struct ModelResponse {
    /// The members besides the choices, such as `id` and `model`.
    pub envelope: Map<String, Value>,
    /// The message of the first choice.
    pub message: Value,
    /// The finish reason of the first choice.
    pub finish_reason: Value,
}

/// A model's request to run code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeRequest {
    /// The code to run.
    Code(String),
    /// A call whose arguments are invalid.
    Invalid { arguments: String, problem: String },
}

impl ModelServer {
    /// Creates the client of the configured server; `None` if there is none.
    ///
    /// # Errors
    /// The configuration is unusable.
    pub fn new(config: &ModelConfig, secrets: Arc<SecretRegistry>) -> Result<Option<Self>, Error> {
        let Some(url) = &config.url else { return Ok(None) };
        // Another part of the process may have installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("codecall/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(config.timeout)
            // Following a redirect would send the key to another server.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|_| Error::Config("model: no HTTP client can be made".into()))?;
        let mut headers = HeaderMap::new();
        let bearer = config.key.iter().map(|key| (AUTHORIZATION.as_str(), format!("Bearer {}", key.trim())));
        let more = config.headers.iter().map(|(name, value)| (name.as_str(), value.to_string()));
        for (name, value) in bearer.chain(more) {
            let fault = |what: &str| Error::Config(format!("model: the {what} of header '{name}' is not valid"));
            let header = HeaderName::try_from(name).map_err(|_| fault("name"))?;
            let mut value = HeaderValue::try_from(value).map_err(|_| fault("value"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let url = url.trim_end_matches('/').to_owned();
        Ok(Some(Self { client, url, headers, max_answer_bytes: config.max_answer_bytes, secrets }))
    }

    /// Requests a completion. If the body has `stream`, `on_choice` gets each choice as it comes.
    pub async fn complete(
        &self,
        body: &Value,
        on_choice: &mut (dyn FnMut(&Value) + Send),
    ) -> Result<ModelResponse, ErrorResponse> {
        let streams = body["stream"] == true;
        let accept = if streams { EVENT_STREAM } else { "application/json" };
        let response = self.send(Method::POST, "chat/completions", accept, Some(body)).await?;
        if is_stream(&response) {
            return self.read_stream(response, on_choice).await;
        }
        let response = parse_response(self.json(response).await?)?;
        // A server that does not stream sends the message at once.
        if streams {
            on_choice(&json!({"delta": response.message}));
        }
        Ok(response)
    }

    /// Forwards a request without code, and returns the response as it comes.
    pub async fn forward(&self, body: &Value) -> Result<Response, ErrorResponse> {
        let streams = body["stream"] == true;
        let accept = if streams { EVENT_STREAM } else { "application/json" };
        let response = self.send(Method::POST, "chat/completions", accept, Some(body)).await?;
        if !is_stream(&response) {
            return Ok(Json(self.json(response).await?).into_response());
        }
        let secrets = Arc::clone(&self.secrets);
        let mut redacting = DeltaRedactor::default();
        let events = SseStream::from_bytes_stream(self.bytes(response)).map(Some).chain(stream::iter([None]));
        let events = events.flat_map(move |event| {
            let redactor = secrets.redactor();
            let data = match event {
                Some(Ok(event)) => Some(event.data.unwrap_or_default()),
                Some(Err(sse_stream::Error::Body(error))) => Some(incomplete_response(&*error).to_json().to_string()),
                Some(Err(_)) => Some(invalid_response("is not a stream of events").to_json().to_string()),
                None => None,
            };
            let (mut before, mut data) = (None, data);
            match data.as_deref().map(serde_json::from_str::<Value>) {
                Some(Ok(mut chunk)) => {
                    redacting.redact(&redactor, &mut chunk);
                    data = Some(chunk.to_string());
                }
                // The end of the stream.
                Some(Err(_)) | None => before = redacting.rest(&redactor).map(|rest| rest.to_string()),
            }
            let event = |data: String| Ok::<_, Infallible>(Event::default().data(redactor.redact_text(&data)));
            stream::iter([before, data].into_iter().flatten().map(event).collect::<Vec<_>>())
        });
        Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
    }

    /// Returns the list of models.
    pub async fn models(&self) -> Result<Value, ErrorResponse> {
        self.json(self.send(Method::GET, "models", "application/json", None).await?).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Option<&Value>,
    ) -> Result<reqwest::Response, ErrorResponse> {
        let mut request = self.client.request(method, format!("{}/{path}", self.url));
        request = request.headers(self.headers.clone()).header(ACCEPT, accept);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let model = body.and_then(|body| body["model"].as_str()).unwrap_or_default();
        let mut span =
            Span::begin(SpanKind::Client, || if body.is_some() { format!("chat {model}") } else { "GET".into() });
        if body.is_some() {
            span.set("gen_ai.operation.name", "chat");
            span.set("gen_ai.request.model", model);
        }
        if let Some(trace) = span.context() {
            request = request.header("traceparent", trace.parent());
            request =
                trace.state.as_deref().into_iter().fold(request, |request, state| request.header("tracestate", state));
        }
        let response = request.send().await.map_err(|error| unreachable(&error));
        match &response {
            Ok(response) if !response.status().is_success() => {
                span.fail(response.status().as_str(), "The model server answers with an error");
            }
            Ok(_) => {}
            Err(_) => span.fail("unreachable", "The model server cannot be reached"),
        }
        let response = response?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.error_of(response).await)
    }

    /// Converts an error of the model server. The client gets it, except if it is about the server's key.
    async fn error_of(&self, response: reqwest::Response) -> ErrorResponse {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).cloned();
        let body = self.json(response).await.ok().filter(|body| body["error"].is_object());
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return HttpError::ModelKeyRefused.into();
        }
        let is_error = status.is_client_error() || status.is_server_error();
        let status = if is_error { status } else { StatusCode::BAD_GATEWAY };
        let error = HttpError::ModelError(format!("answers with status {}", status.as_u16()));
        ErrorResponse::from(error).with_upstream(status, body, retry_after)
    }

    async fn json(&self, response: reqwest::Response) -> Result<Value, ErrorResponse> {
        let mut body = Vec::new();
        let mut bytes = std::pin::pin!(self.bytes(response));
        while let Some(piece) = bytes.next().await {
            body.extend_from_slice(&piece.map_err(|error| incomplete_response(&error))?);
        }
        let mut value: Value = serde_json::from_slice(&body).map_err(|_| invalid_response("is not JSON"))?;
        self.secrets.redactor().redact_value(&mut value);
        Ok(value)
    }

    /// Reads a streamed response to its end.
    async fn read_stream(
        &self,
        response: reqwest::Response,
        on_choice: &mut (dyn FnMut(&Value) + Send),
    ) -> Result<ModelResponse, ErrorResponse> {
        let mut events = std::pin::pin!(SseStream::from_bytes_stream(self.bytes(response)));
        let message = json!({"role": "assistant", "content": null});
        let mut answer = ModelResponse { message, ..ModelResponse::default() };
        let mut redacting = DeltaRedactor::default();
        while let Some(event) = events.next().await {
            let data = match event {
                Ok(event) => event.data.unwrap_or_default(),
                Err(sse_stream::Error::Body(error)) => return Err(incomplete_response(&*error)),
                Err(_) => return Err(invalid_response("is not a stream of events")),
            };
            if data.trim() == DONE {
                break;
            }
            if data.trim().is_empty() {
                continue;
            }
            let mut chunk: Value =
                serde_json::from_str(&data).map_err(|_| invalid_response("has an event that is not JSON"))?;
            redacting.redact(&self.secrets.redactor(), &mut chunk);
            if chunk["error"].is_object() {
                let error = ErrorResponse::from(HttpError::ModelError("has stopped with an error".into()));
                let (status, body) = (error.status, json!({"error": chunk["error"]}));
                return Err(error.with_upstream(status, Some(body), None));
            }
            answer.add_chunk(chunk, on_choice)?;
        }
        if let Some(rest) = redacting.rest(&self.secrets.redactor()) {
            answer.add_chunk(rest, on_choice)?;
        }
        if answer.finish_reason.is_null() && calls_of(&answer.message).is_empty() && answer.message["content"].is_null()
        {
            return Err(invalid_response("is empty"));
        }
        Ok(answer)
    }

    /// Streams the body, up to `model.maxAnswerBytes`.
    fn bytes(
        &self,
        response: reqwest::Response,
    ) -> impl Stream<Item = Result<axum::body::Bytes, std::io::Error>> + use<> {
        let mut left = self.max_answer_bytes;
        response.bytes_stream().map_err(|error| std::io::Error::other(describe(&error))).map(move |piece| {
            let piece = piece?;
            left = left
                .checked_sub(piece.len())
                .ok_or_else(|| std::io::Error::other("it is longer than 'model.maxAnswerBytes' allows"))?;
            Ok(piece)
        })
    }
}

impl ModelResponse {
    /// Adds a chunk of a stream.
    fn add_chunk(&mut self, chunk: Value, on_choice: &mut (dyn FnMut(&Value) + Send)) -> Result<(), ErrorResponse> {
        let Value::Object(mut members) = chunk else { return Err(invalid_response("has an event that is no object")) };
        let choices = members.remove("choices");
        for (key, value) in members {
            if !value.is_null() {
                self.envelope.insert(key, value);
            }
        }
        let Some(mut choice) = choices.and_then(|choices| choices.get(0).cloned()) else { return Ok(()) };
        if !choice["finish_reason"].is_null() {
            self.finish_reason = choice["finish_reason"].take();
        }
        let Value::Object(mut delta) = choice["delta"].take() else { return Ok(()) };
        for call in delta.remove("tool_calls").iter().filter_map(Value::as_array).flatten() {
            self.add_call(call)?;
        }
        for (key, value) in &delta {
            self.add_member(key, value);
        }
        choice["delta"] = Value::Object(delta);
        on_choice(&choice);
        Ok(())
    }

    /// Adds a member of a delta to the message: text is appended, anything else replaced.
    fn add_member(&mut self, key: &str, value: &Value) {
        match (&mut self.message[key], value) {
            (_, Value::Null) => {}
            (Value::String(text), Value::String(more)) if key != "role" => text.push_str(more),
            (member, value) => *member = value.clone(),
        }
    }

    /// Adds a part of a tool call to the message.
    fn add_call(&mut self, part: &Value) -> Result<(), ErrorResponse> {
        let calls = &mut self.message["tool_calls"];
        if calls.is_null() {
            *calls = json!([]);
        }
        let calls = calls.as_array_mut().ok_or_else(|| invalid_response("has calls that are no list"))?;
        let index = part["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        // Some servers omit the index of a call that comes in one part.
        let index = index.unwrap_or(calls.len());
        if index > calls.len() {
            return Err(invalid_response("has calls that are not in order"));
        }
        if index == calls.len() {
            calls.push(json!({"id": "", "type": "function", "function": {"name": "", "arguments": ""}}));
        }
        let call = &mut calls[index];
        for (key, more) in [("id", &part["id"]), ("type", &part["type"])] {
            if let Some(text) = more.as_str().filter(|text| !text.is_empty()) {
                call[key] = text.into();
            }
        }
        for key in ["name", "arguments"] {
            match &part["function"][key] {
                Value::String(more) => {
                    let text = format!("{}{more}", call["function"][key].as_str().unwrap_or_default());
                    call["function"][key] = text.into();
                }
                Value::Null => {}
                whole => call["function"][key] = whole.clone(),
            }
        }
        Ok(())
    }

    /// Returns the code that the model wants to run; `None` if the response is the final answer. `function` returns the
    /// function of a tool.
    pub fn code_request(&self, function: &dyn Fn(&str) -> Option<String>) -> Option<CodeRequest> {
        let calls = calls_of(&self.message);
        let first = calls.first()?;
        if first["function"]["name"] == RUN_CODE {
            return Some(code_of(&first["function"]["arguments"]));
        }
        // Some models call the client's tools directly: code makes the same calls.
        let mut parts = Vec::new();
        for call in calls {
            let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
            let arguments = match arguments {
                Value::String(text) => serde_json::from_str::<Value>(text).ok(),
                other => Some(other.clone()),
            };
            let name = name.as_str().unwrap_or_default();
            let Some(arguments) = arguments.filter(Value::is_object) else {
                let problem =
                    format!("the arguments of {name} are not a JSON object; call {RUN_CODE} with {{\"code\": \"…\"}}");
                let arguments = self.message["tool_calls"].to_string();
                return Some(CodeRequest::Invalid { arguments, problem });
            };
            let function =
                function(name).map_or_else(|| format!("callTool({}, ", Value::from(name)), |name| format!("{name}("));
            parts.push(format!("{function}{arguments})"));
        }
        Some(CodeRequest::Code(match parts.as_slice() {
            [one] => format!("return await {one};"),
            several => format!("return await Promise.all([\n  {},\n]);", several.join(",\n  ")),
        }))
    }
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_lowercase().starts_with(EVENT_STREAM))
}

fn calls_of(message: &Value) -> &[Value] {
    super::conversation::calls(message)
}

/// Returns the code in the arguments of `run_code`.
fn code_of(arguments: &Value) -> CodeRequest {
    let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let parsed = serde_json::from_str::<Value>(&text).ok();
    let code = parsed.as_ref().and_then(|arguments| arguments["code"].as_str());
    match code {
        Some(code) => CodeRequest::Code(strip_fence(code).to_owned()),
        None => {
            let problem = format!(
                "the arguments of {RUN_CODE} must be a JSON object {{\"code\": \"…\"}} with the code as a text"
            );
            CodeRequest::Invalid { arguments: text, problem }
        }
    }
}

/// Removes the Markdown fence that models often put around code.
fn strip_fence(code: &str) -> &str {
    let trimmed = code.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if language.trim().chars().all(char::is_alphanumeric) => inner.trim_end(),
        Some(_) | None => code,
    }
}

/// Parses a response that is not streamed.
fn parse_response(value: Value) -> Result<ModelResponse, ErrorResponse> {
    let Value::Object(mut envelope) = value else { return Err(invalid_response("is no object")) };
    let mut choice = match envelope.remove("choices").as_mut().and_then(|choices| choices.get_mut(0)) {
        Some(choice) => choice.take(),
        None => return Err(invalid_response("has no choices")),
    };
    let message = choice["message"].take();
    if !message.is_object() {
        return Err(invalid_response("has no message"));
    }
    Ok(ModelResponse { envelope, message, finish_reason: choice["finish_reason"].take() })
}

/// The error for an invalid response: `problem` continues "has sent a response that …".
fn invalid_response(problem: &str) -> ErrorResponse {
    HttpError::ModelError(format!("has sent a response that {problem}")).into()
}

/// The error for a response whose body ended too early.
fn incomplete_response(error: &dyn std::error::Error) -> ErrorResponse {
    HttpError::ModelError(format!("has not sent its whole response: {error}")).into()
}

/// The error for a request without a response.
fn unreachable(error: &reqwest::Error) -> ErrorResponse {
    match error.is_timeout() {
        true => HttpError::ModelTimeout.into(),
        false => HttpError::ModelUnreachable(describe(error)).into(),
    }
}

/// Describes an error without the URL, which may contain secrets.
fn describe(error: &reqwest::Error) -> &'static str {
    match error {
        error if error.is_timeout() => "it takes too long",
        error if error.is_connect() => "there is no connection",
        error if error.is_body() || error.is_decode() => "the connection was lost",
        _ => "the request failed",
    }
}
