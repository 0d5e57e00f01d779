//! A cache of answers of tools.

mod kept;

use crate::{BoxFuture, StoreError};
use codecall_base::tool::ToolResult;
pub use kept::SqlAnswers;
use lru::LruCache;
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A cache of answers, by a key that names tool and input.
pub trait AnswerCache: Send + Sync {
    /// Returns an answer that has not expired.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<ToolResult>, StoreError>>;

    /// Stores an answer for `ttl`, and replaces an earlier one. An answer that is too large is not stored.
    fn put(&self, key: String, answer: ToolResult, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Answers in memory. The least recently used one is evicted first.
pub struct MemoryAnswers {
    max_entries: usize,
    max_bytes: usize,
    state: Mutex<State>,
}

struct State {
    entries: LruCache<String, Entry>,
    /// Bytes of all keys and answers.
    bytes: usize,
}

struct Entry {
    answer: ToolResult,
    bytes: usize,
    expires: Instant,
}

impl MemoryAnswers {
    /// Creates an empty cache of at most so many entries, and of so many bytes of JSON.
    #[must_use]
    pub fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { max_entries, max_bytes, state: Mutex::new(State { entries: LruCache::unbounded(), bytes: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get_now(&self, key: &str) -> Option<ToolResult> {
        let mut state = self.state();
        match state.entries.get(key).map(|entry| (entry.expires, entry.answer.clone())) {
            Some((expires, answer)) if expires > Instant::now() => Some(answer),
            Some(_) => {
                state.remove(key);
                None
            }
            None => None,
        }
    }

    fn put_now(&self, key: String, answer: ToolResult, ttl: Duration) {
        let bytes = key.len() + answer.size();
        if bytes > self.max_bytes || self.max_entries == 0 {
            return;
        }
        let mut state = self.state();
        state.remove(&key);
        state.bytes += bytes;
        state.entries.put(key, Entry { answer, bytes, expires: Instant::now() + ttl });
        while state.entries.len() > self.max_entries || state.bytes > self.max_bytes {
            let Some((_, evicted)) = state.entries.pop_lru() else { break };
            state.bytes -= evicted.bytes;
        }
    }
}

impl State {
    fn remove(&mut self, key: &str) {
        if let Some(entry) = self.entries.pop(key) {
            self.bytes -= entry.bytes;
        }
    }
}

impl AnswerCache for MemoryAnswers {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<ToolResult>, StoreError>> {
        Box::pin(ready(Ok(self.get_now(key))))
    }

    fn put(&self, key: String, answer: ToolResult, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        self.put_now(key, answer, ttl);
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn entries_and_bytes_are_bounded() {
        let answer = |text: &str| ToolResult::Data(json!(text));
        let cache = MemoryAnswers::new(2, 100);
        cache.put_now("a".into(), answer("1"), HOUR);
        cache.put_now("b".into(), answer("2"), HOUR);
        assert_eq!(cache.get_now("a"), Some(answer("1")));
        cache.put_now("c".into(), answer("3"), HOUR);
        assert_eq!(cache.get_now("b"), None, "the least recently used one is evicted");
        cache.put_now("d".into(), answer(&"x".repeat(96)), HOUR);
        assert_eq!((cache.get_now("a"), cache.get_now("c")), (None, None));
        cache.put_now("e".into(), answer(&"x".repeat(100)), HOUR);
        assert_eq!(cache.get_now("e"), None, "it is too large to be stored");
        assert!(cache.get_now("d").is_some());
    }

    #[test]
    fn answers_expire() {
        let cache = MemoryAnswers::new(2, 100);
        cache.put_now("a".into(), ToolResult::Data(json!(1)), Duration::ZERO);
        assert_eq!(cache.get_now("a"), None);
        assert_eq!(cache.state().bytes, 0);
    }
}
