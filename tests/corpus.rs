//! Every case of the corpus gives what its file says.

use agentscript::Stress;
use codecall_tests::compare::problem;
use codecall_tests::corpus::load;
use codecall_tests::host::run;
use codecall_tests::parallel;
use std::path::Path;

/// Run all cases but those of some folders, each with a run that is prepared.
fn check(prepare: fn(&mut agentscript::Run), without: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let filter = std::env::var("CASE").unwrap_or_default();
    let cases = load(&root);
    assert!(cases.len() > 1000, "the corpus has {} cases", cases.len());
    let failed = parallel::map(&cases, |case| {
        let name = format!("{}: {}", case.file.strip_prefix(&root).unwrap_or(&case.file).display(), case.name);
        if !name.contains(&filter) || without.iter().any(|folder| name.starts_with(folder)) {
            return None;
        }
        // A case that cannot run takes none of the others with it.
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

/// Pauses at every step change nothing, nor does it to leave unread what can be.
#[test]
fn corpus_with_pauses() {
    check(|run| run.stress(Stress { hide_frames: true, lazy_json: true, ..Stress::pauses(1) }), &["limits/"]);
}

/// Collections of garbage at every step change nothing. Each marks all frames: with ten thousand of them that
/// takes longer than a run may.
#[test]
fn corpus_with_collections() {
    check(
        |run| run.stress(Stress { hide_frames: true, lazy_json: true, ..Stress::collections(1) }),
        &["limits/", "functions/functions.txt: endless recursion"],
    );
}
