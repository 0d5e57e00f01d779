//! Vectors of texts, so that a model need not compute them again.

#[cfg(any(test, feature = "embeddings"))]
pub(crate) mod sqlite;

use crate::{BoxFuture, StoreError};
use lru::LruCache;
use std::future::ready;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A SHA-256.
pub type Digest = [u8; 32];

/// The vector of a text.
pub type Vector = Arc<[f32]>;

/// The model that vectors were made with. Vectors of different models are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorModel {
    /// The digest of everything that vectors depend on, except for their texts.
    pub digest: Digest,
    /// The length of its vectors.
    pub dimensions: usize,
}

/// Vectors by model and digest of their text. The texts themselves are not stored.
pub trait VectorStore: Send + Sync {
    /// Returns the vectors of texts, in their order; `None` for a text without one.
    fn get_many<'a>(
        &'a self,
        model: &'a VectorModel,
        texts: &'a [Digest],
    ) -> BoxFuture<'a, Result<Vec<Option<Vector>>, StoreError>>;

    /// Stores the vectors of texts, and replaces earlier ones. The least recently used ones may be evicted.
    fn put_many<'a>(
        &'a self,
        model: &'a VectorModel,
        vectors: &'a [(Digest, Vector)],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Notes that vectors which `get_many` has returned are in use.
    fn note_use<'a>(&'a self, model: &'a VectorModel, texts: &'a [Digest]) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Vectors in memory. The least recently used one is evicted first.
pub struct MemoryVectors {
    vectors: Mutex<LruCache<(VectorModel, Digest), Vector>>,
}

impl MemoryVectors {
    /// The capacity of the store of a process: 15 MB of vectors of 384 numbers.
    pub const DEFAULT_MAX_VECTORS: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");

    /// Creates an empty store of at most so many vectors.
    #[must_use]
    pub fn new(max_vectors: NonZeroUsize) -> Self {
        Self { vectors: Mutex::new(LruCache::new(max_vectors)) }
    }

    fn vectors(&self) -> MutexGuard<'_, LruCache<(VectorModel, Digest), Vector>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VectorStore for MemoryVectors {
    fn get_many<'a>(
        &'a self,
        model: &'a VectorModel,
        texts: &'a [Digest],
    ) -> BoxFuture<'a, Result<Vec<Option<Vector>>, StoreError>> {
        let vectors = self.vectors();
        Box::pin(ready(Ok(texts.iter().map(|text| vectors.peek(&(*model, *text)).cloned()).collect())))
    }

    fn put_many<'a>(
        &'a self,
        model: &'a VectorModel,
        vectors: &'a [(Digest, Vector)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut stored = self.vectors();
        for (text, vector) in vectors {
            stored.put((*model, *text), Arc::clone(vector));
        }
        Box::pin(ready(Ok(())))
    }

    fn note_use<'a>(&'a self, model: &'a VectorModel, texts: &'a [Digest]) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut vectors = self.vectors();
        for text in texts {
            vectors.promote(&(*model, *text));
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    const MODEL: VectorModel = VectorModel { digest: [1; 32], dimensions: 1 };

    fn store(max_vectors: usize) -> MemoryVectors {
        MemoryVectors::new(NonZeroUsize::new(max_vectors).expect("not zero"))
    }

    fn put(store: &MemoryVectors, model: &VectorModel, texts: &[u8]) {
        let vectors: Vec<(Digest, Vector)> =
            texts.iter().map(|text| ([*text; 32], [f32::from(*text)].into())).collect();
        store.put_many(model, &vectors).now_or_never().expect("ready").expect("it works");
    }

    /// Returns those of `texts` that are stored.
    fn get(store: &MemoryVectors, model: &VectorModel, texts: &[u8]) -> Vec<u8> {
        let digests: Vec<Digest> = texts.iter().map(|text| [*text; 32]).collect();
        let vectors = store.get_many(model, &digests).now_or_never().expect("ready").expect("it works");
        assert_eq!(vectors.len(), texts.len());
        let stored = texts.iter().zip(vectors).filter_map(|(text, vector)| Some((text, vector?)));
        stored.inspect(|(text, vector)| assert_eq!(**vector, [f32::from(**text)])).map(|(text, _)| *text).collect()
    }

    #[test]
    fn vectors_are_found_by_model_and_text() {
        let store = store(10);
        put(&store, &MODEL, &[1, 2, 3]);
        assert_eq!(get(&store, &MODEL, &[3, 4, 1, 3]), [3, 1, 3]);
        let (other, longer) = (VectorModel { digest: [2; 32], ..MODEL }, VectorModel { dimensions: 2, ..MODEL });
        assert!(get(&store, &other, &[1, 2, 3]).is_empty() && get(&store, &longer, &[1, 2, 3]).is_empty());
    }

    #[test]
    fn the_least_recently_used_vector_is_evicted() {
        let store = store(3);
        put(&store, &MODEL, &[1, 2, 3]);
        store.note_use(&MODEL, &[[1; 32], [9; 32]]).now_or_never().expect("ready").expect("it works");
        put(&store, &MODEL, &[4]);
        assert_eq!(get(&store, &MODEL, &[1, 2, 3, 4]), [1, 3, 4], "a look is no use");
        put(&store, &MODEL, &[3, 5]);
        assert_eq!(get(&store, &MODEL, &[1, 2, 3, 4, 5]), [3, 4, 5]);
    }
}
