//! The answers to requests, on streams that their clients may lose and open again.
//!
//! The last messages are kept as long as a request is answered. They stay for a while after that if its client has left
//! before the end.

use super::names::{EventName, named};
use futures_util::{Stream, StreamExt as _};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Messages in the queue to a client.
const QUEUE_CAPACITY: usize = 64;
/// Messages of a stream that are kept: at most the capacity of its queue.
const MAX_KEPT: usize = 16;
/// How long the end of a stream is kept whose client has left.
const KEEP: Duration = Duration::from_secs(60);

/// The streams that answer requests at this replica.
#[derive(Default)]
pub struct Answers {
    open: Mutex<HashMap<u64, Arc<Answer>>>,
    next: AtomicU64,
}

struct Answer {
    session: SessionId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the last message.
    last: u64,
    kept: VecDeque<(u64, ServerSseMessage)>,
    /// The client; `None`: it has left.
    client: Option<mpsc::Sender<ServerSseMessage>>,
    has_ended: bool,
}

impl Answer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Answer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the messages of a stream to the client of a request. `before` is called before each of them is sent.
    pub fn send<S, F>(
        self: &Arc<Self>,
        replica: &str,
        session: &SessionId,
        request: RequestId,
        messages: S,
        mut before: impl FnMut(&ServerJsonRpcMessage) -> Option<F> + Send + 'static,
    ) -> mpsc::Receiver<ServerSseMessage>
    where
        S: Stream<Item = ServerSseMessage> + Send + 'static,
        F: Future<Output = ()> + Send,
    {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State { client: Some(sender), ..State::default() });
        let answer = Arc::new(Answer { session: Arc::clone(session), state });
        self.open().insert(number, Arc::clone(&answer));
        let (answers, replica) = (Arc::clone(self), replica.to_owned());
        tokio::spawn(async move {
            let mut messages = Box::pin(messages);
            while let Some(mut sent) = messages.next().await {
                if let Some(before) = sent.message.as_deref().and_then(&mut before) {
                    before.await;
                }
                let client = {
                    let mut state = answer.state();
                    // The first event has no message, and names the beginning.
                    state.last += u64::from(sent.message.is_some());
                    sent.event_id = Some(format!("{number}.{}", state.last));
                    sent = named(&replica, sent, Some(&request));
                    if sent.message.is_some() {
                        if state.kept.len() >= MAX_KEPT {
                            state.kept.pop_front();
                        }
                        let last = state.last;
                        state.kept.push_back((last, sent.clone()));
                    }
                    state.client.clone()
                };
                if let Some(client) = client
                    && client.send(sent).await.is_err()
                {
                    // It may have come back meanwhile, and has got what is kept.
                    let mut state = answer.state();
                    state.client.take_if(|current| current.same_channel(&client));
                }
            }
            let has_left = {
                let mut state = answer.state();
                state.has_ended = true;
                state.client.take().is_none_or(|client| client.is_closed())
            };
            if has_left {
                tokio::time::sleep(KEEP).await;
            }
            answers.open().remove(&number);
        });
        receiver
    }

    /// Goes on with the stream of a session after an event. `None`: it is not known (any more).
    pub fn resume(&self, session: &SessionId, event: &EventName) -> Option<mpsc::Receiver<ServerSseMessage>> {
        let (number, last) = event.id.split_once('.')?;
        let (number, last): (u64, u64) = (number.parse().ok()?, last.parse().ok()?);
        let answer = self.open().get(&number).filter(|answer| answer.session == *session).cloned()?;
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let mut state = answer.state();
        for (_, sent) in state.kept.iter().filter(|(at, _)| *at > last) {
            let _ = sender.try_send(sent.clone());
        }
        state.client = Some(sender).filter(|_| !state.has_ended);
        Some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(number: u64) -> ServerSseMessage {
        let ping = json!({"jsonrpc": "2.0", "id": format!("p{number}"), "method": "ping"});
        ServerSseMessage::new("x", serde_json::from_value(ping).expect("a message"))
    }

    async fn next(receiver: &mut mpsc::Receiver<ServerSseMessage>) -> Option<(EventName, Option<String>)> {
        let sent = receiver.recv().await?;
        let event = EventName::parse(sent.event_id.as_deref().expect("an id")).expect("a name");
        let id = sent.message.map(|message| serde_json::to_value(&*message).expect("JSON")["id"].to_string());
        Some((event, id))
    }

    #[tokio::test]
    async fn a_client_that_comes_back_gets_what_it_has_missed() {
        let answers = Arc::<Answers>::default();
        let session: SessionId = "s".into();
        let (sender, messages) = mpsc::channel(8);
        let nothing = |_: &ServerJsonRpcMessage| None::<std::future::Ready<()>>;
        let request = RequestId::Number(1);
        let mut client = answers.send("r", &session, request, super::super::received(messages), nothing);
        sender.send(ServerSseMessage::priming("0", Duration::from_secs(1))).await.expect("sent");
        sender.send(message(1)).await.expect("sent");
        let (first, none) = next(&mut client).await.expect("the first");
        assert_eq!(none, None);
        assert_eq!(next(&mut client).await.expect("one").1.as_deref(), Some("\"p1\""));
        drop(client);
        for number in 2..=3 {
            sender.send(message(number)).await.expect("sent");
        }
        drop(sender);
        while answers.open().values().any(|answer| !answer.state().has_ended) {
            tokio::task::yield_now().await;
        }
        assert!(answers.resume(&"t".into(), &first).is_none(), "it is another session");
        let mut again = answers.resume(&session, &first).expect("kept");
        for number in 1..=3 {
            let (_, id) = next(&mut again).await.expect("a message");
            assert_eq!(id, Some(format!("\"p{number}\"")));
        }
        assert!(next(&mut again).await.is_none(), "it has ended");
    }
}
