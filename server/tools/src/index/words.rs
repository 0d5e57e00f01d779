//! Splits texts into words, and stems them.

use bm25::Tokenizer;
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Stop words: they say nothing about a tool.
const STOP: &str = "\
    a about again already also am an and another any are as at be because been before being both but by can cannot could did do does \
    doing done each ever every for from had has have having he her here hers him his how i if in into is it its itself \
    just let like may me might mine more most must my myself need needs no nor not now of off on once only onto or our ours \
    out over own per please really same shall she should so some such than thanks that the their theirs them then there \
    these they this those through thus to too tool tools under until upon us use used using very want wants was we were what \
    when where whether which while who whom whose why will wish with within without would yes yet you your yours s t m re ve ll d";

static STOP_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| STOP.split_whitespace().collect());
static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// A word of a text: its stem, and the stems of its parts if it is a compound such as `listItems` or `GitHub`.
#[derive(Debug, PartialEq, Eq)]
pub struct Word {
    /// Its stem.
    pub stem: String,
    /// The stems of its parts; empty if it is not a compound.
    pub parts: Vec<String>,
}

impl From<String> for Word {
    /// Creates a word that is not a compound.
    fn from(stem: String) -> Self {
        Self { stem, parts: Vec::new() }
    }
}

/// Returns the words of a text, in order, without stop words.
pub fn words(text: &str) -> Vec<Word> {
    let plain = |parts: &[String]| match parts {
        [one] if STOP_WORDS.contains(one.as_str()) => None,
        [one] => Some(Word::from(stem(one))),
        several => Some(Word {
            stem: stem(&several.concat()),
            parts: several.iter().filter(|part| !STOP_WORDS.contains(part.as_str())).map(|part| stem(part)).collect(),
        }),
    };
    tokens(text).iter().filter_map(|parts| plain(parts)).collect()
}

/// Tokenizes a text for the index: the stems of its words, and of compounds also those of their parts and of pairs of
/// neighbouring parts, so that `listGitHubIssues` contains `github`.
#[derive(Default)]
pub struct Stems;

impl Tokenizer for Stems {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut stems = Vec::new();
        for word in words(text) {
            if word.parts.len() > 2 {
                stems.extend(word.parts.windows(2).map(|pair| stem(&pair.concat())));
            }
            stems.extend(word.parts);
            stems.push(word.stem);
        }
        stems
    }
}

/// Returns the stem of a word in lower case: `users`, `listing` and `created` become `user`, `list` and `creat`.
pub fn stem(word: &str) -> String {
    STEMMER.stem(word).into_owned()
}

/// Splits a text at case and separators into words in lower case. In scripts without spaces, each character is a word.
#[must_use]
pub fn split(text: &str) -> Vec<String> {
    tokens(text).into_iter().flatten().collect()
}

/// Returns the texts between separators, each with its parts.
fn tokens(text: &str) -> Vec<Vec<String>> {
    let mut tokens = Vec::new();
    let mut token: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut before: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let alone = is_ideograph(c);
        let hump = c.is_uppercase()
            && before.is_some_and(|before| {
                let after = chars.peek();
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if (hump || alone || !c.is_alphanumeric()) && !part.is_empty() {
            token.push(std::mem::take(&mut part));
        }
        if (alone || !c.is_alphanumeric()) && !token.is_empty() {
            tokens.push(std::mem::take(&mut token));
        }
        if alone {
            tokens.push(vec![c.to_string()]);
        } else if c.is_alphanumeric() {
            part.extend(c.to_lowercase());
        }
        before = (c.is_alphanumeric() && !alone).then_some(c);
    }
    if !part.is_empty() {
        token.push(part);
    }
    if !token.is_empty() {
        tokens.push(token);
    }
    tokens
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_case_and_separators() {
        assert_eq!(split("getHTTPServer_v2.listItems"), ["get", "http", "server", "v2", "list", "items"]);
        assert_eq!(split("atlas-list-db-users"), ["atlas", "list", "db", "users"]);
        assert_eq!(split("天気を v2"), ["天", "気", "を", "v2"]);
        assert!(split(" -- ").is_empty());
    }

    #[test]
    fn what_is_written_in_several_parts_is_a_word_too() {
        let word = |stem: &str, parts: &[&str]| Word {
            stem: stem.to_owned(),
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        };
        assert_eq!(words("GitHub github"), [word("github", &["git", "hub"]), word("github", &[])]);
        assert_eq!(words("listUsers"), [word("listus", &["list", "user"])]);
    }

    #[test]
    fn stems_and_words_that_say_nothing() {
        let stems = |text: &str| words(text).into_iter().map(|word| word.stem).collect::<Vec<_>>();
        assert_eq!(stems("Listing the users"), stems("list user"));
        assert_eq!(stems("what was created by me"), stems("create"));
        assert!(stems("I'd like to, please, don't you?").iter().all(|stem| stem == "don"), "{:?}", stems("don't"));
    }
}
