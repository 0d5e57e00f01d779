//! Runs scripts for a comparison with Node: reads lines `{"script", "language"?}`, and answers each with its outcome in a line.
#![expect(clippy::print_stdout, reason = "it answers in lines")]

use agentscript::Stress;
use codecall_tests::corpus::Case;
use codecall_tests::host;
use std::io::BufRead as _;
use std::panic::catch_unwind;

fn main() {
    // A panic is an outcome.
    std::panic::set_hook(Box::new(|_| {}));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let question: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON");
        let text = |key: &str| question[key].as_str().map(str::to_owned);
        let script = text("script").unwrap_or_default();
        let limits = serde_json::json!({"maxIterations": 300_000, "maxSteps": 20_000_000, "timeoutMs": 20_000});
        let case = Case { script, language: text("language"), limits: Some(limits), ..Case::default() };
        let run = || host::run(&case, |run| run.stress(Stress { hide_frames: true, ..Stress::default() })).to_json();
        println!("{}", catch_unwind(run).unwrap_or_else(|_| r#"{"status":"panic"}"#.into()));
    }
}
