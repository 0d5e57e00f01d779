//! What an upstream says on its own: how far a call has come, log messages, changes of its resources
//! and prompts.

use codecall_base::event::{Listener, Report, Said};
use rmcp::model::ProgressToken;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// News on their way to a client that does not read; older ones are dropped.
const MOST: usize = 1_000;

/// What is said without a call.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The list of resources has changed.
    Resources,
    /// The list of prompts has changed.
    Prompts,
    /// A resource that was subscribed to has changed; its address.
    Updated(String),
    /// A log message while no call is under way.
    Said(Said),
}

/// Where what a server says meets who wants to hear it.
pub struct Exchange {
    /// The calls under way, by the token of their progress.
    calls: Mutex<Vec<(ProgressToken, Listener)>>,
    news: broadcast::Sender<News>,
}

/// A call under way, until it is dropped.
pub struct UnderWay<'a>(&'a Exchange, ProgressToken);

impl Default for Exchange {
    fn default() -> Self {
        Self { calls: Mutex::default(), news: broadcast::Sender::new(MOST) }
    }
}

impl Exchange {
    /// All that is said without a call from now on.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// A call begins.
    pub fn begin(&self, token: ProgressToken, listener: Listener) -> UnderWay<'_> {
        self.lock().push((token.clone(), listener));
        UnderWay(self, token)
    }

    /// How far a call has come. Of one that has ended, nobody wants to know.
    pub fn progress(&self, token: &ProgressToken, report: Report) {
        let listener = self.lock().iter().find(|(other, _)| other == token).map(|(_, listener)| listener.clone());
        if let Some(listener) = listener {
            listener.tell(report);
        }
    }

    /// A log message. MCP does not say which call it is about: all that are under way are told.
    pub fn said(&self, said: Said) {
        let listeners: Vec<Listener> = self.lock().iter().map(|(_, listener)| listener.clone()).collect();
        if listeners.is_empty() {
            self.tell(News::Said(said));
            return;
        }
        listeners.iter().for_each(|listener| listener.tell(Report::Said(said.clone())));
    }

    /// Something has changed.
    pub fn tell(&self, news: News) {
        // Without anybody who listens, it is lost.
        let _ = self.news.send(news);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(ProgressToken, Listener)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
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
    fn calls_hear_what_is_theirs() {
        let (exchange, heard) = (Exchange::default(), Arc::new(Mutex::new(Vec::new())));
        let token = |number| ProgressToken(NumberOrString::Number(number));
        let listener = |call: u32| {
            let heard = Arc::clone(&heard);
            Listener::new(move |report| heard.lock().expect("not poisoned").push((call, report)))
        };
        let progress = |progress| Report::Progress { progress, total: None, message: None };
        let said = || Said { level: "info".into(), logger: None, data: "x".into() };
        let mut news = exchange.news();
        let first = exchange.begin(token(1), listener(1));
        let second = exchange.begin(token(2), listener(2));
        exchange.progress(&token(2), progress(1.0));
        exchange.progress(&token(3), progress(1.0));
        exchange.said(said());
        drop(first);
        exchange.progress(&token(1), progress(2.0));
        drop(second);
        exchange.said(said());
        let heard = heard.lock().expect("not poisoned");
        assert_eq!(*heard, [(2, progress(1.0)), (1, Report::Said(said())), (2, Report::Said(said()))]);
        assert_eq!((news.try_recv().ok(), news.try_recv().ok()), (Some(News::Said(said())), None));
    }
}
