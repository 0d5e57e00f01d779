//! Runs all cases of the corpus, and compares them with their expectations.

use agentscript::Stress;
use codecall_tests::compare::problem;
use codecall_tests::corpus::load;
use codecall_tests::host::run;
use codecall_tests::parallel;
use std::path::Path;

/// Runs all cases except for those in `excluded` (prefixes of names). `prepare` changes each run before it starts.
fn check(prepare: fn(&mut agentscript::Run), excluded: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let filter = std::env::var("CASE").unwrap_or_default();
    let cases = load(&root);
    assert!(cases.len() > 1000, "the corpus has {} cases", cases.len());
    let failed = parallel::map(&cases, |case| {
        let name = format!("{}: {}", case.file.strip_prefix(&root).unwrap_or(&case.file).display(), case.name);
        if !name.contains(&filter) || excluded.iter().any(|folder| name.starts_with(folder)) {
            return None;
        }
        // A case that panics does not prevent the others.
        let outcome = std::panic::catch_unwind(|| run(case, prepare));
        let problem = match outcome {
            Ok(outcome) => problem(case, &outcome),
            Err(_) => Some("panicked".into()),
        };
        problem.map(|problem| format!("{name}\n     {problem}"))
    });
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} of {} cases fail:\n\n{}", failed.len(), cases.len(), failed.join("\n\n"));
}

#[test]
fn corpus() {
    check(|run| run.stress(Stress { hide_frames: true, ..Stress::default() }), &[]);
}

/// Runs that pause at every step, and parse data lazily, have the same results.
#[test]
fn corpus_with_pauses() {
    check(|run| run.stress(Stress { hide_frames: true, lazy_json: true, ..Stress::pauses(1) }), &["limits/"]);
}

/// Runs with a garbage collection at every step have the same results. Each collection marks all frames, so a case with ten
/// thousand frames would exceed its time limit.
#[test]
fn corpus_with_collections() {
    check(
        |run| run.stress(Stress { hide_frames: true, lazy_json: true, ..Stress::collections(1) }),
        &["limits/", "functions/functions.txt: endless recursion"],
    );
}
