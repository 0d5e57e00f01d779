//! Search for tools by words: the crate `bm25` over names, titles, descriptions and parameters.
//!
//! The crate counts tokens, knows which tools have one and weighs it by how rare it is. What it has no
//! notion of is done here: several fields with weights of their own (BM25F, in [`fields`]), and synonyms
//! that count less than the word itself. `docs/search.md` has what each of these is worth.
//!
//! A score says how much of a query a tool answers (0 to 1): 1 is a tool that fits every word of it
//! as well as the best tool for that word does. Equal scores stand in the order of the names.
//!
//! The tools of an app are one [`Segment`], which never changes and is shared by the snapshots that
//! have the same tools: a change of one app tokenizes only its own tools. An [`Index`] has the embeddings
//! of all segments in one scorer: how rare a word is, is a matter of all of them.

mod fields;
mod thesaurus;
mod words;

use bm25::{Embedding, ScoredDocument, Scorer, TokenEmbedder, TokenEmbedding};
use codecall_base::text::truncate;
use codecall_base::tool::ToolDefinition;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use thesaurus::synonyms;
pub use words::split;
use words::{Word, stem, words};

/// The weight of a synonym relative to the word itself, and of a part relative to the whole word.
const SYNONYM: f32 = 0.5;
/// The weight of a query word that no tool has, relative to one that some have.
const UNKNOWN: f32 = 0.5;
/// Limits of a query: bytes, words, and matched tools, each counted once per stem. The last one bounds the work of a
/// search: words that occur in all of thousands of tools, with all their synonyms, would take seconds.
const MAX_QUERY_BYTES: usize = 4_000;
const MAX_QUERY_WORDS: usize = 64;
const MAX_MATCHES: usize = 100_000;

/// A tool that was found: its row, and its score from 0 to 1.
pub type Hit = (usize, f64);

/// What is indexed.
pub trait Document {
    /// The tool.
    fn tool(&self) -> &Arc<ToolDefinition>;
    /// What its app calls itself; absent: unknown.
    fn app_title(&self) -> Option<String>;
}

/// The tools of one app, by words.
pub struct Segment {
    /// What it was made from.
    tools: Vec<Arc<ToolDefinition>>,
    title: Option<String>,
    /// One a tool.
    embeddings: Vec<Embedding>,
}

/// Words of all tools.
#[derive(Default)]
pub struct Index {
    segments: Segments,
    /// By position among the rows.
    scorer: Scorer<u32>,
    rows: usize,
}

impl Index {
    /// Index `rows`; results refer to their positions. Apps whose tools are those of `before` are taken
    /// from there.
    #[must_use]
    pub fn new<D: Document>(rows: &[D], before: &Segments) -> Self {
        // The tools of an app, their positions among all, and what the app calls itself.
        type App = (Vec<Arc<ToolDefinition>>, Vec<u32>, Option<String>);
        let mut apps: BTreeMap<&str, App> = BTreeMap::new();
        for (at, row) in (0_u32..).zip(rows) {
            let tool = row.tool();
            let (tools, positions, title) = apps.entry(&tool.app).or_default();
            tools.push(Arc::clone(tool));
            positions.push(at);
            if title.is_none() {
                *title = row.app_title();
            }
        }
        let mut index = Self { rows: rows.len(), ..Self::default() };
        for (app, (tools, positions, title)) in apps {
            let known = before.0.get(app).filter(|segment| segment.is_of(&tools, title.as_deref()));
            let segment = known.cloned().unwrap_or_else(|| Arc::new(Segment::new(tools, title)));
            for (at, embedding) in positions.iter().zip(&segment.embeddings) {
                index.scorer.upsert(at, embedding.clone());
            }
            index.segments.0.insert(app.to_owned(), segment);
        }
        index
    }

    /// Whether there are no tools in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What the next index can take over.
    #[must_use]
    pub fn segments(&self) -> Segments {
        self.segments.clone()
    }

    /// Positions of the tools that answer `query`, with scores; the best first.
    #[must_use]
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let mut scores = Scores::new(self.rows);
        let mut left = MAX_MATCHES;
        for Term { own, others } in self.terms(query, &mut left) {
            if left == 0 {
                break;
            }
            let matches = self.matches(&own, &mut left);
            // A synonym is never rarer than the word itself: it would outvote it.
            let most = if matches.is_empty() { f32::INFINITY } else { self.rarity(matches.len()) };
            scores.add(matches, 1.0);
            for (stem, factor) in others {
                let matches = self.matches(&stem, &mut left);
                let rarity = self.rarity(matches.len());
                scores.add(matches, factor * (most / rarity).min(1.0));
            }
            scores.end_of_term();
        }
        scores.hits()
    }

    /// The tools that have a stem; none where no matches are `left`. The scorer reads no weights of a query,
    /// so each stem is a query of its own.
    fn matches(&self, stem: &str, left: &mut usize) -> Vec<ScoredDocument<u32>> {
        if *left == 0 {
            return Vec::new();
        }
        let query = Embedding(vec![TokenEmbedding { index: u32::embed(stem), value: 1.0 }]);
        let matches = self.scorer.matches(&query);
        *left = left.saturating_sub(matches.len());
        matches
    }

    /// What a stem that so many tools have counts: the factor that is in the scores of the scorer.
    fn rarity(&self, tools: usize) -> f32 {
        let (all, with) = (self.rows as f32, tools as f32);
        ((all - with + 0.5) / (with + 0.5)).ln_1p()
    }

    /// What is looked for: each word once.
    fn terms(&self, query: &str, left: &mut usize) -> Vec<Term> {
        let mut seen = HashSet::new();
        let mut terms = Vec::new();
        let mut before: Option<String> = None;
        for word in words(truncate(query, MAX_QUERY_BYTES)).into_iter().take(MAX_QUERY_WORDS) {
            // Where the whole is not known, its parts are the words.
            let whole = word.parts.is_empty() || !self.matches(&word.stem, left).is_empty();
            let known = if whole { vec![word] } else { word.parts.into_iter().map(Word::from).collect() };
            for Word { stem: own, parts } in known {
                if !seen.insert(own.clone()) {
                    continue;
                }
                // `time zone` is `timezone` too.
                let joined = before.map(|before| (stem(&format!("{before}{own}")), 1.0));
                let synonyms = synonyms(&own).iter().cloned().chain(parts).map(|other| (other, SYNONYM));
                let others = joined.into_iter().chain(synonyms).collect();
                terms.push(Term { own: own.clone(), others });
                before = Some(own);
            }
        }
        terms
    }
}

/// One word of a query.
struct Term {
    /// Its stem.
    own: String,
    /// Stems that stand for it too, and what they count beside it.
    others: Vec<(String, f32)>,
}

/// Scores of all tools, term by term.
struct Scores {
    /// Of the terms until now.
    sums: Vec<f32>,
    /// Of the present term: what the best of its stems gives.
    of_term: Vec<f32>,
    /// Which tools the present term has matched.
    touched: Vec<usize>,
    /// What a tool would have that fits every known term as well as the best one.
    perfect: f32,
    /// Terms that some tool has, and terms that none has.
    known: u16,
    unknown: u16,
}

impl Scores {
    fn new(rows: usize) -> Self {
        let (sums, of_term) = (vec![0.0; rows], vec![0.0; rows]);
        Self { sums, of_term, touched: Vec::new(), perfect: 0.0, known: 0, unknown: 0 }
    }

    fn add(&mut self, matches: Vec<ScoredDocument<u32>>, factor: f32) {
        for ScoredDocument { id, score } in matches {
            let of_term = &mut self.of_term[id as usize];
            if *of_term == 0.0 {
                self.touched.push(id as usize);
            }
            *of_term = of_term.max(score * factor);
        }
    }

    fn end_of_term(&mut self) {
        let mut best = 0.0_f32;
        for at in self.touched.drain(..) {
            let score = std::mem::take(&mut self.of_term[at]);
            best = best.max(score);
            self.sums[at] += score;
        }
        self.perfect += best;
        if best > 0.0 {
            self.known += 1;
        } else {
            self.unknown += 1;
        }
    }

    fn hits(self) -> Vec<Hit> {
        let perfect = self.perfect * (1.0 + UNKNOWN * f32::from(self.unknown) / f32::from(self.known.max(1)));
        let rounded = |score: f32| (f64::from(score / perfect).min(1.0) * 1e4).round() / 1e4;
        let found = self.sums.iter().enumerate().filter(|(_, score)| **score > 0.0);
        let mut hits: Vec<Hit> = found.map(|(at, score)| (at, rounded(*score))).collect();
        hits.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        hits
    }
}

/// Segments by app, to be taken over.
#[derive(Clone, Default)]
pub struct Segments(BTreeMap<String, Arc<Segment>>);

impl Segment {
    fn new(tools: Vec<Arc<ToolDefinition>>, title: Option<String>) -> Self {
        let embeddings = tools.iter().map(|tool| fields::embedding(tool, title.as_deref())).collect();
        Self { tools, title, embeddings }
    }

    fn is_of(&self, tools: &[Arc<ToolDefinition>], title: Option<&str>) -> bool {
        let same = |(a, b): (&Arc<ToolDefinition>, &Arc<ToolDefinition>)| Arc::ptr_eq(a, b) || a == b;
        self.title.as_deref() == title && self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(same)
    }
}

#[cfg(test)]
mod tests;
