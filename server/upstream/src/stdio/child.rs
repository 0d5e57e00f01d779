//! The child process of an MCP server: its environment, its error output, its end.

use codecall_base::redact::Redactor;
use codecall_config::StdioConfig;
use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// What a child inherits without being told: enough to find programs, folders and certificates, and
/// nothing that usually holds a secret.
const INHERITED: &[&str] = &[
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

/// How long a child may take to go when asked politely, twice.
const PATIENCE: Duration = Duration::from_secs(2);
/// Lines of error output that are logged in ten seconds.
const LINES_PER_WINDOW: u32 = 20;
const WINDOW: Duration = Duration::from_secs(10);
const LONGEST_LINE: usize = 500;
/// How much of a line is looked at: a secret that begins in what is logged ends here, if it is no longer than a key.
const LONGEST_READ: usize = 8 * 1024;
const LAST_LINES: usize = 5;

/// A running child.
pub struct Child {
    process: tokio::process::Child,
    group: Option<u32>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    drained: JoinHandle<()>,
}

impl Child {
    /// Start it; its error output is drained into the log.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(app: &str, config: &StdioConfig) -> Result<(Self, ChildStdin, ChildStdout), String> {
        let mut command = match &config.confine {
            None => {
                let mut command = Command::new(&config.command);
                command.args(&config.args);
                command
            }
            Some(confine) => {
                let wrapped = crate::confine::wrapped(confine, &config.command, &config.args);
                let (program, words) = wrapped.map_err(|error| format!("this program is not found: {error}"))?;
                let mut command = Command::new(program);
                command.args(words);
                command
            }
        };
        command.env_clear();
        let inherited = INHERITED.iter().copied().chain(config.inherit_env.iter().map(String::as_str));
        command.envs(inherited.filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(&config.env);
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // A group of its own: what the child starts is ended with it.
        #[cfg(unix)]
        command.process_group(0);
        // Clients see the reason, and no folders of the host.
        let program = Path::new(&config.command).file_name().unwrap_or_default().display();
        let mut process = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("the program '{program}' was not found"),
            _ => format!("the program '{program}' cannot be started: {error}"),
        })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err("its streams are not there".into());
        };
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let secrets = Redactor::new(config.env.values().map(|value| &**value));
        let drained = tokio::spawn(drain(app.to_owned(), stderr, secrets, Arc::clone(&last_words)));
        let group = process.id();
        Ok((Self { process, group, last_words, drained }, stdin, stdout))
    }

    fn last_words(&self) -> String {
        let lines = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return String::new();
        }
        format!("; its last output: {}", lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | "))
    }

    /// End it and all that it has started. Its input must have been closed before. Gives the end of
    /// its error output, as an addition to a message.
    pub async fn end(mut self) -> String {
        if tokio::time::timeout(PATIENCE, self.process.wait()).await.is_err() {
            self.signal(false);
            let _ = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        }
        self.signal(true);
        let _ = self.process.kill().await;
        // Whoever has left the group may hold the stream for ever.
        let _ = tokio::time::timeout(Duration::from_millis(200), &mut self.drained).await;
        self.last_words()
    }

    #[cfg(unix)]
    fn signal(&self, kill: bool) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let group = self.group.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            // It fails when nobody is left, which is what is wanted.
            let _ = kill_process_group(group, if kill { Signal::KILL } else { Signal::TERM });
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _kill: bool) {
        let _ = self.group;
    }
}

impl Drop for Child {
    /// Dropped without [`Child::end`], as when the runtime goes away: nobody is asked politely.
    fn drop(&mut self) {
        if !matches!(self.process.try_wait(), Ok(Some(_))) {
            self.signal(true);
        }
    }
}

/// Read error output for as long as there is some. A flood is counted and not logged.
async fn drain(app: String, mut stderr: impl AsyncRead + Unpin, secrets: Redactor, last: Arc<Mutex<VecDeque<String>>>) {
    let mut buffer = [0_u8; 8192];
    let mut line: Vec<u8> = Vec::new();
    let (mut since, mut logged, mut dropped) = (Instant::now(), 0, 0_u64);
    loop {
        let read = stderr.read(&mut buffer).await.unwrap_or(0);
        for byte in &buffer[..read] {
            if *byte != b'\n' {
                if line.len() < LONGEST_READ {
                    line.push(*byte);
                }
                continue;
            }
            let mut text = String::from_utf8_lossy(&line).trim().to_owned();
            line.clear();
            if text.is_empty() {
                continue;
            }
            if since.elapsed() > WINDOW {
                if dropped > 0 {
                    tracing::info!(app, dropped, "lines of error output were left out");
                }
                (since, logged, dropped) = (Instant::now(), 0, 0);
            }
            logged += 1;
            if logged > LINES_PER_WINDOW {
                dropped += 1;
                continue;
            }
            secrets.clean(&mut text);
            // Afterwards, or half a secret could stay.
            text.truncate(codecall_base::text::cut(&text, LONGEST_LINE).len());
            tracing::info!(app, "{text}");
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.push_back(text);
            if last.len() > LAST_LINES {
                last.pop_front();
            }
        }
        if read == 0 {
            return;
        }
    }
}
