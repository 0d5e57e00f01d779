//! Benchmarks fresh runs of all engines, from the source text to the result.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn fresh(criterion: &mut Criterion) {
    common::bench(criterion, "fresh", &codecall_benches::cases::fresh());
}

criterion_group!(benches, fresh);
criterion_main!(benches);
