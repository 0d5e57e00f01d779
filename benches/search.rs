//! Searching for tools by words, in catalogues of real tools.

#[path = "../server/tests/search/lists.rs"]
mod lists;

use codecall::index::{Index, Segments};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;

fn queries(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("queries.txt")).expect("a file");
    text.lines().filter_map(|line| Some(line.split_once(" => ")?.0.to_owned())).collect()
}

fn search(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/search");
    let (files, queries) = (lists::files(&folder.join("tools")), queries(&folder));
    for tools in [600, 10_000] {
        let snapshot = lists::catalogue(&files, tools).snapshot();
        let index = snapshot.index();
        let mut next = queries.iter().cycle();
        // Each turn another query, so that the mean is that of all of them.
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

criterion_group! {
    name = group;
    config = Criterion::default().sample_size(20);
    targets = search
}
criterion_main!(group);
