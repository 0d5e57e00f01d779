//! Any text as the answer of a tool. JSON that is left unread until someone looks has the value that it has when it is
//! read at once. Text that is no JSON fails the call either way.

#![no_main]

use agentscript::{CompileOptions, Event, Inputs, Outcome, Policy, Preset, Progress, Stress, compile};
use libfuzzer_sys::fuzz_target;

/// Scripts that look at all of the answer, at a part of it, and at none.
const LOOKS: [&str; 3] = [
    "return await callTool('t', {})",
    "const r = await callTool('t', {}); return [r?.a?.['b'], Object.keys(r ?? {}), { ...r }]",
    "await callTool('t', {}); return 1",
];

fuzz_target!(|answer: &str| {
    for look in LOOKS {
        let (read, unread) = (outcome(look, answer, false), outcome(look, answer, true));
        assert_eq!(read.to_json(), unread.to_json(), "{look}");
        // In text that is no JSON, the error is found at another moment.
        assert!(read.result.is_err() || unread.stats.steps <= read.stats.steps, "{look}");
    }
});

fn outcome(script: &str, answer: &str, lazy_json: bool) -> Outcome {
    let policy = Policy::preset(Preset::Balanced);
    let script = compile(script, &CompileOptions::for_policy(&policy)).expect("it compiles");
    let mut run = script.start(Inputs::default(), &policy);
    run.stress(Stress { lazy_json, ..Stress::default() });
    let Progress::Calls(calls) = run.resume([]) else { panic!("it calls") };
    match run.resume([Event::Settled { id: calls[0].id, result: Ok(answer.into()) }]) {
        Progress::Done(outcome) => *outcome,
        other => panic!("it ends, but gives {other:?}"),
    }
}
