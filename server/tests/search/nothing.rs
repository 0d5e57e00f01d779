//! How often the search says rightly, and how often wrongly, that nothing fits a query.

use super::{Query, lists, page, queries, read, root};
use codecall::Config;
use codecall::catalogue::Snapshot;
use codecall::config::SearchConfig;
use codecall::index::split;
use codecall::search::Engine;
use codecall::store::Stores;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;

/// Number of catalogues of each size between one server and all.
const SAMPLES: usize = 10;

fn files() -> Vec<Value> {
    lists::files(&root().join("server/tests/search/tools"))
}

/// Returns catalogues of `most` tools, each of other servers.
fn samples(most: usize) -> Vec<Arc<Snapshot>> {
    let files = files();
    let sample = |number: usize| {
        // Their number is prime, so each order has all.
        let order = (0..files.len()).map(|at| files[(2 * number + at * (number + 3)) % files.len()].clone());
        lists::catalogue(&order.collect::<Vec<_>>(), most).snapshot()
    };
    (0..SAMPLES).map(sample).collect()
}

/// Returns catalogues of one server each.
fn servers() -> Vec<Arc<Snapshot>> {
    let size = |file: &Value| file["tools"].as_array().map_or(0, Vec::len);
    files().iter().map(|file| lists::catalogue(std::slice::from_ref(file), size(file)).snapshot()).collect()
}

/// A query, and the answer to it.
struct Judged<'a> {
    query: &'a Query,
    /// Whether any tool has one of its words.
    hit: bool,
    fits: bool,
    /// Whether a tool that answers it is among the first five.
    found: bool,
}

async fn judge<'a>(snapshot: &Arc<Snapshot>, queries: impl Iterator<Item = &'a Query>) -> Vec<Judged<'a>> {
    let config = Config::default();
    let engine = Engine::open(&SearchConfig::default(), &Stores::in_memory(&config)).expect("an engine");
    let queries: Vec<&Query> = queries.collect();
    let texts: Vec<String> = queries.iter().map(|query| query.text.clone()).collect();
    let found = engine.search(snapshot, &texts).await;
    let judged = queries.into_iter().zip(&found.hits).enumerate().map(|(number, (query, hits))| Judged {
        query,
        hit: !hits.is_empty(),
        fits: found.fits.any(number, hits),
        found: hits.iter().take(5).any(|(at, _)| query.wanted.contains(&snapshot.rows()[*at].name)),
    });
    judged.collect()
}

/// Shares of queries.
struct Shares {
    /// Of those that no tool answers: no tool has one of their words.
    right_without_hit: f64,
    /// Of those that no tool answers: the search says that nothing fits.
    right: f64,
    /// Of those that some tool answers: no tool has one of their words.
    wrong_without_hit: f64,
    /// Of those that some tool answers: the search says that nothing fits.
    wrong: f64,
    /// Of those that have such a tool among the first five hits: the search says that nothing fits.
    lost: f64,
}

impl Shares {
    /// Measures the queries that a filter selects.
    fn new(judged: &[Judged<'_>], of: impl Fn(&Query) -> bool) -> Self {
        let share = |among: &dyn Fn(&Judged<'_>) -> bool, what: &dyn Fn(&Judged<'_>) -> bool| {
            let all: Vec<&Judged<'_>> = judged.iter().filter(|judged| of(judged.query) && among(judged)).collect();
            all.iter().filter(|judged| what(judged)).count() as f64 / all.len().max(1) as f64
        };
        let (bad, good) = (
            |judged: &Judged<'_>| judged.query.wanted.is_empty(),
            |judged: &Judged<'_>| !judged.query.wanted.is_empty(),
        );
        let (missed, unfit) = (|judged: &Judged<'_>| !judged.hit, |judged: &Judged<'_>| !judged.fits);
        Self {
            right_without_hit: share(&bad, &missed),
            right: share(&bad, &unfit),
            wrong_without_hit: share(&good, &missed),
            wrong: share(&good, &unfit),
            lost: share(&|judged| judged.found, &unfit),
        }
    }

    fn row(&self) -> String {
        let Self { right_without_hit, right, wrong_without_hit, wrong, lost } = self;
        format!("{right_without_hit:.3} | {right:.3} | {wrong_without_hit:.3} | {wrong:.3} | {lost:.3}")
    }
}

#[tokio::test]
async fn nothing_fits() {
    let (queries, nothing) = (queries(), read("nothing.txt"));
    assert!(nothing.len() >= 240, "{} queries", nothing.len());
    let all = files().iter().filter_map(|file| file["tools"].as_array()).map(Vec::len).sum();
    let mut table = "| tools | nothing fits: no hit | said | a tool fits: no hit | nothing said | among the first five: nothing said |\n\
                     |---|---:|---:|---:|---:|---:|"
        .to_owned();
    // The least share of the first column, and the greatest ones of the others, on all queries.
    for (name, catalogues, right, wrong, lost) in [
        ("all 291", vec![lists::catalogue(&files(), all).snapshot()], 0.37, 0.005, 0.003),
        ("60", samples(60), 0.53, 0.02, 0.005),
        ("12", samples(12), 0.72, 0.045, 0.015),
        ("those of one server", servers(), 0.75, 0.02, 0.005),
    ] {
        let mut judged = Vec::new();
        for snapshot in catalogues {
            let has =
                |query: &&Query| query.wanted.iter().any(|name| snapshot.rows().iter().any(|row| row.name == *name));
            judged.extend(judge(&snapshot, queries.iter().filter(has).chain(&nothing)).await);
        }
        for half in [false, true] {
            let shares = Shares::new(&judged, |query| query.held_out == half);
            let half = if half { ", held out" } else { "" };
            write!(table, "\n| {name}{half} | {} |", shares.row()).expect("a string can be written");
        }
        if std::env::var_os("RANKS").is_some() {
            use std::io::Write as _;
            for Judged { query, fits, found, .. } in judged.iter().filter(|judged| !judged.query.held_out) {
                if *fits == query.wanted.is_empty() {
                    let _ = writeln!(std::io::stderr(), "{name}: {} fits: {fits}, found: {found}", query.text);
                }
            }
        }
        let shares = Shares::new(&judged, |_| true);
        let good = shares.right >= right && shares.wrong <= wrong && shares.lost <= lost;
        assert!(good, "{name}: less than {right}, or more than {wrong} or {lost}\n{table}");
    }
    page("nothing", &table, true);
}

/// A tool fits its name, the words of its name, and the first sentence of its description.
#[tokio::test]
async fn a_tool_fits_its_name() {
    let all = files().iter().filter_map(|file| file["tools"].as_array()).map(Vec::len).sum();
    let mut catalogues = servers();
    catalogues.push(lists::catalogue(&files(), all).snapshot());
    for snapshot in catalogues {
        let query = |text: &str, name: &str| Query {
            kind: String::new(),
            text: text.to_owned(),
            wanted: vec![name.to_owned()],
            held_out: false,
        };
        let of_row = |row: &codecall::catalogue::Entry| {
            let tool = &row.definition;
            let sentence = tool.description.trim().split(['\n', '.']).next().unwrap_or_default();
            let texts = [tool.name.clone(), split(&tool.name).join(" "), sentence.to_owned(), row.name.clone()];
            texts.into_iter().filter(|text| !text.is_empty()).map(|text| query(&text, &row.name)).collect::<Vec<_>>()
        };
        let queries: Vec<Query> = snapshot.rows().iter().flat_map(|row| of_row(row)).collect();
        for Judged { query, fits, .. } in judge(&snapshot, queries.iter()).await {
            assert!(fits, "'{}' of {} in {} tools", query.text, query.wanted[0], snapshot.rows().len());
        }
    }
}
