//! Shared code of the criterion benchmarks of cases.

pub mod setting;

use codecall_benches::cases::Case;
use codecall_benches::measure::{Lab, Plan};
use codecall_benches::peers::ENGINES;
use criterion::Criterion;

/// Benchmarks cases on every engine, by the CPU time of the thread, or by the clock for engines in other processes.
#[expect(clippy::print_stderr, reason = "it reports skipped engines")]
pub fn bench(criterion: &mut Criterion, family: &str, cases: &[Case]) {
    let (mut lab, missing) = Lab::new(ENGINES, Plan::QUICK);
    for missing in missing {
        eprintln!("!!! SKIPPED: {missing}");
    }
    for case in cases {
        let mut group = setting::group(criterion, format!("{family}/{}", case.name));
        // The time of a wrong result is meaningless.
        lab.check(case);
        if !lab.problems.is_empty() {
            eprintln!("!!! {}", lab.problems.join("\n!!! "));
            std::process::exit(1);
        }
        for runner in &mut lab.runners {
            group.bench_function(runner.engine.name, |bencher| {
                bencher.iter_custom(|times| {
                    let times = u32::try_from(times).unwrap_or(u32::MAX);
                    runner.peer.round(case, times).expect("it has just succeeded").time
                });
            });
        }
        group.finish();
    }
}
