//! The sweep: every built-in with every kind of huge argument, in a process that is measured from outside.
//!
//! `kinds` has the values, `cases` puts them into calls of everything that [`agentscript::callables`] lists and of
//! the forms in `forms`, `worker` runs them in a process of its own, those with the same values in one script, and
//! `watch` hands them out, looks at what the kernel says of time and memory, and ends what takes far too much. What
//! passes a bound is run again, by itself in a new process, before it is told.

pub mod cases;
pub mod forms;
pub mod kinds;
pub mod report;
pub mod server;
pub mod watch;
pub mod worker;

/// The limits of a case, and how large its values are.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in reports.
    pub name: &'static str,
    /// `maxMemoryBytes`.
    pub memory_bytes: u64,
    /// `timeoutMs`: small, so that what looks at no clock is far over it, and what does takes no time.
    pub timeout_ms: u64,
    /// `maxResultBytes`.
    pub result_bytes: u64,
    /// `maxConsoleBytes`.
    pub console_bytes: u64,
    /// What part of their full size the values have.
    pub scale: f64,
}

/// All settings: the roomiest preset, and the default one.
pub const SETTINGS: [Setting; 2] = [
    Setting {
        name: "256M",
        memory_bytes: 256 << 20,
        timeout_ms: 100,
        result_bytes: 16 << 20,
        console_bytes: 10 << 20,
        scale: 1.0,
    },
    Setting {
        name: "64M",
        memory_bytes: 64 << 20,
        timeout_ms: 100,
        result_bytes: 1 << 20,
        console_bytes: 256 << 10,
        scale: 0.25,
    },
];

impl Setting {
    /// Milliseconds of processor time that a call may take.
    #[must_use]
    pub fn most_ms(&self) -> f64 {
        self.timeout_ms as f64 * 1.2 + 100.0
    }

    /// Bytes by which a process may grow.
    #[must_use]
    pub fn most_bytes(&self) -> u64 {
        self.memory_bytes / 10 * 12 + (20 << 20)
    }

    /// Bytes that an answer may have: result and log, every byte of which may be written as six.
    #[must_use]
    pub fn most_answer_bytes(&self) -> u64 {
        self.result_bytes + 6 * self.console_bytes + (64 << 10)
    }
}

/// What is measured, and its limits.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is called, on what, with what: `String#at(r=text:ascii; a=number:1e9) r.at(a)`.
    pub name: String,
    /// What is called alone: `String#at`.
    pub target: String,
    /// The object or the group that it belongs to.
    pub part: String,
    /// The statements that make its values.
    pub values: String,
    /// The expression that is measured, or the whole source.
    pub measured: String,
    /// Whether no other case can have the same values: it changes them, or its answer is measured.
    pub alone: bool,
    /// Whether compiling is what is measured.
    pub is_source: bool,
    /// Which of [`SETTINGS`].
    pub setting: usize,
}

/// The script of cases with the same values. What is measured comes after a call of `sweep:go` with the place of its
/// case, up to the next one or the end.
///
/// # Panics
/// There is no case.
#[must_use]
pub fn script(cases: &[&Case]) -> String {
    let first = cases.first().expect("at least one case");
    if first.is_source {
        return first.measured.clone();
    }
    let mut script = format!("const S = {};\n{}", SETTINGS[first.setting].scale, first.values);
    for (at, case) in cases.iter().enumerate() {
        let go = format!("await callTool('sweep:go', {{ at: {at} }});");
        let measured = &case.measured;
        // Promises and iterators do their work when someone asks.
        script += &if measured == "RETURN" {
            format!("{go}\nreturn a;")
        } else if case.alone {
            format!("{go}\nconst result = await ({measured});\n{NEXT}")
        } else {
            format!("{go}\ntry {{ const result = await ({measured}); {NEXT} }} catch {{}}\n")
        };
    }
    script
}

/// What is said of a case whose values take far too long.
const NO_VALUES: &str = "killed while it made its values";

/// Have an iterator do its work.
const NEXT: &str = "if (typeof result?.next === 'function') while (!result.next().done);";

/// What a case took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Processor time from its `sweep:go` to the next one, or to the end of the run and of what it held, in
    /// milliseconds.
    pub call_ms: f64,
    /// The most resident memory of the process in that time, less what it had before the script, in bytes.
    pub grown: u64,
    /// Bytes of the answer.
    pub answer_bytes: u64,
    /// How the run ended: its status and code, or what became of the process.
    pub end: String,
    /// Whether `sweep:go` was called.
    pub reached: bool,
    /// Whether the process ended, by itself or by the watch.
    pub lost: bool,
}

impl Measured {
    /// Whether its values could not be made, so that no other case will get them.
    #[must_use]
    pub fn has_no_values(&self) -> bool {
        !self.reached && (!self.lost || self.end == NO_VALUES)
    }

    /// What is wrong with it, if anything.
    #[must_use]
    pub fn fault(&self, setting: &Setting) -> Option<&'static str> {
        if self.lost && self.end != NO_VALUES {
            return Some(if self.end.starts_with("ended") { "crash" } else { "killed" });
        }
        if self.end.starts_with("panic") {
            return Some("panic");
        }
        if self.grown > setting.most_bytes() {
            return Some("memory");
        }
        if self.call_ms > setting.most_ms() {
            return Some("time");
        }
        (self.answer_bytes > setting.most_answer_bytes()).then_some("answer")
    }
}
