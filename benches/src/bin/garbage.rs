//! Creates ten million short-lived values of each kind in runs with 16 MiB of memory.
//!
//! Panics if a script fails or has a wrong result. `--bin garbage -- 100000` sets another number of values; further arguments
//! select kinds.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

use agentscript::{CompileOptions, Inputs, Policy, Preset, Progress};
use codecall_tests::garbage::{KINDS, source};

const MEMORY: u64 = 16 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.first().and_then(|count| count.parse().ok()).unwrap_or(10_000_000);
    let chosen = arguments.get(1..).unwrap_or(&[]);
    let mut policy = Policy::preset(Preset::Experimental);
    let limits = &mut policy.limits;
    limits.max_memory_bytes = MEMORY;
    for limit in
        [&mut limits.max_steps, &mut limits.max_iterations, &mut limits.timeout_ms, &mut limits.max_duration_ms]
    {
        *limit = 1 << 40;
    }
    println!("{count} of each within {} MiB", MEMORY >> 20);
    for (name, body) in KINDS {
        if !chosen.is_empty() && !chosen.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let script = source(body, count);
        let began = processor_time();
        let script = agentscript::compile(&script, &CompileOptions::for_policy(&policy)).expect("it compiles");
        let Progress::Done(outcome) = script.start(Inputs::default(), &policy).resume([]) else {
            panic!("{name}: the script needs no host");
        };
        let took = (processor_time() - began) / count;
        let memory = outcome.stats.peak_memory_bytes >> 10;
        let resident = resident() >> 20;
        println!("{name:30} {took:6} ns each, {memory:6} KiB at most, {resident:4} MiB resident");
        assert_eq!(outcome.result.map_err(|failure| failure.message), Ok(count.to_string()), "{name}");
    }
}

/// Returns the CPU time of this thread, in nanoseconds.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}
