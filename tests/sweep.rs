//! Runs a sample of the sweep, always the same one, in processes that are measured from outside. It calls built-ins
//! with huge arguments, and the server's functions with huge and hostile values. `bash .ci/nightly` runs the whole
//! sweep.

use codecall_tests::sweep::{SETTINGS, cases, runner, server};
use std::path::PathBuf;

/// Approximate number of calls of built-ins.
const CASES: usize = 200;

/// The default limits. Their values are smaller, so they are created faster.
const SETTING: &str = "64M";

/// Size of the values for functions of the server, in bytes.
const BYTES: usize = 100_000;
/// One of this number of values is tested.
const EVERY: usize = 5;

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_sweep"))
}

#[test]
fn no_built_in_passes_the_limits() {
    let mut all = cases::all();
    all.retain(|case| SETTINGS[case.setting].name == SETTING);
    let sample = cases::sample(&all, CASES);
    let (mut wrong, mut reached) = (Vec::new(), 0);
    runner::run(&program(), &sample, 2, |case, measured| {
        reached += usize::from(measured.reached);
        if let Some(fault) = measured.fault(&SETTINGS[case.setting]) {
            wrong.push(format!("{fault}: {}: {measured:?}", case.name));
        }
    });
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(reached > sample.len() * 3 / 4, "{reached} of {} cases came to their call", sample.len());
}

#[test]
fn no_function_of_the_server_takes_long() {
    let all = server::all(BYTES);
    let sample: Vec<server::Case> = all.iter().step_by(EVERY).copied().collect();
    let mut wrong = Vec::new();
    server::run(&program(), &sample, 2, |case, result| {
        if let Some(fault) = case.fault(&result) {
            wrong.push(format!("{fault}: {}: {result:?}", case.name()));
        }
    });
    assert!(sample.len() > 200, "{}", sample.len());
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
