//! Restricts a process for good: its files, ports, system calls and memory.
//!
//! A process restricts itself while it has a single thread and before it handles untrusted data. Processes that it
//! starts inherit the restrictions. Linux supports all of them (Landlock for files and ports, seccomp for system calls);
//! other systems support only resource limits, which [`Protections`] reports. The caller decides what is allowed.

#[cfg(target_os = "linux")]
mod linux;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The reaction where a protection cannot be enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strictness {
    /// Do not start.
    #[default]
    Required,
    /// Start with the protections that are available, and report them in the status.
    BestEffort,
}

impl Strictness {
    /// Returns the name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
        }
    }
}

/// The protections that are enforced for a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Protections {
    /// Landlock restricts files.
    pub files: bool,
    /// Landlock restricts TCP ports.
    pub ports: bool,
    /// seccomp restricts system calls.
    pub calls: bool,
    /// Memory and CPU time are limited.
    pub limits: bool,
}

impl Protections {
    /// Describes the protections for status and logs: `files, ports, system calls, limits`, or what is missing.
    #[must_use]
    pub fn describe(self) -> String {
        let Self { files, ports, calls, limits } = self;
        let all = [(files, "files"), (ports, "ports"), (calls, "system calls"), (limits, "limits")];
        let names_of = |wanted: bool| {
            let names: Vec<&str> = all.iter().filter(|(holds, _)| *holds == wanted).map(|(_, name)| *name).collect();
            names.join(", ")
        };
        match (names_of(true), names_of(false)) {
            (holds, missing) if missing.is_empty() => holds,
            (holds, missing) if holds.is_empty() => format!("nothing (missing: {missing})"),
            (holds, missing) => format!("{holds} (missing: {missing})"),
        }
    }
}

/// The permissions of a confined program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Files and folders that it may read and execute.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also write.
    pub write: Vec<PathBuf>,
    /// TCP ports that it may connect to; `None` allows all networking, an empty list none.
    pub connect: Option<Vec<u16>>,
    /// Memory limit of each of its processes, in bytes; `None` for no limit.
    pub max_memory_bytes: Option<u64>,
}

/// Returns which protections this system supports for a program, without enforcing any.
#[must_use]
pub fn probe(permissions: &Permissions) -> Protections {
    #[cfg(target_os = "linux")]
    return linux::probe(permissions);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = permissions;
        Protections { limits: cfg!(unix), ..Protections::default() }
    }
}

/// Whether the protections enforce the permissions.
#[must_use]
pub fn is_sufficient(protections: Protections, permissions: &Permissions) -> bool {
    let ports = protections.ports || permissions.connect.as_ref().is_none_or(Vec::is_empty);
    protections.files && protections.calls && ports
}

/// Restricts this process, and processes that it starts, to these permissions.
///
/// # Errors
/// A path does not exist, or the system refuses a protection that it supports.
pub fn confine_program(permissions: &Permissions) -> Result<Protections, String> {
    let limits = set_program_limits(permissions);
    #[cfg(target_os = "linux")]
    let protections = linux::confine_program(permissions)?;
    #[cfg(not(target_os = "linux"))]
    let protections = Protections::default();
    Ok(Protections { limits, ..protections })
}

/// Restricts this process to what the interpreter needs: its three standard streams, time, and `memory_bytes` of memory
/// in addition to what it uses now.
///
/// # Errors
/// The system refuses a protection that it supports.
pub fn confine_worker(memory_bytes: u64, cpu_seconds: u64) -> Result<Protections, String> {
    let base = address_space();
    #[cfg(target_os = "linux")]
    let protections = linux::deny_files_and_ports()?;
    #[cfg(not(target_os = "linux"))]
    let protections = Protections::default();
    // Landlock rules need a file descriptor, so the limits come second.
    let limits = set_worker_limits(base.map(|base| base.saturating_add(memory_bytes)), cpu_seconds);
    #[cfg(target_os = "linux")]
    let protections = Protections { calls: linux::restrict_worker_calls(), ..protections };
    Ok(Protections { limits, ..protections })
}

/// Returns the size of this process's address space, in bytes; `None` if the system does not provide it.
#[must_use]
pub fn address_space() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// Returns the resident memory of a process, in bytes; `None` if the system does not provide it.
#[must_use]
pub fn resident_memory(process: u32) -> Option<u64> {
    let pages: u64 = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

/// The usual page size. On a system with larger pages the results are too small, but still show growth.
const PAGE_BYTES: u64 = 4096;

#[cfg(unix)]
fn set_limit(resource: rustix::process::Resource, value: u64) -> bool {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    // Only root may raise the hard limit.
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).is_ok()
}

#[cfg(unix)]
fn set_program_limits(permissions: &Permissions) -> bool {
    use rustix::process::Resource;
    // The address space is not limited: runtimes such as Node reserve far more than they use.
    permissions.max_memory_bytes.is_none_or(|bytes| set_limit(Resource::Data, bytes)) & set_limit(Resource::Core, 0)
}

#[cfg(unix)]
fn set_worker_limits(address_space: Option<u64>, cpu_seconds: u64) -> bool {
    use rustix::process::Resource;
    // The size of files is not limited, because stderr may be a file.
    address_space.is_some_and(|bytes| set_limit(Resource::As, bytes))
        & set_limit(Resource::Cpu, cpu_seconds)
        & set_limit(Resource::Nofile, 3)
        & set_limit(Resource::Core, 0)
}

#[cfg(not(unix))]
fn set_program_limits(_allowed: &Permissions) -> bool {
    false
}

#[cfg(not(unix))]
fn set_worker_limits(_address_space: Option<u64>, _cpu_seconds: u64) -> bool {
    false
}
