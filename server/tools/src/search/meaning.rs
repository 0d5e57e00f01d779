//! Search for tools by meaning: the cosine of the vectors of a query and of what a tool says of itself.
//!
//! The vector of a tool is computed when it is first searched for, and kept in memory for as long as its text is the
//! same, whatever else changes. A store keeps it longer, also on disk if the configuration names a file.

use super::model::{Files, Model};
use super::vectors::{Encode, Vectors, blocking};
use crate::catalogue::{Entry, Snapshot};
use crate::index::{Hit, split};
use codecall_base::text::truncate;
use codecall_store::{Vector, VectorModel, VectorStore};
use std::path::Path;
use std::sync::{Arc, Weak};

/// Maximum length of a description that is encoded, in bytes: models read no more of a text.
const MAX_DESCRIPTION_BYTES: usize = 700;

/// A model and the vectors of the tools of the last search.
pub struct Meaning {
    model: Arc<Model>,
    similarity_threshold: f64,
    vectors: Vectors,
    /// Those of one snapshot, by row.
    rows: (Weak<Snapshot>, Arc<[Vector]>),
}

impl Meaning {
    /// Opens the model in `folder`. A tool is found from a cosine of `similarity_threshold` on.
    ///
    /// # Errors
    /// What is wrong with the folder, without its path.
    pub fn open(folder: &Path, similarity_threshold: f64, store: Arc<dyn VectorStore>) -> Result<Self, String> {
        let files = Files::read(folder)?;
        let vectors = Vectors::new(store, VectorModel { digest: files.digest(), dimensions: files.length() });
        let model = Arc::new(files.model()?);
        Ok(Self { model, similarity_threshold, vectors, rows: (Weak::new(), Arc::default()) })
    }

    /// Returns the tools that answer each of `queries`, the best first. The model runs on threads that may block: tens
    /// of milliseconds for a query, and as long for every tool that has no vector yet.
    ///
    /// # Errors
    /// The model fails.
    pub async fn search(&mut self, snapshot: &Arc<Snapshot>, queries: Vec<String>) -> Result<Vec<Vec<Hit>>, String> {
        let rows = self.rows(snapshot).await?;
        let (model, threshold) = (Arc::clone(&self.model), self.similarity_threshold);
        let search = move || {
            let queries = model.vectors(&queries)?;
            Ok(queries.iter().map(|query| nearest(&rows, query, threshold)).collect())
        };
        blocking(search).await?
    }

    /// Returns the vectors of a snapshot, by row.
    async fn rows(&mut self, snapshot: &Arc<Snapshot>) -> Result<Arc<[Vector]>, String> {
        let (last, rows) = &self.rows;
        if last.as_ptr() == Arc::as_ptr(snapshot) && last.strong_count() > 0 {
            return Ok(Arc::clone(rows));
        }
        let source = Arc::clone(snapshot);
        let texts = blocking(move || source.rows().iter().map(|row| text(row)).collect()).await?;
        let model = Arc::clone(&self.model);
        let encode: Arc<Encode> = Arc::new(move |texts: &[String]| model.vectors(texts));
        let rows: Arc<[Vector]> = self.vectors.get(texts, &encode).await?.into();
        self.rows = (Arc::downgrade(snapshot), Arc::clone(&rows));
        Ok(rows)
    }
}

/// Returns the rows with at least this cosine, the best first.
fn nearest(rows: &[Vector], query: &[f32], threshold: f64) -> Vec<Hit> {
    let cosine = |row: &Vector| row.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
    let rounded = |score: f32| (f64::from(score).clamp(0.0, 1.0) * 1e4).round() / 1e4;
    let scores = rows.iter().map(|row| rounded(cosine(row))).enumerate();
    let mut hits: Vec<Hit> = scores.filter(|(_, score)| *score >= threshold && *score > 0.0).collect();
    hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits
}

/// Returns what a tool says of itself.
fn text(row: &Entry) -> String {
    let tool = &row.definition;
    let name = split(&tool.name).join(" ");
    let title = tool.title.as_deref().unwrap_or_default();
    let description = truncate(tool.description.trim(), MAX_DESCRIPTION_BYTES);
    format!("{} {name}. {title}. {description}", tool.app)
}
