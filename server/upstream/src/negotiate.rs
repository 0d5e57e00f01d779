//! The start of a connection: finds out which of the two lifecycles of MCP a server speaks.
//!
//! rmcp's own negotiation waits for a fixed time, and a late answer to its probe ends the session. Here each request is
//! sent once, on the same connection, and the first answer decides, however long it takes. An answer to the other request
//! is dropped whenever it comes. Then rmcp makes its request, and gets the answer that is already there.
//!
//! It must not know how long a start may take.

use super::mcp;
use codecall_config::Lifecycle;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleClient;
use rmcp::model::*;
use rmcp::service::ClientInitializeError;
use rmcp::transport::Transport;
use std::time::Duration;

/// How long the first request goes unanswered until the second is sent too. A server that ignores requests it does not know
/// answers the second one, one that starts slowly answers both.
pub const SECOND_REQUEST_AFTER: Duration = Duration::from_secs(5);

/// The version of the stateless lifecycle.
const STATELESS: ProtocolVersion = ProtocolVersion::V_2026_07_28;

// rmcp counts its ids from 0, and some servers take only numbers of 32 bits.
const DISCOVER_ID: RequestId = RequestId::Number(2_000_000_001);
const INITIALIZE_ID: RequestId = RequestId::Number(2_000_000_002);
const DISCOVER_AGAIN_ID: RequestId = RequestId::Number(2_000_000_003);

/// The requests of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// One request.
    Only(Request),
    /// The request that the server has answered before; the other one if the server refuses it now.
    Remembered(Request),
    /// `server/discover`; `initialize` if the server refuses that, or has not answered it for a while.
    Unknown,
}

/// A request that begins a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `initialize`
    Initialize,
    /// `server/discover`
    Discover,
}

impl Plan {
    /// Returns the plan for the configured lifecycle and the one that has worked before.
    #[must_use]
    pub fn new(configured: Lifecycle, remembered: Option<Lifecycle>) -> Self {
        match (configured, remembered) {
            (Lifecycle::Initialize, _) => Self::Only(Request::Initialize),
            (Lifecycle::Discover, _) => Self::Only(Request::Discover),
            (Lifecycle::Auto, Some(Lifecycle::Initialize)) => Self::Remembered(Request::Initialize),
            (Lifecycle::Auto, Some(Lifecycle::Discover)) => Self::Remembered(Request::Discover),
            (Lifecycle::Auto, Some(Lifecycle::Auto) | None) => Self::Unknown,
        }
    }

    /// Returns the first request.
    #[must_use]
    pub fn first(self) -> Request {
        match self {
            Self::Only(first) | Self::Remembered(first) => first,
            Self::Unknown => Request::Discover,
        }
    }

    /// Returns the second request, if there may be one.
    #[must_use]
    pub fn second(self) -> Option<Request> {
        match self {
            Self::Only(_) => None,
            Self::Remembered(_) | Self::Unknown => Some(self.first().other()),
        }
    }

    /// Whether the second request is sent too if the first one is not answered for [`SECOND_REQUEST_AFTER`].
    #[must_use]
    pub fn is_impatient(self) -> bool {
        self == Self::Unknown
    }
}

impl Request {
    fn other(self) -> Self {
        match self {
            Self::Initialize => Self::Discover,
            Self::Discover => Self::Initialize,
        }
    }

    /// Returns the lifecycle that it begins.
    #[must_use]
    pub fn lifecycle(self) -> Lifecycle {
        match self {
            Self::Initialize => Lifecycle::Initialize,
            Self::Discover => Lifecycle::Discover,
        }
    }

    fn id(self) -> RequestId {
        match self {
            Self::Initialize => INITIALIZE_ID,
            Self::Discover => DISCOVER_ID,
        }
    }

    fn message(self, id: RequestId) -> ClientJsonRpcMessage {
        let config = mcp::client_config();
        let request = match self {
            Self::Initialize => ClientRequest::InitializeRequest(InitializeRequest::new(config)),
            Self::Discover => {
                let meta = RequestMetaObject::with_client_context(STATELESS, config.client_info, config.capabilities);
                let mut discover = DiscoverRequest::new(DiscoverRequestParams {});
                discover.extensions.insert(meta);
                ClientRequest::DiscoverRequest(discover)
            }
        };
        ClientJsonRpcMessage::request(request, id)
    }

    /// Checks an answer.
    ///
    /// # Errors
    /// The server does not speak this lifecycle: why.
    fn check(self, result: &ServerResult) -> Result<(), String> {
        match (self, result) {
            (Self::Initialize, ServerResult::InitializeResult(_)) => Ok(()),
            (Self::Discover, ServerResult::DiscoverResult(found)) if found.supported_versions.contains(&STATELESS) => {
                Ok(())
            }
            (Self::Discover, ServerResult::DiscoverResult(_)) => {
                Err("it speaks no version of MCP that is known here".into())
            }
            (Self::Initialize | Self::Discover, _) => Err("its answer to the handshake is not one of MCP".into()),
        }
    }
}

/// A transport whose server has answered. It must be passed to rmcp with [`mcp::lifecycle_mode`] of its lifecycle.
pub struct Negotiated<T> {
    inner: T,
    lifecycle: Lifecycle,
    /// The answer of the server, until rmcp asks for it.
    answer: Option<ServerResult>,
    /// The answer with the id of rmcp's request, until rmcp receives it.
    reply: Option<ServerJsonRpcMessage>,
}

impl<T> Negotiated<T> {
    /// Returns the lifecycle that the server speaks.
    pub fn lifecycle(&self) -> Lifecycle {
        self.lifecycle
    }
}

/// Negotiates over a transport. It takes as long as the server.
///
/// # Errors
/// The server refuses, or the connection ends: why.
pub async fn negotiate<T>(transport: T, plan: Plan) -> Result<Negotiated<T>, String>
where
    T: Transport<RoleClient> + 'static,
{
    let mut negotiation =
        Negotiation { transport, sending: FuturesUnordered::new(), refusals: Vec::new(), has_repeated: false };
    negotiation.request(plan.first());
    let mut second = plan.second();
    let mut asked = 1;
    let mut pause = std::pin::pin!(tokio::time::sleep(SECOND_REQUEST_AFTER));
    loop {
        let answered = tokio::select! {
            biased;
            answered = negotiation.next_answer() => answered?,
            () = &mut pause, if plan.is_impatient() && second.is_some() => None,
        };
        if let Some((request, result)) = answered {
            return Ok(Negotiated {
                inner: negotiation.transport,
                lifecycle: request.lifecycle(),
                answer: Some(result),
                reply: None,
            });
        }
        if let Some(request) = second.take() {
            negotiation.request(request);
            asked += 1;
        } else if negotiation.refusals.len() >= asked {
            return Err(negotiation.refusal());
        }
    }
}

struct Negotiation<T: Transport<RoleClient>> {
    transport: T,
    sending: FuturesUnordered<BoxFuture<'static, Result<(), T::Error>>>,
    /// The requests that were refused, and why.
    refusals: Vec<(Request, String)>,
    /// Whether `server/discover` was sent a second time.
    has_repeated: bool,
}

impl<T: Transport<RoleClient> + 'static> Negotiation<T> {
    fn send(&mut self, message: ClientJsonRpcMessage) {
        self.sending.push(Box::pin(self.transport.send(message)));
    }

    fn request(&mut self, request: Request) {
        self.send(request.message(request.id()));
    }

    /// Returns the answer to a request; `None` if one was refused.
    ///
    /// # Errors
    /// The connection has ended.
    async fn next_answer(&mut self) -> Result<Option<(Request, ServerResult)>, String> {
        loop {
            let message = tokio::select! {
                biased;
                // It says more than the end of the connection that follows it.
                Some(sent) = self.sending.next() => {
                    sent.map_err(|error| {
                        mcp::handshake_error(ClientInitializeError::transport::<T>(error, "send a handshake"))
                    })?;
                    continue;
                }
                message = self.transport.receive() => message,
            };
            let closed = || mcp::handshake_error(ClientInitializeError::ConnectionClosed(String::new()));
            match message.ok_or_else(closed)? {
                JsonRpcMessage::Response(response) => {
                    let Some(request) = Self::request_of(&response.id) else { continue };
                    match request.check(&response.result) {
                        Ok(()) => return Ok(Some((request, response.result))),
                        Err(reason) => return Ok(self.refuse(request, reason)),
                    }
                }
                JsonRpcMessage::Error(error) => {
                    // A server that cannot read a request may leave out its id.
                    let request = match &error.id {
                        Some(id) => Self::request_of(id),
                        None => Some(Request::Discover),
                    };
                    let Some(request) = request else { continue };
                    if request == Request::Discover && supports_stateless(&error.error) && !self.has_repeated {
                        self.has_repeated = true;
                        self.send(request.message(DISCOVER_AGAIN_ID));
                        continue;
                    }
                    return Ok(self.refuse(request, format!("it refused the handshake: {}", error.error.message)));
                }
                JsonRpcMessage::Request(request) => {
                    if matches!(request.request, ServerRequest::PingRequest(_)) {
                        self.send(ClientJsonRpcMessage::response(ClientResult::empty(()), request.id));
                    }
                }
                // The tools are listed later, so a change of the list is no news.
                JsonRpcMessage::Notification(_) => {}
            }
        }
    }

    fn request_of(id: &RequestId) -> Option<Request> {
        match id {
            id if [DISCOVER_ID, DISCOVER_AGAIN_ID].contains(id) => Some(Request::Discover),
            id if *id == INITIALIZE_ID => Some(Request::Initialize),
            _ => None,
        }
    }

    fn refuse(&mut self, request: Request, reason: String) -> Option<(Request, ServerResult)> {
        self.refusals.push((request, reason));
        None
    }

    /// Returns why the handshake has failed: what the server says of `initialize`, which all of them know.
    fn refusal(self) -> String {
        let mut refusals = self.refusals;
        let at = refusals.iter().position(|(request, _)| *request == Request::Initialize).unwrap_or(0);
        refusals.swap_remove(at).1
    }
}

/// Whether a server refuses the version of a request, and lists just that version.
fn supports_stateless(error: &ErrorData) -> bool {
    let listed = error.data.as_ref().and_then(|data| data.get("supported")?.as_array());
    error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        && listed.is_some_and(|versions| versions.iter().any(|version| version == STATELESS.as_str()))
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Negotiated<T> {
    type Error = T::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_handshake = |message: &ClientJsonRpcMessage| match message {
            JsonRpcMessage::Request(request) => {
                matches!(request.request, ClientRequest::InitializeRequest(_) | ClientRequest::DiscoverRequest(_))
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => false,
        };
        let sending = match (&message, self.answer.take_if(|_| is_handshake(&message))) {
            (JsonRpcMessage::Request(request), Some(answer)) => {
                self.reply = Some(ServerJsonRpcMessage::response(answer, request.id.clone()));
                None
            }
            _ => Some(self.inner.send(message)),
        };
        async move {
            match sending {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        if let Some(reply) = self.reply.take() {
            return Some(reply);
        }
        loop {
            let message = self.inner.receive().await?;
            let answered = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if answered.is_some_and(|id| [DISCOVER_ID, DISCOVER_AGAIN_ID, INITIALIZE_ID].contains(id)) {
                tracing::debug!("a late answer to a handshake is ignored");
                continue;
            }
            return Some(message);
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests;
