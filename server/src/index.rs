//! Search for tools by words: BM25 over names, descriptions and parameters.
//!
//! Scores say how much of a query a tool answers (0 to 1), so that they can be compared between
//! queries; equal scores stand in the order of the names.

use crate::catalogue::Entry;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How fast more of the same word stops to count.
const K1: f64 = 1.2;
/// How much long descriptions count less.
const B: f64 = 0.6;
/// Weight of a word by the place where it stands.
const NAME: f64 = 4.0;
const TITLE: f64 = 2.0;
const TEXT: f64 = 1.0;
const PARAMETER: f64 = 0.5;
/// Descriptions are read up to here; some are books.
const LONGEST_DESCRIPTION: usize = 4_000;

/// Words of all tools.
pub struct Index {
    /// For each word the tools that hold it, with weight.
    postings: HashMap<String, Vec<(usize, f64)>>,
    /// Weight of all words of a tool.
    lengths: Vec<f64>,
    average: f64,
}

impl Index {
    /// Index `rows`; results refer to their places.
    #[must_use]
    pub fn new(rows: &[Arc<Entry>]) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::with_capacity(rows.len());
        for (at, row) in rows.iter().enumerate() {
            let weights = weights(row);
            lengths.push(weights.values().sum());
            for (word, weight) in weights {
                postings.entry(word).or_default().push((at, weight));
            }
        }
        let average = lengths.iter().sum::<f64>() / (lengths.len().max(1) as f64);
        Self { postings, lengths, average }
    }

    /// Places of the tools that answer `query`, with scores; the best first.
    #[must_use]
    pub fn search(&self, query: &str) -> Vec<(usize, f64)> {
        let mut seen = HashSet::new();
        let words: Vec<String> = words(query).into_iter().filter(|word| seen.insert(word.clone())).collect();
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let mut best = 0.0;
        for word in &words {
            let Some(postings) = self.postings.get(word) else {
                // A word that no tool has says little: half of what a common one would.
                best += 0.5;
                continue;
            };
            let rarity = self.rarity(postings.len());
            best += rarity;
            for &(at, weight) in postings {
                let norm = K1 * (1.0 - B + B * self.lengths[at] / self.average.max(f64::MIN_POSITIVE));
                *scores.entry(at).or_default() += rarity * weight / (weight + norm);
            }
        }
        let mut found: Vec<(usize, f64)> =
            scores.into_iter().map(|(at, score)| (at, ((score / best) * 1e4).round() / 1e4)).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }

    fn rarity(&self, holders: usize) -> f64 {
        let (all, holders) = (self.lengths.len() as f64, holders as f64);
        (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
    }
}

fn weights(row: &Entry) -> HashMap<String, f64> {
    let tool = &row.definition;
    let mut weights: HashMap<String, f64> = HashMap::new();
    let mut add = |text: &str, weight: f64| {
        for word in words(text) {
            *weights.entry(word).or_default() += weight;
        }
    };
    add(&row.name, NAME);
    add(tool.title.as_deref().unwrap_or_default(), TITLE);
    add(cut(&tool.description, LONGEST_DESCRIPTION), TEXT);
    tool.tags.iter().for_each(|tag| add(tag, TITLE));
    if let Some(Value::Object(properties)) = tool.input_schema.get("properties") {
        for (name, schema) in properties {
            add(name, PARAMETER);
            if let Some(text) = schema.get("description").and_then(Value::as_str) {
                add(cut(text, 200), PARAMETER / 2.0);
            }
        }
    }
    weights
}

/// The beginning of `text`, at most `most` bytes.
#[must_use]
pub fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Words that say nothing about a tool.
const STOP: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "into", "is", "it",
    "its", "me", "my", "of", "on", "or", "that", "the", "this", "to", "tool", "tools", "us", "use", "want", "with",
    "you", "your",
];

/// The words of a text as they are indexed: without endings and without those that say nothing.
fn words(text: &str) -> Vec<String> {
    split(text).iter().filter(|word| !STOP.contains(&word.as_str())).map(|word| stem(word)).collect()
}

/// The words of a text in lower case, split at case and separators. Scripts that write no spaces
/// give one word a character.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    let chars: Vec<char> = text.chars().collect();
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            end(&mut word);
            continue;
        }
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1);
        let hump = c.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase() || b.is_numeric() || (b.is_uppercase() && after.is_some_and(|a| a.is_lowercase()))
            });
        if hump || is_ideograph(c) {
            end(&mut word);
        }
        word.extend(c.to_lowercase());
        if is_ideograph(c) {
            end(&mut word);
        }
    }
    end(&mut word);
    words
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{323af}')
}

/// A word without the commonest English endings: enough that `users`, `listing` and `created` find
/// `user`, `list` and `create`.
fn stem(word: &str) -> String {
    let cut =
        |ending: &str, least: usize| word.strip_suffix(ending).filter(|stem| stem.len() >= least && stem.is_ascii());
    if let Some(stem) = cut("ies", 2) {
        return format!("{stem}y");
    }
    let stem = cut("ing", 4)
        .or_else(|| cut("ed", 4))
        .or_else(|| if word.ends_with("ss") { None } else { cut("s", 3) })
        .unwrap_or(word);
    stem.strip_suffix('e').filter(|stem| stem.len() >= 4).unwrap_or(stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ToolFilter, tests::catalogue};
    use serde_json::json;

    fn found(query: &str) -> Vec<String> {
        let schema = || json!({"type": "object", "properties": {"userId": {"type": "string", "description": "whose"}}});
        let catalogue = catalogue(
            &[
                ("users", "list", "List all users with pagination", schema()),
                ("users", "getProfile", "Get user profile by ID with full details", schema()),
                ("mail", "send_message", "Send an e-mail to someone", json!({})),
                ("b", "twin", "Same words", json!({})),
                ("a", "twin", "Same words", json!({})),
                ("wetter", "holen", "天気を取得", json!({})),
            ],
            ToolFilter::default(),
        );
        let snapshot = catalogue.snapshot();
        let hits = snapshot.index().search(query);
        assert!(hits.iter().all(|(_, score)| *score > 0.0 && *score <= 1.0), "{hits:?}");
        hits.into_iter().map(|(at, _)| snapshot.rows()[at].name.clone()).collect()
    }

    #[test]
    fn the_best_first() {
        assert_eq!(found("get user profile information")[0], "users:getProfile");
        assert_eq!(found("listing users")[0], "users:list");
        assert_eq!(found("Sending messages"), ["mail:send_message"]);
        assert_eq!(found("天気"), ["wetter:holen"]);
    }

    #[test]
    fn equal_scores_in_the_order_of_names() {
        assert_eq!(found("same words"), ["a:twin", "b:twin"]);
    }

    #[test]
    fn nothing_fits_nothing() {
        assert!(found("").is_empty() && found("the of").is_empty() && found("quux").is_empty());
    }

    #[test]
    fn words_of_names() {
        assert_eq!(words("getHTTPServer_v2.listItems"), ["get", "http", "server", "v2", "list", "item"]);
    }
}
