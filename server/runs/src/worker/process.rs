//! A worker, as the server has it: a child process, what is said to it, and how it has ended.

use super::message::{Answer, Order, VERSION, frame, read};
use super::serve::Confinement;
use codecall_base::sandbox::{self, Protections};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often a wait looks whether it is still wanted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How long a worker may take to be ready: it may be the busiest moment of a slow machine.
const START: Duration = Duration::from_secs(20);
/// Longest message of a worker that has no run yet.
const LONGEST_GREETING: usize = 1024;
/// How much of its error output is kept.
const LAST_WORDS: usize = 2_000;

/// A child process that runs scripts.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// Bytes that it may have besides what it began with.
    pub memory_bytes: u64,
    /// What holds for it; absent: it has not said that it is ready.
    pub walls: Option<Protections>,
    /// Memory that was resident when it was ready.
    pub resident: Option<u64>,
    /// Runs that it has had, and their time.
    pub runs: u32,
    pub script_ms: f64,
    /// When it was last given a run, or started.
    pub used: Instant,
}

/// How a worker has ended.
#[derive(Debug, Default)]
pub struct Ending {
    /// Its exit status, in words.
    pub how: String,
    /// The last of its error output.
    pub words: String,
    /// Whether somebody else has killed it.
    pub was_killed: bool,
}

/// Why a worker cannot begin.
#[derive(Debug)]
pub struct NotReady {
    pub problem: String,
    /// Whether somebody has killed it from outside.
    pub was_killed: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Lost {
    /// It takes too long.
    Late,
    /// Nobody waits for it any more.
    Unwanted,
    /// The process is gone, or does not read.
    Gone,
    /// It says more than it may.
    TooLong,
    /// What it says makes no sense.
    Nonsense(String),
}

/// How long an answer is waited for.
pub struct Watch<'a> {
    began: Instant,
    patience: Duration,
    /// Fires when the answer is wanted no more, and how long it may take then.
    cancel: Option<(&'a CancellationToken, Duration)>,
    cancelled: Option<Instant>,
}

impl<'a> Watch<'a> {
    pub fn new(patience: Duration, cancel: Option<(&'a CancellationToken, Duration)>) -> Self {
        Self { began: Instant::now(), patience, cancel, cancelled: None }
    }

    fn look(&mut self) -> Result<(), Lost> {
        if self.began.elapsed() > self.patience {
            return Err(Lost::Late);
        }
        if let Some((cancel, grace_period)) = self.cancel
            && cancel.is_cancelled()
            && self.cancelled.get_or_insert_with(Instant::now).elapsed() > grace_period
        {
            return Err(Lost::Unwanted);
        }
        Ok(())
    }
}

impl Worker {
    /// Start one. It is not waited for.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, confinement: Confinement) -> std::io::Result<Self> {
        let Confinement { strictness, memory_bytes, cpu_seconds, warm } = confinement;
        let mut command = Command::new(program);
        command.arg0("codecall").arg("worker").args(["--confine", strictness.as_str()]);
        command.args(["--memory-bytes", &memory_bytes.to_string(), "--cpu-seconds", &cpu_seconds.to_string()]);
        if !warm {
            command.arg("--cold");
        }
        // A group of its own: Ctrl-C is for the server, which ends its runs in good order.
        command.env_clear().current_dir("/").process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(std::io::Error::from(ErrorKind::BrokenPipe));
        };
        rustix::io::ioctl_fionbio(&stdin, true)?;
        rustix::io::ioctl_fionbio(&stdout, true)?;
        rustix::io::ioctl_fionbio(&stderr, true)?;
        let (walls, resident, runs, script_ms, used) = (None, None, 0, 0.0, Instant::now());
        Ok(Self { child, stdin, stdout, stderr, memory_bytes, walls, resident, runs, script_ms, used })
    }

    /// Wait until it is confined and can begin.
    ///
    /// # Errors
    /// It does not come to that; what it has said of it.
    pub fn ready(&mut self) -> Result<Protections, NotReady> {
        if let Some(walls) = self.walls {
            return Ok(walls);
        }
        let told = |problem: &str| NotReady { problem: problem.into(), was_killed: false };
        match self.receive(LONGEST_GREETING, &mut Watch::new(START, None)) {
            Ok(Answer::Ready { version, walls }) if version == VERSION => {
                self.walls = Some(walls);
                self.resident = sandbox::resident_memory(self.child.id());
                Ok(walls)
            }
            Ok(Answer::Ready { .. }) => Err(told("it is of another version of this program")),
            Err(Lost::Late) => Err(told("it does not get ready")),
            Ok(_) | Err(_) => {
                let Ending { how, words, was_killed } = self.end();
                let problem = format!("it has ended before it was ready ({how}): {words}");
                Err(NotReady { problem, was_killed })
            }
        }
    }

    /// Whether it is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Say something to it.
    ///
    /// # Errors
    /// It does not read, or not in time.
    pub fn send(&mut self, order: &Order, watch: &mut Watch<'_>) -> Result<(), Lost> {
        let frame = frame(order).map_err(Lost::Nonsense)?;
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            match self.stdin.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.stdin, PollFlags::OUT, watch)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Lost::Gone),
            }
        }
        Ok(())
    }

    /// Wait for its next message, of at most `longest` bytes.
    ///
    /// # Errors
    /// There is none.
    pub fn receive(&mut self, longest: usize, watch: &mut Watch<'_>) -> Result<Answer, Lost> {
        let mut length = [0; 4];
        self.fill(&mut length, watch)?;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > longest {
            return Err(Lost::TooLong);
        }
        // Memory comes with the bytes, not with their number.
        let mut message = Vec::new();
        while message.len() < length {
            let begin = message.len();
            message.resize(length.min(begin + 1024 * 1024), 0);
            self.fill(&mut message[begin..], watch)?;
        }
        read(&message).map_err(Lost::Nonsense)
    }

    fn fill(&mut self, mut buffer: &mut [u8], watch: &mut Watch<'_>) -> Result<(), Lost> {
        while !buffer.is_empty() {
            match self.stdout.read(buffer) {
                Ok(0) => return Err(Lost::Gone),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.stdout, PollFlags::IN, watch)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(Lost::Gone),
            }
        }
        Ok(())
    }

    /// End it, whatever it does.
    pub fn end(&mut self) -> Ending {
        // One whose pipe has just ended may be on its way; how it ends by itself is worth knowing.
        let began = Instant::now();
        let mut status = self.child.try_wait();
        while matches!(status, Ok(None)) && began.elapsed() < Duration::from_millis(20) {
            std::thread::sleep(Duration::from_millis(2));
            status = self.child.try_wait();
        }
        let is_over = matches!(status, Ok(Some(_)));
        if !is_over {
            let _ = self.child.kill();
            status = self.child.wait().map(Some);
        }
        let status = status.ok().flatten();
        let sigkill = rustix::process::Signal::KILL.as_raw();
        let was_killed = is_over && status.is_some_and(|status| status.signal() == Some(sigkill));
        let how = status.map_or_else(|| "unknown".into(), |status| status.to_string());
        let mut words = vec![0; LAST_WORDS];
        let read = self.stderr.read(&mut words).unwrap_or(0);
        let words = String::from_utf8_lossy(&words[..read]).trim().to_owned();
        Ending { how, words, was_killed }
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

fn wait(stream: &impl AsFd, flags: PollFlags, watch: &mut Watch<'_>) -> Result<(), Lost> {
    watch.look()?;
    match poll(&mut [PollFd::new(stream, flags)], Some(&LOOK)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(_) => Err(Lost::Gone),
    }
}
