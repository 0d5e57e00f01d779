//! Confinement of MCP servers: codecall's own program is started instead of the server's, confines itself and then
//! calls `exec`. So nothing has to run between `fork` and `exec`, and processes that the server starts are confined too.
//!
//! Servers over HTTP are not confined: this program does not start them.

use codecall_base::sandbox::{self, Permissions, Protections, Strictness};
use codecall_config::{ConfineConfig, Connect, Secret};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Paths that any program may read: libraries, certificates, host names, devices without content. None of them holds
/// data of a user, so `/etc` as a whole, `/proc`, `/home` and `/var` are not in the list.
const READABLE_PATHS: &[&str] = &[
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
/// Paths that any program may write to.
const WRITABLE_PATHS: &[&str] = &["/dev/null"];

/// Returns the command that starts a confined program: codecall's own program and its arguments.
///
/// # Errors
/// The path of codecall's own program cannot be found.
pub fn wrapper(confine: &ConfineConfig, command: &OsStr, args: &[Secret]) -> std::io::Result<(PathBuf, Vec<OsString>)> {
    let own_program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
    let mut arguments: Vec<OsString> = vec!["confined".into(), "--mode".into(), confine.mode.as_str().into()];
    let mut add = |flag: &str, value: OsString| arguments.extend([OsString::from(flag), value]);
    confine.read.iter().for_each(|path| add("--read", path.into()));
    confine.write.iter().for_each(|path| add("--write", path.into()));
    match &confine.connect {
        Connect::Any(_) => add("--connect", "any".into()),
        Connect::Ports(ports) => ports.iter().for_each(|port| add("--connect", port.to_string().into())),
    }
    if let Some(bytes) = confine.max_memory_bytes {
        add("--max-memory-bytes", bytes.to_string().into());
    }
    arguments.extend([OsString::from("--"), command.into()]);
    arguments.extend(args.iter().map(OsString::from));
    Ok((own_program, arguments))
}

/// Returns what a program is allowed to do.
#[must_use]
pub fn permissions(confine: &ConfineConfig, command: &Path) -> Permissions {
    let existing = |paths: &[&str]| paths.iter().map(PathBuf::from).filter(|path| path.exists()).collect::<Vec<_>>();
    let mut read = existing(READABLE_PATHS);
    // The program may be outside of these paths.
    read.extend(program_file(command));
    read.extend(confine.read.iter().cloned());
    let mut write = existing(WRITABLE_PATHS);
    write.extend(confine.write.iter().cloned());
    let connect = match &confine.connect {
        Connect::Any(_) => None,
        Connect::Ports(ports) => Some(ports.clone()),
    };
    Permissions { read, write, connect, max_memory_bytes: confine.max_memory_bytes }
}

/// Returns the file of a program, as `exec` finds it.
fn program_file(command: &Path) -> Option<PathBuf> {
    if command.components().count() > 1 {
        return command.exists().then(|| command.to_owned());
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(command)).find(|path| path.is_file())
}

/// Returns which protections this system can enforce.
///
/// # Errors
/// They are required, and the system cannot enforce all of them.
pub fn check(confine: &ConfineConfig, command: &str) -> Result<Protections, String> {
    let permissions = permissions(confine, Path::new(command));
    let protections = sandbox::probe(&permissions);
    require(confine.mode, protections, &permissions)?;
    Ok(protections)
}

fn require(mode: Strictness, protections: Protections, permissions: &Permissions) -> Result<(), String> {
    if mode == Strictness::Required && !sandbox::is_sufficient(protections, permissions) {
        return Err(format!(
            "confine: this system can only enforce: {}; with mode = \"best-effort\" the program starts anyway",
            protections.describe()
        ));
    }
    Ok(())
}

/// Confines this process and replaces it by the program. Returns the error if that fails, else not at all.
#[must_use]
pub fn exec_confined(confine: &ConfineConfig, command: &OsString, args: &[OsString]) -> String {
    let permissions = permissions(confine, Path::new(command));
    let protections = match sandbox::confine_program(&permissions) {
        Ok(protections) => protections,
        Err(problem) => return format!("confine: {problem}"),
    };
    if let Err(problem) = require(confine.mode, protections, &permissions) {
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
    // This system has no `exec`: the process waits for the program and exits with its code.
    match std::process::Command::new(command).args(args).status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}
