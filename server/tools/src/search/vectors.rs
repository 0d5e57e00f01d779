//! The vectors of texts: in memory as long as they are needed, and beyond that in a store.
//!
//! A store that cannot be used is a warning in the log. Vectors are computed instead, and kept in memory.

use codecall_store::{Digest, StoreError, Vector, VectorModel, VectorStore};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of vectors that are computed, and then stored, together: what is stored is available at the next start, also
/// if this process ends before all are computed. A multiple of what a model takes at a time.
const BATCH: usize = 64;

/// Computes the vectors of texts, in their order.
pub type Encode = dyn Fn(&[String]) -> Result<Vec<Vector>, String> + Send + Sync;

/// The vectors of the texts that were requested last.
pub struct Vectors {
    known: HashMap<Digest, Vector>,
    store: Arc<dyn VectorStore>,
    model: VectorModel,
}

impl Vectors {
    /// No vectors are known but those of `model` in `store`.
    pub fn new(store: Arc<dyn VectorStore>, model: VectorModel) -> Self {
        Self { known: HashMap::new(), store, model }
    }

    /// Returns the vectors of `texts`, in their order. `encode` computes those that are not known, on a thread that may
    /// block; it gets each text once, texts of similar length together. The vectors of other texts are dropped here, not
    /// in the store.
    ///
    /// # Errors
    /// The errors of `encode`. Vectors that it has computed before are known.
    pub async fn get(&mut self, texts: Vec<String>, encode: &Arc<Encode>) -> Result<Vec<Vector>, String> {
        let texts: Vec<(Digest, String)> =
            blocking(move || texts.into_iter().map(|text| (Sha256::digest(&text).into(), text)).collect()).await?;
        let mut missing: Vec<(Digest, String)> =
            texts.iter().filter(|(digest, _)| !self.known.contains_key(digest)).cloned().collect();
        missing.sort_unstable_by(|(_, a), (_, b)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        missing.dedup();
        let requested = missing.len();
        self.load(&mut missing).await;
        for batch in missing.chunks(BATCH) {
            let (digests, texts): (Vec<Digest>, Vec<String>) = batch.iter().cloned().unzip();
            let encode = Arc::clone(encode);
            let vectors = blocking(move || encode(&texts)).await??;
            let vectors: Vec<(Digest, Vector)> = digests.into_iter().zip(vectors).collect();
            self.store.put_many(&self.model, &vectors).await.unwrap_or_else(|error| warn(&error));
            self.known.extend(vectors);
        }
        if requested > 0 {
            tracing::info!(made = missing.len(), read = requested - missing.len(), "vectors of tools");
        }
        let found = texts.iter().filter_map(|(digest, _)| Some((*digest, Arc::clone(self.known.get(digest)?))));
        let vectors: Vec<(Digest, Vector)> = found.collect();
        self.known = vectors.iter().cloned().collect();
        Ok(vectors.into_iter().map(|(_, vector)| vector).collect())
    }

    /// Removes those from `missing` that are in the store.
    async fn load(&mut self, missing: &mut Vec<(Digest, String)>) {
        let digests: Vec<Digest> = missing.iter().map(|(digest, _)| *digest).collect();
        if digests.is_empty() {
            return;
        }
        let vectors = match self.store.get_many(&self.model, &digests).await {
            Ok(vectors) => vectors,
            Err(error) => return warn(&error),
        };
        let loaded: HashMap<Digest, Vector> =
            digests.into_iter().zip(vectors).filter_map(|(digest, vector)| Some((digest, vector?))).collect();
        let used: Vec<Digest> = loaded.keys().copied().collect();
        self.store.note_use(&self.model, &used).await.unwrap_or_else(|error| warn(&error));
        missing.retain(|(digest, _)| !loaded.contains_key(digest));
        self.known.extend(loaded);
    }
}

/// Runs work on a thread that may block.
///
/// # Errors
/// It has panicked, or the runtime shuts down.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "it crashed".into())
}

fn warn(error: &StoreError) {
    tracing::warn!("{}. Vectors are kept in memory only.", error.0);
}

#[cfg(test)]
mod tests;
