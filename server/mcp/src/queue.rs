//! A small queue from many senders to one receiver.
//!
//! Each request has two. Those of tokio allocate room for 32 entries and several cache lines from the start, this one what is in
//! it. Sending never waits: whoever sends checks the length.

use futures_util::task::AtomicWaker;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Why an entry was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The queue has its maximum length.
    Full,
    /// Nobody receives any more.
    Closed,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    receiver: AtomicWaker,
}

struct State<T> {
    entries: VecDeque<T>,
    is_closed: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.receiver.wake();
    }
}

/// Sends to a queue, which is closed when this is dropped.
pub struct Sender<T>(Arc<Shared<T>>);

/// Receives from a queue.
pub struct Receiver<T>(Arc<Shared<T>>);

/// Creates a queue.
pub fn queue<T>() -> (Sender<T>, Receiver<T>) {
    let state = Mutex::new(State { entries: VecDeque::new(), is_closed: false });
    let shared = Arc::new(Shared { state, receiver: AtomicWaker::new() });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Sends an entry, unless the queue has `max` entries.
    pub fn send(&self, entry: T, max: usize) -> Result<(), NotSent> {
        let mut state = self.0.lock();
        if state.is_closed {
            return Err(NotSent::Closed);
        }
        if state.entries.len() >= max {
            return Err(NotSent::Full);
        }
        state.entries.push_back(entry);
        drop(state);
        self.0.receiver.wake();
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> Receiver<T> {
    /// Receives the next entry; `None`: the queue is closed and empty. Cancelling it loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.receiver.register(context.waker());
        let mut state = self.0.lock();
        match state.entries.pop_front() {
            Some(entry) => Poll::Ready(Some(entry)),
            None if state.is_closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Lets nobody send any more. What was sent can be received.
    pub fn close(&mut self) {
        self.0.lock().is_closed = true;
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        let entries = std::mem::take(&mut state.entries);
        drop(state);
        // Not under the lock: an entry may be what somebody else waits for.
        drop(entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn entries_arrive_in_order_until_the_sender_is_gone() {
        let (sender, mut receiver) = queue();
        let receiving = tokio::spawn(async move {
            let mut received = Vec::new();
            while let Some(entry) = receiver.recv().await {
                received.push(entry);
            }
            received
        });
        for entry in 0..3 {
            tokio::task::yield_now().await;
            assert_eq!(sender.send(entry, 10), Ok(()));
        }
        drop(sender);
        assert_eq!(receiving.await.expect("received"), [0, 1, 2]);
    }

    #[tokio::test]
    async fn a_queue_is_full_or_closed() {
        let (sender, mut receiver) = queue();
        assert_eq!(sender.send(1, 1), Ok(()));
        assert_eq!(sender.send(2, 1), Err(NotSent::Full));
        receiver.close();
        assert_eq!(sender.send(2, 2), Err(NotSent::Closed));
        assert_eq!((receiver.recv().await, receiver.recv().await), (Some(1), None));
    }

    #[test]
    fn what_nobody_receives_is_dropped() {
        let (sender, receiver) = queue();
        let entry = Arc::new(());
        assert_eq!(sender.send(Arc::clone(&entry), 1), Ok(()));
        drop(receiver);
        assert_eq!(Arc::strong_count(&entry), 1);
        assert_eq!(sender.send(entry, 1), Err(NotSent::Closed));
    }
}
