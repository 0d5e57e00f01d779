//! `POST /v1/chat/completions`: to a client a model server like any other, in front of one.
//!
//! The client sends its tools and gets ordinary calls of them. The model behind sees one tool, which
//! runs code, and the client's tools as functions of that code.

mod conversation;
mod engine;
mod model;
mod names;
mod speech;

use super::api::read;
use super::error::{ErrorResponse, HttpError};
use crate::hub::Hub;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use codecall_base::error::Error;
use engine::{ChatRequest, Engine, Reply};
use futures_util::{Stream, StreamExt as _, stream};
use model::{DONE, ModelServer};
use serde_json::{Map, Value, json};
use speech::{Piece, Speech};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

/// The endpoint and what is behind it.
pub struct Chat {
    hub: Arc<Hub>,
    model: Option<ModelServer>,
}

impl Chat {
    /// In front of the model server of the configuration.
    ///
    /// # Errors
    /// The configuration of the model server cannot be used.
    pub fn new(hub: &Arc<Hub>) -> Result<Self, Error> {
        let model = ModelServer::new(&hub.config().model, Arc::clone(&hub.config().secrets))?;
        Ok(Self { hub: Arc::clone(hub), model })
    }

    fn model(&self) -> Result<&ModelServer, ErrorResponse> {
        self.model.as_ref().ok_or_else(|| HttpError::NoModel.into())
    }

    async fn answer(
        &self,
        request: ChatRequest,
        speech: &mut Speech,
        cancel: CancellationToken,
    ) -> Result<Reply, ErrorResponse> {
        Engine { hub: &self.hub, model: self.model()?, cancel }.answer(request, speech).await
    }
}

/// `GET /v1/models`: those of the model server.
pub async fn models(State(chat): State<Arc<Chat>>) -> Result<Json<Value>, ErrorResponse> {
    chat.model()?.models().await.map(Json)
}

/// The endpoint.
pub async fn completions(State(chat): State<Arc<Chat>>, body: Bytes) -> Result<Response, ErrorResponse> {
    let body: Map<String, Value> = read(&body)?;
    chat.model()?;
    let head = Head::new(body.get("model").cloned().unwrap_or_default());
    let (cancel, guard) = super::while_wanted();
    match ChatRequest::read(body, &chat.hub.config().model)? {
        Ok(request) if request.streams => {
            let wants_usage = request.wants_usage;
            let (sender, mut pieces) = unbounded_channel::<Piece>();
            let work = async move {
                let mut speech = Speech::followed_by(sender.clone());
                let ended = match chat.answer(request, &mut speech, cancel).await {
                    Ok(reply) => reply.last_pieces(wants_usage),
                    Err(problem) => vec![Err(problem)],
                };
                ended.into_iter().for_each(|piece| drop(sender.send(piece)));
            };
            let task = Aborted(tokio::spawn(work));
            // What goes wrong at once is told by a status.
            let first = match pieces.recv().await {
                Some(Ok(piece)) => piece,
                Some(Err(problem)) => return Err(problem),
                None => return Err(HttpError::Internal.into()),
            };
            let rest = stream::poll_fn(move |context| {
                let _alive = (&task, &guard);
                pieces.poll_recv(context)
            });
            let opening = json!({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null});
            let pieces = stream::iter([Ok(opening), Ok(first)]).chain(rest);
            Ok(Sse::new(events(head, pieces)).keep_alive(KeepAlive::default()).into_response())
        }
        Ok(request) => {
            let reply = chat.answer(request, &mut Speech::default(), cancel).await?;
            drop(guard);
            Ok(Json(reply.completion(&head)).into_response())
        }
        // Without tools there is nothing to put code in front of.
        Err(body) => chat.model()?.pass(&Value::Object(body)).await,
    }
}

/// A task that ends when nobody waits for it.
struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What stands around every piece of an answer.
struct Head {
    id: String,
    created: u64,
    model: Value,
}

impl Head {
    fn new(model: Value) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let id = crate::stateless::CodeId::new();
        Self { id: id.as_str().replacen("code_", "chatcmpl-", 1), created, model }
    }

    fn chunk(&self, piece: Value) -> Value {
        let mut chunk =
            json!({"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model});
        match piece.get("delta") {
            Some(_) => chunk["choices"] = json!([piece]),
            // What belongs to no choice.
            None => {
                chunk["choices"] = json!([]);
                if let (Some(chunk), Value::Object(members)) = (chunk.as_object_mut(), piece) {
                    chunk.extend(members);
                }
            }
        }
        chunk
    }
}

/// The pieces as events, and the one that says that there are no more.
fn events(head: Head, pieces: impl Stream<Item = Piece>) -> impl Stream<Item = Result<Event, Infallible>> {
    let events = pieces.map(move |piece| match piece {
        Ok(piece) => head.chunk(piece),
        Err(problem) => problem.to_json(),
    });
    let events = events.map(|value| Event::default().data(value.to_string()));
    events.chain(stream::iter([Event::default().data(DONE)])).map(Ok)
}

impl Reply {
    /// As one answer.
    fn completion(self, head: &Head) -> Value {
        let choice = json!({"index": 0, "message": self.message, "finish_reason": self.finish_reason});
        let mut completion = self.envelope;
        let own: [(&str, Value); 4] = [
            ("id", head.id.as_str().into()),
            ("object", "chat.completion".into()),
            ("created", head.created.into()),
            ("model", head.model.clone()),
        ];
        for (key, value) in own {
            completion.entry(key).or_insert(value);
        }
        completion.insert("choices".into(), json!([choice]));
        let nothing = || json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0});
        completion.insert("usage".into(), self.usage.unwrap_or_else(nothing));
        if let Some(told) = self.told {
            completion.insert("codecall".into(), json!({"messages": told}));
        }
        Value::Object(completion)
    }

    /// What follows what was said already.
    fn last_pieces(self, wants_usage: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for (index, call) in conversation::calls(&self.message).iter().enumerate() {
            let mut call = call.clone();
            call["index"] = index.into();
            pieces.push(json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}));
        }
        pieces.push(json!({"index": 0, "delta": {}, "finish_reason": self.finish_reason}));
        if let Some(told) = self.told {
            pieces.push(json!({"codecall": {"messages": told}}));
        }
        if let (true, Some(usage)) = (wants_usage, self.usage) {
            pieces.push(json!({"usage": usage}));
        }
        pieces.into_iter().map(Ok).collect()
    }
}
