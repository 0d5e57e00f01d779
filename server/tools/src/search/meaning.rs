//! Search for tools by meaning: the cosine of the vectors of a query and of what a tool says of itself.
//!
//! The vector of a tool is made when it is first searched for, and kept in memory for as long as its text
//! is the same, whatever else changes. It is written to disk only where the configuration names a file for
//! it; then the next process finds it there.

use super::model::{Files, Model};
use super::vectors::{VectorFile, Vectors};
use crate::catalogue::{Entry, Snapshot};
use crate::index::{Hit, split};
use codecall_base::text::truncate;
use std::path::Path;
use std::sync::{Arc, Weak};

/// Descriptions are read up to here: models read no more of a text.
const LONGEST_DESCRIPTION: usize = 700;

/// A model and the vectors of the tools of the last search.
pub struct Meaning {
    model: Model,
    least: f64,
    vectors: Vectors,
    /// Those of one snapshot, by row.
    rows: (Weak<Snapshot>, Vec<Arc<[f32]>>),
}

impl Meaning {
    /// The model in `folder`. A tool counts as found from a cosine of `least`. Vectors are kept in the file
    /// `cache` too; where it cannot be used, that is a warning in the log.
    ///
    /// # Errors
    /// What is wrong with the folder, without its path.
    pub fn open(folder: &Path, least: f64, cache: Option<&Path>) -> Result<Self, String> {
        let files = Files::read(folder)?;
        let vectors = Vectors::new(cache.map(|path| VectorFile::open(path, files.digest(), files.length())));
        Ok(Self { model: files.model()?, least, vectors, rows: (Weak::new(), Vec::new()) })
    }

    /// The tools that answer each of `queries`, the best first. It takes as long as it takes: tens of
    /// milliseconds for a query, as much again for every tool that has no vector yet.
    ///
    /// # Errors
    /// The model fails.
    pub fn search(&mut self, snapshot: &Arc<Snapshot>, queries: &[String]) -> Result<Vec<Vec<Hit>>, String> {
        self.learn(snapshot)?;
        let queries = self.model.vectors(queries)?;
        Ok(queries.iter().map(|query| self.nearest(query)).collect())
    }

    fn nearest(&self, query: &[f32]) -> Vec<Hit> {
        let cosine = |row: &Arc<[f32]>| row.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
        let rounded = |score: f32| (f64::from(score).clamp(0.0, 1.0) * 1e4).round() / 1e4;
        let scores = self.rows.1.iter().map(|row| rounded(cosine(row))).enumerate();
        let mut hits: Vec<Hit> = scores.filter(|(_, score)| *score >= self.least && *score > 0.0).collect();
        hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits
    }

    /// Make the vectors that `snapshot` needs and that are not known; forget those it does not need.
    fn learn(&mut self, snapshot: &Arc<Snapshot>) -> Result<(), String> {
        if self.rows.0.as_ptr() == Arc::as_ptr(snapshot) && self.rows.0.strong_count() > 0 {
            return Ok(());
        }
        let texts = snapshot.rows().iter().map(|row| text(row)).collect();
        let rows = self.vectors.of(texts, |texts| self.model.vectors(texts))?;
        self.rows = (Arc::downgrade(snapshot), rows);
        Ok(())
    }
}

/// What a tool says of itself.
fn text(row: &Entry) -> String {
    let tool = &row.definition;
    let name = split(&tool.name).join(" ");
    let title = tool.title.as_deref().unwrap_or_default();
    let description = truncate(tool.description.trim(), LONGEST_DESCRIPTION);
    format!("{} {name}. {title}. {description}", tool.app)
}
