//! Search for tools by words: the crate `bm25` over names, titles, descriptions and parameters.
//!
//! The crate counts tokens, finds the tools that have one, and weighs it by its rarity. This module adds what the crate does
//! not have: several fields with weights (BM25F, in [`fields`]), and synonyms that count less than the word itself.
//! `docs/reports/search.md` has measurements of each.
//!
//! A score, from 0 to 1, says how much of a query a tool answers. 1 is a tool that matches every word as well as the
//! best tool for that word. Equal scores are sorted by name.
//!
//! The tools of an app are one [`Segment`], which never changes and is shared by snapshots with the same tools. So a
//! change of one app tokenizes only its own tools. An [`Index`] has the embeddings of all segments in one scorer,
//! because the rarity
//! of a word depends on all of them.

mod fields;
mod fit;
mod thesaurus;
mod words;

use bm25::{Embedding, ScoredDocument, Scorer, TokenEmbedder, TokenEmbedding};
use codecall_base::text::truncate;
use codecall_base::tool::ToolDefinition;
#[cfg(feature = "embeddings")]
pub(crate) use fields::summary;
pub use fit::Fit;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use thesaurus::{concepts, synonyms};
pub use words::split;
use words::{Word, stem, words};

/// The weight of a synonym relative to the word itself, and of a part relative to the whole word.
const SYNONYM: f32 = 0.5;
/// The weight of a word for what a query describes in several words, relative to a word of the query.
const CONCEPT: f32 = 0.7;
/// The weight of a query word that no tool has, relative to one that some have.
const UNKNOWN: f32 = 0.5;
/// Limits of a query: bytes, words, and matched tools, each counted once per stem. The last one bounds the work of a
/// search: words that occur in all of thousands of tools, with all their synonyms, would take seconds.
const MAX_QUERY_BYTES: usize = 4_000;
const MAX_QUERY_WORDS: usize = 64;
const MAX_MATCHES: usize = 100_000;

/// A tool that was found: its row, and its score from 0 to 1.
pub type Hit = (usize, f64);

/// A document of the index: a tool.
pub trait Document {
    /// The tool.
    fn tool(&self) -> &Arc<ToolDefinition>;
    /// Returns the title of its app, if it is known.
    fn app_title(&self) -> Option<String>;
}

/// The tools of one app, by words.
pub struct Segment {
    /// The tools that it was made from.
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
    /// Creates an index of `rows`; hits refer to their positions. The segments of apps that have not changed are taken from
    /// `before`.
    #[must_use]
    pub fn new<D: Document>(rows: &[D], before: &Segments) -> Self {
        // The tools of an app, their positions among all, and its title.
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

    /// Whether it contains no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the segments for the next index.
    #[must_use]
    pub fn segments(&self) -> Segments {
        self.segments.clone()
    }

    /// Returns the tools that match `query`, the best first.
    #[must_use]
    pub fn search(&self, query: &str) -> Vec<Hit> {
        self.judge(query).0
    }

    /// Returns the tools that match `query`, the best first, and which of them fit it.
    #[must_use]
    pub fn judge(&self, query: &str) -> (Vec<Hit>, Fit) {
        let mut scores = Scores::new(self.rows);
        let mut left = MAX_MATCHES;
        for Term { own, others, weight, counts } in self.terms(query, &mut left) {
            if left == 0 {
                break;
            }
            let matches = self.matches(&own, &mut left);
            let rarity = self.rarity(matches.len());
            // A synonym that is rarer than the word itself would outweigh it.
            let max_rarity = if matches.is_empty() { f32::INFINITY } else { rarity };
            scores.add(matches, weight, rarity);
            for (stem, factor) in others {
                let matches = self.matches(&stem, &mut left);
                let rarity = self.rarity(matches.len());
                scores.add(matches, weight * factor * (max_rarity / rarity).min(1.0), rarity);
            }
            scores.end_of_term(counts);
        }
        // Words that were not read might fit any tool.
        let unread = if left == 0 { f32::INFINITY } else { 0.0 };
        let fit = Fit::new(scores.sums.iter().map(|sum| sum.presence + unread));
        (scores.hits(), fit)
    }

    /// Returns the tools that have a stem; none if no matches are `left`. The scorer ignores weights of a query, so each stem
    /// is a query of its own.
    fn matches(&self, stem: &str, left: &mut usize) -> Vec<ScoredDocument<u32>> {
        if *left == 0 {
            return Vec::new();
        }
        let query = Embedding(vec![TokenEmbedding { index: u32::embed(stem), value: 1.0 }]);
        let matches = self.scorer.matches(&query);
        *left = left.saturating_sub(matches.len());
        matches
    }

    /// Returns the weight of a stem that so many tools have, as the scorer computes it.
    fn rarity(&self, tools: usize) -> f32 {
        let (all, with) = (self.rows as f32, tools as f32);
        ((all - with + 0.5) / (with + 0.5)).ln_1p()
    }

    /// Returns the terms of a query, each once.
    fn terms(&self, query: &str, left: &mut usize) -> Vec<Term> {
        let mut seen = HashSet::new();
        let mut terms = Vec::new();
        let mut before: Option<String> = None;
        for word in words(truncate(query, MAX_QUERY_BYTES)).into_iter().take(MAX_QUERY_WORDS) {
            // If no tool has the whole word, its parts are searched.
            let whole = word.parts.is_empty() || !self.matches(&word.stem, left).is_empty();
            let known = if whole { vec![word] } else { word.parts.into_iter().map(Word::from).collect() };
            for Word { stem: own, parts } in known {
                if !seen.insert(own.clone()) {
                    continue;
                }
                // `time zone` also matches `timezone`.
                let joined = before.map(|before| (stem(&format!("{before}{own}")), 1.0));
                let synonyms = synonyms(&own).iter().cloned().chain(parts).map(|other| (other, SYNONYM));
                let others = joined.into_iter().chain(synonyms).collect();
                terms.push(Term { own: own.clone(), others, weight: 1.0, counts: true });
                before = Some(own);
            }
        }
        let has_matter = fit::has_matter(truncate(query, MAX_QUERY_BYTES), terms.iter().map(|term| term.own.as_str()));
        // Stop words are words of phrases.
        let all = split(truncate(query, MAX_QUERY_BYTES));
        let all: HashSet<String> = all.iter().take(2 * MAX_QUERY_WORDS).map(|word| stem(word)).collect();
        for concept in concepts(&all) {
            // A concept that no tool has is none of the user's words.
            if seen.insert(concept.to_owned()) && !self.matches(concept, left).is_empty() {
                terms.push(Term { own: concept.to_owned(), others: Vec::new(), weight: CONCEPT, counts: true });
            }
        }
        for term in &mut terms {
            term.counts = !(has_matter && fit::is_general(&term.own));
        }
        terms
    }
}

/// One word of a query.
struct Term {
    /// Its stem.
    own: String,
    /// Other stems that match it, with their weights.
    others: Vec<(String, f32)>,
    /// Its weight relative to a word of the user.
    weight: f32,
    /// Whether a tool that has it may fit.
    counts: bool,
}

/// How well a tool matches.
#[derive(Clone, Copy, Default)]
struct Match {
    score: f32,
    /// The score before rarity.
    presence: f32,
}

/// Scores of all tools, term by term.
struct Scores {
    /// The sums over the terms so far; those of presence only over the terms that count.
    sums: Vec<Match>,
    /// The matches of the current term: those of its best stem.
    of_term: Vec<Match>,
    /// The tools that the current term has matched.
    touched: Vec<usize>,
    /// The score of a tool that matches every known term as well as the best one.
    perfect: f32,
    /// Terms that some tool has, and terms that none has.
    known: u16,
    unknown: u16,
}

impl Scores {
    fn new(rows: usize) -> Self {
        let (sums, of_term) = (vec![Match::default(); rows], vec![Match::default(); rows]);
        Self { sums, of_term, touched: Vec::new(), perfect: 0.0, known: 0, unknown: 0 }
    }

    /// Adds the matches of a stem with this rarity.
    fn add(&mut self, matches: Vec<ScoredDocument<u32>>, factor: f32, rarity: f32) {
        for ScoredDocument { id, score } in matches {
            let of_term = &mut self.of_term[id as usize];
            if of_term.score == 0.0 {
                self.touched.push(id as usize);
            }
            let score = score * factor;
            if score > of_term.score {
                *of_term = Match { score, presence: score / rarity };
            }
        }
    }

    fn end_of_term(&mut self, counts: bool) {
        let mut best = 0.0_f32;
        for at in self.touched.drain(..) {
            let Match { score, presence } = std::mem::take(&mut self.of_term[at]);
            best = best.max(score);
            self.sums[at].score += score;
            self.sums[at].presence += if counts { presence } else { 0.0 };
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
        let found = self.sums.iter().enumerate().filter(|(_, sum)| sum.score > 0.0);
        let mut hits: Vec<Hit> = found.map(|(at, sum)| (at, rounded(sum.score))).collect();
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
