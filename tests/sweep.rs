//! A sample of the sweep: every built-in at least once, in processes that are measured from outside.

use codecall_tests::sweep::{SETTINGS, cases, watch};
use std::path::PathBuf;

/// How many cases, those apart that are there because their target has none yet.
const CASES: usize = 600;

#[test]
#[ignore = "not all built-ins charge by the size of what they are given yet"]
fn no_built_in_passes_the_limits() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_sweep"));
    let mut wrong = Vec::new();
    watch::run(&program, &cases::sample(cases::all(), CASES), 2, |case, measured| {
        let setting = &SETTINGS[case.setting];
        if let Some(fault) = measured.fault(setting) {
            wrong.push(format!("{fault}: {} {}: {measured:?}", setting.name, case.name));
        }
    });
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
