//! Parts of fresh runs of AgentScript, and JSON conversions of all engines, as in the tables `parts` and `convert`. The time
//! of a conversion is the difference between runs with and without the data.

mod common;

use codecall_benches::cases::fresh;
use codecall_benches::peers::agentscript::AgentScript;
use codecall_benches::tables::parts::{BATCH, PARTS, conversions, laps};
use criterion::{Criterion, criterion_group, criterion_main};
use std::time::Duration;

fn parts(criterion: &mut Criterion) {
    let ours = AgentScript::new();
    for case in fresh() {
        let mut group = common::setting::group(criterion, format!("parts/{}", case.name));
        for (part, name) in PARTS.into_iter().enumerate() {
            group.bench_function(name, |bencher| bencher.iter_custom(|times| measure_part(&ours, &case, part, times)));
        }
        group.finish();
    }
}

/// Measures a part of this number of runs.
fn measure_part(ours: &AgentScript, case: &codecall_benches::cases::Case, part: usize, times: u64) -> Duration {
    let lap = |runs: usize| laps(ours, case, runs).expect("the case succeeds")[part];
    let (batches, rest) = (times / BATCH as u64, times as usize % BATCH);
    (0..batches).map(|_| lap(BATCH)).sum::<Duration>() + lap(rest)
}

fn convert(criterion: &mut Criterion) {
    common::bench(criterion, "convert", &conversions());
}

criterion_group!(benches, parts, convert);
criterion_main!(benches);
