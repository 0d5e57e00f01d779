//! The model server: any that speaks chat completions.

use super::conversation::RUN_CODE;
use crate::http::problem::{Problem, Told};
use axum::Json;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codecall_base::error::Error;
use codecall_base::redact::Redactor;
use codecall_config::ModelConfig;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value, json};
use sse_stream::SseStream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// How long the server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// What a stream of events is called.
const EVENTS: &str = "text/event-stream";
/// The last event of a stream.
pub const DONE: &str = "[DONE]";

/// A model server.
pub struct ModelServer {
    client: reqwest::Client,
    url: String,
    headers: HeaderMap,
    max_answer_bytes: usize,
    secrets: Arc<Redactor>,
}

/// What a model has answered.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// `id`, `model` and what else stands around the choices.
    pub envelope: Map<String, Value>,
    /// The message.
    pub message: Value,
    /// Why it ended, as the server says it.
    pub finish_reason: Value,
}

/// What a model wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// To run this code.
    Code(String),
    /// A call that cannot be understood: the text, and what is wrong with it.
    Nonsense(String, String),
}

impl ModelServer {
    /// The server of a configuration; absent where it names none.
    pub fn new(config: &ModelConfig, secrets: Arc<Redactor>) -> Result<Option<Self>, Error> {
        let Some(url) = &config.url else { return Ok(None) };
        // Where another part of the process has chosen one already, that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .user_agent(concat!("codecall/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .read_timeout(Duration::from_millis(config.timeout_ms))
            // Another server must not get the key.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|_| Error::Config("model: no HTTP client can be made".into()))?;
        let mut headers = HeaderMap::new();
        let bearer = config.key.iter().map(|key| (AUTHORIZATION.as_str(), format!("Bearer {}", key.trim())));
        let more = config.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
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

    /// Ask for a completion; with `stream` in the body, `said` is told of every piece as it comes.
    pub async fn ask(&self, body: &Value, said: &mut (dyn FnMut(&Value) + Send)) -> Result<Answer, Problem> {
        let streams = body["stream"] == true;
        let accept = if streams { EVENTS } else { "application/json" };
        let response = self.send(Method::POST, "chat/completions", accept, Some(body)).await?;
        if is_stream(&response) {
            return self.follow(response, said).await;
        }
        let answer = answer(self.json(response).await?)?;
        // A server that does not stream has said all of it at once.
        if streams {
            said(&json!({"delta": answer.message}));
        }
        Ok(answer)
    }

    /// Ask what has nothing to do with code, and give the answer as it comes.
    pub async fn pass(&self, body: &Value) -> Result<Response, Problem> {
        let streams = body["stream"] == true;
        let accept = if streams { EVENTS } else { "application/json" };
        let response = self.send(Method::POST, "chat/completions", accept, Some(body)).await?;
        if !is_stream(&response) {
            return Ok(Json(self.json(response).await?).into_response());
        }
        let secrets = Arc::clone(&self.secrets);
        let events = SseStream::from_bytes_stream(self.bytes(response)).map(move |event| {
            let data = match event {
                Ok(event) => event.data.unwrap_or_default(),
                Err(sse_stream::Error::Body(error)) => broken(&*error).to_json().to_string(),
                Err(_) => nonsense("is not a stream of events").to_json().to_string(),
            };
            Ok::<_, Infallible>(Event::default().data(secrets.redact_text(&data)))
        });
        Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
    }

    /// The models that the server offers.
    pub async fn models(&self) -> Result<Value, Problem> {
        self.json(self.send(Method::GET, "models", "application/json", None).await?).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &'static str,
        body: Option<&Value>,
    ) -> Result<reqwest::Response, Problem> {
        let mut request = self.client.request(method, format!("{}/{path}", self.url));
        request = request.headers(self.headers.clone()).header(ACCEPT, accept);
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// The error of the model server, for the client: it can do most about it.
    async fn refused(&self, response: reqwest::Response) -> Problem {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).cloned();
        let told = self.json(response).await.ok().filter(|told| told["error"].is_object());
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let message = "The model server refuses the key of this server ('model.key')";
            return Problem::new(StatusCode::BAD_GATEWAY, message).with_code("MODEL_KEY_REFUSED");
        }
        let known = status.is_client_error() || status.is_server_error();
        let status = if known { status } else { StatusCode::BAD_GATEWAY };
        let message = format!("The model server answers with status {}", status.as_u16());
        Problem::new(status, message).with_code("MODEL_ERROR").told(Told { body: told, retry_after })
    }

    async fn json(&self, response: reqwest::Response) -> Result<Value, Problem> {
        let mut body = Vec::new();
        let mut bytes = std::pin::pin!(self.bytes(response));
        while let Some(piece) = bytes.next().await {
            body.extend_from_slice(&piece.map_err(|error| broken(&error))?);
        }
        let mut value: Value = serde_json::from_slice(&body).map_err(|_| nonsense("is not JSON"))?;
        self.secrets.redact_value(&mut value);
        Ok(value)
    }

    async fn follow(
        &self,
        response: reqwest::Response,
        said: &mut (dyn FnMut(&Value) + Send),
    ) -> Result<Answer, Problem> {
        let mut events = std::pin::pin!(SseStream::from_bytes_stream(self.bytes(response)));
        let mut answer = Answer { message: json!({"role": "assistant", "content": null}), ..Answer::default() };
        while let Some(event) = events.next().await {
            let data = match event {
                Ok(event) => event.data.unwrap_or_default(),
                Err(sse_stream::Error::Body(error)) => return Err(broken(&*error)),
                Err(_) => return Err(nonsense("is not a stream of events")),
            };
            if data.trim() == DONE {
                break;
            }
            if data.trim().is_empty() {
                continue;
            }
            let mut chunk: Value =
                serde_json::from_str(&data).map_err(|_| nonsense("has an event that is not JSON"))?;
            self.secrets.redact_value(&mut chunk);
            if chunk["error"].is_object() {
                let problem = Problem::new(StatusCode::BAD_GATEWAY, "The model server has stopped with an error");
                let told = Told { body: Some(json!({"error": chunk["error"]})), ..Told::default() };
                return Err(problem.told(told));
            }
            answer.take(chunk, said)?;
        }
        if answer.finish_reason.is_null() && calls_of(&answer.message).is_empty() && answer.message["content"].is_null()
        {
            return Err(nonsense("ended before there was anything in it"));
        }
        Ok(answer)
    }

    /// The body, as far as it may go.
    fn bytes(
        &self,
        response: reqwest::Response,
    ) -> impl Stream<Item = Result<axum::body::Bytes, std::io::Error>> + use<> {
        let mut left = self.max_answer_bytes;
        response.bytes_stream().map_err(|error| std::io::Error::other(plain(&error))).map(move |piece| {
            let piece = piece?;
            left = left
                .checked_sub(piece.len())
                .ok_or_else(|| std::io::Error::other("it is longer than 'model.maxAnswerBytes' allows"))?;
            Ok(piece)
        })
    }
}

impl Answer {
    /// Add a piece of a stream.
    fn take(&mut self, chunk: Value, said: &mut (dyn FnMut(&Value) + Send)) -> Result<(), Problem> {
        let Value::Object(mut members) = chunk else { return Err(nonsense("has an event that is no object")) };
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
        for piece in delta.remove("tool_calls").iter().filter_map(Value::as_array).flatten() {
            self.add_call(piece)?;
        }
        for (key, value) in &delta {
            self.add(key, value);
        }
        choice["delta"] = Value::Object(delta);
        said(&choice);
        Ok(())
    }

    /// Texts grow, everything else is as it was said last.
    fn add(&mut self, key: &str, value: &Value) {
        match (&mut self.message[key], value) {
            (_, Value::Null) => {}
            (Value::String(text), Value::String(more)) if key != "role" => text.push_str(more),
            (place, value) => *place = value.clone(),
        }
    }

    fn add_call(&mut self, piece: &Value) -> Result<(), Problem> {
        let calls = &mut self.message["tool_calls"];
        if calls.is_null() {
            *calls = json!([]);
        }
        let calls = calls.as_array_mut().ok_or_else(|| nonsense("has calls that are no list"))?;
        let index = piece["index"].as_u64().and_then(|index| usize::try_from(index).ok());
        // Some servers leave the number out where a call comes in one piece.
        let index = index.unwrap_or(calls.len());
        if index > calls.len() {
            return Err(nonsense("has calls that are not in order"));
        }
        if index == calls.len() {
            calls.push(json!({"id": "", "type": "function", "function": {"name": "", "arguments": ""}}));
        }
        let call = &mut calls[index];
        for (place, more) in [("id", &piece["id"]), ("type", &piece["type"])] {
            if let Some(text) = more.as_str().filter(|text| !text.is_empty()) {
                call[place] = text.into();
            }
        }
        for key in ["name", "arguments"] {
            match &piece["function"][key] {
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

    /// What it wants; absent: nothing, it is the answer. `function` knows the functions of tools.
    pub fn wanted(&self, function: &dyn Fn(&str) -> Option<String>) -> Option<Wanted> {
        let calls = calls_of(&self.message);
        let first = calls.first()?;
        if first["function"]["name"] == RUN_CODE {
            return Some(code_of(&first["function"]["arguments"]));
        }
        // A model that calls tools as it is used to gets what it wants.
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
                return Some(Wanted::Nonsense(self.message["tool_calls"].to_string(), problem));
            };
            let function =
                function(name).map_or_else(|| format!("callTool({}, ", Value::from(name)), |name| format!("{name}("));
            parts.push(format!("{function}{arguments})"));
        }
        Some(Wanted::Code(match parts.as_slice() {
            [one] => format!("return await {one};"),
            several => format!("return await Promise.all([\n  {},\n]);", several.join(",\n  ")),
        }))
    }
}

fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_lowercase().starts_with(EVENTS))
}

fn calls_of(message: &Value) -> &[Value] {
    super::conversation::calls(message)
}

/// The code in the arguments of `run_code`.
fn code_of(arguments: &Value) -> Wanted {
    let text = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let parsed = serde_json::from_str::<Value>(&text).ok();
    let code = parsed.as_ref().and_then(|arguments| arguments["code"].as_str());
    match code {
        Some(code) => Wanted::Code(unfenced(code).to_owned()),
        None => {
            let problem = format!(
                "the arguments of {RUN_CODE} must be a JSON object {{\"code\": \"…\"}} with the code as a text"
            );
            Wanted::Nonsense(text, problem)
        }
    }
}

/// Code without the fence of Markdown that models like to put around it.
fn unfenced(code: &str) -> &str {
    let trimmed = code.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if language.trim().chars().all(char::is_alphanumeric) => inner.trim_end(),
        Some(_) | None => code,
    }
}

/// A whole answer.
fn answer(value: Value) -> Result<Answer, Problem> {
    let Value::Object(mut envelope) = value else { return Err(nonsense("is no object")) };
    let mut choice = match envelope.remove("choices").as_mut().and_then(|choices| choices.get_mut(0)) {
        Some(choice) => choice.take(),
        None => return Err(nonsense("has no choices")),
    };
    let message = choice["message"].take();
    if !message.is_object() {
        return Err(nonsense("has no message"));
    }
    Ok(Answer { envelope, message, finish_reason: choice["finish_reason"].take() })
}

fn nonsense(how: &str) -> Problem {
    let message = format!("The answer of the model server {how}");
    Problem::new(StatusCode::BAD_GATEWAY, message).with_code("MODEL_ERROR")
}

fn broken(error: &dyn std::error::Error) -> Problem {
    let message = format!("The answer of the model server broke off: {error}");
    Problem::new(StatusCode::BAD_GATEWAY, message).with_code("MODEL_ERROR")
}

fn unreachable(error: &reqwest::Error) -> Problem {
    let (status, code) = match error.is_timeout() {
        true => (StatusCode::GATEWAY_TIMEOUT, "MODEL_TIMEOUT"),
        false => (StatusCode::BAD_GATEWAY, "MODEL_UNREACHABLE"),
    };
    Problem::new(status, format!("The model server cannot be reached: {}", plain(error))).with_code(code)
}

/// What went wrong, without the address, which may hold secrets.
fn plain(error: &reqwest::Error) -> &'static str {
    match error {
        error if error.is_timeout() => "it takes too long",
        error if error.is_connect() => "there is no connection",
        error if error.is_body() || error.is_decode() => "the connection was lost",
        _ => "the request failed",
    }
}
