//! Vectors of texts, so that a model need not compute them again.

use crate::database::{Database, Statement, Value};
use crate::{BoxFuture, StoreError, now_ms};
use lru::LruCache;
use std::collections::{HashMap, HashSet};
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

/// Vectors in a database. Those that were not used for [`MAX_UNUSED`] are deleted, and the least recently used ones above
/// [`MAX_VECTORS`].
pub struct SqlVectors {
    database: Database,
    /// Maximum number of vectors, of all models.
    max_vectors: u64,
    /// Digests that were read and whose time of last use is not of today.
    stale: Mutex<HashSet<(VectorModel, Digest)>>,
}

/// Maximum number of vectors in a database, of all models.
const MAX_VECTORS: u64 = 100_000;
/// In milliseconds. The time of the last use is stored to a day, so most starts write nothing.
const DAY: i64 = 24 * 60 * 60 * 1_000;
/// How long a vector is kept without being used, in milliseconds.
const MAX_UNUSED: i64 = 90 * DAY;
/// How many texts one statement reads: always as many, so that it is the same statement.
const TEXTS: usize = 100;

impl SqlVectors {
    /// Creates the store of a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, max_vectors: MAX_VECTORS, stale: Mutex::default() }
    }

    /// Creates a store with another maximum.
    #[cfg(test)]
    pub(crate) fn with_max(database: Database, max_vectors: u64) -> Self {
        Self { max_vectors, ..Self::new(database) }
    }

    fn stale(&self) -> MutexGuard<'_, HashSet<(VectorModel, Digest)>> {
        self.stale.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Value>>, StoreError> {
        self.database.batch(statements).await.map_err(|problem| self.database.error(&problem))
    }
}

impl VectorStore for SqlVectors {
    fn get_many<'a>(
        &'a self,
        model: &'a VectorModel,
        texts: &'a [Digest],
    ) -> BoxFuture<'a, Result<Vec<Option<Vector>>, StoreError>> {
        Box::pin(async move {
            let parameters: Vec<String> = (2..TEXTS + 2).map(|at| format!("${at}")).collect();
            let sql = format!(
                "SELECT text, used, vector FROM vectors WHERE model = $1 AND text IN ({})",
                parameters.join(", ")
            );
            let mut found: HashMap<Digest, Vector> = HashMap::new();
            for part in texts.chunks(TEXTS) {
                let padding = part.last().into_iter().cycle().take(TEXTS - part.len());
                let digests = std::iter::once(&model.digest).chain(part).chain(padding);
                let values: Vec<Value> = digests.map(|digest| digest.to_vec().into()).collect();
                for row in self.batch(vec![Statement::new(sql.clone(), values)]).await? {
                    let Ok(text) = Digest::try_from(row[0].bytes()) else { continue };
                    let Some(vector) = parse_vector(row[2].bytes(), model.dimensions) else { continue };
                    if (now_ms() - row[1].int()).abs() > DAY {
                        self.stale().insert((*model, text));
                    }
                    found.insert(text, vector);
                }
            }
            Ok(texts.iter().map(|text| found.get(text).cloned()).collect())
        })
    }

    fn put_many<'a>(
        &'a self,
        model: &'a VectorModel,
        vectors: &'a [(Digest, Vector)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let put = "INSERT INTO vectors (model, text, used, vector) VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (model, text) DO UPDATE SET used = excluded.used, vector = excluded.vector";
            let now = now_ms();
            let mut statements: Vec<Statement> = vectors
                .iter()
                .map(|(text, vector)| {
                    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                    let model = model.digest.to_vec();
                    Statement::new(put, [model.into(), text.to_vec().into(), now.into(), bytes.into()])
                })
                .collect();
            statements.push(Statement::new("DELETE FROM vectors WHERE used < $1", [(now - MAX_UNUSED).into()]));
            let too_many = "DELETE FROM vectors WHERE (model, text) IN \
                            (SELECT model, text FROM vectors ORDER BY used DESC, model, text LIMIT $1 OFFSET $2)";
            statements.push(Statement::new(too_many, [i64::MAX.into(), self.max_vectors.into()]));
            self.batch(statements).await.map(drop)
        })
    }

    fn note_use<'a>(&'a self, model: &'a VectorModel, texts: &'a [Digest]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let stale: Vec<&Digest> = {
                let mut stale = self.stale();
                texts.iter().filter(|text| stale.remove(&(*model, **text))).collect()
            };
            if stale.is_empty() {
                return Ok(());
            }
            let sql = "UPDATE vectors SET used = $1 WHERE model = $2 AND text = $3";
            let used = |text: &&Digest| {
                Statement::new(sql, [now_ms().into(), model.digest.to_vec().into(), text.to_vec().into()])
            };
            self.batch(stale.iter().map(used).collect()).await.map(drop)
        })
    }
}

/// Parses a vector. Returns `None` if the bytes are not one of this length.
fn parse_vector(bytes: &[u8], dimensions: usize) -> Option<Vector> {
    let (numbers, rest) = bytes.as_chunks();
    let vector: Vector = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    (rest.is_empty() && vector.len() == dimensions && vector.iter().all(|number| number.is_finite())).then_some(vector)
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
