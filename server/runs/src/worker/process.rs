//! The server's handle of a worker process: its pipes, its exit, and which directories of tools it keeps.

use super::directories::KeptDirectories;
use super::message::{Request, Response, VERSION, decode, decode_length, encode_frame, encode_length};
use super::serve::Confinement;
use codecall_base::sandbox::{self, Protections};
use codecall_base::tool::{DirectoryId, ToolDirectory};
use futures_util::future::BoxFuture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;

/// How often a wait for a pipe checks its deadline.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long a worker may take until it is ready: it may start at the busiest moment of a slow machine.
const READY_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a process whose pipe is closed may take to exit by itself.
const EXIT_TIMEOUT: Duration = Duration::from_millis(20);
/// Maximum size of the message that a worker is ready, in bytes.
const MAX_READY_BYTES: usize = 1024;
/// How much of the error output is kept, in bytes.
const MAX_STDERR_BYTES: usize = 2_000;

/// A worker process.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// How much memory it may allocate, in bytes.
    pub memory_bytes: u64,
    /// `None` until it is ready.
    protections: Option<Protections>,
    /// Its resident memory when it was ready, in bytes.
    pub initial_resident: Option<u64>,
    /// The directories that it keeps, with the sizes of their messages.
    directories: KeptDirectories<usize>,
    /// Number of runs that it has completed, and their time in milliseconds.
    pub runs: u32,
    pub script_ms: f64,
    /// When it was started, or was last acquired for a run.
    pub last_used: Instant,
}

/// How a worker has exited.
#[derive(Debug, Default)]
pub struct Exit {
    /// Its exit status, in words.
    pub status: String,
    /// The beginning of its error output.
    pub stderr: String,
    /// Whether another process has killed it.
    pub was_killed: bool,
}

/// Why a worker does not become ready.
#[derive(Debug)]
pub struct NotReady {
    pub problem: String,
    /// Whether another process has killed it.
    pub was_killed: bool,
}

/// Why there is no response.
#[derive(Debug)]
pub enum WorkerError {
    /// It takes too long.
    Timeout,
    /// The run was cancelled, and the grace period is over.
    Cancelled,
    /// The process has exited, or has closed a pipe.
    Exited,
    /// The response is longer than allowed.
    ResponseTooLarge,
    /// A message that cannot be encoded, decoded, or expected; or a panic.
    Protocol(String),
}

/// How long a response is waited for.
pub struct Deadline<'a> {
    started: Instant,
    timeout: Duration,
    /// The token of the run, and how long a response may take after it is cancelled.
    cancel: Option<(&'a CancellationToken, Duration)>,
    cancelled: Option<Instant>,
}

impl<'a> Deadline<'a> {
    pub fn new(timeout: Duration, cancel: Option<(&'a CancellationToken, Duration)>) -> Self {
        Self { started: Instant::now(), timeout, cancel, cancelled: None }
    }

    fn check(&mut self) -> Result<(), WorkerError> {
        if self.started.elapsed() > self.timeout {
            return Err(WorkerError::Timeout);
        }
        if let Some((cancel, grace_period)) = self.cancel
            && cancel.is_cancelled()
            && self.cancelled.get_or_insert_with(Instant::now).elapsed() > grace_period
        {
            return Err(WorkerError::Cancelled);
        }
        Ok(())
    }
}

impl Worker {
    /// Starts a process, without waiting for it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, confinement: Confinement) -> std::io::Result<Self> {
        let Confinement { strictness, memory_bytes, cpu_seconds, warm } = confinement;
        let mut command = Command::new(program);
        command.arg0("codecall").arg("evaluate").args(["--confine", strictness.as_str()]);
        command.args(["--memory-bytes", &memory_bytes.to_string(), "--cpu-seconds", &cpu_seconds.to_string()]);
        if !warm {
            command.arg("--cold");
        }
        // A process group of its own: Ctrl-C is for the server, which ends its runs first.
        command.env_clear().current_dir("/").process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(std::io::Error::from(ErrorKind::BrokenPipe));
        };
        rustix::io::ioctl_fionbio(&stdin, true)?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        rustix::io::ioctl_fionbio(&stderr, true)?;
        Ok(Self {
            child,
            stdin,
            stdout,
            stderr,
            memory_bytes,
            protections: None,
            initial_resident: None,
            directories: KeptDirectories::default(),
            runs: 0,
            script_ms: 0.0,
            last_used: Instant::now(),
        })
    }

    /// Waits until it is confined and ready.
    ///
    /// # Errors
    /// It does not become ready.
    pub fn ready(&mut self) -> Result<Protections, NotReady> {
        if let Some(protections) = self.protections {
            return Ok(protections);
        }
        let not_ready = |problem: &str| NotReady { problem: problem.into(), was_killed: false };
        match self.receive(MAX_READY_BYTES, &mut Deadline::new(READY_TIMEOUT, None)) {
            Ok(Response::Ready { version, protections }) if version == VERSION => {
                self.protections = Some(protections);
                self.initial_resident = sandbox::resident_memory(self.child.id());
                Ok(protections)
            }
            Ok(Response::Ready { .. }) => Err(not_ready("it is of another version of this program")),
            Err(WorkerError::Timeout) => Err(not_ready("it does not become ready")),
            Ok(_) | Err(_) => {
                let Exit { status, stderr, was_killed } = self.end();
                Err(NotReady { problem: format!("it has exited before it was ready ({status}): {stderr}"), was_killed })
            }
        }
    }

    /// Whether the process exists.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether a run with this directory can start without sending it.
    pub fn keeps(&self, directory: DirectoryId) -> bool {
        self.directories.contains(directory)
    }

    /// Total size of the messages with the directories that it keeps, in bytes.
    pub fn directory_bytes(&self) -> usize {
        self.directories.values().sum()
    }

    /// Sends a directory unless the worker keeps it.
    ///
    /// # Errors
    /// The directory cannot be sent.
    pub fn send_directory(
        &mut self,
        directory: &ToolDirectory,
        deadline: &mut Deadline<'_>,
    ) -> Result<(), WorkerError> {
        if self.directories.use_for_run(directory.id()).is_some() {
            return Ok(());
        }
        let bytes = directory.to_bytes().map_err(|problem| WorkerError::Protocol(problem.into()))?;
        let length = encode_length(bytes.len()).map_err(WorkerError::Protocol)?;
        self.send(&Request::Directory(directory.id()), deadline)?;
        self.write(&length, deadline)?;
        self.write(bytes, deadline)?;
        self.directories.insert(directory.id(), bytes.len());
        Ok(())
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The worker does not read it, or not in time.
    pub fn send(&mut self, request: &Request, deadline: &mut Deadline<'_>) -> Result<(), WorkerError> {
        let frame = encode_frame(request).map_err(WorkerError::Protocol)?;
        self.write(&frame, deadline)
    }

    fn write(&mut self, mut bytes: &[u8], deadline: &mut Deadline<'_>) -> Result<(), WorkerError> {
        while !bytes.is_empty() {
            match self.stdin.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.stdin, PollFlags::OUT, deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(WorkerError::Exited),
            }
        }
        Ok(())
    }

    /// Waits for the next response, of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// There is none.
    pub fn receive(&mut self, max_bytes: usize, deadline: &mut Deadline<'_>) -> Result<Response, WorkerError> {
        let mut length = [0; 4];
        self.read(&mut length, deadline)?;
        let length = decode_length(length);
        if length > max_bytes {
            return Err(WorkerError::ResponseTooLarge);
        }
        // Memory is allocated as the bytes arrive: the length alone may be wrong.
        let mut message = Vec::new();
        while message.len() < length {
            let start = message.len();
            message.resize(length.min(start + 1024 * 1024), 0);
            self.read(&mut message[start..], deadline)?;
        }
        decode(&message).map_err(WorkerError::Protocol)
    }

    fn read(&mut self, mut buffer: &mut [u8], deadline: &mut Deadline<'_>) -> Result<(), WorkerError> {
        while !buffer.is_empty() {
            match self.stdout.read(buffer) {
                Ok(0) => return Err(WorkerError::Exited),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.stdout, PollFlags::IN, deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(WorkerError::Exited),
            }
        }
        Ok(())
    }

    /// Resolves when the process has closed its pipe, although no response is due: it has exited. It stays pending if that
    /// cannot be observed; then the next request fails. This needs a tokio runtime.
    pub fn exited(&self) -> BoxFuture<'static, ()> {
        // The worker keeps its own handle of the pipe.
        let stdout = self.stdout.as_fd().try_clone_to_owned().and_then(Receiver::from_owned_fd);
        Box::pin(async move {
            match stdout {
                Ok(stdout) if stdout.readable().await.is_ok() => {}
                Ok(_) | Err(_) => std::future::pending().await,
            }
        })
    }

    /// Ends the process, whatever it does.
    pub fn end(&mut self) -> Exit {
        // If its pipe is closed, it may be about to exit by itself, and its status is worth knowing.
        let started = Instant::now();
        let mut status = self.child.try_wait();
        while matches!(status, Ok(None)) && started.elapsed() < EXIT_TIMEOUT {
            std::thread::sleep(Duration::from_millis(2));
            status = self.child.try_wait();
        }
        let has_exited = matches!(status, Ok(Some(_)));
        if !has_exited {
            let _ = self.child.kill();
            status = self.child.wait().map(Some);
        }
        let status = status.ok().flatten();
        let sigkill = rustix::process::Signal::KILL.as_raw();
        let was_killed = has_exited && status.is_some_and(|status| status.signal() == Some(sigkill));
        let status = status.map_or_else(|| "unknown".into(), |status| status.to_string());
        let mut stderr = vec![0; MAX_STDERR_BYTES];
        let read = self.stderr.read(&mut stderr).unwrap_or(0);
        let stderr = String::from_utf8_lossy(&stderr[..read]).trim().to_owned();
        Exit { status, stderr, was_killed }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.is_alive() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn wait(stream: &impl AsFd, flags: PollFlags, deadline: &mut Deadline<'_>) -> Result<(), WorkerError> {
    deadline.check()?;
    match poll(&mut [PollFd::new(stream, flags)], Some(&POLL_INTERVAL)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(_) => Err(WorkerError::Exited),
    }
}
