//! A sample of the sweep, the same each time, in processes that are measured from outside: built-ins with huge
//! arguments, and the server's own functions with huge and hostile values. `bash .ci/nightly` runs all of it.

use codecall_tests::sweep::{SETTINGS, cases, server, watch};
use std::path::PathBuf;

/// How many calls of built-ins, about.
const CASES: usize = 300;

/// The default limits: values are smaller than those for roomier ones, and take less time to be made.
const SETTING: &str = "64M";

/// Bytes of what functions of the server get, and each how many of the values.
const BYTES: usize = 100_000;
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
    watch::run(&program(), &sample, 2, |case, measured| {
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
