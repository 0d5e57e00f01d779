//! A run yields at the end of its slice, also if it spends almost all of its time in built-ins.

use agentscript::{Clock, CompileOptions, Inputs, Policy, Preset, Progress};
use codecall_tests::host::FastClock;
use std::sync::Arc;
use std::time::Duration;

/// Scripts, the minimum number of their slices if each check of the clock ends one, and their results.
const SCRIPTS: [(&str, usize, &str); 6] = [
    (
        "const text = 'x'.repeat(2e3); let n = 0; for (let i = 0; i < 10; i++) n += /(?=(x+)y)x/.test(text) ? 1 : 0; return n",
        10,
        "0",
    ),
    ("const text = 'x'.repeat(2e3); return [...Array(10).keys()].map(() => /(?=(x+)y)x/.test(text)).length", 10, "10"),
    (
        "const text = JSON.stringify(Array(2e4).fill(1)); let n = 0; for (let i = 0; i < 10; i++) n += JSON.parse(text).length; return n",
        10,
        "200000",
    ),
    (
        "let n = 0; for (let i = 0; i < 10; i++) { await null; n += 'ab'.repeat(2e4).split('').length; } return n",
        10,
        "400000",
    ),
    // Sorting is split into pieces of 4,096 moves, at least one for each level of the merges.
    (
        "const sorted = Array.from({ length: 2e4 }, (_, i) => `${(i * 7919) % 20011}`).sort(); return sorted.every((text, i) => i === 0 || sorted[i - 1] < text)",
        60,
        "true",
    ),
    ("return Array.from({ length: 2e4 }, (_, i) => (i * 7919) % 20011).sort((a, b) => a - b)[7]", 60, "7"),
];

/// Runs a script. Returns the result, and the numbers of steps and slices.
fn run(script: &str, slice: Option<Duration>) -> (String, u64, usize) {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.timeout_ms = 3_600_000;
    policy.limits.max_duration_ms = 3_600_000;
    let script = agentscript::compile(script, &CompileOptions::for_policy(&policy)).expect("compiles");
    let clock = Arc::new(FastClock::default()) as Arc<dyn Clock>;
    let mut run = script.start(Inputs { clock, slice, ..Inputs::default() }, &policy);
    let mut slices = 1;
    loop {
        match run.resume([]) {
            Progress::Done(outcome) => return (outcome.result.expect("ok"), outcome.stats.steps, slices),
            Progress::Yielded => slices += 1,
            Progress::Calls(calls) => panic!("nothing is called: {calls:?}"),
        }
    }
}

#[test]
fn work_of_built_ins_ends_slices() {
    for (script, min_slices, expected) in SCRIPTS {
        let (result, steps, slices) = run(script, Some(Duration::ZERO));
        assert_eq!(result, expected, "{script}");
        assert!(slices >= min_slices, "{slices} slices of {script}");
        assert_eq!((result, steps, 1), run(script, None), "slices do not change the result: {script}");
    }
}
