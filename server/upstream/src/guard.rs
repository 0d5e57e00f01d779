//! The end of the processes of MCP servers, whatever becomes of this process.
//!
//! A server and all processes that it starts are one process group. Processes that leave the group are found by a variable
//! of their environment, on Linux. If this process ends without ending its servers (`kill -9`, a crash), the *guard*
//! does so. It is a small process that waits at a pipe which the system closes with this process. A parent-death signal
//! would not
//! do. It ends with the thread that has started the child, and the children of the child do not get it.
//!
//! Systems without process groups have no guard.

use std::path::PathBuf;
use std::sync::OnceLock;

/// The variable that marks the processes of a server.
pub const VARIABLE: &str = "CODECALL_SERVER";

/// The program of the guard.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Has MCP servers guarded by `program`, which must be `codecall` itself: it is started with the argument `guard`. Those who
/// embed the server and do not call this have no guard; the servers then end if the process has time for it.
pub fn enable(program: PathBuf) {
    let _ = PROGRAM.set(program);
}

#[cfg(unix)]
pub use unix::{Marker, Registration, serve};

#[cfg(unix)]
mod unix {
    use super::{PROGRAM, VARIABLE};
    use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
    use std::collections::BTreeSet;
    use std::io::{BufRead as _, Write as _};
    use std::process::{Child, ChildStdin, Command, Stdio};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{LazyLock, Mutex, PoisonError};
    use std::time::{Duration, Instant, SystemTime};

    /// How long servers may take to exit after their stdin is closed, and again after SIGTERM.
    const EXIT_TIMEOUT: Duration = Duration::from_millis(1_000);
    const POLL: Duration = Duration::from_millis(20);
    /// How often processes are searched that were started while others were ended.
    const MAX_SEARCHES: usize = 5;

    /// The mark of all servers of this process.
    static OWN: LazyLock<String> = LazyLock::new(|| {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        format!("{}-{:x}", std::process::id(), time.as_nanos())
    });

    static GUARD: Mutex<Guard> = Mutex::new(Guard { groups: BTreeSet::new(), starting: 0, running: None });

    /// The guard, as this process sees it.
    struct Guard {
        groups: BTreeSet<i32>,
        /// How many servers are being started.
        starting: usize,
        running: Option<(Child, ChildStdin)>,
    }

    /// Keeps a server guarded until it is dropped.
    pub struct Registration(Option<i32>);

    impl Registration {
        /// Begins before a server is started, so that there is no moment without a guard: it finds the processes by their
        /// mark until it knows the group.
        #[must_use]
        pub fn begin() -> Self {
            let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
            guard.starting += 1;
            guard.tell("\n");
            Self(None)
        }

        /// Has the group of the server guarded.
        pub fn set_group(&mut self, group: Pid) {
            let group = group.as_raw_pid();
            let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
            if self.0.replace(group).is_none() {
                guard.starting -= 1;
            }
            guard.groups.insert(group);
            guard.tell(&format!("+{group}\n"));
        }
    }

    impl Drop for Registration {
        fn drop(&mut self) {
            let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
            match self.0 {
                Some(group) => drop(guard.groups.remove(&group)),
                None => guard.starting -= 1,
            }
            match self.0 {
                _ if guard.groups.is_empty() && guard.starting == 0 => guard.stop(),
                Some(group) => guard.tell(&format!("-{group}\n")),
                None => {}
            }
        }
    }

    impl Guard {
        fn tell(&mut self, line: &str) {
            if let Some((_, pipe)) = &mut self.running
                && pipe.write_all(line.as_bytes()).is_ok()
            {
                return;
            }
            // It is not running yet, or was ended.
            self.stop();
            self.running = self.start();
        }

        /// Has the guard exit without ending anything, and waits for it: nobody else may.
        fn stop(&mut self) {
            if let Some((mut child, mut pipe)) = self.running.take() {
                let _ = pipe.write_all(b".\n");
                drop(pipe);
                let _ = child.wait();
            }
        }

        /// Starts the guard; `None` if there is none, or if it cannot be started.
        fn start(&self) -> Option<(Child, ChildStdin)> {
            let mut command = Command::new(PROGRAM.get()?);
            // It must keep nothing open and have none of the marks of this process.
            command.arg("guard").env_clear().current_dir("/");
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    tracing::warn!("MCP servers may outlive this process: their guard cannot be started: {error}");
                    return None;
                }
            };
            let mut pipe = child.stdin.take()?;
            let groups: String = self.groups.iter().map(|group| format!("+{group}\n")).collect();
            pipe.write_all(format!("={}\n{groups}", *OWN).as_bytes()).ok()?;
            Some((child, pipe))
        }
    }

    /// The mark of the processes of one server.
    pub struct Marker(String);

    impl Marker {
        /// Creates a marker that no other server has.
        #[must_use]
        pub fn new() -> Self {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            Self(format!("{}.{}", *OWN, COUNT.fetch_add(1, Ordering::Relaxed)))
        }

        /// Returns the value of [`VARIABLE`].
        #[must_use]
        pub fn value(&self) -> &str {
            &self.0
        }

        /// Kills all processes with this marker.
        pub fn kill(&self) {
            kill_marked(&format!("{VARIABLE}={}\0", self.0));
        }
    }

    impl Default for Marker {
        fn default() -> Self {
            Self::new()
        }
    }

    /// Waits until the process that has started this one is gone, and ends its servers. It returns at once when it is not
    /// needed any more.
    pub fn serve() {
        // What ends the group or the session of the server must not end the guard.
        let _ = rustix::process::setsid();
        // Who ends all processes that are named as the server does not mean this one.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_name(c"mcp-guard");
        let mut groups: BTreeSet<i32> = BTreeSet::new();
        let mut mark = String::new();
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match (line.get(..1), line.get(1..)) {
                (Some("="), Some(own)) => mark = format!("{VARIABLE}={own}."),
                (Some("+"), Some(group)) => groups.extend(group.parse::<i32>()),
                (Some("-"), Some(group)) => drop(group.parse().map(|group| groups.remove(&group))),
                (Some("."), _) => return,
                _ => {}
            }
        }
        let groups: Vec<Pid> = groups.into_iter().filter_map(Pid::from_raw).collect();
        wait_for(&groups);
        for group in &groups {
            let _ = kill_process_group(*group, Signal::TERM);
        }
        wait_for(&groups);
        for group in &groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        if !mark.is_empty() {
            kill_marked(&mark);
        }
    }

    /// Waits until no process of the groups is left, at most [`EXIT_TIMEOUT`].
    fn wait_for(groups: &[Pid]) {
        let began = Instant::now();
        while began.elapsed() < EXIT_TIMEOUT && groups.iter().any(|group| test_kill_process_group(*group).is_ok()) {
            std::thread::sleep(POLL);
        }
    }

    /// Kills all processes in whose environment an entry begins with `mark`.
    fn kill_marked(mark: &str) {
        for _ in 0..MAX_SEARCHES {
            let found = marked(mark);
            if found.is_empty() {
                return;
            }
            for process in found {
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Returns all processes in whose environment an entry begins with `mark`. Only Linux shows it.
    fn marked(mark: &str) -> Vec<Pid> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_marked = |number: &i32| {
            // Processes of other users cannot be read.
            let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment.split_inclusive(|byte| *byte == 0).any(|entry| entry.starts_with(mark.as_bytes()))
        };
        numbers.filter(is_marked).filter_map(Pid::from_raw).collect()
    }
}
