//! The memory of runs, measured by other programs of this package, because a counting allocator takes time.

use crate::report::{Table, bytes, count};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Returns the allocations of fresh runs, by case.
///
/// # Errors
/// The program that counts cannot be built or fails.
pub fn memory() -> Result<Table, String> {
    let title = "Memory of fresh runs: AgentScript";
    let columns = ["case", "allocations", "allocated in all", "most at once", "while it waits for a tool"];
    let mut table = Table::new("memory", title, columns);
    for line in program("allocations")?.lines() {
        let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let figure = |key: &str| row[key].as_f64();
        table.rows.push(vec![
            row["case"].as_str().unwrap_or_default().to_owned(),
            figure("count").map(count).unwrap_or_default(),
            figure("bytes").map(bytes).unwrap_or_default(),
            figure("most").map(bytes).unwrap_or_default(),
            figure("waiting").map_or("–".into(), bytes),
        ]);
    }
    Ok(table)
}

/// Maximum resident memory of the waiting runs, in bytes.
const MAX_RESIDENT: f64 = 1024.0 * 1024.0 * 1024.0;

/// Returns the memory of many runs that wait at the same time.
///
/// # Errors
/// The program that starts them cannot be built or fails.
pub fn waiting() -> Result<Table, String> {
    let mut table = Table::new("waiting", "", ["runs", "resident", "≤ 1 GiB", "for each", "got there, a second"]);
    for line in program("waiting")?.lines() {
        let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let (text, figure) = (|key: &str| row[key].as_str().unwrap_or_default(), |key: &str| row[key].as_f64());
        let (Some(runs), Some(resident), Some(rate)) = (figure("runs"), figure("resident"), figure("rate")) else {
            return Err(format!("the program `waiting` says {line}"));
        };
        table.title = format!("{} runs at once, on two threads: AgentScript", count(runs));
        let verdict = if resident <= MAX_RESIDENT { "yes" } else { "NO" };
        let name = format!("{} {}", text("what"), text("state"));
        table.rows.push(vec![name, bytes(resident), verdict.into(), bytes(resident / runs), count(rate)]);
    }
    Ok(table)
}

/// Builds another program of this package with the same profile, and returns its output.
///
/// # Errors
/// It cannot be built or fails.
pub fn program(name: &str) -> Result<String, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = this.parent().and_then(|folder| folder.file_name()).unwrap_or_default().to_string_lossy();
    let profile = if folder == "debug" { "dev" } else { &folder };
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--quiet", "--profile", profile, "--bin", name, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    match String::from_utf8(output.stdout) {
        Ok(text) if output.status.success() => Ok(text),
        _ => Err(format!("the program `{name}` has failed")),
    }
}
