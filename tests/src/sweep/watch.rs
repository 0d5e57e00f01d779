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

/// Processor time for the arguments, in milliseconds.
const PREPARING_MS: u64 = 30_000;

/// How many cases a process runs: what the allocator keeps would count for nobody.
const PER_PROCESS: usize = 200;

/// Runs cases on so many worker processes at once; `done` gets each with what it took, in no order.
pub fn run(program: &PathBuf, cases: &[Case], jobs: usize, done: impl FnMut(&Case, Measured) + Send) {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(done);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                let mut process: Option<Process> = None;
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ready = process.take().filter(|process| process.cases < PER_PROCESS);
                    let mut ready = ready.unwrap_or_else(|| Process::start(program));
                    let mut measured = ready.run(case);
                    if measured.fault(&SETTINGS[case.setting]).is_some() {
                        ready = Process::start(program);
                        measured = ready.run(case);
                    }
                    if !measured.lost {
                        process = Some(ready);
                    }
                    (done.lock().expect("nothing panics with the lock"))(case, measured);
                }
            });
        }
    });
}

/// A worker process.
struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    cases: usize,
}

impl Process {
    fn start(program: &PathBuf) -> Self {
        let mut command = Command::new(program);
        command.arg("--worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The allocator gives back what is freed, so that a case does not use what an earlier one has left.
        command.env("MALLOC_ARENA_MAX", "1").env("MALLOC_TRIM_THRESHOLD_", "1048576");
        command.env("MALLOC_MMAP_THRESHOLD_", "1048576");
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
        Self { child, input, lines, cases: 0 }
    }

    fn run(&mut self, case: &Case) -> Measured {
        self.cases += 1;
        let setting = &SETTINGS[case.setting];
        let (began, mut spent_before) = (Instant::now(), self.processor_ms());
        // What it takes to make the arguments is not the fault of the call.
        let mut patience = PREPARING_MS;
        let lost = |end: String, call_ms: u64, grown: u64| Measured {
            end,
            call_ms: call_ms as f64,
            grown,
            lost: true,
            ..Measured::default()
        };
        let sent = writeln!(self.input, "{}", worker::order(case)).and_then(|()| self.input.flush());
        let mut memory = 0;
        loop {
            match self.lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) if line == worker::GO => {
                    (spent_before, patience) = (self.processor_ms(), setting.timeout_ms * MOST);
                    continue;
                }
                Ok(line) => {
                    return worker::read(&line).unwrap_or_else(|| lost("ended: unreadable".into(), 0, 0));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                    return lost(format!("ended: {status}, sent: {}", sent.is_ok()), 0, memory);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let spent = self.processor_ms().saturating_sub(spent_before);
            memory = memory.max(self.resident_bytes());
            if spent > patience || memory > setting.memory_bytes * MOST || began.elapsed().as_secs() > 300 {
                let _ = self.child.kill();
                let _ = self.child.wait();
                let what = if patience == PREPARING_MS { "killed while it made its arguments" } else { "killed" };
                return lost(what.into(), spent, memory);
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
