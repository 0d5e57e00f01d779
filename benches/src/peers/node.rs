//! Node. A fresh sandbox is a context of `node:vm`, which only isolates names.

use super::process::Process;
use std::process::Command;

/// Starts a process of Node.
///
/// # Errors
/// Node cannot be started.
pub fn start(flags: &[&str]) -> Result<Process, String> {
    let mut command = Command::new("node");
    command.args(flags).arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/peers/node.mjs"));
    Process::start(command)
}

/// Returns the version, such as `v20.1.0`.
#[must_use]
pub fn version() -> Option<String> {
    let output = Command::new("node").arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}
