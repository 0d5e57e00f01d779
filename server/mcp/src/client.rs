//! The client of a request, as tools ask it.
//!
//! A client with a session gets requests. They are sent by the task of its own request, because rmcp sends them on the
//! stream of the request whose task it is. A client without a session gets its questions as the result of its request
//! ([`suspended`](super::suspended)).

use super::is_modern;
use super::notifications::NOTIFY_TIMEOUT;
use super::suspended;
use codecall_base::client::{Answering, Client, Method, PageDone, Port, Question, TaskUpdate, Unanswered, Waits};
use codecall_config::InteractionConfig;
use codecall_upstream::notifications::PAGE_DONE;
use futures_channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rmcp::RoleServer;
use rmcp::model::*;
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, ServiceError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Maximum number of messages of tools in the queue of a request. Questions are always sent: each has a call that waits.
const QUEUE_CAPACITY: usize = 16;

/// The messages of tools to the client of their request. Most requests have none, and a queue of tokio allocates 32
/// places at once.
pub type Messages = UnboundedReceiver<Message>;

/// The client of a request, if it has a session.
pub type Session = Option<Arc<Peer<RoleServer>>>;

/// A message of a tool to the client of its request.
pub enum Message {
    Question(PendingQuestion),
    /// How far the task is that its server has made of the call.
    Task(TaskUpdate),
}

/// A question, and where its answer goes.
pub struct PendingQuestion {
    pub question: Question,
    pub answer: oneshot::Sender<Result<Value, Unanswered>>,
}

impl PendingQuestion {
    /// Passes the answer of the client on, if it is one of MCP. Otherwise it returns the question.
    pub fn answered(self, answer: Value) -> Result<(), Self> {
        if !is_answer(self.question.method, &answer) {
            return Err(self);
        }
        // The tool may wait no longer.
        let _ = self.answer.send(Ok(answer));
        Ok(())
    }
}

struct RequestPort {
    capabilities: Value,
    log_level: Option<String>,
    client: u64,
    waits: Waits,
    /// Whether the request can become a task.
    can_be_task: bool,
    /// The client, if it has a session. Without one, it learns by its next request that a page is done.
    session: Session,
    messages: UnboundedSender<Message>,
}

impl Port for RequestPort {
    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn log_level(&self) -> Option<&str> {
        self.log_level.as_deref()
    }

    fn client(&self) -> u64 {
        self.client
    }

    fn waits(&self) -> &Waits {
        &self.waits
    }

    fn ask(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            let gone = |_| Unanswered::Refused("the client's request has ended".into());
            let (answer, receiver) = oneshot::channel();
            let asked = Message::Question(PendingQuestion { question, answer });
            self.messages.unbounded_send(asked).map_err(|_| gone(()))?;
            receiver.await.map_err(|_| gone(()))?
        })
    }

    fn page_done(&self) -> Option<PageDone> {
        let peer = self.session.clone()?;
        Some(Arc::new(move |id| {
            let peer = peer.clone();
            let params = json!({"elicitationId": id});
            let notification = CustomNotification::new(PAGE_DONE, Some(params));
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    let notification = ServerNotification::CustomNotification(notification);
                    let _ = tokio::time::timeout(NOTIFY_TIMEOUT, peer.send_notification(notification)).await;
                });
            }
        }))
    }

    fn task_changed(&self, update: TaskUpdate) -> bool {
        // One that finds no room is lost: the next one says how far the task is then.
        let is_full = || self.messages.len() >= QUEUE_CAPACITY;
        let send = |update| self.messages.unbounded_send(Message::Task(update)).is_ok();
        self.can_be_task && !self.messages.is_closed() && (is_full() || send(update))
    }
}

/// Returns the client of a request, as tools ask it and as it is asked, and what tools send to it. `number` identifies the
/// client.
pub fn of_request(
    context: &RequestContext<RoleServer>,
    number: u64,
    config: InteractionConfig,
    can_be_task: bool,
) -> (Client, Session, Messages) {
    let (messages, receiver) = unbounded();
    let session = (!is_modern(context)).then(|| Arc::new(context.peer.clone()));
    let capabilities = context.client_capabilities().and_then(|own| serde_json::to_value(own).ok());
    let log_level = context.meta.log_level().and_then(|level| serde_json::to_value(level).ok());
    let port = RequestPort {
        capabilities: capabilities.unwrap_or_else(|| json!({})),
        log_level: log_level.and_then(|level| level.as_str().map(str::to_owned)),
        client: number,
        waits: Waits::new(config.max_wait),
        can_be_task,
        session: session.clone(),
        messages,
    };
    (Client::new(Arc::new(port)), session, receiver)
}

/// The client of a connection outside of its requests. It is only asked for its roots.
struct SessionPort {
    peer: Peer<RoleServer>,
    capabilities: Value,
    client: u64,
    waits: Waits,
}

impl Port for SessionPort {
    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn client(&self) -> u64 {
        self.client
    }

    fn waits(&self) -> &Waits {
        &self.waits
    }

    fn ask(&self, question: Question) -> Answering<'_> {
        Box::pin(async move {
            let (answer, receiver) = oneshot::channel();
            let asking = tokio::time::timeout(self.waits.max(), ask(&self.peer, PendingQuestion { question, answer }));
            let gone = || Unanswered::Refused("the client has not answered".into());
            asking.await.map_err(|_| gone())?;
            receiver.await.map_err(|_| gone())?
        })
    }
}

/// Returns the client of a connection that is the only one of the process, if it has roots.
pub fn of_session(peer: &Peer<RoleServer>, number: u64, config: InteractionConfig) -> Option<Client> {
    let info = peer.peer_info()?;
    let capabilities = serde_json::to_value(&info.capabilities).ok()?;
    capabilities.get("roots").filter(|_| config.enabled)?;
    let waits = Waits::new(config.max_wait);
    Some(Client::new(Arc::new(SessionPort { peer: peer.clone(), capabilities, client: number, waits })))
}

/// Waits for an answer, and asks a client with a session meanwhile. It must be polled in the task of the request.
// It waits for the first question on its own, as most requests have none.
pub fn while_asked(mut answer: suspended::Answering, session: Session, mut messages: Messages) -> suspended::Answering {
    let Some(peer) = session else { return answer };
    Box::pin(async move {
        let first = tokio::select! {
            answer = &mut answer => return answer,
            first = messages.next() => first,
        };
        let Some(first) = first else { return answer.await };
        let asking = ask_session(peer, first, messages);
        tokio::select! {
            answer = &mut answer => answer,
            () = asking => answer.await,
        }
    })
}

/// Asks a client with a session. It ends after the last question.
async fn ask_session(peer: Arc<Peer<RoleServer>>, first: Message, mut messages: Messages) {
    let mut asking = FuturesUnordered::new();
    let mut next = Some(first);
    loop {
        match next.take() {
            Some(Message::Question(asked)) => asking.push(ask(&peer, asked)),
            // It knows no tasks.
            Some(Message::Task(_)) | None => {}
        }
        tokio::select! {
            Some(message) = messages.next() => next = Some(message),
            Some(()) = asking.next() => {}
            else => return,
        }
    }
}

async fn ask(peer: &Peer<RoleServer>, asked: PendingQuestion) {
    let PendingQuestion { question, mut answer } = asked;
    if answer.is_closed() {
        return;
    }
    let method = question.method;
    let answered = tokio::select! {
        answered = request(peer, question) => answered,
        // Dropping the request withdraws it.
        () = answer.closed() => return,
    };
    let checked = match answered {
        Ok(value) if !is_answer(method, &value) => {
            Err(Unanswered::Refused("the client's answer is not one of MCP".into()))
        }
        Ok(value) => Ok(value),
        Err(ServiceError::McpError(error)) => {
            Err(Unanswered::Error { code: error.code.0, message: error.message.into_owned() })
        }
        Err(_) => Err(Unanswered::Refused("the connection to the client has ended".into())),
    };
    let _ = answer.send(checked);
}

async fn request(peer: &Peer<RoleServer>, question: Question) -> Result<Value, ServiceError> {
    let request = server_request(question);
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let mut withdraw = WithdrawOnDrop(Some((peer.clone(), handle.id.clone())));
    let result = handle.await_response().await;
    withdraw.0 = None;
    serde_json::to_value(result?).map_err(|_| ServiceError::UnexpectedResponse)
}

/// Parameters that rmcp does not know, such as a schema of a later version, are sent as they are.
#[expect(deprecated, reason = "current servers still ask for it")]
fn server_request(Question { method, params, .. }: Question) -> ServerRequest {
    let typed = match method {
        Method::Elicitation => serde_json::from_value(params.clone())
            .map(|params| ServerRequest::ElicitRequest(ElicitRequest::new(params))),
        Method::Sampling => serde_json::from_value(params.clone())
            .map(|params| ServerRequest::CreateMessageRequest(CreateMessageRequest::new(params))),
        Method::Roots => Ok(ServerRequest::ListRootsRequest(ListRootsRequest::default())),
    };
    typed.unwrap_or_else(|_| ServerRequest::CustomRequest(CustomRequest::new(method.as_str(), Some(params))))
}

/// Whether a value is an answer to a question of this kind.
#[expect(deprecated, reason = "current servers still ask for it")]
fn is_answer(method: Method, answer: &Value) -> bool {
    fn is<T: DeserializeOwned>(value: &Value) -> bool {
        serde_json::from_value::<T>(value.clone()).is_ok()
    }
    match method {
        Method::Elicitation => is::<ElicitResult>(answer),
        Method::Sampling => is::<CreateMessageResult>(answer),
        Method::Roots => is::<ListRootsResult>(answer),
    }
}

/// Withdraws a request when it is dropped, unless it was emptied before.
struct WithdrawOnDrop(Option<(Peer<RoleServer>, RequestId)>);

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        let Some((peer, id)) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let params = CancelledNotificationParam::new(Some(id), Some("the answer is not needed any more".into()));
            runtime.spawn(async move { peer.notify_cancelled(params).await });
        }
    }
}
