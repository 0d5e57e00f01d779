//! The same for scripts that are valid: the bytes choose what they are made of.

#![no_main]

#[path = "run.rs"]
mod run;
#[path = "../../tests/properties/script.rs"]
mod script;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| run::run(&script::script(data), data));
