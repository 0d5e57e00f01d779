//! A script with one tool, in twenty lines: `cargo run -p codecall-agentscript --example embed`.

use agentscript::{CompileOptions, Event, Inputs, Policy, Progress, compile};

const SCRIPT: &str = "const { price } = await callTool('shop:price', { item: 'tea' }); return price * 3;";

fn main() {
    let policy = Policy::default();
    let script = compile(SCRIPT, &CompileOptions::for_policy(&policy)).expect("the script compiles");
    let mut run = script.start(Inputs::default(), &policy);
    let mut events = Vec::new();
    let outcome = loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => break outcome,
            Progress::Yielded => {}
            // Here the host does its work: look at `call.tool` and `call.input`, answer with JSON.
            Progress::Calls(calls) => events.extend(
                calls.into_iter().map(|call| Event::Settled { id: call.id, result: Ok(r#"{"price": 4.5}"#.into()) }),
            ),
        }
    };
    std::io::Write::write_all(&mut std::io::stdout(), outcome.to_json().as_bytes()).expect("stdout is open");
}
