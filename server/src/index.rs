//! Search for tools by words: BM25 over names, descriptions and parameters.
//!
//! A score says how much of a query a tool answers (0 to 1): 1 is a tool that fits every word of it
//! as well as the best tool for that word does. Equal scores stand in the order of the names.

use crate::catalogue::Entry;
use bm25::{Embedder, EmbedderBuilder, Embedding, Scorer, Tokenizer};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How often a word counts by the place where it stands.
const NAME: usize = 8;
const TITLE: usize = 4;
const TEXT: usize = 2;
const PARAMETER: usize = 1;
/// How fast more of the same word stops to count: the usual 1.2, for words that count [`TEXT`] times.
const K1: f32 = 1.2 * TEXT as f32;
/// How much long descriptions count less.
const B: f32 = 0.6;
/// What a word of a query that no tool has takes from the score: little, as it says little.
const UNKNOWN: f32 = 1.5;
/// Texts are read up to here; some are books.
const LONGEST_DESCRIPTION: usize = 4_000;
const LONGEST_PARAMETER: usize = 200;

/// Words of all tools.
pub struct Index {
    embedder: Embedder<u64, Words>,
    scorer: Scorer<usize, u64>,
}

impl Index {
    /// Index `rows`; results refer to their places.
    #[must_use]
    pub fn new(rows: &[Arc<Entry>]) -> Self {
        let texts: Vec<String> = rows.iter().map(|row| text(row)).collect();
        let corpus: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embedder = EmbedderBuilder::with_tokenizer_and_fit_to_corpus(Words, &corpus).k1(K1).b(B).build();
        let mut scorer = Scorer::new();
        for (at, text) in corpus.iter().enumerate() {
            scorer.upsert(&at, embedder.embed(text));
        }
        Self { embedder, scorer }
    }

    /// Places of the tools that answer `query`, with scores; the best first.
    #[must_use]
    pub fn search(&self, query: &str) -> Vec<(usize, f64)> {
        let mut seen = HashSet::new();
        let mut scores: HashMap<usize, f32> = HashMap::new();
        let mut perfect = 0.0;
        for word in self.embedder.embed(query).0 {
            if !seen.insert(word.index) {
                continue;
            }
            let tools = self.scorer.matches(&Embedding(vec![word]));
            perfect += tools.first().map_or(UNKNOWN, |best| best.score);
            for tool in tools {
                *scores.entry(tool.id).or_default() += tool.score;
            }
        }
        let rounded = |score: f32| (f64::from(score / perfect).min(1.0) * 1e4).round() / 1e4;
        let mut found: Vec<(usize, f64)> = scores.into_iter().map(|(at, score)| (at, rounded(score))).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }
}

/// What is indexed of a tool: what counts more is there more often.
fn text(row: &Entry) -> String {
    let tool = &row.definition;
    let mut out = String::new();
    let mut add = |text: &str, times: usize| {
        for _ in 0..times {
            out.push_str(text);
            out.push(' ');
        }
    };
    add(&row.name, NAME);
    add(tool.title.as_deref().unwrap_or_default(), TITLE);
    tool.tags.iter().for_each(|tag| add(tag, TITLE));
    add(cut(&tool.description, LONGEST_DESCRIPTION), TEXT);
    if let Some(Value::Object(properties)) = tool.input_schema.get("properties") {
        for (name, schema) in properties {
            add(name, PARAMETER);
            if let Some(text) = schema.get("description").and_then(Value::as_str) {
                add(cut(text, LONGEST_PARAMETER), PARAMETER);
            }
        }
    }
    out
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
    "its", "me", "my", "of", "on", "or", "that", "the", "this", "to", "tool", "tools", "us", "use", "want", "what",
    "which", "who", "with", "you", "your",
];

/// The words of a text as they are indexed: without endings and without those that say nothing.
struct Words;

impl Tokenizer for Words {
    fn tokenize(&self, text: &str) -> Vec<String> {
        split(text).iter().filter(|word| !STOP.contains(&word.as_str())).map(|word| stem(word)).collect()
    }
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
    fn what_fits_every_word_best_fits_perfectly() {
        let scores = |query: &str| {
            let tools =
                [("users", "list", "", json!({})), ("users", "get", "", json!({})), ("mail", "send", "", json!({}))];
            let hits = catalogue(&tools, ToolFilter::default()).snapshot().index().search(query);
            hits.into_iter().map(|(_, score)| score).collect::<Vec<_>>()
        };
        assert_eq!(scores("list users")[0], 1.0);
        assert_eq!(scores("list list users"), scores("list users"), "a word counts once");
        let partial = scores("list users quux")[0];
        assert!(partial > 0.5 && partial < 1.0, "{partial}");
    }

    #[test]
    fn nothing_fits_nothing() {
        assert!(found("").is_empty() && found("the of").is_empty() && found("quux").is_empty());
    }

    #[test]
    fn words_of_names() {
        assert_eq!(Words.tokenize("getHTTPServer_v2.listItems"), ["get", "http", "server", "v2", "list", "item"]);
    }
}
