//! Counts the allocations of fresh runs. Prints a line of JSON for each case.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

use agentscript::Progress;
use allocation_counter::measure;
use codecall_benches::cases::fresh;
use codecall_benches::peers::agentscript::AgentScript;
use serde_json::json;
use std::hint::black_box;

fn main() -> Result<(), String> {
    let ours = AgentScript::new();
    for case in fresh() {
        let run = || {
            let script = ours.compile(&case)?;
            AgentScript::finish(&mut ours.start(&script, &case), &case, Vec::new())
        };
        // The first run of a process initialises tables.
        run()?;
        let whole = measure(|| drop(black_box(run())));
        let script = ours.compile(&case)?;
        let mut kept = None;
        let waiting = measure(|| {
            let mut run = ours.start(&script, &case);
            kept = Some((matches!(run.resume(Vec::new()), Progress::Calls(_)), run));
        });
        let waits = kept.is_some_and(|(waits, _)| waits);
        let line = json!({
            "case": case.name,
            "count": whole.count_total,
            "bytes": whole.bytes_total,
            "most": whole.bytes_max,
            "waiting": waits.then_some(waiting.bytes_current),
        });
        println!("{line}");
    }
    Ok(())
}
