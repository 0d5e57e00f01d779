//! Sessions that all replicas of the server have.
//!
//! A replica that gets a request of a session which it does not have live opens a copy of it. It opens the session as
//! the client has, and makes again the requests that have changed it. Messages of a copy outside of the answers to
//! requests go to the replica to which the stream of the client is open. An answer of the client goes to the replica
//! that has asked, and a
//! cancellation to all. A stream that was lost goes on at any replica, as long as the one that has begun it is there.

use super::answers::Answers;
use super::names::{EventName, named, request_of};
use super::received;
use codecall_base::event::RunId;
use codecall_hub::hub::{Incoming, NotAnswered, Replicas, Served};
use codecall_store::{SqlSessions, StoreError};
use futures_util::{Stream, StreamExt as _};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, InitializedNotification, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager as _, SessionRestoreMarker, SessionState, SessionStore,
    SessionStoreError,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Messages in the queue to a stream of a client.
const QUEUE_CAPACITY: usize = 64;
/// Messages that are kept for a client without a stream. More drop the oldest.
const MAX_UNSENT: usize = 16;
/// Open streams of a session. One more ends the oldest.
const MAX_STREAMS: usize = 32;
/// Maximum size of what a client opens a session with, in bytes.
const MAX_OPENING_BYTES: usize = 64 << 10;
/// How long a client may take to read a message of its stream.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the requests that have changed a session may take when they are made again.
const REPEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the other replicas may take to change a session before the client has the answer.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a replica that sends a stream is looked for while nothing comes.
const LOOK: Duration = Duration::from_secs(1);

/// The sessions of a client of the server, as one replica has them.
pub struct SharedSessions {
    replicas: Arc<Replicas>,
    store: SqlSessions,
    /// Whose sessions they are.
    scope: String,
    idle: Duration,
    local: Arc<LocalSessionManager>,
    live: Mutex<HashMap<SessionId, Live>>,
    answers: Arc<Answers>,
}

/// A copy of a session.
struct Live {
    _served: Served,
    /// The streams of the client to this replica. The last one is used.
    streams: Vec<mpsc::Sender<ServerSseMessage>>,
    /// The replica to which the stream of the client is open.
    stream_at: Option<String>,
    /// The messages for the client until it has a stream.
    unsent: VecDeque<Arc<ServerJsonRpcMessage>>,
    /// When the stored session was prolonged.
    prolonged: Instant,
}

/// The news that replicas tell each other of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum News {
    /// The client has sent a message for this replica.
    FromClient(Value),
    /// A replica has a message for the stream of the client.
    ForClient(Value),
    /// A request has changed the session.
    Changed(Value),
    /// The stream of the client is open to a replica.
    Stream(String),
    /// The client has ended the session.
    Ended,
    /// Asks to send what comes after an event to an address of the sender.
    Resume { event: String, to: String },
}

/// A part of a stream for another replica: the id of an event, and its message. `None`: it has ended.
type Relayed = Option<(Option<String>, Option<Value>)>;

impl SharedSessions {
    pub fn new(replicas: &Arc<Replicas>, scope: String, idle: Duration, local: &Arc<LocalSessionManager>) -> Arc<Self> {
        Arc::new(Self {
            replicas: Arc::clone(replicas),
            store: SqlSessions(replicas.database().clone()),
            scope,
            idle,
            local: Arc::clone(local),
            live: Mutex::default(),
            answers: Arc::default(),
        })
    }

    fn live(&self) -> MutexGuard<'_, HashMap<SessionId, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a session in the database. Its id is a secret, and nothing to another client.
    fn key(&self, id: &str) -> String {
        let digest = Sha256::new().chain_update(&self.scope).chain_update([0]).chain_update(id).finalize();
        codecall_store::state::hex(&digest)
    }

    fn address(&self, id: &str) -> String {
        format!("session {}", self.key(id))
    }

    async fn tell_all(&self, id: &str, news: &News) {
        self.replicas.tell_all(&self.address(id), json!(news)).await;
    }

    async fn tell(&self, to: &str, id: &str, news: &News) {
        self.replicas.tell(to, &self.address(id), json!(news)).await;
    }

    /// Begins with a copy of a session whose handshake was made.
    ///
    /// # Errors
    /// The session has ended meanwhile.
    pub async fn opened(self: &Arc<Self>, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        let outside = self.local.create_standalone_stream(id).await?;
        let (weak, name) = (Arc::downgrade(self), Arc::clone(id));
        let served = self.replicas.serve(self.address(id), move |incoming| {
            if let Some(sessions) = weak.upgrade() {
                tokio::spawn(sessions.received(Arc::clone(&name), incoming));
            }
        });
        let live = Live {
            _served: served,
            streams: Vec::new(),
            stream_at: None,
            unsent: VecDeque::new(),
            prolonged: Instant::now(),
        };
        self.live().insert(Arc::clone(id), live);
        tokio::spawn(send_outside(Arc::downgrade(self), Arc::clone(id), outside));
        // The client says so only once, and to one replica.
        let initialized = ClientNotification::InitializedNotification(InitializedNotification::default());
        self.local.accept_message(id, ClientJsonRpcMessage::notification(initialized)).await
    }

    /// Does what has changed the session since it was opened.
    pub async fn restored(self: &Arc<Self>, id: &SessionId) -> Result<(), StoreError> {
        let key = self.key(id);
        let stored = self.store.get(&key, self.idle).await?;
        let requests = self.store.requests(&key).await?;
        if let Some(live) = self.live().get_mut(id) {
            live.stream_at = stored.and_then(|stored| stored.stream);
        }
        let requests = requests.iter().filter_map(|request| serde_json::from_str(request).ok());
        let repeating: Vec<_> = requests.map(|request| self.repeat(id, request)).collect();
        let _ = tokio::time::timeout(REPEAT_TIMEOUT, futures_util::future::join_all(repeating)).await;
        Ok(())
    }

    /// Forgets a copy that was closed.
    pub fn closed(&self, id: &SessionId) {
        self.live().remove(id);
    }

    /// Makes a request that has changed a session at another replica.
    async fn repeat(&self, id: &SessionId, request: Value) {
        let Ok(mut message) = serde_json::from_value::<ClientJsonRpcMessage>(request) else { return };
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            let name = format!("{}~repeated", self.replicas.id());
            request.id = RequestId::String(format!("{name}{}", codecall_store::now_us()).into());
            if let Ok(mut answers) = self.local.create_stream(id, message).await.map(Box::pin) {
                while answers.next().await.is_some() {}
            }
        }
    }

    /// Receives what another replica says of a session.
    async fn received(self: Arc<Self>, id: SessionId, incoming: Incoming) {
        let Ok(news) = serde_json::from_value::<News>(incoming.body.clone()) else { return };
        match news {
            News::FromClient(message) => {
                if let Ok(message) = serde_json::from_value::<ClientJsonRpcMessage>(message) {
                    let _ = self.local.accept_message(&id, message).await;
                }
            }
            News::ForClient(message) => {
                if let Ok(message) = serde_json::from_value::<ServerJsonRpcMessage>(message) {
                    self.send(&id, Arc::new(message)).await;
                }
            }
            News::Changed(request) => {
                self.repeat(&id, request).await;
                incoming.answer(Value::Null);
            }
            News::Stream(at) => {
                let unsent = {
                    let mut live = self.live();
                    let Some(live) = live.get_mut(&id) else { return };
                    live.stream_at = Some(at.clone());
                    std::mem::take(&mut live.unsent)
                };
                for message in unsent {
                    self.tell(&at, &id, &News::ForClient(json!(*message))).await;
                }
            }
            News::Ended => {
                let _ = self.local.close_session(&id).await;
            }
            News::Resume { event, to } => {
                let event = EventName::parse(&event);
                let stream = event.and_then(|event| self.answers.resume(&id, &event));
                let sender = incoming.sender.clone();
                incoming.answer(json!(stream.is_some()));
                let Some(mut stream) = stream else { return };
                while let Some(sent) = stream.recv().await {
                    let relayed: Relayed = Some((sent.event_id, sent.message.map(|message| json!(*message))));
                    self.replicas.tell(&sender, &to, json!(relayed)).await;
                    // The client is no longer there if its replica has ended.
                    if !self.replicas.is_there(&sender).await {
                        return;
                    }
                }
                self.replicas.tell(&sender, &to, json!(Relayed::None)).await;
            }
        }
    }

    /// Sends a message to the stream of the client, at whichever replica it is.
    async fn send(&self, id: &SessionId, message: Arc<ServerJsonRpcMessage>) {
        let (stream, at) = {
            let mut live = self.live();
            let Some(live) = live.get_mut(id) else { return };
            live.streams.retain(|stream| !stream.is_closed());
            (live.streams.last().cloned(), live.stream_at.clone())
        };
        if let Some(stream) = stream {
            let own = named(self.replicas.id(), ServerSseMessage::from_message((*message).clone()), None);
            let _ = tokio::time::timeout(SEND_TIMEOUT, stream.send(own)).await;
            return;
        }
        match at {
            Some(at) if at != self.replicas.id() && self.replicas.is_there(&at).await => {
                if !is_sent_by_all(&message) {
                    let own = named(self.replicas.id(), ServerSseMessage::from_message((*message).clone()), None);
                    self.tell(&at, id, &News::ForClient(json!(own.message.as_deref()))).await;
                }
            }
            Some(_) | None => {
                if let Some(live) = self.live().get_mut(id) {
                    if live.unsent.len() >= MAX_UNSENT {
                        live.unsent.pop_front();
                    }
                    live.unsent.push_back(message);
                }
            }
        }
    }

    /// Opens a stream for what the server sends outside of answers. `is_again`: the client has lost one.
    pub async fn open_stream(&self, id: &SessionId, is_again: bool) -> impl Stream<Item = ServerSseMessage> + use<> {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let own = self.replicas.id();
        let (is_moved, unsent) = {
            let mut live = self.live();
            match live.get_mut(id) {
                Some(live) => {
                    live.streams.retain(|stream| !stream.is_closed());
                    if live.streams.len() >= MAX_STREAMS {
                        live.streams.remove(0);
                    }
                    live.streams.push(sender.clone());
                    let before = live.stream_at.replace(own.to_owned());
                    (before.as_deref() != Some(own), std::mem::take(&mut live.unsent))
                }
                None => (false, VecDeque::new()),
            }
        };
        if is_again && is_moved {
            // What the other replica has sent meanwhile may be lost.
            let changed = ServerNotification::ToolListChangedNotification(Default::default());
            let _ = sender.try_send(ServerSseMessage::from_message(ServerJsonRpcMessage::notification(changed)));
        }
        for message in unsent {
            let _ = sender.try_send(named(own, ServerSseMessage::from_message((*message).clone()), None));
        }
        if is_moved {
            if let Err(error) = self.store.set_stream(&self.key(id), own).await {
                tracing::warn!("other replicas may not find the stream of a client: {error}");
            }
            self.tell_all(id, &News::Stream(own.to_owned())).await;
        }
        received(receiver)
    }

    /// Passes a message of the client on that answers nothing here. Returns it if it is for this replica.
    pub async fn route(&self, id: &SessionId, mut message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        let asked = match &mut message {
            ClientJsonRpcMessage::Response(response) => Some(&mut response.id),
            ClientJsonRpcMessage::Error(error) => error.id.as_mut(),
            ClientJsonRpcMessage::Notification(notification) => {
                match &notification.notification {
                    // Each copy was told when it was opened.
                    ClientNotification::InitializedNotification(_) => return None,
                    // The request may be anywhere.
                    ClientNotification::CancelledNotification(_) => {
                        self.tell_all(id, &News::FromClient(json!(message))).await;
                    }
                    _ => {}
                }
                return Some(message);
            }
            ClientJsonRpcMessage::Request(_) => return Some(message),
        };
        let Some((replica, number)) = asked.as_deref().and_then(request_of) else { return Some(message) };
        if let Some(asked) = asked {
            *asked = number;
        }
        if replica == self.replicas.id() {
            return Some(message);
        }
        self.tell(&replica, id, &News::FromClient(json!(message))).await;
        None
    }

    /// Sends the answer to a request, on a stream that can be resumed at any replica. What changes the session is
    /// stored, and the
    /// others are told, before the client has the answer.
    pub fn answer<S: Stream<Item = ServerSseMessage> + Send + 'static>(
        self: &Arc<Self>,
        id: &SessionId,
        request: ClientJsonRpcMessage,
        answers: S,
    ) -> impl Stream<Item = ServerSseMessage> + use<S> {
        self.prolong(id);
        let (change, request_id) = match &request {
            ClientJsonRpcMessage::Request(message) => (Change::of(&message.request), message.id.clone()),
            // Only requests have answers.
            _ => (None, RequestId::Number(0)),
        };
        let change = change.map(|change| (change, json!(request)));
        let (sessions, session) = (Arc::clone(self), Arc::clone(id));
        let before = move |message: &ServerJsonRpcMessage| {
            let (change, request) = change.clone()?;
            let (sessions, session) = (Arc::clone(&sessions), Arc::clone(&session));
            let is_done = matches!(message, ServerJsonRpcMessage::Response(_));
            is_done.then_some(async move { sessions.changed(&session, &change, &request).await })
        };
        received(self.answers.send(self.replicas.id(), id, request_id, answers, before))
    }

    async fn changed(&self, id: &SessionId, change: &Change, request: &Value) {
        let text = request.to_string();
        let text = if change.is_undone { None } else { Some(text.as_str()) };
        if let Err(error) = self.store.set_request(&self.key(id), &change.name, text).await {
            tracing::warn!("a session differs between replicas: {error}");
        }
        let news = json!(News::Changed(request.clone()));
        self.replicas.ask_all(&self.address(id), &news, CHANGE_TIMEOUT).await;
    }

    /// Notes that a session is used.
    fn prolong(self: &Arc<Self>, id: &SessionId) {
        let is_due = self.live().get_mut(id).is_some_and(|live| {
            let is_due = live.prolonged.elapsed() > self.idle / 4;
            if is_due {
                live.prolonged = Instant::now();
            }
            is_due
        });
        if is_due {
            let (sessions, id) = (Arc::clone(self), Arc::clone(id));
            tokio::spawn(async move {
                match sessions.store.get(&sessions.key(&id), sessions.idle).await {
                    Ok(Some(_)) => {}
                    // It was ended while this replica did not hear of it.
                    Ok(None) => drop(sessions.local.close_session(&id).await),
                    Err(error) => tracing::warn!("a session may expire at other replicas: {error}"),
                }
            });
        }
    }

    /// Goes on with a stream that the client has lost.
    pub async fn resume(
        self: &Arc<Self>,
        id: &SessionId,
        event: &str,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
        let Some(name) = EventName::parse(event) else {
            return self.open_stream(id, true).await.left_stream();
        };
        let receiver = if name.replica == self.replicas.id() {
            // Nothing comes on a stream that is not known any more.
            self.answers.resume(id, &name).unwrap_or_else(|| mpsc::channel(1).1)
        } else {
            let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
            let (sessions, id, event) = (Arc::clone(self), Arc::clone(id), event.to_owned());
            tokio::spawn(async move {
                let closed = sender.clone();
                tokio::select! {
                    () = sessions.resume_elsewhere(&id, name, event, sender) => {}
                    () = closed.closed() => {}
                }
            });
            receiver
        };
        received(receiver).right_stream()
    }

    /// Sends what comes after an event of another replica.
    async fn resume_elsewhere(
        &self,
        id: &SessionId,
        name: EventName,
        event: String,
        client: mpsc::Sender<ServerSseMessage>,
    ) {
        let address = format!("stream {}", RunId::random());
        let (sender, mut relayed) = mpsc::unbounded_channel();
        let _served = self.replicas.serve(address.clone(), move |incoming| {
            if let Ok(message) = serde_json::from_value::<Relayed>(incoming.body) {
                let _ = sender.send(message);
            }
        });
        let question = json!(News::Resume { event, to: address });
        match self.replicas.ask(&name.replica, &self.address(id), question).await {
            Ok(Value::Bool(true)) => {}
            Ok(_) | Err(NotAnswered::Unknown | NotAnswered::Unsent(_)) => return,
            Err(NotAnswered::Ended) => return lost(&client, name.request).await,
        }
        loop {
            match tokio::time::timeout(LOOK, relayed.recv()).await {
                Ok(Some(Some((event_id, message)))) => {
                    let Some(message) = message.and_then(|message| serde_json::from_value(message).ok()) else {
                        continue;
                    };
                    let mut sent = ServerSseMessage::from_message(message);
                    // It is named already.
                    sent.event_id = event_id;
                    if client.send(sent).await.is_err() {
                        return;
                    }
                }
                Ok(Some(None) | None) => return,
                Err(_) if self.replicas.is_there(&name.replica).await => {}
                Err(_) => return lost(&client, name.request).await,
            }
        }
    }
}

/// Tells a client that its request is lost.
async fn lost(client: &mpsc::Sender<ServerSseMessage>, request: Option<RequestId>) {
    if let Some(request) = request {
        let lost = ServerJsonRpcMessage::error(lost_request(), Some(request));
        let _ = client.send(ServerSseMessage::from_message(lost)).await;
    }
}

/// The error of a request whose replica has ended.
fn lost_request() -> ErrorData {
    let message = "The server that had this request has ended before it answered. Calls of tools may have been made, or not: \
        check that before you send it again";
    ErrorData::new(ErrorCode::INTERNAL_ERROR, message, Some(json!({"code": "SERVER_ENDED", "mayHaveRun": true})))
}

/// Sends what a copy sends outside of answers to the stream of the client, until the copy is closed.
async fn send_outside(
    sessions: Weak<SharedSessions>,
    id: SessionId,
    outside: impl Stream<Item = ServerSseMessage> + Send,
) {
    let mut outside = std::pin::pin!(outside);
    while let Some(event) = outside.next().await {
        let Some(sessions) = sessions.upgrade() else { return };
        if let Some(message) = event.message {
            sessions.send(&id, message).await;
        }
    }
}

/// Whether each replica sends a message by itself.
fn is_sent_by_all(message: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Notification(notification) = message else { return false };
    matches!(
        notification.notification,
        ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_)
            | ServerNotification::PromptListChangedNotification(_)
            | ServerNotification::ResourceUpdatedNotification(_)
    )
}

/// The changes of a session by a request.
#[derive(Clone)]
struct Change {
    name: String,
    /// Whether it undoes an earlier one of its name.
    is_undone: bool,
}

impl Change {
    fn of(request: &ClientRequest) -> Option<Self> {
        let change = |name: String, is_undone: bool| Some(Self { name, is_undone });
        match request {
            ClientRequest::SetLevelRequest(_) => change("level".into(), false),
            ClientRequest::SubscribeRequest(request) => change(format!("resource {}", request.params.uri), false),
            ClientRequest::UnsubscribeRequest(request) => change(format!("resource {}", request.params.uri), true),
            _ => None,
        }
    }
}

/// Whether a message repeats the handshake of a session that another replica has opened.
pub fn is_restoring(message: &ClientJsonRpcMessage) -> bool {
    use rmcp::model::GetExtensions as _;
    match message {
        ClientJsonRpcMessage::Request(request) => request.request.extensions().get::<SessionRestoreMarker>().is_some(),
        ClientJsonRpcMessage::Notification(notification) => {
            notification.notification.extensions().get::<SessionRestoreMarker>().is_some()
        }
        ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => false,
    }
}

/// Stores what sessions were opened with.
pub struct Openings(pub Arc<SharedSessions>);

#[async_trait::async_trait]
impl SessionStore for Openings {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let sessions = &self.0;
        let stored = sessions.store.get(&sessions.key(id), sessions.idle).await;
        let stored = stored.inspect_err(|_| super::refuse(super::Refused::NoStore))?;
        let Some(stored) = stored else { return Ok(None) };
        Ok(Some(SessionState::new(serde_json::from_str(&stored.opening)?)))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let opening = serde_json::to_string(&state.initialize_params)?;
        if opening.len() > MAX_OPENING_BYTES {
            return Err(StoreError(format!("'initialize' has more than {MAX_OPENING_BYTES} bytes")).into());
        }
        Ok(self.0.store.put(&self.0.key(id), &opening, self.0.idle).await?)
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.0.store.delete(&self.0.key(id)).await?;
        self.0.tell_all(id, &News::Ended).await;
        Ok(())
    }
}
