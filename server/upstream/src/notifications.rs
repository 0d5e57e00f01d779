//! Routes notifications of an MCP server: progress and log messages of calls to the sinks of those calls, everything
//! else to the subscribers.

use super::questions::Attribution;
use codecall_base::client::{Client, PageDone};
use codecall_base::event::{CallUpdate, LogMessage, UpdateSink};
use rmcp::model::{ProgressToken, RequestId};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};

/// How many notifications a slow subscriber may lag behind; older ones are dropped.
const CAPACITY: usize = 1_000;

/// The notification by which a server says that a page is done.
pub const PAGE_DONE: &str = "notifications/elicitation/complete";

/// How many pages of a server can be open; for one more, the oldest is forgotten.
const MAX_PAGES: usize = 100;
/// Longest id of a page.
const MAX_PAGE_ID_BYTES: usize = 1_024;

/// How long a question waits for the id of its call, which is known when the call is sent.
const ID_TIMEOUT: Duration = Duration::from_secs(1);

/// A notification that belongs to no call.
#[derive(Clone, Debug, PartialEq)]
pub enum UpstreamNotification {
    /// The list of resources has changed.
    ResourceListChanged,
    /// The list of prompts has changed.
    PromptListChanged,
    /// A subscribed resource has changed: its URI.
    ResourceUpdated(String),
    /// A log message that was sent while no call was in flight.
    Log(LogMessage),
}

/// Routes the notifications of one MCP server.
pub struct NotificationRouter {
    calls: Mutex<Calls>,
    /// Notified when the id of a call becomes known.
    sent: Notify,
    subscribers: broadcast::Sender<UpstreamNotification>,
    /// The client of this process, if it has one only.
    only_client: Mutex<Option<Client>>,
    /// Whom to tell that a page is done, by the ids of the questions.
    pages: Mutex<VecDeque<(String, PageDone)>>,
}

/// The calls in flight.
#[derive(Default)]
struct Calls {
    next: u64,
    open: Vec<OpenCall>,
    /// Progress with a token of no known call: that of a call which is just being made.
    early: VecDeque<(ProgressToken, CallUpdate)>,
}

/// A call in flight.
struct OpenCall {
    number: u64,
    /// Its progress token and the id of its request, once it is sent.
    sent: Option<(ProgressToken, RequestId)>,
    sink: UpdateSink,
    client: Client,
    /// Number of questions that were attributed to it and wait for an answer.
    questions: usize,
}

impl OpenCall {
    fn has_token(&self, token: &ProgressToken) -> bool {
        self.sent.as_ref().is_some_and(|(own, _)| own == token)
    }
}

/// Keeps the sink of a call registered until it is dropped.
pub struct CallGuard<'a>(&'a NotificationRouter, u64);

impl Default for NotificationRouter {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            sent: Notify::new(),
            subscribers: broadcast::Sender::new(CAPACITY),
            only_client: Mutex::default(),
            pages: Mutex::default(),
        }
    }
}

impl NotificationRouter {
    /// Subscribes to all notifications from now on that belong to no call.
    pub fn subscribe(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.subscribers.subscribe()
    }

    /// Returns the client that is asked for its roots, also while no call is in flight.
    pub fn only_client(&self) -> Option<Client> {
        self.only_client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the client that is asked for its roots.
    pub fn set_only_client(&self, client: Client) {
        *self.only_client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }

    /// Notes that a client is asked to open a page: the parameters of the question.
    pub fn expect_page(&self, params: &Value, client: &Client) {
        let Some(id) = params["elicitationId"].as_str().filter(|id| id.len() <= MAX_PAGE_ID_BYTES) else { return };
        let Some(done) = client.port().and_then(|port| port.page_done()) else { return };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.len() >= MAX_PAGES {
            pages.pop_front();
        }
        pages.push_back((id.to_owned(), done));
    }

    /// Tells the client that was asked to open a page that it is done: the parameters of the notification.
    pub fn page_done(&self, params: Option<&Value>) {
        let Some(id) = params.and_then(|params| params["elicitationId"].as_str()) else { return };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = pages.iter().position(|(known, _)| known == id) else { return };
        if let Some((id, done)) = pages.remove(at) {
            done(&id);
        }
    }

    /// Registers the sink and the client of a call before the call is sent.
    pub fn register_call(&self, sink: UpdateSink, client: Client) -> CallGuard<'_> {
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.open.push(OpenCall { number, sent: None, sink, client, questions: 0 });
        CallGuard(self, number)
    }

    /// Passes an update to the sink of a call. Updates of a call that has ended are dropped.
    pub fn update_call(&self, token: &ProgressToken, update: CallUpdate) {
        let mut calls = self.lock();
        let known = calls.open.iter().find(|call| call.has_token(token));
        match known.map(|call| call.sink.clone()) {
            // In the lock, so that an update never overtakes another one. A sink returns at once.
            Some(sink) => sink.notify(update),
            None if calls.open.iter().any(|call| call.sent.is_none()) => {
                calls.early.push_back((token.clone(), update));
                if calls.early.len() > CAPACITY {
                    calls.early.pop_front();
                }
            }
            None => {}
        }
    }

    /// Passes a log message on. MCP does not say which call it belongs to, so the sinks of all calls in flight get
    /// it; the subscribers get it if there are none.
    pub fn log(&self, message: LogMessage) {
        let calls = self.lock();
        if !calls.open.iter().any(|call| call.sink.is_received()) {
            drop(calls);
            self.publish(UpstreamNotification::Log(message));
            return;
        }
        calls.open.iter().for_each(|call| call.sink.notify(CallUpdate::Log(message.clone())));
    }

    /// Returns the client of the call that a question belongs to, and those of the calls that it may also belong to. It is
    /// the call whose stream or progress token the question has. Without these, all calls in flight must have the same
    /// client: then it is the one with the fewest open questions.
    ///
    /// # Errors
    /// The client is not known: for the server.
    pub async fn client_of(&self, attribution: &Attribution) -> Result<(AskedClient<'_>, Vec<Client>), String> {
        if attribution.request.is_some() || attribution.token.is_some() {
            let known = async {
                loop {
                    let mut sent = std::pin::pin!(self.sent.notified());
                    sent.as_mut().enable();
                    if let Some(client) = self.named(attribution) {
                        return client;
                    }
                    sent.await;
                }
            };
            if let Ok(client) = tokio::time::timeout(ID_TIMEOUT, known).await {
                return Ok((client, Vec::new()));
            }
        }
        let mut calls = self.lock();
        let Some(first) = calls.open.first() else {
            return Err("there is no call in flight, so no client can be asked".into());
        };
        if !calls.open.iter().all(|call| call.client.is_same(&first.client)) {
            let why = "calls of several clients are in flight, and the request does not say which one it belongs to";
            return Err(format!("{why}; send it on the stream of its call"));
        }
        let others = calls.open.iter().map(|call| call.client.clone()).collect();
        let least = calls.open.iter_mut().min_by_key(|call| call.questions);
        match least {
            Some(call) => Ok((AskedClient::new(self, call), others)),
            None => Err("there is no call in flight".into()),
        }
    }

    /// Returns the client of the call that a question names.
    fn named(&self, attribution: &Attribution) -> Option<AskedClient<'_>> {
        let Attribution { request, token } = attribution;
        let mut calls = self.lock();
        let is_meant = |call: &&mut OpenCall| {
            call.sent.as_ref().is_some_and(|(own, id)| Some(id) == request.as_ref() || Some(own) == token.as_ref())
        };
        let call = calls.open.iter_mut().find(is_meant)?;
        Some(AskedClient::new(self, call))
    }

    /// Sends a notification to all subscribers.
    pub fn publish(&self, notification: UpstreamNotification) {
        // It fails only if there are no subscribers.
        let _ = self.subscribers.send(notification);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The client of a question, which counts as open until this is dropped.
pub struct AskedClient<'a> {
    router: &'a NotificationRouter,
    number: u64,
    client: Client,
}

impl<'a> AskedClient<'a> {
    fn new(router: &'a NotificationRouter, call: &mut OpenCall) -> Self {
        call.questions += 1;
        Self { router, number: call.number, client: call.client.clone() }
    }
}

impl std::ops::Deref for AskedClient<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for AskedClient<'_> {
    fn drop(&mut self) {
        let mut calls = self.router.lock();
        if let Some(call) = calls.open.iter_mut().find(|call| call.number == self.number) {
            call.questions -= 1;
        }
    }
}

impl CallGuard<'_> {
    /// Sets progress token and id, once the call is sent. Progress that has arrived already is passed on.
    pub fn set_sent(&self, token: ProgressToken, id: RequestId) {
        let mut calls = self.0.lock();
        let Calls { open, early, .. } = &mut *calls;
        let Some(call) = open.iter_mut().find(|call| call.number == self.1) else { return };
        early.retain(|(other, update)| {
            let is_own = *other == token;
            if is_own {
                call.sink.notify(update.clone());
            }
            !is_own
        });
        call.sent = Some((token, id));
        calls.drop_early();
        drop(calls);
        self.0.sent.notify_waiters();
    }
}

impl Calls {
    /// Drops early progress if no call is being made that it could belong to.
    fn drop_early(&mut self) {
        if self.open.iter().all(|call| call.sent.is_some()) {
            self.early.clear();
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        calls.open.retain(|call| call.number != self.1);
        calls.drop_early();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_base::client::{Answering, Port, Question, Waits};
    use rmcp::model::NumberOrString;
    use std::sync::Arc;

    #[test]
    fn each_call_gets_its_own_progress_and_all_log_messages() {
        let (router, received) = (NotificationRouter::default(), Arc::new(Mutex::new(Vec::new())));
        let token = |number| ProgressToken(NumberOrString::Number(number));
        let sink = |call: u32| {
            let received = Arc::clone(&received);
            UpdateSink::new(move |update| received.lock().expect("not poisoned").push((call, update)))
        };
        let progress = |progress| CallUpdate::Progress { progress, total: None, message: None };
        let log = || LogMessage { level: "info".into(), logger: None, data: "x".into() };
        let mut subscriber = router.subscribe();
        let first = router.register_call(sink(1), Client::default());
        first.set_sent(token(1), NumberOrString::Number(1));
        let second = router.register_call(sink(2), Client::default());
        // The server is faster than the caller.
        router.update_call(&token(2), progress(0.5));
        second.set_sent(token(2), NumberOrString::Number(2));
        router.update_call(&token(2), progress(1.0));
        router.update_call(&token(3), progress(1.0));
        router.log(log());
        drop(first);
        router.update_call(&token(1), progress(2.0));
        drop(second);
        router.log(log());
        let received = received.lock().expect("not poisoned");
        assert_eq!(
            *received,
            [(2, progress(0.5)), (2, progress(1.0)), (1, CallUpdate::Log(log())), (2, CallUpdate::Log(log()))]
        );
        let notifications = (subscriber.try_recv().ok(), subscriber.try_recv().ok());
        assert_eq!(notifications, (Some(UpstreamNotification::Log(log())), None));
    }

    #[tokio::test]
    async fn a_question_goes_to_the_client_of_its_call() {
        struct Numbered(u64, Waits);

        impl Port for Numbered {
            fn capabilities(&self) -> &Value {
                &Value::Null
            }

            fn client(&self) -> u64 {
                self.0
            }

            fn waits(&self) -> &Waits {
                &self.1
            }

            fn ask(&self, _question: Question) -> Answering<'_> {
                Box::pin(std::future::ready(Ok(self.0.into())))
            }
        }

        let client = |number| Client::new(Arc::new(Numbered(number, Waits::new(Duration::ZERO))));
        let router = NotificationRouter::default();
        let open = |call, client| {
            let guard = router.register_call(UpdateSink::default(), client);
            guard.set_sent(ProgressToken(NumberOrString::Number(call)), NumberOrString::Number(call));
            guard
        };
        let asked = async |attribution: Attribution| {
            router.client_of(&attribution).await.map(|(client, _)| client.port().map(|port| port.client()))
        };
        let nothing = || Attribution::default();
        assert!(asked(nothing()).await.is_err(), "there is no call");
        let first = open(1, client(7));
        let second = open(2, client(7));
        // Of one client: each call in turn, and both may be the one that waits.
        let (one, others) = router.client_of(&nothing()).await.expect("a client");
        let (two, _) = router.client_of(&nothing()).await.expect("a client");
        assert_eq!((one.number, two.number, others.len()), (0, 1, 2));
        drop((one, two));
        // Of several clients: only if the question says which call it is.
        let third = open(3, client(8));
        assert!(asked(nothing()).await.is_err());
        let of_stream = Attribution { request: Some(NumberOrString::Number(3)), token: None };
        assert_eq!(asked(of_stream.clone()).await, Ok(Some(8)));
        let of_token = Attribution { request: None, token: Some(ProgressToken(NumberOrString::Number(2))) };
        assert_eq!(asked(of_token).await, Ok(Some(7)));
        drop((first, second, third));
        assert!(asked(of_stream).await.is_err(), "the call has ended");
    }
}
