//! The differential fuzzer: runs random scripts here and on Node, and compares the results.
//!
//! `differential [SEED [COUNT [MAX]]]` runs the scripts of `COUNT` seeds (10,000) from `SEED` (0), and ends after `MAX`
//! differences (1). It prints each difference with its seed and a minimized script. `differential --show SEED` prints a
//! script. `tests/properties/script.rs` generates the scripts. The environment variable `NODE` sets the program of Node.
#![expect(clippy::print_stdout, reason = "it prints a report")]

#[path = "../../properties/script.rs"]
mod script;

use agentscript::{Outcome, Stress};
use codecall_tests::compare::problem;
use codecall_tests::corpus::{Case, Expected};
use codecall_tests::host;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Number of scripts that are sent to Node at once.
const BATCH: usize = 200;

/// Maximum time of Node for a batch.
const NODE_TIMEOUT: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    if arguments.first().is_some_and(|first| first == "--show") {
        println!("{}", script::script(&choices(number(1, 0))));
        return ExitCode::SUCCESS;
    }
    // A panic is reported as a difference.
    std::panic::set_hook(Box::new(|_| {}));
    let (first, count, max) = (number(0, 0), number(1, 10_000), number(2, 1));
    let began = Instant::now();
    let (mut node, mut shrinker) = (Node::start(), None);
    let (mut compared, mut differences) = (0, 0);
    let mut seeds = first..first + count;
    let mut batch: Vec<Trial> = Vec::new();
    while differences < max {
        // Node runs one batch while this process generates and runs the next one.
        let next: Vec<Trial> = seeds.by_ref().filter_map(Trial::new).take(BATCH).collect();
        let answers = node.receive(&batch);
        if next.is_empty() && batch.is_empty() {
            break;
        }
        node.send(&next);
        compared += batch.len();
        let different = batch.iter().zip(&answers).filter(|(trial, answer)| trial.difference(answer).is_some());
        for (trial, _) in different.take((max - differences) as usize) {
            differences += 1;
            let (small, problem) = shrink(trial, shrinker.get_or_insert_with(Node::start));
            println!("\n=== seed {}\n{}\n--- {problem}", trial.seed, small.case.script);
        }
        batch = next;
    }
    let rate = compared as f64 / began.elapsed().as_secs_f64();
    println!(
        "seeds {first} to {}: {compared} scripts compared, {differences} differences, {rate:.0} a second",
        seeds.start - 1
    );
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A script with its outcome here.
struct Trial {
    seed: u64,
    choices: Vec<u8>,
    case: Case,
    /// `None` if the run panicked.
    outcome: Option<Outcome>,
}

impl Trial {
    /// Runs the script of a seed; `None` if it exceeds a limit, which Node does not have.
    fn new(seed: u64) -> Option<Self> {
        Self::from_choices(seed, choices(seed))
    }

    fn from_choices(seed: u64, choices: Vec<u8>) -> Option<Self> {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("properties/tools.json");
        let limits = serde_json::json!({"maxSteps": 50_000, "timeoutMs": 5000});
        let script = script::script(&choices);
        let case = Case { script, tools: Some(tools), limits: Some(limits), ..Case::default() };
        let outcome = std::panic::catch_unwind(|| {
            host::run(&case, |run| run.stress(Stress { hide_frames: true, ..Stress::default() }))
        })
        .ok();
        let limited = outcome.as_ref().and_then(|outcome| outcome.result.as_ref().err()).is_some_and(|failure| {
            failure.code == "TIMEOUT" || failure.code.ends_with("_LIMIT") || failure.code == "RESULT_TOO_LARGE"
        });
        (!limited).then_some(Self { seed, choices, case, outcome })
    }

    /// Returns how the outcome differs from Node's; `None` if it does not.
    fn difference(&self, node: &Value) -> Option<String> {
        let Some(outcome) = &self.outcome else { return Some("panicked".into()) };
        let [kind, text] = ["kind", "text"].map(|key| node["outcome"][key].as_str().unwrap_or_default());
        let mut case = self.case.clone();
        case.logs = node["logs"].as_array().into_iter().flatten().map(Value::to_string).collect();
        case.expected = match (kind, text) {
            ("status", "stuck") => {
                let fields = vec![("message".into(), "that nothing can settle".into())];
                Expected::Status("runtime_error EXECUTION_ERROR".into(), fields)
            }
            (kind, text) => Expected::read(kind, text).unwrap_or_default(),
        };
        problem(&case, outcome)
    }
}

/// Returns the choices of a seed, by splitmix64, so that adjacent seeds have different choices.
fn choices(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let length = next() % 250;
    (0..length).map(|_| next().to_le_bytes()[0]).collect()
}

/// Minimizes a trial that differs, by removing and zeroing choices. Returns the smallest trial and its difference.
fn shrink(trial: &Trial, node: &mut Node) -> (Trial, String) {
    let mut best = Trial::from_choices(trial.seed, trial.choices.clone()).expect("it ran before");
    let mut problem = best.difference(&node.one(&best)).unwrap_or_else(|| "only after the scripts before it".into());
    let mut size = best.choices.len().div_ceil(2);
    while size > 0 {
        let trials = smaller_trials(&best, size);
        node.send(&trials);
        let answers = node.receive(&trials);
        let found =
            trials.into_iter().zip(answers).find_map(|(trial, answer)| Some((trial.difference(&answer)?, trial)));
        match found {
            Some(found) => (problem, best) = found,
            None => size /= 2,
        }
    }
    (best, problem)
}

/// Returns variants of a trial with `size` consecutive choices removed or zeroed.
fn smaller_trials(best: &Trial, size: usize) -> Vec<Trial> {
    let trial = |choices: Vec<u8>| {
        let weight = |choices: &[u8]| (choices.len(), choices.iter().filter(|choice| **choice != 0).count());
        (weight(&choices) < weight(&best.choices)).then(|| Trial::from_choices(best.seed, choices)).flatten()
    };
    let starts = (0..best.choices.len()).step_by(size.div_ceil(2));
    starts
        .flat_map(|start| {
            let range = start..(start + size).min(best.choices.len());
            let mut zeroed = best.choices.clone();
            zeroed[range.clone()].fill(0);
            let mut without = best.choices.clone();
            without.drain(range);
            [trial(without), trial(zeroed)]
        })
        .flatten()
        .collect()
}

/// A process that runs scripts on Node. It is restarted if a script does not end.
struct Node {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Node {
    fn start() -> Self {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new(std::env::var("NODE").unwrap_or_else(|_| "node".into()))
            .arg("--no-warnings")
            .arg(here.join("node/differential.mjs"))
            .arg(here.join("properties/tools.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, input, lines }
    }

    fn send(&mut self, trials: &[Trial]) {
        if trials.is_empty() {
            return;
        }
        let scripts: Vec<&str> = trials.iter().map(|trial| trial.case.script.as_str()).collect();
        let line = serde_json::to_string(&scripts).expect("texts are JSON");
        // If the process has exited, its answer is missing.
        _ = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
    }

    /// Returns the answers to the last batch; `null` for a script that does not end.
    fn receive(&mut self, trials: &[Trial]) -> Vec<Value> {
        if trials.is_empty() {
            return Vec::new();
        }
        if let Ok(line) = self.lines.recv_timeout(NODE_TIMEOUT) {
            return serde_json::from_str(&line).expect("node answers a list");
        }
        *self = Self::start();
        if let [_] = trials {
            return vec![Value::Null];
        }
        trials.iter().map(|trial| self.one(trial)).collect()
    }

    fn one(&mut self, trial: &Trial) -> Value {
        let alone = std::slice::from_ref(trial);
        self.send(alone);
        self.receive(alone).pop().unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have exited already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
