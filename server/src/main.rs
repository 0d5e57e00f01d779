//! The program: its command line is the crate `codecall-cli`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    codecall_cli::main()
}
