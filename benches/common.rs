//! What the criterion benches of cases share.

pub mod setting;

use codecall_benches::cases::Case;
use codecall_benches::measure::{Lab, Plan};
use codecall_benches::peers::ENGINES;
use criterion::Criterion;

/// Bench cases on every engine. The time is the thread's own; in engines of another process it is the clock's.
#[expect(clippy::print_stderr, reason = "what is skipped is told")]
pub fn bench(criterion: &mut Criterion, family: &str, cases: &[Case]) {
    let (mut lab, missing) = Lab::new(ENGINES, Plan::QUICK);
    for missing in missing {
        eprintln!("!!! SKIPPED: {missing}");
    }
    for case in cases {
        let mut group = setting::group(criterion, format!("{family}/{}", case.name));
        // A wrong answer has no speed.
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
