//! Results that are too long for a model, read in pieces.

use codecall_base::offload::{self, Busy};
use codecall_base::redact::{Redactor, SecretRegistry};
use codecall_config::ResultStore;
use codecall_store::ResultStore as Store;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The results that clients have handles of.
pub struct Results {
    store: Arc<dyn Store>,
    bounds: ResultStore,
    secrets: Arc<SecretRegistry>,
    clean: Mutex<Clean>,
}

/// The results in which a redactor has found no secret, by their handles.
#[derive(Default)]
struct Clean {
    redactor: Redactor,
    handles: HashSet<String>,
}

/// A piece of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// Its start, in bytes.
    pub offset: usize,
    /// The start of the next piece; absent: this is the last one.
    pub next: Option<usize>,
    /// The length of the whole result, in bytes.
    pub bytes: usize,
}

/// Why there is no piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The handle is unknown, or its result has expired.
    Result,
    /// The offset is not below the length of the result, which is this.
    Offset(usize),
    /// The server has no capacity to redact a long result.
    Busy(Busy),
}

impl Results {
    /// Creates results in a store. They contain no secret when they are put there, but `secrets` may be added before they
    /// are read.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, bounds: ResultStore, secrets: Arc<SecretRegistry>) -> Self {
        Self { store, bounds, secrets, clean: Mutex::default() }
    }

    /// Returns the maximum length of a result of which a client sees `shown` bytes.
    #[must_use]
    pub fn max_bytes(&self, shown: u64) -> u64 {
        let ResultStore { enabled, max_result_bytes, max_bytes, .. } = self.bounds;
        let stored = if enabled { max_result_bytes.min(max_bytes) } else { 0 };
        shown.max(u64::try_from(stored).unwrap_or(u64::MAX))
    }

    /// Whether results are given in pieces.
    #[must_use]
    pub fn are_stored(&self) -> bool {
        self.bounds.enabled
    }

    /// Stores a result and returns its handle and its first piece of at most `most` bytes; `None` if it is too long, or the
    /// store fails.
    pub async fn put(&self, text: String, most: usize) -> Option<(String, Piece)> {
        let first = piece(&text, 0, most)?;
        match self.store.put(text).await {
            Ok(handle) => Some((handle?, first)),
            Err(error) => {
                tracing::error!(%error, "a long result is not stored");
                None
            }
        }
    }

    /// Returns the piece of a result that begins at byte `offset` and has at most `most` bytes as a JSON string, but at least
    /// one character.
    ///
    /// # Errors
    /// There is none.
    pub async fn read(&self, handle: &str, offset: usize, most: usize) -> Result<Piece, Missing> {
        let text = self.store.get(handle).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a long result is not read");
            None
        });
        self.read_in(handle, text.ok_or(Missing::Result)?, offset, most).await
    }

    /// Does the same with a result that is kept elsewhere.
    ///
    /// # Errors
    /// There is no such piece.
    pub async fn read_in(&self, handle: &str, text: Arc<str>, offset: usize, most: usize) -> Result<Piece, Missing> {
        let text = self.redacted(handle, text).await.map_err(Missing::Busy)?;
        piece(&text, offset, most).ok_or(Missing::Offset(text.len()))
    }

    /// Redacts a stored text as a whole: of a secret on the edge of a piece, both halves would pass.
    async fn redacted(&self, handle: &str, text: Arc<str>) -> Result<Arc<str>, Busy> {
        let redactor = self.secrets.redactor();
        if redactor.is_empty() || self.clean(&redactor).handles.contains(handle) {
            return Ok(text);
        }
        let redact = || match redactor.redact_text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(redacted.into()),
        };
        let redacted = offload::run(text.len(), redact).await?;
        Ok(redacted.unwrap_or_else(|| {
            let mut clean = self.clean(&redactor);
            if clean.handles.len() >= self.bounds.max_results {
                clean.handles.clear();
            }
            clean.handles.insert(handle.to_owned());
            text
        }))
    }

    /// Returns the results in which this redactor has found no secret.
    fn clean(&self, redactor: &Redactor) -> MutexGuard<'_, Clean> {
        let mut clean = self.clean.lock().unwrap_or_else(PoisonError::into_inner);
        if !clean.redactor.is_same(redactor) {
            *clean = Clean { redactor: redactor.clone(), handles: HashSet::new() };
        }
        clean
    }
}

/// Returns the piece of `text` from `offset`, which is moved back to a character boundary.
#[must_use]
pub fn piece(text: &str, offset: usize, most: usize) -> Option<Piece> {
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

/// Returns the length of a character in a JSON string, in bytes.
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
    use codecall_store::MemoryResults;

    #[tokio::test]
    async fn pieces_make_the_whole() {
        let bounds = ResultStore::default();
        let results = Results::new(Arc::new(MemoryResults::new(bounds)), bounds, Arc::default());
        let text = "{\"a\":\"é\u{1f600}\\n\"}".repeat(20);
        let handle = results.put(text.clone(), 1).await.expect("room").0;
        for most in [0, 1, 7, 50, 10_000] {
            let (mut whole, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let piece = results.read(&handle, offset, most).await.expect("a piece");
                let json = serde_json::to_string(&piece.text).expect("JSON").len() - 2;
                assert!(json <= most || piece.text.chars().count() == 1, "{json} of {most}");
                whole.push_str(&piece.text);
                next = piece.next;
            }
            assert_eq!(whole, text);
        }
        assert_eq!(results.read(&handle, text.len(), 5).await, Err(Missing::Offset(text.len())));
        assert_eq!(results.read("result-00", 0, 5).await, Err(Missing::Result));
        let inside = text.find('é').expect("there") + 1;
        assert_eq!(results.read(&handle, inside, 5).await.expect("a piece").offset, inside - 1);
    }

    /// A secret that was added after a result was stored, also one on the edge of a piece.
    #[tokio::test]
    async fn pieces_contain_no_secret_that_was_added_later() {
        let bounds = ResultStore::default();
        let secrets = Arc::new(SecretRegistry::new(["another-secret"]));
        let results = Results::new(Arc::new(MemoryResults::new(bounds)), bounds, Arc::clone(&secrets));
        let handle = results.put("0123456789 late-secret 0123456789".into(), 1).await.expect("room").0;
        let whole = async || {
            let (mut whole, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let piece = results.read(&handle, offset, 16).await.expect("a piece");
                whole.push_str(&piece.text);
                next = piece.next;
            }
            whole
        };
        assert_eq!(whole().await, "0123456789 late-secret 0123456789");
        secrets.add("late-secret").expect("long enough");
        assert_eq!(whole().await, "0123456789 [secret] 0123456789");
        secrets.remove("late-secret");
        assert_eq!(whole().await, "0123456789 late-secret 0123456789");
    }
}
