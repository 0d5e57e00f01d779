//! How time grows with what is given: only ours. The figure to look at is the throughput, which stays.

#[path = "common/setting.rs"]
mod setting;

use codecall_benches::cases::growth::{families, sequence};
use codecall_benches::peers::{Peer as _, agentscript::AgentScript};
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
                (0..times).map(|_| ours.at_once(&sequence(1), size).expect("the case succeeds")).sum()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, growth);
criterion_main!(benches);
