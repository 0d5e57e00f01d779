//! Benchmarks programs that compute for some milliseconds, on all engines.

mod common;

use criterion::{Criterion, criterion_group, criterion_main};

fn kernels(criterion: &mut Criterion) {
    common::bench(criterion, "kernels", &codecall_benches::cases::kernels());
}

criterion_group!(benches, kernels);
criterion_main!(benches);
