//! Results that are too long for a model, stored for a while so that they can be read in pieces.

mod kept;

use crate::{BoxFuture, StoreError};
use codecall_config::ResultStore as Bounds;
pub use kept::SqlResults;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Long results, by handle. A handle consists of 128 random bits: whoever has it may read the result.
pub trait ResultStore: Send + Sync {
    /// Stores a result and returns its handle; `None` if it is too long.
    fn put(&self, text: String) -> BoxFuture<'_, Result<Option<String>, StoreError>>;

    /// Returns a result; `None` if the handle is unknown, or its result has expired or was evicted.
    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<Arc<str>>, StoreError>>;
}

/// Results in memory, limited in bytes and in number. The least recently read one is evicted first.
pub struct MemoryResults {
    bounds: Bounds,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    text: Arc<str>,
    used: Instant,
}

impl MemoryResults {
    /// Creates an empty store.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_at(&self, now: Instant, text: String) -> Result<Option<String>, StoreError> {
        let Bounds { enabled, max_results, max_bytes, .. } = self.bounds;
        if !enabled || max_results == 0 || text.len() > max_bytes {
            return Ok(None);
        }
        let handle = random_handle()?;
        let mut state = self.state();
        state.expire(now, &self.bounds);
        while state.entries.len() >= max_results || state.bytes + text.len() > max_bytes {
            let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(handle, _)| handle.clone());
            let Some(evicted) = oldest.and_then(|oldest| state.entries.remove(&oldest)) else { return Ok(None) };
            state.bytes -= evicted.text.len();
        }
        state.bytes += text.len();
        state.entries.insert(handle.clone(), Entry { text: text.into(), used: now });
        Ok(Some(handle))
    }

    fn get_at(&self, now: Instant, handle: &str) -> Option<Arc<str>> {
        let mut state = self.state();
        state.expire(now, &self.bounds);
        let entry = state.entries.get_mut(handle)?;
        entry.used = now;
        Some(Arc::clone(&entry.text))
    }
}

impl State {
    /// Removes results that were not read for too long.
    fn expire(&mut self, now: Instant, bounds: &Bounds) {
        self.entries.retain(|_, entry| now.saturating_duration_since(entry.used) <= bounds.expiry);
        self.bytes = self.entries.values().map(|entry| entry.text.len()).sum();
    }
}

impl ResultStore for MemoryResults {
    fn put(&self, text: String) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        Box::pin(ready(self.put_at(Instant::now(), text)))
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<Arc<str>>, StoreError>> {
        Box::pin(ready(Ok(self.get_at(Instant::now(), handle))))
    }
}

fn random_handle() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError(format!("there are no random numbers: {error}")))?;
    let mut handle = String::from("result-");
    for byte in bytes {
        let _ = write!(handle, "{byte:02x}");
    }
    Ok(handle)
}

/// Results whose handles are of use to their owner only.
pub struct OwnedResults {
    inner: Arc<dyn ResultStore>,
    key: ring::hmac::Key,
}

/// Number of bytes of a handle that prove whose it is.
const MARK_BYTES: usize = 16;

impl OwnedResults {
    /// Creates a store of one owner in another one. `key` is the owner's.
    #[must_use]
    pub fn new(inner: Arc<dyn ResultStore>, key: [u8; 32]) -> Self {
        Self { inner, key: ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key) }
    }

    fn marked(&self, handle: &str) -> String {
        let mark = ring::hmac::sign(&self.key, handle.as_bytes());
        format!("{handle}-{}", crate::state::hex(&mark.as_ref()[..MARK_BYTES]))
    }
}

impl ResultStore for OwnedResults {
    fn put(&self, text: String) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move { Ok(self.inner.put(text).await?.map(|handle| self.marked(&handle))) })
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<Arc<str>>, StoreError>> {
        Box::pin(async move {
            match handle.rsplit_once('-') {
                Some((inner, _)) if self.marked(inner) == handle => self.inner.get(inner).await,
                Some(_) | None => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn results(max_bytes: usize, max_results: usize) -> MemoryResults {
        MemoryResults::new(Bounds { max_bytes, max_results, expiry: Duration::from_secs(10), ..Bounds::default() })
    }

    fn put(results: &MemoryResults, now: Instant, text: &str) -> Option<String> {
        results.put_at(now, text.into()).expect("random")
    }

    #[test]
    fn the_least_recently_read_result_is_evicted() {
        let (results, now) = (results(100, 3), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        let handles: Vec<String> = (0..3).map(|at| put(&results, after(at), &"x".repeat(30)).expect("room")).collect();
        let is_there = |at, handle: &str| results.get_at(after(at), handle).is_some();
        assert!(is_there(4, &handles[0]));
        let fourth = put(&results, after(5), &"y".repeat(30)).expect("room");
        assert!(!is_there(6, &handles[1]) && is_there(7, &handles[0]) && is_there(8, &fourth));
        let large = put(&results, after(9), &"z".repeat(90)).expect("room");
        assert!([&handles[0], &handles[2], &fourth].iter().all(|handle| !is_there(10, handle)));
        assert!(is_there(10, &large));
        assert_eq!(put(&results, after(11), &"x".repeat(101)), None);
    }

    #[test]
    fn results_that_nobody_reads_expire() {
        let (results, now) = (results(100, 3), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        let handle = put(&results, now, "text").expect("room");
        assert!(results.get_at(after(9), &handle).is_some());
        assert!(results.get_at(after(18), &handle).is_some());
        assert!(results.get_at(after(29), &handle).is_none());
        assert_eq!(results.state().bytes, 0);
    }

    #[test]
    fn handles_are_long_and_differ() {
        let (one, other) = (random_handle().expect("random"), random_handle().expect("random"));
        assert!(one.len() == 39 && one != other);
    }
}
