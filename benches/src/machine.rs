//! The machine and the versions of the engines, without which figures are meaningless.

use crate::peers::node;
use std::process::Command;

/// Returns the machine and the versions, as lines.
#[must_use]
pub fn machine() -> Vec<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let rustc = Command::new("rustc").arg("--version").output().ok();
    let rustc = rustc.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let system = (std::env::consts::OS, std::env::consts::ARCH);
    vec![
        format!("Machine: {}, {threads} threads, {} {}", model.unwrap_or("unknown processor"), system.0, system.1),
        format!("AgentScript: {}", rustc.split(" (").next().unwrap_or_default().trim()),
        format!("QuickJS: QuickJS-ng in rquickjs {}", locked(include_str!("../../Cargo.lock"), "rquickjs")),
        format!("node: {}", node::version().unwrap_or_else(|| "missing".into())),
        format!("Boa: boa_engine {}", locked(include_str!("../boa/Cargo.lock"), "boa_engine")),
    ]
}

/// Returns the version of a crate in a lock file.
fn locked<'a>(lock: &'a str, name: &str) -> &'a str {
    let entry = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).map(|(_, rest)| rest);
    entry.and_then(|rest| rest.split('"').next()).unwrap_or("of unknown version")
}
