//! Benchmarks AgentScript with data of growing size. The throughput should stay the same.

#[path = "common/setting.rs"]
mod setting;

use codecall_benches::cases::growth::{families, sequence};
use codecall_benches::cases::steps::SHAPES;
use codecall_benches::peers::{Peer as _, agentscript::AgentScript};
use codecall_benches::tables::steps::SIZES;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use setting::group;

fn growth(criterion: &mut Criterion) {
    let mut ours = AgentScript::new();
    for family in families() {
        let mut group = group(criterion, format!("growth/{}", family.name));
        for (size, case) in family.sizes.iter().zip(&family.cases) {
            group.throughput(Throughput::Elements(*size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter_custom(|times| {
                    ours.round(case, u32::try_from(times).unwrap_or(u32::MAX)).expect("the case succeeds").time
                });
            });
        }
        group.finish();
    }
    let mut group = group(criterion, "growth/runs".into());
    for size in [10, 100, 1_000, 10_000] {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|times| {
                (0..times).map(|_| ours.time_concurrent(&sequence(1), size).expect("the case succeeds")).sum()
            });
        });
    }
    group.finish();
}

/// Benchmarks steps that replay this number of calls.
fn steps(criterion: &mut Criterion) {
    for (shape, begin) in SHAPES {
        let mut group = group(criterion, format!("growth/steps, {shape}"));
        for calls in SIZES {
            let middle = begin(calls).expect("the case succeeds");
            group.throughput(Throughput::Elements(calls as u64));
            group.bench_function(BenchmarkId::from_parameter(calls), |bencher| {
                bencher.iter(|| middle.step().expect("it has just succeeded"));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, growth, steps);
criterion_main!(benches);
