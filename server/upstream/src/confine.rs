//! MCP servers within walls: this program is started in their place, confines itself and becomes them.
//! So nothing has to be done between `fork` and `exec`, and what they start is confined with them.
//!
//! A server that runs already is not confined, nor one over HTTP.

use codecall_base::sandbox::{self, Allowed, Strictness, Walls};
use codecall_config::{ConfineConfig, Connect, Secret};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What any program needs: libraries, certificates, names of hosts, devices without content. Nothing of it
/// is anybody's own; `/etc` as a whole, `/proc`, `/home` and `/var` are not among it.
const SYSTEM: &[&str] = &[
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sbin",
    "/usr",
    "/opt",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];
/// What any program may write into.
const SINKS: &[&str] = &["/dev/null"];

/// The program in whose place a confined one is started, and its arguments up to the program's own.
///
/// # Errors
/// This program cannot be found.
pub fn wrapped(confine: &ConfineConfig, command: &str, args: &[Secret]) -> std::io::Result<(PathBuf, Vec<OsString>)> {
    let itself = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    let mut words: Vec<OsString> = vec!["confined".into(), "--mode".into(), confine.mode.as_str().into()];
    let mut add = |flag: &str, value: OsString| words.extend([OsString::from(flag), value]);
    confine.read.iter().for_each(|path| add("--read", path.into()));
    confine.write.iter().for_each(|path| add("--write", path.into()));
    match &confine.connect {
        Connect::Any(_) => add("--connect", "any".into()),
        Connect::Ports(ports) => ports.iter().for_each(|port| add("--connect", port.to_string().into())),
    }
    if let Some(bytes) = confine.max_memory_bytes {
        add("--max-memory-bytes", bytes.to_string().into());
    }
    words.extend([OsString::from("--"), command.into()]);
    words.extend(args.iter().map(OsString::from));
    Ok((itself, words))
}

/// What a program may do with this configuration.
#[must_use]
pub fn allowed(confine: &ConfineConfig, command: &Path) -> Allowed {
    let there = |paths: &[&str]| paths.iter().map(PathBuf::from).filter(|path| path.exists()).collect::<Vec<_>>();
    let mut read = there(SYSTEM);
    // A program need not be a program of the system.
    read.extend(found(command));
    read.extend(confine.read.iter().cloned());
    let mut write = there(SINKS);
    write.extend(confine.write.iter().cloned());
    let connect = match &confine.connect {
        Connect::Any(_) => None,
        Connect::Ports(ports) => Some(ports.clone()),
    };
    Allowed { read, write, connect, max_memory_bytes: confine.max_memory_bytes }
}

/// The file of a program, as `exec` finds it.
fn found(command: &Path) -> Option<PathBuf> {
    if command.components().count() > 1 {
        return command.exists().then(|| command.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(command)).find(|path| path.is_file())
}

/// Whether this system can enforce it.
///
/// # Errors
/// It has to be enforced and cannot be: what is missing.
pub fn check(confine: &ConfineConfig, command: &str) -> Result<Walls, String> {
    let allowed = allowed(confine, Path::new(command));
    let walls = sandbox::probe(&allowed);
    enough(confine.mode, walls, &allowed)?;
    Ok(walls)
}

fn enough(mode: Strictness, walls: Walls, allowed: &Allowed) -> Result<(), String> {
    if mode == Strictness::Required && !sandbox::suffices(walls, allowed) {
        return Err(format!(
            "confine: this system enforces no more than: {}; with mode = \"best-effort\" it is started all the same",
            walls.describe()
        ));
    }
    Ok(())
}

/// Confine this process and become the program. It comes back only where that fails.
#[must_use]
pub fn become_program(confine: &ConfineConfig, command: &OsString, args: &[OsString]) -> String {
    let allowed = allowed(confine, Path::new(command));
    let walls = match sandbox::confine(&allowed) {
        Ok(walls) => walls,
        Err(problem) => return format!("confine: {problem}"),
    };
    if let Err(problem) = enough(confine.mode, walls, &allowed) {
        return problem;
    }
    let name = Path::new(command).file_name().unwrap_or_default().display().to_string();
    match exec(command, args) {
        error if error.kind() == std::io::ErrorKind::NotFound => format!("the program '{name}' was not found"),
        error => format!("the program '{name}' cannot be started: {error}"),
    }
}

#[cfg(unix)]
fn exec(command: &OsString, args: &[OsString]) -> std::io::Error {
    use std::os::unix::process::CommandExt as _;
    std::process::Command::new(command).args(args).exec()
}

#[cfg(not(unix))]
fn exec(command: &OsString, args: &[OsString]) -> std::io::Error {
    // Nothing can take the place of a process here: it stands between, and ends with the program.
    match std::process::Command::new(command).args(args).status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
