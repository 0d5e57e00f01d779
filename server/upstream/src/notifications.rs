//! Routes what an MCP server sends without being asked: progress and log messages of calls to the sinks of those
//! calls, everything else to the subscribers.

use codecall_base::event::{CallUpdate, LogMessage, UpdateSink};
use rmcp::model::ProgressToken;
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
    /// The sinks of the calls in flight, by their progress tokens.
    calls: Mutex<Vec<(ProgressToken, UpdateSink)>>,
    subscribers: broadcast::Sender<UpstreamNotification>,
}

/// Keeps the sink of a call registered until it is dropped.
pub struct CallGuard<'a>(&'a NotificationRouter, ProgressToken);

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

    /// Registers the sink of a call.
    pub fn register_call(&self, token: ProgressToken, sink: UpdateSink) -> CallGuard<'_> {
        self.lock().push((token.clone(), sink));
        CallGuard(self, token)
    }

    /// Passes an update to the sink of a call. Updates of a call that has ended are dropped.
    pub fn update_call(&self, token: &ProgressToken, update: CallUpdate) {
        let sink = self.lock().iter().find(|(other, _)| other == token).map(|(_, sink)| sink.clone());
        if let Some(sink) = sink {
            sink.notify(update);
        }
    }

    /// Passes a log message on. MCP does not say which call it belongs to, so the sinks of all calls in flight get
    /// it; the subscribers get it if there are none.
    pub fn log(&self, message: LogMessage) {
        let sinks: Vec<UpdateSink> = self.lock().iter().map(|(_, sink)| sink.clone()).collect();
        if sinks.is_empty() {
            self.publish(UpstreamNotification::Log(message));
            return;
        }
        sinks.iter().for_each(|sink| sink.notify(CallUpdate::Log(message.clone())));
    }

    /// Sends a notification to all subscribers.
    pub fn publish(&self, notification: UpstreamNotification) {
        // It fails only if there are no subscribers.
        let _ = self.subscribers.send(notification);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(ProgressToken, UpdateSink)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().retain(|(token, _)| *token != self.1);
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
        let first = router.register_call(token(1), sink(1));
        let second = router.register_call(token(2), sink(2));
        router.update_call(&token(2), progress(1.0));
        router.update_call(&token(3), progress(1.0));
        router.log(log());
        drop(first);
        router.update_call(&token(1), progress(2.0));
        drop(second);
        router.log(log());
        let received = received.lock().expect("not poisoned");
        assert_eq!(*received, [(2, progress(1.0)), (1, CallUpdate::Log(log())), (2, CallUpdate::Log(log()))]);
        let notifications = (subscriber.try_recv().ok(), subscriber.try_recv().ok());
        assert_eq!(notifications, (Some(UpstreamNotification::Log(log())), None));
    }
}
