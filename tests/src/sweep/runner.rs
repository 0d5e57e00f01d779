//! Runs cases in worker processes, and measures them from outside.

use super::{Case, Measured, worker};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A process is killed when a case takes this many times its time or memory.
const KILL_FACTOR: u64 = 5;

/// Maximum CPU time for the creation of the values, in milliseconds.
const MAX_PREPARATION_MS: u64 = 30_000;

/// Maximum elapsed time of a call. It is long, because other processes may use the processors.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// Maximum number of scripts of a process. Memory that its allocator keeps would hide the growth of later cases.
const MAX_SCRIPTS: usize = 200;

/// Runs cases in `jobs` worker processes at once. `done` gets each case with its measurements, in no particular order.
pub fn run(program: &PathBuf, cases: &[Case], jobs: usize, done: impl FnMut(&Case, Measured) + Send) {
    let batches = super::cases::batches(cases);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let mut process: Option<Process> = None;
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for (case, mut measured) in run_batch(program, &mut process, batch) {
                        if measured.fault(&case.limits()).is_some() {
                            measured = run_alone(program, case);
                        }
                        (done.lock().expect("nothing panics with the lock"))(case, measured);
                    }
                }
            });
        }
    });
}

/// Runs a case in a new process.
#[must_use]
pub fn run_alone(program: &PathBuf, case: &Case) -> Measured {
    let mut measured = Process::start(program).run(&[case]);
    measured.pop().map(|(_, measured)| measured).unwrap_or_default()
}

/// Runs cases with the same values. If a case ends the script, the cases after it run in another script.
fn run_batch<'a>(program: &PathBuf, process: &mut Option<Process>, batch: &[&'a Case]) -> Vec<(&'a Case, Measured)> {
    let mut results = Vec::new();
    while let Some(left) = batch.get(results.len()..).filter(|left| !left.is_empty()) {
        let ready = process.take().filter(|process| process.scripts < MAX_SCRIPTS);
        let mut ready = ready.unwrap_or_else(|| Process::start(program));
        let measured = ready.run(left);
        let is_lost = measured.last().is_none_or(|(_, measured)| measured.lost);
        let has_no_values = measured.last().is_none_or(|(_, measured)| measured.has_no_values());
        results.extend(measured.into_iter().zip(left).map(|((_, measured), case)| (*case, measured)));
        if has_no_values {
            let last = results.last().map(|(_, measured)| measured.clone()).unwrap_or_default();
            results.extend(batch[results.len()..].iter().map(|case| (*case, last.clone())));
        }
        if !is_lost {
            *process = Some(ready);
        }
    }
    results
}

/// A worker process.
pub struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    scripts: usize,
}

impl Process {
    /// Starts a worker process.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(program: &PathBuf) -> Self {
        let mut command = Command::new(program);
        command.arg("--worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The allocator returns freed memory to the system, so that a case does not reuse the memory of an earlier one.
        command.env("MALLOC_ARENA_MAX", "1").env("MALLOC_TRIM_THRESHOLD_", "1048576");
        let mut child = command.spawn().expect("the worker starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines, scripts: 0 }
    }

    /// Runs the script of cases with the same values. Returns the measurements of the cases that it has reached.
    fn run(&mut self, cases: &[&Case]) -> Vec<(usize, Measured)> {
        let setting = cases[0].limits();
        let (max_ms, max_bytes) = (setting.timeout_ms * KILL_FACTOR, setting.memory_bytes * KILL_FACTOR);
        let (lines, lost) = self.request(&worker::request(cases), max_ms, max_bytes);
        let parse = |line: &String| {
            let unreadable = || Measured { end: "ended: unreadable".into(), lost: true, ..Measured::default() };
            worker::parse(line).unwrap_or_else(|| (0, unreadable()))
        };
        let mut results: Vec<(usize, Measured)> = lines.iter().map(parse).collect();
        results.extend(lost.map(|lost| (results.len(), lost)));
        results
    }

    /// Sends a request to the worker. Returns the lines of its response, and the last measurements of a worker that has
    /// ended or was killed. It is killed if it takes more than `max_ms` or `max_bytes` after a line [`worker::GO`].
    pub fn request(&mut self, request: &str, max_ms: u64, max_bytes: u64) -> (Vec<String>, Option<Measured>) {
        self.scripts += 1;
        let (mut began, mut spent_before) = (Instant::now(), self.cpu_ms());
        let mut response = Vec::new();
        // The creation of the values does not count for the call.
        let (mut limit_ms, mut memory) = (MAX_PREPARATION_MS, 0);
        let lost = |end: String, call_ms: u64, grown: u64| {
            Some(Measured { end, call_ms: call_ms as f64, grown, lost: true, ..Measured::default() })
        };
        let sent = writeln!(self.input, "{request}").and_then(|()| self.input.flush());
        loop {
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) if line == worker::GO => {
                    (spent_before, limit_ms) = (self.cpu_ms(), max_ms);
                    (began, memory) = (Instant::now(), 0);
                    continue;
                }
                Ok(line) if line == worker::DONE => return (response, None),
                Ok(line) => {
                    response.push(line);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                    return (response, lost(format!("ended: {status}, sent: {}", sent.is_ok()), 0, memory));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let spent = self.cpu_ms().saturating_sub(spent_before);
            memory = memory.max(self.resident_bytes());
            if spent > limit_ms || memory > max_bytes || began.elapsed() > TIMEOUT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let what = if limit_ms == MAX_PREPARATION_MS { super::NO_VALUES } else { "killed" };
                return (response, lost(what.into(), spent, memory));
            }
        }
    }

    /// Returns the CPU time of the process, in milliseconds.
    fn cpu_ms(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        // User and system time are fields 14 and 15, in hundredths of a second.
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10
    }

    fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap_or_default();
        statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4096
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
