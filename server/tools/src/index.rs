//! Search for tools by words: BM25F over names, titles, descriptions and parameters.
//!
//! A score says how much of a query a tool answers (0 to 1): 1 is a tool that fits every word of it
//! as well as the best tool for that word does. Equal scores stand in the order of the names.
//!
//! The tools of an app are one [`Segment`], which never changes and is shared by the snapshots that
//! have the same tools: a change of one app indexes only its own tools. An [`Index`] puts segments
//! side by side; how rare a word is, is a matter of all of them.

mod thesaurus;
mod words;

use codecall_base::text::truncate;
use codecall_base::tool::ToolDefinition;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use thesaurus::synonyms;
pub use words::split;
use words::{Word, stem, words};

/// A place where words stand: how much they count there, how many words it has in the usual tool, and
/// how much of its weight a longer one loses (0 to 1).
#[derive(Clone, Copy)]
struct Field {
    weight: f32,
    usual: f32,
    slope: f32,
}

const NAME: Field = Field { weight: 4.0, usual: 3.0, slope: 0.3 };
/// Tags too.
const TITLE: Field = Field { weight: 1.5, usual: 3.0, slope: 0.3 };
/// The id of the app and the title of its server: the same for all its tools.
const APP: Field = Field { weight: 1.5, usual: 3.0, slope: 0.0 };
/// The first sentence of a description. The rest is often long, and about all sorts of things.
const SUMMARY: Field = Field { weight: 2.0, usual: 10.0, slope: 0.5 };
const TEXT: Field = Field { weight: 0.2, usual: 30.0, slope: 0.7 };
/// Names and descriptions of parameters.
const PARAMETER: Field = Field { weight: 0.5, usual: 20.0, slope: 0.7 };
/// How slowly more of the same word stops counting.
const K1: f32 = 2.5;
/// What a synonym counts beside the word itself, and a part beside the whole.
const SYNONYM: f32 = 0.5;
/// What a word of a query that no tool has takes from the score, beside one that some have: it says
/// less.
const UNKNOWN: f32 = 0.5;
/// Texts are read up to here; some are books.
const LONGEST_DESCRIPTION: usize = 4_000;
const LONGEST_SUMMARY: usize = 240;
const LONGEST_NAME: usize = 200;
const LONGEST_PARAMETER: usize = 200;
/// A query is read up to here: so many bytes, so many words.
const LONGEST_QUERY: usize = 4_000;
const MOST_WORDS: usize = 64;

/// A tool that was found: its place among the rows, and how well it fits, from 0 to 1.
pub type Hit = (usize, f64);

/// What is indexed.
pub trait Document {
    /// The tool.
    fn tool(&self) -> &Arc<ToolDefinition>;
    /// What its app calls itself; absent: nobody has said.
    fn app_title(&self) -> Option<String>;
}

/// The tools of one app, by words.
pub struct Segment {
    /// What it was made from.
    tools: Vec<Arc<ToolDefinition>>,
    title: Option<String>,
    /// By stem.
    postings: HashMap<Arc<str>, Postings>,
}

/// The tools of a segment that have a word, and how much it counts there, before rarity.
type Postings = Arc<[(u32, f32)]>;

/// A word in all segments.
#[derive(Default)]
struct Known {
    /// How many tools have it.
    tools: usize,
    /// Which, by segment.
    postings: Vec<(usize, Postings)>,
}

/// Words of all tools.
#[derive(Default)]
pub struct Index {
    segments: Segments,
    /// Where the tools of a segment stand among the rows.
    places: Vec<Vec<u32>>,
    /// By stem.
    words: HashMap<Arc<str>, Known>,
    rows: usize,
}

impl Index {
    /// Index `rows`; results refer to their positions. Apps whose tools are those of `before` are taken
    /// from there.
    #[must_use]
    pub fn new<D: Document>(rows: &[D], before: &Segments) -> Self {
        // The tools of an app, their places among all, and what the app calls itself.
        type App = (Vec<Arc<ToolDefinition>>, Vec<u32>, Option<String>);
        let mut apps: BTreeMap<&str, App> = BTreeMap::new();
        for (at, row) in (0_u32..).zip(rows) {
            let tool = row.tool();
            let (tools, places, title) = apps.entry(&tool.app).or_default();
            tools.push(Arc::clone(tool));
            places.push(at);
            if title.is_none() {
                *title = row.app_title();
            }
        }
        let mut index = Self { rows: rows.len(), ..Self::default() };
        for (app, (tools, places, title)) in apps {
            let known = before.0.get(app).filter(|segment| segment.is_of(&tools, title.as_deref()));
            let segment = known.cloned().unwrap_or_else(|| Arc::new(Segment::new(tools, title)));
            for (stem, postings) in &segment.postings {
                let word = index.words.entry(Arc::clone(stem)).or_default();
                word.tools += postings.len();
                word.postings.push((index.places.len(), Arc::clone(postings)));
            }
            index.places.push(places);
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

    /// Places of the tools that answer `query`, with scores; the best first.
    #[must_use]
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let mut scores = vec![0.0_f32; self.rows];
        let mut of_word = vec![0.0_f32; self.rows];
        // What a tool would have that fits every known word as well as the best one, and how many there are.
        let (mut perfect, mut known, mut unknown) = (0.0_f32, 0_u16, 0_u16);
        for term in self.terms(query) {
            let mut touched = Vec::new();
            for (stem, factor, most) in term.stems {
                let Some(word) = self.words.get(stem.as_str()) else { continue };
                let rarity = self.rarity(word).min(most) * factor;
                for (segment, postings) in &word.postings {
                    let places = &self.places[*segment];
                    for (tool, count) in postings.iter() {
                        let at = places[*tool as usize] as usize;
                        if of_word[at] == 0.0 {
                            touched.push(at);
                        }
                        of_word[at] = of_word[at].max(rarity * count);
                    }
                }
            }
            let mut best = 0.0_f32;
            for at in touched {
                let score = std::mem::take(&mut of_word[at]);
                best = best.max(score);
                scores[at] += score;
            }
            perfect += best;
            if best > 0.0 {
                known += 1;
            } else {
                unknown += 1;
            }
        }
        let perfect = perfect * (1.0 + UNKNOWN * f32::from(unknown) / f32::from(known.max(1)));
        let rounded = |score: f32| (f64::from(score / perfect).min(1.0) * 1e4).round() / 1e4;
        let mut found: Vec<Hit> = scores
            .iter()
            .enumerate()
            .filter(|(_, score)| **score > 0.0)
            .map(|(at, score)| (at, rounded(*score)))
            .collect();
        found.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }

    /// What a word counts: more where fewer tools have it.
    fn rarity(&self, word: &Known) -> f32 {
        let (all, with) = (self.rows as f32, word.tools as f32);
        ((all - with + 0.5) / (with + 0.5)).ln_1p()
    }

    /// What is looked for: each word once.
    fn terms(&self, query: &str) -> Vec<Term> {
        let mut seen = HashSet::new();
        let mut terms = Vec::new();
        let mut before: Option<String> = None;
        for word in words(truncate(query, LONGEST_QUERY)).into_iter().take(MOST_WORDS) {
            // Where the whole is not known, its parts are the words.
            let whole = word.parts.is_empty() || self.words.contains_key(word.stem.as_str());
            let known = if whole { vec![word] } else { word.parts.into_iter().map(Word::from).collect() };
            for Word { stem: own, parts } in known {
                if !seen.insert(own.clone()) {
                    continue;
                }
                // A synonym is never rarer than the word itself: it would outvote it.
                let most = self.words.get(own.as_str()).map_or(f32::INFINITY, |word| self.rarity(word));
                // `time zone` is `timezone` too.
                let joined = before.map(|before| (stem(&format!("{before}{own}")), 1.0, most));
                let mut stems = vec![(own.clone(), 1.0, most)];
                stems.extend(joined);
                let others = synonyms(&own).iter().cloned().chain(parts);
                stems.extend(others.map(|other| (other, SYNONYM, most)));
                terms.push(Term { stems });
                before = Some(own);
            }
        }
        terms
    }
}

/// One word of a query: its stem and others that stand for it, each with a factor and the most that its
/// rarity may count.
struct Term {
    stems: Vec<(String, f32, f32)>,
}

/// Segments by app, to be taken over.
#[derive(Clone, Default)]
pub struct Segments(BTreeMap<String, Arc<Segment>>);

impl Segment {
    fn new(tools: Vec<Arc<ToolDefinition>>, title: Option<String>) -> Self {
        let mut postings: HashMap<String, Vec<(u32, f32)>> = HashMap::new();
        for (at, tool) in (0_u32..).zip(&tools) {
            for (stem, count) in counts(tool, title.as_deref()) {
                postings.entry(stem).or_default().push((at, count / (count + K1)));
            }
        }
        let postings = postings.into_iter().map(|(stem, tools)| (stem.into(), tools.into())).collect();
        Self { tools, title, postings }
    }

    fn is_of(&self, tools: &[Arc<ToolDefinition>], title: Option<&str>) -> bool {
        let same = |(a, b): (&Arc<ToolDefinition>, &Arc<ToolDefinition>)| Arc::ptr_eq(a, b) || a == b;
        self.title.as_deref() == title && self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(same)
    }
}

/// The words of a tool, and how much each counts.
fn counts(tool: &ToolDefinition, title: Option<&str>) -> HashMap<String, f32> {
    let mut counts: HashMap<String, f32> = HashMap::new();
    let mut add = |texts: &[&str], field: Field| {
        let words: Vec<Word> = texts.iter().flat_map(|text| words(text)).collect();
        let long = words.len() as f32 / field.usual;
        let count = field.weight / (1.0 - field.slope + field.slope * long);
        for word in words {
            // `listGitHubIssues` has `github` in it.
            let pairs = word.parts.windows(2).filter(|_| word.parts.len() > 2).map(|pair| stem(&pair.concat()));
            for part in pairs.collect::<Vec<_>>().into_iter().chain(word.parts) {
                *counts.entry(part).or_default() += count;
            }
            *counts.entry(word.stem).or_default() += count;
        }
    };
    let description = truncate(tool.description.trim(), LONGEST_DESCRIPTION);
    let (summary, text) = description.split_at(summary(description));
    let mut parameters = Vec::new();
    if let Some(Value::Object(properties)) = tool.input_schema.get("properties") {
        for (name, schema) in properties {
            parameters.push(truncate(name, LONGEST_NAME));
            if let Some(text) = schema.get("description").and_then(Value::as_str) {
                parameters.push(truncate(text, LONGEST_PARAMETER));
            }
        }
    }
    add(&[truncate(&tool.name, LONGEST_NAME)], NAME);
    let tags = tool.title.as_deref().into_iter().chain(tool.tags.iter().map(String::as_str));
    let tags: Vec<&str> = tags.map(|text| truncate(text, LONGEST_NAME)).collect();
    add(&tags, TITLE);
    add(&[&tool.app, truncate(title.unwrap_or_default(), LONGEST_NAME)], APP);
    add(&[summary], SUMMARY);
    add(&[text], TEXT);
    add(&parameters, PARAMETER);
    counts
}

/// Where the first sentence ends.
fn summary(text: &str) -> usize {
    let most = truncate(text, LONGEST_SUMMARY).len();
    let sentence = text.find(". ").map_or(text.len(), |at| at + 1);
    let line = text.find('\n').unwrap_or(text.len());
    most.min(sentence).min(line)
}

#[cfg(test)]
mod tests;
