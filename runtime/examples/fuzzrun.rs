use agentscript::{CompileOptions, Inputs, Policy, Preset, Progress, compile};
fn main() {
    for path in std::env::args().skip(1) {
        let script = std::fs::read_to_string(path).expect("file");
        let mut policy = Policy::preset(Preset::Experimental);
        policy.limits.max_script_bytes = 1 << 30;
        policy.limits.max_result_bytes = 1 << 30;
        policy.limits.timeout_ms = 600_000;
        policy.limits.max_duration_ms = 600_000;
        let script = match compile(&script, &CompileOptions::of(&policy)) {
            Ok(script) => script,
            Err(error) => { println!("{:?}", error.diagnostics); continue; }
        };
        let mut run = script.start(Inputs::default(), &policy);
        let outcome = loop {
            match run.resume(Vec::new()) {
                Progress::Done(outcome) => break outcome,
                _ => {}
            }
        };
        if std::env::var("LOGS").is_ok() { for line in &outcome.logs { println!("{line}"); } }
        println!("{}", outcome.to_json());
    }
}
