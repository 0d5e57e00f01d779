//! What a process gives up for good, before it touches anything that somebody else has written: files,
//! ports, system calls, memory. It is applied by a process to itself, while it has a single thread, and
//! everything that it starts inherits it.
//!
//! Linux has all of it (Landlock for files and ports, seccomp for system calls); other systems have
//! limits alone, and [`Walls`] says so. Nothing here decides what is allowed.

#[cfg(target_os = "linux")]
mod linux;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What to do where something cannot be enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strictness {
    /// Do not start.
    #[default]
    Required,
    /// Start with what can be enforced, and say in the status what that is.
    BestEffort,
}

impl Strictness {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::BestEffort => "best-effort",
        }
    }
}

/// What holds for a process that has confined itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Walls {
    /// Landlock: files.
    pub files: bool,
    /// Landlock: TCP ports.
    pub ports: bool,
    /// seccomp: system calls.
    pub calls: bool,
    /// Limits of memory and processor time.
    pub limits: bool,
}

impl Walls {
    /// For status and logs: `files, ports, calls, limits`, or what is missing of it.
    #[must_use]
    pub fn describe(self) -> String {
        let Self { files, ports, calls, limits } = self;
        let all = [(files, "files"), (ports, "ports"), (calls, "system calls"), (limits, "limits")];
        let named = |wanted: bool| {
            let names: Vec<&str> = all.iter().filter(|(holds, _)| *holds == wanted).map(|(_, name)| *name).collect();
            names.join(", ")
        };
        match (named(true), named(false)) {
            (holds, missing) if missing.is_empty() => holds,
            (holds, missing) if holds.is_empty() => format!("nothing (missing: {missing})"),
            (holds, missing) => format!("{holds} (missing: {missing})"),
        }
    }
}

/// What a program may still do that is confined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Files and folders that it may read, and programs that it may start.
    pub read: Vec<PathBuf>,
    /// Files and folders in which it may also write.
    pub write: Vec<PathBuf>,
    /// TCP ports to which it may connect; absent: all, and every other kind of network. Empty: no network.
    pub connect: Option<Vec<u16>>,
    /// Bytes of data that each of its processes may have; absent: no limit.
    pub max_memory_bytes: Option<u64>,
}

/// Which walls this system has for such a program, without raising any.
#[must_use]
pub fn probe(allowed: &Allowed) -> Walls {
    #[cfg(target_os = "linux")]
    return linux::probe(allowed);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = allowed;
        Walls { limits: cfg!(unix), ..Walls::default() }
    }
}

/// Whether the walls are those that the program needs.
#[must_use]
pub fn suffices(walls: Walls, allowed: &Allowed) -> bool {
    let ports = walls.ports || allowed.connect.as_ref().is_none_or(Vec::is_empty);
    walls.files && walls.calls && ports
}

/// Confine this process, and what it starts, to what is allowed.
///
/// # Errors
/// A path that is not there, or the system refuses what it has.
pub fn confine(allowed: &Allowed) -> Result<Walls, String> {
    let limits = program_limits(allowed);
    #[cfg(target_os = "linux")]
    let walls = linux::confine(allowed)?;
    #[cfg(not(target_os = "linux"))]
    let walls = Walls::default();
    Ok(Walls { limits, ..walls })
}

/// Leave this process nothing but its three streams, time, and so many bytes of memory on top of what it
/// has: what the interpreter needs.
///
/// # Errors
/// The system refuses what it has.
pub fn seal(memory_bytes: u64, cpu_seconds: u64) -> Result<Walls, String> {
    let base = address_space();
    #[cfg(target_os = "linux")]
    let walls = linux::close_files()?;
    #[cfg(not(target_os = "linux"))]
    let walls = Walls::default();
    // Rules of Landlock are made with a descriptor, so that limits come second.
    let limits = sealed_limits(base.map(|base| base.saturating_add(memory_bytes)), cpu_seconds);
    #[cfg(target_os = "linux")]
    let walls = Walls { calls: linux::keep_calls(), ..walls };
    Ok(Walls { limits, ..walls })
}

/// Address space that the process has now, in bytes; absent where nobody says.
#[must_use]
pub fn address_space() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    Some(pages * PAGE)
}

/// Memory of a process that is resident, in bytes; absent where nobody says.
#[must_use]
pub fn resident(process: u32) -> Option<u64> {
    let pages: u64 = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// Larger pages make the figures smaller than they are, which is of no harm where growth is looked at.
const PAGE: u64 = 4096;

#[cfg(unix)]
fn limit(resource: rustix::process::Resource, value: u64) -> bool {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    // Nobody but root may raise the hard limit.
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) }).is_ok()
}

#[cfg(unix)]
fn program_limits(allowed: &Allowed) -> bool {
    use rustix::process::Resource;
    // Of the address space, runtimes such as Node's reserve far more than they use.
    allowed.max_memory_bytes.is_none_or(|bytes| limit(Resource::Data, bytes)) & limit(Resource::Core, 0)
}

#[cfg(unix)]
fn sealed_limits(address_space: Option<u64>, cpu_seconds: u64) -> bool {
    use rustix::process::Resource;
    // The length of files is not among them: standard error may be one.
    address_space.is_some_and(|bytes| limit(Resource::As, bytes))
        & limit(Resource::Cpu, cpu_seconds)
        & limit(Resource::Nofile, 3)
        & limit(Resource::Core, 0)
}

#[cfg(not(unix))]
fn program_limits(_allowed: &Allowed) -> bool {
    false
}

#[cfg(not(unix))]
fn sealed_limits(_address_space: Option<u64>, _cpu_seconds: u64) -> bool {
    false
}
