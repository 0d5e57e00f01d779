//! `POST /v1/chat/completions`: a proxy of a model server, which lets the model write code instead of calling tools.
//!
//! The client sends its tools and gets ordinary calls of them. The model sees one tool, which runs code, and the
//! client's tools as functions of that code.

mod call_ids;
mod conversation;
mod delta;
mod engine;
mod model;
mod output;

use super::api::read;
use super::error::{ErrorResponse, HttpError};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use codecall_base::error::Error;
use codecall_base::telemetry;
use codecall_hub::LiveHub;
use engine::{ChatRequest, Completion, CompletionMessage, Engine};
use futures_util::{Stream, StreamExt as _, stream};
use model::{DONE, ModelServer};
use output::{Chunk, Output};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

/// A chunk of a streamed response, or the error that ends the stream.
type ChunkResult = Result<Chunk, ErrorResponse>;

/// The state of the chat endpoints.
pub struct Chat {
    hub: LiveHub,
    model: Option<ModelServer>,
}

impl Chat {
    /// Connects to the model server of the configuration.
    ///
    /// # Errors
    /// The configuration of the model server is unusable.
    pub fn new(live: &LiveHub) -> Result<Self, Error> {
        let hub = live.get();
        let model = ModelServer::new(&hub.config().model, Arc::clone(hub.secrets()))?;
        Ok(Self { hub: live.clone(), model })
    }

    fn model(&self) -> Result<&ModelServer, ErrorResponse> {
        self.model.as_ref().ok_or_else(|| HttpError::NoModel.into())
    }

    async fn complete(
        &self,
        request: ChatRequest,
        output: &mut Output,
        cancel: CancellationToken,
    ) -> Result<Completion, ErrorResponse> {
        Engine { hub: &self.hub.get(), model: self.model()?, cancel }.complete(request, output).await
    }
}

/// `GET /v1/models`: returns the models of the model server.
pub async fn models(State(chat): State<Arc<Chat>>) -> Result<Json<Value>, ErrorResponse> {
    chat.model()?.models().await.map(Json)
}

/// `POST /v1/chat/completions`.
pub async fn completions(State(chat): State<Arc<Chat>>, body: Bytes) -> Result<Response, ErrorResponse> {
    let body: Map<String, Value> = read(&body)?;
    chat.model()?;
    let envelope = Envelope::new(body.get("model").cloned().unwrap_or_default());
    let (cancel, guard) = super::cancel_on_drop();
    let hub = chat.hub.get();
    let config = hub.config();
    match ChatRequest::read(body, &config.model, config.lenient_input)? {
        Ok(request) if request.stream => {
            let wants_usage = request.wants_usage;
            let (sender, mut chunks) = unbounded_channel::<ChunkResult>();
            let work = async move {
                let mut output = Output::streaming_to(sender.clone());
                let last = match chat.complete(request, &mut output, cancel).await {
                    Ok(completion) => completion.into_last_chunks(wants_usage),
                    Err(error) => vec![Err(error)],
                };
                last.into_iter().for_each(|chunk| drop(sender.send(chunk)));
            };
            let task = AbortOnDrop(tokio::spawn(telemetry::within(telemetry::current(), work)));
            // An error before the first chunk is a status of the response.
            let first = match chunks.recv().await {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => return Err(error),
                None => return Err(HttpError::Internal.into()),
            };
            let rest = stream::poll_fn(move |context| {
                let _alive = (&task, &guard);
                chunks.poll_recv(context)
            });
            let opening = Chunk::delta(json!({"role": "assistant", "content": ""}));
            let chunks = stream::iter([Ok(opening), Ok(first)]).chain(rest);
            Ok(Sse::new(events(envelope, chunks)).keep_alive(KeepAlive::default()).into_response())
        }
        Ok(request) => {
            let completion = chat.complete(request, &mut Output::default(), cancel).await?;
            drop(guard);
            Ok(Json(completion.into_json(&envelope)).into_response())
        }
        // Without tools there is no code to write.
        Err(body) => chat.model()?.forward(&Value::Object(body)).await,
    }
}

/// Aborts a task when it is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The fields of every chunk of a response.
struct Envelope {
    id: String,
    created: u64,
    model: Value,
}

impl Envelope {
    fn new(model: Value) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let id = codecall_hub::stateless::CodeId::new();
        Self { id: id.as_str().replacen("code_", "chatcmpl-", 1), created, model }
    }

    /// Returns a chunk as an object.
    fn wrap(&self, chunk: Chunk) -> Value {
        let mut members = Map::new();
        members.insert("id".into(), self.id.as_str().into());
        members.insert("object".into(), "chat.completion.chunk".into());
        members.insert("created".into(), self.created.into());
        members.insert("model".into(), self.model.clone());
        members.extend(chunk.into_members());
        Value::Object(members)
    }
}

/// Returns the chunks as server-sent events, followed by the event that ends the stream.
fn events(
    envelope: Envelope,
    chunks: impl Stream<Item = ChunkResult>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let events = chunks.map(move |chunk| match chunk {
        Ok(chunk) => envelope.wrap(chunk),
        Err(error) => error.to_json(),
    });
    let events = events.map(|value| Event::default().data(value.to_string()));
    events.chain(stream::iter([Event::default().data(DONE)])).map(Ok)
}

impl Completion {
    /// Returns the response that is not streamed.
    fn into_json(self, envelope: &Envelope) -> Value {
        let message = match self.message {
            CompletionMessage::Calls(message) => message.to_json(),
            CompletionMessage::Answer(message) => message,
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason});
        let mut completion = self.envelope;
        let own: [(&str, Value); 4] = [
            ("id", envelope.id.as_str().into()),
            ("object", "chat.completion".into()),
            ("created", envelope.created.into()),
            ("model", envelope.model.clone()),
        ];
        for (key, value) in own {
            completion.entry(key).or_insert(value);
        }
        completion.insert("choices".into(), json!([choice]));
        let nothing = || json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
        completion.insert("usage".into(), self.usage.unwrap_or_else(nothing));
        if let Some(messages) = self.messages {
            completion.insert("codecall".into(), json!({"messages": messages}));
        }
        Value::Object(completion)
    }

    /// Returns the chunks that follow the streamed text: calls, the reason of the end, messages and usage.
    fn into_last_chunks(self, wants_usage: bool) -> Vec<ChunkResult> {
        let mut chunks = Vec::new();
        if let CompletionMessage::Calls(message) = &self.message {
            chunks.extend(message.calls.iter().enumerate().map(|(index, call)| Chunk::call(index, call)));
        }
        chunks.push(Chunk::end(self.finish_reason));
        chunks.extend(self.messages.map(Chunk::CodeMessages));
        chunks.extend(self.usage.filter(|_| wants_usage).map(Chunk::Usage));
        chunks.into_iter().map(Ok).collect()
    }
}
