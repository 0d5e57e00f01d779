//! The sweep: calls every built-in with every kind of huge argument, in processes that are measured from outside.
//!
//! `kinds` has the values. `cases` combines them with everything that [`agentscript::callables`] lists and with the forms
//! in `forms`. `worker` is the process that runs cases; those with the same values share a script. `runner` distributes
//! the cases, reads CPU time and memory of the workers from the kernel, and kills workers that far exceed a bound. A case
//! that exceeds a bound is repeated alone in a new process before it is reported.

pub mod cases;
pub mod forms;
pub mod kinds;
pub mod report;
pub mod server;
pub mod runner;
pub mod worker;

/// The limits of a case, and the size of its values.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in reports.
    pub name: &'static str,
    /// `maxMemoryBytes`.
    pub memory_bytes: u64,
    /// `timeoutMs`: short, so that calls which do not check the clock far exceed it, and others end soon.
    pub timeout_ms: u64,
    /// `maxResultBytes`.
    pub result_bytes: u64,
    /// `maxConsoleBytes`.
    pub console_bytes: u64,
    /// The size of the values, as a fraction of the full size.
    pub scale: f64,
}

/// All settings: the limits of the largest preset, and those of the default one.
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

/// Memory that compilation takes at most for each byte of source, as `docs/reference/limits.md` says.
const BYTES_PER_SOURCE_BYTE: u64 = 220;
/// Time that compilation takes at most, in milliseconds: a server counts what is above it as evaluation.
const COMPILE_MS: u64 = 500;

impl Setting {
    /// Returns the maximum CPU time of a call, in milliseconds.
    #[must_use]
    pub fn max_ms(&self) -> f64 {
        self.timeout_ms as f64 * 1.2 + 100.0
    }

    /// Returns the maximum growth of the process, in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.memory_bytes / 10 * 12 + (20 << 20)
    }

    /// Returns the limits that hold while a source is compiled and run: those of its compilation come on top.
    #[must_use]
    pub fn of_source(&self, bytes: usize) -> Self {
        Self {
            timeout_ms: self.timeout_ms + COMPILE_MS,
            memory_bytes: self.memory_bytes + bytes as u64 * BYTES_PER_SOURCE_BYTE,
            ..*self
        }
    }

    /// Returns the maximum size of an answer, in bytes: the result, and the log with up to six bytes for each of its bytes.
    #[must_use]
    pub fn max_answer_bytes(&self) -> u64 {
        self.result_bytes + 6 * self.console_bytes + (64 << 10)
    }
}

/// A case: a call with its values and limits.
#[derive(Clone, Debug)]
pub struct Case {
    /// The call with its values: `String#at(r=text:ascii; a=number:1e9) r.at(a)`.
    pub name: String,
    /// The function: `String#at`.
    pub target: String,
    /// The object or group of the function.
    pub part: String,
    /// The statements that create the values.
    pub values: String,
    /// The measured expression, or the whole source.
    pub measured: String,
    /// Whether it cannot share its values with other cases, because it changes them or its answer is measured.
    pub alone: bool,
    /// Whether compilation is measured.
    pub is_source: bool,
    /// Its index in [`SETTINGS`].
    pub setting: usize,
}

impl Case {
    /// Returns the limits that its measurements are compared with.
    #[must_use]
    pub fn limits(&self) -> Setting {
        let setting = &SETTINGS[self.setting];
        if self.is_source { setting.of_source(self.measured.len()) } else { *setting }
    }
}

/// Returns the script of cases with the same values. Each measured part starts with a call of `sweep:go` with the index
/// of the case, and ends at the next such call or at the end of the script.
///
/// # Panics
/// If there is no case.
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
        // Promises and iterators are lazy, so their results are consumed.
        script += &if measured == "RETURN" {
            format!("{go}\nreturn a;")
        } else if case.alone {
            format!("{go}\nconst result = await ({measured});\n{CONSUME}")
        } else {
            format!("{go}\ntry {{ const result = await ({measured}); {CONSUME} }} catch {{}}\n")
        };
    }
    script
}

/// The end of a case whose values take too long.
const NO_VALUES: &str = "killed while it made its values";

/// Consumes the result if it is an iterator.
const CONSUME: &str = "if (typeof result?.next === 'function') while (!result.next().done);";

/// The measurements of a case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// CPU time from its `sweep:go` to the next one, or to the end of the run including the release of its memory, in
    /// milliseconds.
    pub call_ms: f64,
    /// Maximum resident memory of the process in that time, minus its memory before the script, in bytes.
    pub grown: u64,
    /// Size of the answer, in bytes.
    pub answer_bytes: u64,
    /// The status and code of the run, or how the process ended.
    pub end: String,
    /// Whether `sweep:go` was called.
    pub reached: bool,
    /// Whether the process ended or was killed.
    pub lost: bool,
}

impl Measured {
    /// Whether its values could not be created, so cases that share them cannot run either.
    #[must_use]
    pub fn has_no_values(&self) -> bool {
        !self.reached && (!self.lost || self.end == NO_VALUES)
    }

    /// Returns the bound that it exceeds, or how it failed; `None` if it did neither.
    #[must_use]
    pub fn fault(&self, setting: &Setting) -> Option<&'static str> {
        if self.lost && self.end != NO_VALUES {
            return Some(if self.end.starts_with("ended") { "crash" } else { "killed" });
        }
        if self.end.starts_with("panic") {
            return Some("panic");
        }
        if self.grown > setting.max_bytes() {
            return Some("memory");
        }
        if self.call_ms > setting.max_ms() {
            return Some("time");
        }
        (self.answer_bytes > setting.max_answer_bytes()).then_some("answer")
    }
}
