//! Search for tools by meaning: the cosine of the vectors of a query and of what a tool says of itself.
//!
//! The vector of a tool is computed when it is first searched for. It is kept in memory for as long as its text is the
//! same, whatever else changes. A store keeps it longer, also on disk if the configuration names a file.

use super::model::{Files, Model};
use super::vectors::{Encode, Vectors, blocking};
use crate::catalogue::{Entry, Snapshot};
use crate::index::{Hit, split, summary};
use codecall_store::{Vector, VectorModel, VectorStore};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// A model and the vectors of the tools of the last search.
pub struct Meaning {
    folder: PathBuf,
    store: Arc<dyn VectorStore>,
    /// The model, or why there is none; `None` until it is first needed.
    loaded: Option<Result<Loaded, String>>,
    /// The vectors of one snapshot, by row.
    rows: (Weak<Snapshot>, Arc<[Vector]>),
}

/// A model in memory.
struct Loaded {
    model: Arc<Model>,
    vectors: Vectors,
}

impl Loaded {
    fn read(folder: &Path, store: Arc<dyn VectorStore>) -> Result<Self, String> {
        let files = Files::read(folder)?;
        let vectors = Vectors::new(store, VectorModel { digest: files.digest(), dimensions: files.length() });
        Ok(Self { model: Arc::new(files.model()?), vectors })
    }
}

impl Meaning {
    /// The model in `folder`, which is loaded when it is first needed.
    pub fn new(folder: PathBuf, store: Arc<dyn VectorStore>) -> Self {
        Self { folder, store, loaded: None, rows: (Weak::new(), Arc::default()) }
    }

    /// Loads the model now, which takes some tenths of a second.
    ///
    /// # Errors
    /// The problem of the folder, without its path.
    pub fn load(&mut self) -> Result<(), String> {
        let loaded = Loaded::read(&self.folder, Arc::clone(&self.store));
        self.loaded.insert(loaded).as_ref().map(drop).map_err(Clone::clone)
    }

    async fn loaded(&mut self) -> Result<&mut Loaded, String> {
        if self.loaded.is_none() {
            let (folder, store) = (self.folder.clone(), Arc::clone(&self.store));
            self.loaded = Some(blocking(move || Loaded::read(&folder, store)).await?);
        }
        match self.loaded.as_mut() {
            Some(loaded) => loaded.as_mut().map_err(|problem| problem.clone()),
            None => Err("there is no model".into()),
        }
    }

    /// Returns the tools for each of `queries` by their cosine, the best first, without those that have none above 0.
    /// The model runs on threads that may block: some
    /// milliseconds for a query, and as long for every tool that has no vector yet.
    ///
    /// # Errors
    /// The model cannot be loaded, or fails.
    pub async fn search(&mut self, snapshot: &Arc<Snapshot>, queries: Vec<String>) -> Result<Vec<Vec<Hit>>, String> {
        let rows = self.rows(snapshot).await?;
        let model = Arc::clone(&self.loaded().await?.model);
        let search = move || {
            let queries = model.vectors(&queries)?;
            Ok(queries.iter().map(|query| nearest(&rows, query)).collect())
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
        let loaded = self.loaded().await?;
        let model = Arc::clone(&loaded.model);
        let encode: Arc<Encode> = Arc::new(move |texts: &[String]| model.vectors(texts));
        let rows: Arc<[Vector]> = loaded.vectors.get(texts, &encode).await?.into();
        self.rows = (Arc::downgrade(snapshot), Arc::clone(&rows));
        Ok(rows)
    }
}

/// Returns the rows by their cosine, the best first.
fn nearest(rows: &[Vector], query: &[f32]) -> Vec<Hit> {
    let cosine = |row: &Vector| row.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
    let rounded = |score: f32| (f64::from(score).clamp(0.0, 1.0) * 1e4).round() / 1e4;
    let scores = rows.iter().map(|row| rounded(cosine(row))).enumerate();
    let mut hits: Vec<Hit> = scores.filter(|(_, score)| *score > 0.0).collect();
    hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits
}

/// Returns what a tool says of itself. More of its description takes twice the time, and finds no more.
fn text(row: &Entry) -> String {
    let tool = &row.definition;
    let name = split(&tool.name).join(" ");
    let title = tool.title.as_deref().unwrap_or_default();
    let description = tool.description.trim();
    let title = if title.is_empty() { String::new() } else { format!("{title}. ") };
    format!("{} {name}. {title}{}", tool.app, &description[..summary(description)])
}
