//! The child process of an MCP server: its environment, its stderr, its shutdown.

use super::LastLines;
#[cfg(unix)]
use crate::guard;
use codecall_base::hidden;
use codecall_base::redact::{Redactor, SecretRegistry};
use codecall_config::StdioConfig;
#[cfg(windows)]
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// The environment variables that every child inherits: enough to find programs, folders and certificates, and none
/// that usually holds a secret.
const INHERITED_ENV: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "npm_config_cache",
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
    "NPM_CONFIG_USERCONFIG",
    "PIP_INDEX_URL",
    "UV_INDEX_URL",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "USERNAME",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "HOMEDRIVE",
    "HOMEPATH",
    "PATHEXT",
    "COMSPEC",
    "PROGRAMFILES",
    "PROGRAMDATA",
];

/// How long a child may take to exit after its stdin is closed, and on Unix again after SIGTERM.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How many lines of stderr are logged in each window.
const MAX_LINES_PER_WINDOW: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);
/// How much of a line is logged, in bytes.
const MAX_LOGGED_BYTES: usize = 500;
/// How much of a line is read, in bytes: more than is logged, so that a secret at the cut is found as a whole.
const MAX_LINE_BYTES: usize = 8 * 1024;
/// How many of the last lines are reported when the child has ended.
const LAST_LINES: usize = 8;
/// How long it is waited for the end of stderr: a process that has left the group may keep the stream open.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

#[cfg(unix)]
type Process = tokio::process::Child;
#[cfg(windows)]
type Process = Box<dyn ChildWrapper>;

/// A running child process.
pub struct Child {
    process: Process,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    /// Finds the processes that have left the group.
    #[cfg(unix)]
    marker: Arc<guard::Marker>,
    /// Ends the group if this process cannot.
    #[cfg(unix)]
    _guarded: guard::Registration,
    stderr: Arc<Stderr>,
    stderr_task: JoinHandle<()>,
}

impl Child {
    /// Starts a child, and a task that logs its stderr without `secrets` and keeps its last lines.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(
        app: &str,
        config: &StdioConfig,
        secrets: &Arc<SecretRegistry>,
        lines: &Arc<LastLines>,
    ) -> Result<(Self, ChildStdin, ChildStdout), String> {
        let program = find_program(config);
        let mut command = match &config.confine {
            None => {
                let mut command = Command::new(program);
                command.args(&config.args);
                command
            }
            Some(confine) => {
                let wrapper = crate::confine::wrapper(confine, &program, &config.args);
                let (program, args) =
                    wrapper.map_err(|error| format!("codecall's own program is not found: {error}"))?;
                let mut command = Command::new(program);
                command.args(args);
                command
            }
        };
        command.env_clear();
        let inherited = INHERITED_ENV.iter().copied().chain(config.inherit_env.iter().map(String::as_str));
        command.envs(inherited.filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(&config.env);
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        let marker = Arc::new(guard::Marker::new());
        #[cfg(unix)]
        command.env(guard::VARIABLE, marker.value());
        #[cfg(unix)]
        let mut guarded = guard::Registration::begin();
        // Clients see the message, so it must not contain folders of the host.
        let program = Path::new(&config.command).file_name().unwrap_or_default().display();
        let mut process = spawn(command).map_err(|error| match error.kind() {
            // The system says the same of both.
            std::io::ErrorKind::NotFound if config.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir()) => {
                "the folder that 'cwd' names does not exist".into()
            }
            std::io::ErrorKind::NotFound if config.command.contains(' ') => {
                format!("the program '{program}' was not found; if 'command' has arguments, write them in 'args'")
            }
            std::io::ErrorKind::NotFound => format!("the program '{program}' was not found"),
            _ => format!("the program '{program}' cannot be started: {error}"),
        })?;
        let Some((stdin, stdout, stderr)) = take_streams(&mut process) else {
            return Err("its streams could not be opened".into());
        };
        let from = stderr;
        let stderr = Arc::new(Stderr {
            app: app.to_owned(),
            secrets: Arc::clone(secrets),
            environment: environment(config),
            lines: Arc::clone(lines),
            written: AtomicUsize::new(0),
        });
        let stderr_task = tokio::spawn(Arc::clone(&stderr).log(from));
        #[cfg(unix)]
        let group = process.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        #[cfg(unix)]
        if let Some(group) = group {
            guarded.set_group(group);
        }
        let child = Self {
            process,
            #[cfg(unix)]
            group,
            #[cfg(unix)]
            marker,
            #[cfg(unix)]
            _guarded: guarded,
            stderr,
            stderr_task,
        };
        Ok((child, stdin, stdout))
    }

    /// Returns the last lines of its stderr that say something: all of them, if it has exited.
    pub async fn last_lines(&mut self) -> Vec<String> {
        if tokio::time::timeout(STDERR_TIMEOUT, self.process.wait()).await.is_ok() {
            self.stderr_ended().await;
        }
        self.stderr.last_lines()
    }

    async fn stderr_ended(&mut self) {
        if !self.stderr_task.is_finished() {
            let _ = tokio::time::timeout(STDERR_TIMEOUT, &mut self.stderr_task).await;
        }
    }

    /// Ends the child and all processes that it has started. Its stdin must be closed before.
    pub async fn shut_down(mut self) {
        let exited = tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await;
        #[cfg(unix)]
        if exited.is_err() {
            self.signal_group(false);
            let _ = tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await;
        }
        #[cfg(unix)]
        self.signal_group(true);
        #[cfg(windows)]
        let _ = exited;
        let _ = self.process.start_kill();
        let _ = tokio::time::timeout(EXIT_TIMEOUT, self.process.wait()).await;
        #[cfg(unix)]
        {
            let marker = Arc::clone(&self.marker);
            let _ = tokio::task::spawn_blocking(move || marker.kill()).await;
        }
        self.stderr_ended().await;
    }

    #[cfg(unix)]
    fn signal_group(&self, kill: bool) {
        use rustix::process::{Signal, kill_process_group};
        if let Some(group) = self.group {
            // It fails if all processes of the group have exited.
            let _ = kill_process_group(group, if kill { Signal::KILL } else { Signal::TERM });
        }
    }
}

#[cfg(unix)]
fn spawn(mut command: Command) -> std::io::Result<Process> {
    // A process group of its own: all processes that the child starts are ended with it.
    command.process_group(0).kill_on_drop(true).spawn()
}

/// In a job of its own, so that all processes that the child starts are ended with it: by the system, when the job is closed,
/// also if this process is killed.
#[cfg(windows)]
fn spawn(command: Command) -> std::io::Result<Process> {
    CommandWrap::from(command).wrap(KillOnDrop).wrap(JobObject).spawn()
}

#[cfg(unix)]
fn take_streams(process: &mut Process) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
    Some((process.stdin.take()?, process.stdout.take()?, process.stderr.take()?))
}

#[cfg(windows)]
fn take_streams(process: &mut Process) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
    Some((process.stdin().take()?, process.stdout().take()?, process.stderr().take()?))
}

/// Returns the program of a server, as the system finds it.
#[cfg(unix)]
fn find_program(config: &StdioConfig) -> OsString {
    config.command.clone().into()
}

/// Returns the program of a server: Windows itself finds no `npx`, which is a file `npx.cmd`.
#[cfg(windows)]
fn find_program(config: &StdioConfig) -> OsString {
    let path = config.env.iter().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
    let path = path.map(|(_, path)| path.into()).or_else(|| std::env::var_os("PATH"));
    let cwd = config.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    which::which_in(&config.command, path, cwd).map_or_else(|_| config.command.clone().into(), Into::into)
}

#[cfg(unix)]
impl Drop for Child {
    /// Kills the group if the child is dropped without [`Child::shut_down`], for example when the runtime stops.
    fn drop(&mut self) {
        if !matches!(self.process.try_wait(), Ok(Some(_))) {
            self.signal_group(true);
            self.marker.kill();
        }
    }
}

/// Returns what redacts all values of the environment of a child, also those that are obviously not secrets, and their lines: what
/// it writes is read line by line.
pub fn environment(config: &StdioConfig) -> Redactor {
    Redactor::new(config.env.values().flat_map(|value| value.lines().chain([&**value])))
}

/// The stderr of a child: its lines are logged, the last ones are kept.
struct Stderr {
    app: String,
    secrets: Arc<SecretRegistry>,
    environment: Redactor,
    /// Where the last lines are kept, with those of earlier children.
    lines: Arc<LastLines>,
    /// How many lines this child has written.
    written: AtomicUsize,
}

impl Stderr {
    fn redact(&self, text: &mut String) {
        self.secrets.redactor().redact_string(text);
        self.environment.redact_string(text);
        // Only now, because a part of a secret would not be found.
        let length = codecall_base::text::truncate(text, MAX_LOGGED_BYTES).len();
        text.truncate(length);
    }

    /// Returns the last lines of this child that say something, redacted.
    fn last_lines(&self) -> Vec<String> {
        let mut lines = self.lines.without_secrets(&self.environment, &self.secrets);
        let written = self.written.load(Ordering::Relaxed);
        lines.drain(..lines.len().saturating_sub(written));
        lines.iter_mut().for_each(|line| *line = hidden::visible(line).trim().to_owned());
        lines.retain(|line| is_telling(line));
        lines.split_off(lines.len().saturating_sub(LAST_LINES))
    }

    /// Logs stderr until it is closed. Lines above the limit are counted, but not logged.
    async fn log(self: Arc<Self>, mut stderr: impl AsyncRead + Unpin) {
        let mut buffer = [0_u8; 8192];
        let mut line: Vec<u8> = Vec::new();
        let mut window = Window { start: Instant::now(), logged: 0, dropped: 0 };
        loop {
            let read = stderr.read(&mut buffer).await.unwrap_or(0);
            for byte in &buffer[..read] {
                if *byte != b'\n' {
                    if line.len() < MAX_LINE_BYTES {
                        line.push(*byte);
                    }
                    continue;
                }
                self.accept(&line, &mut window);
                line.clear();
            }
            if read == 0 {
                self.accept(&line, &mut window);
                return;
            }
        }
    }

    fn accept(&self, line: &[u8], window: &mut Window) {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        if text.is_empty() {
            return;
        }
        if window.allows(&self.app) {
            let mut text = text.clone();
            self.redact(&mut text);
            tracing::info!(app = self.app, "{text}");
        }
        self.lines.push(text);
        self.written.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether a line of an error says something: it is no line of carets, and no frame of a stack.
fn is_telling(line: &str) -> bool {
    line.contains(char::is_alphanumeric) && !line.starts_with("at ")
}

/// How much was logged lately.
struct Window {
    start: Instant,
    logged: u32,
    dropped: u64,
}

impl Window {
    /// Whether one more line may be logged.
    fn allows(&mut self, app: &str) -> bool {
        if self.start.elapsed() > WINDOW {
            if self.dropped > 0 {
                tracing::info!(app, dropped = self.dropped, "lines of stderr were not logged");
            }
            *self = Self { start: Instant::now(), logged: 0, dropped: 0 };
        }
        self.logged += 1;
        let is_allowed = self.logged <= MAX_LINES_PER_WINDOW;
        self.dropped += u64::from(!is_allowed);
        is_allowed
    }
}
