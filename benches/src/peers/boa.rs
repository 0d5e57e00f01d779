//! Boa, which is built on first use: `boa/` beside `src/`, a package of its own.

use super::process::Process;
use std::process::Command;

/// Build and start it.
///
/// # Errors
/// If it cannot be built.
pub fn start() -> Result<Process, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--release", "--locked", "--manifest-path"]);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/boa/Cargo.toml"));
    Process::start(command)
}
