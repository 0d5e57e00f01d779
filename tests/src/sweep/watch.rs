//! Hands cases to worker processes and looks at them from outside.

use super::{Case, Measured, SETTINGS, worker};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How many times its time or memory a case may take until its process is ended.
const MOST: u64 = 5;

/// Processor time for the values, in milliseconds.
const PREPARING_MS: u64 = 30_000;

/// What a call may wait where nothing takes processor time; long, since others may have the processors.
const WALL: Duration = Duration::from_secs(1800);

/// How many scripts a process runs: what the allocator keeps would count for nobody.
const PER_PROCESS: usize = 200;

/// Runs cases on so many worker processes at once; `done` gets each with what it took, in no order.
pub fn run(program: &PathBuf, cases: &[Case], jobs: usize, done: impl FnMut(&Case, Measured) + Send) {
    let batches = super::cases::together(cases);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let mut process: Option<Process> = None;
                while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for (case, mut measured) in together(program, &mut process, batch) {
                        if measured.fault(&SETTINGS[case.setting]).is_some() {
                            measured = alone(program, case);
                        }
                        (done.lock().expect("nothing panics with the lock"))(case, measured);
                    }
                }
            });
        }
    });
}

/// Runs a case by itself, in a process of its own.
#[must_use]
pub fn alone(program: &PathBuf, case: &Case) -> Measured {
    let mut measured = Process::start(program).run(&[case]);
    measured.pop().map(|(_, measured)| measured).unwrap_or_default()
}

/// Runs cases with the same values; where a case ends the script, those after it are run in another one.
fn together<'a>(program: &PathBuf, process: &mut Option<Process>, batch: &[&'a Case]) -> Vec<(&'a Case, Measured)> {
    let mut results = Vec::new();
    while let Some(left) = batch.get(results.len()..).filter(|left| !left.is_empty()) {
        let ready = process.take().filter(|process| process.scripts < PER_PROCESS);
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
    /// Start one.
    ///
    /// # Panics
    /// It cannot be started.
    #[must_use]
    pub fn start(program: &PathBuf) -> Self {
        let mut command = Command::new(program);
        command.arg("--worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The allocator gives back what is freed, so that a case does not use what an earlier one has left.
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

    /// Run a script; gives the cases that it came to, in their order.
    fn run(&mut self, cases: &[&Case]) -> Vec<(usize, Measured)> {
        let setting = &SETTINGS[cases[0].setting];
        let (most_ms, most_bytes) = (setting.timeout_ms * MOST, setting.memory_bytes * MOST);
        let (lines, lost) = self.ask(&worker::order(cases), most_ms, most_bytes);
        let read = |line: &String| {
            let unreadable = || Measured { end: "ended: unreadable".into(), lost: true, ..Measured::default() };
            worker::read(line).unwrap_or_else(|| (0, unreadable()))
        };
        let mut results: Vec<(usize, Measured)> = lines.iter().map(read).collect();
        results.extend(lost.map(|lost| (results.len(), lost)));
        results
    }

    /// Give an order to the worker; gives what it says, and what became of it where it had to be ended: when
    /// anything after a [`worker::GO`] takes more than so much.
    pub fn ask(&mut self, order: &str, most_ms: u64, most_bytes: u64) -> (Vec<String>, Option<Measured>) {
        self.scripts += 1;
        let (mut began, mut spent_before) = (Instant::now(), self.processor_ms());
        let mut said = Vec::new();
        // What it takes to make the values is not the fault of the call.
        let (mut patience, mut memory) = (PREPARING_MS, 0);
        let lost = |end: String, call_ms: u64, grown: u64| {
            Some(Measured { end, call_ms: call_ms as f64, grown, lost: true, ..Measured::default() })
        };
        let sent = writeln!(self.input, "{order}").and_then(|()| self.input.flush());
        loop {
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) if line == worker::GO => {
                    (spent_before, patience) = (self.processor_ms(), most_ms);
                    (began, memory) = (Instant::now(), 0);
                    continue;
                }
                Ok(line) if line == worker::DONE => return (said, None),
                Ok(line) => {
                    said.push(line);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                    return (said, lost(format!("ended: {status}, sent: {}", sent.is_ok()), 0, memory));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let spent = self.processor_ms().saturating_sub(spent_before);
            memory = memory.max(self.resident_bytes());
            if spent > patience || memory > most_bytes || began.elapsed() > WALL {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let what = if patience == PREPARING_MS { super::NO_VALUES } else { "killed" };
                return (said, lost(what.into(), spent, memory));
            }
        }
    }

    /// Processor time of the process so far, in milliseconds.
    fn processor_ms(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        // User and system time are the 14th and 15th field, in hundredths of a second.
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
