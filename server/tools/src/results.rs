//! Results that are too long for a model, kept for a while so that they can be read in pieces.
//!
//! A handle is 128 random bits: who has it may read the result, and nothing else is asked. What is
//! kept is bounded in bytes and in number; the result that was not read for the longest time goes first.

use codecall_config::ResultStore;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// All results that are kept.
pub struct Results {
    config: ResultStore,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    rows: HashMap<String, Row>,
    bytes: usize,
}

struct Row {
    text: Arc<str>,
    used: Instant,
}

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Where it begins, in bytes.
    pub offset: usize,
    /// Where the next piece begins; absent: this is the last one.
    pub next: Option<usize>,
    /// How long the whole result is, in bytes.
    pub bytes: usize,
}

/// Why there is no piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The handle is unknown, or its result is gone.
    Result,
    /// The result ends before; it has so many bytes.
    Offset(usize),
}

impl Results {
    /// An empty store.
    #[must_use]
    pub fn new(config: ResultStore) -> Self {
        Self { config, kept: Mutex::default() }
    }

    /// How long a result may be whose run may show `shown` bytes of it.
    #[must_use]
    pub fn longest(&self, shown: u64) -> u64 {
        let kept = if self.config.enabled { self.config.max_result_bytes.min(self.config.max_bytes) } else { 0 };
        shown.max(u64::try_from(kept).unwrap_or(u64::MAX))
    }

    /// Keep a result; gives its handle. Absent: there is no room for it, or no source of randomness.
    #[must_use]
    pub fn keep(&self, text: String) -> Option<String> {
        self.keep_at(Instant::now(), text)
    }

    fn keep_at(&self, now: Instant, text: String) -> Option<String> {
        if !self.config.enabled || self.config.max_results == 0 || text.len() > self.config.max_bytes {
            return None;
        }
        let handle = handle()?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget(now, self.config);
        while kept.rows.len() >= self.config.max_results || kept.bytes + text.len() > self.config.max_bytes {
            let oldest = kept.rows.iter().min_by_key(|(_, row)| row.used).map(|(handle, _)| handle.clone());
            kept.remove(&oldest?);
        }
        kept.bytes += text.len();
        kept.rows.insert(handle.clone(), Row { text: text.into(), used: now });
        Some(handle)
    }

    /// The piece of a result that begins at byte `offset` and takes at most `most` bytes as a JSON
    /// string, but at least one character.
    ///
    /// # Errors
    /// There is none.
    pub fn read(&self, handle: &str, offset: usize, most: usize) -> Result<Piece, Missing> {
        self.read_at(Instant::now(), handle, offset, most)
    }

    fn read_at(&self, now: Instant, handle: &str, offset: usize, most: usize) -> Result<Piece, Missing> {
        let text = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.forget(now, self.config);
            let row = kept.rows.get_mut(handle).ok_or(Missing::Result)?;
            row.used = now;
            Arc::clone(&row.text)
        };
        piece(&text, offset, most).ok_or(Missing::Offset(text.len()))
    }
}

impl Kept {
    /// Drop what nobody has read for too long.
    fn forget(&mut self, now: Instant, config: ResultStore) {
        let expired = |row: &Row| now.saturating_duration_since(row.used) > config.expiry;
        self.rows.retain(|_, row| !expired(row));
        self.bytes = self.rows.values().map(|row| row.text.len()).sum();
    }

    fn remove(&mut self, handle: &str) {
        if let Some(row) = self.rows.remove(handle) {
            self.bytes -= row.text.len();
        }
    }
}

fn handle() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut handle = String::from("result-");
    for byte in bytes {
        let _ = write!(handle, "{byte:02x}");
    }
    Some(handle)
}

/// The piece of `text` from `offset`, which is moved back to where a character begins.
fn piece(text: &str, offset: usize, most: usize) -> Option<Piece> {
    if offset >= text.len() {
        return None;
    }
    let offset = text.floor_char_boundary(offset);
    let rest = &text[offset..];
    let mut taken = 0;
    let mut length = 0;
    for c in rest.chars() {
        taken += encoded(c);
        if taken > most && length > 0 {
            break;
        }
        length += c.len_utf8();
    }
    let end = offset + length;
    let next = (end < text.len()).then_some(end);
    Some(Piece { text: rest[..length].to_owned(), offset, next, bytes: text.len() })
}

/// Bytes of a character in a JSON string.
fn encoded(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn results(max_bytes: usize, max_results: usize) -> Results {
        Results::new(ResultStore { max_bytes, max_results, expiry: Duration::from_secs(10), ..ResultStore::default() })
    }

    #[test]
    fn pieces_make_the_whole() {
        let results = results(1_000, 10);
        let text = "{\"a\":\"é\u{1f600}\\n\"}".repeat(20);
        let handle = results.keep(text.clone()).expect("room");
        for most in [0, 1, 7, 50, 10_000] {
            let (mut whole, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let piece = results.read(&handle, offset, most).expect("a piece");
                let json = serde_json::to_string(&piece.text).expect("JSON").len() - 2;
                assert!(json <= most || piece.text.chars().count() == 1, "{json} of {most}");
                whole.push_str(&piece.text);
                next = piece.next;
            }
            assert_eq!(whole, text);
        }
        assert_eq!(results.read(&handle, text.len(), 5), Err(Missing::Offset(text.len())));
        assert_eq!(results.read("result-00", 0, 5), Err(Missing::Result));
        let inside = text.find('é').expect("there") + 1;
        assert_eq!(results.read(&handle, inside, 5).expect("a piece").offset, inside - 1);
    }

    #[test]
    fn what_was_not_read_for_longest_goes_first() {
        let results = results(100, 3);
        let handles: Vec<String> = (0..3).map(|_| results.keep("x".repeat(30)).expect("room")).collect();
        assert!(results.read(&handles[0], 0, 1).is_ok());
        let fourth = results.keep("y".repeat(30)).expect("room");
        assert_eq!(results.read(&handles[1], 0, 1), Err(Missing::Result));
        assert!(results.read(&handles[0], 0, 1).is_ok() && results.read(&fourth, 0, 1).is_ok());
        let large = results.keep("z".repeat(90)).expect("room");
        assert!([&handles[0], &handles[2], &fourth].iter().all(|handle| results.read(handle, 0, 1).is_err()));
        assert!(results.read(&large, 0, 1).is_ok());
        assert_eq!(results.keep("x".repeat(101)), None);
    }

    #[test]
    fn what_nobody_reads_expires() {
        let results = results(100, 3);
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let handle = results.keep_at(began, "text".into()).expect("room");
        assert!(results.read_at(after(9), &handle, 0, 1).is_ok());
        assert!(results.read_at(after(18), &handle, 0, 1).is_ok());
        assert_eq!(results.read_at(after(29), &handle, 0, 1), Err(Missing::Result));
    }

    #[test]
    fn handles_are_long_and_differ() {
        let (one, other) = (handle().expect("random"), handle().expect("random"));
        assert!(one.len() == 39 && one != other);
    }
}
