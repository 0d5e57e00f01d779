//! The commands of child processes: `codecall evaluate` evaluates scripts, `codecall confined` becomes an MCP server.
//! Both confine the process first, which must have a single thread.

use super::CommandError;
use clap::{Args, ValueEnum};
use codecall_base::sandbox::Strictness;
use codecall_config::{Any, ConfineConfig, Connect};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The consequence of a restriction that cannot be enforced.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    Required,
    BestEffort,
}

impl From<Mode> for Strictness {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Required => Self::Required,
            Mode::BestEffort => Self::BestEffort,
        }
    }
}

/// Evaluate scripts for a server, between standard input and output.
#[derive(Args, Debug)]
pub struct Evaluate {
    /// The consequence of a restriction that cannot be enforced.
    #[arg(long, default_value = "required")]
    confine: Mode,
    /// Memory in addition to what the process has at its start.
    #[arg(long, default_value_t = 256 * 1024 * 1024)]
    memory_bytes: u64,
    /// Processor time in total.
    #[arg(long, default_value_t = 3_600)]
    cpu_seconds: u64,
    /// Skip the warm-up, because a script is waiting.
    #[arg(long)]
    cold: bool,
    /// Confine the process, attempt a forbidden operation, and print the result: a test of the sandbox.
    #[arg(long = "try", value_name = "WHAT")]
    attempt: Option<Attempt>,
}

/// A forbidden operation.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Attempt {
    /// Read a file that everybody may read.
    Open,
    /// Make a socket.
    Connect,
    /// Start a process.
    Fork,
    /// Start a thread.
    Thread,
    /// Send a signal to its parent.
    Signal,
    /// Allocate more memory than the limit.
    Memory,
    /// An allowed operation: read the clock.
    Nothing,
}

#[cfg(unix)]
impl Attempt {
    /// Attempts the operation. Returns its result.
    fn attempt(self) -> String {
        match self {
            Self::Open => format!("{:?}", std::fs::read("/etc/passwd").map(|text| text.len())),
            Self::Connect => format!("{:?}", std::net::TcpStream::connect("127.0.0.1:9")),
            Self::Fork => format!("{:?}", std::process::Command::new("true").status()),
            Self::Thread => format!("{:?}", std::thread::Builder::new().spawn(|| 1).map(|thread| thread.join())),
            Self::Signal => {
                format!("{:?}", rustix::process::getppid().map(rustix::process::test_kill_process))
            }
            Self::Memory => format!("{:?}", vec![1_u8; 1 << 40].len()),
            Self::Nothing => format!("{:?}", std::time::Instant::now().elapsed() < std::time::Duration::MAX),
        }
    }
}

impl Evaluate {
    #[cfg(unix)]
    pub(super) fn execute(&self) -> ExitCode {
        use codecall_runs::worker::{Confinement, serve};
        use std::io::Write as _;
        let Self { confine, memory_bytes, cpu_seconds, cold, attempt } = *self;
        if let Some(attempt) = attempt {
            let confined = codecall_base::sandbox::confine_worker(memory_bytes, cpu_seconds);
            let protections = confined.map(|protections| protections.describe());
            let result = format!("{attempt:?}: {} {protections:?}\n", attempt.attempt());
            return match std::io::stdout().write_all(result.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        match serve(Confinement { strictness: confine.into(), memory_bytes, cpu_seconds, warm: !cold }) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => CommandError::new(problem).report(),
        }
    }

    #[cfg(not(unix))]
    pub(super) fn execute(&self) -> ExitCode {
        let _ = self;
        CommandError::new("there are no worker processes on this system").report()
    }
}

/// Confine the process, then execute a program in its place.
#[derive(Args, Debug)]
pub struct Confined {
    /// The consequence of a restriction that cannot be enforced.
    #[arg(long, default_value = "required")]
    mode: Mode,
    /// A file or folder that the program may read, in addition to programs and libraries of the system.
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// A file or folder that the program may read and write.
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// A TCP port that the program may connect to, or `any`. By default it has no network.
    #[arg(long, value_name = "PORT")]
    connect: Vec<String>,
    /// Maximum size of the data of each of its processes, in bytes.
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: Option<u64>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl Confined {
    pub(super) fn execute(self) -> ExitCode {
        let connect = if self.connect.iter().any(|port| port == "any") {
            Connect::Any(Any::Any)
        } else {
            match self.connect.iter().map(|port| port.parse::<u16>()).collect() {
                Ok(ports) => Connect::Ports(ports),
                Err(_) => return CommandError::new("--connect: must be a port or 'any'").report(),
            }
        };
        let Self { mode, read, write, max_memory_bytes, program, .. } = self;
        let confine = ConfineConfig { mode: mode.into(), read, write, connect, max_memory_bytes };
        let Some((command, args)) = program.split_first() else { return ExitCode::from(2) };
        CommandError::new(codecall_upstream::confine::exec_confined(&confine, command, args)).report()
    }
}
