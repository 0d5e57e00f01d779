//! Boa, which is built on first use. Its program is the separate package `boa/`.

use super::process::Process;
use std::process::Command;

/// Builds and starts the program.
///
/// # Errors
/// It cannot be built or started.
pub fn start() -> Result<Process, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--release", "--locked", "--manifest-path"]);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/boa/Cargo.toml"));
    Process::start(command)
}
