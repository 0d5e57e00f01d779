//! Joins several lists of the same tools.
//!
//! Lists of several queries are joined by reciprocal rank fusion: scores of different queries cannot be compared. Hits
//! of one query by words and by meaning are joined by their scores, which finds more than ranks do
//! (docs/reports/search.md).

use crate::index::Hit;
use std::collections::BTreeMap;

/// The constant of the method: the larger it is, the less the first ranks stand out.
const FLATNESS: f64 = 60.0;

/// The weight of the score by meaning, that of the score by words is the rest: the best one for queries that are not held out.
#[cfg(any(test, feature = "embeddings"))]
const MEANING: f64 = 0.65;

/// Joins what a query finds by words and by meaning, the best tool first: the convex combination of both scores. A tool that
/// no word finds needs a score of `threshold` by meaning.
#[cfg(any(test, feature = "embeddings"))]
pub fn combine(words: Vec<Hit>, meaning: Vec<Hit>, threshold: f64) -> Vec<Hit> {
    let mut sums: BTreeMap<usize, f64> = words.into_iter().map(|(at, score)| (at, (1.0 - MEANING) * score)).collect();
    for (at, score) in meaning {
        match sums.get_mut(&at) {
            Some(sum) => *sum += MEANING * score,
            None if score >= threshold => drop(sums.insert(at, MEANING * score)),
            None => {}
        }
    }
    let mut hits: Vec<Hit> = sums.into_iter().map(|(at, sum)| (at, (sum * 1e4).round() / 1e4)).collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits
}

/// Joins `lists`, each sorted by score, to one list, the best tool first, equal ones in the order of the rows. A single
/// list stays as it is. Otherwise the first tool gets the best of all scores, and the others their share of it.
#[must_use]
pub fn fuse(mut lists: Vec<Vec<Hit>>) -> Vec<Hit> {
    lists.retain(|list| !list.is_empty());
    if lists.len() < 2 {
        return lists.pop().unwrap_or_default();
    }
    let best = lists.iter().filter_map(|list| list.first()).map(|(_, score)| *score).fold(0.0, f64::max);
    let mut fused: BTreeMap<usize, f64> = BTreeMap::new();
    for list in &lists {
        let mut rank = 0;
        for (place, (at, score)) in list.iter().enumerate() {
            // Equal scores share a rank: their order means nothing.
            if place > 0 && list[place - 1].1 != *score {
                rank = place;
            }
            *fused.entry(*at).or_default() += 1.0 / (FLATNESS + 1.0 + rank as f64);
        }
    }
    let most = fused.values().copied().fold(0.0, f64::max);
    let mut hits: Vec<Hit> = fused.into_iter().map(|(at, sum)| (at, (sum / most * best * 1e4).round() / 1e4)).collect();
    hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    hits
}

/// Joins the results of several queries: the best tools of each query come first, then the second ones, and so on. Among
/// tools of the same rank, the order is that of [`fuse`]. So no need of a client is displaced by tools that fit all of them
/// a little. The score of a tool is its best one, but not more than that of the tool before it.
#[must_use]
pub fn interleave(mut lists: Vec<Vec<Hit>>) -> Vec<Hit> {
    lists.retain(|list| !list.is_empty());
    if lists.len() < 2 {
        return lists.pop().unwrap_or_default();
    }
    let mut best: BTreeMap<usize, (usize, f64)> = BTreeMap::new();
    for list in &lists {
        for (rank, (at, score)) in list.iter().enumerate() {
            let (first, highest) = best.entry(*at).or_insert((rank, *score));
            (*first, *highest) = ((*first).min(rank), highest.max(*score));
        }
    }
    let mut hits = fuse(lists);
    hits.sort_by_key(|(at, _)| best[at].0);
    let mut before = 1.0;
    for (at, score) in &mut hits {
        *score = best[at].1.min(before);
        before = *score;
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_query_gets_its_best_tools() {
        // 9 is good enough for all three, and the best for none.
        let lists = [vec![(1, 0.9), (9, 0.8)], vec![(2, 0.7), (9, 0.6), (3, 0.5)], vec![(4, 0.95), (9, 0.2)]];
        let hits = interleave(lists.to_vec());
        let order: Vec<usize> = hits.iter().map(|(at, _)| *at).collect();
        assert_eq!(order, [1, 2, 4, 9, 3]);
        assert_eq!(hits.iter().map(|(_, score)| *score).collect::<Vec<_>>(), [0.9, 0.7, 0.7, 0.7, 0.5]);
        assert_eq!(interleave(vec![vec![(1, 0.9)], vec![]]), [(1, 0.9)]);
    }

    #[test]
    fn words_and_meaning_count_by_their_scores() {
        let hits = combine(vec![(1, 1.0), (2, 0.8)], vec![(3, 0.6), (2, 0.1), (4, 0.1)], 0.2);
        assert_eq!(hits, [(3, 0.39), (1, 0.35), (2, 0.345)]);
        assert_eq!(
            combine(vec![(2, 1.0), (1, 1.0)], Vec::new(), 0.0),
            [(1, 0.35), (2, 0.35)],
            "in the order of the rows"
        );
    }

    fn order(lists: &[&[Hit]]) -> Vec<usize> {
        fuse(lists.iter().map(|list| list.to_vec()).collect()).into_iter().map(|(at, _)| at).collect()
    }

    #[test]
    fn what_is_high_in_several_lists_is_first() {
        assert_eq!(order(&[&[(1, 0.9), (2, 0.8)], &[(3, 0.3), (2, 0.2)]]), [2, 1, 3]);
        assert_eq!(order(&[&[(5, 0.2)], &[(4, 0.9)]]), [4, 5], "equal places in the order of the rows");
        assert_eq!(order(&[&[(1, 0.5), (2, 0.5)], &[(2, 0.5), (3, 0.5)]]), [2, 1, 3], "equal scores share a place");
    }

    #[test]
    fn scores() {
        let hits = fuse(vec![vec![(1, 0.9), (2, 0.1)], vec![(2, 0.4)]]);
        assert_eq!(hits[0], (2, 0.9));
        assert!(hits[1].1 > 0.0 && hits[1].1 < 0.9, "{hits:?}");
        let alone = vec![(1, 0.9), (2, 0.1)];
        assert_eq!(fuse(vec![Vec::new(), alone.clone()]), alone);
        assert!(fuse(vec![Vec::new(), Vec::new()]).is_empty());
    }
}
