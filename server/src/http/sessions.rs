//! Sessions of MCP clients: how many there are, and which one goes when there is no place.
//!
//! A session without a stream is idle. A new one takes the place of an idle one, first of those that have
//! never asked for anything, then of the one that was not used for the longest time. Its client hears that
//! the session does not exist, and begins a new one, as the protocol says.

use super::error::HttpError;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait for the end of a session whose place is needed.
const PATIENCE: Duration = Duration::from_secs(1);

tokio::task_local! {
    /// Whether the request of this task got no session.
    static REFUSED: Cell<bool>;
}

/// The sessions of a server.
pub struct Sessions {
    local: LocalSessionManager,
    most: usize,
    known: Arc<Known>,
}

/// What is known of each session.
#[derive(Default)]
struct Known(Mutex<HashMap<SessionId, Use>>);

struct Use {
    /// Requests so far.
    requests: u64,
    /// Streams of answers that are open.
    streams: usize,
    last: Instant,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The protocol's own reasons.
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
    /// All are in use.
    #[error("there are {0} sessions, which is the most that is allowed, and all are in use")]
    Full(usize),
}

impl Sessions {
    /// At most `most` sessions; one ends that is idle for that long.
    pub fn new(most: usize, idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        Self { local, most, known: Arc::default() }
    }

    /// Make place for a session.
    async fn make_place(&self) -> Result<(), SessionError> {
        loop {
            let goes = {
                let known = self.known.lock();
                if known.len() < self.most {
                    return Ok(());
                }
                let idle = known.iter().filter(|(_, used)| used.streams == 0);
                idle.min_by_key(|(_, used)| (used.requests > 0, used.last)).map(|(id, _)| id.clone())
            };
            let Some(goes) = goes else {
                let _ = REFUSED.try_with(|refused| refused.set(true));
                return Err(SessionError::Full(self.most));
            };
            self.known.lock().remove(&goes);
            // One that does not end by itself ends because it is idle.
            let _ = tokio::time::timeout(PATIENCE, self.local.close_session(&goes)).await;
        }
    }

    /// A stream that keeps its session in use.
    fn in_use(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
        let open = Open::begin(&self.known, id);
        stream.inspect(move |_| {
            let _ = &open;
        })
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        self.make_place().await?;
        let (id, transport) = self.local.create_session().await?;
        self.known.lock().insert(id.clone(), Use { requests: 0, streams: 0, last: Instant::now() });
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.known.lock().remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.known.used(id);
        let stream = self.local.create_stream(id, message).await?;
        Ok(self.in_use(id, stream))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let stream = self.local.create_standalone_stream(id).await?;
        Ok(self.in_use(id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let stream = self.local.resume(id, last_event_id).await?;
        Ok(self.in_use(id, stream))
    }
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Use>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self, id: &SessionId) {
        if let Some(used) = self.lock().get_mut(id) {
            used.requests += 1;
            used.last = Instant::now();
        }
    }
}

/// A stream of a session, until it is dropped.
struct Open(Arc<Known>, SessionId);

impl Open {
    fn begin(known: &Arc<Known>, id: &SessionId) -> Self {
        if let Some(used) = known.lock().get_mut(id) {
            used.streams += 1;
        }
        Self(Arc::clone(known), id.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(used) = self.0.lock().get_mut(&self.1) {
            used.streams = used.streams.saturating_sub(1);
            used.last = Instant::now();
        }
    }
}

/// Answer a request that got no session in words, and not as a failure of the server.
pub async fn explained(request: Request, next: Next) -> Response {
    let answered = async {
        let response = next.run(request).await;
        (response, REFUSED.with(Cell::get))
    };
    match REFUSED.scope(Cell::new(false), answered).await {
        (response, false) => response,
        (_, true) => HttpError::TooManySessions.into_response(),
    }
}
