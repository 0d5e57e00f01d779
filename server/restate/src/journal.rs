//! What the journal of an invocation says before its handler begins, and when a command of the handler is stored.
//!
//! A handler of the SDK repeats its steps and cannot ask what an earlier attempt has said. So each value of its own would be a step too
//! (`ctx.run`), which Restate stores twice: that it begins, and its value. The journal has what is needed anyway: what a run says when it
//! begins is in its state, what a handler has returned is its output, and a call that has begun has a command. Therefore the requests
//! and responses of the SDK pass through here.

use crate::protocol::{COMMAND_ACK, Messages, OUTPUT, RUN, SET_STATE, START, SetState, Start};
use bytes::BytesMut;
use hyper::body::{Body, Bytes, Frame};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a journal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// The states that the handler has set, in their order.
    states: Vec<(Bytes, Bytes)>,
    /// Whether the handler has begun a step (`ctx.run`).
    has_run: bool,
    /// Whether the handler has returned: only the end is missing.
    has_output: bool,
}

/// An attempt of a handler.
#[derive(Debug, Default)]
pub struct Attempt {
    journal: Journal,
    /// Cancelled when the first step that it begins is stored.
    is_stored: CancellationToken,
}

tokio::task_local! {
    static ATTEMPT: Arc<Attempt>;
}

/// Returns the attempt that calls this.
pub fn attempt() -> Arc<Attempt> {
    ATTEMPT.try_with(Arc::clone).unwrap_or_default()
}

impl Attempt {
    /// Returns the state that an earlier attempt has set.
    pub fn state_set(&self, key: &str) -> Option<Bytes> {
        self.journal.states.iter().find(|(set, _)| set == key).map(|(_, value)| value.clone())
    }

    /// Whether an earlier attempt has returned.
    pub fn has_output(&self) -> bool {
        self.journal.has_output
    }

    /// Whether an earlier attempt has begun a step.
    pub fn has_run(&self) -> bool {
        self.journal.has_run
    }

    /// Resolves when Restate has stored that the first step begins. Something else of the SDK has to be polled beside it: only then the
    /// request is read.
    pub async fn run_stored(&self) {
        self.is_stored.cancelled().await;
    }
}

/// A request that passes on all but what the SDK does not know.
pub struct Request<B> {
    body: B,
    messages: Messages,
    /// Messages to be passed on.
    read: BytesMut,
    is_stored: CancellationToken,
}

impl<B: Body<Data = Bytes> + Unpin> Request<B> {
    /// Reads the journal of a request. Returns what it says, and the request with all that was read.
    ///
    /// # Errors
    /// Those of its body.
    pub async fn read(body: B) -> Result<(Arc<Attempt>, Self), B::Error> {
        let is_stored = CancellationToken::new();
        let mut request =
            Self { body, messages: Messages::default(), read: BytesMut::new(), is_stored: is_stored.clone() };
        let (mut journal, mut missing) = (Journal::default(), None);
        while missing != Some(0) {
            let Some(message) = request.messages.next() else {
                if !poll_fn(|context| request.poll_more(context)).await? {
                    break;
                }
                continue;
            };
            missing = match (missing, message.kind()) {
                // The first one is the input: there is nothing else in an invocation that begins.
                (None, START) => Some(message.content::<Start>().known_entries).filter(|&known| known > 1).or(Some(0)),
                // Not the protocol: the SDK says so.
                (None, _) => Some(0),
                (Some(missing), kind) => {
                    match kind {
                        OUTPUT => journal.has_output = true,
                        RUN => journal.has_run = true,
                        SET_STATE => {
                            let SetState { key, value } = message.content();
                            journal.states.push((key, value.unwrap_or_default().content));
                        }
                        _ => {}
                    }
                    Some(missing - 1)
                }
            };
            message.append_to(&mut request.read);
        }
        Ok((Arc::new(Attempt { journal, is_stored }), request))
    }

    /// Reads more of the body. `false`: there is no more.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, B::Error>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context)).transpose()?;
        if let Some(data) = frame.as_ref().and_then(Frame::data_ref) {
            self.messages.push(data);
        }
        Poll::Ready(Ok(frame.is_some()))
    }

    /// Returns what can be passed on now.
    fn pass(&mut self) -> Bytes {
        while let Some(message) = self.messages.next() {
            if message.kind() == COMMAND_ACK {
                self.is_stored.cancel();
            } else {
                message.append_to(&mut self.read);
            }
        }
        self.read.split().freeze()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Request<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            let passed = self.pass();
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
            if !ready!(self.poll_more(context))? {
                let rest = self.messages.rest();
                return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))));
            }
        }
    }
}

/// A response whose handler, which the SDK runs when the body is read, is an attempt; and which asks when its steps are stored.
pub struct Response<B: Body> {
    body: Pin<Box<B>>,
    messages: Messages,
    attempt: Arc<Attempt>,
    /// What the body has given already: its first frame, or its end.
    first: Option<Option<Result<Frame<Bytes>, B::Error>>>,
}

impl<B: Body<Data = Bytes, Error: Unpin>> Response<B> {
    /// Waits for the first frame of a body, but not longer than so. The head of the response is sent with it then, and Restate wakes up
    /// once for both.
    pub async fn begin(attempt: Arc<Attempt>, body: B, longest: Duration) -> Self {
        let mut response = Self { body: Box::pin(body), messages: Messages::default(), attempt, first: None };
        let first = poll_fn(|context| Pin::new(&mut response).poll_frame(context));
        response.first = tokio::time::timeout(longest, first).await.ok();
        response
    }
}

impl<B: Body<Data = Bytes, Error: Unpin>> Body for Response<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { body, messages, attempt, first } = &mut *self;
        if let Some(first) = first.take() {
            return Poll::Ready(first);
        }
        loop {
            let mut passed = BytesMut::new();
            while let Some(mut message) = messages.next() {
                if message.kind() == RUN {
                    message.request_ack();
                }
                message.append_to(&mut passed);
            }
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed.freeze()))));
            }
            match ready!(ATTEMPT.sync_scope(Arc::clone(attempt), || body.as_mut().poll_frame(context))) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => messages.push(&data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    let rest = messages.rest();
                    return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
