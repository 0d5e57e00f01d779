//! One fresh run, compile included, beside QuickJS-ng.

use codecall_benches::{cases, ours, quickjs};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

fn fresh(criterion: &mut Criterion) {
    for case in cases() {
        // A wrong answer is no result.
        assert_eq!(ours(&case), quickjs(&case), "{}", case.name);
        let mut group = criterion.benchmark_group(case.name);
        group.bench_function("agentscript", |bencher| bencher.iter(|| ours(black_box(&case))));
        group.bench_function("quickjs-ng (rquickjs)", |bencher| bencher.iter(|| quickjs(black_box(&case))));
        group.finish();
    }
}

criterion_group!(benches, fresh);
criterion_main!(benches);
