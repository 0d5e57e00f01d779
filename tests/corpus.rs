//! Runs all cases of the corpus, and compares them with their expectations. With `UPDATE=1` Node writes the expectations
//! first.

use agentscript::Stress;
use codecall_tests::compare::problem;
use codecall_tests::corpus::{Case, load};
use codecall_tests::host::run;
use codecall_tests::parallel;
use std::path::{Path, PathBuf};

/// Maximum steps of a case that runs again with pauses and with collections. A few cases have most of all steps.
const MAX_STRESSED_STEPS: u64 = 50_000;
/// The folder of cases that take seconds.
const SLOW: &str = "slow/";

/// The ways that a case runs: as it is, and with pauses or garbage collections at every step and data that is parsed lazily.
fn ways() -> [Stress; 3] {
    let lazy = |stress| Stress { hide_frames: true, lazy_json: true, ..stress };
    [Stress { hide_frames: true, ..Stress::default() }, lazy(Stress::pauses(1)), lazy(Stress::collections(1))]
}

/// Runs a case in one way. Returns its steps, and what is wrong.
fn outcome(case: &Case, stress: Stress) -> (u64, Option<String>) {
    // A case that panics does not prevent the others.
    match std::panic::catch_unwind(|| run(case, |run| run.stress(stress))) {
        Ok(outcome) => (outcome.stats.steps, problem(case, &outcome)),
        Err(_) => (0, Some("panicked".into())),
    }
}

/// The cases that do not run with stress. A limit ends a run at another place then, and ten thousand frames are marked by each
/// collection.
const UNSTRESSED: [&str; 2] = ["limits/", "functions/functions.txt: endless recursion"];

/// Runs the cases whose names are `wanted`, with stress up to so many steps.
fn check(wanted: impl Fn(&str) -> bool + Sync, max_stressed_steps: u64) {
    let root = folder();
    let filter = std::env::var("CASE").unwrap_or_default();
    let cases = load(&root);
    assert!(cases.len() > 1000, "the corpus has {} cases", cases.len());
    let failed = parallel::map(&cases, |case| {
        let name = format!("{}: {}", case.file.strip_prefix(&root).unwrap_or(&case.file).display(), case.name);
        if !name.contains(&filter) || !wanted(&name) {
            return None;
        }
        let [plain, stressed @ ..] = ways();
        let (steps, mut found) = outcome(case, plain);
        if steps <= max_stressed_steps && !UNSTRESSED.iter().any(|prefix| name.starts_with(prefix)) {
            for stress in stressed {
                found =
                    found.or_else(|| outcome(case, stress).1.map(|problem| format!("{problem}\n     by {stress:?}")));
            }
        }
        found.map(|problem| format!("{name}\n     {problem}"))
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} of {} cases fail:\n\n{}", failed.len(), cases.len(), failed.join("\n\n"));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Lets Node write the expectations.
fn update() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("node/run.mjs");
    let status = std::process::Command::new("node").arg(program).arg("--update").status().expect("UPDATE needs Node");
    assert!(status.success(), "Node cannot write some expectations");
}

#[test]
fn corpus() {
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        update();
    }
    check(|name| !name.starts_with(SLOW), MAX_STRESSED_STEPS);
}

#[test]
#[ignore = "SKIPPED: it takes a minute: bash .ci/run"]
fn corpus_with_long_cases() {
    check(|_| true, u64::MAX);
}
