//! Sessions of MCP clients: their maximum number, and the eviction of idle ones.
//!
//! A session without an open stream is idle. If there are too many sessions, a new one evicts an idle one. One that has
//! never made a request comes first, then the least recently used. Its client gets 404 for the next request and starts
//! a
//! new session, as MCP requires. If the server has replicas, all of them have the sessions ([`shared`]), so that an evicted
//! one is opened again.

mod answers;
mod names;
mod shared;

use super::error::HttpError;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use codecall_hub::hub::Replicas;
use codecall_store::StoreError;
use futures_util::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager, SessionStore,
};
use shared::{Openings, SharedSessions, is_restoring};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long to wait for an evicted session to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// Why the request of this task was refused a session.
    static REFUSED: Cell<Option<Refused>>;
}

/// Why a request is refused a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// All are in use.
    Full,
    /// The store cannot be asked for it.
    NoStore,
}

fn refuse(why: Refused) {
    let _ = REFUSED.try_with(|refused| refused.set(Some(why)));
}

/// The sessions of a server.
pub struct Sessions {
    local: Arc<LocalSessionManager>,
    max_sessions: usize,
    registry: Arc<Registry>,
    /// The sessions of all replicas; `None`: there is only this process.
    shared: Option<Arc<SharedSessions>>,
}

/// The use of each session.
#[derive(Default)]
struct Registry(Mutex<HashMap<SessionId, Usage>>);

struct Usage {
    /// Number of requests so far.
    requests: u64,
    /// Number of open streams.
    streams: usize,
    last_used: Instant,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// An error of rmcp.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
    /// All sessions are in use.
    #[error("there are {0} sessions, which is the most that is allowed, and all are in use")]
    Full(usize),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Sessions {
    /// Allows `max_sessions`, and closes a session after it was idle for `idle_timeout`.
    pub fn new(max_sessions: usize, idle_timeout: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle_timeout);
        Self { local: Arc::new(local), max_sessions, registry: Arc::default(), shared: None }
    }

    /// Shares the sessions with replicas. `scope` says whose they are.
    pub fn shared_by(mut self, replicas: &Arc<Replicas>, scope: String, idle: Duration) -> Self {
        self.shared = Some(SharedSessions::new(replicas, scope, idle, &self.local));
        self
    }

    /// Returns where sessions are stored for other replicas.
    pub fn store(&self) -> Option<Arc<dyn SessionStore>> {
        self.shared.clone().map(|shared| Arc::new(Openings(shared)) as _)
    }

    /// Evicts idle sessions until there is room for another one.
    async fn make_room(&self) -> Result<(), SessionError> {
        loop {
            let evicted = {
                let registry = self.registry.lock();
                if registry.len() < self.max_sessions {
                    return Ok(());
                }
                let idle = registry.iter().filter(|(_, usage)| usage.streams == 0);
                idle.min_by_key(|(_, usage)| (usage.requests > 0, usage.last_used)).map(|(id, _)| id.clone())
            };
            let Some(evicted) = evicted else {
                refuse(Refused::Full);
                return Err(SessionError::Full(self.max_sessions));
            };
            self.registry.lock().remove(&evicted);
            // If it does not close in time, it will when its idle timeout is over.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.local.close_session(&evicted)).await;
        }
    }

    /// Wraps a stream, so that its session is in use until the stream is dropped.
    fn track_stream(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let guard = StreamGuard::new(&self.registry, id);
        stream.inspect(move |_| {
            let _ = &guard;
        })
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        self.make_room().await?;
        let (id, transport) = self.local.create_session().await?;
        self.registry.lock().insert(id.clone(), Usage { requests: 0, streams: 0, last_used: Instant::now() });
        Ok((id, transport))
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, SessionError> {
        self.make_room().await?;
        let outcome = self.local.restore_session(id.clone()).await?;
        if let RestoreOutcome::Restored(_) = &outcome {
            self.registry.lock().insert(id, Usage { requests: 0, streams: 0, last_used: Instant::now() });
        }
        Ok(outcome)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let answer = self.local.initialize_session(id, message).await?;
        if let Some(shared) = &self.shared {
            shared.opened(id).await?;
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.registry.lock().remove(id);
        if let Some(shared) = &self.shared {
            shared.closed(id);
        }
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.registry.record_request(id);
        let Some(shared) = &self.shared else {
            let stream = self.local.create_stream(id, message).await?;
            return Ok(self.track_stream(id, stream).left_stream());
        };
        let request = message.clone();
        let stream = self.local.create_stream(id, message).await?;
        Ok(self.track_stream(id, shared.answer(id, request, stream)).right_stream())
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        let Some(shared) = &self.shared else { return Ok(self.local.accept_message(id, message).await?) };
        if is_restoring(&message) {
            let restored = shared.restored(id).await;
            return restored.map_err(|error| {
                refuse(Refused::NoStore);
                SessionError::Store(error)
            });
        }
        match shared.route(id, message).await {
            Some(message) => Ok(self.local.accept_message(id, message).await?),
            None => Ok(()),
        }
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let Some(shared) = &self.shared else {
            let stream = self.local.create_standalone_stream(id).await?;
            return Ok(self.track_stream(id, stream).left_stream());
        };
        Ok(self.track_stream(id, shared.open_stream(id, false).await).right_stream())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let Some(shared) = &self.shared else {
            let stream = self.local.resume(id, last_event_id).await?;
            return Ok(self.track_stream(id, stream).left_stream());
        };
        Ok(self.track_stream(id, shared.resume(id, &last_event_id).await).right_stream())
    }
}

/// Converts the messages of a queue to a stream.
fn received<T: Send>(mut receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> + Send + Sync {
    futures_util::stream::poll_fn(move |context| receiver.poll_recv(context))
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Usage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_request(&self, id: &SessionId) {
        if let Some(usage) = self.lock().get_mut(id) {
            usage.requests += 1;
            usage.last_used = Instant::now();
        }
    }
}

/// Counts a stream as open until it is dropped.
struct StreamGuard(Arc<Registry>, SessionId);

impl StreamGuard {
    fn new(registry: &Arc<Registry>, id: &SessionId) -> Self {
        if let Some(usage) = registry.lock().get_mut(id) {
            usage.streams += 1;
        }
        Self(Arc::clone(registry), id.clone())
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if let Some(usage) = self.0.lock().get_mut(&self.1) {
            usage.streams = usage.streams.saturating_sub(1);
            usage.last_used = Instant::now();
        }
    }
}

/// Middleware: answers a request that was refused a session with [`HttpError::TooManySessions`], not with rmcp's 500. The
/// answer to the end of a session is 204, which all clients take for success, not rmcp's 202.
pub async fn explain_refusal(request: Request, next: Next) -> Response {
    let is_end = request.method() == Method::DELETE;
    let answered = async {
        let response = next.run(request).await;
        (response, REFUSED.with(Cell::get))
    };
    match REFUSED.scope(Cell::new(None), answered).await {
        (response, None) if is_end && response.status() == StatusCode::ACCEPTED => {
            StatusCode::NO_CONTENT.into_response()
        }
        (response, None) => response,
        (_, Some(Refused::Full)) => HttpError::TooManySessions.into_response(),
        (_, Some(Refused::NoStore)) => HttpError::SessionsUnavailable.into_response(),
    }
}
