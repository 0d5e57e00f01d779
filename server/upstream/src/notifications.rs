//! Routes what an MCP server sends without being asked: progress and log messages of calls to the sinks of those
//! calls, everything else to the subscribers.

use codecall_base::event::{CallUpdate, LogMessage, UpdateSink};
use rmcp::model::ProgressToken;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// How many notifications a slow subscriber may lag behind; older ones are dropped.
const CAPACITY: usize = 1_000;

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
    subscribers: broadcast::Sender<UpstreamNotification>,
}

/// The calls in flight.
#[derive(Default)]
struct Calls {
    next: u64,
    /// Their sinks, by number, with their progress tokens once these are known.
    sinks: Vec<(u64, Option<ProgressToken>, UpdateSink)>,
    /// Progress with a token of no known call: that of a call which is just being made.
    early: VecDeque<(ProgressToken, CallUpdate)>,
}

/// Keeps the sink of a call registered until it is dropped.
pub struct CallGuard<'a>(&'a NotificationRouter, u64);

impl Default for NotificationRouter {
    fn default() -> Self {
        Self { calls: Mutex::default(), subscribers: broadcast::Sender::new(CAPACITY) }
    }
}

impl NotificationRouter {
    /// Subscribes to all notifications from now on that belong to no call.
    pub fn subscribe(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.subscribers.subscribe()
    }

    /// Registers the sink of a call before the call is sent.
    pub fn register_call(&self, sink: UpdateSink) -> CallGuard<'_> {
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.sinks.push((number, None, sink));
        CallGuard(self, number)
    }

    /// Passes an update to the sink of a call. Updates of a call that has ended are dropped.
    pub fn update_call(&self, token: &ProgressToken, update: CallUpdate) {
        let mut calls = self.lock();
        let known = calls.sinks.iter().find(|(_, other, _)| other.as_ref() == Some(token));
        match known.map(|(.., sink)| sink.clone()) {
            // In the lock, so that an update never overtakes another one. A sink returns at once.
            Some(sink) => sink.notify(update),
            None if calls.sinks.iter().any(|(_, other, _)| other.is_none()) => {
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
        if calls.sinks.is_empty() {
            drop(calls);
            self.publish(UpstreamNotification::Log(message));
            return;
        }
        calls.sinks.iter().for_each(|(.., sink)| sink.notify(CallUpdate::Log(message.clone())));
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

impl CallGuard<'_> {
    /// Sets the progress token, once the call is sent. Progress that has arrived already is passed on.
    pub fn set_token(&self, token: ProgressToken) {
        let mut calls = self.0.lock();
        let Calls { sinks, early, .. } = &mut *calls;
        let Some((_, own, sink)) = sinks.iter_mut().find(|(number, ..)| *number == self.1) else { return };
        early.retain(|(other, update)| {
            let is_own = *other == token;
            if is_own {
                sink.notify(update.clone());
            }
            !is_own
        });
        *own = Some(token);
        calls.drop_early();
    }
}

impl Calls {
    /// Drops early progress if no call is being made that it could belong to.
    fn drop_early(&mut self) {
        if self.sinks.iter().all(|(_, token, _)| token.is_some()) {
            self.early.clear();
        }
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut calls = self.0.lock();
        calls.sinks.retain(|(number, ..)| *number != self.1);
        calls.drop_early();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let first = router.register_call(sink(1));
        first.set_token(token(1));
        let second = router.register_call(sink(2));
        // The server is faster than the caller.
        router.update_call(&token(2), progress(0.5));
        second.set_token(token(2));
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
}
