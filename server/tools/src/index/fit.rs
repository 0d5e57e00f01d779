//! Judges whether the tools that a query finds fit it, or only share a word with it.
//!
//! A score cannot say that: it is relative to the best tool for each word, and words that no tool has count for little. So the
//! judgement looks at the presence of a query's words in a tool: their weights by field, before rarity. A word that is
//! only in the name has a presence of about 0.6, in the first sentence of a description 0.45. In a parameter's name it
//! has 0.17, in the rest of a description of usual length 0.07. A synonym has half of that. Presence depends on the
//! tool
//! alone, so one bound serves
//! catalogues of all sizes.
//!
//! General words such as `create` are part of so many names that they say nothing about the matter of a query. They
//! count only in a query that has no other words.

use super::Hit;
use super::words::{stem, words};
use std::collections::HashSet;
use std::sync::LazyLock;

/// The least presence in a tool that fits: the name of a parameter reaches it, one word in the rest of a description does not.
/// Of the queries that are not held out, 0.2 recognizes 0.47 of those that nothing fits in 291 tools, instead of 0.40, but
/// wrongly refuses more than twice as many of the others in catalogues of 12 (docs/reports/search.md).
const PRESENCE: f32 = 0.1;
/// Number of tools, the best ones by score, of which one must fit. The best one alone often matches a general word:
/// then three times as many queries are wrongly refused in the tools of one server.
const JUDGED: usize = 3;

/// Verbs that apply to anything. Verbs whose objects are often texts or names of the user are missing (`search`, `read`,
/// `run`): there, the verb alone says what the query needs.
const GENERAL: &str = "\
    get show give list create add new make delete remove update change edit set put send post take start stop";
/// Words for anything. They count where a tool has them, and say nothing where none has.
const VAGUE: &str = "all available something anything everything thing stuff";

static GENERAL_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| GENERAL.split_whitespace().map(stem).collect());
static VAGUE_STEMS: LazyLock<HashSet<String>> = LazyLock::new(|| VAGUE.split_whitespace().map(stem).collect());

/// Whether a stem is one of a verb that applies to anything.
pub fn is_general(stem: &str) -> bool {
    GENERAL_STEMS.contains(stem)
}

/// Whether one of the stems of a query says what it is about: neither a general or vague word, nor a literal.
pub fn has_matter<'s>(query: &str, mut stems: impl Iterator<Item = &'s str>) -> bool {
    let literals = literals(query);
    stems.any(|stem| !is_general(stem) && !VAGUE_STEMS.contains(stem) && !literals.contains(stem))
}

/// Returns the stems of literals: numbers, addresses, paths, names of files. That no tool has them says nothing.
fn literals(query: &str) -> HashSet<String> {
    let is_literal = |text: &&str| {
        let text = text.trim_matches(|c: char| !c.is_alphanumeric());
        text.contains(|c: char| c.is_numeric() || ['.', '/', '\\', '@', ':'].contains(&c))
    };
    let stems = query.split_whitespace().filter(is_literal).flat_map(words);
    stems.flat_map(|word| word.parts.into_iter().chain([word.stem])).collect()
}

/// The tools that fit a query.
#[derive(Debug, Default)]
pub struct Fit {
    /// Their rows, sorted.
    rows: Vec<usize>,
}

impl Fit {
    /// Creates the judgement of the presence of a query's words, by row.
    pub(super) fn new(presence: impl Iterator<Item = f32>) -> Self {
        let fitting = presence.enumerate().filter(|(_, presence)| *presence >= PRESENCE);
        Self { rows: fitting.map(|(row, _)| row).collect() }
    }

    /// Whether one of the best of `hits`, the best first, fits the query that has found them.
    #[must_use]
    pub fn any(&self, hits: &[Hit]) -> bool {
        hits.iter().take(JUDGED).any(|(row, _)| self.rows.binary_search(row).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_digits_or_are_addresses_or_paths() {
        let of = |query: &str| {
            let mut stems: Vec<String> = literals(query).into_iter().collect();
            stems.sort();
            stems.join(" ")
        };
        assert_eq!(of("Delete ticket 42, please."), "42");
        assert_eq!(of("send https://example.org/a to \"Ann@example.org\"!"), "ann exampl https org");
        assert_eq!(of(r"show notes.txt and C:\temp"), "c note temp txt");
        assert_eq!(of("create a poll - now: tea/coffee?"), "coffe tea", "no harm: a literal is still searched");
    }

    #[test]
    fn one_of_the_best_must_fit() {
        let fit = Fit::new([0.0, 0.5, 0.09, 0.1, 0.0].into_iter());
        let any = |rows: &[usize]| fit.any(&rows.iter().map(|row| (*row, 0.5)).collect::<Vec<_>>());
        assert!(any(&[1]) && any(&[0, 2, 3]));
        assert!(!any(&[]) && !any(&[0, 2, 4, 1]));
        assert!(!Fit::default().any(&[(0, 1.0)]));
    }
}
