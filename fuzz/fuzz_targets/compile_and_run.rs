//! Any text is refused or runs, and a run ends within its limits whatever its tools answer.

#![no_main]

#[path = "run.rs"]
mod run;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| run::run(&String::from_utf8_lossy(data), data));
