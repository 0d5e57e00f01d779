//! The vectors of texts: in memory as long as they are needed, and beyond that in a file, where the
//! configuration names one.
//!
//! A file that cannot be read or written is a warning in the log. Vectors are made instead, and kept in
//! memory.

mod file;

pub use file::{Problem, VectorFile};
use std::collections::HashMap;
use std::sync::Arc;

/// Vectors that are made, and then written, together: what is written is there for the next start, should
/// this process be ended before all are made. A multiple of what a model takes at a time.
const TOGETHER: usize = 64;

/// The vectors of the texts that were asked for last.
pub struct Vectors {
    /// By text.
    known: HashMap<String, Arc<[f32]>>,
    file: Option<VectorFile>,
}

impl Vectors {
    /// None are known but those in `file`; absent: the configuration names none.
    pub fn new(file: Option<Result<VectorFile, Problem>>) -> Self {
        let file = file.and_then(|opened| opened.inspect_err(warn).ok());
        Self { known: HashMap::new(), file }
    }

    /// The vectors of `texts`, in their order. `make` makes those that are not known; it gets each text
    /// once, texts of like length together. What others had is forgotten here, not in the file.
    ///
    /// # Errors
    /// Those of `make`. What it has made before is known.
    pub fn of(
        &mut self,
        texts: Vec<String>,
        mut make: impl FnMut(&[String]) -> Result<Vec<Arc<[f32]>>, String>,
    ) -> Result<Vec<Arc<[f32]>>, String> {
        let mut missing: Vec<String> = texts.iter().filter(|text| !self.known.contains_key(*text)).cloned().collect();
        missing.sort_unstable_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        missing.dedup();
        let asked = missing.len();
        self.read(&mut missing);
        for texts in missing.chunks(TOGETHER) {
            let vectors = make(texts)?;
            self.with_file(|file| file.write(texts, &vectors));
            self.known.extend(texts.iter().cloned().zip(vectors));
        }
        if asked > 0 {
            tracing::info!(made = missing.len(), read = asked - missing.len(), "vectors of tools");
        }
        let vectors: Vec<Arc<[f32]>> = texts.iter().filter_map(|text| self.known.get(text).cloned()).collect();
        self.known = texts.into_iter().zip(vectors.iter().cloned()).collect();
        Ok(vectors)
    }

    /// Take from `missing` what is in the file.
    fn read(&mut self, missing: &mut Vec<String>) {
        let Some(vectors) = self.with_file(|file| file.read(missing)) else { return };
        self.with_file(VectorFile::note_use);
        let mut vectors = vectors.into_iter();
        missing.retain(|text| match vectors.next().flatten() {
            Some(vector) => {
                self.known.insert(text.clone(), vector);
                false
            }
            None => true,
        });
    }

    /// Do something with the file. Where that is not possible, it is left alone from then on; if only
    /// others were in the way, until the next time.
    fn with_file<T>(&mut self, work: impl FnOnce(&mut VectorFile) -> Result<T, Problem>) -> Option<T> {
        let problem = match work(self.file.as_mut()?) {
            Ok(done) => return Some(done),
            Err(problem) => problem,
        };
        warn(&problem);
        if problem != Problem::Busy {
            self.file = None;
        }
        None
    }
}

fn warn(problem: &Problem) {
    tracing::warn!("search.vectorCache: {problem}. Vectors are kept in memory only.");
}

#[cfg(test)]
mod tests;
