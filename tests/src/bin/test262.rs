//! Runs the tests of a checkout of test262, the conformance tests of ECMAScript.
//!
//! `TEST262=FOLDER test262 [--write] [PREFIX]...` runs the tests of `language` and `built-ins`, or those whose paths
//! begin with a prefix. It compares the failures with `tests/test262/failures.txt`, which groups them by reason.
//! `--write`
//! rewrites that file. A test that needs what AgentScript refuses is counted and not run. The exit code is 1 if a test
//! fails that is not in the file, or one in the file passes.
#![expect(clippy::print_stdout, reason = "it prints a report")]

use agentscript::{CompileOptions, Inputs, Language, Policy, Preset, Progress};
use codecall_tests::parallel;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The functions that tests call.
const HARNESS: &str = include_str!("../../test262/harness.js");

/// The files of the harness of test262 whose functions are in [`HARNESS`], as far as AgentScript has what they use.
const INCLUDES: &[&str] = &[
    "assert.js",
    "asyncHelpers.js",
    "compareArray.js",
    "dateConstants.js",
    "decimalToHexString.js",
    "doneprintHandle.js",
    "promiseHelper.js",
    "propertyHelper.js",
    "regExpUtils.js",
    "sta.js",
];

/// The heading of failures whose reason is not known.
const UNEXPLAINED: &str = "Unexplained";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (flags, prefixes): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|one| one.starts_with("--"));
    let Some(root) = std::env::var_os("TEST262").map(|root| PathBuf::from(root).join("test")) else {
        println!("TEST262 is not set: it names a checkout of https://github.com/tc39/test262");
        return ExitCode::FAILURE;
    };
    let mut paths = Vec::new();
    collect(&root.join("language"), &mut paths);
    collect(&root.join("built-ins"), &mut paths);
    let mut tests: Vec<String> = paths.iter().filter_map(|path| name_of(&root, path)).collect();
    tests.retain(|test| prefixes.is_empty() || prefixes.iter().any(|prefix| test.starts_with(prefix.as_str())));
    tests.sort_unstable();
    assert!(run("").passed(), "the harness runs");
    // A panic is a failure.
    std::panic::set_hook(Box::new(|_| {}));
    let results = parallel::map(&tests, |test| {
        let text = std::fs::read_to_string(root.join(test)).unwrap_or_default();
        catch_unwind(|| run(&text)).unwrap_or_else(|_| Verdict::Failed("a panic".into()))
    });

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("test262/failures.txt");
    let expected = failures(&std::fs::read_to_string(&file).unwrap_or_default());
    let selected: BTreeSet<&str> = tests.iter().map(String::as_str).collect();
    let (mut counts, mut failed) = (BTreeMap::<&str, usize>::new(), BTreeMap::new());
    for (test, verdict) in tests.iter().zip(&results) {
        *counts.entry(verdict.name()).or_default() += 1;
        if let Verdict::Failed(problem) = verdict {
            failed.insert(test.as_str(), problem.as_str());
        }
    }
    let unexpected: Vec<_> = failed.iter().filter(|(test, _)| !expected.contains_key(**test)).collect();
    let passing: Vec<_> = expected
        .keys()
        .filter(|test| selected.contains(test.as_str()) && !failed.contains_key(test.as_str()))
        .collect();
    unexpected.iter().for_each(|(test, problem)| println!("failed: {test}\n  {problem}"));
    passing.iter().for_each(|test| println!("passes now, or is refused: {test}"));
    for (name, count) in &counts {
        println!("{name}: {count}");
    }
    let passed = counts.get("passed").copied().unwrap_or_default();
    println!("{:.2} % of the tests that can run pass", passed as f64 * 100.0 / (passed + failed.len()).max(1) as f64);
    if flags.iter().any(|flag| *flag == "--write") {
        std::fs::write(&file, written(&expected, &failed, &selected)).expect("the file can be written");
        return ExitCode::SUCCESS;
    }
    if unexpected.is_empty() && passing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The verdict on a test.
enum Verdict {
    Passed,
    Failed(String),
    /// It uses what AgentScript refuses.
    Refused,
    /// It is for sloppy mode, modules, or hosts with functions that CodeCall does not have.
    Skipped,
}

impl Verdict {
    fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
        }
    }
}

/// Adds the files below a folder.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, paths) } else { paths.push(path) }
    }
}

/// The path of a test below the root; `None` if the file is part of another test.
fn name_of(root: &Path, path: &Path) -> Option<String> {
    let name = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
    (name.ends_with(".js") && !name.contains("_FIXTURE")).then_some(name)
}

fn run(text: &str) -> Verdict {
    let meta = text.split_once("/*---").and_then(|(_, rest)| rest.split_once("---*/")).map_or("", |(meta, _)| meta);
    let (flags, includes) = (list(meta, "flags"), list(meta, "includes"));
    let is = |flag| flags.contains(&flag);
    let unknown = includes.iter().any(|include| !INCLUDES.contains(include));
    if is("noStrict") || is("module") || is("raw") || is("CanBlockIsFalse") || text.contains("$262") || unknown {
        return Verdict::Skipped;
    }
    let end = if is("async") { "\nawait $ended;" } else { "" };
    let body = text.replace("new Test262Error(", "Test262Error(").replace("new Test262Error", "Test262Error()");
    let script = format!("{HARNESS}\n{body}\n{end}\nreturn 'ended';");
    let fails_early = meta.contains("negative:") && meta.contains("phase: parse");
    let fails_late = meta.contains("negative:") && !fails_early;
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.timeout_ms = 60_000;
    let mut options = CompileOptions::for_policy(&policy);
    options.language = Some(Language::JavaScript);
    let script = match agentscript::compile(if fails_early { text } else { &script }, &options) {
        Ok(_) if fails_early => return Verdict::Failed("it is accepted".into()),
        Ok(script) => script,
        Err(_) if fails_early => return Verdict::Passed,
        Err(error) => {
            let json = error.failure.to_json();
            return if json.contains("VALIDATION_ERROR") { Verdict::Refused } else { Verdict::Failed(json) };
        }
    };
    let mut run = script.start(Inputs::default(), &policy);
    let outcome = match run.resume([]) {
        Progress::Done(outcome) => outcome,
        _ => return Verdict::Failed("it waits".into()),
    };
    match outcome.result {
        Ok(_) if fails_late => Verdict::Failed("it does not fail".into()),
        Ok(_) => Verdict::Passed,
        Err(failure) if failure.status == agentscript::Status::IllegalAccess => Verdict::Refused,
        Err(_) if fails_late => Verdict::Passed,
        Err(failure) => Verdict::Failed(failure.message),
    }
}

/// A list in the YAML at the head of a test, in one line or one line an item.
fn list<'t>(meta: &'t str, key: &str) -> Vec<&'t str> {
    let mut lines = meta.lines().skip_while(|line| !line.starts_with(&format!("{key}:")));
    let Some(first) = lines.next().map(|line| line[key.len() + 1..].trim()) else { return Vec::new() };
    if let Some(items) = first.strip_prefix('[') {
        return items.trim_end_matches(']').split(',').map(str::trim).collect();
    }
    lines.map_while(|line| line.trim().strip_prefix("- ")).map(str::trim).collect()
}

/// The reasons of the failures in a text, by test.
fn failures(text: &str) -> BTreeMap<String, String> {
    let mut reason = UNEXPLAINED;
    let mut tests = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(heading) => reason = heading,
            None => drop(tests.insert(line.to_owned(), reason.to_owned())),
        }
    }
    tests
}

/// The text of the failures: those that were not run as they were, the others with the reasons that they had.
fn written(expected: &BTreeMap<String, String>, failed: &BTreeMap<&str, &str>, selected: &BTreeSet<&str>) -> String {
    let mut by_reason: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (test, reason) in expected.iter().filter(|(test, _)| !selected.contains(test.as_str())) {
        by_reason.entry(reason).or_default().insert(test);
    }
    for test in failed.keys() {
        let reason = expected.get(*test).map_or(UNEXPLAINED, String::as_str);
        by_reason.entry(reason).or_default().insert(test);
    }
    let mut text = String::new();
    for (reason, tests) in by_reason {
        let _ = writeln!(text, "{}# {reason}", if text.is_empty() { "" } else { "\n" });
        tests.into_iter().for_each(|test| text += &format!("{test}\n"));
    }
    text
}
