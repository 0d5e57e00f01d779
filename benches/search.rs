//! Benchmarks the search by words, and lists of signatures, in catalogues of real tools.

#[path = "../server/tests/search/lists.rs"]
mod lists;

use codecall::index::{Index, Segments};
use codecall::result_shapes::ResultShapes;
use codecall::signatures::{Extent, SignatureList};
use codecall::store::MemoryShapes;
use cpu_time::ThreadTime;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Number of rounds over all queries for the percentiles.
const ROUNDS: usize = 40;

fn queries(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("queries.txt")).expect("a file");
    text.lines().filter_map(|line| Some(line.split_once(" => ")?.0.to_owned())).collect()
}

/// Returns percentiles of the CPU time of single searches.
fn percentiles(index: &Index, queries: &[String]) -> [f64; 3] {
    let mut took: Vec<f64> = Vec::with_capacity(ROUNDS * queries.len());
    for query in (0..ROUNDS).flat_map(|_| queries) {
        let began = ThreadTime::now();
        black_box(index.search(black_box(query)));
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    [0.5, 0.99, 1.0].map(|share| took[((took.len() - 1) as f64 * share) as usize])
}

fn search(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/search");
    let (files, queries) = (lists::files(&folder.join("tools")), queries(&folder));
    for tools in [600, 10_000] {
        let snapshot = lists::catalogue(&files, tools).snapshot();
        let index = snapshot.index();
        let [median, most, longest] = percentiles(index, &queries);
        let line = format!("{tools} tools: median {median:.3} ms, p99 {most:.3} ms, longest {longest:.3} ms");
        let _ = writeln!(std::io::stdout(), "{line} of processor time");
        let mut next = queries.iter().cycle();
        // Each iteration has another query, so the mean is that of all queries.
        criterion.bench_function(&format!("search/{tools} tools"), |bencher| {
            bencher.iter(|| index.search(black_box(next.next().map_or("", String::as_str))));
        });
        let before = index.segments();
        criterion.bench_function(&format!("index again/{tools} tools"), |bencher| {
            bencher.iter(|| Index::new(black_box(snapshot.rows()), &before));
        });
        criterion.bench_function(&format!("index/{tools} tools"), |bencher| {
            bencher.iter(|| Index::new(black_box(snapshot.rows()), &Segments::default()));
        });
    }
}

/// The list of signatures at the first start, when no line has been made.
fn signatures(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/search");
    let files = lists::files(&folder.join("tools"));
    let seen = ResultShapes::new(Arc::new(MemoryShapes::default()), false);
    for (tools, extent) in [(300, Extent::Auto), (3_000, Extent::Auto), (3_000, Extent::Tokens(100_000))] {
        criterion.bench_function(&format!("signatures/{tools} tools, {extent:?}"), |bencher| {
            bencher.iter_batched(
                || lists::catalogue(&files, tools).snapshot(),
                |snapshot| SignatureList::new(snapshot.rows(), &seen, &[], extent),
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group! {
    name = group;
    config = Criterion::default().sample_size(20);
    targets = search, signatures
}
criterion_main!(group);
